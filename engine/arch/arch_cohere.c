/* SPDX-License-Identifier: MIT
 *
 * arch_cohere.c - Command R, R+ and R7B
 *
 * LayerNorm without biases, attention and feed-forward part with the same input, scaled
 * logits. Command R+ normalises queries and keys, each head with weights of its own.
 * Source: the models' published code (Cohere 2024).
 */
#include "engine/arch/loader.h"

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    {"attn_q_norm.weight", VECTOR_PER_HEAD(HEADS, q_norm.w), .optional = true},
    {"attn_k_norm.weight", VECTOR_PER_HEAD(KV_HEADS, k_norm.w), .optional = true},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    TENSORS_GATED_FFN,
    {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    m->parallel = true;
    m->head_norms = HEAD_NORMS_OWN;
    return loader_float_or(l, "logit_scale", 1e-6, 1e6, 1.0, &m->logit_scale);
}

const struct arch arch_command_r = {
    .name = "command-r",
    .norm = NORM_LAYER,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms, /* its norm has no bias either */
    .layer = layer,
    .setup = setup,
};

/* Command R7B: of four layers the last one sees everything and does not rotate. */
static enum status cohere2_setup(struct loader *l, struct model *m)
{
    const enum status st = setup(l, m);

    for (int i = 3; i < m->n_layers; i += 4)
        m->layers[i].rope = ROPE_NONE;
    return st ? st : loader_windows(l, m, 0, 4);
}

const struct arch arch_cohere2 = {
    .name = "cohere2",
    .norm = NORM_LAYER,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = cohere2_setup,
};
