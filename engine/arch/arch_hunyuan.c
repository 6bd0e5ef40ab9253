/* SPDX-License-Identifier: MIT
 *
 * arch_hunyuan.c - Hunyuan, dense; Seed-OSS
 *
 * As qwen3 and qwen2. Hunyuan rotates heads before it normalises them; in files of
 * Seed-OSS the norm before the feed-forward part has another name.
 * Source: the models' published code (Tencent 2025, ByteDance 2025).
 */
#include "engine/arch/loader.h"

static const struct tensor_rule hunyuan_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_HEAD_NORMS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {0},
};

static enum status hunyuan_setup(struct loader *l, struct model *m)
{
    (void)l;
    m->rotates_first = true;
    return ST_OK;
}

const struct arch arch_hunyuan = {
    .name = "hunyuan-dense",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = hunyuan_layer,
    .setup = hunyuan_setup,
};

static const struct tensor_rule seed_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {0},
};

const struct arch arch_seed_oss = {
    .name = "seed_oss",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = seed_layer,
};
