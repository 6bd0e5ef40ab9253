/* SPDX-License-Identifier: MIT
 *
 * arch_bailing.c - Ling and Ring 2, GLM 4.5, SmallThinker
 *
 * Experts chosen by sigmoids of the router's scores; the first layers have none, and in
 * all others there is a shared one. Ling takes them from the best groups. Layers that
 * predict further tokens ("nextn") are computed on request, as drafts (loader_nextn.c).
 * Sources: Ling team 2025 (arXiv 2510.22115), GLM team 2025 (arXiv 2508.06471), Song et
 * al. 2025 (SmallThinker, arXiv 2507.20984), and the models' published code.
 */
#include "engine/arch/loader.h"

/* Sizes of what both have; call it first, since layers become fewer. */
static enum status setup(struct loader *l, struct model *m)
{
    enum status st = loader_nextn(l, m);

    if (st)
        return st;
    st = loader_maybe_shared_expert(l, m);
    if (!st)
        st = loader_leading_dense(l, m);
    return st ? st : loader_odds(l, m, ODDS_SIGMOID);
}

static const struct tensor_rule bailing_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV_ANY,
    TENSORS_HEAD_NORMS,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    TENSORS_EXPERTS,
    TENSORS_CHOICE_BIAS,
    TENSORS_WHOLE_SHARED_EXPERT,
    {0},
};

const struct arch arch_bailingmoe2 = {
    .name = "bailingmoe2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = bailing_layer,
    .may_predict = true,
    .setup = setup,
};

/* GLM 4.5: the norm before the feed-forward part has another name. */
static const struct tensor_rule glm4moe_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    TENSORS_MAYBE_BIAS,
    {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w), .optional = true},
    {"attn_k_norm.weight", VECTOR(HEAD, k_norm.w), .optional = true},
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"post_attention_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_GATED_FFN,
    TENSORS_EXPERTS,
    TENSORS_CHOICE_BIAS,
    TENSORS_WHOLE_SHARED_EXPERT,
    {0},
};

const struct arch arch_glm4moe = {
    .name = "glm4moe",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = glm4moe_layer,
    .may_predict = true,
    .setup = setup,
};

/* SmallThinker: a router reads the layer's input, before attention. Of models with
 * windows the layers 0, 4, 8 and so on see everything and do not rotate. */
static const struct tensor_rule smallthinker_layer[] = {
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
    TENSORS_QKV,
    {"attn_output.weight", MATRIX(Q, EMBD, wo)},
    {"ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)},
    TENSORS_EXPERTS,
    {0},
};

static enum status smallthinker_setup(struct loader *l, struct model *m)
{
    enum status st = loader_only_experts(l, m);

    m->routes_early = true;
    if (!st)
        st = loader_odds(l, m, ODDS_SOFTMAX);
    if (!st)
        st = loader_windows_but(l, m, 0, 4, 0);
    for (int i = 0; !st && m->n_layers > 1 && m->layers[1].window && i < m->n_layers;
         i += 4)
        m->layers[i].rope = ROPE_NONE;
    return st;
}

const struct arch arch_smallthinker = {
    .name = "smallthinker",
    .norm = NORM_RMS,
    .act = ACT_RELU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = smallthinker_layer,
    .setup = smallthinker_setup,
};
