/* SPDX-License-Identifier: MIT
 *
 * arch_qwen35.c - Qwen 3.5, dense and with experts, text; Qwen3 Next
 *
 * Three of four layers are linear attention by the gated delta rule (forward_delta.c);
 * the fourth is qwen3's attention, whose queries include a gate for each element of the
 * result, and in which a part of each head is rotated. With experts, as qwen3moe, there
 * is a shared expert (qwen2moe). Layers that predict further tokens ("nextn") are
 * computed on request, as drafts (loader_nextn.c). Qwen3 Next is the same with other
 * neighbours: heads of values that share one of keys follow each other, and beta and
 * alpha are one matrix. All positions are those of text, where the sections for images
 * are equal. Sources: Yang et al. 2024 (arXiv 2412.06464); the models' configuration
 * files; names and keys as in published GGUF files.
 */
#include "engine/arch/loader.h"

#define TENSORS_MIXERS                                                                 \
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},                                   \
        {"attn_q.weight", MATRIX(EMBD, Q_GATE, wq), .when = WHEN_ATTENTION},           \
        {"attn_k.weight", MATRIX(EMBD, KV, wk), .when = WHEN_ATTENTION},               \
        {"attn_v.weight", MATRIX(EMBD, KV, wv), .when = WHEN_ATTENTION},               \
        {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w), .when = WHEN_ATTENTION},        \
        {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w), .when = WHEN_ATTENTION},        \
        {"attn_output.weight", MATRIX(Q, EMBD, wo), .when = WHEN_ATTENTION},           \
        {"attn_qkv.weight", MATRIX(EMBD, REC_IN, rec.in), .when = WHEN_RECURRENT},     \
        {"attn_gate.weight", MATRIX(EMBD, REC_VALUES, rec.gate),                       \
         .when = WHEN_RECURRENT},                                                      \
        {"ssm_conv1d.weight", .kind = TENSOR_VECTOR, .k = DIM_REC_CONV,                \
         .part = {LAYER_PART(REC_CHANNELS, rec.conv)}, .when = WHEN_RECURRENT},        \
        {"ssm_dt.bias", VECTOR(REC_HEADS, rec.dt), .when = WHEN_RECURRENT},            \
        {"ssm_a", VECTOR(REC_HEADS, rec.a), .when = WHEN_RECURRENT},                   \
        {"ssm_norm.weight", VECTOR(REC_VALUE, rec.norm.w), .when = WHEN_RECURRENT},    \
        {"ssm_out.weight", MATRIX(REC_VALUES, EMBD, rec.out), .when = WHEN_RECURRENT}, \
    {                                                                                  \
        "post_attention_norm.weight", VECTOR(EMBD, ffn_norm.w)                         \
    }

#define TENSORS_BETA_ALPHA                                                             \
    {"ssm_beta.weight", MATRIX(EMBD, REC_HEADS, rec.beta), .when = WHEN_RECURRENT},    \
    {                                                                                  \
        "ssm_alpha.weight", MATRIX(EMBD, REC_HEADS, rec.alpha), .when = WHEN_RECURRENT \
    }

static const struct tensor_rule dense[] = {
    TENSORS_MIXERS,
    TENSORS_BETA_ALPHA,
    TENSORS_GATED_FFN,
    {0},
};

static const struct tensor_rule experts[] = {
    TENSORS_MIXERS, TENSORS_BETA_ALPHA, TENSORS_EXPERTS, TENSORS_SHARED_EXPERT, {0},
};

static const struct tensor_rule next_experts[] = {
    TENSORS_MIXERS,
    {"ssm_ba.weight", MATRIX(EMBD, REC_HEADS_2, rec.beta), .when = WHEN_RECURRENT},
    TENSORS_EXPERTS,
    TENSORS_SHARED_EXPERT,
    {0},
};

/* Every interval-th layer has attention, the others are recurrent. */
static enum status setup_layers(struct loader *l, struct model *m)
{
    int interval;
    const enum status st =
        loader_int_or(l, "full_attention_interval", 1, MAX_LAYERS, 4, &interval);

    if (st)
        return st;
    if (m->n_layers < interval)
        return loader_fail(
            l, ST_UNSUPPORTED,
            "%d layers, of which every %dth attends: none does, which is not supported",
            m->n_layers, interval);
    for (int i = 0; i < m->n_layers; i++) {
        struct layer *y = &m->layers[i];

        y->recurrent = (i + 1) % interval != 0;
        y->attends = !y->recurrent;
    }
    loader_number_layers(m);
    return ST_OK;
}

static enum status setup(struct loader *l, struct model *m)
{
    enum status st = loader_nextn(l, m);

    if (st)
        return st;
    m->gated_queries = true;
    st = setup_layers(l, m);
    m->recur.kind = RECUR_DELTA;
    return st ? st : loader_recurrent(l, m);
}

static enum status setup_experts(struct loader *l, struct model *m)
{
    const enum status st = setup(l, m);

    return st ? st : loader_shared_expert(l, m);
}

static enum status setup_next(struct loader *l, struct model *m)
{
    m->recur.neighbours = true;
    return setup_experts(l, m);
}

const struct arch arch_qwen35 = {
    .name = "qwen35",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = dense,
    .may_predict = true,
    .setup = setup,
};

const struct arch arch_qwen35moe = {
    .name = "qwen35moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = experts,
    .may_predict = true,
    .setup = setup_experts,
};

const struct arch arch_qwen3next = {
    .name = "qwen3next",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = next_experts,
    .may_predict = true,
    .setup = setup_next,
};
