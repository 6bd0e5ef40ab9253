/* SPDX-License-Identifier: MIT
 *
 * arch_chatglm.c - ChatGLM 3 and GLM 4 (2024)
 *
 * As llama with half of each head rotated; queries, keys and values are one matrix or
 * three, with biases; gate and up are one matrix.
 * Source: GLM team 2024 (arXiv 2406.12793) and the models' published code.
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
    .layer = layer,
};
