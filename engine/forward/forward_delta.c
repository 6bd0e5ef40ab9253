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
 * Each thread takes heads, and processes a pass's tokens in order, DELTA_TOKENS at a
 * time: what belongs to them then lies in the second-level cache beside the state.
 */
#include "engine/forward/forward_impl.h"

#include <math.h>
#include <string.h>

/* Channels of queries, of keys, of values; convolved together. */
static size_t n_channels(const struct model *m)
{
    return delta_in_rows(&m->delta);
}

/* Channels c.. of n tokens, after the convolution and SiLU: dst [n][stride]. */
static void convolve(const struct forward *f, const struct layer *y, size_t c,
                     size_t token, size_t n, float *dst, size_t stride)
{
    const size_t n_taps = (size_t)f->m->delta.n_conv, n_all = n_channels(f->m);
    const float *past = kvcache_state(f->kv, y->cached);
    const float *rows[DELTA_TOKENS + DELTA_MAX_CONV - 1];

    for (size_t r = 0; r < n + n_taps - 1; r++) {
        const size_t at = token + r; /* counted from the first input kept */

        rows[r] = at < n_taps - 1 ? past + at * n_all + c
                                  : f->delta_in + (at + 1 - n_taps) * pad16(n_all) + c;
    }
    f->kern.conv_silu((size_t)f->m->delta.head_dim, n_taps, y->delta_conv + c * n_taps,
                      n, rows, dst, stride);
}

/* ln(1 + e^x) */
static float softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

/* Tokens from..from + n - 1 of one head of values, n <= DELTA_TOKENS. */
static void run_tokens(struct forward *f, struct fwd_thread *me, const struct layer *y,
                       size_t head, size_t from, size_t n)
{
    const struct delta_sizes *s = &f->m->delta;
    const size_t d = (size_t)s->head_dim, n_k = (size_t)s->n_k_heads * d,
                 each = pad16(d);
    const size_t n_v = (size_t)s->n_v_heads, key_head = head % (size_t)s->n_k_heads;
    const size_t stride = pad16(n_v * d), first = from * stride + head * d;
    float *q = me->delta, *k = q + n * each, *v = k + n * each;
    float *state = kvcache_state(f->kv, y->cached) +
                   ((size_t)s->n_conv - 1) * n_channels(f->m) + head * d * d;
    float keep[DELTA_TOKENS], rate[DELTA_TOKENS];

    convolve(f, y, key_head * d, from, n, q, each);
    convolve(f, y, n_k + key_head * d, from, n, k, each);
    convolve(f, y, 2 * n_k + head * d, from, n, v, each);
    for (size_t j = 0; j < n; j++) {
        const size_t at = (from + j) * pad16(n_v) + head;

        f->kern.l2norm(q + j * each, d, 1.0f / sqrtf((float)d), f->m->norm_eps);
        f->kern.l2norm(k + j * each, d, 1.0f, f->m->norm_eps);
        rate[j] = 1.0f / (1.0f + expf(-f->delta_beta[at]));
        keep[j] =
            expf(y->delta_a[head] * softplus(f->delta_alpha[at] + y->delta_dt[head]));
    }
    f->kern.delta_rule(d, n, state, q, k, v, each, keep, rate, f->attn + first, stride);
    for (size_t j = 0; j < n; j++) {
        float *out = f->attn + first + j * stride;

        fwd_norm(f, out, out, &y->delta_norm, d);
        f->kern.silu_mul(out, f->delta_z + first + j * stride, out, d);
    }
}

static void run_head(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     size_t head)
{
    const size_t d = (size_t)f->m->delta.head_dim, n = (size_t)f->n;

    for (size_t from = 0; from < n; from += DELTA_TOKENS)
        run_tokens(f, me, y, head, from,
                   n - from < DELTA_TOKENS ? n - from : DELTA_TOKENS);
    fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT, 2 * d * d * sizeof(float),
              3 * d * d * n);
}

/* The last inputs of the convolution, for the next pass. */
static void keep_inputs(struct forward *f, const struct layer *y)
{
    const size_t n_kept = (size_t)f->m->delta.n_conv - 1, n = n_channels(f->m);
    float *past = kvcache_state(f->kv, y->cached);

    /* Ascending: the source lies after the values already written. */
    for (size_t r = 0; r < n_kept; r++) {
        const size_t at = (size_t)f->n + r; /* counted from the first input kept */
        const float *src =
            at < n_kept ? past + at * n : f->delta_in + (at - n_kept) * pad16(n);

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

    fwd_project(f, me, targets, sizeof targets / sizeof targets[0], &y->attn_norm);
    for (size_t head;
         (head = thread_pool_next(f->pool, 1)) < (size_t)f->m->delta.n_v_heads;)
        run_head(f, me, y, head);
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
    /* The next stage has a barrier before any thread returns here. */
    if (me == &f->threads[0])
        keep_inputs(f, y);
}
