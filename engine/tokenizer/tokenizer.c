/* SPDX-License-Identifier: MIT
 *
 * tokenizer.c - choose the algorithm, find special tokens in a text, and the queries
 * that all vocabularies share
 */
#include "engine/tokenizer/tokenizer_impl.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/tokenizer/tokenizer_pre.h"

/* Positions have 32 bits, and a blank may become three bytes. */
#define MAX_TEXT ((size_t)512 << 20)

/* By tokenizer.ggml.model; the names of GGUF first. */
static const struct {
    const char *model;
    const struct tokenizer_algo *algo;
} algos[] = {
    {"llama", &tokenizer_spm},
    {"gpt2", &tokenizer_bpe},
    {"gemma4", &tokenizer_spm_merges},
    {"t5", &tokenizer_unigram},
    {"bert", &tokenizer_word_piece},
    {TOKENIZER_BPE, &tokenizer_bpe},
    {TOKENIZER_UNIGRAM, &tokenizer_unigram},
    {TOKENIZER_WORDPIECE, &tokenizer_word_piece},
    {TOKENIZER_WORDS, &tokenizer_word_level},
};
#define N_ALGOS (sizeof algos / sizeof algos[0])

static enum status find_algo(const struct tokenizer_algo **algo, const struct gguf *g,
                             struct err *err)
{
    struct gguf_str model;
    char name[64], known[128] = "";

    if (!gguf_get_str(g, "tokenizer.ggml.model", &model))
        return err_set(err, ST_INPUT, "%s has no %s, so it holds no vocabulary",
                       gguf_path(g),
                       gguf_is_folder(g) ? "tokenizer.json" : "tokenizer.ggml.model");
    for (size_t i = 0; i < N_ALGOS; i++) {
        const size_t n = strlen(known);

        if (model.len == strlen(algos[i].model) &&
            !memcmp(model.data, algos[i].model, model.len)) {
            *algo = algos[i].algo;
            return ST_OK;
        }
        if (strncmp(algos[i].model, TOKENIZER_OWN, strlen(TOKENIZER_OWN)) != 0)
            snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "",
                     algos[i].model);
    }
    return err_set(err, ST_UNSUPPORTED,
                   "%s: the tokenizer '%s' is not supported (known: %s)", gguf_path(g),
                   utf8_printable(name, sizeof name, model.data, model.len), known);
}

enum status tokenizer_open(struct tokenizer **out, const struct gguf *g,
                           struct err *err)
{
    const struct tokenizer_algo *algo = NULL;
    enum status st = find_algo(&algo, g, err);

    if (st)
        return st;
    struct tokenizer *t = calloc(1, sizeof *t);

    if (!t)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a tokenizer");
    t->algo = algo;
    t->longest = 1;
    st = tokenizer_load_vocab(t, g, err);
    if (st) {
        tokenizer_close(t);
        return st;
    }
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (t->at[id + 1] - t->at[id] > t->longest)
            t->longest = t->at[id + 1] - t->at[id];
    *out = t;
    return ST_OK;
}

void tokenizer_close(struct tokenizer *t)
{
    if (!t)
        return;
    if (t->algo->unload)
        t->algo->unload(t);
    strtab_free(&t->ids);
    strtab_free(&t->merges);
    free(t->merge_keys);
    free(t->neighbours);
    free(t->text);
    free(t->at);
    free(t->type);
    free(t->score);
    free(t->special);
    free(t->flags);
    normalizer_close(t->norm);
    pieces_close(t->pieces);
    free(t->decoded);
    free(t->decoded_at);
    free(t->ends);
    free(t);
}

int32_t tokenizer_n_vocab(const struct tokenizer *t)
{
    return t->n_vocab;
}

int32_t tokenizer_bos(const struct tokenizer *t)
{
    return t->bos;
}

int32_t tokenizer_eos(const struct tokenizer *t)
{
    return t->eos;
}

bool tokenizer_adds_bos(const struct tokenizer *t)
{
    return t->adds_bos;
}

bool tokenizer_adds_eos(const struct tokenizer *t)
{
    return t->adds_eos && t->eos >= 0;
}

bool tokenizer_adds_space(const struct tokenizer *t)
{
    return t->adds_space;
}

bool tokenizer_is_end(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->n_vocab && t->ends[id];
}

const char *tokenizer_text(const struct tokenizer *t, int32_t id, size_t *len)
{
    assert(id >= 0 && id < t->n_vocab);
    return token_text(t, id, len);
}

/* ---- encoding -------------------------------------------------------------------- */

enum status id_list_add(struct id_list *list, int32_t id, struct err *err)
{
    if (list->n == list->cap) {
        const size_t cap = list->cap ? list->cap * 2 : 64;
        int32_t *v = realloc(list->v, cap * sizeof *v);

        if (!v)
            return err_set(err, ST_NO_MEMORY, "cannot allocate a list of %zu tokens",
                           cap);
        list->v = v;
        list->cap = cap;
    }
    list->v[list->n++] = id;
    return ST_OK;
}

enum status id_list_check(struct id_list *list, size_t n_more)
{
    if (list->stopped && list->stopped())
        return ST_INTERRUPTED;
    list->is_full = list->n > list->most || n_more > list->most - list->n;
    return list->is_full ? ST_PARTIAL : ST_OK;
}

enum status tokenizer_emit_bytes(const struct tokenizer *t, const char *text,
                                 size_t len, struct id_list *ids, struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < len && !st; i++) {
        const unsigned char byte = (unsigned char)text[i];
        const int32_t id = t->byte_id[byte] >= 0 ? t->byte_id[byte] : t->unknown;

        if (id < 0)
            return err_set(err, ST_INPUT,
                           "the vocabulary has no token for the byte 0x%02x of the "
                           "text, and no unknown token",
                           byte);
        st = id_list_add(ids, id, err);
    }
    return st;
}

/* Where special tokens are recognised: everywhere (parse_special); only those that the
 * file marks as text ("user defined"); or inside of markers, of which `at` is next. */
struct search {
    bool parse_special;
    bool normalized; /* for tokens that are looked for after normalising, not before */
    const struct tokenizer_markers *markers; /* NULL: none */
    const struct tokenizer_markers *guard;   /* whose guard holds; NULL: none */
    size_t at;
};

/* Whether byte i of the text lies in a marker; *end is the end of that. */
static bool in_marker(struct search *s, size_t i, size_t *end)
{
    const struct tokenizer_markers *m = s->markers;

    while (s->at < m->n_spans && m->spans[s->at].end <= i)
        s->at++;
    if (s->at == m->n_spans || m->spans[s->at].begin > i)
        return false;
    *end = m->spans[s->at].end;
    return true;
}

static bool is_guarded(const struct tokenizer *t, const struct tokenizer_markers *m,
                       int32_t id, const char *token, size_t len)
{
    const bool bracketed = token[0] == '<' || token[0] == '[';

    return tokenizer_is_end(t, id) ||
           (bracketed && memmem(m->guard, strlen(m->guard), token, len));
}

/* Among special[lo] .. [hi], which agree in their first n bytes and are longer, the
 * first whose next byte is at least `next`. */
static size_t first_from(const struct tokenizer *t, size_t lo, size_t hi, size_t n,
                         unsigned next)
{
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        size_t len;
        const char *token = token_text(t, t->special[middle], &len);

        if ((unsigned char)token[n] < next)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

/* The longest special token that begins at text[i], i < len, or -1: those that agree
 * with ever more of the text, in the order of their bytes. */
static int32_t special_at(const struct tokenizer *t, const char *text, size_t i,
                          size_t len, struct search *s, size_t *token_len)
{
    const unsigned char first = (unsigned char)text[i];
    size_t lo = t->special_at[first], hi = t->special_at[first + 1], end = len;
    bool parse = s->parse_special;
    int32_t found = -1;

    if (lo == hi)
        return -1;
    if (s->markers)
        parse = in_marker(s, i, &end);
    for (size_t n = 1; lo < hi && i + n <= end; n++) {
        size_t size;
        bool taken = false;

        for (; lo < hi; lo++) {
            const int32_t id = t->special[lo];
            const bool normalized =
                t->has_normalized && t->flags[id] & TOKEN_NORMALIZED;
            const char *token = token_text(t, id, &size);

            if (size > n)
                break;
            if (taken || normalized != s->normalized ||
                (!parse && t->type[id] != TOKEN_USER) ||
                (!parse && s->guard && is_guarded(t, s->guard, id, token, size)))
                continue;
            found = id;
            *token_len = n;
            taken = true;
        }
        if (i + n < end) {
            const unsigned next = (unsigned char)text[i + n];

            lo = first_from(t, lo, hi, n, next);
            hi = first_from(t, lo, hi, n, next + 1);
        }
    }
    return found;
}

/* Bytes of the blanks that text[len] begins with. */
static size_t blanks_after(const char *text, size_t len)
{
    size_t at = 0, n = 0;

    while (at < len && unicode_is_blank(unicode_at(text + at, len - at, &n)) && n)
        at += n;
    return at;
}

/* The character that text[len], len >= 1, ends with; 0 where it is malformed. */
static uint32_t last_character(const char *text, size_t len, size_t *n)
{
    for (size_t back = 1; back <= 4 && back <= len; back++) {
        const uint32_t c = unicode_at(text + len - back, back, n);

        if (*n == back)
            return c;
    }
    *n = 0;
    return 0;
}

/* Where the blanks that text[len] ends with begin. */
static size_t blanks_before(const char *text, size_t len)
{
    size_t n;

    while (len && unicode_is_blank(last_character(text, len, &n)) && n)
        len -= n;
    return len;
}

/* Whether no letter or digit touches text[i .. i + n). */
static bool stands_alone(const char *text, size_t len, size_t i, size_t n)
{
    size_t bytes;

    return !(i && unicode_is_word(last_character(text, i, &bytes))) &&
           !(i + n < len &&
             unicode_is_word(unicode_at(text + i + n, len - i - n, &bytes)));
}

static enum status encode_from(const struct tokenizer *t, const char *text, size_t len,
                               size_t from, bool first, struct search *search,
                               struct id_list *ids, struct err *err);

/* A text between special tokens: normalised, and searched for those that are looked
 * for only then. */
static enum status encode_plain(const struct tokenizer *t, const char *text, size_t len,
                                bool first, const struct search *search,
                                struct id_list *ids, struct err *err)
{
    struct search again = {.parse_special = search->parse_special,
                           .normalized = true,
                           .guard = search->guard};
    char *made;
    size_t n;
    enum status st;

    if (!t->norm || search->normalized ||
        (!t->has_normalized && normalizer_keeps(t->norm, text, len)))
        return t->algo->encode(t, text, len, first, ids, err);
    st = normalizer_apply(t->norm, text, len, &ids->allowed_ns, &made, &n, err);
    if (st)
        return st;
    if (t->has_normalized)
        st = encode_from(t, made, n, 0, first, &again, ids, err);
    else if (n)
        st = t->algo->encode(t, made, n, first, ids, err);
    free(made);
    return st;
}

/* text[len], of which the first bytes have been encoded. */
static enum status encode_from(const struct tokenizer *t, const char *text, size_t len,
                               size_t from, bool first, struct search *search,
                               struct id_list *ids, struct err *err)
{
    size_t begin = from; /* of the plain text not yet encoded */
    enum status st = ST_OK;

    for (size_t i = from; i < len && !st;) {
        const unsigned char byte = (unsigned char)text[i];
        size_t n = 0, end = i;
        int32_t id;

        if (t->special_at[byte] == t->special_at[byte + 1] ||
            (id = special_at(t, text, i, len, search, &n)) < 0) {
            i++;
            continue;
        }
        const unsigned flags = t->flags ? t->flags[id] : 0;

        i += n;
        if (flags & TOKEN_WORD && !stands_alone(text, len, end, n))
            continue;
        if (flags & TOKEN_LSTRIP)
            end = begin + blanks_before(text + begin, end - begin);
        if (end > begin)
            st = encode_plain(t, text + begin, end - begin, first && begin == 0, search,
                              ids, err);
        if (!st)
            st = id_list_check(ids, 1);
        if (!st)
            st = id_list_add(ids, id, err);
        if (flags & TOKEN_RSTRIP)
            i += blanks_after(text + i, len - i);
        begin = i;
    }
    if (!st && len > begin)
        st = encode_plain(t, text + begin, len - begin, first && begin == 0, search,
                          ids, err);
    return st;
}

/* Bytes of the BOS that a text spells at its beginning: it gets one, not two. */
static size_t spelled_bos(const struct tokenizer *t, const char *text, size_t len)
{
    size_t n;
    const char *bos = token_text(t, t->bos, &n);

    return t->type[t->bos] == TOKEN_CONTROL && n && n <= len && !memcmp(text, bos, n)
               ? n
               : 0;
}

static enum status encode(const struct tokenizer *t, const char *text, size_t len,
                          bool with_bos, bool with_eos, struct search *search,
                          size_t max_ids, int32_t **ids, size_t *n_ids, struct err *err)
{
    struct id_list list = {.most = max_ids, .stopped = t->stopped};
    size_t from = 0;
    enum status st = ST_OK;

    if (len > MAX_TEXT)
        return err_set(err, ST_USAGE,
                       "a text of %zu bytes is too long to be tokenised at once; the "
                       "limit is %zu, so cut it into pieces",
                       len, MAX_TEXT);
    /* Never an empty list, so that *ids is never NULL. */
    list.cap = (len / 4 < max_ids ? len / 4 : max_ids) + 16;
    list.allowed_ns = regex_allowance(len);
    list.v = malloc(list.cap * sizeof *list.v);
    if (!list.v)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a list of %zu tokens",
                       list.cap);
    if (with_bos && t->bos >= 0) {
        from = spelled_bos(t, text, len);
        st = id_list_add(&list, t->bos, err);
    }
    if (!st)
        st = encode_from(t, text, len, from, true, search, &list, err);
    if (!st && with_eos)
        st = id_list_add(&list, t->eos, err);
    if (list.is_full || (!st && list.n > max_ids)) {
        free(list.v);
        *ids = NULL;
        *n_ids = list.n > max_ids ? list.n : max_ids + 1;
        return ST_OK;
    }
    if (st) {
        free(list.v);
        return st == ST_INTERRUPTED ? err_set(err, st, "interrupted") : st;
    }
    *ids = list.v;
    *n_ids = list.n;
    return ST_OK;
}

void tokenizer_stop_when(struct tokenizer *t, bool (*stopped)(void))
{
    t->stopped = stopped;
}

enum status tokenizer_encode_up_to(const struct tokenizer *t, const char *text,
                                   size_t len, bool with_bos, bool parse_special,
                                   size_t max_ids, int32_t **ids, size_t *n_ids,
                                   struct err *err)
{
    struct search search = {.parse_special = parse_special};

    return encode(t, text, len, with_bos, false, &search, max_ids, ids, n_ids, err);
}

enum status tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                             bool with_bos, bool parse_special, int32_t **ids,
                             size_t *n_ids, struct err *err)
{
    return tokenizer_encode_up_to(t, text, len, with_bos, parse_special, TOKENIZER_ANY,
                                  ids, n_ids, err);
}

enum status tokenizer_encode_whole(const struct tokenizer *t, const char *text,
                                   size_t len, size_t max_ids, int32_t **ids,
                                   size_t *n_ids, struct err *err)
{
    struct search search = {.parse_special = false};

    return encode(t, text, len, t->adds_bos, tokenizer_adds_eos(t), &search, max_ids,
                  ids, n_ids, err);
}

enum status tokenizer_encode_marked(const struct tokenizer *t, const char *text,
                                    size_t len, bool with_bos,
                                    const struct tokenizer_markers *markers,
                                    size_t max_ids, int32_t **ids, size_t *n_ids,
                                    struct err *err)
{
    struct search search = {.markers = markers, .guard = markers};

    return encode(t, text, len, with_bos, false, &search, max_ids, ids, n_ids, err);
}

/* ---- decoding -------------------------------------------------------------------- */

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return t->type[id] == TOKEN_CONTROL || t->type[id] == TOKEN_USER;
}

const char *tokenizer_note(const struct tokenizer *t)
{
    return t->note;
}

bool tokenizer_is_unused(const struct tokenizer *t, int32_t id)
{
    return t->type[id] == TOKEN_UNUSED;
}

size_t tokenizer_piece(const struct tokenizer *t, int32_t id, char *buf, size_t cap)
{
    size_t len;

    assert(id >= 0 && id < t->n_vocab);
    const char *text = token_text(t, id, &len);

    switch (t->type[id]) {
    case TOKEN_CONTROL:
    case TOKEN_UNKNOWN:
    case TOKEN_UNUSED:
        return 0;
    case TOKEN_BYTE:
        if (cap >= 1) /* the vocabulary was checked: "<0xHH>" */
            buf[0] = (char)strtoul((const char[]){text[3], text[4], '\0'}, NULL, 16);
        return 1;
    default:
        return t->decoded ? tokenizer_decoded_piece(t, id, buf, cap)
                          : t->algo->piece(t, id, buf, cap);
    }
}
