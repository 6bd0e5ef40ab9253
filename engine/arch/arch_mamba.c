/* SPDX-License-Identifier: MIT
 *
 * arch_mamba.c - Mamba-2: layers without attention and without a feed-forward part; and
 * Falcon-H1, whose layers have attention next to it, from the same input
 *
 * Falcon-H1's multipliers are part of the weights in GGUF files.
 * Sources: Dao and Gu 2024 (arXiv 2405.21060), Zuo et al. 2025 (arXiv 2507.22448);
 * names and keys as in published GGUF files.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule mamba2[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_SSM,
    {0},
};

/* All layers have a recurrent part, and attention as well or not. */
static enum status setup_layers(struct loader *l, struct model *m, bool attend)
{
    for (int i = 0; i < m->n_layers; i++) {
        m->layers[i].attends = attend;
        m->layers[i].recurrent = true;
    }
    loader_number_layers(m);
    return loader_ssm(l, m);
}

static enum status setup_mamba2(struct loader *l, struct model *m)
{
    return setup_layers(l, m, false);
}

const struct arch arch_mamba2 = {
    .name = "mamba2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = mamba2,
    .may_lack_parts = true,
    .setup = setup_mamba2,
};

static const struct tensor_rule falcon_h1[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    TENSORS_SSM,
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w), .unless = "ffn_norm"},
    {"ffn_norm", VECTOR(EMBD, ffn_norm.w), .optional = true},
    TENSORS_GATED_FFN,
    {0},
};

static enum status setup_falcon_h1(struct loader *l, struct model *m)
{
    return setup_layers(l, m, true);
}

const struct arch arch_falcon_h1 = {
    .name = "falcon-h1",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = falcon_h1,
    .setup = setup_falcon_h1,
};
