/* SPDX-License-Identifier: MIT
 *
 * residency.c - the fewest streamed layers that fit, and what is read of each
 */
#include "engine/weights/residency.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf_panels.h"
#include "engine/weights/expert_cache.h"

#define LINE ((uint64_t)64)

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- tensors -------------------------------------------------------------------- */

int residency_layer(const char *name)
{
    char *end;
    long layer;

    if (strncmp(name, "blk.", 4) || name[4] < '0' || name[4] > '9')
        return -1;
    layer = strtol(name + 4, &end, 10);
    return *end == '.' && layer < INT_MAX ? (int)layer : -1;
}

enum residency_part residency_part(const char *name)
{
    const char *own = strncmp(name, "blk.", 4) ? NULL : strchr(name + 4, '.');

    if (!own || strncmp(own, ".ffn_", 5))
        return RESIDENCY_ATTENTION;
    return strncmp(own, ".ffn_down", 9) ? RESIDENCY_GATE_UP : RESIDENCY_DOWN;
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
    const int layer = residency_layer(t->name);

    if (layer >= plan->n_layers)
        return RESIDENCY_DISK;
    if (plan->n_experts && residency_is_experts(t, plan->n_layers))
        return RESIDENCY_CACHED;
    if (layer >= 0)
        return residency_streamed_index(plan, layer) >= 0 ? RESIDENCY_STREAMED
                                                          : RESIDENCY_KEPT;
    return strcmp(t->name, "token_embd.weight") == 0 &&
                   gguf_tensor_find(g, "output.weight")
               ? RESIDENCY_DISK
               : RESIDENCY_KEPT;
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

/* ---- extents -------------------------------------------------------------------- */

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

/* ---- the plan ------------------------------------------------------------------- */

/* The sizes of a plan with n_streamed layers. kept[n_layers]: bytes of memory of each
 * layer's tensors; ends: of the others that are kept. */
static void measure(struct residency_plan *plan, const struct residency_map *map,
                    const uint64_t *kept, uint64_t ends, int n_streamed)
{
    plan->n_streamed = n_streamed;
    plan->n_slots = n_streamed > 0;
    plan->slot_bytes = plan->streamed_bytes = 0;
    plan->kept_bytes = ends;
    memset(plan->part_bytes, 0, sizeof plan->part_bytes);
    for (int layer = 0; layer < plan->n_layers; layer++) {
        if (residency_streamed_index(plan, layer) < 0) {
            plan->kept_bytes += kept[layer];
            continue;
        }
        for (int part = 0; part < RESIDENCY_PARTS; part++) {
            const uint64_t bytes = map->bytes[n_parts(layer) + (size_t)part];

            plan->streamed_bytes += bytes;
            if (plan->part_bytes[part] < bytes)
                plan->part_bytes[part] = bytes;
        }
    }
    for (int part = 0; part < RESIDENCY_PARTS; part++)
        plan->slot_bytes += plan->part_bytes[part];
    plan->memory_bytes = round_up(plan->kept_bytes, RESIDENCY_ALIGN) + plan->slot_bytes;
}

/* What measure() needs, of a file. */
struct sizes {
    struct residency_map map;
    uint64_t *kept, ends;
    int n_experts;                  /* of a layer; 0: none that can be cached */
    uint64_t *expert;               /* [n_layers] memory of an expert; 0: none */
    uint64_t experts, experts_kept; /* bytes of all, and of memory if they are kept */
};

static void free_sizes(struct sizes *s)
{
    residency_map_free(&s->map);
    free(s->kept);
    free(s->expert);
}

/* Experts are cached if all layers that have them have the same number. */
static void gather_experts(struct sizes *s, const struct gguf *g, int n_layers)
{
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (!residency_is_experts(t, n_layers))
            continue;
        if (s->n_experts && s->n_experts != (int)t->ne[2]) {
            s->n_experts = 0;
            return;
        }
        s->n_experts = (int)t->ne[2];
        s->expert[residency_layer(t->name)] += residency_slice_room(t);
        s->experts += t->bytes;
        s->experts_kept += residency_kept_bytes(g, t);
    }
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
    s.expert = calloc((size_t)n_layers + 1, sizeof *s.expert);
    if (!s.kept || !s.expert) {
        free_sizes(&s);
        return err_set(err, ST_NO_MEMORY, "no memory to plan %d layers", n_layers);
    }
    *plan = (struct residency_plan){.n_layers = n_layers};
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const int layer = residency_layer(t->name);

        if (layer >= 0 && layer < n_layers)
            s.kept[layer] += residency_kept_bytes(g, t);
        else if (residency_of(plan, g, t) == RESIDENCY_DISK)
            plan->disk_bytes += t->bytes;
        else
            s.ends += residency_kept_bytes(g, t);
    }
    gather_experts(&s, g, n_layers);
    *out = s;
    return ST_OK;
}

/* Memory of what is kept where experts are cached. */
static uint64_t without_experts(const struct residency_plan *plan,
                                const struct sizes *s)
{
    uint64_t sum = s->ends - s->experts_kept;

    for (int layer = 0; layer < plan->n_layers; layer++)
        sum += s->kept[layer];
    return sum;
}

static uint64_t least_with_cache(const struct residency_plan *plan,
                                 const struct sizes *s)
{
    return round_up(without_experts(plan, s), RESIDENCY_ALIGN) +
           expert_cache_least_bytes(plan->n_layers, s->n_experts, s->expert);
}

/* Not everything is kept: a plan with cached experts, if they are what can be left out
 * and the rest fits. */
static bool cache_experts(struct residency_plan *plan, const struct sizes *s,
                          uint64_t room_bytes)
{
    if (!s->n_experts || least_with_cache(plan, s) > room_bytes)
        return false;
    measure(plan, &s->map, s->kept, s->ends, 0);
    plan->kept_bytes = without_experts(plan, s);
    plan->n_experts = s->n_experts;
    plan->cached_bytes = s->experts;
    plan->memory_bytes = round_up(plan->kept_bytes, RESIDENCY_ALIGN);
    plan->cache_bytes = expert_cache_planned_bytes(
        plan->n_layers, s->n_experts, s->expert, room_bytes - plan->memory_bytes);
    plan->memory_bytes += plan->cache_bytes;
    return true;
}

/* Everything, or cached experts, or the first plan, with ever more streamed layers,
 * that fits. */
static bool find_plan(struct residency_plan *plan, const struct sizes *s,
                      uint64_t room_bytes)
{
    measure(plan, &s->map, s->kept, s->ends, 0);
    if (plan->memory_bytes > room_bytes && cache_experts(plan, s, room_bytes))
        return true;
    /* A single layer would only move into the slot. */
    for (int n = 2; plan->memory_bytes > room_bytes && n <= plan->n_layers; n++)
        measure(plan, &s->map, s->kept, s->ends, n);
    return plan->memory_bytes <= room_bytes;
}

static uint64_t least_bytes(struct residency_plan plan, const struct sizes *s)
{
    uint64_t least = UINT64_MAX;

    for (int n = 0; n <= plan.n_layers; n++) {
        measure(&plan, &s->map, s->kept, s->ends, n);
        least = plan.memory_bytes < least ? plan.memory_bytes : least;
    }
    if (s->n_experts && least_with_cache(&plan, s) < least)
        least = least_with_cache(&plan, s);
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
