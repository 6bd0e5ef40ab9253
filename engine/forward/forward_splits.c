/* SPDX-License-Identifier: MIT
 *
 * forward_splits.c - attention whose positions threads have shared: the results of
 * parts of a head's positions, and how they are joined
 */
#include "engine/forward/forward_impl.h"

#include <math.h>
#include <string.h>

static float *partial_of(const struct forward *f, const struct layer *y, size_t token,
                         size_t q, int split)
{
    const size_t i = token * (size_t)fwd_splits(f, y) + (size_t)split;

    return f->partial +
           (i * (size_t)f->m->n_heads + q) * pad16((size_t)f->m->head_dim + 2);
}

void fwd_keep_partial(struct forward *f, const struct fwd_thread *me, int layer,
                      size_t token, int head, int split)
{
    const struct layer *y = &f->m->layers[layer];
    const size_t d = fwd_result_dim(f, y), group = fwd_group_of(f, layer);

    for (size_t i = 0; i < group; i++) {
        float *dst = partial_of(f, y, token, (size_t)head * group + i, split);

        memcpy(dst, me->mix + i * fwd_heads_of(f, layer)->value_dim, d * sizeof *dst);
        dst[d] = me->max[i];
        dst[d + 1] = me->sum[i];
    }
}

void fwd_join_splits(const struct forward *f, const struct layer *y, size_t token,
                     float *out)
{
    const size_t d = fwd_result_dim(f, y);
    const int n_splits = fwd_splits(f, y);

    for (size_t q = 0; q < (size_t)f->m->n_heads; q++) {
        float *dst = out + q * d;
        float max = -INFINITY, sum = 0.0f;

        for (int s = 0; s < n_splits; s++) {
            const float most = partial_of(f, y, token, q, s)[d];

            max = most > max ? most : max;
        }
        memset(dst, 0, d * sizeof *dst);
        for (int s = 0; s < n_splits; s++) {
            const float *part = partial_of(f, y, token, q, s);
            const float weight = expf(part[d] - max);

            f->kern.add_scaled(dst, part, weight, d);
            sum += weight * part[d + 1];
        }
        for (size_t i = 0; i < d; i++)
            dst[i] *= 1.0f / sum;
        fwd_spread(f, dst, d);
    }
}

/* Joins the splits of several tokens; each thread joins a single token's for itself. */
void fwd_join_tokens(struct forward *f, struct fwd_thread *me, int layer)
{
    const struct layer *y = &f->m->layers[layer];
    const size_t d = fwd_result_dim(f, y);
    const size_t stride = pad16((size_t)f->m->n_heads * d);

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *out = f->heads + j * stride;

        fwd_join_splits(f, y, j, out);
        for (size_t q = 0; q < (size_t)f->m->n_heads; q++)
            fwd_gate_head(f, y, q, j, out + q * d);
    }
    fwd_lap(me, SLM_OP_ATTENTION, KERN_N_FMT);
    fwd_barrier(f, me, SLM_OP_ATTENTION, KERN_N_FMT);
}
