/* SPDX-License-Identifier: MIT
 *
 * tokenizer_word.c - words that are tokens, or are taken apart from left to right
 *
 * WordLevel: a piece is a token, or the unknown one. WordPiece: the longest token that
 * a piece begins with, then the longest that the rest begins with, which are spelled
 * with a prefix ("##"); where nothing fits, or the piece has too many characters, the
 * whole piece is unknown.
 *
 * In GGUF files ("bert") it is tokens at the beginning of a word that have a prefix,
 * U+2581, and the text is made and cut as BERT's is.
 *
 * Tokens are looked up in the order of their bytes and have at most MAX_SPECIAL_BYTES,
 * so time is linear in the text.
 *
 * Source: Schuster and Nakajima, "Japanese and Korean voice search", 2012; Devlin et
 * al., "BERT", 2018.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_impl.h"
#include "engine/tokenizer/tokenizer_sorted.h"

#define MAX_CHARS  100 /* of a word; default of the key */
#define MAX_PREFIX 64

struct words {
    struct sorted first, next; /* tokens that begin a word, and that go on */
    uint64_t max_chars;        /* of a word */
};

struct work {
    const struct tokenizer *t;
    struct id_list *ids;
};

static enum status unknown(const struct work *w, const char *piece, size_t len,
                           struct err *err)
{
    return w->t->unknown >= 0 ? id_list_add(w->ids, w->t->unknown, err)
                              : tokenizer_emit_bytes(w->t, piece, len, w->ids, err);
}

static uint64_t count_chars(const char *text, size_t len)
{
    uint64_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

static enum status take_apart(void *arg, const char *piece, size_t len, struct err *err)
{
    struct work *w = arg;
    const struct words *v = w->t->words;
    const size_t before = w->ids->n;
    enum status st = id_list_check(w->ids, len > 0);
    size_t n;

    if (st)
        return st;
    if (count_chars(piece, len) > v->max_chars)
        return unknown(w, piece, len, err);
    for (size_t at = 0; at < len && !st; at += n) {
        const int32_t id =
            sorted_longest(at ? &v->next : &v->first, piece + at, len - at, &n);

        if (id < 0) {
            w->ids->n = before;
            return unknown(w, piece, len, err);
        }
        st = id_list_add(w->ids, id, err);
    }
    return st;
}

static enum status whole(void *arg, const char *piece, size_t len, struct err *err)
{
    struct work *w = arg;
    const enum status st = id_list_check(w->ids, len > 0);
    const uint32_t id = st ? STRTAB_NONE : strtab_find(&w->t->ids, piece, len);

    if (st)
        return st;
    return id != STRTAB_NONE ? id_list_add(w->ids, (int32_t)id, err)
                             : unknown(w, piece, len, err);
}

static enum status encode(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err)
{
    struct work w = {t, ids};

    return pieces_cut(t->pieces, text, len, first, &ids->allowed_ns,
                      t->words ? take_apart : whole, &w, err);
}

/* ---- loading --------------------------------------------------------------------- */

static bool is_text(const struct tokenizer *t, int32_t id)
{
    return t->type[id] == TOKEN_NORMAL || t->type[id] == TOKEN_UNDEFINED ||
           t->type[id] == TOKEN_USER;
}

/* Tokens with a prefix, spelled without it, to `with`, the others to `without`, or,
 * where a text may spell the prefix, all of them. */
static enum status sort_words(struct tokenizer *t, struct sorted *with,
                              struct sorted *without, const char *prefix, size_t n,
                              bool all, struct err *err)
{
    enum status st = sorted_begin(with, (size_t)t->n_vocab, err);

    if (!st)
        st = sorted_begin(without, (size_t)t->n_vocab, err);
    for (int32_t id = 0; id < t->n_vocab && !st; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);

        if (!is_text(t, id) || len > MAX_SPECIAL_BYTES)
            continue;
        const bool has = len >= n && !memcmp(text, prefix, n);

        if (has)
            sorted_add(with, text + n, len - n, id);
        if (all || !has)
            sorted_add(without, text, len, id);
    }
    sorted_end(with);
    sorted_end(without);
    return st;
}

/* Settings of BERT's own tokenizer, where the file has none. */
static enum status be_bert(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    static const char steps[] = "{\"type\":\"BertPreTokenizer\"}";
    char json[128];
    bool lower = true;
    enum status st = pieces_open(&t->pieces, steps, strlen(steps), gguf_path(g), err);

    gguf_get_bool(g, "tokenizer.ggml.normalizer.lowercase", &lower);
    snprintf(json, sizeof json, "{\"type\":\"BertNormalizer\",\"lowercase\":%s}",
             lower ? "true" : "false");
    if (!st && !t->norm)
        st = normalizer_open(&t->norm, json, strlen(json), gguf_path(g), err);
    return st;
}

static enum status load_word_piece(struct tokenizer *t, const struct gguf *g,
                                   struct err *err)
{
    struct gguf_str prefix = {"##", 2};
    struct words *w = t->words = calloc(1, sizeof *w);
    enum status st;

    if (!w)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a vocabulary");
    w->max_chars = MAX_CHARS;
    gguf_get_u64(g, TOKENIZER_KEY_MAX_CHARS, &w->max_chars);
    gguf_get_str(g, TOKENIZER_KEY_SUBWORD, &prefix);
    if (prefix.len > MAX_PREFIX)
        return err_set(err, ST_INPUT, "%s: %s has %zu bytes; the limit is %d",
                       gguf_path(g), TOKENIZER_KEY_SUBWORD, prefix.len, MAX_PREFIX);
    if (t->pieces)
        return sort_words(t, &w->next, &w->first, prefix.data, prefix.len, true, err);
    st = be_bert(t, g, err);
    return st ? st : sort_words(t, &w->first, &w->next, "\xe2\x96\x81", 3, false, err);
}

static enum status load_words(struct tokenizer *t, const struct gguf *g,
                              struct err *err)
{
    enum status st = strtab_init(&t->ids, (size_t)t->n_vocab, err);

    if (!st && !t->pieces)
        st = err_set(err, ST_INPUT, "%s: %s, which the tokenizer needs, is missing",
                     gguf_path(g), TOKENIZER_KEY_STEPS);
    for (int32_t id = t->n_vocab - 1; !st && id >= 0; id--) {
        size_t len;
        const char *text = token_text(t, id, &len);

        if (len && is_text(t, id))
            strtab_put(&t->ids, text, (uint32_t)len, (uint32_t)id);
    }
    return st;
}

static void unload(struct tokenizer *t)
{
    if (t->words) {
        sorted_free(&t->words->first);
        sorted_free(&t->words->next);
    }
    free(t->words);
}

const struct tokenizer_algo tokenizer_word_piece = {
    .name = "bert",
    .default_bos = 101,
    .default_eos = 102,
    .default_unknown = 100,
    .adds_bos = true,
    .adds_eos = true,
    .adds_space = true,
    .load = load_word_piece,
    .unload = unload,
    .encode = encode,
    .piece = tokenizer_blank_piece,
};

const struct tokenizer_algo tokenizer_word_level = {
    .name = "slmbench-words",
    .default_bos = -1,
    .default_eos = -1,
    .default_unknown = -1,
    .load = load_words,
    .encode = encode,
    .piece = tokenizer_blank_piece,
};
