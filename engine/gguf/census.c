/* SPDX-License-Identifier: MIT
 *
 * census.c - sums over the tensors of a file
 *
 * Sums cannot overflow: known bytes lie inside the file without overlap. Element
 * counts of unknown types are not bounded by anything, so they saturate.
 */
#include "engine/gguf/census.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    uint64_t sum;

    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static void count_type(struct census *c, const struct gguf_tensor *t)
{
    const uint32_t id = gguf_ggml_name(t->ggml_id) ? t->ggml_id : CENSUS_UNKNOWN_TYPES;
    int i = 0;

    while (i < c->n_types && c->types[i].ggml_id != id)
        i++;
    if (i == CENSUS_MAX_TYPES)
        return; /* more than all known types: cannot happen */
    if (i == c->n_types)
        c->types[c->n_types++] = (struct census_type){.ggml_id = id};
    c->types[i].n_tensors++;
    c->types[i].n_elems = add_saturating(c->types[i].n_elems, t->n_elems);
    c->types[i].bytes += t->bytes;
}

static int by_bytes(const void *a, const void *b)
{
    const struct census_type *s = a, *t = b;

    if (s->bytes != t->bytes)
        return s->bytes > t->bytes ? -1 : 1;
    return s->ggml_id < t->ggml_id ? -1 : s->ggml_id > t->ggml_id;
}

/* <architecture>.<key>, or 0. */
static uint64_t arch_u64(const struct gguf *g, const char *key)
{
    struct gguf_str arch;
    char name[128];
    uint64_t v = 0;

    if (!gguf_get_str(g, "general.architecture", &arch) || arch.len > 64)
        return 0;
    snprintf(name, sizeof name, "%.*s.%s", (int)arch.len, arch.data, key);
    gguf_get_u64(g, name, &v);
    return v;
}

static bool is_table(const char *name)
{
    static const char *const tables[] = {"token_embd.weight", "position_embd.weight",
                                         "token_types.weight",
                                         "per_layer_token_embd.weight"};

    for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++) {
        if (!strcmp(name, tables[i]))
            return true;
    }
    return false;
}

/* The matrices of all experts of a layer, or in older files of one expert. */
static bool is_experts(const char *name)
{
    static const char *const parts[] = {".ffn_gate.", ".ffn_up.", ".ffn_down."};

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        const char *at = strstr(name, parts[i]);

        if (at && strchr("0123456789", at[strlen(parts[i])]) &&
            at[strlen(parts[i])] != '\0')
            return true;
    }
    return strstr(name, "_exps.") != NULL;
}

/* Files of EmbeddingGemma lack the key. */
static bool is_encoder(const struct gguf *g)
{
    struct gguf_str arch;
    char name[128];
    bool causal;

    if (!gguf_get_str(g, "general.architecture", &arch) || arch.len > 64)
        return false;
    snprintf(name, sizeof name, "%.*s.attention.causal", (int)arch.len, arch.data);
    if (gguf_get_bool(g, name, &causal))
        return !causal;
    return arch.len == 15 && !memcmp(arch.data, "gemma-embedding", 15);
}

/* Layers from this one on predict further tokens ("nextn"): decoding does not read
 * them. UINT64_MAX: it reads all layers. */
static uint64_t n_layers_read(const struct gguf *g)
{
    const uint64_t n = arch_u64(g, "block_count");
    const uint64_t more = arch_u64(g, "nextn_predict_layers");

    return more > 0 && more < n ? n - more : UINT64_MAX;
}

/* The same for layers that read the keys and values of earlier ones. */
static uint64_t n_layers_own_kv(const struct gguf *g)
{
    const uint64_t n = arch_u64(g, "block_count");
    const uint64_t n_shared = arch_u64(g, "attention.shared_kv_layers");

    return n_shared > 0 && n_shared < n ? n - n_shared : UINT64_MAX;
}

static bool is_read(const struct census *c, const char *name)
{
    uint64_t layer;
    int at = 0;

    if (sscanf(name, "blk.%9" SCNu64 ".%n", &layer, &at) != 1)
        return true;
    if (layer >= c->n_layers_own_kv &&
        (!strncmp(name + at, "attn_k", 6) || !strncmp(name + at, "attn_v", 6)))
        return false;
    return layer < c->n_layers_read;
}

static uint64_t token_share(const struct census *c, const struct gguf_tensor *t)
{
    if (is_table(t->name)) {
        const uint64_t row = t->bytes / (t->n_elems / t->ne[0]);
        const bool is_output = c->tied_output && !strcmp(t->name, "token_embd.weight");

        return is_output ? t->bytes + row : row;
    }
    if (is_experts(t->name) && c->n_experts) {
        /* Multiplying first could overflow. */
        const uint64_t whole = t->bytes / c->n_experts, rest = t->bytes % c->n_experts;

        return whole * c->n_experts_used +
               (uint64_t)((double)rest * (double)c->n_experts_used /
                          (double)c->n_experts);
    }
    return t->bytes;
}

void census_take(struct census *c, const struct gguf *g)
{
    const size_t n = gguf_n_tensors(g);

    *c = (struct census){.tied_output = gguf_tensor_find(g, "token_embd.weight") &&
                                        !gguf_tensor_find(g, "output.weight") &&
                                        !is_encoder(g),
                         .is_encoder = is_encoder(g),
                         .n_experts = arch_u64(g, "expert_count"),
                         .n_experts_used = arch_u64(g, "expert_used_count"),
                         .n_layers_read = n_layers_read(g),
                         .n_layers_own_kv = n_layers_own_kv(g)};
    if (c->n_experts_used == 0 || c->n_experts_used > c->n_experts)
        c->n_experts = c->n_experts_used = 0;
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        c->n_params = add_saturating(c->n_params, t->n_elems);
        c->bytes += t->bytes;
        if (is_read(c, t->name))
            c->token_bytes += token_share(c, t);
        else
            c->unread_bytes += t->bytes;
        count_type(c, t);
    }
    qsort(c->types, (size_t)c->n_types, sizeof c->types[0], by_bytes);
}
