/* SPDX-License-Identifier: MIT
 *
 * arch_glm4.c - GLM 4 (0414)
 *
 * As chatglm, with norms also of the blocks' outputs before they are added to the
 * stream. Source: GLM team 2024 (arXiv 2406.12793) and the models' published code.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_qkv.weight", MATRIX_3(EMBD, Q, wq, KV, wk, KV, wv), .optional = true},
    {"attn_q.weight", MATRIX(EMBD, Q, wq), .unless = "attn_qkv.weight"},
    {"attn_k.weight", MATRIX(EMBD, KV, wk), .unless = "attn_qkv.weight"},
    {"attn_v.weight", MATRIX(EMBD, KV, wv), .unless = "attn_qkv.weight"},
    {"attn_qkv.bias", VECTOR_3(Q, bq, KV, bk, KV, bv), .optional = true},
    {"attn_q.bias", VECTOR(Q, bq), .unless = "attn_qkv.weight", .optional = true},
    {"attn_k.bias", VECTOR(KV, bk), .unless = "attn_qkv.weight", .optional = true},
    {"attn_v.bias", VECTOR(KV, bv), .unless = "attn_qkv.weight", .optional = true},
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
    .layer = layer,
};
