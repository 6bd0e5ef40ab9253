/* SPDX-License-Identifier: MIT
 *
 * arch_stablelm.c - StableLM 3B and StableLM 2
 *
 * LayerNorm, a SiLU-gated feed-forward part, part of each head is rotated. The 12B
 * model has no norm before the feed-forward part, which then takes the same input
 * as attention, and norms queries and keys, each head with weights of its own.
 * Source: Bellagente et al. 2024 (arXiv 2402.17834) and the models' published code.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_norm.bias", VECTOR(EMBD, attn_norm.b)},
    TENSORS_QKV,
    {"attn_q.bias", VECTOR(Q, bq), .optional = true},
    {"attn_k.bias", VECTOR(KV, bk), .optional = true},
    {"attn_v.bias", VECTOR(KV, bv), .optional = true},
    {"attn_q_norm.weight", VECTOR_PER_HEAD(HEADS, q_norm.w), .optional = true},
    {"attn_k_norm.weight", VECTOR_PER_HEAD(KV_HEADS, k_norm.w), .optional = true},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w), .optional = true},
    {"ffn_norm.bias", VECTOR(EMBD, ffn_norm.b), .optional = true},
    TENSORS_GATED_FFN,
    {0},
};

/* The key use_parallel_residual is unusable: files of sequential models set it. */
static enum status setup(struct loader *l, struct model *m)
{
    m->parallel = !loader_has(l, 0, "ffn_norm.weight");
    m->head_norms = HEAD_NORMS_OWN;
    for (int i = 1; i < m->n_layers; i++)
        if (loader_has(l, i, "ffn_norm.weight") == m->parallel)
            return loader_fail(l, ST_UNSUPPORTED,
                               "some layers have a norm before the feed-forward part "
                               "and others do not");
    return ST_OK;
}

const struct arch arch_stablelm = {
    .name = "stablelm",
    .norm = NORM_LAYER,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_layernorm,
    .layer = layer,
    .setup = setup,
};
