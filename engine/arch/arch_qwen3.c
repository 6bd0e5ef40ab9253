/* SPDX-License-Identifier: MIT
 *
 * arch_qwen3.c - Qwen 3, dense
 *
 * As qwen2 without biases; instead queries and keys of each head are normalised
 * before they are rotated, and heads are longer than n_embd / n_heads.
 * Source: Yang et al. 2025 (arXiv 2505.09388).
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_q.weight", MATRIX(EMBD, Q, wq)},
    {"attn_k.weight", MATRIX(EMBD, KV, wk)},
    {"attn_v.weight", MATRIX(EMBD, KV, wv)},
    {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w)},
    {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_gate.weight", MATRIX(EMBD, FF, gate)},
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {0},
};

const struct arch arch_qwen3 = {
    .name = "qwen3",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
};
