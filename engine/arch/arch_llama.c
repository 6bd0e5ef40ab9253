/* SPDX-License-Identifier: MIT
 *
 * arch_llama.c - Llama 2 and 3, Mistral, Ministral, Yi, TinyLlama, Mixtral, SmolLM 3,
 * InternLM 2, Arcee
 *
 * RMSNorm, rotated neighbouring pairs, grouped heads, a SiLU-gated feed-forward
 * part; with experts each token takes the few that the router scores highest,
 * weighted by a softmax over those few.
 * Sources: Touvron et al. 2023 (arXiv 2307.09288), Jiang et al. 2024 (Mixtral,
 * arXiv 2401.04088), Cai et al. 2024 (InternLM 2, arXiv 2403.17297); the published code
 * of SmolLM 3, Ministral 3 and AFM; tensor names and metadata keys as in the GGUF
 * specification.
 */
#include "engine/arch/loader.h"

/* Files whose models have biases in attention or in the feed-forward part have these.
 */
static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {"ffn_gate.bias", VECTOR(FF, b_gate), .optional = true, .when = WHEN_DENSE},
    {"ffn_up.bias", VECTOR(FF, b_up), .optional = true, .when = WHEN_DENSE},
    {"ffn_down.bias", VECTOR(EMBD, b_down), .optional = true, .when = WHEN_DENSE},
    TENSORS_EXPERTS,
    {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    const enum status st = loader_experts(l, m);

    return st ? st : loader_windows(l, m, 0, 1);
}

const struct arch arch_llama = {
    .name = "llama",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};

const struct arch arch_internlm2 = {
    .name = "internlm2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
};

/* Ministral 3: queries at positions beyond the original context are larger. */
static enum status mistral3_setup(struct loader *l, struct model *m)
{
    enum status st = setup(l, m);

    if (!st)
        st = loader_float_or(l, "attention.temperature_scale", 0.0, 1e3, 0.0,
                             &m->temperature);
    if (!st && m->temperature > 0.0f)
        st = loader_int(l, "rope.scaling.original_context_length", 1, MAX_CONTEXT,
                        &m->temperature_span);
    return st;
}

const struct arch arch_mistral3 = {
    .name = "mistral3",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = mistral3_setup,
};

/* SmolLM 3: every fourth layer does not rotate, for which files have no key. */
static enum status smollm3_setup(struct loader *l, struct model *m)
{
    (void)l;
    for (int i = 3; i < m->n_layers; i += 4)
        m->layers[i].rope = ROPE_NONE;
    return ST_OK;
}

const struct arch arch_smollm3 = {
    .name = "smollm3",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = smollm3_setup,
};

/* Arcee (AFM): a plain feed-forward part with squared ReLU. */
static const struct tensor_rule arcee_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {0},
};

const struct arch arch_arcee = {
    .name = "arcee",
    .norm = NORM_RMS,
    .act = ACT_RELU_SQUARED,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = arcee_layer,
};
