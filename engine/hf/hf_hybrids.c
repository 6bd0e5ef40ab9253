/* SPDX-License-Identifier: MIT
 *
 * hf_hybrids.c - members of config.json of models layers of which have a recurrent
 * part: LFM2, Granite 4, Mamba-2, Falcon-H1, Nemotron-H
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

/* What a kind calls the sizes of its recurrent layers. */
struct mamba_keys {
    const char *heads, *head_dim, *groups, *state, *conv, *conv_bias, *bias;
};

static enum status put_mamba(struct hf_config *c, const struct mamba_keys *k,
                             int64_t n_heads, int64_t *inner, struct err *err)
{
    int64_t head_dim = 64;
    enum status st;

    c->ssm_groups = 1;
    if ((st = hf_must_be_bool(c, k->conv_bias, true, err)) ||
        (st = hf_must_be_bool(c, k->bias, false, err)) ||
        (st = hf_get_number(c, k->heads, 1, HF_MAX_HEADS, &n_heads, err)) ||
        (st = hf_get_number(c, k->head_dim, 1, HF_MAX_HEAD_DIM, &head_dim, err)) ||
        (st = hf_get_number(c, k->groups, 1, HF_MAX_HEADS, &c->ssm_groups, err)) ||
        (st = hf_put_number(c, k->state, "ssm.state_size", 1, HF_MAX_HEAD_DIM, 256,
                            err)) ||
        (st = hf_put_number(c, k->conv, "ssm.conv_kernel", 1, 64, 4, err)))
        return st;
    if (n_heads * head_dim > HF_MAX_WIDTH)
        return err_set(err, ST_INPUT, "%s: %d heads of %d are no model's", c->file.path,
                       (int)n_heads, (int)head_dim);
    *inner = n_heads * head_dim;
    hf_put_u32(c, "ssm.group_count", c->ssm_groups);
    hf_put_u32(c, "ssm.time_step_rank", n_heads);
    hf_put_u32(c, "ssm.inner_size", *inner);
    return ST_OK;
}

static const struct mamba_keys mamba_prefixed = {
    "mamba_n_heads", "mamba_d_head",    "mamba_n_groups", "mamba_d_state",
    "mamba_d_conv",  "mamba_conv_bias", "mamba_proj_bias"};

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
    int64_t n_shared = 1024, n_experts = 0, inner = 0;
    enum status st;

    c->recurrent = "mamba";
    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_must_be(c, "position_embedding_type", "nope", err)) ||
        (st = hf_must_be(c, "normalization_function", "rmsnorm", err)) ||
        (st = hf_must_be_bool(c, "attention_bias", false, err)) ||
        (st = hf_put_sizes(c, err)) ||
        (st = put_mamba(c, &mamba_prefixed, 128, &inner, err)) ||
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

/* ---- Mamba-2 --------------------------------------------------------------------- */

enum status hf_mamba2(struct hf_config *c, struct err *err)
{
    static const struct mamba_keys keys = {"num_heads",  "head_dim",    "n_groups",
                                           "state_size", "conv_kernel", "use_conv_bias",
                                           "use_bias"};
    int64_t inner = 0;
    enum status st;

    c->ssm_groups = 8;
    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_must_be_bool(c, "rms_norm", true, err)) ||
        (st = hf_get_number(c, "num_hidden_layers", 1, HF_MAX_LAYERS, &c->n_layers,
                            err)) ||
        (st = hf_get_number(c, "hidden_size", 1, HF_MAX_WIDTH, &c->n_embd, err)) ||
        (st = put_mamba(c, &keys, 128, &inner, err)) ||
        (st = hf_put_real(c, "layer_norm_epsilon", "attention.layer_norm_rms_epsilon",
                          0.0, 1.0, 1e-5, err)))
        return st;
    hf_put_u32(c, "context_length", 1 << 20); /* as other converters write */
    hf_put_u32(c, "embedding_length", c->n_embd);
    hf_put_u32(c, "feed_forward_length", 0);
    hf_put_u32(c, "attention.head_count", 0);
    return ST_OK;
}

/* ---- Falcon-H1 ------------------------------------------------------------------- */

/* A factor of the rows up to `end`, 0: of all that remain. */
static void add_range(struct hf_scaling *s, const char *name, uint64_t end, double by)
{
    s->name = name;
    s->end[s->n] = end ? end : UINT64_MAX;
    s->by[s->n++] = (float)by;
}

static enum status factor(const struct hf_config *c, const char *key, double *out,
                          struct err *err)
{
    *out = 1.0;
    return json_get_real(&c->file, c->o, key, -1e6, 1e6, out, err);
}

/* Element i of a list; 1 where there is no list. */
static double element(const struct hf_config *c, const char *key, size_t i)
{
    const json_t *v = json_array_get(json_member(c->o, key), i);

    return json_is_number(v) ? json_number_value(v) : 1.0;
}

/* The multipliers, each a factor of a matrix, and those of the recurrent part's inputs
 * a factor for each of z, x, B, C and dt. */
static enum status falcon_factors(struct hf_config *c, int64_t inner, struct err *err)
{
    struct hf_scaling *s = c->scalings;
    double embedding, head, in, out, key, ssm_in, ssm_out;
    const uint64_t state = (uint64_t)(c->ssm_groups * c->n_state);
    uint64_t end = 0;
    enum status st;

    if ((st = factor(c, "embedding_multiplier", &embedding, err)) ||
        (st = factor(c, "lm_head_multiplier", &head, err)) ||
        (st = factor(c, "attention_in_multiplier", &in, err)) ||
        (st = factor(c, "attention_out_multiplier", &out, err)) ||
        (st = factor(c, "key_multiplier", &key, err)) ||
        (st = factor(c, "ssm_in_multiplier", &ssm_in, err)) ||
        (st = factor(c, "ssm_out_multiplier", &ssm_out, err)))
        return st;
    if (c->tied && embedding != head)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: the output is the embedding, and their multipliers differ, "
                       "which is not supported",
                       c->file.path);
    add_range(s++, "token_embd.weight", 0, embedding);
    add_range(s++, "output.weight", 0, head);
    add_range(s++, "attn_q.weight", 0, in);
    add_range(s++, "attn_k.weight", 0, in * key);
    add_range(s++, "attn_v.weight", 0, in);
    add_range(s++, "attn_output.weight", 0, out);
    add_range(s++, "ssm_out.weight", 0, ssm_out);
    add_range(s++, "ffn_gate.weight", 0, element(c, "mlp_multipliers", 0));
    add_range(s++, "ffn_down.weight", 0, element(c, "mlp_multipliers", 1));
    for (size_t i = 0; i < 5; i++) {
        end += i < 2 ? (uint64_t)inner : state;
        add_range(s, "ssm_in.weight", i < 4 ? end : 0,
                  ssm_in * element(c, "ssm_multipliers", i));
    }
    return ST_OK;
}

enum status hf_falcon_h1(struct hf_config *c, struct err *err)
{
    int64_t inner = 0;
    enum status st;

    c->n_state = 256;
    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_must_be_bool(c, "attention_bias", false, err)) ||
        (st = hf_must_be_bool(c, "mlp_bias", false, err)) ||
        (st = hf_must_be_bool(c, "projectors_bias", false, err)) ||
        (st = hf_must_be_bool(c, "mamba_norm_before_gate", false, err)) ||
        (st = hf_put_sizes(c, err)) ||
        (st = put_mamba(c, &mamba_prefixed, 128, &inner, err)) ||
        (st =
             hf_get_number(c, "mamba_d_state", 1, HF_MAX_HEAD_DIM, &c->n_state, err)) ||
        (st = falcon_factors(c, inner, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_rms_eps(c, 1e-5, err)))
        return st;
    return hf_rope(c, 100000.0, err);
}

/* ---- Nemotron-H ------------------------------------------------------------------ */

static const struct hf_arch nemotron_experts = {
    "nemotron_h",
    "nemotron_h_moe",
    {hf_names_nemotron_h, hf_names_mamba2},
    hf_nemotron_h,
};

const struct hf_arch *hf_nemotron_kind(const struct hf_config *c)
{
    const char *pattern = json_text(json_member(c->o, "hybrid_override_pattern"));

    return !strcmp(c->arch->model_type, "nemotron_h") && pattern && strchr(pattern, 'E')
               ? &nemotron_experts
               : c->arch;
}

/* What layers are, a character each: M Mamba-2, - feed-forward part, E experts, *
 * attention. */
static enum status put_pattern(struct hf_config *c, const char *pattern, int64_t ff,
                               struct err *err)
{
    const size_t n = (size_t)c->n_layers;
    int32_t *kv = calloc(2 * n + 1, sizeof *kv);

    if (!kv)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu layers", n);
    int32_t *width = kv + n;

    for (size_t i = 0; i < n; i++) {
        kv[i] = pattern[i] == '*' ? (int32_t)c->n_kv_heads : 0;
        width[i] = strchr("-E", pattern[i]) ? (int32_t)ff : 0;
    }
    hf_put_i32s(c, "attention.head_count_kv", kv, n);
    hf_put_i32s(c, "feed_forward_length", width, n);
    free(kv);
    return ST_OK;
}

static enum status put_nemotron_experts(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = hf_get_number(c, "n_routed_experts", 1, HF_MAX_EXPERTS, &c->n_experts,
                            err)) ||
        (st = hf_put_number(c, "num_experts_per_tok", "expert_used_count", 1,
                            c->n_experts, 0, err)) ||
        (st = hf_put_number(c, "moe_intermediate_size", "expert_feed_forward_length", 1,
                            HF_MAX_WIDTH, 0, err)) ||
        (st = hf_put_number(c, "moe_shared_expert_intermediate_size",
                            "expert_shared_feed_forward_length", 1, HF_MAX_WIDTH, 0,
                            err)) ||
        (st = hf_put_groups(c, err)))
        return st;
    hf_put_u32(c, "expert_count", c->n_experts);
    return ST_OK;
}

static enum status check_pattern(const struct hf_config *c, const char *pattern,
                                 struct err *err)
{
    if (!pattern || strspn(pattern, "M-*E") != strlen(pattern))
        return err_set(err, ST_UNSUPPORTED,
                       "%s: hybrid_override_pattern is not made of M, -, * and E",
                       c->file.path);
    if (strchr(pattern, '-') && strchr(pattern, 'E'))
        return err_set(err, ST_UNSUPPORTED,
                       "%s: hybrid_override_pattern has layers with and without "
                       "experts, which is not supported",
                       c->file.path);
    return ST_OK;
}

enum status hf_nemotron_h(struct hf_config *c, struct err *err)
{
    static const struct mamba_keys keys = {
        "mamba_num_heads", "mamba_head_dim", "n_groups", "ssm_state_size",
        "conv_kernel",     "use_conv_bias",  "use_bias"};
    const char *pattern = json_text(json_member(c->o, "hybrid_override_pattern"));
    const char *eps = json_member(c->o, "norm_eps") ? "norm_eps" : "layer_norm_epsilon";
    const char *width = "intermediate_size";
    int64_t inner = 0, ff = 0;
    enum status st = check_pattern(c, pattern, err);

    if (st)
        return st;
    if (c->arch == &nemotron_experts)
        width = "moe_intermediate_size";
    c->n_layers = (int64_t)strlen(pattern);
    c->lists_kv_heads = true;
    if ((st = hf_must_be(c, "mlp_hidden_act", "relu2", err)) ||
        (st = hf_must_be_bool(c, "attention_bias", false, err)) ||
        (st = hf_must_be_bool(c, "mlp_bias", false, err)) ||
        (st = json_get_int(&c->file, c->o, "attention_head_dim", 1, HF_MAX_HEAD_DIM,
                           &c->head_dim, err)) ||
        (st = hf_put_sizes(c, err)) || (st = put_mamba(c, &keys, 128, &inner, err)) ||
        (st = hf_put_real(c, eps, "attention.layer_norm_rms_epsilon", 0.0, 1.0, 1e-5,
                          err)) ||
        (st = hf_get_number(c, width, 1, HF_MAX_WIDTH, &ff, err)))
        return st;
    if (c->n_layers != (int64_t)strlen(pattern))
        return err_set(err, ST_INPUT,
                       "%s: hybrid_override_pattern has %zu layers and "
                       "num_hidden_layers is %d",
                       c->file.path, strlen(pattern), (int)c->n_layers);
    if ((st = put_pattern(c, pattern, ff, err)))
        return st;
    return c->arch == &nemotron_experts ? put_nemotron_experts(c, err) : ST_OK;
}
