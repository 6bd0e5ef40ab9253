/* SPDX-License-Identifier: MIT
 *
 * hf_hybrids.c - members of config.json of models some of whose layers have a recurrent
 * part instead of attention: LFM2, Granite 4
 */
#include "engine/hf/hf_impl.h"

#include <stdlib.h>
#include <string.h>

/* Heads of keys of layer i: 0 where layer_types, or a list of the layers that attend,
 * says that it has none. */
static enum status kv_heads(const struct hf_config *c, int64_t i, int32_t *out,
                            struct err *err)
{
    const json_t *types = json_member(c->o, "layer_types");
    const json_t *list = json_member(c->o, "full_attn_idxs");
    const char *type = json_text(json_array_get(types, (size_t)i));

    *out = 0;
    if (json_is_array(types)) {
        const bool attends =
            type && (!strcmp(type, "full_attention") || !strcmp(type, "attention"));

        if (!attends && (!type || strcmp(type, c->recurrent)))
            return err_set(err, ST_UNSUPPORTED,
                           "%s: layer_types[%d] is neither attention nor %s, and %s "
                           "models have no others",
                           c->file.path, (int)i, c->recurrent, c->arch->model_type);
        *out = attends ? (int32_t)c->n_kv_heads : 0;
        return ST_OK;
    }
    if (!json_is_array(list))
        return err_set(err, ST_INPUT, "%s has no layer_types", c->file.path);
    for (size_t k = 0; k < json_array_size(list); k++)
        if (json_integer_value(json_array_get(list, k)) == i)
            *out = (int32_t)c->n_kv_heads;
    return ST_OK;
}

enum status hf_put_kv_heads(struct hf_config *c, struct err *err)
{
    int32_t *n = calloc((size_t)c->n_layers, sizeof *n);
    enum status st =
        n ? ST_OK
          : err_set(err, ST_NO_MEMORY, "no memory for %d layers", (int)c->n_layers);

    for (int64_t i = 0; !st && i < c->n_layers; i++)
        st = kv_heads(c, i, &n[i], err);
    if (!st)
        hf_put_i32s(c, "attention.head_count_kv", n, (size_t)c->n_layers);
    free(n);
    return st;
}

/* ---- LFM2 ------------------------------------------------------------------------ */

static enum status lfm2_any(struct hf_config *c, struct err *err)
{
    enum status st;

    c->recurrent = "conv";
    c->n_ctx = 128000;
    c->tied = true;
    if ((st = hf_must_be_bool(c, "conv_bias", false, err)) ||
        (st = hf_put_sizes(c, err)) ||
        (st = hf_put_number(c, "conv_L_cache", "shortconv.l_cache", 1, 64, 3, err)) ||
        (st = hf_put_real(c, "norm_eps", "attention.layer_norm_rms_epsilon", 0.0, 1.0,
                          1e-5, err)))
        return st;
    return hf_rope(c, 1000000.0, err);
}

/* The width of the feed-forward part: two thirds of what is written, times a factor,
 * rounded up, unless it is to be taken as it is. */
enum status hf_lfm2(struct hf_config *c, struct err *err)
{
    int64_t n_ff = 12288, unit = 256;
    double factor = 1.0;
    bool adjusted = true;
    enum status st = lfm2_any(c, err);

    if (st ||
        (st = hf_get_number(c, "intermediate_size", 1, HF_MAX_WIDTH, &n_ff, err)) ||
        (st = hf_get_number(c, "block_ff_dim", 1, HF_MAX_WIDTH, &n_ff, err)) ||
        (st = hf_get_number(c, "block_multiple_of", 1, HF_MAX_WIDTH, &unit, err)) ||
        (st = json_get_real(&c->file, c->o, "block_ffn_dim_multiplier", 0.01, 100.0,
                            &factor, err)) ||
        (st =
             json_get_bool(&c->file, c->o, "block_auto_adjust_ff_dim", &adjusted, err)))
        return st;
    if (adjusted) {
        n_ff = (int64_t)(factor * (double)(2 * n_ff / 3));
        n_ff = (n_ff + unit - 1) / unit * unit;
    }
    hf_put_u32(c, "feed_forward_length", n_ff);
    return ST_OK;
}

enum status hf_lfm2_moe(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = lfm2_any(c, err)) ||
        (st = hf_must_be_bool(c, "norm_topk_prob", true, err)) ||
        (st = hf_put_number(c, "intermediate_size", "feed_forward_length", 1,
                            HF_MAX_WIDTH, 0, err)) ||
        (st = hf_get_number(c, "num_experts", 1, HF_MAX_EXPERTS, &c->n_experts, err)) ||
        (st = hf_put_number(c, "num_experts_per_tok", "expert_used_count", 1,
                            c->n_experts, 0, err)) ||
        (st = hf_put_number(c, "moe_intermediate_size", "expert_feed_forward_length", 1,
                            HF_MAX_WIDTH, 0, err)) ||
        (st = hf_put_number(c, "num_dense_layers", "leading_dense_block_count", 0,
                            c->n_layers, 2, err)) ||
        (st = hf_put_real(c, "routed_scaling_factor", "expert_weights_scale", 0.0, 1e6,
                          1.0, err)))
        return st;
    hf_put_u32(c, "expert_count", c->n_experts);
    hf_put_u32(c, "expert_gating_func", 2); /* sigmoid */
    return ST_OK;
}

/* ---- Granite 4 ------------------------------------------------------------------- */

static enum status put_mamba(struct hf_config *c, struct err *err)
{
    int64_t n_heads = 128, head_dim = 64;
    enum status st;

    if ((st = hf_must_be_bool(c, "mamba_conv_bias", true, err)) ||
        (st = hf_must_be_bool(c, "mamba_proj_bias", false, err)) ||
        (st = hf_get_number(c, "mamba_n_heads", 1, HF_MAX_HEADS, &n_heads, err)) ||
        (st = hf_get_number(c, "mamba_d_head", 1, HF_MAX_HEAD_DIM, &head_dim, err)) ||
        (st = hf_put_number(c, "mamba_n_groups", "ssm.group_count", 1, HF_MAX_HEADS, 1,
                            err)) ||
        (st = hf_put_number(c, "mamba_d_state", "ssm.state_size", 1, HF_MAX_HEAD_DIM,
                            256, err)) ||
        (st = hf_put_number(c, "mamba_d_conv", "ssm.conv_kernel", 1, 64, 4, err)))
        return st;
    if (n_heads * head_dim > HF_MAX_WIDTH)
        return err_set(err, ST_INPUT, "%s: %d heads of %d are no model's", c->file.path,
                       (int)n_heads, (int)head_dim);
    hf_put_u32(c, "ssm.time_step_rank", n_heads);
    hf_put_u32(c, "ssm.inner_size", n_heads * head_dim);
    return ST_OK;
}

static enum status put_scales(struct hf_config *c, struct err *err)
{
    static const char *const keys[][2] = {
        {"embedding_multiplier", "embedding_scale"},
        {"residual_multiplier", "residual_scale"},
        {"attention_multiplier", "attention.scale"},
        {"logits_scaling", "logit_scale"},
    };
    enum status st = ST_OK;

    for (size_t i = 0; !st && i < sizeof keys / sizeof keys[0]; i++)
        st = hf_put_real(c, keys[i][0], keys[i][1], 1e-6, 1e6, 1.0, err);
    return st;
}

/* A model without experts, whose feed-forward part is called its shared expert. */
static const struct hf_arch granite_dense = {
    "granitemoehybrid",
    "granitehybrid",
    {hf_names_mamba, hf_names_granite_dense, hf_names_common},
    hf_granite_hybrid,
};

enum status hf_granite_hybrid(struct hf_config *c, struct err *err)
{
    int64_t n_shared = 1024, n_experts = 0;
    enum status st;

    c->recurrent = "mamba";
    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_must_be(c, "position_embedding_type", "nope", err)) ||
        (st = hf_must_be(c, "normalization_function", "rmsnorm", err)) ||
        (st = hf_must_be_bool(c, "attention_bias", false, err)) ||
        (st = hf_put_sizes(c, err)) || (st = put_mamba(c, err)) ||
        (st = put_scales(c, err)) ||
        (st = hf_put_real(c, "rms_norm_eps", "attention.layer_norm_rms_epsilon", 0.0,
                          1.0, 1e-6, err)) ||
        (st = hf_get_number(c, "shared_intermediate_size", 1, HF_MAX_WIDTH, &n_shared,
                            err)) ||
        (st =
             hf_get_number(c, "num_local_experts", 0, HF_MAX_EXPERTS, &n_experts, err)))
        return st;
    c->n_experts = n_experts;
    hf_put_bool(c, "rope.scaling.finetuned", false);
    hf_put_u32(c, "expert_count", n_experts);
    hf_put_u32(c, "expert_shared_feed_forward_length", n_shared);
    if (!n_experts) {
        c->arch = &granite_dense;
        hf_put_u32(c, "feed_forward_length", n_shared);
        return ST_OK;
    }
    if ((st = hf_put_number(c, "intermediate_size", "feed_forward_length", 1,
                            HF_MAX_WIDTH, 0, err)))
        return st;
    return hf_put_number(c, "num_experts_per_tok", "expert_used_count", 1, n_experts, 0,
                         err);
}
