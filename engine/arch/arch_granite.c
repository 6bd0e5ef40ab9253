/* SPDX-License-Identifier: MIT
 *
 * arch_granite.c - Granite 3 and 4, MiniCPM
 *
 * As llama with scaled embeddings, blocks and logits; Granite also scales scores by a
 * number of its own. Most layers of the hybrids of Granite 4 have Mamba-2 instead of
 * attention.
 * Sources: Granite team 2024 (Granite 3.0 language models), Hu et al. 2024 (MiniCPM,
 * arXiv 2404.06395), and the models' published code.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    TENSORS_EXPERTS,
    TENSORS_WHOLE_SHARED_EXPERT,
    {0},
};

static enum status granite_setup(struct loader *l, struct model *m)
{
    bool rotated = true;
    enum status st = loader_scales(l, m);

    if (!st)
        st = loader_bool_or(l, "rope.scaling.finetuned", true, &rotated);
    if (!st && !rotated)
        loader_no_rope(m);
    return st;
}

const struct arch arch_granite = {
    .name = "granite",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = granite_setup,
};

static enum status granitemoe_setup(struct loader *l, struct model *m)
{
    const enum status st = granite_setup(l, m);

    return st ? st : loader_maybe_shared_expert(l, m);
}

const struct arch arch_granitemoe = {
    .name = "granitemoe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = granitemoe_setup,
};

static const struct tensor_rule hybrid[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_q.weight", MATRIX(EMBD, Q, wq), .when = WHEN_ATTENTION},
    {"attn_k.weight", MATRIX(EMBD, KV, wk), .when = WHEN_ATTENTION},
    {"attn_v.weight", MATRIX(EMBD, KV, wv), .when = WHEN_ATTENTION},
    {"attn_output.weight", MATRIX(Q, EMBD, wo), .when = WHEN_ATTENTION},
    TENSORS_SSM,
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    TENSORS_EXPERTS,
    TENSORS_WHOLE_SHARED_EXPERT,
    {0},
};

/* A dense one may call its feed-forward part's width that of a shared expert, too. */
static enum status hybrid_setup(struct loader *l, struct model *m)
{
    enum status st = granite_setup(l, m);

    if (!st)
        st = loader_ssm(l, m);
    if (!st)
        st = loader_layers_by_kv(l, m);
    if (!st)
        st = loader_experts(l, m);
    return st || !m->n_experts ? st : loader_maybe_shared_expert(l, m);
}

const struct arch arch_granitehybrid = {
    .name = "granitehybrid",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = hybrid,
    .may_lack_parts = true,
    .setup = hybrid_setup,
};

const struct arch arch_minicpm = {
    .name = "minicpm",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = loader_scales,
};
