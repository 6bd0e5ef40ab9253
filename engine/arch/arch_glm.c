/* SPDX-License-Identifier: MIT
 *
 * arch_glm.c - ChatGLM 3, GLM 4
 *
 * As llama with half of each head rotated; queries, keys and values are one matrix or
 * three, with biases; gate and up are one matrix.
 * Source: GLM team 2024 (arXiv 2406.12793) and the models' published code.
 */
#include "engine/arch/loader.h"

/* ChatGLM 3 and GLM 4 (2024). */
static const struct tensor_rule chatglm_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_up.weight", MATRIX_2(EMBD, FF, gate, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {0},
};

const struct arch arch_chatglm = {
    .name = "chatglm",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = chatglm_layer,
};

/* GLM 4 (0414): norms also of the blocks' outputs before they are added to the
 * stream. */
static const struct tensor_rule glm4_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_up.weight", MATRIX_2(EMBD, FF, gate, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {0},
};

const struct arch arch_glm4 = {
    .name = "glm4",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = glm4_layer,
};
