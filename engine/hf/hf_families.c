/* SPDX-License-Identifier: MIT
 *
 * hf_families.c - members of config.json of further kinds of model; the table of kinds
 * is in hf_kinds.c
 *
 * What GGUF files of a family have no key for (which layers rotate, which have a
 * window) must be as the architecture computes it.
 */
#include "engine/hf/hf_impl.h"

#include <math.h>
#include <string.h>

/* A gated model with RMS norms and nothing else that is particular. */
static enum status plain(struct hf_config *c, const char *act, double eps, double theta,
                         struct err *err)
{
    enum status st;

    if ((st = hf_must_be(c, "hidden_act", act, err)) || (st = hf_put_sizes(c, err)) ||
        (st = hf_put_ff(c, 0, err)) || (st = hf_put_rms_eps(c, eps, err)))
        return st;
    return hf_rope(c, theta, err);
}

/* The same with LayerNorms, whose epsilon has various names. */
static enum status plain_layernorm(struct hf_config *c, const char *act,
                                   const char *eps, double theta, struct err *err)
{
    enum status st;

    if ((st = hf_must_be(c, "hidden_act", act, err)) || (st = hf_put_sizes(c, err)) ||
        (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_real(c, eps, "attention.layer_norm_epsilon", 0.0, 1.0, 1e-5, err)))
        return st;
    return hf_rope(c, theta, err);
}

/* Kinds whose weights are tied unless the config says otherwise. */
static void tie(struct hf_config *c)
{
    if (!json_member(c->o, "tie_word_embeddings") &&
        !json_member(c->file.root, "tie_word_embeddings"))
        c->tied = true;
}

/* A window of all layers but every n-th; without one all layers have full attention. */
static enum status put_windows(struct hf_config *c, int64_t n, struct err *err)
{
    int64_t window = 0;
    enum status st =
        json_get_int(&c->file, c->o, "sliding_window", 0, HF_MAX_CONTEXT, &window, err);

    if (!st)
        st = hf_check_layers(c, window ? n : 1, "sliding_attention", err);
    if (!st && window)
        hf_put_u32(c, "attention.sliding_window", window);
    return st;
}

/* Layers 0, 2, ... have a window, the others full attention. */
static enum status check_alternating(const struct hf_config *c, struct err *err)
{
    return hf_check_layers(c, 2, "sliding_attention", err);
}

/* A list of 0 and 1 must have 0 in the layers first, first + n and so on alone, or 1 in
 * all; *all: the latter. */
static enum status check_layout(const struct hf_config *c, const char *key, size_t n,
                                size_t first, bool *all, struct err *err)
{
    const json_t *list = json_member(c->o, key);
    size_t n_ones = 0, n_right = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const bool one = json_integer_value(json_array_get(list, i)) == 1;

        n_ones += one;
        n_right += one == (i % n != first);
    }
    *all = n_ones == json_array_size(list);
    if (*all || n_right == json_array_size(list))
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "%s: %s is 0 in other layers than %zu, %zu and so on, which is not "
                   "supported for %s models",
                   c->file.path, key, first, first + n, c->arch->model_type);
}

/* ---- dense models ---------------------------------------------------------------- */

enum status hf_smollm3(struct hf_config *c, struct err *err)
{
    bool all = false;
    enum status st;

    if ((st = hf_must_be_bool(c, "use_sliding_window", false, err)) ||
        (st = check_layout(c, "no_rope_layers", 4, 3, &all, err)))
        return st;
    if (all && json_array_size(json_member(c->o, "no_rope_layers")) > 3)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: no_rope_layers lets all layers rotate, which is not "
                       "supported for smollm3 models",
                       c->file.path);
    tie(c);
    return plain(c, "silu", 1e-6, 2000000.0, err);
}

enum status hf_granite(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = hf_llama(c, err)) ||
        (st = hf_put_real(c, "embedding_multiplier", "embedding_scale", 1e-6, 1e6, 1.0,
                          err)) ||
        (st = hf_put_real(c, "residual_multiplier", "residual_scale", 1e-6, 1e6, 1.0,
                          err)) ||
        (st = hf_put_real(c, "attention_multiplier", "attention.scale", 1e-6, 1e6, 1.0,
                          err)))
        return st;
    return hf_put_real(c, "logits_scaling", "logit_scale", 1e-6, 1e6, 1.0, err);
}

enum status hf_minicpm(struct hf_config *c, struct err *err)
{
    double depth = 1.0, base = 1.0;
    enum status st;

    if ((st = hf_llama(c, err)) ||
        (st = hf_put_real(c, "scale_emb", "embedding_scale", 1e-6, 1e6, 1.0, err)) ||
        (st = json_get_real(&c->file, c->o, "scale_depth", 1e-6, 1e6, &depth, err)) ||
        (st = json_get_real(&c->file, c->o, "dim_model_base", 1.0, 1e6, &base, err)))
        return st;
    hf_put_f32(c, "residual_scale", depth / sqrt((double)c->n_layers));
    hf_put_f32(c, "logit_scale", (double)c->n_embd / base);
    return ST_OK;
}

enum status hf_arcee(struct hf_config *c, struct err *err)
{
    return plain(c, "relu2", 1e-5, 10000.0, err);
}

enum status hf_ministral3(struct hf_config *c, struct err *err)
{
    const json_t *rope = json_member(c->o, "rope_parameters");
    double beta = 0.0;
    enum status st = plain(c, "silu", 1e-5, 1000000.0, err);

    if (!st)
        st =
            json_get_real(&c->file, rope, "llama_4_scaling_beta", 0.0, 1e3, &beta, err);
    if (!st && beta > 0.0)
        hf_put_f32(c, "attention.temperature_scale", beta);
    return st;
}

enum status hf_ernie(struct hf_config *c, struct err *err)
{
    tie(c);
    return plain(c, "silu", 1e-5, 500000.0, err);
}

enum status hf_seed(struct hf_config *c, struct err *err)
{
    return plain(c, "silu", 1e-6, 10000.0, err);
}

enum status hf_hunyuan(struct hf_config *c, struct err *err)
{
    const enum status st = hf_must_be_bool(c, "use_qk_norm", true, err);

    return st ? st : plain(c, "silu", 1e-5, 10000.0, err);
}

enum status hf_olmo2(struct hf_config *c, struct err *err)
{
    const enum status st = hf_must_be_bool(c, "attention_bias", false, err);

    return st ? st : plain(c, "silu", 1e-5, 10000.0, err);
}

enum status hf_olmo3(struct hf_config *c, struct err *err)
{
    const enum status st = hf_olmo2(c, err);

    return st ? st : put_windows(c, 4, err);
}

enum status hf_exaone4(struct hf_config *c, struct err *err)
{
    const enum status st = plain(c, "silu", 1e-5, 1000000.0, err);

    return st ? st : put_windows(c, 4, err);
}

enum status hf_gemma(struct hf_config *c, struct err *err)
{
    enum status st;

    c->head_dim = 256;
    c->n_ctx = 8192;
    tie(c);
    /* "gelu" of hidden_act means its tanh form, too. */
    if ((st = hf_must_be(c, "hidden_activation", "gelu_pytorch_tanh", err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = hf_put_rms_eps(c, 1e-6, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

enum status hf_qwen_vl(struct hf_config *c, struct err *err)
{
    enum status st = hf_must_be_bool(c, "use_sliding_window", false, err);

    if (!st)
        st = plain(c, "silu", 1e-6, 1000000.0, err);
    return st ? st : hf_put_sections(c, err);
}

enum status hf_cohere(struct hf_config *c, struct err *err)
{
    enum status st;

    tie(c);
    st = plain_layernorm(c, "silu", "layer_norm_eps", 10000.0, err);
    return st ? st
              : hf_put_real(c, "logit_scale", "logit_scale", 1e-6, 1e6, 0.0625, err);
}

enum status hf_cohere2(struct hf_config *c, struct err *err)
{
    const enum status st = hf_cohere(c, err);

    return st ? st : put_windows(c, 4, err);
}

enum status hf_starcoder2(struct hf_config *c, struct err *err)
{
    const enum status st = hf_must_be_bool(c, "use_bias", true, err);

    tie(c);
    return st ? st
              : plain_layernorm(c, "gelu_pytorch_tanh", "norm_epsilon", 10000.0, err);
}

enum status hf_nemotron(struct hf_config *c, struct err *err)
{
    c->partial = 0.5;
    return plain_layernorm(c, "relu2", "norm_eps", 10000.0, err);
}

/* ---- models with experts --------------------------------------------------------- */

/* Experts, of which a token takes `used`, and their width. */
enum status hf_put_routed(struct hf_config *c, const char *count, const char *used,
                          const char *width, int64_t *n_ff, struct err *err)
{
    enum status st;

    if ((st = hf_get_number(c, count, 1, HF_MAX_EXPERTS, &c->n_experts, err)) ||
        (st = hf_put_number(c, used, "expert_used_count", 1, c->n_experts, 0, err)) ||
        (st = hf_get_number(c, width, 1, HF_MAX_WIDTH, n_ff, err)))
        return st;
    hf_put_u32(c, "expert_count", c->n_experts);
    hf_put_u32(c, "expert_feed_forward_length", *n_ff);
    return ST_OK;
}

enum status hf_put_groups(struct hf_config *c, struct err *err)
{
    bool divided = true;
    const enum status st =
        json_get_bool(&c->file, c->o, "norm_topk_prob", &divided, err);

    if (st)
        return st;
    hf_put_bool(c, "expert_weights_norm", divided);
    if (hf_put_number(c, "n_group", "expert_group_count", 1, c->n_experts, 1, err) ||
        hf_put_number(c, "topk_group", "expert_group_used_count", 1, c->n_experts, 1,
                      err) ||
        hf_put_real(c, "routed_scaling_factor", "expert_weights_scale", 0.0, 1e6, 1.0,
                    err))
        return err->code;
    return ST_OK;
}

enum status hf_granitemoe(struct hf_config *c, struct err *err)
{
    int64_t n_ff = 0, shared = 0;
    enum status st;

    if ((st = hf_granite(c, err)) ||
        (st = hf_put_routed(c, "num_local_experts", "num_experts_per_tok",
                            "intermediate_size", &n_ff, err)) ||
        (st = json_get_int(&c->file, c->o, "shared_intermediate_size", 0, HF_MAX_WIDTH,
                           &shared, err)))
        return st;
    if (shared)
        hf_put_u32(c, "expert_shared_feed_forward_length", shared);
    return ST_OK;
}

enum status hf_olmoe(struct hf_config *c, struct err *err)
{
    int64_t n_ff = 0;
    enum status st;

    if (json_member(c->o, "clip_qkv"))
        return err_set(err, ST_UNSUPPORTED, "%s: clip_qkv is not supported",
                       c->file.path);
    if ((st = hf_must_be_bool(c, "norm_topk_prob", false, err)) ||
        (st = plain(c, "silu", 1e-5, 10000.0, err)))
        return st;
    return hf_put_routed(c, "num_experts", "num_experts_per_tok", "intermediate_size",
                         &n_ff, err);
}

/* Layers with experts, from which one on, in which step. */
enum status hf_put_first(struct hf_config *c, const char *key, struct err *err)
{
    int64_t first = 0;
    const enum status st =
        json_get_int(&c->file, c->o, key, 0, c->n_layers, &first, err);

    if (!st)
        hf_put_u32(c, "leading_dense_block_count", first);
    return st;
}

enum status hf_ernie_moe(struct hf_config *c, struct err *err)
{
    int64_t step = 1, n_ff = 0, n_shared = 0;
    enum status st;

    if ((st = hf_ernie(c, err)) ||
        (st = hf_put_routed(c, "moe_num_experts", "moe_k", "moe_intermediate_size",
                            &n_ff, err)) ||
        (st = json_get_int(&c->file, c->o, "moe_layer_interval", 1, 1, &step, err)) ||
        (st = json_get_int(&c->file, c->o, "moe_num_shared_experts", 0, HF_MAX_EXPERTS,
                           &n_shared, err)))
        return st;
    if (n_shared)
        hf_put_u32(c, "expert_shared_feed_forward_length", n_shared * n_ff);
    return hf_put_first(c, "moe_layer_start_index", err);
}

enum status hf_phimoe(struct hf_config *c, struct err *err)
{
    const json_t *rope = json_member(c->o, "rope_scaling");
    int64_t n_ff = 0, before = 0;
    enum status st;

    if ((st = plain(c, "silu", 1e-5, 10000.0, err)) ||
        (st = json_get_int(&c->file, rope, "original_max_position_embeddings", 1,
                           HF_MAX_CONTEXT, &before, err)))
        return st;
    if (before)
        hf_put_u32(c, "rope.scaling.original_context_length", before);
    return hf_put_routed(c, "num_local_experts", "num_experts_per_tok",
                         "intermediate_size", &n_ff, err);
}

enum status hf_bailing(struct hf_config *c, struct err *err)
{
    int64_t n_ff = 0, n_shared = 1;
    enum status st;

    if ((st = hf_must_be(c, "score_function", "sigmoid", err)) ||
        (st = hf_must_be_bool(c, "use_qk_norm", true, err)) ||
        (st = plain(c, "silu", 1e-6, 600000.0, err)) ||
        (st = hf_put_routed(c, "num_experts", "num_experts_per_tok",
                            "moe_intermediate_size", &n_ff, err)) ||
        (st = json_get_int(&c->file, c->o, "num_shared_experts", 0, HF_MAX_EXPERTS,
                           &n_shared, err)) ||
        (st = hf_put_groups(c, err)))
        return st;
    hf_put_u32(c, "expert_gating_func", 2);
    hf_put_u32(c, "expert_shared_feed_forward_length", n_shared * n_ff);
    return hf_put_first(c, "first_k_dense_replace", err);
}

enum status hf_smallthinker(struct hf_config *c, struct err *err)
{
    bool softmax = false, all_rotate = true, all_windows = false;
    const json_t *layout = json_member(c->o, "sliding_window_layout");
    int64_t n_ff = 0, window = 4096;
    bool windows = false;
    enum status st;

    for (size_t i = 0; i < json_array_size(layout); i++)
        windows |= json_integer_value(json_array_get(layout, i)) == 1;
    if ((windows &&
         (st = check_layout(c, "sliding_window_layout", 4, 0, &all_windows, err))) ||
        (st = check_layout(c, "rope_layout", 4, 0, &all_rotate, err)))
        return st;
    if (windows == all_rotate || all_windows)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: layers that rotate and layers with a window are not the "
                       "same, which is not supported for smallthinker models",
                       c->file.path);
    if ((st = hf_must_be_bool(c, "norm_topk_prob", true, err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_rms_eps(c, 1e-6, err)) ||
        (st = hf_put_routed(c, "moe_num_primary_experts",
                            "moe_num_active_primary_experts", "moe_ffn_hidden_size",
                            &n_ff, err)) ||
        (st = json_get_bool(&c->file, c->o, "moe_primary_router_apply_softmax",
                            &softmax, err)) ||
        (st = json_get_int(&c->file, c->o, "sliding_window_size", 1, HF_MAX_CONTEXT,
                           &window, err)))
        return st;
    hf_put_u32(c, "feed_forward_length", n_ff);
    hf_put_u32(c, "expert_gating_func", softmax ? 1 : 2);
    if (windows)
        hf_put_u32(c, "attention.sliding_window", window);
    return hf_rope(c, 10000.0, err);
}

enum status hf_gpt_oss(struct hf_config *c, struct err *err)
{
    double limit = 7.0;
    int64_t n_ff = 0;
    enum status st;

    c->head_dim = 64;
    if ((st = hf_must_be_bool(c, "attention_bias", true, err)) ||
        (st = json_get_real(&c->file, c->o, "swiglu_limit", 7.0, 7.0, &limit, err)) ||
        (st = check_alternating(c, err)) ||
        (st = plain(c, "silu", 1e-5, 150000.0, err)) ||
        (st = hf_put_routed(c, "num_local_experts", "num_experts_per_tok",
                            "intermediate_size", &n_ff, err)))
        return st;
    return hf_put_number(c, "sliding_window", "attention.sliding_window", 1,
                         HF_MAX_CONTEXT, 128, err);
}

enum status hf_apertus(struct hf_config *c, struct err *err)
{
    const enum status st = hf_must_be_bool(c, "attention_bias", false, err);

    return st ? st : plain(c, "xielu", 1e-5, 12000000.0, err);
}

enum status hf_glm4_moe(struct hf_config *c, struct err *err)
{
    int64_t n_ff = 0, n_shared = 1;
    enum status st;

    c->partial = 0.5;
    if ((st = plain(c, "silu", 1e-5, 10000.0, err)) ||
        (st = hf_put_routed(c, "n_routed_experts", "num_experts_per_tok",
                            "moe_intermediate_size", &n_ff, err)) ||
        (st = json_get_int(&c->file, c->o, "n_shared_experts", 0, HF_MAX_EXPERTS,
                           &n_shared, err)) ||
        (st = hf_put_groups(c, err)))
        return st;
    hf_put_u32(c, "expert_gating_func", 2);
    hf_put_u32(c, "expert_shared_count", n_shared);
    return hf_put_first(c, "first_k_dense_replace", err);
}
