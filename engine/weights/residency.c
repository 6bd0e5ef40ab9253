/* SPDX-License-Identifier: MIT
 *
 * residency.c - the fewest streamed layers that fit, and what is read of each
 */
#include "engine/weights/residency.h"

#include <assert.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LINE ((uint64_t)64)

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- tensors -------------------------------------------------------------------- */

int residency_layer(const struct gguf_tensor *t)
{
    char *end;
    long layer;

    if (strncmp(t->name, "blk.", 4) || t->name[4] < '0' || t->name[4] > '9')
        return -1;
    layer = strtol(t->name + 4, &end, 10);
    return *end == '.' && layer <= INT_MAX - 1 ? (int)layer : -1;
}

/* The middles of n_streamed equal parts of the model: distances between streamed
 * layers, that from the last one to the first of the next pass included, differ by at
 * most one.
 */
int residency_streamed_layer(const struct residency_plan *plan, int i)
{
    const int64_t n = plan->n_layers, n_streamed = plan->n_streamed;

    assert(i >= 0 && i < n_streamed);
    return (int)((2 * (int64_t)i + 1) * n / (2 * n_streamed));
}

/* A layer lies in the part that its first edge or its middle is in. */
int residency_streamed_index(const struct residency_plan *plan, int layer)
{
    if (plan->n_streamed == 0 || layer < 0 || layer >= plan->n_layers)
        return -1;
    const int first = (int)((int64_t)layer * plan->n_streamed / plan->n_layers);

    for (int i = first; i < plan->n_streamed && i <= first + 1; i++)
        if (residency_streamed_layer(plan, i) == layer)
            return i;
    return -1;
}

enum residency residency_of(const struct residency_plan *plan, const struct gguf *g,
                            const struct gguf_tensor *t)
{
    const int layer = residency_layer(t);

    if (layer >= plan->n_layers)
        return RESIDENCY_DISK;
    if (layer >= 0)
        return residency_streamed_index(plan, layer) >= 0 ? RESIDENCY_STREAMED
                                                          : RESIDENCY_KEPT;
    return strcmp(t->name, "token_embd.weight") == 0 &&
                   gguf_tensor_find(g, "output.weight")
               ? RESIDENCY_DISK
               : RESIDENCY_KEPT;
}

uint64_t residency_kept_bytes(const struct gguf_tensor *t)
{
    return round_up(t->bytes, LINE);
}

/* ---- extents -------------------------------------------------------------------- */

struct part {
    uint64_t begin, end;
    int layer;
};

static int compare_parts(const void *a, const void *b)
{
    const struct part *p = a, *q = b;

    if (p->layer != q->layer)
        return p->layer < q->layer ? -1 : 1;
    return p->begin < q->begin ? -1 : p->begin > q->begin;
}

/* Parts in order, to extents. */
static void merge(struct residency_map *map, const struct part *parts, size_t n_parts)
{
    size_t n = 0, i = 0;

    for (int layer = 0; layer < map->n_layers; layer++) {
        uint64_t at = 0;

        map->first[layer] = n;
        for (; i < n_parts && parts[i].layer == layer; i++) {
            const uint64_t begin = parts[i].begin / RESIDENCY_ALIGN * RESIDENCY_ALIGN;
            const uint64_t end = round_up(parts[i].end, RESIDENCY_ALIGN);
            struct residency_extent *last = n ? &map->extents[n - 1] : NULL;

            if (n > map->first[layer] && begin <= last->end) {
                at += end > last->end ? end - last->end : 0;
                last->end = end > last->end ? end : last->end;
            } else {
                map->extents[n++] = (struct residency_extent){begin, end, at};
                at += end - begin;
            }
        }
        map->bytes[layer] = at;
    }
    map->first[map->n_layers] = n;
}

enum status residency_map_make(struct residency_map *out, const struct gguf *g,
                               int n_layers, struct err *err)
{
    const size_t n_tensors = gguf_n_tensors(g);
    struct residency_map map = {.n_layers = n_layers};
    struct part *parts = calloc(n_tensors + 1, sizeof *parts);
    size_t n = 0;

    map.extents = calloc(n_tensors + 1, sizeof *map.extents);
    map.first = calloc((size_t)n_layers + 1, sizeof *map.first);
    map.bytes = calloc((size_t)n_layers + 1, sizeof *map.bytes);
    if (!parts || !map.extents || !map.first || !map.bytes) {
        free(parts);
        residency_map_free(&map);
        return err_set(err, ST_NO_MEMORY, "no memory for the places of %zu tensors",
                       n_tensors);
    }
    for (size_t i = 0; i < n_tensors; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const int layer = residency_layer(t);

        if (layer >= 0 && layer < n_layers && t->bytes)
            parts[n++] = (struct part){t->offset, t->offset + t->bytes, layer};
    }
    qsort(parts, n, sizeof *parts, compare_parts);
    merge(&map, parts, n);
    free(parts);
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

/* The last extent that begins at or before it. */
uint64_t residency_slot_offset(const struct residency_map *map, int layer,
                               uint64_t offset)
{
    size_t low = map->first[layer], high = map->first[layer + 1];

    assert(low < high && map->extents[low].begin <= offset);
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;

        if (map->extents[middle].begin <= offset)
            low = middle;
        else
            high = middle;
    }
    assert(offset < map->extents[low].end);
    return map->extents[low].at + (offset - map->extents[low].begin);
}

/* ---- the plan ------------------------------------------------------------------- */

/* The sizes of a plan with n_streamed layers. kept[n_layers]: bytes of memory of each
 * layer's tensors; ends: of the others that are kept. */
static void measure(struct residency_plan *plan, const struct residency_map *map,
                    const uint64_t *kept, uint64_t ends, int n_streamed)
{
    plan->n_streamed = n_streamed;
    plan->n_slots = n_streamed ? RESIDENCY_SLOTS : 0;
    plan->slot_bytes = plan->streamed_bytes = 0;
    plan->kept_bytes = ends;
    for (int layer = 0; layer < plan->n_layers; layer++) {
        if (residency_streamed_index(plan, layer) < 0) {
            plan->kept_bytes += kept[layer];
            continue;
        }
        plan->streamed_bytes += map->bytes[layer];
        if (plan->slot_bytes < map->bytes[layer])
            plan->slot_bytes = map->bytes[layer];
    }
    plan->memory_bytes = round_up(plan->kept_bytes, RESIDENCY_ALIGN) +
                         (uint64_t)plan->n_slots * plan->slot_bytes;
}

/* What measure() needs, of a file. */
struct sizes {
    struct residency_map map;
    uint64_t *kept, ends;
};

static void free_sizes(struct sizes *s)
{
    residency_map_free(&s->map);
    free(s->kept);
}

/* And the part of the plan that does not depend on the number of streamed layers. */
static enum status gather(struct sizes *out, struct residency_plan *plan,
                          const struct gguf *g, int n_layers, struct err *err)
{
    struct sizes s = {.ends = 0};
    enum status st;

    if (gguf_is_assembled(g))
        return err_set(err, ST_USAGE,
                       "the weights of %s are made while they are read, so they cannot "
                       "be streamed; convert the model to one GGUF file first, or to a "
                       "packed file with `bench pack`",
                       gguf_path(g));
    st = residency_map_make(&s.map, g, n_layers, err);
    if (st)
        return st;
    s.kept = calloc((size_t)n_layers + 1, sizeof *s.kept);
    if (!s.kept) {
        free_sizes(&s);
        return err_set(err, ST_NO_MEMORY, "no memory to plan %d layers", n_layers);
    }
    *plan = (struct residency_plan){.n_layers = n_layers};
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const int layer = residency_layer(t);

        if (layer >= 0 && layer < n_layers)
            s.kept[layer] += residency_kept_bytes(t);
        else if (residency_of(plan, g, t) == RESIDENCY_DISK)
            plan->disk_bytes += t->bytes;
        else
            s.ends += residency_kept_bytes(t);
    }
    *out = s;
    return ST_OK;
}

/* The first plan, with ever more streamed layers, that fits. */
static bool find_plan(struct residency_plan *plan, const struct sizes *s,
                      uint64_t room_bytes)
{
    measure(plan, &s->map, s->kept, s->ends, 0);
    /* As many layers as slots save nothing. */
    for (int n = 2 * RESIDENCY_SLOTS;
         plan->memory_bytes > room_bytes && n <= plan->n_layers; n += RESIDENCY_SLOTS)
        measure(plan, &s->map, s->kept, s->ends, n);
    return plan->memory_bytes <= room_bytes;
}

static uint64_t least_bytes(struct residency_plan plan, const struct sizes *s)
{
    uint64_t least = UINT64_MAX;

    for (int n = 0; n <= plan.n_layers; n += RESIDENCY_SLOTS) {
        measure(&plan, &s->map, s->kept, s->ends, n);
        least = plan.memory_bytes < least ? plan.memory_bytes : least;
    }
    return least;
}

enum status residency_plan_make(struct residency_plan *out, const struct gguf *g,
                                int n_layers, uint64_t room_bytes, struct err *err)
{
    struct residency_plan plan;
    struct sizes s;
    enum status st = gather(&s, &plan, g, n_layers, err);

    if (st)
        return st;
    if (find_plan(&plan, &s, room_bytes))
        *out = plan;
    else
        st =
            err_set(err, ST_NO_MEMORY,
                    "the weights of %s take %.1f MiB of memory even with most of their "
                    "%d layers streamed, and there are %.1f MiB for them; allow more "
                    "memory, or choose a smaller context or quantisation",
                    gguf_path(g), (double)least_bytes(plan, &s) / 0x1p20, n_layers,
                    (double)room_bytes / 0x1p20);
    free_sizes(&s);
    return st;
}

enum status residency_least_bytes(uint64_t *bytes, const struct gguf *g, int n_layers,
                                  struct err *err)
{
    struct residency_plan plan;
    struct sizes s;
    const enum status st = gather(&s, &plan, g, n_layers, err);

    if (st)
        return st;
    *bytes = least_bytes(plan, &s);
    free_sizes(&s);
    return ST_OK;
}
