/* SPDX-License-Identifier: MIT
 *
 * arch_olmo.c - OLMo 2 and 3, OLMoE, EXAONE 4
 *
 * OLMo 2 and EXAONE 4 normalise what blocks add to the stream and not what they read.
 * OLMo normalises queries and keys of all heads together.
 * Sources: OLMo team 2024 (arXiv 2501.00656), Muennighoff et al. 2024 (OLMoE, arXiv
 * 2409.02060), LG AI Research 2025 (EXAONE 4.0, arXiv 2507.11407), and the models'
 * published code.
 */
#include "engine/arch/loader.h"

/* Where the model has windows, every fourth layer sees all positions. */
#define PERIOD 4

static const struct tensor_rule olmo2_layer[] = {
    TENSORS_QKV,
    {"attn_q_norm.weight", VECTOR(Q, q_norm.w)},
    {"attn_k_norm.weight", VECTOR(KV, k_norm.w)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
    TENSORS_GATED_FFN,
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {0},
};

/* OLMo 3's layers with a window rotate for its length, without yarn. */
static enum status olmo2_setup(struct loader *l, struct model *m)
{
    double base;
    enum status st = loader_windows(l, m, 0, PERIOD);

    m->head_norms = HEAD_NORMS_WHOLE;
    if (st || !m->layers[0].window)
        return st;
    st = loader_real_or(l, "rope.freq_base", 1e-3, 1e15, 10000.0, &base);
    if (!st)
        st = rope_plain(l, &m->ropes[1], m->n_rot, base, 1.0);
    m->n_ropes = 2;
    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].rope = m->layers[i].window > 0;
    return st;
}

const struct arch arch_olmo2 = {
    .name = "olmo2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = olmo2_layer,
    .setup = olmo2_setup,
};

static const struct tensor_rule olmoe_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_q_norm.weight", VECTOR(Q, q_norm.w)},
    {"attn_k_norm.weight", VECTOR(KV, k_norm.w)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_EXPERTS,
    {0},
};

static enum status olmoe_setup(struct loader *l, struct model *m)
{
    m->head_norms = HEAD_NORMS_WHOLE;
    m->shares_of_all = true;
    return loader_only_experts(l, m);
}

const struct arch arch_olmoe = {
    .name = "olmoe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = olmoe_layer,
    .setup = olmoe_setup,
};

static const struct tensor_rule exaone4_layer[] = {
    TENSORS_QKV,
    TENSORS_HEAD_NORMS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
    TENSORS_GATED_FFN,
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {0},
};

/* Where the model has windows, the other layers do not rotate. */
static enum status exaone4_setup(struct loader *l, struct model *m)
{
    const enum status st = loader_windows(l, m, 0, PERIOD);
    const bool windows = !st && m->layers[0].window;

    for (int i = PERIOD - 1; windows && i < m->n_layers; i += PERIOD)
        m->layers[i].rope = ROPE_NONE;
    return st;
}

const struct arch arch_exaone4 = {
    .name = "exaone4",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = exaone4_layer,
    .setup = exaone4_setup,
};
