/* SPDX-License-Identifier: MIT
 *
 * forward_experts.c - the routed feed-forward part: each token takes a few experts
 *
 * A *pair* is one token with one expert it takes, number token * n_used + slot.
 * Pairs are sorted by expert, and everything between the router and the sum of the
 * experts' outputs is in that order: an expert's input columns are contiguous, so that
 * its matrices are multiplied with all of them at once.
 */
#include "engine/forward/forward_impl.h"

#include <math.h>
#include <string.h>

/* Rows of the down matrices' products at a time; they are added at once. */
#define TILE_ROWS ROW_UNIT
#define TILE_COLS ((size_t)64)

/* The n_used highest of n scores (ties: the lower expert) and their shares in a softmax
 * over these, or over all. */
static void choose(const float *score, int n, int n_used, bool over_all, int *expert,
                   float *share)
{
    float sum = 0.0f;

    for (int slot = 0; slot < n_used; slot++) {
        int best = -1;

        for (int e = 0; e < n; e++) {
            bool taken = false;

            for (int s = 0; s < slot; s++)
                taken |= expert[s] == e;
            if (!taken && (best < 0 || score[e] > score[best]))
                best = e;
        }
        expert[slot] = best;
        share[slot] = expf(score[best] - score[expert[0]]);
        sum += share[slot];
    }
    if (over_all) {
        sum = 0.0f;
        for (int e = 0; e < n; e++)
            sum += expf(score[e] - score[expert[0]]);
    }
    for (int slot = 0; slot < n_used; slot++)
        share[slot] /= sum;
}

/* The share of the shared expert for token j. */
static void route_shared(struct forward *f, struct fwd_thread *me,
                         const struct layer *y, const struct columns *c, size_t j)
{
    float score;

    fwd_product(f, &y->shared_router, 0, 0, 1, 1,
                columns_at(c, y->shared_router.act, j), 0, &score, 0);
    f->shared_share[j] = 1.0f / (1.0f + expf(-score));
    fwd_count_product(me, SLM_OP_ROUTER, &y->shared_router, 1, 1);
}

static void route(struct forward *f, struct fwd_thread *me, const struct layer *y,
                  const struct columns *c)
{
    const int n_used = f->m->n_experts_used;
    const size_t stride = pad16((size_t)f->m->n_experts);

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < c->n;) {
        float *score = f->route + j * stride;

        fwd_product(f, &y->router, 0, 0, y->router.n_rows, 1,
                    columns_at(c, y->router.act, j), 0, score, 0);
        choose(score, f->m->n_experts, n_used, f->m->shares_of_all,
               f->expert + j * (size_t)n_used, f->share + j * (size_t)n_used);
        fwd_count_product(me, SLM_OP_ROUTER, &y->router, y->router.n_rows, 1);
        if (y->shared_router.n_rows)
            route_shared(f, me, y, c, j);
    }
    fwd_lap(me, SLM_OP_ROUTER, y->router.fmt);
    fwd_barrier(f, me, SLM_OP_ROUTER, y->router.fmt);
}

/* Counting sort of the pairs: those of expert e are pair[first[e]..first[e+1]); and the
 * list of experts with pairs. */
static void sort_pairs(const struct forward *f, struct fwd_thread *me)
{
    const int n_pairs = f->n * f->m->n_experts_used, n = f->m->n_experts;

    for (int e = 0; e <= n; e++)
        me->first[e] = 0;
    for (int p = 0; p < n_pairs; p++)
        me->first[f->expert[p] + 1]++;
    me->n_taken = 0;
    for (int e = 0; e < n; e++) {
        if (me->first[e + 1])
            me->taken[me->n_taken++] = e;
        me->first[e + 1] += me->first[e];
    }
    /* Filling moves first[e] to its end, which is the next one's start. */
    for (int p = 0; p < n_pairs; p++)
        me->pair[me->first[f->expert[p]]++] = p;
    for (int e = n; e > 0; e--)
        me->first[e] = me->first[e - 1];
    me->first[0] = 0;
}

/* The tokens' columns in the order of sorted pairs. A single token's column is shared.
 */
static struct columns line_up(struct forward *f, struct fwd_thread *me,
                              const struct layer *y, const struct columns *tokens)
{
    const uint32_t act_mask = act_bit(&y->gate) | act_bit(&y->up);
    const size_t n_pairs = tokens->n * (size_t)f->m->n_experts_used;
    struct columns c = *tokens;

    c.n = n_pairs;
    if (tokens->n == 1) {
        memset(c.stride, 0, sizeof c.stride);
        return c;
    }
    for (size_t i; (i = thread_pool_next(f->pool, 1)) < n_pairs;) {
        const size_t token = (size_t)(me->pair[i] / f->m->n_experts_used);

        for (int a = 0; a < KERN_N_ACT; a++)
            if (act_mask & 1u << a)
                memcpy(f->routed[a] + i * c.stride[a],
                       columns_at(tokens, (enum kern_act)a, token), c.stride[a]);
    }
    for (int a = 0; a < KERN_N_ACT; a++)
        c.x[a] = f->routed[a];
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
    return c;
}

/* gate and up rows begin..end-1 of one expert for all its pairs. */
static void expand(struct forward *f, struct fwd_thread *me, const struct layer *y,
                   int expert, const struct columns *c, size_t begin, size_t end)
{
    const size_t stride = pad16((size_t)f->m->n_ff), s = (size_t)expert;
    const size_t i = (size_t)me->first[expert];
    const size_t n = (size_t)me->first[expert + 1] - i;
    float *gate = f->gate + i * stride + begin, *up = f->up + i * stride + begin;

    fwd_product(f, &y->gate, s, begin, end, n, columns_at(c, y->gate.act, i),
                c->stride[y->gate.act], gate, stride);
    fwd_product(f, &y->up, s, begin, end, n, columns_at(c, y->up.act, i),
                c->stride[y->up.act], up, stride);
    for (size_t j = 0; j < n; j++)
        fwd_activate(f, gate + j * stride, gate + j * stride, up + j * stride,
                     end - begin);
    fwd_count_product(me, SLM_OP_GATE_UP, &y->gate, end - begin, n);
    fwd_count_product(me, SLM_OP_GATE_UP, &y->up, end - begin, n);
}

/* The same for the shared expert. */
static void expand_shared(struct forward *f, struct fwd_thread *me,
                          const struct layer *y, const struct columns *c, size_t begin,
                          size_t end)
{
    const size_t stride = pad16((size_t)f->m->n_ff_shared);
    float *gate = f->shared_gate + begin, *up = f->shared_up + begin;

    fwd_product(f, &y->shared_gate, 0, begin, end, c->n, c->x[y->shared_gate.act],
                c->stride[y->shared_gate.act], gate, stride);
    fwd_product(f, &y->shared_up, 0, begin, end, c->n, c->x[y->shared_up.act],
                c->stride[y->shared_up.act], up, stride);
    for (size_t j = 0; j < c->n; j++)
        fwd_activate(f, gate + j * stride, gate + j * stride, up + j * stride,
                     end - begin);
    fwd_count_product(me, SLM_OP_GATE_UP, &y->shared_gate, end - begin, c->n);
    fwd_count_product(me, SLM_OP_GATE_UP, &y->shared_up, end - begin, c->n);
}

static void expand_all(struct forward *f, struct fwd_thread *me, const struct layer *y,
                       const struct columns *pairs, const struct columns *tokens)
{
    const size_t n_ff = (size_t)f->m->n_ff, each = pad_rows(n_ff);
    const size_t n_shared = (size_t)f->m->n_ff_shared;
    const size_t routed = each * (size_t)me->n_taken;

    /* Rows of all experts in use as one range; those of the shared expert last. */
    struct fwd_rows rows = fwd_rows_of(f, routed + pad_rows(n_shared));

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        while (begin < end && begin < routed) {
            const size_t base = begin / each * each; /* of this expert's rows */
            const size_t to = end < base + each ? end - base : each;

            if (begin - base < n_ff)
                expand(f, me, y, me->taken[begin / each], pairs, begin - base,
                       to < n_ff ? to : n_ff);
            begin = base + to;
        }
        if (begin < end && begin - routed < n_shared)
            expand_shared(f, me, y, tokens, begin - routed,
                          end - routed < n_shared ? end - routed : n_shared);
    }
    fwd_lap(me, SLM_OP_GATE_UP, y->gate.fmt);
    fwd_barrier(f, me, SLM_OP_GATE_UP, y->gate.fmt);
}

/* Rows begin..end-1, at most TILE_ROWS, of x += share * down * h for all pairs of one
 * expert. */
static void contract(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     int expert, const struct columns *c, size_t begin, size_t end)
{
    const size_t stride = pad16((size_t)f->m->n_embd);
    const size_t last = (size_t)me->first[expert + 1];
    float part[TILE_COLS * TILE_ROWS];

    for (size_t i = (size_t)me->first[expert]; i < last; i += TILE_COLS) {
        const size_t n = last - i < TILE_COLS ? last - i : TILE_COLS;

        fwd_product(f, &y->down, (size_t)expert, begin, end, n,
                    columns_at(c, y->down.act, i), c->stride[y->down.act], part,
                    TILE_ROWS);
        for (size_t j = 0; j < n; j++) {
            const int pair = me->pair[i + j];
            const float share = f->share[pair];
            float *x = f->x + (size_t)(pair / f->m->n_experts_used) * stride;

            for (size_t r = begin; r < end; r++)
                x[r] += share * part[j * TILE_ROWS + r - begin];
        }
    }
    fwd_count_product(me, SLM_OP_DOWN, &y->down, end - begin,
                      last - (size_t)me->first[expert]);
}

static void contract_all(struct forward *f, struct fwd_thread *me,
                         const struct layer *y, const struct columns *c)
{
    struct fwd_rows rows = fwd_rows_of(f, y->down.n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);)
        for (; begin < end; begin += TILE_ROWS)
            for (int t = 0; t < me->n_taken; t++)
                contract(f, me, y, me->taken[t], c, begin,
                         begin + TILE_ROWS < end ? begin + TILE_ROWS : end);
    fwd_lap(me, SLM_OP_DOWN, y->down.fmt);
    fwd_barrier(f, me, SLM_OP_DOWN, y->down.fmt);
}

/* x += share * down * h of the shared expert. */
static void add_shared(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n_ff = (size_t)f->m->n_ff_shared;
    const size_t stride = pad16((size_t)f->m->n_embd);

    if (f->hook)
        fwd_hook_rows(f, me, &y->shared_down, f->shared_gate, pad16(n_ff), (size_t)f->n,
                      NULL);

    const struct columns c =
        fwd_prepare(f, me, f->shared_gate, pad16(n_ff), (size_t)f->n, n_ff, NULL,
                    act_bit(&y->shared_down));
    struct fwd_rows rows = fwd_rows_of(f, y->shared_down.n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        fwd_product(f, &y->shared_down, 0, begin, end, c.n, c.x[y->shared_down.act],
                    c.stride[y->shared_down.act], f->y + begin, stride);
        for (size_t j = 0; j < c.n; j++)
            for (size_t r = begin; r < end; r++)
                f->x[j * stride + r] += f->shared_share[j] * f->y[j * stride + r];
        fwd_count_product(me, SLM_OP_DOWN, &y->shared_down, end - begin, c.n);
    }
    fwd_lap(me, SLM_OP_DOWN, y->shared_down.fmt);
    fwd_barrier(f, me, SLM_OP_DOWN, y->shared_down.fmt);
}

void fwd_experts(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n = (size_t)f->n, n_embd = (size_t)f->m->n_embd;
    const size_t n_ff = (size_t)f->m->n_ff;
    const bool shared = f->m->n_ff_shared > 0;
    uint32_t act_mask = act_bit(&y->router) | act_bit(&y->gate) | act_bit(&y->up);

    if (shared)
        act_mask |= act_bit(&y->shared_router) | act_bit(&y->shared_gate) |
                    act_bit(&y->shared_up);
    const struct columns tokens =
        fwd_prepare(f, me, f->x, pad16(n_embd), n, n_embd, &y->ffn_norm, act_mask);

    route(f, me, y, &tokens);
    sort_pairs(f, me);
    fwd_lap(me, SLM_OP_ROUTER, y->router.fmt);
    if (f->hook) {
        fwd_hook_pairs(f, me, &y->gate, &y->ffn_norm);
        fwd_hook_pairs(f, me, &y->up, &y->ffn_norm);
        if (shared) {
            fwd_hook_rows(f, me, &y->shared_gate, f->x, pad16(n_embd), n, &y->ffn_norm);
            fwd_hook_rows(f, me, &y->shared_up, f->x, pad16(n_embd), n, &y->ffn_norm);
        }
    }
    const struct columns pairs = line_up(f, me, y, &tokens);

    expand_all(f, me, y, &pairs, &tokens);
    if (f->hook)
        fwd_hook_pairs(f, me, &y->down, NULL);
    const struct columns c =
        fwd_prepare(f, me, f->gate, pad16(n_ff), n * (size_t)f->m->n_experts_used, n_ff,
                    NULL, act_bit(&y->down));

    contract_all(f, me, y, &c);
    if (shared)
        add_shared(f, me, y);
}
