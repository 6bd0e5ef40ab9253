/* SPDX-License-Identifier: MIT
 *
 * tokenizer_unigram.c - the most likely division of a text into tokens, as in
 * SentencePiece's unigram models
 *
 * Blanks become U+2581 as in tokenizer_spm.c. A text (or, where the file cuts at
 * blanks, a word) is divided into the tokens with the highest sum of scores: for each
 * position the best way to get there, from left to right. A character that is no token
 * costs more than the least likely one; neighbours of the kind are one unknown token,
 * or their bytes.
 *
 * Tokens are looked up in the order of their bytes, as special tokens are, and have at
 * most MAX_BYTES, so time is linear in the text.
 *
 * Source: Kudo, "Subword regularization", 2018; ties and unknown characters as in
 * Hugging Face's tokenizers.
 */
#include "engine/tokenizer/tokenizer_impl.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define MAX_BYTES    256
#define UNKNOWN_COST 10.0 /* below the worst score */

struct unigram {
    int32_t *sorted; /* plain tokens in the order of their bytes */
    size_t at[257];  /* those that begin with byte b are sorted[at[b]] .. [at[b + 1]] */
    double unknown_score;
    bool cuts; /* at each U+2581 */
};

/* The best way to a position: its score, where the last token begins, and the token. */
struct step {
    double score;
    uint32_t from;
    int32_t id; /* -1: unknown */
};

/* ---- the algorithm ----------------------------------------------------------------
 */

/* The first of sorted[lo] .. [hi] whose byte after the first n is at least `next`; they
 * agree in the first n bytes and are longer. */
static size_t first_from(const struct tokenizer *t, size_t lo, size_t hi, size_t n,
                         unsigned next)
{
    while (lo < hi) {
        const size_t middle = lo + (hi - lo) / 2;
        size_t len;
        const char *token = token_text(t, t->unigram->sorted[middle], &len);

        if ((unsigned char)token[n] < next)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

static void reach(struct step *to, size_t from, double score, int32_t id)
{
    if (score > to->score)
        *to = (struct step){score, (uint32_t)from, id};
}

/* All tokens that begin at text[i]; n_char: bytes of its character. */
static void extend(const struct tokenizer *t, const char *text, size_t len, size_t i,
                   size_t n_char, struct step *way)
{
    const struct unigram *u = t->unigram;
    const unsigned char first = (unsigned char)text[i];
    size_t lo = u->at[first], hi = u->at[first + 1];
    bool alone = false;

    for (size_t n = 1; lo < hi && i + n <= len; n++) {
        size_t size;

        token_text(t, u->sorted[lo], &size);
        if (size == n) { /* the shortest is the first, and tokens differ */
            const int32_t id = u->sorted[lo++];

            reach(&way[i + n], i, way[i].score + (double)t->score[id], id);
            alone |= n == n_char;
        }
        if (lo < hi && i + n < len) {
            const unsigned next = (unsigned char)text[i + n];

            lo = first_from(t, lo, hi, n, next);
            hi = first_from(t, lo, hi, n, next + 1);
        }
    }
    if (!alone)
        reach(&way[i + n_char], i, way[i].score + u->unknown_score, -1);
}

/* Characters without a token, one after another. */
static enum status emit_unknown(const struct tokenizer *t, const char *text, size_t len,
                                struct id_list *ids, struct err *err)
{
    bool bytes = true;

    for (size_t i = 0; i < len; i++)
        bytes &= t->byte_id[(unsigned char)text[i]] >= 0;
    return bytes || t->unknown < 0 ? tokenizer_emit_bytes(t, text, len, ids, err)
                                   : id_list_add(ids, t->unknown, err);
}

/* The way back is turned round in the `from` of the positions it goes through. */
static enum status encode_word(const struct tokenizer *t, const char *text, size_t len,
                               struct step *way, struct id_list *ids, struct err *err)
{
    enum status st = ST_OK;

    way[0] = (struct step){.id = -1};
    for (size_t i = 1; i <= len; i++)
        way[i].score = -INFINITY;
    for (size_t i = 0, n; i < len; i += n) {
        const int chars = utf8_char_len(text + i, len - i);

        n = chars > 0 ? (size_t)chars : 1;
        extend(t, text, len, i, n, way);
    }
    for (uint32_t at = (uint32_t)len, next = at; at > 0;) {
        const uint32_t from = way[at].from;

        way[at].from = next;
        next = at;
        at = from;
        if (!at)
            way[0].from = next;
    }
    for (uint32_t at = 0; at < len && !st;) {
        uint32_t end = way[at].from;

        if (way[end].id >= 0) {
            st = id_list_add(ids, way[end].id, err);
        } else {
            while (end < len && way[way[end].from].id < 0)
                end = way[end].from;
            st = emit_unknown(t, text + at, end - at, ids, err);
        }
        at = end;
    }
    return st;
}

static enum status encode(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err)
{
    char *escaped = NULL;
    struct step *way = NULL;
    size_t n = 0, cap = 0;
    enum status st = tokenizer_escape(t, text, len, first, &escaped, &n, err);

    for (size_t at = 0, end; at < n && !st; at = end) {
        end = n;
        if (t->unigram->cuts) {
            const char *next = memmem(escaped + at + 1, n - at - 1, "\xe2\x96\x81", 3);

            end = next ? (size_t)(next - escaped) : n;
        }
        if (end - at >= cap) {
            cap = 2 * (end - at) + 64;
            free(way);
            way = malloc(cap * sizeof *way);
        }
        st = way ? encode_word(t, escaped + at, end - at, way, ids, err)
                 : err_set(err, ST_NO_MEMORY,
                           "cannot allocate memory to tokenise %zu bytes", end - at);
    }
    free(way);
    free(escaped);
    return st;
}

/* ---- loading ----------------------------------------------------------------------
 */

struct plain {
    const char *text;
    size_t len;
    int32_t id;
};

static int by_text(const void *a, const void *b)
{
    const struct plain *x = a, *y = b;
    const int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    if (order || x->len != y->len)
        return order ? order : x->len < y->len ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id; /* of equal ones the last counts */
}

static size_t list_plain(const struct tokenizer *t, struct plain *list)
{
    size_t n = 0, kept = 0;

    for (int32_t id = 0; id < t->n_vocab; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);

        if (len && len <= MAX_BYTES &&
            (t->type[id] == TOKEN_NORMAL || t->type[id] == TOKEN_USER))
            list[n++] = (struct plain){text, len, id};
    }
    qsort(list, n, sizeof *list, by_text);
    for (size_t i = 0; i < n; i++)
        if (!kept || list[kept - 1].len != list[i].len ||
            memcmp(list[kept - 1].text, list[i].text, list[i].len) != 0)
            list[kept++] = list[i];
    return kept;
}

static enum status load(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct plain *list = malloc(((size_t)t->n_vocab + 1) * sizeof *list);
    struct unigram *u = t->unigram = calloc(1, sizeof *u);
    double worst = INFINITY;

    if (u)
        u->sorted = malloc(((size_t)t->n_vocab + 1) * sizeof *u->sorted);
    if (!list || !u || !u->sorted) {
        free(list);
        return err_set(err, ST_NO_MEMORY,
                       "cannot allocate a vocabulary of %" PRId32 " tokens",
                       t->n_vocab);
    }
    const size_t n = list_plain(t, list);

    for (size_t i = 0; i < n; i++) {
        u->sorted[i] = list[i].id;
        u->at[(unsigned char)*list[i].text + 1] = i + 1;
    }
    for (int b = 1; b <= 256; b++)
        if (u->at[b] < u->at[b - 1])
            u->at[b] = u->at[b - 1];
    free(list);
    for (int32_t id = 0; id < t->n_vocab; id++)
        if (t->type[id] != TOKEN_UNUSED && (double)t->score[id] < worst)
            worst = (double)t->score[id];
    u->unknown_score = (isfinite(worst) ? worst : 0) - UNKNOWN_COST;
    gguf_get_bool(g, TOKENIZER_KEY_CUTS, &u->cuts);
    return ST_OK;
}

static void unload(struct tokenizer *t)
{
    if (t->unigram)
        free(t->unigram->sorted);
    free(t->unigram);
}

const struct tokenizer_algo tokenizer_unigram = {
    .name = "t5",
    .default_bos = -1,
    .default_eos = 1,
    .default_unknown = 2,
    .needs_scores = true,
    .spells_bytes = true,
    .adds_space = true,
    .load = load,
    .unload = unload,
    .encode = encode,
    .piece = tokenizer_blank_piece,
};
