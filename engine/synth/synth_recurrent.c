/* SPDX-License-Identifier: MIT
 *
 * synth_recurrent.c - layers with a recurrent part: which they are, their sizes, their
 * keys
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/synth/synth_parts.h"

bool synth_recurrence(const struct arch *arch, enum recurrence *kind)
{
    bool has = false;

    for (const struct tensor_rule *r = arch->layer; r->name; r++) {
        const size_t field = r->part[0].field;

        if (r->when != WHEN_RECURRENT)
            continue;
        if (!has)
            *kind = RECUR_SHORT_CONV;
        has = true;
        if (field == offsetof(struct layer, rec.beta))
            *kind = RECUR_DELTA;
        else if (field == offsetof(struct layer, rec.skip))
            *kind = RECUR_SSM;
    }
    return has;
}

struct recur_sizes synth_recur_sizes(const struct synth_shape *s,
                                     const struct arch *arch)
{
    enum recurrence kind = RECUR_SSM;

    if (!synth_recurrence(arch, &kind))
        return (struct recur_sizes){.kind = RECUR_DELTA};
    if (kind == RECUR_SHORT_CONV)
        return (struct recur_sizes){.kind = kind,
                                    .n_heads = 1,
                                    .value_dim = (int)s->n_embd,
                                    .n_conv = (int)s->n_conv};
    if (kind == RECUR_SSM)
        return (struct recur_sizes){.kind = kind,
                                    .n_groups = (int)s->n_ssm_groups,
                                    .n_heads = (int)s->n_ssm_heads,
                                    .key_dim = (int)s->ssm_state_dim,
                                    .value_dim = (int)s->ssm_head_dim,
                                    .n_conv = (int)s->n_conv};
    return (struct recur_sizes){.kind = kind,
                                .n_groups = (int)s->n_delta_k_heads,
                                .n_heads = (int)s->n_delta_v_heads,
                                .key_dim = (int)s->delta_head_dim,
                                .value_dim = (int)s->delta_head_dim,
                                .n_conv = (int)s->n_delta_conv};
}

bool synth_lists(const struct synth_shape *s, uint32_t layer)
{
    char *end;

    for (const char *at = s->attention_layers; *at; at = end) {
        const unsigned long n = strtoul(at, &end, 10);

        if (end == at)
            break;
        if (n == layer)
            return true;
    }
    return false;
}

/* The last layer that attends. */
static int last_attending(const struct synth_shape *s)
{
    int l = (int)s->n_layers - 1;

    while (l > 0 && !synth_layer(s, l).attends)
        l--;
    return l;
}

struct layer synth_layer(const struct synth_shape *s, int layer)
{
    if (layer >= (int)s->n_layers) /* predicts further tokens */
        return synth_layer(s, last_attending(s));
    const uint32_t interval = s->full_attention_interval, l = (uint32_t)layer;
    const bool alternate = interval || s->attention_layers[0];
    const bool attends = interval ? (l + 1) % interval == 0 : synth_lists(s, l);

    const bool dense = l < s->n_dense;

    const bool latent = s->kv_rank > 0; /* one KV head, of a latent and what rotates */

    struct layer y = {.n_ff = (int)(dense ? s->n_ff_dense : s->n_ff),
                      .n_kv_heads = latent ? 1 : (int)s->n_kv_heads,
                      .head_dim = (int)(latent ? s->kv_rank + s->n_rot : s->head_dim),
                      .routed = s->n_experts > 0 && !dense,
                      .attends = !alternate || attends,
                      .recurrent = alternate ? !attends : s->n_ssm_heads > 0};

    synth_set_kind(s, layer, &y);
    return y;
}

void synth_put_array(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                     enum gguf_type type, uint32_t n)
{
    char full[96];

    snprintf(full, sizeof full, "%s.%s", s->arch, key);
    gguf_kv_array(k, full, type, n);
}

void synth_put_kv_heads(struct gguf_kvs *k, const struct synth_shape *s)
{
    if (!s->attention_layers[0]) {
        synth_put_u32(k, s, "attention.head_count_kv", s->n_kv_heads);
        return;
    }
    synth_put_array(k, s, "attention.head_count_kv", GGUF_I32, s->n_layers);
    for (uint32_t l = 0; l < s->n_layers; l++)
        gguf_put_u32(&k->bytes, synth_lists(s, l) ? s->n_kv_heads : 0);
}

/* How the rotated pairs are shared among three kinds of positions, which other engines
 * want to know; for text they are all the same. */
static void put_sections(struct gguf_kvs *k, const struct synth_shape *s)
{
    const uint32_t n_pairs = (s->n_rot ? s->n_rot : s->head_dim) / 2;
    const uint32_t first = (n_pairs + 2) / 3, second = (n_pairs - first + 1) / 2;
    const uint32_t sections[] = {first, second, n_pairs - first - second, 0};

    synth_put_array(k, s, "rope.dimension_sections", GGUF_I32, 4);
    for (size_t i = 0; i < 4; i++)
        gguf_put_u32(&k->bytes, sections[i]);
}

void synth_put_recurrent(struct gguf_kvs *k, const struct synth_shape *s,
                         const struct recur_sizes *r)
{
    if (s->full_attention_interval)
        synth_put_u32(k, s, "full_attention_interval", s->full_attention_interval);
    if (r->kind == RECUR_SHORT_CONV) {
        synth_put_u32(k, s, "shortconv.l_cache", (uint32_t)r->n_conv);
        return;
    }
    synth_put_u32(k, s, "ssm.conv_kernel", (uint32_t)r->n_conv);
    synth_put_u32(k, s, "ssm.state_size", (uint32_t)r->key_dim);
    synth_put_u32(k, s, "ssm.group_count", (uint32_t)r->n_groups);
    synth_put_u32(k, s, "ssm.time_step_rank", (uint32_t)r->n_heads);
    synth_put_u32(k, s, "ssm.inner_size", (uint32_t)(r->n_heads * r->value_dim));
    if (r->kind == RECUR_DELTA)
        put_sections(k, s);
}
