/* SPDX-License-Identifier: MIT
 *
 * arch_gpt.c - GPT-2, GPT-NeoX and Pythia, StarCoder 2, Falcon, Nemotron
 *
 * LayerNorm with biases and a plain feed-forward part, with GELU or squared ReLU.
 * Sources: Radford et al. 2019, Black et al. 2022 (arXiv 2204.06745), Lozhkov et al.
 * 2024 (arXiv 2402.19173), Almazrouei et al. 2023 (arXiv 2311.16867), Parmar et al.
 * 2024 (arXiv 2402.16819), and the models' published code.
 */
#include "engine/arch/loader.h"

#define TENSORS_NORM(name, field)            \
    {name ".weight", VECTOR(EMBD, field.w)}, \
    {                                        \
        name ".bias", VECTOR(EMBD, field.b)  \
    }

/* Biases of the feed-forward part, which some of them have. */
#define TENSORS_PLAIN_FFN                                       \
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},                    \
        {"ffn_up.bias", VECTOR(FF, b_up), .optional = true},    \
        {"ffn_down.weight", MATRIX(FF, EMBD, down)},            \
    {                                                           \
        "ffn_down.bias", VECTOR(EMBD, b_down), .optional = true \
    }

/* Queries, keys and values in one matrix or in three. */
static const struct tensor_rule layer[] = {
    TENSORS_NORM("attn_norm", attn_norm),
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"attn_output.bias", VECTOR(EMBD, bo), .optional = true},
    TENSORS_NORM("ffn_norm", ffn_norm),
    TENSORS_PLAIN_FFN,
    {0},
};

const struct arch arch_starcoder2 = {
    .name = "starcoder2",
    .norm = NORM_LAYER,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_layernorm,
    .layer = layer,
};

const struct arch arch_nemotron = {
    .name = "nemotron",
    .norm = NORM_LAYER,
    .act = ACT_RELU_SQUARED,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_layernorm,
    .layer = layer,
};

/* GPT-NeoX: both blocks read the layer's input, each through a norm of its own. */
static enum status gptneox_setup(struct loader *l, struct model *m)
{
    return loader_bool_or(l, "use_parallel_residual", true, &m->parallel);
}

const struct arch arch_gptneox = {
    .name = "gptneox",
    .norm = NORM_LAYER,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_layernorm,
    .layer = layer,
    .setup = gptneox_setup,
};

/* GPT-2: positions are learned. */
static const struct tensor_rule gpt2_ends[] = {
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, embd)}},
    {"position_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(CONTEXT, pos_embd)}},
    {"output.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, output)}, .optional = true},
    {"output_norm.weight", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.w)}},
    {"output_norm.bias", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.b)}},
    {0},
};

const struct arch arch_gpt2 = {
    .name = "gpt2",
    .norm = NORM_LAYER,
    .act = ACT_GELU,
    .pairs = PAIRS_NONE,
    .ends = gpt2_ends,
    .layer = layer,
};

/* Falcon: both blocks read the layer's input through one norm; where there are two,
 * attention has the second one. */
static const struct tensor_rule falcon_layer[] = {
    {"attn_norm_2.weight", VECTOR(EMBD, attn_norm.w), .optional = true},
    {"attn_norm_2.bias", VECTOR(EMBD, attn_norm.b), .optional = true},
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w), .unless = "attn_norm_2.weight"},
    {"attn_norm.bias", VECTOR(EMBD, attn_norm.b), .unless = "attn_norm_2.weight"},
    TENSORS_NORM("attn_norm", ffn_norm),
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    TENSORS_PLAIN_FFN,
    {0},
};

static enum status falcon_setup(struct loader *l, struct model *m)
{
    (void)l;
    m->parallel = true;
    return ST_OK;
}

const struct arch arch_falcon = {
    .name = "falcon",
    .norm = NORM_LAYER,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_layernorm,
    .layer = falcon_layer,
    .setup = falcon_setup,
};
