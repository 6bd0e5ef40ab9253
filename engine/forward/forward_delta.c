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
 * Each thread takes heads, and processes a pass's tokens in order.
 */
#include "engine/forward/forward_impl.h"

#include <math.h>
#include <string.h>

/* Channels of queries, of keys, of values; convolved together. */
static size_t n_channels(const struct model *m)
{
    return delta_in_rows(&m->delta);
}

/* Channel c of token j after the convolution and SiLU. */
static float convolve(const struct forward *f, const struct layer *y, size_t c,
                      size_t j)
{
    const size_t n_hooks = (size_t)f->m->delta.n_conv, n = n_channels(f->m);
    const float *hooks = y->delta_conv + c * n_hooks;
    const float *past = kvcache_state(f->kv, y->cached);
    float sum = 0.0f;

    for (size_t t = 0; t < n_hooks; t++) {
        const size_t at = j + t; /* counted from the first input kept */

        sum += hooks[t] * (at < n_hooks - 1
                               ? past[at * n + c]
                               : f->delta_in[(at + 1 - n_hooks) * pad16(n) + c]);
    }
    return sum / (1.0f + expf(-sum));
}

/* Scale x to a norm of `length`. */
static void set_length(float *x, size_t n, float length, float eps)
{
    float sum = 0.0f;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    const float root = sqrtf(sum);
    const float scale = length / (root > eps ? root : eps);

    for (size_t i = 0; i < n; i++)
        x[i] *= scale;
}

/* One token: out[d] from the state, which learns v for k. S[d][d], a row for each
 * element of k. */
static void step(float *restrict s, const float *restrict q, const float *restrict k,
                 const float *restrict v, float keep, float rate, size_t d,
                 float *restrict error, float *restrict out)
{
    for (size_t i = 0; i < d; i++)
        error[i] = v[i];
    for (size_t i = 0; i < d; i++)
        for (size_t e = 0; e < d; e++)
            error[e] -= keep * k[i] * s[i * d + e];
    for (size_t e = 0; e < d; e++)
        error[e] *= rate;
    memset(out, 0, d * sizeof *out);
    for (size_t i = 0; i < d; i++)
        for (size_t e = 0; e < d; e++) {
            const float now = keep * s[i * d + e] + k[i] * error[e];

            s[i * d + e] = now;
            out[e] += q[i] * now;
        }
}

/* ln(1 + e^x) */
static float softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

static void run_head(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     size_t head)
{
    const struct delta_sizes *s = &f->m->delta;
    const size_t d = (size_t)s->head_dim, n_k = (size_t)s->n_k_heads * d;
    const size_t key_head = head % (size_t)s->n_k_heads, each = pad16(d);
    const size_t n_v = (size_t)s->n_v_heads;
    float *q = me->delta, *k = q + each, *v = k + each, *error = v + each;
    float *state = kvcache_state(f->kv, y->cached) +
                   ((size_t)s->n_conv - 1) * n_channels(f->m) + head * d * d;

    for (size_t j = 0; j < (size_t)f->n; j++) {
        float *out = f->attn + j * pad16(n_v * d) + head * d;
        const float *z = f->delta_z + j * pad16(n_v * d) + head * d;
        const float rate = 1.0f / (1.0f + expf(-f->delta_beta[j * pad16(n_v) + head]));
        const float fade =
            y->delta_a[head] *
            softplus(f->delta_alpha[j * pad16(n_v) + head] + y->delta_dt[head]);

        for (size_t i = 0; i < d; i++) {
            q[i] = convolve(f, y, key_head * d + i, j);
            k[i] = convolve(f, y, n_k + key_head * d + i, j);
            v[i] = convolve(f, y, 2 * n_k + head * d + i, j);
        }
        set_length(q, d, 1.0f / sqrtf((float)d), f->m->norm_eps);
        set_length(k, d, 1.0f, f->m->norm_eps);
        step(state, q, k, v, expf(fade), rate, d, error, out);
        fwd_norm(f, out, out, &y->delta_norm, d);
        for (size_t i = 0; i < d; i++)
            out[i] *= z[i] / (1.0f + expf(-z[i]));
    }
    fwd_count(me, SLM_OP_ATTENTION, KERN_N_FMT, 2 * d * d * sizeof(float),
              3 * d * d * (size_t)f->n);
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
