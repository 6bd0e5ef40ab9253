/* SPDX-License-Identifier: MIT
 *
 * arch_qwen2moe.c - Qwen 1.5 and 2 with experts
 *
 * As qwen2, with experts whose weights are a softmax over all of them, and a shared
 * expert, scaled by its own gate.
 * Source: Yang et al. 2024 (arXiv 2407.10671), section 2.2.2.
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
    TENSORS_EXPERTS,
    TENSORS_SHARED_EXPERT,
    {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    const int n_ff = m->n_ff;
    enum status st = loader_experts(l, m);

    if (!st && m->n_experts == 0)
        st = loader_fail(l, ST_INPUT, "the metadata have no experts");
    m->shares_of_all = true;
    return st ? st
              : loader_int_or(l, "expert_shared_feed_forward_length", 1, MAX_WIDTH,
                              n_ff, &m->n_ff_shared);
}

const struct arch arch_qwen2moe = {
    .name = "qwen2moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};
