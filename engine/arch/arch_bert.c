/* SPDX-License-Identifier: MIT
 *
 * arch_bert.c - encoders: BERT and Nomic's variant of it
 *
 * A token sees the whole text. LayerNorm of the stream after each addition, and of
 * the embeddings, to which the first kind of text is added. Sources: Devlin et al. 2018
 * (arXiv 1810.04805), Nussbaum et al. 2024 (arXiv 2402.01613), and the models'
 * published code.
 */
#include "engine/arch/loader.h"

#define ENDS                                                        \
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,      \
     .part = {MODEL_PART(VOCAB, embd)}},                            \
        {"token_types.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD, \
         .part = {MODEL_PART(TYPES, type_embd)}, .optional = true}, \
        {"token_embd_norm.weight", .kind = TENSOR_VECTOR,           \
         .part = {MODEL_PART(EMBD, embd_norm.w)}},                  \
    {                                                               \
        "token_embd_norm.bias", .kind = TENSOR_VECTOR, .part = {    \
            MODEL_PART(EMBD, embd_norm.b)                           \
        }                                                           \
    }

#define POST_NORM(name, field)               \
    {name ".weight", VECTOR(EMBD, field.w)}, \
    {                                        \
        name ".bias", VECTOR(EMBD, field.b)  \
    }

static enum status setup(struct loader *l, struct model *m)
{
    m->norms_sum = true;
    return loader_token_types(l, m);
}

/* BERT: positions are learned; a plain feed-forward part with GELU. */

static const struct tensor_rule bert_ends[] = {
    ENDS,
    {"position_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(CONTEXT, pos_embd)}},
    {0},
};

static const struct tensor_rule bert_layer[] = {
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"attn_output.bias", VECTOR(EMBD, bo), .optional = true},
    POST_NORM("attn_output_norm", attn_post_norm),
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_up.bias", VECTOR(FF, b_up), .optional = true},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {"ffn_down.bias", VECTOR(EMBD, b_down), .optional = true},
    POST_NORM("layer_output_norm", ffn_post_norm),
    {0},
};

const struct arch arch_bert = {
    .name = "bert",
    .norm = NORM_LAYER,
    .act = ACT_GELU,
    .pairs = PAIRS_NONE,
    .ends = bert_ends,
    .layer = bert_layer,
    .encodes = true,
    .setup = setup,
};

/* Nomic BERT: rotated positions, a gated feed-forward part with SiLU. */

static const struct tensor_rule nomic_ends[] = {ENDS, {0}};

static const struct tensor_rule nomic_layer[] = {
    TENSORS_QKV_ANY,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"attn_output.bias", VECTOR(EMBD, bo), .optional = true},
    POST_NORM("attn_output_norm", attn_post_norm),
    TENSORS_GATED_FFN,
    {"ffn_up.bias", VECTOR(FF, b_up), .optional = true},
    {"ffn_down.bias", VECTOR(EMBD, b_down), .optional = true},
    POST_NORM("layer_output_norm", ffn_post_norm),
    {0},
};

const struct arch arch_nomic_bert = {
    .name = "nomic-bert",
    .norm = NORM_LAYER,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = nomic_ends,
    .layer = nomic_layer,
    .encodes = true,
    .setup = setup,
};
