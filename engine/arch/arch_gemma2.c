/* SPDX-License-Identifier: MIT
 *
 * arch_gemma2.c - Gemma 2
 *
 * RMSNorm also of what is added to the stream, GELU-gated feed-forward part, scores
 * and logits capped by tanh, embeddings scaled by sqrt(n_embd) and tied. Layers 0, 2,
 * 4, ... have a sliding window.
 * Source: Gemma team 2024 (arXiv 2408.00118).
 */
#include "engine/arch/loader.h"

#include <math.h>

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_q.weight", MATRIX(EMBD, Q, wq)},
    {"attn_k.weight", MATRIX(EMBD, KV, wk)},
    {"attn_v.weight", MATRIX(EMBD, KV, wv)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_gate.weight", MATRIX(EMBD, FF, gate)},
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {0},
};

/* Scores are divided by the root of a head's length, in the 27B model (46 layers) by
 * that of n_embd / n_heads, for which files have no key. */
enum { LAYERS_27B = 46 };

static enum status setup(struct loader *l, struct model *m)
{
    enum status st = loader_windows(l, m, 4096, 2);

    if (!st)
        st = loader_float_or(l, "attn_logit_softcapping", 0.0, 1e6, 50.0,
                             &m->attn_softcap);
    if (!st)
        st = loader_float_or(l, "final_logit_softcapping", 0.0, 1e6, 30.0,
                             &m->logit_softcap);
    m->embd_scale = sqrtf((float)m->n_embd);
    if (m->n_layers == LAYERS_27B)
        m->attn_scale = 1.0f / sqrtf((float)(m->n_embd / m->n_heads));
    return st;
}

const struct arch arch_gemma2 = {
    .name = "gemma2",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};
