/* SPDX-License-Identifier: MIT
 *
 * arch_qwen3moe.c - Qwen 3 with experts
 *
 * Attention of qwen3, experts of Mixtral: a softmax over those taken.
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
    TENSORS_EXPERTS,
    {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    const enum status st = loader_experts(l, m);

    if (!st && m->n_experts == 0)
        return loader_fail(l, ST_INPUT, "the metadata have no experts");
    return st;
}

const struct arch arch_qwen3moe = {
    .name = "qwen3moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};
