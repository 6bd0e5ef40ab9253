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
#include "engine/tokenizer/tokenizer_sorted.h"

#define MAX_BYTES    256
#define UNKNOWN_COST 10.0 /* below the worst score */

/* No sum of scores is infinite: each position has a way to it. */
#define MAX_SCORE 1e30

struct unigram {
    struct sorted tokens; /* plain ones */
    double *score;        /* [n_vocab] */
    double unknown_score;
    bool cuts; /* at each U+2581 */
};

/* The best way to a position: its score, where the last token begins, and the token. */
struct step {
    double score;
    uint32_t from;
    int32_t id; /* -1: unknown */
};

/* ---- the algorithm --------------------------------------------------------------- */

static void reach(struct step *to, size_t from, double score, int32_t id)
{
    if (score > to->score)
        *to = (struct step){score, (uint32_t)from, id};
}

/* All tokens that begin at text[i]; n_char: bytes of its character. */
static void extend(const struct tokenizer *t, const char *text, size_t len, size_t i,
                   size_t n_char, struct step *way)
{
    struct sorted_walk w = sorted_walk(&t->unigram->tokens, (unsigned char)text[i]);
    bool alone = false;
    int32_t id;
    size_t n;

    while ((id = sorted_next(&w, text + i, len - i, &n)) >= 0) {
        reach(&way[i + n], i, way[i].score + t->unigram->score[id], id);
        alone |= n == n_char;
    }
    if (!alone)
        reach(&way[i + n_char], i, way[i].score + t->unigram->unknown_score, -1);
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

struct work {
    const struct tokenizer *t;
    struct id_list *ids;
    struct step *way; /* [cap] */
    size_t cap;
};

static enum status reserve(struct work *w, size_t len, struct err *err)
{
    if (len < w->cap)
        return ST_OK;
    free(w->way);
    w->cap = 2 * len + 64;
    w->way = malloc(w->cap * sizeof *w->way);
    w->cap = w->way ? w->cap : 0;
    return w->way ? ST_OK
                  : err_set(err, ST_NO_MEMORY,
                            "cannot allocate memory to tokenise %zu bytes", len);
}

/* The best way to text[len]; its `from` are turned round, from the beginning on. */
static void find_way(const struct tokenizer *t, const char *text, size_t len,
                     struct step *way)
{
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
}

static enum status encode_word(void *arg, const char *text, size_t len, struct err *err)
{
    struct work *w = arg;
    enum status st = id_list_check(w->ids, len > 0);
    const struct step *way;

    if (!st)
        st = reserve(w, len, err);
    way = w->way;

    if (st)
        return st;
    find_way(w->t, text, len, w->way);
    for (uint32_t at = 0; at < len && !st;) {
        uint32_t end = way[at].from;

        if (way[end].id >= 0) {
            st = id_list_add(w->ids, way[end].id, err);
        } else {
            while (end < len && way[way[end].from].id < 0)
                end = way[end].from;
            st = emit_unknown(w->t, text + at, end - at, w->ids, err);
        }
        at = end;
    }
    return st;
}

/* Blanks become U+2581, at which words may begin. */
static enum status encode_escaped(struct work *w, const char *text, size_t len,
                                  bool first, struct err *err)
{
    char *escaped = NULL;
    size_t n = 0;
    enum status st = tokenizer_escape(w->t, text, len, first, &escaped, &n, err);

    for (size_t at = 0, end; at < n && !st; at = end) {
        end = n;
        if (w->t->unigram->cuts) {
            const char *next = memmem(escaped + at + 1, n - at - 1, "\xe2\x96\x81", 3);

            end = next ? (size_t)(next - escaped) : n;
        }
        st = encode_word(w, escaped + at, end - at, err);
    }
    free(escaped);
    return st;
}

static enum status encode(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err)
{
    struct work w = {.t = t, .ids = ids};
    const enum status st = t->pieces
                               ? pieces_cut(t->pieces, text, len, first,
                                            &ids->allowed_ns, encode_word, &w, err)
                               : encode_escaped(&w, text, len, first, err);

    free(w.way);
    return st;
}

/* ---- loading --------------------------------------------------------------------- */

/* As doubles where the file has them so: sums of floats are equal more often. */
static enum status load_scores(struct tokenizer *t, const struct gguf *g,
                               struct err *err)
{
    const struct gguf_kv *kv = gguf_kv_find(g, TOKENIZER_KEY_SCORES);
    double *score = t->unigram->score =
        malloc(((size_t)t->n_vocab + 1) * sizeof *t->unigram->score);

    if (!score)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a vocabulary");
    if (kv && (kv->type != GGUF_ARRAY || kv->n != (uint64_t)t->n_vocab))
        return err_set(err, ST_INPUT, "%s: %s is not a number for each token",
                       gguf_path(g), TOKENIZER_KEY_SCORES);
    for (int32_t id = 0; id < t->n_vocab; id++) {
        score[id] = (double)t->score[id];
        if (kv && (!gguf_elem_f64(kv, (uint64_t)id, &score[id]) || isnan(score[id])))
            return err_set(err, ST_INPUT, "%s: entry %" PRId32 " of %s is not a number",
                           gguf_path(g), id, TOKENIZER_KEY_SCORES);
        score[id] = fmin(fmax(score[id], -MAX_SCORE), MAX_SCORE);
    }
    return ST_OK;
}

static enum status load(struct tokenizer *t, const struct gguf *g, struct err *err)
{
    struct unigram *u = t->unigram = calloc(1, sizeof *u);
    double worst = INFINITY;
    enum status st = u ? sorted_begin(&u->tokens, (size_t)t->n_vocab, err)
                       : err_set(err, ST_NO_MEMORY, "cannot allocate a vocabulary");

    if (!st)
        st = load_scores(t, g, err);
    if (st)
        return st;
    for (int32_t id = 0; id < t->n_vocab; id++) {
        size_t len;
        const char *text = token_text(t, id, &len);

        if (len <= MAX_BYTES &&
            (t->type[id] == TOKEN_NORMAL || t->type[id] == TOKEN_USER))
            sorted_add(&u->tokens, text, len, id);
        if (t->type[id] != TOKEN_UNUSED && u->score[id] < worst)
            worst = u->score[id];
    }
    sorted_end(&u->tokens);
    u->unknown_score = (isfinite(worst) ? worst : 0) - UNKNOWN_COST;
    gguf_get_bool(g, TOKENIZER_KEY_CUTS, &u->cuts);
    return ST_OK;
}

static void unload(struct tokenizer *t)
{
    if (t->unigram) {
        sorted_free(&t->unigram->tokens);
        free(t->unigram->score);
    }
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
    .adds_eos = true,
    .load = load,
    .unload = unload,
    .encode = encode,
    .piece = tokenizer_blank_piece,
};
