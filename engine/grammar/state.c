/* SPDX-License-Identifier: MIT
 *
 * state.c - where a text is in a grammar, token by token
 */
#include "engine/grammar/machine.h"

#include <stdlib.h>
#include <string.h>

#define MAX_FORCED 512 /* bytes at once */

/* With these alone most texts can be written; a vocabulary may lack bytes of others,
 * and a text that comes there ends. */
static enum status check_bytes(const struct grammar_vocab *v, struct err *err)
{
    for (int byte = 0x20; byte < 0x7f; byte++) {
        if (!v->has_byte[byte])
            return err_set(err, ST_UNSUPPORTED,
                           "the vocabulary has no token for the character '%c' alone, "
                           "so it cannot write every JSON text",
                           byte);
    }
    return ST_OK;
}

enum status grammar_state_open(struct grammar_state **out, struct grammar *g,
                               struct grammar_vocab *v, struct err *err)
{
    enum status st = check_bytes(v, err);

    if (st)
        return st;
    struct grammar_state *s = calloc(1, sizeof *s);

    if (!s)
        return err_set(err, ST_NO_MEMORY, "cannot allocate a grammar's state");
    st = machine_take(&s->m, g, v, err);
    if (st) {
        free(s);
        return st;
    }
    s->v = v;
    grammar_vocab_ref(v);
    pthread_mutex_lock(&s->m->lock);
    machine_make_room(s->m);
    s->position = machine_start(s->m);
    s->next = s->m->states;
    if (s->next)
        s->next->prev = s;
    s->m->states = s;
    pthread_mutex_unlock(&s->m->lock);
    if (s->position == POSITION_DEAD) {
        grammar_state_close(s);
        return err_set(err, ST_NO_MEMORY, "cannot allocate a grammar's first position");
    }
    *out = s;
    return ST_OK;
}

void grammar_state_close(struct grammar_state *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->m->lock);
    if (s->prev)
        s->prev->next = s->next;
    else
        s->m->states = s->next;
    if (s->next)
        s->next->prev = s->prev;
    pthread_mutex_unlock(&s->m->lock);
    machine_leave(s->m, s->v);
    grammar_vocab_close(s->v);
    free(s);
}

enum status grammar_state_copy(struct grammar_state **out,
                               const struct grammar_state *s, struct err *err)
{
    struct grammar_state *copy = NULL;
    const enum status st = grammar_state_open(&copy, s->m->g, s->v, err);

    if (st)
        return st;
    pthread_mutex_lock(&s->m->lock);
    copy->position = s->position;
    copy->ended = s->ended;
    pthread_mutex_unlock(&s->m->lock);
    *out = copy;
    return ST_OK;
}

static bool is_end(const struct grammar_vocab *v, int32_t id)
{
    for (int i = 0; i < v->n_ends; i++) {
        if (v->end[i] == id)
            return true;
    }
    return false;
}

static void set_bit(uint32_t *mask, int32_t id)
{
    mask[id / 32] |= (uint32_t)1 << id % 32;
}

/* What may come next (NULL: nothing is known, for lack of memory), and whether the text
 * may end. It ends, too, where nothing can go on: without memory, or where the
 * vocabulary lacks what is needed. */
static const struct token_set *next_tokens(struct grammar_state *s, bool *ends)
{
    const struct token_set *t = machine_mask(s->m, s->position);

    *ends = (s->m->positions[s->position].flags & POSITION_ENDS) || !t ||
            (!t->words && t->n_ids == 0);
    return t;
}

bool grammar_state_mask(struct grammar_state *s, uint32_t *mask)
{
    const size_t n = GRAMMAR_MASK_WORDS(s->v->n_vocab);
    const struct token_set *t = NULL;
    bool ends = s->ended, all;

    pthread_mutex_lock(&s->m->lock);
    if (!s->ended) {
        machine_make_room(s->m);
        t = next_tokens(s, &ends);
    }
    all = t && t->all && ends;
    if (t && t->words)
        memcpy(mask, t->words, n * sizeof *mask);
    else
        memset(mask, 0, n * sizeof *mask);
    for (uint32_t i = 0; t && i < t->n_ids; i++)
        set_bit(mask, (int32_t)t->ids[i]);
    pthread_mutex_unlock(&s->m->lock);
    for (int i = 0; i < s->v->n_ends && ends; i++)
        set_bit(mask, s->v->end[i]);
    return all;
}

/* The position after a token's bytes, or POSITION_DEAD. */
static uint32_t after_token(struct grammar_state *s, int32_t id)
{
    const struct grammar_vocab *v = s->v;
    const uint32_t begin = v->at[id], end = v->at[id + 1];
    uint32_t position = begin < end ? s->position : POSITION_DEAD;

    for (uint32_t i = begin; i < end && position != POSITION_DEAD; i++)
        position = machine_after(s->m, position, (uint8_t)v->text[i]);
    return position;
}

bool grammar_state_accept(struct grammar_state *s, int32_t id)
{
    bool accepted;

    if (id < 0 || id >= s->v->n_vocab || s->ended)
        return false;
    pthread_mutex_lock(&s->m->lock);
    machine_make_room(s->m);
    if (is_end(s->v, id)) {
        accepted = s->m->positions[s->position].flags & POSITION_ENDS;
        if (!accepted)
            next_tokens(s, &accepted);
        s->ended = accepted;
    } else {
        const uint32_t position = after_token(s, id);

        accepted = position != POSITION_DEAD;
        if (accepted)
            s->position = position;
    }
    pthread_mutex_unlock(&s->m->lock);
    return accepted;
}

bool grammar_state_complete(const struct grammar_state *s)
{
    bool complete;

    pthread_mutex_lock(&s->m->lock);
    complete = s->m->positions[s->position].flags & POSITION_ENDS;
    pthread_mutex_unlock(&s->m->lock);
    return complete;
}

bool grammar_state_ended(const struct grammar_state *s)
{
    bool ended = s->ended;

    pthread_mutex_lock(&s->m->lock);
    if (!ended) {
        const struct position *p = &s->m->positions[s->position];

        ended = (p->flags & POSITION_ENDS) && p->n_configs == 0;
    }
    pthread_mutex_unlock(&s->m->lock);
    return ended;
}

/* ---- forced tokens --------------------------------------------------------------- */

/* The only byte that can follow, or -1. */
static int only_byte(const struct machine *m, uint32_t position)
{
    const struct position *p = &m->positions[position];
    int byte = -1;

    if (p->flags & POSITION_ENDS)
        return -1;
    for (uint32_t i = 0; i < p->n_configs; i++) {
        const struct node *node = &m->a->nodes[m->configs[p->config + i].node];

        for (uint32_t k = node->at; k < node->at + node->n; k++) {
            const struct edge *e = &m->a->edges[k];

            if (m->a->need[e->to] == NEVER)
                continue;
            if (e->lo != e->hi || (byte >= 0 && e->lo != byte))
                return -1;
            byte = e->lo;
        }
    }
    return byte;
}

/* The token that writes most of text[n], for which what follows the text does not
 * matter: where all of it begins longer tokens that may come, none is certain. -1:
 * none.
 */
static int32_t longest(struct machine *m, const char *text, uint32_t n,
                       uint32_t position, uint32_t *len)
{
    const struct grammar_vocab *v = m->v;
    uint32_t first = 0, end = v->n_nodes, depth = 0;
    int32_t id = -1;

    while (first < end && depth < n) {
        const struct trie_node *node = &v->nodes[first];

        if (node->byte != (uint8_t)text[depth]) {
            first = node->end;
            continue;
        }
        depth++;
        if (node->n_tokens) {
            id = v->tokens[node->token];
            *len = depth;
        }
        end = node->end;
        first++;
    }
    if (depth == n) {
        for (; first < end; first = v->nodes[first].end) {
            if (machine_after(m, position, v->nodes[first].byte) != POSITION_DEAD)
                return -1;
        }
    }
    return id;
}

int grammar_state_forced(struct grammar_state *s, int32_t *ids, int cap)
{
    struct machine *m = s->m;
    char text[MAX_FORCED];
    uint32_t n = 0, at = 0, position, len = 0;
    int n_ids = 0;

    if (s->ended || cap <= 0)
        return 0;
    pthread_mutex_lock(&m->lock);
    machine_make_room(m);
    position = s->position;
    for (int byte; n < MAX_FORCED && (byte = only_byte(m, position)) >= 0;) {
        position = machine_after(m, position, (uint8_t)byte);
        if (position == POSITION_DEAD)
            break;
        text[n++] = (char)byte;
    }
    while (at < n && n_ids < cap && position != POSITION_DEAD) {
        const int32_t id = longest(m, text + at, n - at, position, &len);

        if (id < 0)
            break;
        ids[n_ids++] = id;
        at += len;
    }
    pthread_mutex_unlock(&m->lock);
    return n_ids;
}

size_t grammar_state_bytes(const struct grammar_state *s)
{
    pthread_mutex_lock(&s->m->lock);
    const size_t bytes = machine_bytes(s->m);

    pthread_mutex_unlock(&s->m->lock);
    return bytes;
}
