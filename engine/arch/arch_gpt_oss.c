/* SPDX-License-Identifier: MIT
 *
 * arch_gpt_oss.c - gpt-oss
 *
 * Experts in all layers, with biases, also of the router, and a clamped activation; a
 * score of each head that takes a share of its softmax and has no value; every other
 * layer has a sliding window.
 * Source: OpenAI 2025 (gpt-oss model card, arXiv 2508.10925) and the published code.
 */
#include "engine/arch/loader.h"

/* As many rows for every expert. */
#define VECTOR_PER_EXPERT(n, field) \
    .kind = TENSOR_VECTOR, .k = DIM_##n, .part = {LAYER_PART(EXPERTS, field)}

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    {"attn_sinks.weight", VECTOR(HEADS, sink)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_EXPERTS,
    {"ffn_gate_inp.bias", VECTOR(EXPERTS, b_router)},
    {"ffn_gate_exps.bias", VECTOR_PER_EXPERT(FF, b_gate)},
    {"ffn_up_exps.bias", VECTOR_PER_EXPERT(FF, b_up)},
    {"ffn_down_exps.bias", VECTOR_PER_EXPERT(EMBD, b_down)},
    {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    const enum status st = loader_only_experts(l, m);

    return st ? st : loader_windows(l, m, 0, 2);
}

const struct arch arch_gpt_oss = {
    .name = "gpt-oss",
    .norm = NORM_RMS,
    .act = ACT_CLAMPED,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};
