/* SPDX-License-Identifier: MIT
 *
 * residency.c - where tensors belong, and what is read of each layer
 */
#include "engine/weights/residency.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf_panels.h"

#define LINE ((uint64_t)64)

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- tensors --------------------------------------------------------------------- */

int residency_layer(const char *name)
{
    char *end;
    long layer;

    if (strncmp(name, "blk.", 4) || name[4] < '0' || name[4] > '9')
        return -1;
    layer = strtol(name + 4, &end, 10);
    return *end == '.' && layer < INT_MAX ? (int)layer : -1;
}

/* What per-layer embeddings are multiplied with comes last in a layer. */
static bool is_per_layer(const char *own)
{
    return !strcmp(own, ".inp_gate.weight") || !strcmp(own, ".proj.weight");
}

enum residency_part residency_part(const char *name)
{
    const char *own = strncmp(name, "blk.", 4) ? NULL : strchr(name + 4, '.');

    if (own && is_per_layer(own))
        return RESIDENCY_DOWN;
    if (!own || strncmp(own, ".ffn_", 5))
        return RESIDENCY_ATTENTION;
    return strncmp(own, ".ffn_down", 9) ? RESIDENCY_GATE_UP : RESIDENCY_DOWN;
}

enum residency residency_of(const struct residency_plan *plan, const struct gguf *g,
                            const struct gguf_tensor *t)
{
    const int layer = residency_layer(t->name);

    if (layer >= plan->n_layers)
        return RESIDENCY_DISK;
    if (plan->n_experts && residency_is_experts(t, plan->n_layers))
        return RESIDENCY_CACHED;
    if (layer >= 0)
        return residency_streamed_index(plan, layer) >= 0 ? RESIDENCY_STREAMED
                                                          : RESIDENCY_KEPT;
    if (residency_is_rows(t) || (strcmp(t->name, "token_embd.weight") == 0 &&
                                 gguf_tensor_find(g, "output.weight")))
        return RESIDENCY_DISK;
    return RESIDENCY_KEPT;
}

bool residency_is_rows(const struct gguf_tensor *t)
{
    return strcmp(t->name, "per_layer_token_embd.weight") == 0;
}

bool residency_is_experts(const struct gguf_tensor *t, int n_layers)
{
    const int layer = residency_layer(t->name);

    return layer >= 0 && layer < n_layers && t->n_dims == 3 && t->ne[2] > 1 &&
           t->ne[2] <= INT_MAX && t->bytes && strstr(t->name, "_exps.weight");
}

uint64_t residency_slice_bytes(const struct gguf_tensor *t)
{
    return t->bytes / t->ne[2];
}

/* Where slices begin amid a block, one more may be needed. */
uint64_t residency_slice_room(const struct gguf_tensor *t)
{
    const uint64_t bytes = residency_slice_bytes(t);
    const bool is_even =
        t->offset % RESIDENCY_ALIGN == 0 && bytes % RESIDENCY_ALIGN == 0;

    return is_even ? bytes : round_up(bytes + RESIDENCY_ALIGN - 1, RESIDENCY_ALIGN);
}

uint64_t residency_kept_bytes(const struct gguf *g, const struct gguf_tensor *t)
{
    return round_up(t->bytes, gguf_is_packed(g) ? gguf_alignment(g) : LINE);
}

/* ---- extents --------------------------------------------------------------------- */

struct bytes {
    uint64_t begin, end;
    size_t part; /* its number */
};

static int compare(const void *a, const void *b)
{
    const struct bytes *p = a, *q = b;

    if (p->part != q->part)
        return p->part < q->part ? -1 : 1;
    return p->begin < q->begin ? -1 : p->begin > q->begin;
}

static size_t n_parts(int n_layers)
{
    return (size_t)n_layers * RESIDENCY_PARTS;
}

/* Tensors' bytes in order, to extents. */
static void merge(struct residency_map *map, const struct bytes *list, size_t n_list)
{
    size_t n = 0, i = 0;

    for (size_t part = 0; part < n_parts(map->n_layers); part++) {
        uint64_t at = 0;

        map->first[part] = n;
        for (; i < n_list && list[i].part == part; i++) {
            const uint64_t begin = list[i].begin / RESIDENCY_ALIGN * RESIDENCY_ALIGN;
            const uint64_t end = round_up(list[i].end, RESIDENCY_ALIGN);
            struct residency_extent *last = n ? &map->extents[n - 1] : NULL;

            if (n > map->first[part] && begin <= last->end) {
                at += end > last->end ? end - last->end : 0;
                last->end = end > last->end ? end : last->end;
            } else {
                map->extents[n++] = (struct residency_extent){begin, end, at};
                at += end - begin;
            }
        }
        map->bytes[part] = at;
    }
    map->first[n_parts(map->n_layers)] = n;
}

enum status residency_map_make(struct residency_map *out, const struct gguf *g,
                               int n_layers, struct err *err)
{
    const size_t n_tensors = gguf_n_tensors(g);
    struct residency_map map = {.n_layers = n_layers};
    struct bytes *list = calloc(n_tensors + 1, sizeof *list);
    size_t n = 0;

    map.extents = calloc(n_tensors + 1, sizeof *map.extents);
    map.first = calloc(n_parts(n_layers) + 1, sizeof *map.first);
    map.bytes = calloc(n_parts(n_layers) + 1, sizeof *map.bytes);
    if (!list || !map.extents || !map.first || !map.bytes) {
        free(list);
        residency_map_free(&map);
        return err_set(err, ST_NO_MEMORY, "no memory for the places of %zu tensors",
                       n_tensors);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const int layer = residency_layer(t->name);

        if (layer >= 0 && layer < n_layers && t->bytes)
            list[n++] = (struct bytes){t->offset, t->offset + t->bytes,
                                       n_parts(layer) + residency_part(t->name)};
    }
    qsort(list, n, sizeof *list, compare);
    merge(&map, list, n);
    free(list);
    *out = map;
    return ST_OK;
}

void residency_map_free(struct residency_map *map)
{
    free(map->extents);
    free(map->first);
    free(map->bytes);
    *map = (struct residency_map){0};
}

uint64_t residency_place(const struct residency_plan *plan, enum residency_part part)
{
    uint64_t at = 0;

    for (int i = 0; i < (int)part; i++)
        at += plan->part_bytes[i];
    return at;
}

/* In the last extent that begins at or before the tensor. */
uint64_t residency_slot_offset(const struct residency_plan *plan,
                               const struct residency_map *map,
                               const struct gguf_tensor *t)
{
    const enum residency_part part = residency_part(t->name);
    const size_t number = n_parts(residency_layer(t->name)) + part;
    size_t low = map->first[number], high = map->first[number + 1];

    assert(low < high && map->extents[low].begin <= t->offset);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (map->extents[middle].begin <= t->offset)
            low = middle;
        else
            high = middle;
    }
    assert(t->offset + t->bytes <= map->extents[low].end);
    return residency_place(plan, part) + map->extents[low].at +
           (t->offset - map->extents[low].begin);
}
