/* SPDX-License-Identifier: MIT
 *
 * arch_bitnet.c - BitNet b1.58
 *
 * Ternary matrices, before two of which, the attention's output and down, there is a
 * norm more.
 * Source: Ma et al. 2024 (arXiv 2402.17764) and the models' published code.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_sub_norm.weight", VECTOR(Q, attn_sub_norm.w)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {"ffn_sub_norm.weight", VECTOR(FF, ffn_sub_norm.w)},
    {0},
};

const struct arch arch_bitnet = {
    .name = "bitnet",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
};
