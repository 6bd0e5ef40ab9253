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

/* Rows and columns of the down matrices' products at a time, which are added at once:
 * four panels, which kernels process together. Of a single token it is as many rows as
 * have room. */
#define TILE_ROWS ((size_t)4 * KERN_PANEL_ROWS)
#define TILE_COLS ((size_t)64)

/* Tokens that are multiplied with a router at a time. */
#define ROUTE_COLS ((size_t)16)

/* The n_used highest of n scores, highest first (ties: the lower expert). */
static void take_highest(const float *score, int n, int n_used, int *expert)
{
    for (int e = 0; e < n; e++) {
        int at = e < n_used ? e : n_used;

        while (at > 0 && score[e] > score[expert[at - 1]]) {
            if (at < n_used)
                expert[at] = expert[at - 1];
            at--;
        }
        if (at < n_used)
            expert[at] = e;
    }
}

/* Only the best groups of experts remain to be chosen from: those whose two best are
 * best together. */
static void choose_groups(const struct model *m, float *choice)
{
    const int n = m->n_experts / m->n_expert_groups;
    float score[MODEL_MAX_EXPERT_GROUPS];
    int group[MODEL_MAX_EXPERT_GROUPS];
    bool taken[MODEL_MAX_EXPERT_GROUPS] = {false};

    for (int g = 0; g < m->n_expert_groups; g++) {
        int two[2] = {0, 0};

        take_highest(choice + g * n, n, n < 2 ? n : 2, two);
        score[g] = choice[g * n + two[0]] + (n < 2 ? 0.0f : choice[g * n + two[1]]);
    }
    take_highest(score, m->n_expert_groups, m->n_expert_groups_used, group);
    for (int i = 0; i < m->n_expert_groups_used; i++)
        taken[group[i]] = true;
    for (int e = 0; e < m->n_experts; e++)
        if (!taken[e / n])
            choice[e] = -INFINITY;
}

/* What the router's score gives an expert; max_score: the highest of them. */
static float odds_of(const struct model *m, float score, float max_score)
{
    return m->odds == ODDS_SIGMOID ? 1.0f / (1.0f + expf(-score * m->router_scale))
                                   : expf((score - max_score) * m->router_scale);
}

/* What experts are chosen by if not by their scores: their odds, all of which sum up to
 * `all`, with the layer's bias, of the best groups. */
static const float *make_choice(const struct model *m, struct fwd_thread *me,
                                const struct layer *y, const float *score,
                                float max_score, float all)
{
    for (int e = 0; e < m->n_experts; e++)
        me->choice[e] = odds_of(m, score[e], max_score) / all +
                        (y->b_choice ? y->b_choice[e] : 0.0f);
    if (m->n_expert_groups > 1)
        choose_groups(m, me->choice);
    return me->choice;
}

/* The experts chosen by the scores of a router, best first, and their shares of the
 * odds of those taken, or of all. */
static void choose(const struct model *m, struct fwd_thread *me, const struct layer *y,
                   const float *score, int *expert, float *share)
{
    const int n = m->n_experts, n_used = m->n_experts_used;
    const bool by_odds = y->b_choice || m->n_expert_groups > 1;
    float max_score = score[0], all = 0.0f, sum = 0.0f;

    for (int e = 1; e < n; e++)
        max_score = score[e] > max_score ? score[e] : max_score;
    for (int e = 0; m->odds == ODDS_SOFTMAX && (by_odds || m->shares_of_all) && e < n;
         e++)
        all += odds_of(m, score[e], max_score);
    if (m->odds == ODDS_SIGMOID)
        all = 1.0f;
    take_highest(by_odds ? make_choice(m, me, y, score, max_score, all) : score, n,
                 n_used, expert);
    for (int slot = 0; slot < n_used; slot++) {
        share[slot] = odds_of(m, score[expert[slot]], max_score);
        sum += share[slot];
    }
    for (int slot = 0; slot < n_used; slot++)
        share[slot] = share[slot] / (m->shares_of_all ? all : sum) * m->expert_scale *
                      m->residual_scale;
}

/* The shares of the shared expert for n tokens from j on, n <= ROUTE_COLS. */
static void route_shared(struct forward *f, struct fwd_thread *me,
                         const struct layer *y, const struct columns *c, size_t j,
                         size_t n)
{
    const struct matrix *w = &y->shared_router;
    float score[ROUTE_COLS];

    fwd_product(f, w, 0, 0, 1, n, columns_at(c, w->act, j), c->stride[w->act], score,
                1);
    for (size_t i = 0; i < n; i++)
        f->shared_share[j + i] = 1.0f / (1.0f + expf(-score[i]));
    fwd_count_product(me, SLM_OP_ROUTER, w, 1, n);
}

/* A single token: the router's rows are divided among the threads, and after a barrier
 * each chooses the experts for itself. */
static void route_one(struct forward *f, struct fwd_thread *me, const struct layer *y,
                      const struct columns *c)
{
    const struct matrix *w = &y->router;
    const size_t routed = pad_rows(w->n_rows);
    const size_t shared = y->shared_router.n_rows ? ROW_UNIT : 0;
    struct fwd_rows rows = fwd_rows_of(f, routed + shared);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        const size_t to = end < w->n_rows ? end : w->n_rows;

        if (begin < to) {
            fwd_biased_product(f, me, SLM_OP_ROUTER, w, y->b_router, begin, to, c,
                               f->route, 0);
        }
        if (begin <= routed && end > routed)
            route_shared(f, me, y, c, 0, 1);
    }
    fwd_lap(me, SLM_OP_ROUTER, w->fmt);
    fwd_barrier(f, me, SLM_OP_ROUTER, w->fmt);
    choose(f->m, me, y, f->route, me->own_expert, me->own_share);
    me->expert = me->own_expert;
    me->share = me->own_share;
}

/* Several tokens are divided among the threads. */
static void route_several(struct forward *f, struct fwd_thread *me,
                          const struct layer *y, const struct columns *c)
{
    const struct matrix *w = &y->router;
    const size_t stride = pad16((size_t)f->m->n_experts);
    const size_t n_used = (size_t)f->m->n_experts_used;
    const size_t even = c->n / (2 * (size_t)thread_pool_size(f->pool)) + 1;
    const size_t most = even < ROUTE_COLS ? even : ROUTE_COLS;

    for (size_t j; (j = thread_pool_next(f->pool, most)) < c->n;) {
        const size_t n = c->n - j < most ? c->n - j : most;

        fwd_product(f, w, 0, 0, w->n_rows, n, columns_at(c, w->act, j),
                    c->stride[w->act], f->route + j * stride, stride);
        fwd_count_product(me, SLM_OP_ROUTER, w, w->n_rows, n);
        for (size_t i = j; i < j + n; i++) {
            if (y->b_router)
                f->kern.add(f->route + i * stride, y->b_router, w->n_rows);
            choose(f->m, me, y, f->route + i * stride, f->expert + i * n_used,
                   f->share + i * n_used);
        }
        if (y->shared_router.n_rows)
            route_shared(f, me, y, c, j, n);
    }
    fwd_lap(me, SLM_OP_ROUTER, w->fmt);
    fwd_barrier(f, me, SLM_OP_ROUTER, w->fmt);
    me->expert = f->expert;
    me->share = f->share;
}

/* Counting sort of the pairs: those of expert e are pair[first[e]..first[e+1]); and the
 * list of experts with pairs. */
static void sort_pairs(const struct forward *f, struct fwd_thread *me)
{
    const int n_pairs = f->n * f->m->n_experts_used, n = f->m->n_experts;

    for (int e = 0; e <= n; e++)
        me->first[e] = 0;
    for (int p = 0; p < n_pairs; p++)
        me->first[me->expert[p] + 1]++;
    me->n_taken = 0;
    for (int e = 0; e < n; e++) {
        if (me->first[e + 1])
            me->taken[me->n_taken++] = e;
        me->first[e + 1] += me->first[e];
    }
    /* Filling moves first[e] to its end, which is the next one's start. */
    for (int p = 0; p < n_pairs; p++)
        me->pair[me->first[me->expert[p]]++] = p;
    for (int e = n; e > 0; e--)
        me->first[e] = me->first[e - 1];
    me->first[0] = 0;
}

/* Cached experts that are not in memory are asked for, and computed last. */
static void fetch(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    me->order = me->taken;
    if (!y->up.places)
        return;
    if (me == f->threads) {
        for (int i = 0; i < me->n_taken; i++)
            f->n_uses[i] = me->first[me->taken[i] + 1] - me->first[me->taken[i]];
        weights_take_experts(f->weights, (int)(y - f->m->layers), me->taken, f->n_uses,
                             me->n_taken, f->order);
    }
    fwd_lap(me, SLM_OP_ROUTER, y->router.fmt);
    fwd_barrier(f, me, SLM_OP_ROUTER, y->router.fmt);
    me->order = f->order;
}

/* The tokens' columns in the order of sorted pairs. A single token's column is shared.
 */
static struct columns line_up(struct forward *f, struct fwd_thread *me,
                              const struct layer *y, const struct columns *tokens)
{
    const uint32_t act_mask = act_bit(f, &y->gate) | act_bit(f, &y->up);
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
    const size_t n_ff = y->up.n_rows, stride = pad16(n_ff), s = (size_t)expert;
    const size_t i = (size_t)me->first[expert];
    const size_t n = (size_t)me->first[expert + 1] - i;
    const bool gated = y->gate.n_rows > 0;
    float *gate = f->gate + i * stride + begin;
    float *up = gated ? f->up + i * stride + begin : gate;

    if (gated)
        fwd_columns_product(f, &y->gate, s, begin, end, n, c, i, gate, stride);
    fwd_columns_product(f, &y->up, s, begin, end, n, c, i, up, stride);
    for (size_t j = 0; j < n; j++) {
        if (y->b_gate)
            f->kern.add(gate + j * stride, y->b_gate + s * n_ff + begin, end - begin);
        if (y->b_up)
            f->kern.add(up + j * stride, y->b_up + s * n_ff + begin, end - begin);
        fwd_activate(f, y, gate + j * stride, gated ? up + j * stride : NULL,
                     end - begin);
    }
    if (gated)
        fwd_count_product(me, SLM_OP_GATE_UP, &y->gate, end - begin, n);
    fwd_count_product(me, SLM_OP_GATE_UP, &y->up, end - begin, n);
}

/* The same for the shared expert. */
static void expand_shared(struct forward *f, struct fwd_thread *me,
                          const struct layer *y, const struct columns *c, size_t begin,
                          size_t end)
{
    const size_t stride = pad16((size_t)f->m->n_ff_shared);
    const bool gated = y->shared_gate.n_rows > 0;
    float *gate = f->shared_gate + begin, *up = gated ? f->shared_up + begin : gate;

    if (gated)
        fwd_columns_product(f, &y->shared_gate, 0, begin, end, c->n, c, 0, gate,
                            stride);
    fwd_columns_product(f, &y->shared_up, 0, begin, end, c->n, c, 0, up, stride);
    for (size_t j = 0; j < c->n; j++)
        fwd_activate(f, y, gate + j * stride, gated ? up + j * stride : NULL,
                     end - begin);
    if (gated)
        fwd_count_product(me, SLM_OP_GATE_UP, &y->shared_gate, end - begin, c->n);
    fwd_count_product(me, SLM_OP_GATE_UP, &y->shared_up, end - begin, c->n);
}

static void expand_all(struct forward *f, struct fwd_thread *me, const struct layer *y,
                       const struct columns *pairs, const struct columns *tokens)
{
    const size_t n_ff = y->up.n_rows, each = pad_rows(n_ff);
    const size_t n_shared = f->m->experts_apart ? 0 : (size_t)f->m->n_ff_shared;
    const size_t routed = each * (size_t)me->n_taken;

    /* Rows of all experts in use as one range; those of the shared expert last. */
    struct fwd_rows rows = fwd_rows_of(f, routed + pad_rows(n_shared));

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        while (begin < end && begin < routed) {
            const size_t base = begin / each * each; /* of this expert's rows */
            const size_t to = end < base + each ? end - base : each;

            if (begin - base < n_ff) {
                fwd_wait_expert(f, me, y, me->order[begin / each]);
                expand(f, me, y, me->order[begin / each], pairs, begin - base,
                       to < n_ff ? to : n_ff);
            }
            begin = base + to;
        }
        if (begin < end && begin - routed < n_shared)
            expand_shared(f, me, y, tokens, begin - routed,
                          end - routed < n_shared ? end - routed : n_shared);
    }
    fwd_lap(me, SLM_OP_GATE_UP, y->up.fmt);
    fwd_barrier(f, me, SLM_OP_GATE_UP, y->up.fmt);
}

/* The shared expert that is apart: of an input of its own. */
static void expand_apart(struct forward *f, struct fwd_thread *me,
                         const struct layer *y)
{
    const size_t n_embd = (size_t)f->m->n_embd;
    const size_t n_rows = (size_t)f->m->n_ff_shared;

    if (f->hook) {
        fwd_hook_rows(f, me, &y->shared_gate, f->x, pad16(n_embd), (size_t)f->n,
                      &y->ffn_norm);
        fwd_hook_rows(f, me, &y->shared_up, f->x, pad16(n_embd), (size_t)f->n,
                      &y->ffn_norm);
    }
    const struct columns c =
        fwd_prepare_few(f, me, f->x, pad16(n_embd), (size_t)f->n, n_embd, &y->ffn_norm,
                        act_bit(f, &y->shared_gate) | act_bit(f, &y->shared_up));
    struct fwd_rows rows = fwd_rows_of(f, n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);)
        expand_shared(f, me, y, &c, begin, end);
    fwd_lap(me, SLM_OP_GATE_UP, y->shared_up.fmt);
    fwd_barrier(f, me, SLM_OP_GATE_UP, y->shared_up.fmt);
}

/* Rows begin..end-1 of sum += share * down * h for all pairs of one expert, n_cols at a
 * time: no more values than a tile has. */
static void contract(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     int expert, const struct columns *c, size_t n_cols, size_t begin,
                     size_t end, float *sum)
{
    const size_t stride = pad16((size_t)f->m->n_embd), n_rows = end - begin;
    const size_t last = (size_t)me->first[expert + 1];
    float part[TILE_COLS * TILE_ROWS];

    for (size_t i = (size_t)me->first[expert]; i < last; i += n_cols) {
        const size_t n = last - i < n_cols ? last - i : n_cols;

        fwd_columns_product(f, &y->down, (size_t)expert, begin, end, n, c, i, part,
                            n_rows);
        for (size_t j = 0; j < n; j++) {
            const int pair = me->pair[i + j];
            float *x = sum + (size_t)(pair / f->m->n_experts_used) * stride + begin;

            if (y->b_down)
                f->kern.add(part + j * n_rows,
                            y->b_down + (size_t)expert * y->down.n_rows + begin,
                            n_rows);
            f->kern.add_scaled(x, part + j * n_rows, me->share[pair], n_rows);
        }
    }
    fwd_count_product(me, SLM_OP_DOWN, &y->down, end - begin,
                      last - (size_t)me->first[expert]);
}

static void contract_all(struct forward *f, struct fwd_thread *me,
                         const struct layer *y, const struct columns *c)
{
    struct fwd_rows rows = fwd_rows_of(f, y->down.n_rows);
    const size_t n_cols = f->n == 1 ? 1 : TILE_COLS;
    const size_t tile = TILE_ROWS * TILE_COLS / n_cols;
    const size_t stride = pad16((size_t)f->m->n_embd);
    float *sum = f->m->experts_apart ? f->routed_sum : f->x;

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        for (size_t j = 0; sum != f->x && j < (size_t)f->n; j++)
            memset(sum + j * stride + begin, 0, (end - begin) * sizeof *sum);
        for (; begin < end; begin += tile)
            for (int t = 0; t < me->n_taken; t++)
                contract(f, me, y, me->taken[t], c, n_cols, begin,
                         begin + tile < end ? begin + tile : end, sum);
    }
    fwd_lap(me, SLM_OP_DOWN, y->down.fmt);
    fwd_barrier(f, me, SLM_OP_DOWN, y->down.fmt);
}

static float shared_share(const struct forward *f, const struct layer *y, size_t j)
{
    return (y->shared_router.n_rows ? f->shared_share[j] : 1.0f) * f->m->residual_scale;
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
                    act_bit(f, &y->shared_down));
    struct fwd_rows rows = fwd_rows_of(f, y->shared_down.n_rows);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        fwd_columns_product(f, &y->shared_down, 0, begin, end, c.n, &c, 0, f->y + begin,
                            stride);
        for (size_t j = 0; !f->m->experts_apart && j < c.n; j++)
            f->kern.add_scaled(f->x + j * stride + begin, f->y + j * stride + begin,
                               shared_share(f, y, j), end - begin);
        fwd_count_product(me, SLM_OP_DOWN, &y->shared_down, end - begin, c.n);
    }
    fwd_lap(me, SLM_OP_DOWN, y->shared_down.fmt);
    fwd_barrier(f, me, SLM_OP_DOWN, y->shared_down.fmt);
}

/* x += what experts and the shared expert give, which is in routed_sum and y. */
static void join_apart(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n = (size_t)f->m->n_embd, stride = pad16(n);

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *routed = f->routed_sum + j * stride, *x = f->x + j * stride;

        fwd_norm(f, me->row, f->y + j * stride, &y->shared_post_norm, n);
        fwd_norm(f, routed, routed, &y->experts_post_norm, n);
        f->kern.add(me->row, routed, n);
        fwd_norm(f, me->row, me->row, &y->ffn_post_norm, n);
        fwd_add(f, x, me->row, n);
        for (size_t i = 0; y->out_scale && i < n; i++)
            x[i] *= *y->out_scale;
    }
    fwd_lap(me, SLM_OP_PREPARE, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_PREPARE, KERN_N_FMT);
}

static void route(struct forward *f, struct fwd_thread *me, const struct layer *y,
                  const struct columns *tokens)
{
    if (tokens->n == 1)
        route_one(f, me, y, tokens);
    else
        route_several(f, me, y, tokens);
}

/* By an input that the experts do not have; norm NULL: x. */
static void route_by(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     const struct norm *norm)
{
    const size_t n_embd = (size_t)f->m->n_embd;
    const struct columns tokens = fwd_prepare(f, me, f->x, pad16(n_embd), (size_t)f->n,
                                              n_embd, norm, act_bit(f, &y->router));

    route(f, me, y, &tokens);
}

void fwd_route_early(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    route_by(f, me, y, NULL);
}

/* The norm of the experts' input. */
static const struct norm *norm_of(const struct model *m, const struct layer *y)
{
    if (m->experts_apart)
        return &y->experts_norm;
    return y->ffn_norm.w ? &y->ffn_norm : &y->attn_norm;
}

static void hook_experts(struct forward *f, struct fwd_thread *me,
                         const struct layer *y)
{
    const struct norm *norm = norm_of(f->m, y);
    const size_t stride = pad16((size_t)f->m->n_embd), n = (size_t)f->n;

    if (y->gate.n_rows && y->gate.name != y->up.name)
        fwd_hook_pairs(f, me, &y->gate, norm);
    fwd_hook_pairs(f, me, &y->up, norm);
    if (f->m->n_ff_shared == 0 || f->m->experts_apart)
        return;
    if (y->shared_gate.n_rows)
        fwd_hook_rows(f, me, &y->shared_gate, f->x, stride, n, norm);
    fwd_hook_rows(f, me, &y->shared_up, f->x, stride, n, norm);
}

void fwd_experts(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n = (size_t)f->n, n_embd = (size_t)f->m->n_embd;
    const size_t n_ff = y->down.k;
    const bool shared = f->m->n_ff_shared > 0, apart = f->m->experts_apart;
    uint32_t act_mask =
        act_bit(f, &y->router) | act_bit(f, &y->gate) | act_bit(f, &y->up);

    if (shared)
        act_mask |= act_bit(f, &y->shared_router) | act_bit(f, &y->shared_gate) |
                    act_bit(f, &y->shared_up);
    if (apart) {
        expand_apart(f, me, y);
        route_by(f, me, y, &y->router_norm);
    }
    const struct columns tokens =
        fwd_prepare(f, me, f->x, pad16(n_embd), n, n_embd, norm_of(f->m, y), act_mask);

    if (!f->m->routes_early && !apart)
        route(f, me, y, &tokens);
    sort_pairs(f, me);
    fwd_lap(me, SLM_OP_ROUTER, y->router.fmt);
    fetch(f, me, y);
    if (f->hook)
        hook_experts(f, me, y);
    const struct columns pairs = line_up(f, me, y, &tokens);

    expand_all(f, me, y, &pairs, &tokens);
    fwd_done(f, me, y, RESIDENCY_GATE_UP);
    if (f->hook)
        fwd_hook_pairs(f, me, &y->down, NULL);
    const struct columns c =
        fwd_prepare(f, me, f->gate, pad16(n_ff), n * (size_t)f->m->n_experts_used, n_ff,
                    NULL, act_bit(f, &y->down));

    fwd_wait(f, me, y, RESIDENCY_DOWN);
    contract_all(f, me, y, &c);
    if (shared)
        add_shared(f, me, y);
    if (apart)
        join_apart(f, me, y);
}
