/* SPDX-License-Identifier: MIT
 *
 * residency_plan.c - the fewest streamed layers, or the most cached experts, that fit
 */
#include "engine/weights/residency.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "engine/weights/expert_cache.h"

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* ---- which layers are streamed --------------------------------------------------- */

static bool is_streamed(const struct residency_plan *plan, int layer)
{
    return plan->streamed[layer / 64] >> layer % 64 & 1;
}

static void set_streamed(struct residency_plan *plan, int layer)
{
    plan->streamed[layer / 64] |= UINT64_C(1) << layer % 64;
    plan->n_streamed++;
}

/* The middles of n equal parts of the model: distances between streamed layers, that
 * from the last one to the first of the next pass included, differ by at most one. */
void residency_stream_evenly(struct residency_plan *plan, int n)
{
    plan->n_streamed = 0;
    memset(plan->streamed, 0, sizeof plan->streamed);
    for (int i = 0; i < n; i++)
        set_streamed(plan, (int)((2 * (int64_t)i + 1) * plan->n_layers / (2 * n)));
}

static int count_bits(uint64_t bits)
{
    int n = 0;

    for (; bits; bits &= bits - 1)
        n++;
    return n;
}

int residency_streamed_layer(const struct residency_plan *plan, int i)
{
    int word = 0;
    uint64_t bits;

    assert(i >= 0 && i < plan->n_streamed);
    while (i >= count_bits(plan->streamed[word]))
        i -= count_bits(plan->streamed[word++]);
    for (bits = plan->streamed[word]; i > 0; i--)
        bits &= bits - 1;
    return 64 * word + count_bits((bits & -bits) - 1);
}

int residency_streamed_index(const struct residency_plan *plan, int layer)
{
    int before = 0;

    if (layer < 0 || layer >= plan->n_layers || !is_streamed(plan, layer))
        return -1;
    for (int word = 0; word < layer / 64; word++)
        before += count_bits(plan->streamed[word]);
    return before +
           count_bits(plan->streamed[layer / 64] & ((UINT64_C(1) << layer % 64) - 1));
}

/* ---- the plan -------------------------------------------------------------------- */

/* The sizes of a plan whose streamed layers are known. kept[n_layers]: bytes of memory
 * of each layer's tensors; ends: those of the others that are kept. */
static void measure(struct residency_plan *plan, const struct residency_map *map,
                    const uint64_t *kept, uint64_t ends)
{
    plan->n_slots = plan->n_streamed > 0;
    plan->slot_bytes = plan->streamed_bytes = 0;
    plan->kept_bytes = ends;
    memset(plan->part_bytes, 0, sizeof plan->part_bytes);
    for (int layer = 0; layer < plan->n_layers; layer++) {
        if (residency_streamed_index(plan, layer) < 0) {
            plan->kept_bytes += kept[layer];
            continue;
        }
        for (int part = 0; part < RESIDENCY_PARTS; part++) {
            const uint64_t bytes = map->bytes[layer * RESIDENCY_PARTS + part];

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

    if (n_layers > RESIDENCY_MAX_LAYERS)
        return err_set(err, ST_UNSUPPORTED,
                       "%s has %d layers; models of up to %d can be streamed",
                       gguf_path(g), n_layers, RESIDENCY_MAX_LAYERS);
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

static uint64_t min_with_cache(const struct residency_plan *plan, const struct sizes *s)
{
    return round_up(without_experts(plan, s), RESIDENCY_ALIGN) +
           expert_cache_min_bytes(plan->n_layers, s->n_experts, s->expert);
}

/* Not everything is kept: a plan with cached experts, if they are what can be left out
 * and the rest fits. */
static bool cache_experts(struct residency_plan *plan, const struct sizes *s,
                          uint64_t room_bytes)
{
    if (!s->n_experts || min_with_cache(plan, s) > room_bytes)
        return false;
    residency_stream_evenly(plan, 0);
    measure(plan, &s->map, s->kept, s->ends);
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
    residency_stream_evenly(plan, 0);
    measure(plan, &s->map, s->kept, s->ends);
    if (plan->memory_bytes > room_bytes && cache_experts(plan, s, room_bytes))
        return true;
    /* A single layer would only move into the slot. */
    for (int n = 2; plan->memory_bytes > room_bytes && n <= plan->n_layers; n++) {
        residency_stream_evenly(plan, n);
        measure(plan, &s->map, s->kept, s->ends);
    }
    return plan->memory_bytes <= room_bytes;
}

/* Layers from one to the other, going up, in the order of passes. */
static int layers_to_next(const struct residency_plan *plan, int layer)
{
    int n = 1;

    while (n < plan->n_layers && !is_streamed(plan, (layer + n) % plan->n_layers))
        n++;
    return n;
}

/* A layer in the middle of the longest run of layers that are not streamed. */
static int loneliest(const struct residency_plan *plan)
{
    int best = plan->n_layers / 2, longest = 0;

    for (int layer = 0; plan->n_streamed && layer < plan->n_layers; layer++) {
        const int run = is_streamed(plan, layer) ? layers_to_next(plan, layer) : 0;

        if (run > longest) {
            longest = run;
            best = (layer + run / 2) % plan->n_layers;
        }
    }
    return best;
}

static bool reclaim(struct residency_plan *plan, const struct sizes *s,
                    uint64_t room_bytes)
{
    if (plan->n_experts || (!plan->n_streamed && s->n_experts))
        return cache_experts(plan, s, room_bytes);
    measure(plan, &s->map, s->kept, s->ends);
    while (plan->memory_bytes > room_bytes && plan->n_streamed < plan->n_layers) {
        set_streamed(plan, loneliest(plan));
        measure(plan, &s->map, s->kept, s->ends);
    }
    return plan->memory_bytes <= room_bytes;
}

static uint64_t min_bytes(struct residency_plan plan, const struct sizes *s)
{
    uint64_t least = UINT64_MAX;

    for (int n = 0; n <= plan.n_layers; n++) {
        residency_stream_evenly(&plan, n);
        measure(&plan, &s->map, s->kept, s->ends);
        least = plan.memory_bytes < least ? plan.memory_bytes : least;
    }
    if (s->n_experts && min_with_cache(&plan, s) < least)
        least = min_with_cache(&plan, s);
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
                    gguf_path(g), (double)min_bytes(plan, &s) / 0x1p20, n_layers,
                    (double)room_bytes / 0x1p20);
    free_sizes(&s);
    return st;
}

enum status residency_plan_reclaim(struct residency_plan *out, const struct gguf *g,
                                   uint64_t room_bytes, struct err *err)
{
    const struct residency_plan before = *out;
    struct residency_plan plan;
    struct sizes s;
    enum status st = gather(&s, &plan, g, before.n_layers, err);

    if (st)
        return st;
    memcpy(plan.streamed, before.streamed, sizeof plan.streamed);
    plan.n_streamed = before.n_streamed;
    plan.n_experts = before.n_experts;
    if (reclaim(&plan, &s, room_bytes))
        *out = plan;
    else
        st = err_set(
            err, ST_NO_MEMORY,
            "the weights of %s cannot be held in less than %.1f MiB of memory",
            gguf_path(g),
            (double)(plan.n_experts ? min_with_cache(&plan, &s) : plan.memory_bytes) /
                0x1p20);
    free_sizes(&s);
    return st;
}

enum status residency_bounds_find(struct residency_bounds *bounds, const struct gguf *g,
                                  int n_layers, struct err *err)
{
    struct residency_plan plan;
    struct sizes s;
    const enum status st = gather(&s, &plan, g, n_layers, err);

    if (st)
        return st;
    measure(&plan, &s.map, s.kept, s.ends);
    *bounds = (struct residency_bounds){.min_bytes = min_bytes(plan, &s),
                                        .kept_bytes = plan.memory_bytes,
                                        .disk_bytes = plan.disk_bytes};
    free_sizes(&s);
    return ST_OK;
}
