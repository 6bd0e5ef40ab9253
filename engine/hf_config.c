/* SPDX-License-Identifier: MIT
 *
 * hf_config.c - config.json to the hyperparameters of a GGUF file
 *
 * A folder's config names its kind in model_type; members it leaves out have that
 * kind's defaults. What would make another computation of it than the architecture
 * does here (another activation, layers without experts among others with some) is
 * refused, because nothing in a GGUF file could say so.
 */
#include "engine/hf_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/utf8.h"

#define MAX_CONFIG ((size_t)16 << 20)

/* Beyond these a number is damage, not a model. */
enum {
    MAX_LAYERS = 4096,
    MAX_WIDTH = 1 << 24,
    MAX_HEADS = 4096,
    MAX_HEAD_DIM = 65536,
    MAX_CONTEXT = 1 << 28,
    MAX_EXPERTS = 1024,
};

/* ---- pairs -------------------------------------------------------------------------
 */

static const char *full_key(char *buf, size_t cap, const struct hf_config *c,
                            const char *key)
{
    snprintf(buf, cap, "%s.%s", c->arch->gguf, key);
    return buf;
}

void hf_put_u32(struct hf_config *c, const char *key, int64_t v)
{
    char full[96];

    gguf_kv_u32(c->kvs, full_key(full, sizeof full, c, key), (uint32_t)v);
}

void hf_put_f32(struct hf_config *c, const char *key, double v)
{
    char full[96];

    gguf_kv_f32(c->kvs, full_key(full, sizeof full, c, key), (float)v);
}

void hf_put_bool(struct hf_config *c, const char *key, bool v)
{
    char full[96];

    gguf_kv_bool(c->kvs, full_key(full, sizeof full, c, key), v);
}

void hf_put_str(struct hf_config *c, const char *key, const char *v)
{
    char full[96];

    gguf_kv_str(c->kvs, full_key(full, sizeof full, c, key), v);
}

/* ---- members -----------------------------------------------------------------------
 */

/* The whole number `key`, which must be there unless *out is one already. */
static enum status number(const struct hf_config *c, const char *key, int64_t min,
                          int64_t max, int64_t *out, struct err *err)
{
    const enum status st = json_get_int(&c->file, c->o, key, min, max, out, err);

    if (!st && *out < min)
        return err_set(err, ST_INPUT, "%s lacks %s", c->file.path, key);
    return st;
}

/* The same, put as a pair. */
static enum status put_number(struct hf_config *c, const char *key, const char *gguf,
                              int64_t min, int64_t max, int64_t missing,
                              struct err *err)
{
    int64_t v = missing;
    const enum status st = number(c, key, min, max, &v, err);

    if (!st)
        hf_put_u32(c, gguf, v);
    return st;
}

static enum status put_real(struct hf_config *c, const char *key, const char *gguf,
                            double min, double max, double missing, struct err *err)
{
    double v = missing;
    const enum status st = json_get_real(&c->file, c->o, key, min, max, &v, err);

    if (!st)
        hf_put_f32(c, gguf, v);
    return st;
}

/* A member that must be what the architecture computes with, if it is there. */
static enum status must_be(const struct hf_config *c, const char *key, const char *want,
                           struct err *err)
{
    const json_t *v = json_member(c->o, key);
    const char *text = json_text(v);
    char shown[48];

    if (!v || (text && !strcmp(text, want)))
        return ST_OK;
    return err_set(err, ST_UNSUPPORTED,
                   "%s: %s is '%s'; of %s models only '%s' is "
                   "supported",
                   c->file.path, key,
                   text ? utf8_printable(shown, sizeof shown, text, strlen(text))
                        : "no text",
                   c->arch->model_type, want);
}

static enum status must_be_bool(const struct hf_config *c, const char *key, bool want,
                                struct err *err)
{
    bool v = want;
    const enum status st = json_get_bool(&c->file, c->o, key, &v, err);

    if (!st && v != want)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: %s is %s; of %s models only %s is supported", c->file.path,
                       key, v ? "true" : "false", c->arch->model_type,
                       want ? "true" : "false");
    return st;
}

/* ---- what all have -----------------------------------------------------------------
 */

/* Sizes. Members of *c that are set before are this kind's defaults. */
static enum status base(struct hf_config *c, struct err *err)
{
    double partial = c->partial > 0 ? c->partial : 1.0;
    enum status st;

    if ((st = number(c, "num_hidden_layers", 1, MAX_LAYERS, &c->n_layers, err)) ||
        (st = number(c, "hidden_size", 1, MAX_WIDTH, &c->n_embd, err)) ||
        (st = number(c, "num_attention_heads", 1, MAX_HEADS, &c->n_heads, err)) ||
        (st = number(c, "max_position_embeddings", 1, MAX_CONTEXT, &c->n_ctx, err)))
        return st;
    if (!c->n_kv_heads)
        c->n_kv_heads = c->n_heads;
    if (!c->head_dim)
        c->head_dim = c->n_embd / c->n_heads;
    if ((st = number(c, "num_key_value_heads", 1, MAX_HEADS, &c->n_kv_heads, err)) ||
        (st = number(c, "head_dim", 1, MAX_HEAD_DIM, &c->head_dim, err)) ||
        (st = json_get_real(&c->file, c->o, "partial_rotary_factor", 0.001, 1.0,
                            &partial, err)))
        return st;
    c->n_rot = (int64_t)(partial * (double)c->head_dim);
    hf_put_u32(c, "block_count", c->n_layers);
    hf_put_u32(c, "context_length", c->n_ctx);
    hf_put_u32(c, "embedding_length", c->n_embd);
    hf_put_u32(c, "attention.head_count", c->n_heads);
    hf_put_u32(c, "attention.head_count_kv", c->n_kv_heads);
    hf_put_u32(c, "attention.key_length", c->head_dim);
    hf_put_u32(c, "attention.value_length", c->head_dim);
    hf_put_u32(c, "rope.dimension_count", c->n_rot);
    return ST_OK;
}

static enum status put_ff(struct hf_config *c, int64_t missing, struct err *err)
{
    return put_number(c, "intermediate_size", "feed_forward_length", 1, MAX_WIDTH,
                      missing, err);
}

static enum status put_rms_eps(struct hf_config *c, double missing, struct err *err)
{
    return put_real(c, "rms_norm_eps", "attention.layer_norm_rms_epsilon", 0.0, 1.0,
                    missing, err);
}

/* A window that every layer has. */
static enum status put_window(struct hf_config *c, struct err *err)
{
    int64_t window = 0;
    const enum status st =
        json_get_int(&c->file, c->o, "sliding_window", 0, MAX_CONTEXT, &window, err);

    if (!st && window > 0 && window < c->n_ctx)
        hf_put_u32(c, "attention.sliding_window", window);
    return st;
}

/* The experts of models that choose n_used of them for each token. */
static enum status put_experts(struct hf_config *c, const char *count, struct err *err)
{
    const enum status st = number(c, count, 1, MAX_EXPERTS, &c->n_experts, err);

    if (st)
        return st;
    hf_put_u32(c, "expert_count", c->n_experts);
    return put_number(c, "num_experts_per_tok", "expert_used_count", 1, c->n_experts, 0,
                      err);
}

/* ---- kinds of model ----------------------------------------------------------------
 */

static enum status llama(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = must_be(c, "hidden_act", "silu", err)) || (st = base(c, err)) ||
        (st = put_ff(c, 0, err)) || (st = put_rms_eps(c, 1e-6, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

static enum status mistral(struct hf_config *c, struct err *err)
{
    const enum status st = llama(c, err);

    return st ? st : put_window(c, err);
}

static enum status mixtral(struct hf_config *c, struct err *err)
{
    const enum status st = mistral(c, err);

    return st ? st : put_experts(c, "num_local_experts", err);
}

static enum status qwen(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = must_be(c, "hidden_act", "silu", err)) ||
        (st = must_be_bool(c, "use_sliding_window", false, err)) ||
        (st = base(c, err)) || (st = put_rms_eps(c, 1e-6, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

static enum status qwen_dense(struct hf_config *c, struct err *err)
{
    const enum status st = qwen(c, err);

    return st ? st : put_ff(c, 0, err);
}

/* Every layer has experts, or GGUF's names could not tell. */
static enum status qwen_moe(struct hf_config *c, struct err *err)
{
    int64_t step = 1;
    enum status st = qwen(c, err);

    if (!st)
        st = json_get_int(&c->file, c->o, "decoder_sparse_step", 1, 1, &step, err);
    if (!st && json_array_size(json_member(c->o, "mlp_only_layers")))
        st = err_set(err, ST_UNSUPPORTED,
                     "%s: mlp_only_layers names layers without experts, which is not "
                     "supported",
                     c->file.path);
    if (!st)
        st = put_experts(c, "num_experts", err);
    if (!st)
        st = put_ff(c, 0, err);
    if (!st)
        st = put_number(c, "moe_intermediate_size", "expert_feed_forward_length", 1,
                        MAX_WIDTH, 0, err);
    return st;
}

static enum status qwen2_moe(struct hf_config *c, struct err *err)
{
    enum status st = must_be_bool(c, "norm_topk_prob", false, err);

    if (!st)
        st = qwen_moe(c, err);
    if (!st)
        st = put_number(c, "shared_expert_intermediate_size",
                        "expert_shared_feed_forward_length", 1, MAX_WIDTH, 0, err);
    return st;
}

static enum status qwen3_moe(struct hf_config *c, struct err *err)
{
    const enum status st = must_be_bool(c, "norm_topk_prob", true, err);

    return st ? st : qwen_moe(c, err);
}

/* Scores are divided by the root of query_pre_attn_scalar, which is the head's size in
 * all sizes of a family but the largest. */
static enum status put_query_scale(struct hf_config *c, struct err *err)
{
    double scalar = (double)c->head_dim;
    const enum status st = json_get_real(&c->file, c->o, "query_pre_attn_scalar", 1.0,
                                         65536.0, &scalar, err);

    if (!st && scalar != (double)c->head_dim) /* exact: both are whole numbers */
        hf_put_f32(c, "attention.scale", 1.0 / sqrt(scalar));
    return st;
}

static enum status gemma(struct hf_config *c, int64_t window, struct err *err)
{
    enum status st;

    c->head_dim = 256;
    if ((st = must_be(c, "hidden_activation", "gelu_pytorch_tanh", err)) ||
        (st = base(c, err)) || (st = put_ff(c, 0, err)) ||
        (st = put_rms_eps(c, 1e-6, err)) || (st = put_query_scale(c, err)))
        return st;
    return put_number(c, "sliding_window", "attention.sliding_window", 1, MAX_CONTEXT,
                      window, err);
}

static enum status gemma2(struct hf_config *c, struct err *err)
{
    enum status st;

    c->n_ctx = 8192;
    if ((st = gemma(c, 4096, err)) ||
        (st = put_real(c, "attn_logit_softcapping", "attn_logit_softcapping", 0.0, 1e6,
                       50.0, err)) ||
        (st = put_real(c, "final_logit_softcapping", "final_logit_softcapping", 0.0,
                       1e6, 30.0, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

static enum status gemma3(struct hf_config *c, struct err *err)
{
    double local = 10000.0;
    int64_t pattern = 6;
    enum status st;

    c->n_ctx = 131072;
    c->n_heads = 8;
    c->n_kv_heads = 4;
    if ((st = json_get_int(&c->file, c->o, "sliding_window_pattern", 6, 6, &pattern,
                           err)) ||
        (st = json_get_real(&c->file, c->o, "rope_local_base_freq", 1.0, 1e15, &local,
                            err)) ||
        (st = gemma(c, 4096, err)))
        return st;
    if (local != 10000.0)
        hf_put_f32(c, "rope.freq_base_swa", local);
    return hf_rope(c, 1000000.0, err);
}

static enum status phi2(struct hf_config *c, struct err *err)
{
    enum status st;

    if ((st = must_be(c, "hidden_act", "gelu_new", err)) ||
        (st = must_be_bool(c, "qk_layernorm", false, err)))
        return st;
    c->partial = 0.5;
    if ((st = base(c, err)) || (st = put_ff(c, 4 * c->n_embd, err)) ||
        (st = put_real(c, "layer_norm_eps", "attention.layer_norm_epsilon", 0.0, 1.0,
                       1e-5, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

static enum status phi3(struct hf_config *c, struct err *err)
{
    int64_t before = 0;
    enum status st;

    if ((st = must_be(c, "hidden_act", "silu", err)) || (st = base(c, err)) ||
        (st = put_ff(c, 0, err)) || (st = put_rms_eps(c, 1e-5, err)) ||
        (st = put_window(c, err)) ||
        (st = json_get_int(&c->file, c->o, "original_max_position_embeddings", 1,
                           MAX_CONTEXT, &before, err)))
        return st;
    hf_put_u32(c, "rope.scaling.original_context_length", before ? before : c->n_ctx);
    return hf_rope(c, 10000.0, err);
}

static enum status stablelm(struct hf_config *c, struct err *err)
{
    bool parallel = false;
    enum status st;

    c->partial = 0.25;
    if ((st = must_be(c, "hidden_act", "silu", err)) || (st = base(c, err)) ||
        (st = put_ff(c, 0, err)) ||
        (st = json_get_bool(&c->file, c->o, "use_parallel_residual", &parallel, err)) ||
        (st = put_real(c, json_member(c->o, "norm_eps") ? "norm_eps" : "layer_norm_eps",
                       "attention.layer_norm_epsilon", 0.0, 1.0, 1e-5, err)))
        return st;
    hf_put_bool(c, "use_parallel_residual", parallel);
    return hf_rope(c, 10000.0, err);
}

static enum status glm(struct hf_config *c, struct err *err)
{
    enum status st;

    c->partial = 0.5;
    if ((st = must_be(c, "hidden_act", "silu", err)) || (st = base(c, err)) ||
        (st = put_ff(c, 0, err)) || (st = put_rms_eps(c, 1e-5, err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

/* THUDM's own format, with its own words. */
static enum status chatglm(struct hf_config *c, struct err *err)
{
    double ratio = 1.0;
    int64_t ff = 0;
    enum status st;

    if ((st = must_be_bool(c, "rmsnorm", true, err)) ||
        (st = must_be_bool(c, "original_rope", true, err)) ||
        (st = number(c, "num_layers", 1, MAX_LAYERS, &c->n_layers, err)) ||
        (st = number(c, "seq_length", 1, MAX_CONTEXT, &c->n_ctx, err)) ||
        (st = number(c, "kv_channels", 2, MAX_HEAD_DIM, &c->head_dim, err)) ||
        (st = number(c, "multi_query_group_num", 1, MAX_HEADS, &c->n_kv_heads, err)) ||
        (st = number(c, "ffn_hidden_size", 1, MAX_WIDTH, &ff, err)) ||
        (st = json_get_real(&c->file, c->o, "rope_ratio", 1e-3, 1e9, &ratio, err)))
        return st;
    c->partial = 0.5;
    if ((st = base(c, err)) ||
        (st = put_real(c, "layernorm_epsilon", "attention.layer_norm_rms_epsilon", 0.0,
                       1.0, 1e-5, err)))
        return st;
    hf_put_u32(c, "feed_forward_length", ff);
    return hf_rope(c, 10000.0 * ratio, err);
}

/* ---- the table ---------------------------------------------------------------------
 */

static const struct hf_arch archs[] = {
    {"llama", "llama", {hf_names_llama, hf_names_common}, llama},
    {"mistral", "llama", {hf_names_llama, hf_names_common}, mistral},
    {"mixtral", "llama", {hf_names_llama, hf_names_mixtral, hf_names_common}, mixtral},
    {"qwen2", "qwen2", {hf_names_common}, qwen_dense},
    {"qwen2_moe", "qwen2moe", {hf_names_moe, hf_names_common}, qwen2_moe},
    {"qwen3", "qwen3", {hf_names_common}, qwen_dense},
    {"qwen3_moe", "qwen3moe", {hf_names_moe, hf_names_common}, qwen3_moe},
    {"gemma2", "gemma2", {hf_names_gemma, hf_names_common}, gemma2},
    {"gemma3_text", "gemma3", {hf_names_gemma, hf_names_common}, gemma3},
    {"gemma3", "gemma3", {hf_names_gemma, hf_names_common}, gemma3},
    {"phi", "phi2", {hf_names_phi2, hf_names_common}, phi2},
    {"phi3", "phi3", {hf_names_fused, hf_names_common}, phi3},
    {"stablelm", "stablelm", {hf_names_stablelm, hf_names_common}, stablelm},
    {"glm", "chatglm", {hf_names_fused, hf_names_common}, glm},
    {"glm4", "glm4", {hf_names_glm4, hf_names_fused, hf_names_common}, glm},
    {"chatglm", "chatglm", {hf_names_chatglm}, chatglm},
};
#define N_ARCHS (sizeof archs / sizeof archs[0])

static enum status find_arch(struct hf_config *c, struct err *err)
{
    const char *type = json_text(json_member(c->file.root, "model_type"));
    char known[240] = "", shown[48];
    size_t used = 0;

    for (size_t i = 0; i < N_ARCHS; i++) {
        if (type && !strcmp(type, archs[i].model_type)) {
            c->arch = &archs[i];
            return ST_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                 i ? ", " : "", archs[i].model_type);
    }
    if (!type)
        return err_set(err, ST_INPUT, "%s has no model_type; is it a language model's?",
                       c->file.path);
    return err_set(
        err, ST_UNSUPPORTED, "%s: model_type '%s' is not supported; supported are: %s",
        c->file.path, utf8_printable(shown, sizeof shown, type, strlen(type)), known);
}

/* Weights that somebody has quantised in a way of their own. */
static enum status check_plain(const struct hf_config *c, struct err *err)
{
    const json_t *how = json_member(c->file.root, "quantization_config");
    const char *method = json_text(json_member(how, "quant_method"));
    char shown[32];

    if (!how)
        return ST_OK;
    return err_set(
        err, ST_UNSUPPORTED,
        "%s: the weights are quantised already (quantization_config: %s); use the "
        "model's F16 or BF16 folder, or a GGUF file",
        c->file.path,
        method ? utf8_printable(shown, sizeof shown, method, strlen(method))
               : "unknown");
}

/* The last part of the folder's path, for general.name. */
static void put_name(struct gguf_kvs *kvs, const char *dir)
{
    char name[128];
    size_t end = strlen(dir);

    while (end > 1 && dir[end - 1] == '/')
        end--;
    size_t begin = end;

    while (begin > 0 && dir[begin - 1] != '/')
        begin--;
    utf8_printable(name, sizeof name, dir + begin, end - begin);
    gguf_kv_str(kvs, "general.name", name);
}

enum status hf_config_load(struct hf_config *c, const char *dir, struct gguf_kvs *kvs,
                           struct err *err)
{
    enum status st;

    *c = (struct hf_config){.kvs = kvs, .tied = false};
    st = jsonfile_load(&c->file, dir, "config.json", MAX_CONFIG, err);
    if (!st)
        st = find_arch(c, err);
    if (!st)
        st = check_plain(c, err);
    if (st)
        return st;
    c->o = json_member(c->file.root, "text_config");
    if (!json_is_object(c->o))
        c->o = c->file.root;
    gguf_kv_str(kvs, "general.architecture", c->arch->gguf);
    gguf_kv_str(kvs, "general.type", "model");
    put_name(kvs, dir);
    st = json_get_bool(&c->file,
                       json_member(c->o, "tie_word_embeddings") ? c->o : c->file.root,
                       "tie_word_embeddings", &c->tied, err);
    return st ? st : c->arch->config(c, err);
}

void hf_config_free(struct hf_config *c)
{
    for (int i = 0; i < HF_MAX_VECTORS; i++)
        free(c->vectors[i].v);
    jsonfile_free(&c->file);
}
