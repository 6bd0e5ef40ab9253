/* SPDX-License-Identifier: MIT
 *
 * synth_kinds.c - models whose layers are of two kinds (Gemma 3n and 4): with a window
 * or without, with keys and values of their own or without; per-layer embeddings;
 * several streams a token
 */
#include <math.h>
#include <string.h>

#include "engine/synth/synth_parts.h"

/* What gates of a sparse layer must be above their mean, in standard deviations: 95 %
 * of normal ones are not. */
#define SPARSITY 1.6448536F

static bool has_window(const struct synth_shape *s, uint32_t layer)
{
    return s->window_interval && (layer + 1) % s->window_interval != 0;
}

static bool shares(const struct synth_shape *s, uint32_t layer)
{
    return layer >= s->n_layers - s->n_kv_shared;
}

void synth_set_kind(const struct synth_shape *s, int layer, struct layer *y)
{
    const uint32_t l = (uint32_t)layer;

    y->shares = shares(s, l);
    if (y->shares && s->n_ff_kv_shared)
        y->n_ff = (int)s->n_ff_kv_shared;
    if (!has_window(s, l))
        return;
    y->window = (int)s->window;
    if (s->n_window_kv_heads)
        y->n_kv_heads = (int)s->n_window_kv_heads;
    if (s->window_head_dim)
        y->head_dim = (int)s->window_head_dim;
}

const struct tensor_rule *synth_next_end(const struct model *m,
                                         const struct tensor_rule *r)
{
    for (r = r ? r + 1 : m->arch->ends; r->name; r++)
        if ((r->when == WHEN_PER_LAYER && m->n_per_layer) ||
            r->slices == DIM_STREAMS_MORE)
            return r;
    return NULL;
}

bool synth_is_plain(const char *name)
{
    return strstr(name, "altup_") || strstr(name, "laurel_") ||
           strstr(name, "per_layer_model_proj");
}

/* ---- keys ------------------------------------------------------------------------ */

/* A number of each layer: what synth_layer() has at `field`. */
static void put_layers(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                       size_t field)
{
    synth_put_array(k, s, key, GGUF_I32, s->n_layers);
    for (uint32_t l = 0; l < s->n_layers; l++) {
        const struct layer y = synth_layer(s, (int)l);
        int v;

        memcpy(&v, (const char *)&y + field, sizeof v);
        gguf_put_u32(&k->bytes, (uint32_t)v);
    }
}

static void put_windows(struct gguf_kvs *k, const struct synth_shape *s)
{
    const uint32_t dim = s->window_head_dim ? s->window_head_dim : s->head_dim;

    synth_put_array(k, s, "attention.sliding_window_pattern", GGUF_BOOL, s->n_layers);
    for (uint32_t l = 0; l < s->n_layers; l++) {
        const char has = has_window(s, l);

        gguf_put(&k->bytes, &has, 1);
    }
    synth_put_u32(k, s, "attention.key_length_swa", dim);
    synth_put_u32(k, s, "attention.value_length_swa", dim);
    synth_put_u32(k, s, "rope.dimension_count_swa", dim);
    synth_put_f32(k, s, "rope.freq_base_swa", 10000.0F);
}

static void put_streams(struct gguf_kvs *k, const struct synth_shape *s)
{
    synth_put_u32(k, s, "altup.num_inputs", s->n_streams);
    synth_put_u32(k, s, "altup.active_idx", 0);
    synth_put_array(k, s, "activation_sparsity_scale", GGUF_F32, s->n_layers);
    for (uint32_t l = 0; l < s->n_layers; l++)
        gguf_put_f32(&k->bytes, l < s->n_sparse ? SPARSITY : -INFINITY);
}

void synth_put_kinds(struct gguf_kvs *k, const struct synth_shape *s)
{
    if (s->n_ff_kv_shared)
        put_layers(k, s, "feed_forward_length", offsetof(struct layer, n_ff));
    else
        synth_put_u32(k, s, "feed_forward_length",
                      s->n_ff_shared ? s->n_ff_shared : s->n_ff);
    if (s->n_window_kv_heads)
        put_layers(k, s, "attention.head_count_kv", offsetof(struct layer, n_kv_heads));
    else
        synth_put_u32(k, s, "attention.head_count_kv", s->n_kv_heads);
    put_windows(k, s);
    synth_put_u32(k, s, "attention.shared_kv_layers", s->n_kv_shared);
    synth_put_u32(k, s, "embedding_length_per_layer_input", s->n_per_layer);
    synth_put_f32(k, s, "final_logit_softcapping", 30.0F);
    if (s->n_streams)
        put_streams(k, s);
}

/* ---- checks ---------------------------------------------------------------------- */

static bool has_streams(const struct arch *arch)
{
    for (const struct tensor_rule *r = arch->ends; r->name; r++)
        if (r->slices == DIM_STREAMS_MORE)
            return true;
    return false;
}

/* All layers that share keys and values need earlier ones of their kind. */
static enum status check_shared(const struct synth_shape *s, struct err *err)
{
    const uint32_t own = s->n_layers - s->n_kv_shared;

    if (s->n_kv_shared == 0 || own >= s->window_interval)
        return ST_OK;
    return err_set(
        err, ST_USAGE,
        "shape %s: the first %u layers, which share no keys and values, must "
        "be as many as window_interval %u, at least",
        s->name, own, s->window_interval);
}

enum status synth_check_kinds(const struct synth_shape *s, struct err *err)
{
    const struct arch *arch = arch_by_name(s->arch, strlen(s->arch));
    const bool has = arch->layers_differ, streams = has_streams(arch);
    const uint32_t width = has ? 1u << 16 : 0, heads = has ? s->n_heads : 0;

    if (synth_check_range(s, "window_interval", s->window_interval, has,
                          has ? s->n_layers : 0, err) ||
        (has && synth_check_range(s, "window", s->window, 1, 1u << 28, err)) ||
        synth_check_range(s, "n_window_kv_heads", s->n_window_kv_heads, 0, heads,
                          err) ||
        synth_check_range(s, "window_head_dim", s->window_head_dim, 0,
                          has ? s->head_dim : 0, err) ||
        synth_check_range(s, "n_kv_shared", s->n_kv_shared, 0,
                          has ? s->n_layers - 1 : 0, err) ||
        synth_check_range(s, "n_ff_kv_shared", s->n_ff_kv_shared, 0,
                          has && s->n_experts == 0 ? 1u << 20 : 0, err) ||
        synth_check_range(s, "n_rope_turning", s->n_rope_turning, 0,
                          has && s->rope_freqs ? s->head_dim / 2 : 0, err) ||
        synth_check_range(s, "n_per_layer", s->n_per_layer, streams, width, err) ||
        synth_check_range(s, "n_streams", s->n_streams, streams ? 2 : 0,
                          streams ? MODEL_MAX_STREAMS : 0, err) ||
        synth_check_range(s, "n_low", s->n_low, streams, streams ? 1u << 16 : 0, err) ||
        synth_check_range(s, "n_sparse", s->n_sparse, 0, streams ? s->n_layers : 0,
                          err))
        return ST_USAGE;
    if (s->window_head_dim % 2 ||
        (s->n_window_kv_heads && s->n_heads % s->n_window_kv_heads))
        return err_set(err, ST_USAGE,
                       "shape %s: window_head_dim %u must be even, and n_heads %u a "
                       "multiple of n_window_kv_heads %u",
                       s->name, s->window_head_dim, s->n_heads, s->n_window_kv_heads);
    return check_shared(s, err);
}
