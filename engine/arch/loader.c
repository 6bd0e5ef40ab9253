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
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(l->err, code, "%s: %s", gguf_path(l->g), text);
}

/* ---- single values ---------------------------------------------------------- */

static const struct gguf_kv *find_key(const struct loader *l, const char *key,
                                      char *full, size_t cap)
{
    snprintf(full, cap, "%s.%s", l->m->arch->name, key);
    return gguf_kv_find(l->g, full);
}

/* An array of equal elements counts as its value. */
static enum status one_value(struct loader *l, const struct gguf_kv *kv,
                             const char *full, uint64_t *value)
{
    uint64_t other;

    if (kv->n == 0 || !gguf_elem_u64(kv, 0, value))
        return loader_fail(l, ST_INPUT, "%s is not a whole number", full);
    for (uint64_t i = 1; i < kv->n; i++)
        if (!gguf_elem_u64(kv, i, &other) || other != *value)
            return loader_fail(l, ST_UNSUPPORTED,
                               "%s differs between layers, which is not supported",
                               full);
    return ST_OK;
}

enum status loader_int_or(struct loader *l, const char *key, int min, int max,
                          int missing, int *out)
{
    char full[96];
    const struct gguf_kv *kv = find_key(l, key, full, sizeof full);
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

    if (!find_key(l, key, full, sizeof full))
        return loader_fail(l, ST_INPUT, "the metadata lack %s", full);
    return loader_int_or(l, key, min, max, 0, out);
}

enum status loader_real_or(struct loader *l, const char *key, double min, double max,
                           double missing, double *out)
{
    char full[96];
    double value;

    if (!find_key(l, key, full, sizeof full)) {
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
    if (!find_key(l, key, full, sizeof full) || gguf_get_bool(l->g, full, out))
        return ST_OK;
    return loader_fail(l, ST_INPUT, "%s is not true or false", full);
}

bool loader_str(const struct loader *l, const char *key, struct gguf_str *out)
{
    char full[96];

    return find_key(l, key, full, sizeof full) && gguf_get_str(l->g, full, out);
}

/* ---- what all architectures have ---------------------------------------------- */

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

enum status loader_sizes(struct loader *l, struct model *m)
{
    const char *eps = m->arch->norm == NORM_RMS ? "attention.layer_norm_rms_epsilon"
                                                : "attention.layer_norm_epsilon";
    enum status st = loader_int(l, "block_count", 1, MAX_LAYERS, &m->n_layers);

    if (!st)
        st = loader_int(l, "embedding_length", 1, MAX_WIDTH, &m->n_embd);
    if (!st)
        st = loader_int(l, "feed_forward_length", 1, MAX_WIDTH, &m->n_ff);
    if (!st)
        st = loader_int(l, "context_length", 1, MAX_CONTEXT, &m->n_ctx_train);
    if (!st)
        st = load_attention_sizes(l, m);
    if (!st)
        st = loader_float_or(l, eps, 0.0, 1.0, 1e-5, &m->norm_eps);
    if (st)
        return st;
    m->n_ropes = 1;
    m->embd_scale = 1.0f;
    m->attn_scale = 1.0f / sqrtf((float)m->head_dim);
    m->layers = calloc((size_t)m->n_layers, sizeof *m->layers);
    if (!m->layers)
        return loader_fail(l, ST_NO_MEMORY, "no memory for %d layers", m->n_layers);
    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].cached = i;
    return ST_OK;
}

enum status loader_experts(struct loader *l, struct model *m)
{
    enum status st = loader_int_or(l, "expert_count", 0, MAX_EXPERTS, 0, &m->n_experts);

    if (!st && m->n_experts)
        st = loader_int(l, "expert_used_count", 1, m->n_experts, &m->n_experts_used);
    if (!st && m->n_experts)
        st = loader_int_or(l, "expert_feed_forward_length", 1, MAX_WIDTH, m->n_ff,
                           &m->n_ff);
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

enum status loader_windows(struct loader *l, struct model *m, int missing, int period)
{
    int window;
    enum status st =
        loader_int_or(l, "attention.sliding_window", 0, MAX_CONTEXT, missing, &window);

    if (st || window == 0)
        return st;
    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].window = period == 1 || (i + 1) % period ? window : 0;
    /* In the cache, layers with a window are the last. */
    for (int i = 0, pass = 0; pass < 2; pass++)
        for (int k = 0; k < m->n_layers; k++)
            if ((m->layers[k].window > 0) == pass)
                m->layers[k].cached = i++;
    return st;
}
