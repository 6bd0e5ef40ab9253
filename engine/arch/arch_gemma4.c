/* SPDX-License-Identifier: MIT
 *
 * arch_gemma4.c - Gemma 4, text
 *
 * Layers with a sliding window and those without differ in the number and length of
 * their heads. Values are normalised, too. Small models have per-layer embeddings, and
 * their last layers read the keys and values of earlier ones; a large one has experts
 * next to a dense feed-forward part, each with norms of its own before and behind it.
 * Source: the model cards of Gemma 4 (Google 2026) and the published code.
 */
#include "engine/arch/loader.h"

#include <math.h>

static const struct tensor_rule ends[] = {
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, embd)}},
    {"output.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, output)}, .optional = true},
    {"output_norm.weight", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.w)}},
    TENSORS_PER_LAYER_ENDS,
    {0},
};

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_q.weight", MATRIX(EMBD, Q, wq)},
    {"attn_k.weight", MATRIX(EMBD, KV, wk), .when = WHEN_OWN_KV},
    {"attn_v.weight", MATRIX(EMBD, KV, wv), .when = WHEN_OWN_KV, .optional = true},
    {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w)},
    {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w), .when = WHEN_OWN_KV},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
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

static enum status setup(struct loader *l, struct model *m)
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
    if (!st)
        st = setup_widths(l, m);
    m->embd_scale = sqrtf((float)m->n_embd);
    m->attn_scale = 1.0f;
    loader_plain_v_norm(l, m);
    ignore_shared(l, m);
    return st;
}

const struct arch arch_gemma4 = {
    .name = "gemma4",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = ends,
    .layer = layer,
    .layers_differ = true,
    .setup = setup,
};
