/* SPDX-License-Identifier: MIT
 *
 * arch_qwen2.c - Qwen 2 and 2.5
 *
 * As llama, but queries, keys and values have biases and a head's halves are rotated
 * against each other.
 * Source: Yang et al. 2024 (arXiv 2407.10671).
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_q.weight", MATRIX(EMBD, Q, wq)},
    {"attn_k.weight", MATRIX(EMBD, KV, wk)},
    {"attn_v.weight", MATRIX(EMBD, KV, wv)},
    {"attn_q.bias", VECTOR(Q, bq)},
    {"attn_k.bias", VECTOR(KV, bk)},
    {"attn_v.bias", VECTOR(KV, bv)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_gate.weight", MATRIX(EMBD, FF, gate)},
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {0},
};

const struct arch arch_qwen2 = {
    .name = "qwen2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
};
