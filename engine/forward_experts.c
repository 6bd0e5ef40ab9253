/* SPDX-License-Identifier: MIT
 *
 * forward_experts.c - the routed feed-forward part: each token takes a few experts
 *
 * A *pair* is one token with one expert it takes, number token * n_used + slot.
 * Pairs are sorted by expert, so that a run of an expert's rows is read from
 * memory once and used, from cache, for all tokens that take it.
 */
#include "engine/forward_impl.h"

#include <math.h>

/* Rows of an expert taken through all its pairs before the next ones. */
#define ROWS ROW_UNIT

/* The n_used highest scores (ties: the lower expert) and their softmax. */
static void choose(const float *score, int n, int n_used, int *expert, float *share)
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
    for (int slot = 0; slot < n_used; slot++)
        share[slot] /= sum;
}

static void route(struct forward *f, struct fwd_member *me, const struct layer *y,
                  const struct columns *c)
{
    const int n_used = f->m->n_experts_used;
    const size_t stride = pad16((size_t)f->m->n_experts);

    for (size_t j; (j = team_next(f->team, 1)) < c->n;) {
        float *score = f->route + j * stride;

        fwd_product(f, &y->router, 0, 0, y->router.n_rows, 1,
                    columns_at(c, y->router.act, j), 0, score, 0);
        choose(score, f->m->n_experts, n_used, f->expert + j * (size_t)n_used,
               f->share + j * (size_t)n_used);
        fwd_count_product(me, SLM_OP_ROUTER, &y->router, y->router.n_rows, 1);
    }
    fwd_lap(me, SLM_OP_ROUTER, y->router.fmt);
    fwd_barrier(f, me, SLM_OP_ROUTER, y->router.fmt);
}

/* Counting sort of the pairs: those of expert e are pair[first[e]..first[e+1]). */
static void sort_pairs(const struct forward *f, struct fwd_member *me)
{
    const int n_pairs = f->n * f->m->n_experts_used, n = f->m->n_experts;

    for (int e = 0; e <= n; e++)
        me->first[e] = 0;
    for (int p = 0; p < n_pairs; p++)
        me->first[f->expert[p] + 1]++;
    for (int e = 0; e < n; e++)
        me->first[e + 1] += me->first[e];
    /* Filling moves first[e] to its end, which is the next one's start. */
    for (int p = 0; p < n_pairs; p++)
        me->pair[me->first[f->expert[p]]++] = p;
    for (int e = n; e > 0; e--)
        me->first[e] = me->first[e - 1];
    me->first[0] = 0;
}

/* gate and up rows begin..end-1 of one expert for all its pairs. */
static void expand(struct forward *f, struct fwd_member *me, const struct layer *y,
                   int expert, const struct columns *c, size_t begin, size_t end)
{
    const size_t stride = pad16((size_t)f->m->n_ff);

    for (int i = me->first[expert]; i < me->first[expert + 1]; i++) {
        const size_t pair = (size_t)me->pair[i];
        const size_t token = pair / (size_t)f->m->n_experts_used;
        float *gate = f->gate + pair * stride + begin;
        float *up = f->up + pair * stride + begin;

        fwd_product(f, &y->gate, (size_t)expert, begin, end, 1,
                    columns_at(c, y->gate.act, token), 0, gate, 0);
        fwd_product(f, &y->up, (size_t)expert, begin, end, 1,
                    columns_at(c, y->up.act, token), 0, up, 0);
        f->kern.silu_mul(gate, gate, up, end - begin);
        fwd_count_product(me, SLM_OP_GATE_UP, &y->gate, end - begin, 1);
        fwd_count_product(me, SLM_OP_GATE_UP, &y->up, end - begin, 1);
    }
}

static void expand_all(struct forward *f, struct fwd_member *me, const struct layer *y,
                       const struct columns *c)
{
    const size_t n_ff = (size_t)f->m->n_ff, each = pad_rows(n_ff);
    const size_t total = each * (size_t)f->m->n_experts;

    /* Rows of all experts in one run; those that nobody takes cost nothing. */
    for (size_t begin; (begin = team_next(f->team, ROWS)) < total;) {
        const size_t row = begin % each;

        expand(f, me, y, (int)(begin / each), c, row,
               row + ROWS < n_ff ? row + ROWS : n_ff);
    }
    fwd_lap(me, SLM_OP_GATE_UP, y->gate.fmt);
    fwd_barrier(f, me, SLM_OP_GATE_UP, y->gate.fmt);
}

/* Rows begin..end-1 of x += sum over experts of share * down * h. */
static void contract(struct forward *f, struct fwd_member *me, const struct layer *y,
                     const struct columns *c, size_t begin, size_t end)
{
    const size_t stride = pad16((size_t)f->m->n_embd);

    for (int e = 0; e < f->m->n_experts; e++)
        for (int i = me->first[e]; i < me->first[e + 1]; i++) {
            const size_t pair = (size_t)me->pair[i];
            float *x = f->x + pair / (size_t)f->m->n_experts_used * stride;
            float part[ROWS];

            fwd_product(f, &y->down, (size_t)e, begin, end, 1,
                        columns_at(c, y->down.act, pair), 0, part, 0);
            for (size_t r = begin; r < end; r++)
                x[r] += f->share[pair] * part[r - begin];
            fwd_count_product(me, SLM_OP_DOWN, &y->down, end - begin, 1);
        }
}

void fwd_experts(struct forward *f, struct fwd_member *me, const struct layer *y)
{
    const size_t n = (size_t)f->n, n_embd = (size_t)f->m->n_embd;
    const size_t n_ff = (size_t)f->m->n_ff;
    struct columns c =
        fwd_prepare(f, me, f->x, pad16(n_embd), n, n_embd, y->ffn_norm,
                    act_bit(&y->router) | act_bit(&y->gate) | act_bit(&y->up));

    route(f, me, y, &c);
    sort_pairs(f, me);
    fwd_lap(me, SLM_OP_ROUTER, y->router.fmt);
    expand_all(f, me, y, &c);
    c = fwd_prepare(f, me, f->gate, pad16(n_ff), n * (size_t)f->m->n_experts_used, n_ff,
                    NULL, act_bit(&y->down));
    for (size_t begin; (begin = team_next(f->team, ROWS)) < n_embd;)
        contract(f, me, y, &c, begin, begin + ROWS < n_embd ? begin + ROWS : n_embd);
    fwd_lap(me, SLM_OP_DOWN, y->down.fmt);
    fwd_barrier(f, me, SLM_OP_DOWN, y->down.fmt);
}
