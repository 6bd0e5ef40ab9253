/* SPDX-License-Identifier: MIT
 *
 * vocab.c - the tree of a vocabulary's tokens
 */
#include "engine/grammar/vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/grammar/machine.h"

/* A control token; no grammar but those with calls allows these bytes. */
static size_t read_control(const struct tokenizer *tok, int32_t id, char *piece)
{
    size_t len;
    const char *spelled = tokenizer_text(tok, id, &len);

    if (!len || len + 2 > TOKEN_MAX_BYTES || memchr(spelled, CALL_CONTROL, len))
        return 0;
    piece[0] = piece[len + 1] = CALL_CONTROL;
    memcpy(piece + 1, spelled, len);
    return len + 2;
}

/* The bytes of all tokens. */
static enum status read_pieces(struct grammar_vocab *v, const struct tokenizer *tok,
                               struct err *err)
{
    char piece[TOKEN_MAX_BYTES];
    size_t n = 0, cap = 0;

    v->at = calloc((size_t)v->n_vocab + 1, sizeof *v->at);
    if (!v->at)
        return err_set(err, ST_NO_MEMORY, "cannot allocate %d tokens", v->n_vocab);
    for (int32_t id = 0; id < v->n_vocab; id++) {
        size_t len = tokenizer_piece(tok, id, piece, sizeof piece);

        if (len && len <= sizeof piece && memchr(piece, CALL_CONTROL, len))
            len = 0; /* no text has it, and it marks: */
        else if (!len && tokenizer_is_special(tok, id))
            len = read_control(tok, id, piece); /* as texts with calls have it */
        if (tokenizer_is_end(tok, id)) {
            if (v->n_ends < MAX_END_TOKENS)
                v->end[v->n_ends++] = id;
            len = 0;
        }
        if (len > sizeof piece)
            len = 0;
        if (n + len > cap) {
            cap = (n + len) * 2;
            char *text = realloc(v->text, cap);

            if (!text)
                return err_set(err, ST_NO_MEMORY,
                               "cannot allocate %zu bytes for the texts of tokens",
                               cap);
            v->text = text;
        }
        if (len > 0)
            memcpy(v->text + n, piece, len);
        n += len;
        v->at[id + 1] = (uint32_t)n;
    }
    return ST_OK;
}

/* What the tree is made from: tokens to be sorted. */
struct piece {
    const char *s;
    uint32_t len;
    bool spelled; /* "<0x41>": the tokenizer writes it otherwise where it can */
    int32_t id;
};

static int compare_pieces(const void *x, const void *y)
{
    const struct piece *a = x, *b = y;
    const int order = memcmp(a->s, b->s, a->len < b->len ? a->len : b->len);

    if (order)
        return order;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    if (a->spelled != b->spelled)
        return a->spelled ? 1 : -1;
    return (a->id > b->id) - (a->id < b->id);
}

static void note_piece(struct grammar_vocab *v, const struct piece *p)
{
    uint32_t n_brackets = 0;

    if (p->len == 1)
        v->has_byte[(uint8_t)p->s[0]] = true;
    if (p->len > v->max_bytes)
        v->max_bytes = p->len;
    for (uint32_t i = 0; i < p->len; i++)
        n_brackets += p->s[i] == '[' || p->s[i] == '{';
    if (n_brackets > v->max_brackets)
        v->max_brackets = n_brackets;
}

static uint32_t sort_pieces(struct grammar_vocab *v, const struct tokenizer *tok,
                            struct piece *pieces)
{
    uint32_t n = 0;

    for (int32_t id = 0; id < v->n_vocab; id++) {
        const uint32_t len = v->at[id + 1] - v->at[id];
        size_t text_len;
        const char *text = tokenizer_text(tok, id, &text_len);

        if (len == 0)
            continue;
        pieces[n] = (struct piece){.s = v->text + v->at[id], .len = len, .id = id};
        pieces[n].spelled = len == 1 && text_len == 6 && !memcmp(text, "<0x", 3);
        note_piece(v, &pieces[n++]);
    }
    if (n > 0)
        qsort(pieces, n, sizeof *pieces, compare_pieces);
    return n;
}

/* How many bytes two neighbours have in common. */
static uint32_t common(const struct piece *a, const struct piece *b)
{
    const uint32_t len = a->len < b->len ? a->len : b->len;
    uint32_t n = 0;

    while (n < len && a->s[n] == b->s[n])
        n++;
    return n;
}

/* Nodes in the order of the sorted tokens; open[d] is the last one of depth d. */
static void put_nodes(struct grammar_vocab *v, const struct piece *pieces, uint32_t n)
{
    uint32_t open[TOKEN_MAX_BYTES], depth = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct piece *p = &pieces[i];
        const uint32_t same = i > 0 ? common(p, p - 1) : 0;

        while (depth > same)
            v->nodes[open[--depth]].end = v->n_nodes;
        for (; depth < p->len; depth++) {
            open[depth] = v->n_nodes;
            v->nodes[v->n_nodes++] = (struct trie_node){
                .byte = (uint8_t)p->s[depth], .depth = (uint8_t)depth, .token = i};
        }
        struct trie_node *last = &v->nodes[open[depth - 1]];

        if (last->n_tokens == 0)
            last->token = i;
        if (last->n_tokens < UINT8_MAX)
            last->n_tokens++;
        for (uint32_t d = 0; d < depth; d++) {
            if (v->nodes[open[d]].longest < p->len)
                v->nodes[open[d]].longest = (uint8_t)p->len;
        }
        v->tokens[i] = p->id;
    }
    while (depth > 0)
        v->nodes[open[--depth]].end = v->n_nodes;
}

/* A counting sort. */
static void sort_by_length(struct grammar_vocab *v)
{
    uint32_t at[TOKEN_MAX_BYTES + 2];

    for (uint32_t i = 0; i < v->n_tokens; i++) {
        const int32_t id = v->tokens[i];

        for (uint32_t n = 0; n < v->at[id + 1] - v->at[id]; n++)
            v->n_longer[n]++;
    }
    memcpy(at, v->n_longer, sizeof at);
    for (uint32_t i = 0; i < v->n_tokens; i++) {
        const int32_t id = v->tokens[i];

        v->by_length[at[v->at[id + 1] - v->at[id]]++] = id;
    }
}

static enum status make_tree(struct grammar_vocab *v, const struct tokenizer *tok,
                             struct err *err)
{
    struct piece *pieces = calloc((size_t)v->n_vocab, sizeof *pieces);
    size_t n_nodes = 0;

    if (!pieces)
        return err_set(err, ST_NO_MEMORY, "cannot allocate %d tokens", v->n_vocab);
    v->n_tokens = sort_pieces(v, tok, pieces);
    for (uint32_t i = 0; i < v->n_tokens; i++)
        n_nodes += pieces[i].len - (i > 0 ? common(&pieces[i], &pieces[i - 1]) : 0);
    v->nodes = malloc((n_nodes + 1) * sizeof *v->nodes);
    v->tokens = malloc((v->n_tokens + 1) * sizeof *v->tokens);
    v->by_length = malloc((v->n_tokens + 1) * sizeof *v->by_length);
    if (v->nodes && v->tokens && v->by_length) {
        put_nodes(v, pieces, v->n_tokens);
        sort_by_length(v);
    }
    free(pieces);
    return v->nodes && v->tokens && v->by_length
               ? ST_OK
               : err_set(err, ST_NO_MEMORY,
                         "cannot allocate a tree of %zu nodes for the tokens", n_nodes);
}

enum status grammar_vocab_open(struct grammar_vocab **out, const struct tokenizer *tok,
                               struct err *err)
{
    struct grammar_vocab *v = calloc(1, sizeof *v);
    enum status st;

    if (!v)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a vocabulary");
    v->n_vocab = tokenizer_n_vocab(tok);
    v->adds_space = tokenizer_adds_space(tok);
    v->n_refs = 1;
    pthread_mutex_init(&v->lock, NULL);
    st = read_pieces(v, tok, err);
    if (!st)
        st = make_tree(v, tok, err);
    if (st) {
        grammar_vocab_close(v);
        return st;
    }
    *out = v;
    return ST_OK;
}

void grammar_vocab_ref(struct grammar_vocab *v)
{
    pthread_mutex_lock(&v->lock);
    v->n_refs++;
    pthread_mutex_unlock(&v->lock);
}

void grammar_vocab_close(struct grammar_vocab *v)
{
    if (!v)
        return;
    pthread_mutex_lock(&v->lock);
    const bool last = --v->n_refs == 0;

    pthread_mutex_unlock(&v->lock);
    if (!last)
        return;
    machine_free_all(v);
    pthread_mutex_destroy(&v->lock);
    free(v->nodes);
    free(v->tokens);
    free(v->by_length);
    free(v->text);
    free(v->at);
    free(v);
}
