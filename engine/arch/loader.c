/* SPDX-License-Identifier: MIT
 *
 * loader.c - hyperparameters: single values, and those that all architectures have
 */
#include "engine/arch/loader_impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "engine/kv/kvcache.h"

enum status loader_fail(struct loader *l, enum status code, const char *fmt, ...)
{
    char text[900];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(l->err, code, "%s: %s", gguf_path(l->g), text);
}

/* ---- single values --------------------------------------------------------------- */

const struct gguf_kv *loader_key(const struct loader *l, const char *key, char *full,
                                 size_t cap)
{
    snprintf(full, cap, "%s.%s", l->prefix ? l->prefix : l->m->arch->name, key);
    const struct gguf_kv *kv = gguf_kv_find(l->g, full);

    if (kv && l->asked)
        l->asked[kv - gguf_kv_at(l->g, 0)] = 1;
    return kv;
}

/* An array of equal elements counts as its value; elements that are 0 where layers may
 * lack that part do not count; where layers differ the largest does. */
static enum status one_value(struct loader *l, const struct gguf_kv *kv,
                             const char *full, uint64_t *value)
{
    uint64_t other;

    if (kv->n == 0 || !gguf_elem_u64(kv, 0, value))
        return loader_fail(l, ST_INPUT, "%s is not a whole number", full);
    for (uint64_t i = 1; i < kv->n; i++) {
        if (!gguf_elem_u64(kv, i, &other))
            return loader_fail(l, ST_INPUT, "%s is not a whole number", full);
        if (l->m->arch->may_lack_parts && (other == 0 || *value == 0))
            *value = other ? other : *value;
        else if (l->m->arch->layers_differ)
            *value = other > *value ? other : *value;
        else if (other != *value)
            return loader_fail(l, ST_UNSUPPORTED,
                               "%s differs between layers, which is not supported",
                               full);
    }
    return ST_OK;
}

enum status loader_int_or(struct loader *l, const char *key, int min, int max,
                          int missing, int *out)
{
    char full[96];
    const struct gguf_kv *kv = loader_key(l, key, full, sizeof full);
    uint64_t value;
    enum status st;

    if (!kv) {
        *out = missing;
        return ST_OK;
    }
    st = one_value(l, kv, full, &value);
    if (st)
        return st;
    if (value > (uint64_t)max || (int)value < min)
        return loader_fail(l, ST_INPUT, "%s is %llu, and %d to %d is possible", full,
                           (unsigned long long)value, min, max);
    *out = (int)value;
    return ST_OK;
}

enum status loader_int(struct loader *l, const char *key, int min, int max, int *out)
{
    char full[96];

    if (!loader_key(l, key, full, sizeof full))
        return loader_fail(l, ST_INPUT, "the metadata lack %s", full);
    return loader_int_or(l, key, min, max, 0, out);
}

enum status loader_real_or(struct loader *l, const char *key, double min, double max,
                           double missing, double *out)
{
    char full[96];
    double value;

    if (!loader_key(l, key, full, sizeof full)) {
        *out = missing;
        return ST_OK;
    }
    if (!gguf_get_f64(l->g, full, &value))
        return loader_fail(l, ST_INPUT, "%s is not a number", full);
    if (!(value >= min && value <= max))
        return loader_fail(l, ST_INPUT, "%s is %g, and %g to %g is possible", full,
                           value, min, max);
    *out = value;
    return ST_OK;
}

enum status loader_float_or(struct loader *l, const char *key, double min, double max,
                            double missing, float *out)
{
    double value = missing;
    const enum status st = loader_real_or(l, key, min, max, missing, &value);

    if (!st)
        *out = (float)value;
    return st;
}

enum status loader_bool_or(struct loader *l, const char *key, bool missing, bool *out)
{
    char full[96];

    *out = missing;
    if (!loader_key(l, key, full, sizeof full) || gguf_get_bool(l->g, full, out))
        return ST_OK;
    return loader_fail(l, ST_INPUT, "%s is not true or false", full);
}

enum status loader_real_of(struct loader *l, const char *key, int layer, float *out)
{
    const struct gguf_kv *kv = gguf_kv_find(l->g, key);
    double value;

    if (!kv)
        return loader_fail(l, ST_INPUT, "the metadata lack %s", key);
    if ((uint64_t)layer >= kv->n || !gguf_elem_f64(kv, (uint64_t)layer, &value) ||
        !(fabs(value) <= 1e6))
        return loader_fail(l, ST_INPUT, "%s has no number up to 1e6 for layer %d", key,
                           layer);
    *out = (float)value;
    return ST_OK;
}

bool loader_str(const struct loader *l, const char *key, struct gguf_str *out)
{
    char full[96];

    return loader_key(l, key, full, sizeof full) && gguf_get_str(l->g, full, out);
}

/* ---- what all architectures have ------------------------------------------------- */

static enum status load_attention_sizes(struct loader *l, struct model *m)
{
    int value_dim;
    enum status st = loader_int(l, "attention.head_count", 1, MAX_HEADS, &m->n_heads);

    if (!st)
        st = loader_int_or(l, "attention.head_count_kv", 1, MAX_HEADS, m->n_heads,
                           &m->n_kv_heads);
    if (!st)
        st = loader_int_or(l, "attention.key_length", 1, KVCACHE_MAX_HEAD_DIM,
                           m->n_embd / m->n_heads, &m->head_dim);
    if (!st)
        st = loader_int_or(l, "attention.value_length", 1, KVCACHE_MAX_HEAD_DIM,
                           m->head_dim, &value_dim);
    if (!st)
        st = loader_int_or(l, "rope.dimension_count", 2, KVCACHE_MAX_HEAD_DIM,
                           m->head_dim, &m->n_rot);
    if (st)
        return st;
    if (m->n_heads % m->n_kv_heads)
        return loader_fail(l, ST_INPUT,
                           "%d heads cannot share %d key-value heads evenly",
                           m->n_heads, m->n_kv_heads);
    if (m->head_dim == 0 || m->head_dim > KVCACHE_MAX_HEAD_DIM)
        return loader_fail(l, ST_UNSUPPORTED,
                           "heads of %d elements are not supported, only 1 to %d",
                           m->head_dim, KVCACHE_MAX_HEAD_DIM);
    if (value_dim != m->head_dim)
        return loader_fail(l, ST_UNSUPPORTED,
                           "keys of %d and values of %d elements are not supported, "
                           "only equal lengths",
                           m->head_dim, value_dim);
    if (m->n_rot % 2 || m->n_rot > m->head_dim)
        return loader_fail(l, ST_INPUT,
                           "%s.rope.dimension_count is %d, and an even number up to "
                           "the head size %d is possible",
                           m->arch->name, m->n_rot, m->head_dim);
    return ST_OK;
}

/* A model whose layers may lack attention may have none at all. */
static enum status load_any_attention_sizes(struct loader *l, struct model *m)
{
    int n_heads;
    const enum status st =
        loader_int_or(l, "attention.head_count", 0, MAX_HEADS, 0, &n_heads);

    if (st || n_heads || !m->arch->may_lack_parts)
        return st                ? st
               : m->arch->latent ? loader_latent_sizes(l, m)
                                 : load_attention_sizes(l, m);
    m->n_heads = m->n_kv_heads = 1; /* of no layer */
    m->head_dim = m->n_rot = 2;
    return ST_OK;
}

/* Whether it is an encoder, and how a text becomes one vector. */
static enum status load_kind(struct loader *l, struct model *m)
{
    int pooling;
    bool causal;
    enum status st = loader_bool_or(l, "attention.causal", !m->arch->encodes, &causal);

    if (!st)
        st = loader_int_or(l, "pooling_type", -1, SLM_POOLING_RANK, -1, &pooling);
    if (st)
        return st;
    if (causal && m->arch->encodes)
        return loader_fail(l, ST_UNSUPPORTED,
                           "%s.attention.causal is true, and %s models are supported "
                           "as encoders only",
                           m->arch->name, m->arch->name);
    m->is_encoder = !causal;
    m->has_pooling = pooling >= 0;
    m->pooling = pooling < 0 ? SLM_POOLING_NONE : (enum slm_pooling)pooling;
    return ST_OK;
}

enum status loader_sizes(struct loader *l, struct model *m)
{
    const char *eps = m->arch->norm == NORM_RMS ? "attention.layer_norm_rms_epsilon"
                                                : "attention.layer_norm_epsilon";
    enum status st = loader_int(l, "block_count", 1, MAX_LAYERS, &m->n_layers);

    if (!st)
        st = loader_int(l, "embedding_length", 1, MAX_WIDTH, &m->n_embd);
    if (!st)
        st = loader_int(l, "feed_forward_length", m->arch->may_lack_parts ? 0 : 1,
                        MAX_WIDTH, &m->n_ff);
    if (!st)
        st = loader_int(l, "context_length", 1, MAX_CONTEXT, &m->n_ctx_train);
    if (!st)
        st = load_any_attention_sizes(l, m);
    if (!st)
        st = loader_float_or(l, eps, 0.0, 1.0, 1e-5, &m->norm_eps);
    if (!st)
        st = load_kind(l, m);
    if (st)
        return st;
    m->n_ropes = 1;
    m->n_dense[0] = m->n_dense[1] = m->n_embd;
    m->embd_scale = m->residual_scale = m->logit_scale = 1.0f;
    m->expert_scale = m->router_scale = 1.0f;
    m->n_expert_groups = m->n_expert_groups_used = 1;
    m->attn_scale =
        1.0f /
        sqrtf((float)(m->latent.kv_rank ? m->latent.key_dim + m->n_rot : m->head_dim));
    m->layers = calloc((size_t)m->n_layers, sizeof *m->layers);
    if (!m->layers)
        return loader_fail(l, ST_NO_MEMORY, "no memory for %d layers", m->n_layers);
    for (int i = 0; i < m->n_layers; i++) {
        m->layers[i].attends = true;
        m->layers[i].n_kv_heads = m->n_kv_heads;
        m->layers[i].head_dim = m->head_dim;
        m->layers[i].n_ff = m->n_ff;
    }
    loader_number_layers(m);
    if (m->arch->pairs == PAIRS_NONE)
        loader_no_rope(m);
    return ST_OK;
}

enum status loader_scales(struct loader *l, struct model *m)
{
    float divisor = 1.0f;
    enum status st =
        loader_float_or(l, "embedding_scale", 1e-6, 1e6, 1.0, &m->embd_scale);

    if (!st)
        st = loader_float_or(l, "residual_scale", 1e-6, 1e6, 1.0, &m->residual_scale);
    if (!st)
        st = loader_float_or(l, "attention.scale", 1e-6, 1e6, (double)m->attn_scale,
                             &m->attn_scale);
    if (!st)
        st = loader_float_or(l, "logit_scale", 1e-6, 1e6, 1.0, &divisor);
    if (!st)
        m->logit_scale = 1.0f / divisor;
    return st;
}

enum status loader_token_types(struct loader *l, struct model *m)
{
    static const char key[] = "tokenizer.ggml.token_type_count";
    uint64_t n = 2;

    if (gguf_kv_find(l->g, key) && !gguf_get_u64(l->g, key, &n))
        return loader_fail(l, ST_INPUT, "%s is not a whole number", key);
    if (n < 1 || n > MAX_WIDTH)
        return loader_fail(l, ST_INPUT, "%s is %llu, and 1 to %d is possible", key,
                           (unsigned long long)n, MAX_WIDTH);
    m->n_types = (int)n;
    return ST_OK;
}

void loader_no_rope(struct model *m)
{
    m->n_ropes = 0;
    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].rope = ROPE_NONE;
}

/* ---- experts --------------------------------------------------------------------- */

enum status loader_experts(struct loader *l, struct model *m)
{
    enum status st = loader_int_or(l, "expert_count", 0, MAX_EXPERTS, 0, &m->n_experts);

    if (!st && m->n_experts)
        st = loader_int(l, "expert_used_count", 1, m->n_experts, &m->n_experts_used);
    if (!st && m->n_experts)
        st = loader_int_or(l, "expert_feed_forward_length", 1, MAX_WIDTH, m->n_ff,
                           &m->n_ff);
    for (int i = 0; !st && i < m->n_layers; i++) {
        m->layers[i].routed = m->n_experts > 0;
        m->layers[i].n_ff = m->n_ff;
    }
    return st;
}

enum status loader_only_experts(struct loader *l, struct model *m)
{
    const enum status st = loader_experts(l, m);

    if (!st && m->n_experts == 0)
        return loader_fail(l, ST_INPUT, "the metadata have no experts");
    return st;
}

enum status loader_shared_expert(struct loader *l, struct model *m)
{
    const int n_ff = m->n_ff;
    const enum status st = loader_only_experts(l, m);

    return st ? st
              : loader_int_or(l, "expert_shared_feed_forward_length", 1, MAX_WIDTH,
                              n_ff, &m->n_ff_shared);
}

enum status loader_maybe_shared_expert(struct loader *l, struct model *m)
{
    int n_shared;
    enum status st = loader_only_experts(l, m);

    if (!st)
        st = loader_int_or(l, "expert_shared_count", 0, MAX_EXPERTS, 0, &n_shared);
    if (!st)
        st = loader_int_or(l, "expert_shared_feed_forward_length", 0, MAX_WIDTH, 0,
                           &m->n_ff_shared);
    if (!st && m->n_ff_shared == 0 && (int64_t)n_shared * m->n_ff <= MAX_WIDTH)
        m->n_ff_shared = n_shared * m->n_ff;
    return st;
}

enum status loader_leading_dense(struct loader *l, struct model *m)
{
    int n_dense, n_ff = m->n_ff;
    enum status st =
        loader_int_or(l, "leading_dense_block_count", 0, m->n_layers, 0, &n_dense);

    if (!st)
        st = loader_int(l, "feed_forward_length", 1, MAX_WIDTH, &n_ff);
    for (int i = 0; !st && i < n_dense; i++) {
        m->layers[i].routed = false;
        m->layers[i].n_ff = n_ff;
    }
    return st;
}

/* expert_gating_func, as llama.cpp counts: 1 softmax, 2 sigmoid; 0 is not set. */
enum status loader_odds(struct loader *l, struct model *m, enum model_odds missing)
{
    bool divided = true;
    int func;
    enum status st = loader_int_or(l, "expert_gating_func", 0, 2, 0, &func);

    if (!st)
        st = loader_bool_or(l, "expert_weights_norm", true, &divided);
    if (!st)
        st =
            loader_float_or(l, "expert_weights_scale", 0.0, 1e6, 1.0, &m->expert_scale);
    if (!st)
        st = loader_int_or(l, "expert_group_count", 0, MODEL_MAX_EXPERT_GROUPS, 1,
                           &m->n_expert_groups);
    if (!st)
        st = loader_int_or(l, "expert_group_used_count", 0, m->n_expert_groups,
                           m->n_expert_groups, &m->n_expert_groups_used);
    if (st)
        return st;
    m->odds = func == 2 ? ODDS_SIGMOID : func == 1 ? ODDS_SOFTMAX : missing;
    m->shares_of_all = !divided;
    if (m->expert_scale == 0.0f)
        m->expert_scale = 1.0f;
    if (m->n_expert_groups < 2)
        m->n_expert_groups = m->n_expert_groups_used = 1;
    if (m->n_experts % m->n_expert_groups || m->n_expert_groups_used < 1 ||
        m->n_experts / m->n_expert_groups * m->n_expert_groups_used < m->n_experts_used)
        return loader_fail(l, ST_INPUT,
                           "%d of %d experts cannot be taken from %d of %d groups",
                           m->n_experts_used, m->n_experts, m->n_expert_groups_used,
                           m->n_expert_groups);
    return ST_OK;
}
