/* SPDX-License-Identifier: MIT
 *
 * arch_gemma3.c - Gemma 3, text
 *
 * As gemma2, with norms of each head's queries and keys instead of capped scores. Five
 * layers with a sliding window, rotated with another base, are followed by one with
 * full attention. Source: Gemma team 2025 (arXiv 2503.19786).
 */
#include "engine/arch/loader.h"

#include <math.h>

static const struct tensor_rule layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    {"attn_q.weight", MATRIX(EMBD, Q, wq)},
    {"attn_k.weight", MATRIX(EMBD, KV, wk)},
    {"attn_v.weight", MATRIX(EMBD, KV, wv)},
    {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w)},
    {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w)},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, attn_post_norm.w)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    {"ffn_gate.weight", MATRIX(EMBD, FF, gate)},
    {"ffn_up.weight", MATRIX(EMBD, FF, up)},
    {"ffn_down.weight", MATRIX(FF, EMBD, down)},
    {"post_ffw_norm.weight", VECTOR(EMBD, ffn_post_norm.w)},
    {0},
};

/* The 27B model (62 layers) divides scores as that of gemma2 does. */
enum { LAYERS_27B = 62 };

/* The second rotation is for layers with a sliding window; scaling is for the first. */
enum { LOCAL = 1 };

static enum status setup_windows(struct loader *l, struct model *m)
{
    int period;
    double base;
    enum status st =
        loader_int_or(l, "attention.sliding_window_pattern", 1, MAX_LAYERS, 6, &period);

    if (!st)
        st = loader_windows(l, m, 0, period);
    if (!st)
        st = loader_real_or(l, "rope.freq_base_swa", 1e-3, 1e15, 10000.0, &base);
    if (!st)
        st = rope_plain(l, &m->ropes[LOCAL], m->n_rot, base, 1.0);
    m->n_ropes = 2;
    for (int i = 0; !st && i < m->n_layers; i++)
        if (m->layers[i].window)
            m->layers[i].rope = LOCAL;
    return st;
}

static enum status setup(struct loader *l, struct model *m)
{
    enum status st = setup_windows(l, m);

    if (!st)
        st = loader_float_or(l, "attn_logit_softcapping", 0.0, 1e6, 0.0,
                             &m->attn_softcap);
    if (!st)
        st = loader_float_or(l, "final_logit_softcapping", 0.0, 1e6, 0.0,
                             &m->logit_softcap);
    m->embd_scale = sqrtf((float)m->n_embd);
    if (m->n_layers == LAYERS_27B)
        m->attn_scale = 1.0f / sqrtf((float)(m->n_embd / m->n_heads));
    return st;
}

const struct arch arch_gemma3 = {
    .name = "gemma3",
    .norm = NORM_RMS,
    .act = ACT_GELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = layer,
    .setup = setup,
};
