/* SPDX-License-Identifier: MIT
 *
 * arch_deepseek.c - DeepSeek V2 and V3, MiniCPM 3: latent attention
 *
 * The first layers of DeepSeek have no experts, all others have a shared one, too; V3
 * takes experts from the best groups. Layers behind the last may predict further tokens
 * (GLM 4.7 Flash, which is one of them in GGUF). Old files have the matrices of keys
 * and values in one, attn_kv_b (loader_latent.c). Sources: DeepSeek-AI 2024 (arXiv
 * 2405.04434, arXiv 2412.19437), Hu et al. 2024 (MiniCPM, arXiv 2404.06395), and the
 * models' published code.
 */
#include "engine/arch/loader.h"

#include <math.h>
#include <string.h>

#define TENSORS_LATENT                                                               \
    {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},                                 \
        {"attn_q.weight", MATRIX(EMBD, LATENT_Q, wq), .when = WHEN_NO_Q_RANK},       \
        {"attn_q_a.weight", MATRIX(EMBD, Q_RANK, lat.q_a), .when = WHEN_Q_RANK},     \
        {"attn_q_a_norm.weight", VECTOR(Q_RANK, lat.q_norm.w), .when = WHEN_Q_RANK}, \
        {"attn_q_b.weight", MATRIX(Q_RANK, LATENT_Q, wq), .when = WHEN_Q_RANK},      \
        {"attn_kv_a_mqa.weight", MATRIX(EMBD, KV, wk)},                              \
        {"attn_kv_a_norm.weight", VECTOR(KV_RANK, lat.kv_norm.w)},                   \
        {"attn_output.weight", MATRIX(LATENT_V, EMBD, wo)},                          \
    {                                                                                \
        "ffn_norm.weight", VECTOR(EMBD, ffn_norm.w)                                  \
    }

static const struct tensor_rule deepseek2_layer[] = {
    TENSORS_LATENT,
    {"attn_kv_b.weight", MATRIX(KV_RANK, LATENT_KV, lat.kv_b), .optional = true},
    {"attn_k_b.weight", MATRIX(LATENT_KEY, KV_RANK, lat.k_b), .slices = DIM_HEADS,
     .unless = "attn_kv_b.weight"},
    {"attn_v_b.weight", MATRIX(KV_RANK, LATENT_VALUE, lat.v_b), .slices = DIM_HEADS,
     .unless = "attn_kv_b.weight"},
    TENSORS_GATED_FFN,
    TENSORS_EXPERTS,
    TENSORS_CHOICE_BIAS,
    TENSORS_WHOLE_SHARED_EXPERT,
    {0},
};

/* yarn scales scores, by the square of what it otherwise scales queries and keys by. */
static enum status yarn_scale(struct loader *l, struct model *m)
{
    struct gguf_str type;
    double factor = 1, multiplier = 0;
    enum status st = loader_real_or(l, "rope.scaling.factor", 0, 1e6, 1, &factor);

    if (!st)
        st = loader_real_or(l, "rope.scaling.yarn_log_multiplier", 0, 1e3, 0,
                            &multiplier);
    if (st || !loader_str(l, "rope.scaling.type", &type) || type.len != 4 ||
        memcmp(type.data, "yarn", 4) != 0 || factor < 1)
        return st;
    m->attn_scale *= (float)pow(1 + multiplier * log(factor), 2);
    return ST_OK;
}

/* Weights of experts are their shares of all, unless the file says that they are not.
 */
static enum status deepseek2_setup(struct loader *l, struct model *m)
{
    bool divided = false;
    enum status st = loader_nextn(l, m);

    if (!st)
        st = loader_experts(l, m);
    if (!st && m->n_experts)
        st = loader_maybe_shared_expert(l, m);
    if (!st)
        st = loader_leading_dense(l, m);
    if (!st)
        st = loader_odds(l, m, ODDS_SOFTMAX);
    if (!st)
        st = loader_bool_or(l, "expert_weights_norm", false, &divided);
    m->shares_of_all = !divided;
    return st ? st : yarn_scale(l, m);
}

const struct arch arch_deepseek2 = {
    .name = "deepseek2",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_NEIGHBOURS,
    .ends = tensors_ends_rms,
    .layer = deepseek2_layer,
    .latent = true,
    .plain_turns = true,
    .may_predict = true,
    .setup = deepseek2_setup,
};

static const struct tensor_rule minicpm3_layer[] = {
    TENSORS_LATENT,
    {"attn_kv_b.weight", MATRIX(KV_RANK, LATENT_KV, lat.kv_b)},
    TENSORS_GATED_FFN,
    {0},
};

/* Scales that no key has, of all published models. */
static enum status minicpm3_setup(struct loader *l, struct model *m)
{
    (void)l;
    m->embd_scale = 12.0f;
    m->residual_scale = 1.4f / sqrtf((float)m->n_layers);
    m->logit_scale = 256.0f / (float)m->n_embd;
    return ST_OK;
}

const struct arch arch_minicpm3 = {
    .name = "minicpm3",
    .norm = NORM_RMS,
    .act = ACT_SILU,
    .pairs = PAIRS_HALVES,
    .ends = tensors_ends_rms,
    .layer = minicpm3_layer,
    .latent = true,
    .setup = minicpm3_setup,
};
