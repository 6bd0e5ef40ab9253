/* SPDX-License-Identifier: MIT
 *
 * hf_kinds.c - members of config.json of each kind of model, and the table of kinds
 *
 * Missing members have the defaults of their kind. Members that require another
 * computation than the architecture's (another activation function, layers without
 * experts among layers with experts) are refused, because GGUF has no keys for them.
 */
#include "engine/hf/hf_impl.h"

#include <math.h>
#include <string.h>

enum status hf_put_ff(struct hf_config *c, int64_t missing, struct err *err)
{
    return hf_put_number(c, "intermediate_size", "feed_forward_length", 1, HF_MAX_WIDTH,
                         missing, err);
}

enum status hf_put_rms_eps(struct hf_config *c, double missing, struct err *err)
{
    return hf_put_real(c, "rms_norm_eps", "attention.layer_norm_rms_epsilon", 0.0, 1.0,
                       missing, err);
}

enum status hf_put_window(struct hf_config *c, struct err *err)
{
    int64_t window = 0;
    const enum status st =
        json_get_int(&c->file, c->o, "sliding_window", 0, HF_MAX_CONTEXT, &window, err);

    if (!st && window > 0 && window < c->n_ctx)
        hf_put_u32(c, "attention.sliding_window", window);
    return st;
}

enum status hf_put_experts(struct hf_config *c, const char *count, struct err *err)
{
    const enum status st =
        hf_get_number(c, count, 1, HF_MAX_EXPERTS, &c->n_experts, err);

    if (st)
        return st;
    hf_put_u32(c, "expert_count", c->n_experts);
    return hf_put_number(c, "num_experts_per_tok", "expert_used_count", 1, c->n_experts,
                         0, err);
}

enum status hf_check_layers(const struct hf_config *c, int64_t n, const char *others,
                            struct err *err)
{
    const json_t *types = json_member(c->o, "layer_types");

    for (size_t i = 0; i < json_array_size(types); i++) {
        const char *type = json_text(json_array_get(types, i));
        const char *want = (int64_t)(i + 1) % n ? others : "full_attention";

        if (!type || strcmp(type, want))
            return err_set(
                err, ST_UNSUPPORTED,
                "%s: layer_types[%zu] is not %s; of %s models only those are supported "
                "of which every %dth layer, and no other, is full_attention",
                c->file.path, i, want, c->arch->model_type, (int)n);
    }
    return ST_OK;
}

/* ---- kinds of model -------------------------------------------------------------- */

enum status hf_llama(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_rms_eps(c, 1e-6, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

static enum status mistral(struct hf_config *c, struct err *err)
{
    const enum status st = hf_llama(c, err);

    return st ? st : hf_put_window(c, err);
}

static enum status mixtral(struct hf_config *c, struct err *err)
{
    const enum status st = mistral(c, err);

    return st ? st : hf_put_experts(c, "num_local_experts", err);
}

static enum status qwen(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_must_be_bool(c, "use_sliding_window", false, err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_rms_eps(c, 1e-6, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

static enum status qwen_dense(struct hf_config *c, struct err *err)
{
    const enum status st = qwen(c, err);

    return st ? st : hf_put_ff(c, 0, err);
}

/* Every layer must have experts: GGUF has no key for layers without. */
static enum status qwen_moe(struct hf_config *c, struct err *err)
{
    int64_t step = 1;
    enum status st = qwen(c, err);

    if (!st)
        st = json_get_int(&c->file, c->o, "decoder_sparse_step", 1, 1, &step, err);
    if (!st && json_array_size(json_member(c->o, "mlp_only_layers")))
        st = err_set(
            err, ST_UNSUPPORTED,
            "%s: mlp_only_layers names layers without experts, which is not supported",
            c->file.path);
    if (!st)
        st = hf_put_experts(c, "num_experts", err);
    if (!st)
        st = hf_put_ff(c, 0, err);
    if (!st)
        st = hf_put_number(c, "moe_intermediate_size", "expert_feed_forward_length", 1,
                           HF_MAX_WIDTH, 0, err);
    return st;
}

static enum status qwen2_moe(struct hf_config *c, struct err *err)
{
    enum status st = hf_must_be_bool(c, "norm_topk_prob", false, err);

    if (!st)
        st = qwen_moe(c, err);
    if (!st)
        st =
            hf_put_number(c, "shared_expert_intermediate_size",
                          "expert_shared_feed_forward_length", 1, HF_MAX_WIDTH, 0, err);
    return st;
}

static enum status qwen3_moe(struct hf_config *c, struct err *err)
{
    const enum status st = hf_must_be_bool(c, "norm_topk_prob", true, err);

    return st ? st : qwen_moe(c, err);
}

/* Sizes of layers with a state instead of keys and values. */
static enum status put_delta(struct hf_config *c, struct err *err)
{
    int64_t values = 0;
    enum status st;

    if ((st = hf_get_number(c, "linear_num_key_heads", 1, HF_MAX_HEADS,
                            &c->delta_k_heads, err)) ||
        (st = hf_get_number(c, "linear_num_value_heads", 1, HF_MAX_HEADS,
                            &c->delta_v_heads, err)) ||
        (st = hf_get_number(c, "linear_key_head_dim", 1, HF_MAX_HEAD_DIM, &c->delta_dim,
                            err)) ||
        (st = hf_get_number(c, "linear_value_head_dim", 1, HF_MAX_HEAD_DIM, &values,
                            err)) ||
        (st = hf_put_number(c, "linear_conv_kernel_dim", "ssm.conv_kernel", 1, 64, 4,
                            err)))
        return st;
    if (values != c->delta_dim)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: linear_value_head_dim and linear_key_head_dim differ, "
                       "which is not supported",
                       c->file.path);
    if (c->delta_v_heads % c->delta_k_heads)
        return err_set(err, ST_INPUT,
                       "%s: %d value heads cannot share %d key heads evenly",
                       c->file.path, (int)c->delta_v_heads, (int)c->delta_k_heads);
    hf_put_u32(c, "ssm.state_size", c->delta_dim);
    hf_put_u32(c, "ssm.group_count", c->delta_k_heads);
    hf_put_u32(c, "ssm.time_step_rank", c->delta_v_heads);
    hf_put_u32(c, "ssm.inner_size", c->delta_v_heads * c->delta_dim);
    return ST_OK;
}

enum status hf_put_sections(struct hf_config *c, struct err *err)
{
    const json_t *rope = json_member(c->o, "rope_parameters");
    const json_t *list =
        json_member(rope ? rope : json_member(c->o, "rope_scaling"), "mrope_section");
    int32_t v[4] = {0};
    int64_t sum = 0;

    for (size_t i = 0; i < 3; i++) {
        const json_int_t n = json_integer_value(json_array_get(list, i));

        v[i] = n > 0 && n <= c->n_rot ? (int32_t)n : 0;
        sum += v[i];
    }
    if (!list) { /* the default of the models: a few more for time */
        v[0] = (int32_t)(c->n_rot / 2 + 2) / 3;
        v[1] = (int32_t)(c->n_rot / 2 - v[0] + 1) / 2;
        v[2] = (int32_t)c->n_rot / 2 - v[0] - v[1];
    } else if (json_array_size(list) != 3 || sum != c->n_rot / 2) {
        return err_set(err, ST_INPUT,
                       "%s: mrope_section is not three counts of %d pairs together",
                       c->file.path, (int)(c->n_rot / 2));
    }
    hf_put_i32s(c, "rope.dimension_sections", v, 4);
    return ST_OK;
}

/* Layers of linear attention, of which every interval-th attends. */
static enum status delta_layers(struct hf_config *c, struct err *err)
{
    int64_t interval = 4;
    enum status st;

    c->partial = 0.25;
    c->head_dim = 256;
    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_must_be_bool(c, "attention_bias", false, err)) ||
        (st = hf_must_be_bool(c, "attn_output_gate", true, err)) ||
        (st = hf_get_number(c, "full_attention_interval", 1, HF_MAX_LAYERS, &interval,
                            err)) ||
        (st = hf_check_layers(c, interval, "linear_attention", err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_rms_eps(c, 1e-6, err)) ||
        (st = put_delta(c, err)))
        return st;
    hf_put_u32(c, "full_attention_interval", interval);
    return hf_rope(c, 10000000.0, err);
}

static enum status qwen35_any(struct hf_config *c, struct err *err)
{
    const enum status st = delta_layers(c, err);

    return st ? st : hf_put_sections(c, err);
}

static enum status qwen35(struct hf_config *c, struct err *err)
{
    const enum status st = qwen35_any(c, err);

    return st ? st : hf_put_ff(c, 0, err);
}

static enum status delta_experts(struct hf_config *c, hf_kind_fn *layers,
                                 struct err *err)
{
    enum status st;

    if ((st = hf_must_be_bool(c, "norm_topk_prob", true, err)) ||
        (st = layers(c, err)) || (st = hf_put_experts(c, "num_experts", err)) ||
        (st = hf_put_number(c, "moe_intermediate_size", "feed_forward_length", 1,
                            HF_MAX_WIDTH, 0, err)) ||
        (st = hf_put_number(c, "moe_intermediate_size", "expert_feed_forward_length", 1,
                            HF_MAX_WIDTH, 0, err)))
        return st;
    return hf_put_number(c, "shared_expert_intermediate_size",
                         "expert_shared_feed_forward_length", 1, HF_MAX_WIDTH, 0, err);
}

static enum status qwen35_moe(struct hf_config *c, struct err *err)
{
    return delta_experts(c, qwen35_any, err);
}

static enum status qwen3_next(struct hf_config *c, struct err *err)
{
    int64_t step = 1;
    const enum status st =
        json_get_int(&c->file, c->o, "decoder_sparse_step", 1, 1, &step, err);

    if (!st && json_array_size(json_member(c->o, "mlp_only_layers")))
        return err_set(err, ST_UNSUPPORTED,
                       "%s: mlp_only_layers names layers without experts, which is not "
                       "supported",
                       c->file.path);
    return st ? st : delta_experts(c, delta_layers, err);
}

/* Scores are divided by the root of query_pre_attn_scalar, which is the head's size in
 * all models of a family but the largest. */
static enum status put_query_scale(struct hf_config *c, struct err *err)
{
    double scalar = (double)c->head_dim;
    const enum status st = json_get_real(&c->file, c->o, "query_pre_attn_scalar", 1.0,
                                         65536.0, &scalar, err);

    if (!st && scalar != (double)c->head_dim) /* exact: both are whole numbers */
        hf_put_f32(c, "attention.scale", 1.0 / sqrt(scalar));
    return st;
}

/* A null cap means no cap; a missing one has the kind's default. */
static enum status put_cap(struct hf_config *c, const char *key, double missing,
                           struct err *err)
{
    const double none = json_object_get(c->o, key) ? 0.0 : missing;

    return hf_put_real(c, key, key, 0.0, 1e6, none, err);
}

static enum status gemma(struct hf_config *c, int64_t window, struct err *err)
{
    enum status st;

    c->head_dim = 256;
    if (!json_member(c->o, "tie_word_embeddings") &&
        !json_member(c->file.root, "tie_word_embeddings"))
        c->tied = true;
    if ((st = hf_must_be_bool(c, "use_bidirectional_attention",
                              c->arch == &hf_arch_embedding_gemma, err)) ||
        (st = hf_must_be(c, "hidden_activation", "gelu_pytorch_tanh", err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_rms_eps(c, 1e-6, err)) || (st = put_query_scale(c, err)))
        return st;
    return hf_put_number(c, "sliding_window", "attention.sliding_window", 1,
                         HF_MAX_CONTEXT, window, err);
}

static enum status gemma2(struct hf_config *c, struct err *err)
{
    enum status st;

    c->n_ctx = 8192;
    if ((st = hf_check_layers(c, 2, "sliding_attention", err)) ||
        (st = gemma(c, 4096, err)) ||
        (st = put_cap(c, "attn_logit_softcapping", 50.0, err)) ||
        (st = put_cap(c, "final_logit_softcapping", 30.0, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

enum status hf_gemma3(struct hf_config *c, struct err *err)
{
    const json_t *rope = json_member(c->o, "rope_parameters");
    double local = 10000.0;
    int64_t pattern = 6;
    enum status st;

    c->n_ctx = 131072;
    c->n_heads = 8;
    c->n_kv_heads = 4;
    if ((st = json_get_int(&c->file, c->o, "sliding_window_pattern", 6, 6, &pattern,
                           err)) ||
        (st = hf_check_layers(c, 6, "sliding_attention", err)) ||
        (st = json_get_real(&c->file, c->o, "rope_local_base_freq", 1.0, 1e15, &local,
                            err)) ||
        (st = json_get_real(&c->file, json_member(rope, "sliding_attention"),
                            "rope_theta", 1.0, 1e15, &local, err)) ||
        (st = gemma(c, 4096, err)))
        return st;
    if (local != 10000.0)
        hf_put_f32(c, "rope.freq_base_swa", local);
    return hf_rope(c, 1000000.0, err);
}

static enum status phi2(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = hf_must_be(c, "hidden_act", "gelu_new", err)) ||
        (st = hf_must_be_bool(c, "qk_layernorm", false, err)))
        return st;
    c->partial = 0.5;
    if ((st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 4 * c->n_embd, err)) ||
        (st = hf_put_real(c, "layer_norm_eps", "attention.layer_norm_epsilon", 0.0, 1.0,
                          1e-5, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

static enum status phi3(struct hf_config *c, struct err *err)
{
    const json_t *rope = json_member(c->o, "rope_parameters");
    int64_t before = 0, window = 0;
    enum status st;

    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_rms_eps(c, 1e-5, err)) ||
        (st = json_get_int(&c->file, c->o, "sliding_window", 0, HF_MAX_CONTEXT, &window,
                           err)) ||
        (st = json_get_int(&c->file, rope, "original_max_position_embeddings", 1,
                           HF_MAX_CONTEXT, &before, err)) ||
        (st = json_get_int(&c->file, c->o, "original_max_position_embeddings", 1,
                           HF_MAX_CONTEXT, &before, err)))
        return st;
    if (window > 0) /* also where it hides nothing: other readers need the key */
        hf_put_u32(c, "attention.sliding_window", window);
    hf_put_u32(c, "rope.scaling.original_context_length", before ? before : c->n_ctx);
    return hf_rope(c, 10000.0, err);
}

static enum status stablelm(struct hf_config *c, struct err *err)
{
    bool parallel = false;
    enum status st;

    c->partial = 0.25;
    if ((st =
             json_get_real(&c->file, c->o, "rope_pct", 0.001, 1.0, &c->partial, err)) ||
        (st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = json_get_bool(&c->file, c->o, "use_parallel_residual", &parallel, err)) ||
        (st = hf_put_real(c,
                          json_member(c->o, "norm_eps") ? "norm_eps" : "layer_norm_eps",
                          "attention.layer_norm_epsilon", 0.0, 1.0, 1e-5, err)))
        return st;
    hf_put_bool(c, "use_parallel_residual", parallel);
    return hf_rope(c, 10000.0, err);
}

static enum status glm(struct hf_config *c, struct err *err)
{
    enum status st;

    c->partial = 0.5;
    if ((st = hf_must_be(c, "hidden_act", "silu", err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_rms_eps(c, 1e-5, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

/* THUDM's own format, with other member names. */
static enum status chatglm(struct hf_config *c, struct err *err)
{
    double ratio = 1.0;
    int64_t ff = 0;
    enum status st;

    if ((st = hf_must_be_bool(c, "rmsnorm", true, err)) ||
        (st = hf_must_be_bool(c, "original_rope", true, err)) ||
        (st = hf_get_number(c, "num_layers", 1, HF_MAX_LAYERS, &c->n_layers, err)) ||
        (st = hf_get_number(c, "seq_length", 1, HF_MAX_CONTEXT, &c->n_ctx, err)) ||
        (st = hf_get_number(c, "kv_channels", 2, HF_MAX_HEAD_DIM, &c->head_dim, err)) ||
        (st = hf_get_number(c, "multi_query_group_num", 1, HF_MAX_HEADS, &c->n_kv_heads,
                            err)) ||
        (st = hf_get_number(c, "ffn_hidden_size", 1, HF_MAX_WIDTH, &ff, err)) ||
        (st = json_get_real(&c->file, c->o, "rope_ratio", 1e-3, 1e9, &ratio, err)))
        return st;
    c->partial = 0.5;
    if ((st = hf_put_sizes(c, err)) ||
        (st = hf_put_real(c, "layernorm_epsilon", "attention.layer_norm_rms_epsilon",
                          0.0, 1.0, 1e-5, err)))
        return st;
    hf_put_u32(c, "feed_forward_length", ff);
    return hf_rope(c, 10000.0 * ratio, err);
}

/* ---- the table ------------------------------------------------------------------- */

const struct hf_arch hf_archs[] = {
    {"llama", "llama", {hf_names_llama, hf_names_common}, hf_llama},
    {"smollm3", "smollm3", {hf_names_llama, hf_names_common}, hf_smollm3},
    {"granite", "granite", {hf_names_llama, hf_names_common}, hf_granite},
    {"granitemoe",
     "granitemoe",
     {hf_names_granitemoe, hf_names_llama, hf_names_common},
     hf_granitemoe},
    {"granitemoeshared",
     "granitemoe",
     {hf_names_granitemoe, hf_names_llama, hf_names_common},
     hf_granitemoe},
    {"minicpm", "minicpm", {hf_names_llama, hf_names_common}, hf_minicpm},
    {"arcee", "arcee", {hf_names_llama, hf_names_common}, hf_arcee},
    {"ministral3", "mistral3", {hf_names_llama, hf_names_common}, hf_ministral3},
    {"ernie4_5", "ernie4_5", {hf_names_common}, hf_ernie},
    {"ernie4_5_moe",
     "ernie4_5-moe",
     {hf_names_ernie, hf_names_shared, hf_names_moe, hf_names_common},
     hf_ernie_moe},
    {"seed_oss", "seed_oss", {hf_names_seed, hf_names_common}, hf_seed},
    {"hunyuan_v1_dense",
     "hunyuan-dense",
     {hf_names_hunyuan, hf_names_common},
     hf_hunyuan},
    {"olmo2", "olmo2", {hf_names_post, hf_names_common}, hf_olmo2},
    {"olmo3", "olmo2", {hf_names_post, hf_names_common}, hf_olmo3},
    {"olmoe", "olmoe", {hf_names_moe, hf_names_common}, hf_olmoe},
    {"exaone4", "exaone4", {hf_names_post, hf_names_common}, hf_exaone4},
    {"cohere", "command-r", {hf_names_common}, hf_cohere},
    {"cohere2", "cohere2", {hf_names_common}, hf_cohere2},
    {"starcoder2", "starcoder2", {hf_names_starcoder, hf_names_common}, hf_starcoder2},
    {"nemotron", "nemotron", {hf_names_nemotron, hf_names_common}, hf_nemotron},
    {"phimoe", "phimoe", {hf_names_mixtral, hf_names_common}, hf_phimoe},
    {"bailing_moe_v2",
     "bailingmoe2",
     {hf_names_bailing, hf_names_nextn, hf_names_shared, hf_names_moe, hf_names_common},
     hf_bailing},
    {"deepseek_v2",
     "deepseek2",
     {hf_names_deepseek, hf_names_latent, hf_names_nextn, hf_names_shared, hf_names_moe,
      hf_names_common},
     hf_deepseek},
    {"deepseek_v3",
     "deepseek2",
     {hf_names_deepseek, hf_names_latent, hf_names_nextn, hf_names_shared, hf_names_moe,
      hf_names_common},
     hf_deepseek},
    {"minicpm3",
     "minicpm3",
     {hf_names_minicpm3, hf_names_latent, hf_names_common},
     hf_minicpm3},
    {"smallthinker",
     "smallthinker",
     {hf_names_smallthinker, hf_names_common},
     hf_smallthinker},
    {"mistral", "llama", {hf_names_llama, hf_names_common}, mistral},
    {"mixtral", "llama", {hf_names_llama, hf_names_mixtral, hf_names_common}, mixtral},
    {"qwen2", "qwen2", {hf_names_common}, qwen_dense},
    {"qwen2_moe", "qwen2moe", {hf_names_moe, hf_names_common}, qwen2_moe},
    {"qwen3", "qwen3", {hf_names_common}, qwen_dense},
    {"qwen3_moe", "qwen3moe", {hf_names_moe, hf_names_common}, qwen3_moe},
    {"qwen2_vl", "qwen2vl", {hf_names_vl, hf_names_common}, hf_qwen_vl},
    {"qwen2_5_vl", "qwen2vl", {hf_names_vl, hf_names_common}, hf_qwen_vl},
    {"qwen3_vl", "qwen3vl", {hf_names_vl, hf_names_common}, hf_qwen_vl},
    {"qwen3_5",
     "qwen35",
     {hf_names_qwen35, hf_names_nextn_plus_1, hf_names_common},
     qwen35},
    {"qwen3_5_text",
     "qwen35",
     {hf_names_qwen35, hf_names_nextn_plus_1, hf_names_common},
     qwen35},
    {"qwen3_5_moe",
     "qwen35moe",
     {hf_names_qwen35moe, hf_names_moe, hf_names_qwen35, hf_names_nextn_plus_1,
      hf_names_common},
     qwen35_moe},
    {"qwen3_5_moe_text",
     "qwen35moe",
     {hf_names_qwen35moe, hf_names_moe, hf_names_qwen35, hf_names_nextn_plus_1,
      hf_names_common},
     qwen35_moe},
    {"gemma", "gemma", {hf_names_gemma1, hf_names_common}, hf_gemma},
    {"gemma2", "gemma2", {hf_names_gemma, hf_names_common}, gemma2},
    {"gemma3_text", "gemma3", {hf_names_gemma, hf_names_common}, hf_gemma3},
    {"gemma3", "gemma3", {hf_names_gemma, hf_names_common}, hf_gemma3},
    {"gemma3n", "gemma3n", {hf_names_per_layer, hf_names_common}, hf_gemma3n},
    {"gemma3n_text", "gemma3n", {hf_names_per_layer, hf_names_common}, hf_gemma3n},
    {"gemma4", "gemma4", {hf_names_per_layer, hf_names_common}, hf_gemma4},
    {"gemma4_text", "gemma4", {hf_names_per_layer, hf_names_common}, hf_gemma4},
    {"phi", "phi2", {hf_names_phi2, hf_names_common}, phi2},
    {"phi3", "phi3", {hf_names_fused, hf_names_common}, phi3},
    {"stablelm", "stablelm", {hf_names_stablelm, hf_names_common}, stablelm},
    {"glm", "chatglm", {hf_names_fused, hf_names_common}, glm},
    {"glm4", "glm4", {hf_names_glm4, hf_names_fused, hf_names_common}, glm},
    {"chatglm", "chatglm", {hf_names_chatglm}, chatglm},
    {"lfm2", "lfm2", {hf_names_lfm2, hf_names_common}, hf_lfm2},
    {"lfm2_moe", "lfm2moe", {hf_names_lfm2, hf_names_common}, hf_lfm2_moe},
    {"granitemoehybrid",
     "granitehybrid",
     {hf_names_mamba, hf_names_granitemoe, hf_names_common},
     hf_granite_hybrid},
    {"bert", "bert", {hf_names_bert}, hf_bert},
    {"roberta", "bert", {hf_names_roberta, hf_names_bert}, hf_roberta},
    {"xlm-roberta", "bert", {hf_names_roberta, hf_names_bert}, hf_roberta},
    {"camembert", "bert", {hf_names_roberta, hf_names_bert}, hf_roberta},
    {"nomic_bert", "nomic-bert", {hf_names_nomic}, hf_nomic},
    {"bitnet", "bitnet", {hf_names_bitnet, hf_names_common}, hf_bitnet},
    {"gpt_oss", "gpt-oss", {hf_names_gpt_oss, hf_names_common}, hf_gpt_oss},
    {"apertus", "apertus", {hf_names_apertus, hf_names_common}, hf_apertus},
    {"glm4_moe",
     "glm4moe",
     {hf_names_glm4_moe, hf_names_nextn, hf_names_shared, hf_names_moe,
      hf_names_common},
     hf_glm4_moe},
    {"gpt2", "gpt2", {hf_names_gpt2}, hf_gpt2},
    {"gpt_neox", "gptneox", {hf_names_gpt_neox}, hf_gpt_neox},
    {"falcon", "falcon", {hf_names_falcon}, hf_falcon},
    {"internlm2", "internlm2", {hf_names_internlm2, hf_names_common}, hf_internlm2},
    {"mamba2", "mamba2", {hf_names_mamba2}, hf_mamba2},
    {"falcon_h1",
     "falcon-h1",
     {hf_names_falcon_h1, hf_names_mamba, hf_names_common},
     hf_falcon_h1},
    {"nemotron_h", "nemotron_h", {hf_names_nemotron_h, hf_names_mamba2}, hf_nemotron_h},
    {"qwen3_next",
     "qwen3next",
     {hf_names_qwen3_next, hf_names_moe, hf_names_qwen35, hf_names_nextn_plus_1,
      hf_names_common},
     qwen3_next},
};
const size_t hf_n_archs = sizeof hf_archs / sizeof hf_archs[0];
