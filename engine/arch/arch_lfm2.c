/* SPDX-License-Identifier: MIT
 *
 * arch_lfm2.c - LFM2 and LFM2.5, dense and with experts
 *
 * Most layers mix tokens by a gated convolution of few taps (forward_conv.c) instead of
 * attention, whose queries and keys are normalised; which ones is said by the numbers
 * of heads of keys and values. The first layers have no experts. The norm before the
 * output has the name of the embedding's. Sources: Liquid AI 2025, LFM2 technical
 * report (arXiv 2511.23404); the models' configuration files; names and keys as in
 * published GGUF files.
 */
#include "engine/arch/loader.h"

static const struct tensor_rule ends[] = {
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, embd)}},
    {"output.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, output)}, .optional = true},
    {"token_embd_norm.weight", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.w)}},
    {0},
};

#define TENSORS_MIXERS                                                          \
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},                            \
        {"attn_q.weight", MATRIX(EMBD, Q, wq), .when = WHEN_ATTENTION},         \
        {"attn_k.weight", MATRIX(EMBD, KV, wk), .when = WHEN_ATTENTION},        \
        {"attn_v.weight", MATRIX(EMBD, KV, wv), .when = WHEN_ATTENTION},        \
        {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w), .when = WHEN_ATTENTION}, \
        {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w), .when = WHEN_ATTENTION}, \
        {"attn_output.weight", MATRIX(Q, EMBD, wo), .when = WHEN_ATTENTION},    \
        {"shortconv.in_proj.weight", MATRIX(EMBD, REC_IN, rec.in),              \
         .when = WHEN_RECURRENT},                                               \
        {"shortconv.conv.weight", .kind = TENSOR_VECTOR, .k = DIM_REC_CONV,     \
         .part = {LAYER_PART(REC_CHANNELS, rec.conv)}, .when = WHEN_RECURRENT}, \
        {"shortconv.out_proj.weight", MATRIX(REC_VALUES, EMBD, rec.out),        \
         .when = WHEN_RECURRENT},                                               \
    {                                                                           \
        "ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)                             \
    }

static const struct tensor_rule dense[] = {
    TENSORS_MIXERS,
    TENSORS_GATED_FFN,
    {0},
};

static const struct tensor_rule experts[] = {
    TENSORS_MIXERS, TENSORS_GATED_FFN, TENSORS_EXPERTS, TENSORS_CHOICE_BIAS, {0},
};

static enum status setup(struct loader *l, struct model *m)
{
    m->recur = (struct recur_sizes){
        .kind = RECUR_SHORT_CONV, .n_heads = 1, .value_dim = m->n_embd};
    const enum status st =
        loader_int(l, "shortconv.l_cache", 1, RECUR_MAX_CONV, &m->recur.n_conv);

    return st ? st : loader_layers_by_kv(l, m);
}

const struct arch arch_lfm2 = {
    .name = "lfm2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = ends,
    .layer = dense,
    .may_lack_parts = true,
    .setup = setup,
};

static enum status setup_experts(struct loader *l, struct model *m)
{
    enum status st = setup(l, m);

    if (!st)
        st = loader_only_experts(l, m);
    if (!st)
        st = loader_leading_dense(l, m);
    return st ? st : loader_odds(l, m, ODDS_SIGMOID);
}

const struct arch arch_lfm2moe = {
    .name = "lfm2moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = ends,
    .layer = experts,
    .may_lack_parts = true,
    .setup = setup_experts,
};
