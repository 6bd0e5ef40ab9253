/* SPDX-License-Identifier: MIT
 *
 * arch_apertus.c - Apertus
 *
 * As qwen3 with a plain feed-forward part and xIELU, whose four numbers are each
 * layer's.
 * Source: Apertus project 2025 (arXiv 2509.14233) and the published code.
 */
#include "engine/arch/loader.h"

#include <math.h>

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    TENSORS_HEAD_NORMS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {0},
};

static float softplus(float x)
{
    return x > 20.0f ? x : log1pf(expf(x));
}

/* Files have what a model learns, of which both curves' factors are made; and from
 * where on, just below 0, exp(x) - 1 counts as constant, which spares training a
 * subtraction of equal numbers and changes nothing that could be seen. */
static enum status setup(struct loader *l, struct model *m)
{
    for (int i = 0; i < m->n_layers; i++) {
        struct xielu *x = &m->layers[i].xielu;
        float pos, neg, eps;
        enum status st = loader_real_of(l, "xielu.alpha_p", i, &pos);

        if (!st)
            st = loader_real_of(l, "xielu.alpha_n", i, &neg);
        if (!st)
            st = loader_real_of(l, "xielu.beta", i, &x->beta);
        if (!st)
            st = loader_real_of(l, "xielu.eps", i, &eps);
        if (st)
            return st;
        if (!(eps <= 0.0f && eps >= -1e-3f))
            return loader_fail(l, ST_UNSUPPORTED,
                               "xielu.eps is %g for layer %d, and -0.001 to 0 is "
                               "supported",
                               (double)eps, i);
        x->pos = softplus(pos);
        x->neg = x->beta + softplus(neg);
    }
    return ST_OK;
}

const struct arch arch_apertus = {
    .name = "apertus",
    .norm = NORM_RMS,
    .act = ACT_XIELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};
