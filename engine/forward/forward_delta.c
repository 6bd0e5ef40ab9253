/* SPDX-License-Identifier: MIT
 *
 * forward_delta.c - gated delta rule: layers with a state of fixed size instead of keys
 * and values
 *
 * Per head, with S [head_dim][head_dim] the state, k and q of length 1:
 *
 *     S <- g S;   S <- S + k (b (v - k'S));   o = q'S / sqrt(head_dim)
 *
 * so that the output of S for k moves towards v by the factor b, between 0 and 1 for
 * each token and head, while S decays by g (Yang et al. 2024, arXiv 2412.06464). Before
 * that each channel of q, k and v is mixed with its own last inputs by a causal
 * convolution. Several heads of values may share one of queries and keys: value head h
 * takes key head h % n_k_heads.
 *
 * A thread takes a head of queries and keys with some of the heads of values that share
 * it, so that its convolutions and norms are computed once for these, and processes a
 * pass's tokens in order, DELTA_TOKENS at a time: what belongs to them then lies in the
 * second-level cache beside the states.
 */
#include "engine/forward/forward_impl.h"

#include <math.h>
#include <string.h>

/* Channels of queries, of keys, of values; convolved together. */
static size_t n_channels(const struct model *m)
{
    return delta_in_rows(&m->delta);
}

/* Channels c.. of n tokens of a part, from its `token` on, after the convolution and
 * SiLU: dst [n][stride]. */
static void convolve(const struct forward *f, const struct fwd_part *p,
                     const struct layer *y, size_t c, size_t token, size_t n,
                     float *dst, size_t stride)
{
    const size_t n_taps = (size_t)f->m->delta.n_conv, n_all = n_channels(f->m);
    const float *past = kvcache_state(f->kv, p->seq, y->cached);
    const float *in = f->delta_in + p->first * pad16(n_all);
    const float *rows[DELTA_TOKENS + DELTA_MAX_CONV - 1];

    for (size_t r = 0; r < n + n_taps - 1; r++) {
        const size_t at = token + r; /* counted from the first input kept */

        rows[r] = at < n_taps - 1 ? past + at * n_all + c
                                  : in + (at + 1 - n_taps) * pad16(n_all) + c;
    }
    f->kern.conv_silu((size_t)f->m->delta.head_dim, n_taps, y->delta_conv + c * n_taps,
                      n, rows, dst, stride);
}

/* ln(1 + e^x) */
static float softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

/* Queries and keys of one head, for tokens from..from + n - 1: q, k [n][stride]. */
static void make_keys(const struct forward *f, const struct fwd_part *p,
                      const struct layer *y, size_t key_head, size_t from, size_t n,
                      float *q, float *k, size_t stride)
{
    const size_t d = (size_t)f->m->delta.head_dim;
    const size_t n_k = (size_t)f->m->delta.n_k_heads * d;

    convolve(f, p, y, key_head * d, from, n, q, stride);
    convolve(f, p, y, n_k + key_head * d, from, n, k, stride);
    for (size_t j = 0; j < n; j++) {
        f->kern.l2norm(q + j * stride, d, 1.0f / sqrtf((float)d), f->m->norm_eps);
        f->kern.l2norm(k + j * stride, d, 1.0f, f->m->norm_eps);
    }
}

/* One head of values, with its head's queries and keys; v: the caller's buffer [n]. */
static void run_values(struct forward *f, const struct fwd_part *p,
                       const struct layer *y, size_t head, size_t from, size_t n,
                       const float *q, const float *k, float *v, size_t stride)
{
    const struct delta_sizes *s = &f->m->delta;
    const size_t d = (size_t)s->head_dim, n_v = (size_t)s->n_v_heads;
    const size_t row = pad16(n_v * d), first = (p->first + from) * row + head * d;
    float *state = kvcache_state(f->kv, p->seq, y->cached) +
                   ((size_t)s->n_conv - 1) * n_channels(f->m) + head * d * d;
    float keep[DELTA_TOKENS], rate[DELTA_TOKENS];

    convolve(f, p, y, (2 * (size_t)s->n_k_heads + head) * d, from, n, v, stride);
    for (size_t j = 0; j < n; j++) {
        const size_t at = (p->first + from + j) * pad16(n_v) + head;

        rate[j] = 1.0f / (1.0f + expf(-f->delta_beta[at]));
        keep[j] =
            expf(y->delta_a[head] * softplus(f->delta_alpha[at] + y->delta_dt[head]));
    }
    f->kern.delta_rule(d, n, state, q, k, v, stride, keep, rate, f->attn + first, row);
    for (size_t j = 0; j < n; j++) {
        float *out = f->attn + first + j * row;

        fwd_norm(f, out, out, &y->delta_norm, d);
        f->kern.silu_mul(out, f->delta_z + first + j * row, out, d);
    }
}

/* Heads of values key_head + i n_k_heads with begin <= i < end. */
static void run_heads(struct forward *f, struct fwd_thread *me,
                      const struct fwd_part *p, const struct layer *y, size_t key_head,
                      size_t begin, size_t end)
{
    const size_t d = (size_t)f->m->delta.head_dim, each = pad16(d), n = p->n;
    const size_t n_k_heads = (size_t)f->m->delta.n_k_heads;

    for (size_t from = 0; from < n; from += DELTA_TOKENS) {
        const size_t some = n - from < DELTA_TOKENS ? n - from : DELTA_TOKENS;
        float *q = me->delta, *k = q + some * each, *v = k + some * each;

        make_keys(f, p, y, key_head, from, some, q, k, each);
        for (size_t i = begin; i < end; i++)
            run_values(f, p, y, key_head + i * n_k_heads, from, some, q, k, v, each);
    }
    fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT,
              (end - begin) * 2 * d * d * sizeof(float), (end - begin) * 3 * d * d * n);
}

/* Into how many parts the heads of values that share a head of keys are split: the
 * fewest with which no thread has more of them to compute than with the most. */
static size_t parts_of(const struct forward *f)
{
    const size_t n_threads = (size_t)thread_pool_size(f->pool);
    const size_t n_k = (size_t)f->m->delta.n_k_heads * (size_t)f->n_parts;
    const size_t group = (size_t)f->m->delta.n_v_heads / (size_t)f->m->delta.n_k_heads;
    const size_t least = (n_k * group + n_threads - 1) / n_threads;
    size_t parts = 1;

    while (parts < group &&
           (group % parts ||
            (n_k * parts + n_threads - 1) / n_threads * (group / parts) > least))
        parts++;
    return parts;
}

/* The last inputs of a part's convolution, for the next pass. */
static void keep_inputs(struct forward *f, const struct fwd_part *p,
                        const struct layer *y)
{
    const size_t n_kept = (size_t)f->m->delta.n_conv - 1, n = n_channels(f->m);
    const float *in = f->delta_in + p->first * pad16(n);
    float *past = kvcache_state(f->kv, p->seq, y->cached);

    /* Ascending: the source lies after the values already written. */
    for (size_t r = 0; r < n_kept; r++) {
        const size_t at = p->n + r; /* counted from the first input kept */
        const float *src = at < n_kept ? past + at * n : in + (at - n_kept) * pad16(n);

        memmove(past + r * n, src, n * sizeof *past);
    }
}

void fwd_delta(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const struct fwd_target targets[] = {
        {&y->delta_in, NULL, f->delta_in},
        {&y->delta_gate, NULL, f->delta_z},
        {&y->delta_beta, NULL, f->delta_beta},
        {&y->delta_alpha, NULL, f->delta_alpha},
    };

    const size_t n_k = (size_t)f->m->delta.n_k_heads, parts = parts_of(f);
    const size_t each = (size_t)f->m->delta.n_v_heads / n_k / parts;
    const size_t n_items = n_k * parts; /* of a part of the pass */

    fwd_project(f, me, targets, sizeof targets / sizeof targets[0], &y->attn_norm);
    for (size_t item;
         (item = thread_pool_next(f->pool, 1)) < n_items * (size_t)f->n_parts;) {
        const size_t i = item % n_items;

        run_heads(f, me, &f->parts[item / n_items], y, i % n_k, i / n_k * each,
                  (i / n_k + 1) * each);
    }
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
    /* The next stage has a barrier before any thread returns here. */
    for (int i = 0; me == &f->threads[0] && i < f->n_parts; i++)
        keep_inputs(f, &f->parts[i], y);
}
