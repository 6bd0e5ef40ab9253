/* SPDX-License-Identifier: MIT
 *
 * tokenizer_bpe_load.c - vocabularies with merges from metadata
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_bpe_impl.h"

/* The bytes of text[len], to out[len]; false where a character is not in the alphabet.
 */
static bool decode(const char *text, size_t len, char *out, size_t *n_out)
{
    size_t n = 0;

    for (size_t i = 0; i < len;) {
        size_t bytes;
        const int byte = byte_alphabet_byte(unicode_at(text + i, len - i, &bytes));

        if (byte < 0 || !bytes)
            return false;
        out[n++] = (char)byte;
        i += bytes;
    }
    *n_out = n;
    return true;
}

/* ---- loading --------------------------------------------------------------------- */

static enum status no_memory(const struct tokenizer *t, struct err *err)
{
    return err_set(err, ST_NO_MEMORY,
                   "cannot allocate a byte-level vocabulary of %" PRId32 " tokens",
                   t->n_vocab);
}

static bool is_plain(const struct tokenizer *t, int32_t id)
{
    return t->type[id] == TOKEN_NORMAL || t->type[id] == TOKEN_UNDEFINED;
}

/* The bytes of each token. Tokens of other kinds are spelled as they are; so are plain
 * ones outside of the alphabet, which no text becomes. */
static enum status load_bytes(struct tokenizer *t, struct err *err)
{
    struct bpe *b = t->bpe;

    b->bytes = malloc(t->at[t->n_vocab] + 1);
    b->at = malloc(((size_t)t->n_vocab + 1) * sizeof *b->at);
    if (!b->bytes || !b->at)
        return no_memory(t, err);
    b->at[0] = 0;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        char *out = b->bytes + b->at[id];
        size_t len, n = 0;
        const char *text = token_text(t, id, &len);
        const bool spelt = is_plain(t, id) && decode(text, len, out, &n);

        if (!spelt) {
            memcpy(out, text, len);
            n = len;
        }
        b->at[id + 1] = b->at[id] + n;
        if (spelt && n == 1)
            t->byte_id[(unsigned char)out[0]] = id;
        if (spelt && n && b->whole_words)
            strtab_put(&t->ids, out, (uint32_t)n, (uint32_t)id);
    }
    return ST_OK;
}

/* Every token's text -> its id. Where texts are equal the last one counts, and one that
 * is text before one that is not. */
static enum status index_names(struct strtab *names, const struct tokenizer *t,
                               struct err *err)
{
    const enum status st = strtab_init(names, (size_t)t->n_vocab, err);

    for (int plain = 1; plain >= 0; plain--)
        for (int32_t id = t->n_vocab - 1; !st && id >= 0; id--) {
            size_t len;
            const char *text = token_text(t, id, &len);

            if (len && is_plain(t, id) == plain)
                strtab_put(names, text, (uint32_t)len, (uint32_t)id);
        }
    return st;
}

/* The token of a part of merge i, or of the whole merge. */
static enum status find_part(int32_t *id, const struct strtab *names,
                             const struct gguf *g, uint64_t i, const char *part,
                             size_t len, struct err *err)
{
    const uint32_t found = strtab_find(names, part, len);
    char shown[48];

    if (found == STRTAB_NONE)
        return err_set(err, ST_INPUT,
                       "%s: merge %" PRIu64
                       " needs the token '%s', which is not in the vocabulary",
                       gguf_path(g), i, utf8_printable(shown, sizeof shown, part, len));
    *id = (int32_t)found;
    return ST_OK;
}

/* Where text does not become the whole, the merge is none. */
static void check_whole(const struct tokenizer *t, struct merge *m)
{
    if (t->type[m->whole] == TOKEN_CONTROL || t->type[m->whole] == TOKEN_UNKNOWN ||
        t->type[m->whole] == TOKEN_UNUSED)
        m->whole = -1;
}

/* Read merge i, "left right". */
static enum status load_merge(const struct tokenizer *t, const struct strtab *names,
                              const struct gguf *g, uint64_t i, struct gguf_str s,
                              struct err *err)
{
    struct merge *m = &t->bpe->merges[i];
    char whole[2 * 65535];
    const char *gap = s.len > 2 ? memchr(s.data + 1, ' ', s.len - 2) : NULL;
    char shown[48];
    enum status st;

    if (!gap || s.len - 1 > sizeof whole)
        return err_set(
            err, ST_INPUT,
            "%s: merge %" PRIu64 " is '%s', not two tokens with a blank between them",
            gguf_path(g), i, utf8_printable(shown, sizeof shown, s.data, s.len));
    const size_t n_left = (size_t)(gap - s.data), n_right = s.len - n_left - 1;

    memcpy(whole, s.data, n_left);
    memcpy(whole + n_left, gap + 1, n_right);
    if ((st = find_part(&m->left, names, g, i, s.data, n_left, err)) ||
        (st = find_part(&m->right, names, g, i, gap + 1, n_right, err)) ||
        (st = find_part(&m->whole, names, g, i, whole, s.len - 1, err)))
        return st;
    check_whole(t, m);
    return ST_OK;
}

/* Read merge i, the ids of two tokens; a prefix of the right one stays out. */
static enum status load_pair(const struct tokenizer *t, const struct strtab *names,
                             const struct gguf *g, const struct gguf_kv *kv, uint64_t i,
                             struct err *err)
{
    struct merge *m = &t->bpe->merges[i];
    char whole[2 * 65535];
    size_t n_left, n_right, cut = t->bpe->prefix.len;
    uint64_t left, right;
    enum status st;

    if (!gguf_elem_u64(kv, 2 * i, &left) || !gguf_elem_u64(kv, 2 * i + 1, &right) ||
        left >= (uint64_t)t->n_vocab || right >= (uint64_t)t->n_vocab)
        return err_set(err, ST_INPUT,
                       "%s: merge %" PRIu64 " of %s is not two of the %" PRId32
                       " token ids",
                       gguf_path(g), i, TOKENIZER_KEY_PAIRS, t->n_vocab);
    m->left = (int32_t)left;
    m->right = (int32_t)right;
    const char *a = token_text(t, m->left, &n_left);
    const char *b = token_text(t, m->right, &n_right);

    cut = cut < n_right ? cut : n_right;
    memcpy(whole, a, n_left);
    memcpy(whole + n_left, b + cut, n_right - cut);
    st = find_part(&m->whole, names, g, i, whole, n_left + n_right - cut, err);
    if (!st)
        check_whole(t, m);
    return st;
}

static enum status load_merges(struct tokenizer *t, const struct gguf *g,
                               struct err *err)
{
    const bool pairs = t->bpe->chars;
    const char *key = pairs ? TOKENIZER_KEY_PAIRS : "tokenizer.ggml.merges";
    const struct gguf_kv *kv = gguf_kv_find(g, key);
    struct strtab names = {0};
    enum status st;

    if (!kv || kv->type != GGUF_ARRAY || (!pairs && kv->elem_type != GGUF_STRING))
        return err_set(err, ST_INPUT, "%s: %s, which its tokenizer needs, is %s",
                       gguf_path(g), key,
                       !kv     ? "missing"
                       : pairs ? "not a list of token ids"
                               : "not a list of strings");
    const uint64_t n = pairs ? kv->n / 2 : kv->n;

    if (n >= INT32_MAX)
        return err_set(err, ST_INPUT, "%s: %" PRIu64 " merges are too many",
                       gguf_path(g), n);
    t->bpe->merges = malloc((n + 1) * sizeof *t->bpe->merges);
    if (!t->bpe->merges)
        return no_memory(t, err);
    st = index_names(&names, t, err);
    if (!st)
        st = strtab_init(&t->bpe->ranks, n, err);
    for (uint64_t i = 0; i < n && !st; i++) {
        struct gguf_str s = {"", 0};

        if (!pairs)
            gguf_elem_str(g, kv, i, &s);
        st = pairs ? load_pair(t, &names, g, kv, i, err)
                   : load_merge(t, &names, g, i, s, err);
        if (!st && t->bpe->merges[i].whole >= 0) /* of equal merges the first counts */
            strtab_put(&t->bpe->ranks, (const char *)&t->bpe->merges[i],
                       MERGE_KEY_BYTES, (uint32_t)i);
    }
    strtab_free(&names);
    return st;
}

/* What text may become, by its spelling; among equal ones the last counts. */
static enum status index_chars(struct tokenizer *t, struct err *err)
{
    const enum status st = strtab_init(&t->ids, (size_t)t->n_vocab, err);

    for (int32_t id = t->n_vocab - 1; !st && id >= 0; id--) {
        size_t len;
        const char *text = token_text(t, id, &len);

        if (len && (is_plain(t, id) || t->type[id] == TOKEN_USER))
            strtab_put(&t->ids, text, (uint32_t)len, (uint32_t)id);
    }
    return st;
}

/* Take an affix over: g may be closed afterwards. */
static enum status load_affix(struct gguf_str *to, char *room, const struct gguf *g,
                              const char *key, struct err *err)
{
    struct gguf_str s = {"", 0};

    gguf_get_str(g, key, &s);
    if (s.len > BPE_MAX_AFFIX)
        return err_set(err, ST_INPUT, "%s: %s has %zu bytes; the limit is %d",
                       gguf_path(g), key, s.len, BPE_MAX_AFFIX);
    memcpy(room, s.data, s.len);
    *to = (struct gguf_str){room, s.len};
    return ST_OK;
}

/* A vocabulary of characters. */
static enum status load_chars(struct tokenizer *t, const struct gguf *g,
                              struct err *err)
{
    struct bpe *b = t->bpe;
    enum status st;

    b->chars = true;
    gguf_get_bool(g, TOKENIZER_KEY_WHOLE_WORDS, &b->whole_words);
    gguf_get_bool(g, TOKENIZER_KEY_BYTES, &b->falls_to_bytes);
    gguf_get_bool(g, TOKENIZER_KEY_FUSES, &b->fuses);
    if ((st = load_affix(&b->prefix, b->affixes, g, TOKENIZER_KEY_SUBWORD, err)) ||
        (st = load_affix(&b->suffix, b->affixes + BPE_MAX_AFFIX, g,
                         TOKENIZER_KEY_SUFFIX, err)) ||
        (st = index_chars(t, err)))
        return st;
    return load_merges(t, g, err);
}

/* Patterns without a known name. */
static enum status open_patterns(struct pre_tokenizer **pre, const struct gguf *g,
                                 struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, TOKENIZER_KEY_PATTERNS);
    struct gguf_str patterns[PRE_MAX_PATTERNS];
    bool whole_words = false;

    if (kv->type != GGUF_ARRAY || kv->elem_type != GGUF_STRING ||
        kv->n > PRE_MAX_PATTERNS)
        return err_set(err, ST_INPUT, "%s: %s is not a list of at most %d strings",
                       gguf_path(g), TOKENIZER_KEY_PATTERNS, PRE_MAX_PATTERNS);
    for (uint64_t i = 0; i < kv->n; i++)
        gguf_elem_str(g, kv, i, &patterns[i]);
    gguf_get_bool(g, TOKENIZER_KEY_WHOLE_WORDS, &whole_words);
    return pre_tokenizer_open_patterns(pre, patterns, (size_t)kv->n, whole_words,
                                       gguf_path(g), err);
}

enum status bpe_load(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct gguf_str pre = {"default", 7};
    enum status st;

    t->bpe = calloc(1, sizeof *t->bpe);
    if (!t->bpe)
        return no_memory(t, err);
    if (t->pieces)
        return load_chars(t, g, err);
    gguf_get_str(g, "tokenizer.ggml.pre", &pre);
    st = gguf_kv_find(g, TOKENIZER_KEY_PATTERNS)
             ? open_patterns(&t->bpe->pre, g, err)
             : pre_tokenizer_open(&t->bpe->pre, pre.data, pre.len, gguf_path(g), err);
    if (st)
        return st;
    t->bpe->whole_words = pre_tokenizer_rules(t->bpe->pre)->whole_words;
    t->adds_bos = pre_tokenizer_rules(t->bpe->pre)->adds_bos;
    gguf_get_bool(g, "tokenizer.ggml.add_bos_token", &t->adds_bos);
    t->adds_space = false; /* a blank is a byte like any other; no engine adds one */
    if (t->bpe->whole_words)
        st = strtab_init(&t->ids, (size_t)t->n_vocab, err);
    if (st || (st = load_bytes(t, err)) || (st = load_merges(t, g, err)))
        return st;
    return ST_OK;
}

void bpe_unload(struct tokenizer *t)
{
    if (!t->bpe)
        return;
    pre_tokenizer_close(t->bpe->pre);
    strtab_free(&t->bpe->ranks);
    free(t->bpe->merges);
    free(t->bpe->bytes);
    free(t->bpe->at);
    free(t->bpe);
}
