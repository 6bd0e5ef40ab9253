/* SPDX-License-Identifier: MIT
 *
 * arch_gemma4.c - Gemma 3n and 4, text
 *
 * Values are normalised, too. Small models have per-layer embeddings, and their last
 * layers read the keys and values of earlier ones. In Gemma 4 layers with a sliding
 * window and those without differ in the number and length of their heads; a large one
 * has experts next to a dense feed-forward part, each with norms of its own before and
 * behind it. In Gemma 3n a token has several streams (forward_altup.c), and the first
 * layers' gates are sparse.
 * Sources: the model cards of Gemma 3n (Google 2025) and 4 (Google 2026), and the
 * published code.
 */
#include "engine/arch/loader.h"

#include <math.h>

#define TENSORS_ENDS                                             \
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,   \
     .part = {MODEL_PART(VOCAB, embd)}},                         \
        {"output.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,  \
         .part = {MODEL_PART(VOCAB, output)}, .optional = true}, \
        {"output_norm.weight", .kind = TENSOR_VECTOR,            \
         .part = {MODEL_PART(EMBD, output_norm.w)}},             \
        TENSORS_PER_LAYER_ENDS

#define TENSORS_ATTENTION                                                    \
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},                         \
        {"attn_q.weight", MATRIX(EMBD, Q, wq)},                              \
        {"attn_k.weight", MATRIX(EMBD, KV, wk), .when = WHEN_OWN_KV},        \
        {"attn_v.weight", MATRIX(EMBD, KV, wv), .when = WHEN_OWN_KV,         \
         .optional = true},                                                  \
        {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w)},                      \
        {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w), .when = WHEN_OWN_KV}, \
        {"attn_output.weight", MATRIX(Q, EMBD, wo)},                         \
    {                                                                        \
        "post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)         \
    }

static const struct tensor_rule gemma4_ends[] = {
    TENSORS_ENDS,
    {0},
};

static const struct tensor_rule gemma4_layer[] = {
    TENSORS_ATTENTION,
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {"ffn_gate.weight", MATRIX(EMBD, FF_SHARED, shared_gate), .when = WHEN_SHARED},
    {"ffn_up.weight", MATRIX(EMBD, FF_SHARED, shared_up), .when = WHEN_SHARED},
    {"ffn_down.weight", MATRIX(FF_SHARED, EMBD, shared_down), .when = WHEN_SHARED},
    {"post_ffw_norm_1.weight", VECTOR(EMBD, shared_post_norm.w), .when = WHEN_SHARED},
    {"ffn_gate_inp.scale", VECTOR(EMBD, router_norm.w), .when = WHEN_EXPERTS},
    {"ffn_gate_inp.weight", MATRIX(EMBD, EXPERTS, router), .when = WHEN_EXPERTS},
    {"pre_ffw_norm_2.weight", VECTOR(EMBD, experts_norm.w), .when = WHEN_EXPERTS},
    {"ffn_gate_up_exps.weight", MATRIX_2(EMBD, FF, gate, FF, up), .slices = DIM_EXPERTS,
     .when = WHEN_EXPERTS},
    {"ffn_down_exps.weight", MATRIX(FF, EMBD, down), .slices = DIM_EXPERTS,
     .when = WHEN_EXPERTS},
    {"post_ffw_norm_2.weight", VECTOR(EMBD, experts_post_norm.w), .when = WHEN_EXPERTS},
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    TENSORS_PER_LAYER,
    {"layer_output_scale.weight", VECTOR(ONE, out_scale), .optional = true},
    {0},
};

/* Tensors that some files have of layers without keys and values of their own. */
static void ignore_shared(struct loader *l, const struct model *m)
{
    static const char *const names[] = {"attn_k.weight", "attn_v.weight",
                                        "attn_k_norm.weight"};

    for (int i = 0; i < m->n_layers; i++)
        for (size_t k = 0; m->layers[i].shares && k < sizeof names / sizeof *names; k++)
            loader_ignore(l, i, names[k]);
}

/* Widths of layers; those of a model with experts have a dense part next to them, which
 * is computed as a shared expert. */
static enum status setup_widths(struct loader *l, struct model *m)
{
    const int n_ff = m->n_ff;
    enum status st = loader_experts(l, m);

    for (int i = 0; !st && m->n_experts == 0 && i < m->n_layers; i++)
        st = loader_int_at_layer(l, "feed_forward_length", 1, MAX_WIDTH, i,
                                 &m->layers[i].n_ff);
    if (st || m->n_experts == 0)
        return st;
    m->n_ff_shared = n_ff;
    m->experts_apart = true;
    m->router_scale = 1.0f / sqrtf((float)m->n_embd);
    return ST_OK;
}

/* What both have. */
static enum status setup_common(struct loader *l, struct model *m)
{
    enum status st = loader_windows_by_layer(l, m);

    if (!st)
        st = loader_shared_kv(l, m);
    if (!st)
        st = loader_heads_by_layer(l, m);
    if (!st)
        st = loader_per_layer(l, m);
    if (!st)
        st = loader_float_or(l, "final_logit_softcapping", 0.0, 1e6, 0.0,
                             &m->logit_softcap);
    m->embd_scale = sqrtf((float)m->n_embd);
    m->attn_scale = 1.0f;
    loader_plain_v_norm(l, m);
    ignore_shared(l, m);
    return st;
}

static enum status gemma4_setup(struct loader *l, struct model *m)
{
    const enum status st = setup_common(l, m);

    return st ? st : setup_widths(l, m);
}

const struct arch arch_gemma4 = {
    .name = "gemma4",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = gemma4_ends,
    .layer = gemma4_layer,
    .layers_differ = true,
    .setup = gemma4_setup,
};

/* Gemma 3n. */

static const struct tensor_rule gemma3n_ends[] = {
    TENSORS_ENDS,
    {"altup_proj.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(EMBD, stream_in)}, .slices = DIM_STREAMS_MORE},
    {"altup_unembd_proj.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(EMBD, stream_out)}, .slices = DIM_STREAMS_MORE},
    {0},
};

/* Small matrices that are kept as floats. */
#define VECTORS(k_, n, field) \
    .kind = TENSOR_VECTOR, .k = DIM_##k_, .part = {LAYER_PART(n, field)}

static const struct tensor_rule gemma3n_layer[] = {
    {"altup_router_norm.weight", VECTOR(EMBD, altup.router_norm.w)},
    {"altup_router.weight", VECTORS(EMBD, STREAMS, altup.router)},
    {"altup_predict_coef.weight", VECTORS(STREAMS, STREAMS_2, altup.predict)},
    TENSORS_ATTENTION,
    {"laurel_l.weight", MATRIX(EMBD, LOW, altup.low)},
    {"laurel_r.weight", MATRIX(LOW, EMBD, altup.high)},
    {"laurel_post_norm.weight", VECTOR(EMBD, altup.low_norm.w)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {"altup_correct_coef.weight", VECTORS(STREAMS, STREAMS, altup.correct)},
    {"altup_correct_scale.weight", VECTOR(EMBD, altup.correct_scale)},
    TENSORS_PER_LAYER,
    {0},
};

static enum status setup_streams(struct loader *l, struct model *m)
{
    int active;
    enum status st =
        loader_int(l, "altup.num_inputs", 2, MODEL_MAX_STREAMS, &m->n_streams);

    if (!st)
        st = loader_int_or(l, "altup.active_idx", 0, 0, 0, &active);
    if (!st)
        st = loader_rows_of(l, 0, "laurel_l.weight", &m->n_low);
    for (int i = 0; !st && i < m->n_layers; i++) {
        st = loader_int_at_layer(l, "feed_forward_length", 1, MAX_WIDTH, i,
                                 &m->layers[i].n_ff);
        if (!st)
            st = loader_real_of_layer(l, "activation_sparsity_scale", i,
                                      &m->layers[i].sparsity);
    }
    return st;
}

static enum status gemma3n_setup(struct loader *l, struct model *m)
{
    enum status st = setup_common(l, m);

    if (!st)
        st = setup_streams(l, m);
    if (!st && m->n_per_layer == 0)
        return loader_fail(l, ST_INPUT,
                           "the metadata have no per-layer embeddings, "
                           "which every model of this family has");
    return st;
}

const struct arch arch_gemma3n = {
    .name = "gemma3n",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = gemma3n_ends,
    .layer = gemma3n_layer,
    .layers_differ = true,
    .setup = gemma3n_setup,
};
