/* SPDX-License-Identifier: MIT
 *
 * hf_gemma.c - members of config.json of Gemma 3n and 4
 */
#include "engine/hf/hf_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether layer i has a sliding window: layer_types, or all but every interval-th; the
 * last one never has. */
static enum status has_window(const struct hf_config *c, int64_t i, int64_t interval,
                              bool *out, struct err *err)
{
    const json_t *types = json_member(c->o, "layer_types");
    const char *type = json_text(json_array_get(types, (size_t)i));

    *out = (i + 1) % interval != 0 && i + 1 < c->n_layers;
    if (!types)
        return ST_OK;
    if (!type || (strcmp(type, "sliding_attention") && strcmp(type, "full_attention")))
        return err_set(err, ST_UNSUPPORTED,
                       "%s: layer_types[%d] is neither sliding_attention nor "
                       "full_attention, and %s models have no others",
                       c->file.path, (int)i, c->arch->model_type);
    *out = !strcmp(type, "sliding_attention");
    return ST_OK;
}

static enum status put_windows(struct hf_config *c, int64_t interval, struct err *err)
{
    enum status st = hf_put_number(c, "sliding_window", "attention.sliding_window", 1,
                                   HF_MAX_CONTEXT, 512, err);

    hf_put_array(c, "attention.sliding_window_pattern", GGUF_BOOL,
                 (uint64_t)c->n_layers);
    for (int64_t i = 0; i < c->n_layers; i++) {
        bool has = false;

        if (!st)
            st = has_window(c, i, interval, &has, err);
        gguf_put(&c->kvs->bytes, &(char){has}, 1);
    }
    return st;
}

/* The rotation of layers with a window. */
static enum status put_local_rope(struct hf_config *c, struct err *err)
{
    const json_t *rope = json_member(c->o, "rope_parameters");
    double base = 10000.0;
    enum status st =
        json_get_real(&c->file, c->o, "rope_local_base_freq", 1.0, 1e15, &base, err);

    if (!st)
        st = json_get_real(&c->file, json_member(rope, "sliding_attention"),
                           "rope_theta", 1.0, 1e15, &base, err);
    hf_put_f32(c, "rope.freq_base_swa", base);
    return st;
}

/* What both have, behind the sizes; n_shared: default of the layers that read the keys
 * and values of others, and what it is. */
static enum status put_common(struct hf_config *c, int64_t interval, int64_t *n_shared,
                              struct err *err)
{
    enum status st;

    if (!json_member(c->o, "tie_word_embeddings") &&
        !json_member(c->file.root, "tie_word_embeddings"))
        c->tied = true;
    if ((st = hf_must_be(c, "hidden_activation", "gelu_pytorch_tanh", err)) ||
        (st = hf_must_be_bool(c, "attention_bias", false, err)) ||
        (st = hf_put_rms_eps(c, 1e-6, err)) || (st = put_windows(c, interval, err)) ||
        (st = put_local_rope(c, err)) ||
        (st = hf_get_number(c, "num_kv_shared_layers", 0, c->n_layers - 1, n_shared,
                            err)))
        return st;
    hf_put_u32(c, "attention.shared_kv_layers", *n_shared);
    return hf_put_real(c, "final_logit_softcapping", "final_logit_softcapping", 0.0,
                       1e6, json_object_get(c->o, "final_logit_softcapping") ? 0 : 30.0,
                       err);
}

static enum status put_per_layer(struct hf_config *c, struct err *err)
{
    static const char key[] = "hidden_size_per_layer_input";
    const int64_t missing = json_object_get(c->o, key) ? 0 : 256; /* null: none */

    return hf_put_number(c, key, "embedding_length_per_layer_input", 0, HF_MAX_WIDTH,
                         missing, err);
}

/* ---- Gemma 4 --------------------------------------------------------------------- */

/* The width of each layer: those that share keys and values may be twice as wide. */
static enum status put_widths(struct hf_config *c, int64_t n_shared, struct err *err)
{
    int64_t n_ff = 0;
    bool twice = false;
    enum status st;

    if ((st = hf_get_number(c, "intermediate_size", 1, HF_MAX_WIDTH / 2, &n_ff, err)) ||
        (st = json_get_bool(&c->file, c->o, "use_double_wide_mlp", &twice, err)))
        return st;
    if (!twice) {
        hf_put_u32(c, "feed_forward_length", n_ff);
        return ST_OK;
    }
    hf_put_array(c, "feed_forward_length", GGUF_I32, (uint64_t)c->n_layers);
    for (int64_t i = 0; i < c->n_layers; i++)
        gguf_put_u32(&c->kvs->bytes,
                     (uint32_t)(i < c->n_layers - n_shared ? n_ff : 2 * n_ff));
    return ST_OK;
}

/* Layers without a window have heads of another length, and may have another number of
 * key-value heads where their keys are their values. */
static enum status put_heads(struct hf_config *c, struct err *err)
{
    int64_t global = 512, n_global = c->n_kv_heads;
    bool one = false;
    enum status st;

    if ((st = hf_get_number(c, "global_head_dim", 1, HF_MAX_HEAD_DIM, &global, err)) ||
        (st = json_get_bool(&c->file, c->o, "attention_k_eq_v", &one, err)) ||
        (one && (st = hf_get_number(c, "num_global_key_value_heads", 1, HF_MAX_HEADS,
                                    &n_global, err))))
        return st;
    hf_put_array(c, "attention.head_count_kv", GGUF_I32, (uint64_t)c->n_layers);
    for (int64_t i = 0; i < c->n_layers; i++) {
        bool has = false;

        if (!st)
            st = has_window(c, i, 6, &has, err);
        gguf_put_u32(&c->kvs->bytes, (uint32_t)(has ? c->n_kv_heads : n_global));
    }
    hf_put_u32(c, "attention.key_length_swa", c->head_dim);
    hf_put_u32(c, "attention.value_length_swa", c->head_dim);
    hf_put_u32(c, "rope.dimension_count_swa", c->head_dim);
    c->head_dim = c->n_rot = global;
    return st;
}

static enum status put_experts(struct hf_config *c, struct err *err)
{
    bool has = false;
    enum status st = json_get_bool(&c->file, c->o, "enable_moe_block", &has, err);

    if (st || !has)
        return st;
    if ((st = hf_get_number(c, "num_experts", 1, HF_MAX_EXPERTS, &c->n_experts, err)) ||
        (st = hf_put_number(c, "top_k_experts", "expert_used_count", 1, c->n_experts, 0,
                            err)))
        return st;
    hf_put_u32(c, "expert_count", c->n_experts);
    return hf_put_number(c, "moe_intermediate_size", "expert_feed_forward_length", 1,
                         HF_MAX_WIDTH, 0, err);
}

enum status hf_gemma4(struct hf_config *c, struct err *err)
{
    int64_t n_shared = 0;
    enum status st;

    c->head_dim = 256;
    c->n_ctx = 131072;
    if ((st = hf_get_sizes(c, err)) || (st = put_heads(c, err)) ||
        (st = put_common(c, 6, &n_shared, err)) ||
        (st = put_widths(c, n_shared, err)) || (st = put_experts(c, err)) ||
        (st = put_per_layer(c, err)))
        return st;
    hf_put_common_sizes(c);
    if (!json_member(c->o, "rope_parameters") && (st = hf_rope_turning(c, 0.25, err)))
        return st;
    return hf_rope(c, 1000000.0, err);
}

/* ---- Gemma 3n -------------------------------------------------------------------- */

/* How many standard deviations above the mean of normal values a share of them ends:
 * the bisection of the distribution function. */
static double deviations(double share)
{
    double low = -40.0, high = 40.0;

    for (int i = 0; i < 100; i++) {
        const double x = (low + high) / 2.0;

        if (0.5 * erfc(-x / sqrt(2.0)) < share)
            low = x;
        else
            high = x;
    }
    return low;
}

/* The share of gates that do not count in each layer: most in the first 10, none in the
 * others, unless there is a list. */
static enum status put_sparsity(struct hf_config *c, struct err *err)
{
    const json_t *list = json_member(c->o, "activation_sparsity_pattern");

    hf_put_array(c, "activation_sparsity_scale", GGUF_F32, (uint64_t)c->n_layers);
    for (int64_t i = 0; i < c->n_layers; i++) {
        const double share = list ? json_number_value(json_array_get(list, (size_t)i))
                             : c->n_layers > 10 && i < 10 ? 0.95
                                                          : 0.0;

        if (!(share >= 0.0 && share < 1.0) ||
            (list && json_array_size(list) != (size_t)c->n_layers))
            return err_set(err, ST_INPUT,
                           "%s: activation_sparsity_pattern is no list of shares below "
                           "1 for each of %d layers",
                           c->file.path, (int)c->n_layers);
        gguf_put_f32(&c->kvs->bytes,
                     share > 0.0 ? (float)deviations(share) : -INFINITY);
    }
    return ST_OK;
}

/* One width, or a list of each layer's. */
static enum status put_width_list(struct hf_config *c, struct err *err)
{
    const json_t *list = json_member(c->o, "intermediate_size");

    if (!json_is_array(list))
        return hf_put_ff(c, 16384, err);
    hf_put_array(c, "feed_forward_length", GGUF_I32, (uint64_t)c->n_layers);
    for (int64_t i = 0; i < c->n_layers; i++) {
        const json_int_t n = json_integer_value(json_array_get(list, (size_t)i));

        if (n < 1 || n > HF_MAX_WIDTH)
            return err_set(err, ST_INPUT,
                           "%s: intermediate_size is neither a number nor a list of "
                           "one for each of %d layers",
                           c->file.path, (int)c->n_layers);
        gguf_put_u32(&c->kvs->bytes, (uint32_t)n);
    }
    return ST_OK;
}

enum status hf_gemma3n(struct hf_config *c, struct err *err)
{
    int64_t n_shared = 15;
    enum status st;

    c->head_dim = 256;
    c->n_ctx = 32768;
    if ((st = hf_put_sizes(c, err)) || (st = put_common(c, 5, &n_shared, err)) ||
        (st = put_width_list(c, err)) || (st = put_sparsity(c, err)) ||
        (st = put_per_layer(c, err)) ||
        (st = hf_put_number(c, "altup_num_inputs", "altup.num_inputs", 2, 8, 4, err)) ||
        (st = hf_put_number(c, "altup_active_idx", "altup.active_idx", 0, 0, 0, err)))
        return st;
    return hf_rope(c, 1000000.0, err);
}
