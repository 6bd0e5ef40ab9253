/* SPDX-License-Identifier: MIT
 *
 * tokenizer_bpe.c - byte-pair encoding with a list of merges, as in GPT-2
 *
 * The text is cut into pieces (tokenizer_pre.h). Each byte of a piece starts as a
 * token; among all neighbours in the list of merges, the pair of lowest rank is joined,
 * the leftmost of equals first, until none are left. Tokens are spelled in a byte
 * alphabet (tokenizer_pieces.h).
 *
 * Other vocabularies of a tokenizer.json start with characters: a character without a
 * token is its bytes, or unknown, or left out where there is no unknown token.
 *
 * Symbols form a doubly linked list over the piece, candidate pairs a heap, as in
 * tokenizer_spm.c, so the algorithm is O(n log n).
 *
 * A byte is part of a token, so a piece has at least as many as the longest token fits
 * into it; a character may become nothing.
 *
 * Source: Radford et al., "Language models are unsupervised multitask learners",
 * 2019, and its public vocabulary.
 */
#include "engine/tokenizer/tokenizer_bpe_impl.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

static const char *token_bytes(const struct tokenizer *t, int32_t id, size_t *len)
{
    *len = t->bpe->at[id + 1] - t->bpe->at[id];
    return t->bpe->bytes + t->bpe->at[id];
}

/* ---- the algorithm --------------------------------------------------------------- */

struct symbol {
    int32_t id;         /* -1: a byte without a token, or joined to its left */
    int32_t prev, next; /* -1: none */
};

/* symbols[left] and the next one, as they were when the pair was found. */
struct pair {
    uint32_t rank;
    int32_t left;
};

struct work {
    const struct tokenizer *t;
    struct id_list *ids;
    struct symbol *symbols; /* [cap] */
    struct pair *heap;      /* [2 * cap], the best pair on top */
    size_t cap, n_pairs;
};

static bool before(struct pair a, struct pair b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.left < b.left);
}

static void heap_push(struct work *w, struct pair p)
{
    size_t i = w->n_pairs++;

    for (; i > 0 && before(p, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap[i] = w->heap[(i - 1) / 2];
    w->heap[i] = p;
}

static struct pair heap_pop(struct work *w)
{
    const struct pair top = w->heap[0];
    const struct pair last = w->heap[--w->n_pairs];
    size_t i = 0;

    for (size_t child; (child = 2 * i + 1) < w->n_pairs; i = child) {
        if (child + 1 < w->n_pairs && before(w->heap[child + 1], w->heap[child]))
            child++;
        if (!before(w->heap[child], last))
            break;
        w->heap[i] = w->heap[child];
    }
    w->heap[i] = last;
    return top;
}

/* Push a symbol and its right neighbour onto the heap if they merge. */
static void propose(struct work *w, int32_t left)
{
    if (left < 0 || w->symbols[left].next < 0)
        return;
    const int32_t key[2] = {w->symbols[left].id, w->symbols[w->symbols[left].next].id};
    const uint32_t rank =
        strtab_find(&w->t->bpe->ranks, (const char *)key, MERGE_KEY_BYTES);

    if (rank != STRTAB_NONE)
        heap_push(w, (struct pair){rank, left});
}

static void join_all(struct work *w, int32_t n)
{
    w->n_pairs = 0;
    for (int32_t i = 0; i + 1 < n; i++)
        propose(w, i);
    while (w->n_pairs) {
        const struct pair p = heap_pop(w);
        const struct merge *m = &w->t->bpe->merges[p.rank];
        struct symbol *a = &w->symbols[p.left];
        struct symbol *b = a->next < 0 ? NULL : &w->symbols[a->next];

        /* Outdated: one of them has been joined to another symbol. */
        if (!b || a->id != m->left || b->id != m->right)
            continue;
        a->id = m->whole;
        b->id = -1;
        a->next = b->next;
        if (b->next >= 0)
            w->symbols[b->next].prev = p.left;
        propose(w, a->prev);
        propose(w, p.left);
    }
}

static enum status reserve(struct work *w, size_t n, struct err *err)
{
    if (n <= w->cap)
        return ST_OK;
    /* n symbols have n - 1 pairs; each of the at most n - 1 joins takes one out and
     * adds two. */
    free(w->symbols);
    free(w->heap);
    w->cap = n < SIZE_MAX / 4 ? 2 * n : n;
    w->symbols = malloc(w->cap * sizeof *w->symbols);
    w->heap = malloc(2 * w->cap * sizeof *w->heap);
    if (w->symbols && w->heap)
        return ST_OK;
    return err_set(err, ST_NO_MEMORY,
                   "cannot allocate memory to tokenise a word of %zu bytes", n);
}

/* Join the first n symbols, of piece, and append their ids. */
static enum status emit(struct work *w, const char *piece, size_t n, struct err *err)
{
    enum status st = ST_OK;

    join_all(w, (int32_t)n);
    for (int32_t i = n ? 0 : -1; i >= 0 && !st; i = w->symbols[i].next) {
        if (w->symbols[i].id >= 0)
            st = id_list_add(w->ids, w->symbols[i].id, err);
        else
            st = tokenizer_emit_bytes(w->t, piece + i, 1, w->ids, err);
    }
    return st;
}

static void put_symbol(struct work *w, size_t *n, int32_t id)
{
    w->symbols[*n] = (struct symbol){id, (int32_t)*n - 1, (int32_t)*n + 1};
    ++*n;
}

/* The token of a character, with what its place in the piece[len] adds to it. */
static uint32_t find_char(const struct tokenizer *t, const char *piece, size_t len,
                          size_t at, size_t n)
{
    const struct bpe *b = t->bpe;
    char key[2 * BPE_MAX_AFFIX + 4];
    size_t used = 0;

    if (at && b->prefix.len) {
        memcpy(key, b->prefix.data, b->prefix.len);
        used = b->prefix.len;
    }
    memcpy(key + used, piece + at, n);
    used += n;
    if (at + n == len && b->suffix.len) {
        memcpy(key + used, b->suffix.data, b->suffix.len);
        used += b->suffix.len;
    }
    return strtab_find(&t->ids, key, used);
}

static bool has_bytes(const struct tokenizer *t, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (t->byte_id[(unsigned char)text[i]] < 0)
            return false;
    return true;
}

/* Symbols of the characters of piece[len]; returns their number. */
static size_t char_symbols(struct work *w, const char *piece, size_t len)
{
    const struct tokenizer *t = w->t;
    bool unknown = false; /* those before, not put yet */
    size_t n = 0;

    for (size_t at = 0, bytes; at < len; at += bytes) {
        const int chars = utf8_char_len(piece + at, len - at);

        bytes = chars > 0 ? (size_t)chars : 1;
        const uint32_t id = find_char(t, piece, len, at, bytes);

        if (id != STRTAB_NONE) {
            if (unknown)
                put_symbol(w, &n, t->unknown);
            unknown = false;
            put_symbol(w, &n, (int32_t)id);
        } else if (t->bpe->falls_to_bytes && has_bytes(t, piece + at, bytes)) {
            for (size_t i = 0; i < bytes; i++)
                put_symbol(w, &n, t->byte_id[(unsigned char)piece[at + i]]);
        } else if (t->unknown >= 0) {
            if (unknown && !t->bpe->fuses)
                put_symbol(w, &n, t->unknown);
            unknown = true;
        }
    }
    if (unknown)
        put_symbol(w, &n, t->unknown);
    if (n)
        w->symbols[n - 1].next = -1;
    return n;
}

static enum status encode_piece(void *arg, const char *piece, size_t len,
                                struct err *err)
{
    struct work *w = arg;
    enum status st =
        id_list_check(w->ids, w->t->bpe->chars ? 0 : tokenizer_min_tokens(w->t, len));

    if (st)
        return st;
    if (w->t->bpe->whole_words) {
        const uint32_t id = strtab_find(&w->t->ids, piece, len);

        if (id != STRTAB_NONE)
            return id_list_add(w->ids, (int32_t)id, err);
    }
    st = reserve(w, len + 1, err);
    if (st)
        return st;
    if (w->t->bpe->chars)
        return emit(w, piece, char_symbols(w, piece, len), err);
    for (size_t i = 0; i < len; i++)
        w->symbols[i] = (struct symbol){.id = w->t->byte_id[(unsigned char)piece[i]],
                                        .prev = (int32_t)i - 1,
                                        .next = i + 1 < len ? (int32_t)i + 1 : -1};
    return emit(w, piece, len, err);
}

static enum status encode(const struct tokenizer *t, const char *text, size_t len,
                          bool first, struct id_list *ids, struct err *err)
{
    struct work w = {.t = t, .ids = ids};
    const enum status st =
        t->bpe->chars ? pieces_cut(t->pieces, text, len, first, &ids->allowed_ns,
                                   encode_piece, &w, err)
                      : pre_tokenizer_cut(t->bpe->pre, text, len, &ids->allowed_ns,
                                          encode_piece, &w, err);

    free(w.symbols);
    free(w.heap);
    return st;
}

static size_t piece(const struct tokenizer *t, int32_t id, char *buf, size_t cap)
{
    size_t len;

    if (t->bpe->chars)
        return tokenizer_blank_piece(t, id, buf, cap);
    const char *bytes = token_bytes(t, id, &len);

    if (len <= cap)
        memcpy(buf, bytes, len);
    return len;
}

const struct tokenizer_algo tokenizer_bpe = {
    .name = "gpt2",
    .default_bos = -1,
    .default_eos = -1,
    .default_unknown = -1,
    .load = bpe_load,
    .unload = bpe_unload,
    .encode = encode,
    .piece = piece,
};
