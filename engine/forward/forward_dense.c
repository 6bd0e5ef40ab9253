/* SPDX-License-Identifier: MIT
 *
 * forward_dense.c - the feed-forward part of a layer without experts
 */
#include <math.h>

#include "engine/forward/forward_impl.h"

/* The sum of x - mean, or of its squares: in lanes, which compilers make vectors of,
 * and which are short enough to lose nothing. */
static float sum_of(const float *x, size_t n, float mean, bool squared)
{
    float lane[16] = {0};
    double sum = 0.0;
    size_t i = 0;

    for (; i + 16 <= n; i += 16)
        for (size_t k = 0; k < 16; k++) {
            const float d = x[i + k] - mean;

            lane[k] += squared ? d * d : d;
        }
    for (; i < n; i++)
        lane[i % 16] += squared ? (x[i] - mean) * (x[i] - mean) : x[i] - mean;
    for (size_t k = 0; k < 16; k++)
        sum += (double)lane[k];
    return (float)sum;
}

/* Keeps those of a token's gates that are far above their mean. */
static void sparsify(float *gate, size_t n, float sparsity)
{
    const float mean = sum_of(gate, n, 0.0f, false) / (float)n;
    const float square = sum_of(gate, n, mean, true) / (float)(n - 1);
    const float cut = mean + sparsity * sqrtf(square);

    for (size_t i = 0; i < n; i++)
        gate[i] = gate[i] > cut ? gate[i] - cut : 0.0f;
}

/* What expand() leaves for later where a gate depends on the others of its token. */
static void expand_sparse(struct forward *f, struct fwd_thread *me,
                          const struct layer *y)
{
    const size_t n_ff = y->up.n_rows, stride = pad16(n_ff);

    for (size_t j; (j = thread_pool_next(f->pool, 1)) < (size_t)f->n;) {
        float *gate = f->gate + j * stride;

        if (n_ff > 1)
            sparsify(gate, n_ff, y->sparsity);
        fwd_activate(f, y, gate, f->up + j * stride, n_ff);
    }
    fwd_lap(me, SLM_OP_GATE_UP, y->up.fmt);
    fwd_barrier(f, me, SLM_OP_GATE_UP, y->up.fmt);
}

/* First half of the dense feed-forward part, from x to f->gate: rows of gate and up
 * meet in one thread, which leaves act(gate) * up in gate; without a gate act(up). */
void fwd_expand(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n = (size_t)f->n, n_embd = (size_t)f->m->n_embd;
    const size_t n_ff = y->up.n_rows, stride = pad16(n_ff);
    const bool gated = y->gate.n_rows > 0;
    const struct norm *norm = fwd_norm_of(y->ffn_norm.w ? &y->ffn_norm : &y->attn_norm);
    float *up_rows = gated ? f->up : f->gate;

    if (f->hook && gated && y->gate.name != y->up.name)
        fwd_hook_rows(f, me, &y->gate, f->x, pad16(n_embd), n, norm);
    if (f->hook)
        fwd_hook_rows(f, me, &y->up, f->x, pad16(n_embd), n, norm);

    const struct columns c =
        fwd_prepare_few(f, me, f->x, pad16(n_embd), n, n_embd, norm,
                        act_bit(f, &y->up) | (gated ? act_bit(f, &y->gate) : 0));
    struct fwd_rows rows = fwd_rows_of(f, n_ff);

    for (size_t begin, end; fwd_next_rows(f, me, &rows, &begin, &end);) {
        if (gated)
            fwd_biased_product(f, me, SLM_OP_GATE_UP, &y->gate, y->b_gate, begin, end,
                               &c, f->gate, stride);
        fwd_biased_product(f, me, SLM_OP_GATE_UP, &y->up, y->b_up, begin, end, &c,
                           up_rows, stride);
        for (size_t j = 0; y->sparsity == 0.0f && j < n; j++) {
            float *gate = f->gate + j * stride + begin;

            fwd_activate(f, y, gate, gated ? f->up + j * stride + begin : NULL,
                         end - begin);
        }
    }
    fwd_lap(me, SLM_OP_GATE_UP, y->up.fmt);
    fwd_barrier(f, me, SLM_OP_GATE_UP, y->up.fmt);
    if (y->sparsity != 0.0f)
        expand_sparse(f, me, y);
}

/* Second half of the dense feed-forward part, from f->gate, added to x. */
void fwd_contract(struct forward *f, struct fwd_thread *me, const struct layer *y)
{
    const size_t n_ff = y->down.k;
    const struct norm *norm = fwd_norm_of(&y->ffn_sub_norm);

    if (f->hook)
        fwd_hook_rows(f, me, &y->down, f->gate, pad16(n_ff), (size_t)f->n, norm);

    const struct columns c = fwd_prepare_few(f, me, f->gate, pad16(n_ff), (size_t)f->n,
                                             n_ff, norm, act_bit(f, &y->down));

    fwd_add_product(f, me, SLM_OP_DOWN, &y->down, y->b_down, &y->ffn_post_norm,
                    y->per_layer.out.n_rows ? NULL : y->out_scale, &c);
}
