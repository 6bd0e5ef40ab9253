/* SPDX-License-Identifier: MIT
 *
 * arch_gemma.c - Gemma 1, 2 and 3, text; EmbeddingGemma
 *
 * GELU-gated feed-forward part, embeddings scaled by sqrt(n_embd) and tied; since
 * Gemma 2 RMSNorm also of what is added to the stream, and layers with a sliding
 * window. Sources: Gemma team 2024 (arXiv 2403.08295, 2408.00118) and 2025 (arXiv
 * 2503.19786).
 */
#include "engine/arch/loader.h"

#include <math.h>

/* Gemma 1. */

static const struct tensor_rule gemma_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {0},
};

static enum status gemma_setup(struct loader *l, struct model *m)
{
    (void)l;
    m->embd_scale = sqrtf((float)m->n_embd);
    return ST_OK;
}

const struct arch arch_gemma = {
    .name = "gemma",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = gemma_layer,
    .setup = gemma_setup,
};

/* What Gemma 2 and 3 have; cap_* are the defaults of the model's generation. Scores are
 * divided by the root of a head's length, in the model of layers_27b layers by that of
 * n_embd / n_heads, for which files have no key. */
static enum status setup(struct loader *l, struct model *m, double cap_attn,
                         double cap_logits, int layers_27b)
{
    enum status st = loader_float_or(l, "attn_logit_softcapping", 0.0, 1e6, cap_attn,
                                     &m->attn_softcap);

    if (!st)
        st = loader_float_or(l, "final_logit_softcapping", 0.0, 1e6, cap_logits,
                             &m->logit_softcap);
    m->embd_scale = sqrtf((float)m->n_embd);
    if (m->n_layers == layers_27b)
        m->attn_scale = 1.0f / sqrtf((float)(m->n_embd / m->n_heads));
    return st;
}

/* Gemma 2: scores and logits capped by tanh; layers 0, 2, 4, ... have a window. */

static const struct tensor_rule gemma2_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {0},
};

static enum status gemma2_setup(struct loader *l, struct model *m)
{
    const enum status st = loader_windows(l, m, 4096, 2);

    return st ? st : setup(l, m, 50.0, 30.0, 46);
}

const struct arch arch_gemma2 = {
    .name = "gemma2",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = gemma2_layer,
    .setup = gemma2_setup,
};

/* Gemma 3: as Gemma 2, with norms of each head's queries and keys instead of capped
 * scores. Five layers with a sliding window, rotated with another base, are followed by
 * one with full attention. */

static const struct tensor_rule gemma3_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_HEAD_NORMS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {0},
};

/* The second rotation is for layers with a sliding window; scaling is for the first. */
static enum status setup_windows(struct loader *l, struct model *m)
{
    int period;
    enum status st =
        loader_int_or(l, "attention.sliding_window_pattern", 1, MAX_LAYERS, 6, &period);

    if (!st)
        st = loader_windows(l, m, 0, period);
    return st ? st : loader_second_rope(l, m, m->n_rot);
}

static enum status gemma3_setup(struct loader *l, struct model *m)
{
    const enum status st = setup_windows(l, m);

    return st ? st : setup(l, m, 0.0, 0.0, 62);
}

const struct arch arch_gemma3 = {
    .name = "gemma3",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = gemma3_layer,
    .setup = gemma3_setup,
};

/* EmbeddingGemma: an encoder of Gemma 3's layers, whose windows reach as far ahead as
 * back. Two matrices may follow the pooled vector. Source: Vera et al. 2025 (arXiv
 * 2509.20354). */

static const struct tensor_rule embedding_ends[] = {
    {"token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     .part = {MODEL_PART(VOCAB, embd)}},
    {"output_norm.weight", .kind = TENSOR_VECTOR,
     .part = {MODEL_PART(EMBD, output_norm.w)}},
    {"dense_2.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     .part = {MODEL_PART(DENSE_1, dense[0])}, .optional = true},
    {"dense_3.weight", .kind = TENSOR_MATRIX, .k = DIM_DENSE_1,
     .part = {MODEL_PART(DENSE_2, dense[1])}, .optional = true},
    {0},
};

static enum status embedding_setup(struct loader *l, struct model *m)
{
    enum status st = gemma3_setup(l, m);

    if (!st)
        st = loader_int_or(l, "dense_2_feat_out", 1, MAX_WIDTH, m->n_embd,
                           &m->n_dense[0]);
    if (!st)
        st = loader_int_or(l, "dense_3_feat_out", 1, MAX_WIDTH, m->n_embd,
                           &m->n_dense[1]);
    return st;
}

const struct arch arch_gemma_embed = {
    .name = "gemma-embedding",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = embedding_ends,
    .layer = gemma3_layer,
    .encodes = true,
    .setup = embedding_setup,
};
