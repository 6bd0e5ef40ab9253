/* SPDX-License-Identifier: MIT
 *
 * arch_qwen35.c - Qwen 3.5, dense and with experts, text
 *
 * Three of four layers are linear attention by the gated delta rule (forward_delta.c);
 * the fourth is qwen3's attention, whose queries include a gate for each element of the
 * result, and in which a part of each head is rotated. With experts, as qwen3moe, there
 * is a shared expert (qwen2moe). Layers that predict further tokens ("nextn") are not
 * computed. All positions are those of text, where the sections for images are equal.
 * Sources: Yang et al. 2024 (arXiv 2412.06464); the models' configuration files; names
 * and keys as in published GGUF files.
 */
#include "engine/arch/loader.h"
#include "engine/kv/kvcache.h"

#define TENSORS_MIXERS                                                                 \
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},                                   \
        {"attn_q.weight", MATRIX(EMBD, Q_GATE, wq), .when = WHEN_ATTENTION},           \
        {"attn_k.weight", MATRIX(EMBD, KV, wk), .when = WHEN_ATTENTION},               \
        {"attn_v.weight", MATRIX(EMBD, KV, wv), .when = WHEN_ATTENTION},               \
        {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w), .when = WHEN_ATTENTION},        \
        {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w), .when = WHEN_ATTENTION},        \
        {"attn_output.weight", MATRIX(Q, EMBD, wo), .when = WHEN_ATTENTION},           \
        {"attn_qkv.weight", MATRIX(EMBD, DELTA_IN, delta_in), .when = WHEN_RECURRENT}, \
        {"attn_gate.weight", MATRIX(EMBD, DELTA_OUT, delta_gate),                      \
         .when = WHEN_RECURRENT},                                                      \
        {"ssm_beta.weight", MATRIX(EMBD, DELTA_HEADS, delta_beta),                     \
         .when = WHEN_RECURRENT},                                                      \
        {"ssm_alpha.weight", MATRIX(EMBD, DELTA_HEADS, delta_alpha),                   \
         .when = WHEN_RECURRENT},                                                      \
        {"ssm_conv1d.weight", .kind = TENSOR_VECTOR, .k = DIM_DELTA_CONV,              \
         .part = {LAYER_PART(DELTA_IN, delta_conv)}, .when = WHEN_RECURRENT},          \
        {"ssm_dt.bias", VECTOR(DELTA_HEADS, delta_dt), .when = WHEN_RECURRENT},        \
        {"ssm_a", VECTOR(DELTA_HEADS, delta_a), .when = WHEN_RECURRENT},               \
        {"ssm_norm.weight", VECTOR(DELTA_HEAD, delta_norm.w), .when = WHEN_RECURRENT}, \
        {"ssm_out.weight", MATRIX(DELTA_OUT, EMBD, delta_out),                         \
         .when = WHEN_RECURRENT},                                                      \
    {                                                                                  \
        "post_attention_norm.weight", VECTOR(EMBD, ffn_norm.w)                         \
    }

static const struct tensor_rule dense[] = {
    TENSORS_MIXERS,
    TENSORS_GATED_FFN,
    {0},
};

static const struct tensor_rule experts[] = {
    TENSORS_MIXERS,
    TENSORS_EXPERTS,
    TENSORS_SHARED_EXPERT,
    {0},
};

/* Every interval-th layer has attention, the others are recurrent. */
static enum status setup_layers(struct loader *l, struct model *m)
{
    int interval, n_recurrent = 0, n_attention = 0;
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
        y->cached = y->recurrent ? n_recurrent++ : n_attention++;
    }
    m->n_recurrent = n_recurrent;
    return ST_OK;
}

static enum status setup_delta(struct loader *l, struct model *m)
{
    struct delta_sizes *s = &m->delta;
    int inner;
    enum status st =
        loader_int(l, "ssm.state_size", 1, KVCACHE_MAX_HEAD_DIM, &s->head_dim);

    if (!st)
        st = loader_int(l, "ssm.group_count", 1, MAX_HEADS, &s->n_k_heads);
    if (!st)
        st = loader_int(l, "ssm.time_step_rank", 1, MAX_HEADS, &s->n_v_heads);
    if (!st)
        st = loader_int(l, "ssm.conv_kernel", 1, DELTA_MAX_CONV, &s->n_conv);
    if (!st)
        st = loader_int(l, "ssm.inner_size", 1, MAX_WIDTH, &inner);
    if (st)
        return st;
    if (s->n_v_heads % s->n_k_heads)
        return loader_fail(l, ST_INPUT,
                           "%d value heads cannot share %d key heads evenly",
                           s->n_v_heads, s->n_k_heads);
    if (inner != s->n_v_heads * s->head_dim)
        return loader_fail(
            l, ST_UNSUPPORTED,
            "ssm.inner_size is %d, and only that of %d heads of %d is supported", inner,
            s->n_v_heads, s->head_dim);
    return ST_OK;
}

static enum status setup(struct loader *l, struct model *m)
{
    int n_more;
    enum status st =
        loader_int_or(l, "nextn_predict_layers", 0, m->n_layers - 1, 0, &n_more);

    if (st)
        return st;
    m->n_layers -= n_more;
    loader_ignore_layers(l, m->n_layers, n_more);
    m->gated_queries = true;
    st = setup_layers(l, m);
    return st ? st : setup_delta(l, m);
}

static enum status setup_experts(struct loader *l, struct model *m)
{
    const enum status st = setup(l, m);

    return st ? st : loader_shared_expert(l, m);
}

const struct arch arch_qwen35 = {
    .name = "qwen35",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = dense,
    .setup = setup,
};

const struct arch arch_qwen35moe = {
    .name = "qwen35moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = experts,
    .setup = setup_experts,
};
