/* SPDX-License-Identifier: MIT
 *
 * arch_phi.c - Phi 1.5, 2, 3, 3.5 (also with experts) and 4
 *
 * Sources: Li et al. 2023 (arXiv 2309.05463), Abdin et al. 2024 (arXiv 2404.14219) and
 * the models' published code.
 */
#include "engine/arch/loader.h"

/* Phi 1.5 and 2: LayerNorm, biases everywhere, a plain feed-forward part with GELU that
 * takes the same input as attention; part of each head is rotated. */
static const struct tensor_rule phi2_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_norm.bias", VECTOR(EMBD, attn_norm.b)},
    {"attn_qkv.weight", MATRIX_3(EMBD, Q, wq, KV, wk, KV, wv), .optional = true},
    {"attn_q.weight", MATRIX(EMBD, Q, wq), .unless = "attn_qkv.weight"},
    {"attn_k.weight", MATRIX(EMBD, KV, wk), .unless = "attn_qkv.weight"},
    {"attn_v.weight", MATRIX(EMBD, KV, wv), .unless = "attn_qkv.weight"},
    {"attn_qkv.bias", VECTOR_3(Q, bq, KV, bk, KV, bv), .unless = "attn_q.weight"},
    {"attn_q.bias", VECTOR(Q, bq), .unless = "attn_qkv.weight"},
    {"attn_k.bias", VECTOR(KV, bk), .unless = "attn_qkv.weight"},
    {"attn_v.bias", VECTOR(KV, bv), .unless = "attn_qkv.weight"},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"attn_output.bias", VECTOR(EMBD, bo)},
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_up.bias", VECTOR(FF, b_up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {"ffn_down.bias", VECTOR(EMBD, b_down)},
    {0},
};

static enum status phi2_setup(struct loader *l, struct model *m)
{
    (void)l;
    m->parallel = true;
    return ST_OK;
}

const struct arch arch_phi2 = {
    .name = "phi2",
    .norm = NORM_LAYER,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_layernorm,
    .layer = phi2_layer,
    .setup = phi2_setup,
};

/* Phi 3, 3.5 and 4: as llama, but queries, keys and values are one matrix, gate and up
 * are one, and a head's halves are rotated against each other. */
static const struct tensor_rule phi3_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_up.weight", MATRIX_2(EMBD, FF, gate, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {0},
};

static enum status phi3_setup(struct loader *l, struct model *m)
{
    return loader_windows(l, m, 0, 1);
}

const struct arch arch_phi3 = {
    .name = "phi3",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = phi3_layer,
    .setup = phi3_setup,
};

/* Phi 3.5 MoE, as the reference engine computes it: norms have biases, but subtract no
 * mean. */
static const struct tensor_rule phimoe_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_norm.bias", VECTOR(EMBD, attn_norm.b)},
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"attn_output.bias", VECTOR(EMBD, bo), .optional = true},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_norm.bias", VECTOR(EMBD, ffn_norm.b)},
    TENSORS_EXPERTS,
    {0},
};

const struct arch arch_phimoe = {
    .name = "phimoe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_layernorm,
    .layer = phimoe_layer,
    .setup = loader_only_experts,
};
