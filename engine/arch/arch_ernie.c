/* SPDX-License-Identifier: MIT
 *
 * arch_ernie.c - Ernie 4.5, dense and with experts, text
 *
 * As llama; with experts, which the first layers lack, a bias of each expert takes part
 * in the choice alone, and there is a shared expert.
 * Source: the Ernie 4.5 technical report (Baidu 2025) and the models' published code.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    TENSORS_EXPERTS,
    TENSORS_CHOICE_BIAS,
    TENSORS_WHOLE_SHARED_EXPERT,
    {0},
};

const struct arch arch_ernie45 = {
    .name = "ernie4_5",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
};

static enum status setup(struct loader *l, struct model *m)
{
    enum status st = loader_maybe_shared_expert(l, m);
    int step = 1;

    if (!st)
        st = loader_int_or(l, "interleave_moe_layer_step", 1, 1, 1, &step);
    return st ? st : loader_leading_dense(l, m);
}

const struct arch arch_ernie45_moe = {
    .name = "ernie4_5-moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};
