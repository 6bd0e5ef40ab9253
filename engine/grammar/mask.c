/* SPDX-License-Identifier: MIT
 *
 * mask.c - which tokens may come next, by walks through the vocabulary's tree
 */
#include "engine/grammar/machine.h"

#include <stdlib.h>
#include <string.h>

/* Configurations of a position that take as long as a node of the tree. */
#define CONFIGS_OF_NODE 8

void token_set_free(struct token_set *t)
{
    if (!t)
        return;
    free(t->words);
    free(t->ids);
    free(t->returns);
    free(t);
}

static size_t n_words(const struct machine *m)
{
    return GRAMMAR_MASK_WORDS(m->v->n_vocab);
}

/* ---- m->words ------------------------------------------------------------
 *
 * Empty between two sets. As long as no more than n_words bits are set they are listed
 * in m->marked, so that small sets take little time in a large vocabulary. */

static void add_tokens(struct machine *m, const struct trie_node *node)
{
    const size_t n = n_words(m);

    for (uint32_t i = node->token; i < node->token + node->n_tokens; i++) {
        const uint32_t id = (uint32_t)m->v->tokens[i];
        const uint32_t bit = (uint32_t)1 << id % 32;

        if (m->words[id / 32] & bit)
            continue;
        m->words[id / 32] |= bit;
        if (m->n_marked < n)
            m->marked[m->n_marked] = id;
        m->n_marked += m->n_marked <= n;
    }
}

static void empty_words(struct machine *m)
{
    const size_t n = n_words(m);

    if (m->n_marked > n)
        memset(m->words, 0, n * sizeof *m->words);
    else
        for (uint32_t i = 0; i < m->n_marked; i++)
            m->words[m->marked[i] / 32] = 0;
    m->n_marked = 0;
}

/* Bits were set or cleared that are not listed. */
static void mark_all(struct machine *m)
{
    m->n_marked = (uint32_t)n_words(m) + 1;
}

/* ---- walks ----------------------------------------------------------------------- */

/* Add the tokens below a node (first .. end are the nodes below it, whose depth is
 * `depth`) that can be taken from a position, those of at most `shorter` bytes left
 * out; note in m->returns[*n_returns] where FRAME_BASE is left. Returns the work,
 * in nodes. After m->max_work only tokens of one byte are added, so that whatever may
 * come can still be begun. */
static uint64_t walk(struct machine *m, uint32_t position, uint32_t first, uint32_t end,
                     uint32_t depth, uint32_t shorter, uint32_t *n_returns)
{
    const struct grammar_vocab *v = m->v;
    const uint64_t most = m->max_work;
    uint32_t at[TOKEN_MAX_BYTES + 1], top = end; /* the node after those of one byte */
    uint64_t work = 0;

    at[0] = position;
    for (uint32_t i = first; i < end; work++) {
        const struct trie_node *node = &v->nodes[i];
        const uint32_t d = node->depth - depth;

        if (d == 0)
            top = node->end;
        if (d > 0 && work > most) {
            i = top;
            continue;
        }
        if (node->longest <= shorter) {
            i = node->end;
            continue;
        }
        work += m->positions[at[d]].n_configs / CONFIGS_OF_NODE;
        const uint32_t next = machine_after(m, at[d], node->byte);

        if (next == POSITION_DEAD) {
            i = node->end;
            continue;
        }
        const struct position *p = &m->positions[next];

        if (node->depth >= shorter) {
            if (node->n_tokens)
                add_tokens(m, node);
            if ((p->flags & POSITION_RETURNS) && node->end > i + 1)
                m->returns[(*n_returns)++] = i;
        }
        at[d + 1] = next;
        i = p->n_configs > 0 && work <= most ? i + 1 : node->end;
    }
    return work;
}

/* Lists what m->words holds where that is little; false: no memory. */
static bool list_words(const struct machine *m, struct token_set *t, uint32_t n_ids)
{
    const size_t n = n_words(m);

    t->ids = malloc((n_ids + 1) * sizeof *t->ids);
    if (!t->ids)
        return false;
    if (m->n_marked <= n) {
        memcpy(t->ids, m->marked, n_ids * sizeof *t->ids);
        t->n_ids = n_ids;
        return true;
    }
    for (size_t i = 0; i < n; i++)
        for (uint32_t w = m->words[i]; w != 0; w &= w - 1)
            t->ids[t->n_ids++] = (uint32_t)i * 32 + (uint32_t)__builtin_ctz(w);
    return true;
}

static bool copy_words(const struct machine *m, struct token_set *t)
{
    t->words = malloc(n_words(m) * sizeof *t->words);
    if (t->words)
        memcpy(t->words, m->words, n_words(m) * sizeof *t->words);
    return t->words != NULL;
}

static bool copy_returns(const struct machine *m, struct token_set *t, uint32_t n)
{
    if (n == 0)
        return true;
    t->returns = malloc(n * sizeof *t->returns);
    if (t->returns)
        memcpy(t->returns, m->returns, n * sizeof *t->returns);
    t->n_returns = n;
    return t->returns != NULL;
}

static uint32_t count_words(const struct machine *m)
{
    const size_t n = n_words(m);
    uint32_t n_ids = 0;

    if (m->n_marked <= n)
        return m->n_marked;
    for (size_t i = 0; i < n; i++)
        n_ids += (uint32_t)__builtin_popcount(m->words[i]);
    return n_ids;
}

/* What m->words holds, which is emptied. */
static struct token_set *take_words(struct machine *m, uint32_t n_returns)
{
    struct token_set *t = calloc(1, sizeof *t);
    const uint32_t n_ids = count_words(m);
    bool ok = t != NULL;

    if (ok)
        t->all = n_ids == m->v->n_tokens;
    if (ok)
        ok = n_ids < n_words(m) ? list_words(m, t, n_ids) : copy_words(m, t);
    ok = ok && copy_returns(m, t, n_returns);
    empty_words(m);
    if (!ok) {
        token_set_free(t);
        m->failed = true;
        return NULL;
    }
    m->mask_bytes += sizeof *t + n_returns * sizeof *t->returns +
                     (t->words ? n_words(m) : n_ids) * sizeof *t->ids;
    return t;
}

static void add_set(const struct token_set *t, uint32_t *words, size_t n)
{
    for (size_t i = 0; t->words && i < n; i++)
        words[i] |= t->words[i];
    for (uint32_t i = 0; i < t->n_ids; i++)
        words[t->ids[i] / 32] |= (uint32_t)1 << t->ids[i] % 32;
}

static const struct token_set *local_tokens(struct machine *m, uint32_t position);

/* The same configuration with any number of turns left, where there are at most *left
 * of its innermost repetition, none of them due; else UNKNOWN. */
static uint32_t without_limit(struct machine *m, uint32_t position, uint32_t *left)
{
    struct config c = m->configs[m->positions[position].config];
    struct frame f = m->frames[c.frame];

    if (f.node == FRAME_CALL || f.min > 0 || f.max == NO_LIMIT ||
        m->links[f.link].frame != FRAME_BASE)
        return UNKNOWN;
    *left = f.max;
    f.max = NO_LIMIT;
    c.frame = frame_number(m, f, &(struct link){0, FRAME_BASE});
    return machine_single(m, c);
}

/* Tokens of at most as many bytes as turns are left do not meet the limit: these are
 * taken from the configuration without it, and only the others are tried. */
static uint64_t add_limited(struct machine *m, uint32_t position, uint32_t twin,
                            uint32_t left, uint32_t *n_returns)
{
    const struct grammar_vocab *v = m->v;
    const struct token_set *all = local_tokens(m, twin);

    if (!all)
        return 0;
    add_set(all, m->words, n_words(m));
    mark_all(m);
    for (uint32_t i = 0; i < v->n_longer[left]; i++)
        m->words[v->by_length[i] / 32] &= ~((uint32_t)1 << v->by_length[i] % 32);
    for (uint32_t i = 0; i < all->n_returns; i++) {
        if (v->nodes[all->returns[i]].depth < left)
            m->returns[(*n_returns)++] = all->returns[i];
    }
    return all->work + walk(m, position, 0, v->n_nodes, 0, left, n_returns);
}

/* Tokens of one configuration that stay in its innermost call. m->words is empty. */
static const struct token_set *local_tokens(struct machine *m, uint32_t position)
{
    if (!m->positions[position].local) {
        uint32_t n_returns = 0, left = 0;
        const uint32_t twin = without_limit(m, position, &left);
        const uint64_t work =
            twin != UNKNOWN ? add_limited(m, position, twin, left, &n_returns)
                            : walk(m, position, 0, m->v->n_nodes, 0, 0, &n_returns);
        struct token_set *t = take_words(m, n_returns);

        if (!t)
            return NULL;
        t->work = work;
        m->positions[position].local = t;
    }
    return m->positions[position].local;
}

/* Tokens that continue after the call has returned. */
static uint64_t add_returns(struct machine *m, const struct token_set *local,
                            uint32_t call)
{
    const struct trie_node *nodes = m->v->nodes;
    const uint32_t after = machine_return(m, call);
    uint64_t work = 0;
    uint32_t none = 0;

    if (after == POSITION_DEAD)
        return 0;
    for (uint32_t i = 0; i < local->n_returns && work <= m->max_work; i++) {
        const uint32_t node = local->returns[i];

        work +=
            walk(m, after, node + 1, nodes[node].end, nodes[node].depth + 1u, 0, &none);
    }
    return work;
}

/* Tokens of one configuration of a view. Returns the work; *t is what is to be added
 * besides, if any. */
static uint64_t add_config(struct machine *m, struct config c,
                           const struct token_set **t)
{
    uint32_t call, none = 0;
    const uint32_t local = machine_local(m, c, &call);

    *t = NULL;
    if (local == UNKNOWN) {
        const uint32_t single = machine_single(m, c);

        return single == UNKNOWN ? 0 : walk(m, single, 0, m->v->n_nodes, 0, 0, &none);
    }
    *t = local_tokens(m, local);
    return *t ? (*t)->work + add_returns(m, *t, call) : 0;
}

/* What m->words holds is added, and m->words emptied. */
static void add_words(struct machine *m, uint32_t *all)
{
    const size_t n = n_words(m);

    if (m->n_marked <= n)
        for (uint32_t i = 0; i < m->n_marked; i++)
            all[m->marked[i] / 32] |= m->words[m->marked[i] / 32];
    else
        for (size_t k = 0; k < n; k++)
            all[k] |= m->words[k];
    empty_words(m);
}

const struct token_set *machine_mask(struct machine *m, uint32_t position)
{
    const uint32_t view = machine_view(m, position);
    const size_t n = n_words(m);
    uint64_t work = 0;
    uint32_t *all;

    if (view == UNKNOWN)
        return NULL;
    if (m->positions[view].mask)
        return m->positions[view].mask;
    all = calloc(n, sizeof *all);
    if (!all) {
        m->failed = true;
        return NULL;
    }
    for (uint32_t i = 0; i < m->positions[view].n_configs && work <= m->max_work; i++) {
        const struct token_set *t;

        work += add_config(m, m->configs[m->positions[view].config + i], &t);
        add_words(m, all);
        if (t)
            add_set(t, all, n);
    }
    memcpy(m->words, all, n * sizeof *all);
    mark_all(m);
    free(all);
    m->positions[view].mask = m->failed ? NULL : take_words(m, 0);
    if (m->positions[view].mask)
        m->positions[view].mask->work = work;
    if (m->failed)
        empty_words(m);
    return m->positions[view].mask;
}
