/* SPDX-License-Identifier: MIT
 *
 * arch_nemotron_h.c - Nemotron-H and Nemotron 3 Nano
 *
 * A layer is one block, Mamba-2, attention or a feed-forward part, which adds to the
 * stream what it makes of the normalised input. Which one is said by two lists: layers
 * without heads of keys and without a width of their feed-forward part are Mamba-2.
 * Nothing is rotated; feed-forward parts and experts have no gate.
 * Sources: NVIDIA 2025, Nemotron-H (arXiv 2504.03624); names and keys as in published
 * GGUF files.
 */
#include "engine/arch/loader.h"

#define TENSORS_BLOCKS                                                            \
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},                              \
        {"attn_q.weight", MATRIX(EMBD, Q, wq), .when = WHEN_ATTENTION},           \
        {"attn_k.weight", MATRIX(EMBD, KV, wk), .when = WHEN_ATTENTION},          \
        {"attn_v.weight", MATRIX(EMBD, KV, wv), .when = WHEN_ATTENTION},          \
        {"attn_output.weight", MATRIX(Q, EMBD, wo), .when = WHEN_ATTENTION},      \
        TENSORS_SSM, {"ffn_up.weight", MATRIX(EMBD, FF, up), .when = WHEN_DENSE}, \
    {                                                                             \
        "ffn_down.weight", MATRIX(FF, EMBD, down), .when = WHEN_DENSE             \
    }

static const struct tensor_rule dense[] = {
    TENSORS_BLOCKS,
    {0},
};

static const struct tensor_rule experts[] = {
    TENSORS_BLOCKS,
    TENSORS_CHOICE_BIAS,
    {"ffn_gate_inp.weight", MATRIX(EMBD, EXPERTS, router), .when = WHEN_EXPERTS},
    {"ffn_up_exps.weight", MATRIX(EMBD, FF, up), .slices = DIM_EXPERTS,
     .each = "ffn_up", .when = WHEN_EXPERTS},
    {"ffn_down_exps.weight", MATRIX(FF, EMBD, down), .slices = DIM_EXPERTS,
     .each = "ffn_down", .when = WHEN_EXPERTS},
    {"ffn_up_shexp.weight", MATRIX(EMBD, FF_SHARED, shared_up), .when = WHEN_SHARED},
    {"ffn_down_shexp.weight", MATRIX(FF_SHARED, EMBD, shared_down),
     .when = WHEN_SHARED},
    {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    enum status st = loader_layers_by_kv(l, m);

    for (int i = 0, n = 0; !st && i < m->n_layers; i++) {
        struct layer *y = &m->layers[i];

        st = loader_int_of_layer(l, "feed_forward_length", i, &n);
        y->recurrent = !y->attends && n == 0;
        y->n_ff = y->attends ? 0 : n;
        y->routed &= y->n_ff > 0;
    }
    loader_number_layers(m);
    loader_no_rope(m);
    return st ? st : loader_ssm(l, m);
}

const struct arch arch_nemotron_h = {
    .name = "nemotron_h",
    .norm = NORM_RMS,
    .act = ACT_RELU_SQUARED,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = dense,
    .may_lack_parts = true,
    .setup = setup,
};

/* The width of all experts has a key of its own. */
static enum status setup_experts(struct loader *l, struct model *m)
{
    enum status st = loader_maybe_shared_expert(l, m);

    if (!st)
        st = loader_odds(l, m, ODDS_SIGMOID);
    if (!st)
        st = setup(l, m);
    for (int i = 0; !st && i < m->n_layers; i++)
        m->layers[i].n_ff = m->layers[i].routed ? m->n_ff : 0;
    return st;
}

const struct arch arch_nemotron_h_moe = {
    .name = "nemotron_h_moe",
    .norm = NORM_RMS,
    .act = ACT_RELU_SQUARED,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = experts,
    .may_lack_parts = true,
    .setup = setup_experts,
};
