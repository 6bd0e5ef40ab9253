/* SPDX-License-Identifier: MIT
 *
 * tokenizer_vocab.c - from GGUF metadata to a vocabulary
 *
 * tokenizer.ggml.tokens determines the size of the vocabulary: types and scores have
 * its length, and ids are indices into it.
 */
#include "engine/tokenizer/tokenizer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define MAX_TOKEN_BYTES 65535

static enum status no_memory(int32_t n_vocab, struct err *err)
{
    return err_set(err, ST_NO_MEMORY,
                   "cannot allocate a vocabulary of %" PRId32 " tokens", n_vocab);
}

static enum status load_texts(struct tokenizer *t, const struct gguf *g,
                              struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, "tokenizer.ggml.tokens");
    struct gguf_str s;
    size_t total = 0;

    if (!kv || kv->type != GGUF_ARRAY || kv->elem_type != GGUF_STRING || kv->n == 0)
        return err_set(err, ST_INPUT,
                       "%s: tokenizer.ggml.tokens is not a list of strings",
                       gguf_path(g));
    if (kv->n >= INT32_MAX)
        return err_set(err, ST_INPUT,
                       "%s: a vocabulary of %" PRIu64 " tokens is too large",
                       gguf_path(g), kv->n);
    t->n_vocab = (int32_t)kv->n;
    for (uint64_t i = 0; i < kv->n; i++) {
        gguf_elem_str(g, kv, i, &s);
        if (s.len > MAX_TOKEN_BYTES)
            return err_set(err, ST_INPUT,
                           "%s: token %" PRIu64 " has %zu bytes; the limit is %d",
                           gguf_path(g), i, s.len, MAX_TOKEN_BYTES);
        total += s.len;
    }
    t->text = malloc(total + 1);
    t->at = malloc(((size_t)kv->n + 1) * sizeof *t->at);
    if (!t->text || !t->at)
        return no_memory(t->n_vocab, err);
    t->at[0] = 0;
    for (uint64_t i = 0; i < kv->n; i++) {
        gguf_elem_str(g, kv, i, &s);
        memcpy(t->text + t->at[i], s.data, s.len);
        t->at[i + 1] = t->at[i] + s.len;
    }
    return ST_OK;
}

/* The array of a key, checked to have one element per token; *out is NULL where the
 * file has no such key. */
static enum status per_token(const struct gguf_kv **out, const struct tokenizer *t,
                             const struct gguf *g, const char *key, struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);

    if (kv && (kv->type != GGUF_ARRAY || kv->n != (uint64_t)t->n_vocab))
        return err_set(err, ST_INPUT,
                       "%s: %s has %" PRIu64 " entries for %" PRId32 " tokens",
                       gguf_path(g), key, kv->n, t->n_vocab);
    *out = kv;
    return ST_OK;
}

/* The value of "<0xHH>", or -1 for any other text. */
static int byte_value(const char *text, size_t len)
{
    static const char digits[] = "0123456789ABCDEF";

    if (len != 6 || memcmp(text, "<0x", 3) || text[5] != '>')
        return -1;
    const char *high = text[3] ? strchr(digits, text[3]) : NULL;
    const char *low = text[4] ? strchr(digits, text[4]) : NULL;

    return high && low ? (int)((high - digits) * 16 + (low - digits)) : -1;
}

/* Whether token id is the padding that writers of GGUF files make up: "[PAD" and its
 * own number; some type it as text. */
static bool is_padding(const char *text, size_t len, int32_t id)
{
    char name[32];

    return len == (size_t)snprintf(name, sizeof name, "[PAD%" PRId32 "]", id) &&
           !memcmp(text, name, len);
}

static enum status load_types(struct tokenizer *t, const struct gguf *g,
                              struct err *err)
{
    const struct gguf_kv *kv = NULL;
    enum status st = per_token(&kv, t, g, "tokenizer.ggml.token_type", err);

    if (st)
        return st;
    t->type = calloc((size_t)t->n_vocab, sizeof *t->type);
    if (!t->type)
        return no_memory(t->n_vocab, err);
    for (int b = 0; b < 256; b++)
        t->byte_id[b] = -1;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);
        const int byte = byte_value(text, len);
        uint64_t type = byte >= 0 && t->algo->spells_bytes ? TOKEN_BYTE : TOKEN_NORMAL;

        if (kv && (!gguf_elem_u64(kv, (uint64_t)id, &type) || type > TOKEN_BYTE))
            return err_set(err, ST_INPUT,
                           "%s: the type of token %" PRId32
                           " is not a number from 0 to %d",
                           gguf_path(g), id, TOKEN_BYTE);
        if (type == TOKEN_BYTE && byte < 0) {
            char name[48];

            return err_set(
                err, ST_INPUT,
                "%s: token %" PRId32 " is typed as a byte but reads '%s', not <0xHH>",
                gguf_path(g), id, utf8_printable(name, sizeof name, text, len));
        }
        if (is_padding(text, len, id))
            type = TOKEN_UNUSED;
        t->type[id] = (unsigned char)type;
        if (type == TOKEN_BYTE)
            t->byte_id[byte] = id;
    }
    return ST_OK;
}

static enum status load_scores(struct tokenizer *t, const struct gguf *g,
                               struct err *err)
{
    const struct gguf_kv *kv = NULL;
    enum status st = per_token(&kv, t, g, "tokenizer.ggml.scores", err);

    if (st)
        return st;
    if (!kv && t->algo->needs_scores)
        return err_set(
            err, ST_INPUT,
            "%s: tokenizer.ggml.scores is missing, which the tokenizer '%s' needs",
            gguf_path(g), t->algo->name);
    t->score = calloc((size_t)t->n_vocab, sizeof *t->score);
    if (!t->score)
        return no_memory(t->n_vocab, err);
    for (int32_t id = 0; kv && id < t->n_vocab; id++) {
        double score;

        if (!gguf_elem_f64(kv, (uint64_t)id, &score) || isnan(score))
            return err_set(err, ST_INPUT,
                           "%s: the score of token %" PRId32 " is not a number",
                           gguf_path(g), id);
        t->score[id] = (float)score;
    }
    return ST_OK;
}

/* A token id of the metadata. Some writers set all bits for "none". */
static enum status load_id(int32_t *out, const struct tokenizer *t,
                           const struct gguf *g, const char *key, int32_t fallback,
                           struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    int64_t id;

    if (!kv) {
        *out = fallback < t->n_vocab ? fallback : -1;
        return ST_OK;
    }
    if (kv->type == GGUF_ARRAY || !gguf_elem_i64(kv, 0, &id))
        return err_set(err, ST_INPUT, "%s: %s is not a token id", gguf_path(g), key);
    if (id == -1 || id == UINT32_MAX) {
        *out = -1;
        return ST_OK;
    }
    if (id < 0 || id >= t->n_vocab)
        return err_set(err, ST_INPUT,
                       "%s: %s is %" PRId64 ", outside the vocabulary of %" PRId32
                       " tokens",
                       gguf_path(g), key, id, t->n_vocab);
    *out = (int32_t)id;
    return ST_OK;
}

static void add_end(struct tokenizer *t, int32_t id)
{
    if (id >= 0)
        t->ends[id] = true;
}

static enum status load_end_list(struct tokenizer *t, const struct gguf *g,
                                 struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, TOKENIZER_KEY_ENDS);
    uint64_t id;

    if (kv && kv->type != GGUF_ARRAY)
        return err_set(err, ST_INPUT, "%s: %s is not a list", gguf_path(g),
                       TOKENIZER_KEY_ENDS);
    for (uint64_t i = 0; kv && i < kv->n; i++) {
        if (!gguf_elem_u64(kv, i, &id) || id >= (uint64_t)t->n_vocab)
            return err_set(err, ST_INPUT,
                           "%s: entry %" PRIu64 " of %s is not one of the %" PRId32
                           " token ids",
                           gguf_path(g), i, TOKENIZER_KEY_ENDS, t->n_vocab);
        t->ends[id] = true;
    }
    return ST_OK;
}

/* Tokens that end a turn of chat models; files often name only one of them. Where
 * <|call|> ends turns (gpt-oss), <|end|> ends messages within them. */
static void find_ends(struct tokenizer *t)
{
    int32_t call = -1, end = -1;

    for (int32_t id = 0; id < t->n_vocab; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);

        if ((t->type[id] != TOKEN_CONTROL && t->type[id] != TOKEN_USER) ||
            !tokenizer_ends_turns(text, len))
            continue;
        add_end(t, id);
        if (len == strlen("<|end|>") && !memcmp(text, "<|end|>", len))
            end = id;
        if (len == strlen("<|call|>") && !memcmp(text, "<|call|>", len))
            call = id;
    }
    if (call >= 0 && end >= 0)
        t->ends[end] = false;
}

static enum status load_ids(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    const struct tokenizer_algo *a = t->algo;
    int32_t eot = -1, eom = -1;
    enum status st = ST_OK;

    t->bos = a->default_bos;
    t->eos = a->default_eos;
    /* BERT's files may have other names for them, the second one spelled so. */
    if (a == &tokenizer_word_piece &&
        ((st = load_id(&t->bos, t, g, "tokenizer.ggml.cls_token_id", t->bos, err)) ||
         (st = load_id(&t->eos, t, g, "tokenizer.ggml.seperator_token_id", t->eos,
                       err))))
        return st;
    if ((st = load_id(&t->bos, t, g, "tokenizer.ggml.bos_token_id", t->bos, err)) ||
        (st = load_id(&t->eos, t, g, "tokenizer.ggml.eos_token_id", t->eos, err)) ||
        (st = load_id(&t->unknown, t, g, "tokenizer.ggml.unknown_token_id",
                      a->default_unknown, err)) ||
        (st = load_id(&eot, t, g, "tokenizer.ggml.eot_token_id", -1, err)) ||
        (st = load_id(&eom, t, g, "tokenizer.ggml.eom_token_id", -1, err)))
        return st;
    t->ends = calloc((size_t)t->n_vocab, sizeof *t->ends);
    if (!t->ends)
        return no_memory(t->n_vocab, err);
    if ((st = load_end_list(t, g, err)))
        return st;
    add_end(t, t->eos);
    add_end(t, eot);
    add_end(t, eom);
    find_ends(t);
    t->adds_bos = a->adds_bos;
    t->adds_eos = a->adds_eos;
    t->adds_space = a->adds_space;
    gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &t->adds_bos);
    gguf_get_bool(g, "tokenizer.ggml.add_eos_token", &t->adds_eos);
    gguf_get_bool(g, "tokenizer.ggml.add_space_prefix", &t->adds_space);
    gguf_get_bool(g, TOKENIZER_KEY_SPACE_FIRST, &t->space_first);
    gguf_get_bool(g, TOKENIZER_KEY_SPACE_ONCE, &t->space_once);

    /* Without types, plain text must not become the tokens with these ids. */
    if (!gguf_kv_find(g, "tokenizer.ggml.token_type")) {
        const int32_t control[] = {t->bos, t->eos, t->unknown};

        for (int i = 0; i < 3; i++) {
            if (control[i] >= 0 && t->type[control[i]] == TOKEN_NORMAL)
                t->type[control[i]] = TOKEN_CONTROL;
        }
    }
    return ST_OK;
}

static bool is_special(const struct tokenizer *t, int32_t id)
{
    return t->at[id + 1] > t->at[id] &&
           (t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_UNKNOWN ||
            t->type[id] == TOKEN_USER);
}

struct special {
    int32_t id;
    const char *text;
    size_t len;
};

static int by_text(const struct special *s, const struct special *u)
{
    const int order = memcmp(s->text, u->text, s->len < u->len ? s->len : u->len);

    if (order || s->len == u->len)
        return order;
    return s->len < u->len ? -1 : 1;
}

static int by_text_and_id(const void *a, const void *b)
{
    const struct special *s = a, *u = b;
    const int order = by_text(s, u);

    return order ? order : s->id < u->id ? -1 : s->id > u->id;
}

/* Whether a search that takes b can take a, which has the same text. */
static bool stands_for(const struct tokenizer *t, int32_t a, int32_t b)
{
    return (t->type[a] == TOKEN_USER) == (t->type[b] == TOKEN_USER) &&
           tokenizer_is_end(t, a) == tokenizer_is_end(t, b);
}

/* Sorts and leaves out what another of the same text stands for: each position of a
 * text looks at few then, however many a file has. Returns how many are left. */
static size_t sort_special(const struct tokenizer *t, struct special *list, size_t n)
{
    size_t kept = 0;

    qsort(list, n, sizeof *list, by_text_and_id);
    for (size_t i = 0; i < n; i++) {
        bool new = true;

        for (size_t k = kept; new &&k > 0 && !by_text(&list[k - 1], &list[i]); k--)
            new = !stands_for(t, list[k - 1].id, list[i].id);
        if (new)
            list[kept++] = list[i];
    }
    return kept;
}

/* Longer ones are left out: a search looks at as many bytes at each position. */
static enum status index_special(struct tokenizer *t, struct err *err)
{
    struct special *list;
    size_t n = 0;

    for (int32_t id = 0; id < t->n_vocab; id++)
        n += is_special(t, id);
    list = malloc((n + 1) * sizeof *list);
    t->special = malloc((n + 1) * sizeof *t->special);
    if (!list || !t->special) {
        free(list);
        return no_memory(t->n_vocab, err);
    }
    n = 0;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        if (is_special(t, id)) {
            list[n].id = id;
            list[n].text = token_text(t, id, &list[n].len);
            n += list[n].len <= MAX_SPECIAL_BYTES;
        }
    }
    n = sort_special(t, list, n);
    for (size_t i = 0; i < n; i++) {
        t->special[i] = list[i].id;
        t->special_at[(unsigned char)*list[i].text + 1] = i + 1;
    }
    for (int b = 1; b <= 256; b++) {
        if (t->special_at[b] < t->special_at[b - 1])
            t->special_at[b] = t->special_at[b - 1];
    }
    free(list);
    return ST_OK;
}

/* How tokens are found in texts: a byte of each, in older files a boolean. */
static enum status load_flags(struct tokenizer *t, const struct gguf *g,
                              struct err *err)
{
    const bool old = !gguf_kv_find(g, TOKENIZER_KEY_FLAGS);
    const char *key = old ? TOKENIZER_KEY_STRIPS : TOKENIZER_KEY_FLAGS;
    const struct gguf_kv *kv;
    const enum status st = per_token(&kv, t, g, key, err);

    if (st || !kv)
        return st;
    if (kv->elem_type != (old ? GGUF_BOOL : GGUF_U8))
        return err_set(err, ST_INPUT, "%s: %s is not a list of %s", gguf_path(g), key,
                       old ? "booleans" : "bytes");
    t->flags = malloc((size_t)t->n_vocab);
    if (!t->flags)
        return no_memory(t->n_vocab, err);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        const unsigned char flags = ((const unsigned char *)kv->data)[id];

        t->flags[id] = old ? (flags ? TOKEN_RSTRIP : 0) : flags;
    }
    return ST_OK;
}

/* SentencePiece's table of characters, and one blank for several; another tokenizer's
 * would be of no use. */
static enum status load_charsmap(struct tokenizer *t, const struct gguf *g,
                                 struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, "tokenizer.ggml.precompiled_charsmap");
    const uint64_t n = kv ? kv->n : 0;
    bool strips = n > 0;

    if (t->algo != &tokenizer_unigram)
        return ST_OK;
    if (kv && (kv->type != GGUF_ARRAY ||
               (n && kv->elem_type != GGUF_U8 && kv->elem_type != GGUF_I8)))
        return err_set(err, ST_INPUT,
                       "%s: tokenizer.ggml.precompiled_charsmap is not a list of bytes",
                       gguf_path(g));
    gguf_get_bool(g, "tokenizer.ggml.remove_extra_whitespaces", &strips);
    return n || strips ? normalizer_open_charsmap(&t->norm, kv ? kv->data : NULL,
                                                  (size_t)n, strips, gguf_path(g), err)
                       : ST_OK;
}

/* A token that the normaliser would change is looked for as it is spelled, before. */
static enum status load_normalizer(struct tokenizer *t, const struct gguf *g,
                                   struct err *err)
{
    uint64_t allowed_ns = regex_allowance(t->at[t->n_vocab]); /* for all tokens */
    struct gguf_str json;
    enum status st;

    if (!gguf_get_str(g, TOKENIZER_KEY_NORMALIZER, &json))
        return load_charsmap(t, g, err);
    st = normalizer_open(&t->norm, json.data, json.len, gguf_path(g), err);
    for (int32_t id = 0; t->flags && !st && id < t->n_vocab; id++) {
        char *made;
        size_t len, n;
        const char *text = token_text(t, id, &len);

        if (!(t->flags[id] & TOKEN_NORMALIZED))
            continue;
        st = normalizer_apply(t->norm, text, len, &allowed_ns, &made, &n, err);
        if (st)
            return st;
        if (t->type[id] != TOKEN_USER || n != len || memcmp(made, text, n))
            t->flags[id] &= (unsigned char)~TOKEN_NORMALIZED;
        t->has_normalized |= (t->flags[id] & TOKEN_NORMALIZED) != 0;
        free(made);
    }
    return st;
}

/* How the tokenizer of a folder cuts texts, and spells them again. */
static enum status load_steps(struct tokenizer *t, const struct gguf *g,
                              struct err *err)
{
    struct gguf_str json;
    enum status st = ST_OK;

    if (gguf_get_str(g, TOKENIZER_KEY_STEPS, &json))
        st = pieces_open(&t->pieces, json.data, json.len, gguf_path(g), err);
    if (!st)
        st = t->algo->load(t, g, err);
    if (!st && gguf_get_str(g, TOKENIZER_KEY_DECODER, &json))
        st = tokenizer_load_decoder(t, json.data, json.len, gguf_path(g), err);
    return st;
}

enum status tokenizer_load_vocab(struct tokenizer *t, const struct gguf *g,
                                 struct err *err)
{
    enum status st;

    if ((st = load_texts(t, g, err)) || (st = load_types(t, g, err)) ||
        (st = tokenizer_type_markers(t, g, err)) || (st = load_scores(t, g, err)) ||
        (st = load_ids(t, g, err)) || (st = load_flags(t, g, err)) ||
        (st = load_normalizer(t, g, err)) || (st = index_special(t, err)) ||
        (st = load_steps(t, g, err)))
        return st;
    return ST_OK;
}
