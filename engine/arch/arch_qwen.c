/* SPDX-License-Identifier: MIT
 *
 * arch_qwen.c - Qwen 1.5 (with experts), 2, 2.5 and 3, and the text parts of Qwen 2 and
 * 3 VL
 *
 * As llama, but a head's halves are rotated against each other. VL models rotate parts
 * of a head by time, height and width, which are the same position for text.
 * Sources: Yang et al. 2024 (arXiv 2407.10671; experts: section 2.2.2) and 2025 (arXiv
 * 2505.09388).
 */
#include "engine/arch/loader.h"

/* Qwen 2 and 2.5: queries, keys and values have biases. */
static const struct tensor_rule qwen2_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_QKV_BIAS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {0},
};

const struct arch arch_qwen2 = {
    .name = "qwen2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = qwen2_layer,
};

const struct arch arch_qwen2vl = {
    .name = "qwen2vl",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = qwen2_layer,
};

/* Qwen 1.5 and 2 with experts, whose weights are a softmax over all of them, and a
 * shared expert, scaled by its own gate. */
static const struct tensor_rule qwen2moe_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_QKV_BIAS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_EXPERTS,
    TENSORS_SHARED_EXPERT,
    {0},
};

static enum status qwen2moe_setup(struct loader *l, struct model *m)
{
    m->shares_of_all = true;
    return loader_shared_expert(l, m);
}

const struct arch arch_qwen2moe = {
    .name = "qwen2moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = qwen2moe_layer,
    .setup = qwen2moe_setup,
};

/* Qwen 3, dense: no biases; instead queries and keys of each head are normalised before
 * they are rotated, and heads are longer than n_embd / n_heads. */
static const struct tensor_rule qwen3_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_HEAD_NORMS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {0},
};

const struct arch arch_qwen3 = {
    .name = "qwen3",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = qwen3_layer,
};

const struct arch arch_qwen3vl = {
    .name = "qwen3vl",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = qwen3_layer,
};

/* Qwen 3 with experts, as those of Mixtral: a softmax over those taken. */
static const struct tensor_rule qwen3moe_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_HEAD_NORMS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_EXPERTS,
    {0},
};

const struct arch arch_qwen3moe = {
    .name = "qwen3moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = qwen3moe_layer,
    .setup = loader_only_experts,
};
