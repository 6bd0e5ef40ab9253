/* SPDX-License-Identifier: MIT
 *
 * hf_latent.c - members of config.json, and names of tensors, of models with latent
 * attention: DeepSeek V2 and V3, MiniCPM 3
 */
#include "engine/hf/hf_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------- */

const struct hf_name hf_names_latent[] = {
    {"model.layers.#.self_attn.q_a_proj.weight", "blk.#.attn_q_a.weight", HF_AS_IS},
    {"model.layers.#.self_attn.q_a_layernorm.weight", "blk.#.attn_q_a_norm.weight",
     HF_AS_IS},
    {"model.layers.#.self_attn.q_b_proj.weight", "blk.#.attn_q_b.weight", HF_AS_IS},
    {"model.layers.#.self_attn.kv_a_proj_with_mqa.weight", "blk.#.attn_kv_a_mqa.weight",
     HF_AS_IS},
    {"model.layers.#.self_attn.kv_a_layernorm.weight", "blk.#.attn_kv_a_norm.weight",
     HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_deepseek[] = {
    {"model.layers.#.self_attn.kv_b_proj.weight", "blk.#.attn_k_b.weight",
     HF_LATENT_KEYS},
    {"model.layers.#.self_attn.kv_b_proj.weight", "blk.#.attn_v_b.weight",
     HF_LATENT_VALUES},
    {"model.layers.#.mlp.gate.e_score_correction_bias", "blk.#.exp_probs_b.bias",
     HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

const struct hf_name hf_names_minicpm3[] = {
    {"model.layers.#.self_attn.kv_b_proj.weight", "blk.#.attn_kv_b.weight", HF_AS_IS},
    {NULL, NULL, HF_SKIP},
};

/* ---- config.json ----------------------------------------------------------------- */

/* Sizes of the attention. GGUF files of DeepSeek have the matrices of keys and values
 * of each head apart and describe attention over latents; those of MiniCPM 3 have both
 * in one (joint), and describe the heads. */
static enum status put_attention(struct hf_config *c, bool joint, struct err *err)
{
    int64_t q_rank = 0, kv_rank = 0, n_rot = 0;
    enum status st;

    c->latent_value = joint ? c->n_embd / c->n_heads : 0;
    if ((st = json_get_int(&c->file, c->o, "q_lora_rank", 0, HF_MAX_WIDTH, &q_rank,
                           err)) ||
        (st = hf_get_number(c, "kv_lora_rank", 1, HF_MAX_HEAD_DIM, &kv_rank, err)) ||
        (st = hf_get_number(c, "qk_nope_head_dim", 1, HF_MAX_HEAD_DIM, &c->latent_key,
                            err)) ||
        (st = hf_get_number(c, "qk_rope_head_dim", 2, HF_MAX_HEAD_DIM, &n_rot, err)) ||
        (st =
             hf_get_number(c, "v_head_dim", 1, HF_MAX_HEAD_DIM, &c->latent_value, err)))
        return st;
    c->n_rot = n_rot;
    c->head_dim = c->latent_key + n_rot;
    if (q_rank)
        hf_put_u32(c, "attention.q_lora_rank", q_rank);
    hf_put_u32(c, "attention.kv_lora_rank", kv_rank);
    hf_put_u32(c, "attention.head_count", c->n_heads);
    hf_put_u32(c, "attention.head_count_kv", joint ? c->n_heads : 1);
    hf_put_u32(c, "attention.key_length", joint ? c->head_dim : kv_rank + n_rot);
    hf_put_u32(c, "attention.value_length", joint ? c->latent_value : kv_rank);
    if (!joint) {
        hf_put_u32(c, "attention.key_length_mla", c->head_dim);
        hf_put_u32(c, "attention.value_length_mla", c->latent_value);
    }
    hf_put_u32(c, "rope.dimension_count", n_rot);
    return ST_OK;
}

/* What both have. */
static enum status put_common(struct hf_config *c, bool joint, double eps,
                              struct err *err)
{
    enum status st;

    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_must_be_bool(c, "attention_bias", false, err)) ||
        (st = hf_get_number(c, "num_hidden_layers", 1, HF_MAX_LAYERS, &c->n_layers,
                            err)) ||
        (st = hf_get_number(c, "hidden_size", 1, HF_MAX_WIDTH, &c->n_embd, err)) ||
        (st = hf_get_number(c, "num_attention_heads", 1, HF_MAX_HEADS, &c->n_heads,
                            err)) ||
        (st = hf_get_number(c, "max_position_embeddings", 1, HF_MAX_CONTEXT, &c->n_ctx,
                            err)) ||
        (st = put_attention(c, joint, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_rms_eps(c, eps, err)))
        return st;
    c->n_kv_heads = c->n_heads;
    hf_put_u32(c, "context_length", c->n_ctx);
    hf_put_u32(c, "embedding_length", c->n_embd);
    return ST_OK;
}

/* ---- DeepSeek -------------------------------------------------------------------- */

/* V3 takes experts from the groups whose two best are best. V2's rule, by the best of a
 * group, is another one. */
static enum status put_groups(struct hf_config *c, struct err *err)
{
    const char *method = json_text(json_member(c->o, "topk_method"));
    int64_t n = 1, used = 1;
    enum status st;

    if ((st = json_get_int(&c->file, c->o, "n_group", 1, c->n_experts, &n, err)) ||
        (st = json_get_int(&c->file, c->o, "topk_group", 1, n, &used, err)))
        return st;
    if (n > used && method && !strcmp(method, "group_limited_greedy"))
        return err_set(err, ST_UNSUPPORTED,
                       "%s: topk_method 'group_limited_greedy' with %d groups is not "
                       "supported, only 'greedy' and 'noaux_tc'",
                       c->file.path, (int)n);
    hf_put_u32(c, "expert_group_count", n);
    hf_put_u32(c, "expert_group_used_count", used);
    return ST_OK;
}

static enum status put_deepseek_experts(struct hf_config *c, bool v3, struct err *err)
{
    const char *func = json_text(json_member(c->o, "scoring_func"));
    const bool sigmoid = func ? !strcmp(func, "sigmoid") : v3;
    int64_t n_ff = 0, n_shared = 0, step = 1;
    bool divided = v3;
    enum status st;

    if (!sigmoid && (st = hf_must_be(c, "scoring_func", "softmax", err)))
        return st;
    if ((st = hf_put_routed(c, "n_routed_experts", "num_experts_per_tok",
                            "moe_intermediate_size", &n_ff, err)) ||
        (st = json_get_int(&c->file, c->o, "n_shared_experts", 0, HF_MAX_EXPERTS,
                           &n_shared, err)) ||
        (st = json_get_int(&c->file, c->o, "moe_layer_freq", 1, 1, &step, err)) ||
        (st = json_get_bool(&c->file, c->o, "norm_topk_prob", &divided, err)) ||
        (st = put_groups(c, err)) ||
        (st = hf_put_real(c, "routed_scaling_factor", "expert_weights_scale", 0.0, 1e6,
                          v3 ? 2.5 : 1.0, err)))
        return st;
    hf_put_u32(c, "expert_shared_count", n_shared);
    hf_put_u32(c, "expert_gating_func", sigmoid ? 2 : 1);
    hf_put_bool(c, "expert_weights_norm", divided);
    return hf_put_first(c, "first_k_dense_replace", err);
}

/* YaRN has two weights: one scales what is rotated, by its quotient with the other, and
 * that other one the scores. GGUF has only the latter, a tenth of it. */
static enum status put_yarn(struct hf_config *c, struct err *err)
{
    const json_t *all = json_member(c->o, "rope_parameters");
    const json_t *how = all ? all : json_member(c->o, "rope_scaling");
    double rotated = 0.0, scores = 0.0;
    enum status st;

    if ((st = json_get_real(&c->file, how, "mscale", 0.0, 1e3, &rotated, err)) ||
        (st = json_get_real(&c->file, how, "mscale_all_dim", 0.0, 1e3, &scores, err)))
        return st;
    if (fabs(rotated - scores) > 1e-6)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: mscale is %g and mscale_all_dim %g; for %s models only "
                       "equal ones are supported",
                       c->file.path, rotated, scores, c->arch->model_type);
    if (scores > 0.0)
        hf_put_f32(c, "rope.scaling.yarn_log_multiplier", 0.1 * scores);
    return ST_OK;
}

enum status hf_deepseek(struct hf_config *c, struct err *err)
{
    const bool v3 = !strcmp(c->arch->model_type, "deepseek_v3");
    enum status st = put_common(c, false, 1e-6, err);

    if (!st && json_member(c->o, "n_routed_experts"))
        st = put_deepseek_experts(c, v3, err);
    if (!st)
        st = put_yarn(c, err);
    return st ? st : hf_rope(c, 10000.0, err);
}

/* ---- MiniCPM 3 ------------------------------------------------------------------- */

/* Scales for which GGUF has no keys. */
static enum status check_scale(const struct hf_config *c, const char *key, double want,
                               struct err *err)
{
    double v = want;
    const enum status st = json_get_real(&c->file, c->o, key, 1e-6, 1e6, &v, err);

    if (!st && fabs(v - want) > 1e-6)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: %s is %g; for %s models only %g is supported", c->file.path,
                       key, v, c->arch->model_type, want);
    return st;
}

enum status hf_minicpm3(struct hf_config *c, struct err *err)
{
    enum status st;

    if (!json_member(c->o, "tie_word_embeddings"))
        c->tied = true;
    if ((st = check_scale(c, "scale_emb", 12.0, err)) ||
        (st = check_scale(c, "scale_depth", 1.4, err)) ||
        (st = check_scale(c, "dim_model_base", 256.0, err)) ||
        (st = put_common(c, true, 1e-5, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}
