/* SPDX-License-Identifier: MIT
 *
 * expert_cache.c - slots of experts, and which of them is least likely to be used
 *
 * Older uses count less because newer ones weigh more: a use now adds more than one a
 * half-life ago by a factor of two, so that nothing has to be done for experts that are
 * not used. All sums are scaled down before they overflow.
 */
#include "engine/weights/expert_cache.h"

#include <math.h>
#include <stdlib.h>

#define RESCALE 1e100

/* Observations of repeats, of which the older half counts less from here on. */
#define MAX_REPEATS 4096

struct expert {
    int slot;      /* of its class; -1: none */
    bool taken;    /* by the present pass */
    bool was_last; /* taken by the pass before, of one token */
    double used;   /* tokens that used it, weighted */
};

/* Layers whose experts are equally large. */
struct size_class {
    uint64_t bytes; /* of an expert */
    uint64_t at;    /* of the first slot */
    int n_layers;
    int n_slots, n_free; /* free are the last n_free of free_slots */
    int *free_slots;
    int *holds; /* [n_slots] layer * n_experts + expert; -1: nothing */
};

struct expert_cache {
    int n_layers, n_experts, n_classes;
    struct size_class *classes; /* [n_layers] at most */
    int *class_of;              /* [n_layers]; -1: a layer without experts */
    struct expert *experts;     /* [n_layers][n_experts] */
    uint64_t bytes;
    uint64_t least, most; /* bytes: as expert_cache_min_bytes() and _max_bytes() */
    int n_tokens;         /* of the present pass */
    double weight;        /* of the last token */
    double per_token; /* of the pass: weight of each as their mean, relative to that */
    double tokens;    /* all so far, weighted */
    double repeats, n_repeats; /* experts used by the token before that are used again,
                                  less those that their shares explain; of how many */
    int next_fill;             /* of all experts, by expert and then by layer */
    uint64_t hits, uses;
};

/* ---- opening --------------------------------------------------------------------- */

/* Sort layers into classes. */
static int classify(struct size_class *classes, int *class_of, int n_layers,
                    const uint64_t *expert_bytes)
{
    int n = 0;

    for (int l = 0; l < n_layers; l++) {
        int c = 0;

        if (class_of)
            class_of[l] = -1;
        if (!expert_bytes[l])
            continue;
        while (c < n && classes[c].bytes != expert_bytes[l])
            c++;
        if (c == n)
            classes[n++] = (struct size_class){.bytes = expert_bytes[l]};
        classes[c].n_layers++;
        if (class_of)
            class_of[l] = c;
    }
    return n;
}

uint64_t expert_cache_min_bytes(int n_layers, int n_experts,
                                const uint64_t *expert_bytes)
{
    uint64_t sum = 0;

    for (int l = 0; l < n_layers; l++) {
        bool is_first = expert_bytes[l] != 0;

        for (int i = 0; i < l; i++)
            is_first = is_first && expert_bytes[i] != expert_bytes[l];
        if (is_first)
            sum += (uint64_t)n_experts * expert_bytes[l];
    }
    return sum;
}

uint64_t expert_cache_max_bytes(int n_layers, int n_experts,
                                const uint64_t *expert_bytes)
{
    uint64_t sum = 0;

    for (int l = 0; l < n_layers; l++)
        sum += (uint64_t)n_experts * expert_bytes[l];
    return sum;
}

/* Slots of a class of n_layers layers: a layer's experts, and its part of the rest
 * of the room by the classes' bytes. */
static int slots_of(int n_experts, int n_layers, uint64_t room, uint64_t least,
                    uint64_t most)
{
    const double share =
        room < most ? (double)(room - least) / (double)(most - least) : 1;

    return n_experts + (int)(share * (n_layers - 1) * n_experts);
}

uint64_t expert_cache_planned_bytes(int n_layers, int n_experts,
                                    const uint64_t *expert_bytes, uint64_t room_bytes)
{
    const uint64_t least = expert_cache_min_bytes(n_layers, n_experts, expert_bytes);
    const uint64_t most = expert_cache_max_bytes(n_layers, n_experts, expert_bytes);
    uint64_t sum = 0;

    for (int l = 0; l < n_layers; l++) {
        bool is_first = expert_bytes[l] != 0;
        int n = 0; /* layers of the class */

        for (int i = 0; i < n_layers; i++) {
            is_first = is_first && (i >= l || expert_bytes[i] != expert_bytes[l]);
            n += expert_bytes[i] == expert_bytes[l];
        }
        if (is_first)
            sum += (uint64_t)slots_of(n_experts, n, room_bytes, least, most) *
                   expert_bytes[l];
    }
    return sum;
}

static enum status no_memory(struct expert_cache *c, struct err *err)
{
    expert_cache_close(c);
    return err_set(err, ST_NO_MEMORY, "cannot allocate the table of experts");
}

enum status expert_cache_open(struct expert_cache **out, int n_layers, int n_experts,
                              const uint64_t *expert_bytes, uint64_t room_bytes,
                              struct err *err)
{
    const uint64_t least = expert_cache_min_bytes(n_layers, n_experts, expert_bytes);
    const uint64_t most = expert_cache_max_bytes(n_layers, n_experts, expert_bytes);
    const size_t n = (size_t)n_layers * (size_t)n_experts;
    struct expert_cache *c;

    if (room_bytes < least)
        return err_set(err, ST_NO_MEMORY,
                       "experts need %.1f MiB of memory, those of one layer of each "
                       "size; there are %.1f MiB for them",
                       (double)least / 1048576, (double)room_bytes / 1048576);
    c = calloc(1, sizeof *c);
    if (!c)
        return no_memory(c, err);
    c->n_layers = n_layers;
    c->n_experts = n_experts;
    c->weight = 1;
    c->least = least;
    c->most = most;
    c->classes = calloc((size_t)n_layers + 1, sizeof *c->classes);
    c->class_of = calloc((size_t)n_layers + 1, sizeof *c->class_of);
    c->experts = calloc(n + 1, sizeof *c->experts);
    if (!c->classes || !c->class_of || !c->experts)
        return no_memory(c, err);
    for (size_t i = 0; i < n; i++)
        c->experts[i].slot = -1;
    c->n_classes = classify(c->classes, c->class_of, n_layers, expert_bytes);
    for (int i = 0; i < c->n_classes; i++) {
        struct size_class *k = &c->classes[i];

        k->n_slots = slots_of(n_experts, k->n_layers, room_bytes, least, most);
        k->at = c->bytes;
        c->bytes += (uint64_t)k->n_slots * k->bytes;
        k->free_slots = malloc((size_t)k->n_slots * sizeof *k->free_slots);
        k->holds = malloc((size_t)k->n_slots * sizeof *k->holds);
        if (!k->free_slots || !k->holds)
            return no_memory(c, err);
        k->n_free = k->n_slots;
        for (int s = 0; s < k->n_slots; s++) {
            k->free_slots[s] = k->n_slots - 1 - s; /* the first slot is taken first */
            k->holds[s] = -1;
        }
    }
    *out = c;
    return ST_OK;
}

void expert_cache_close(struct expert_cache *c)
{
    if (!c)
        return;
    for (int i = 0; i < c->n_classes; i++) {
        free(c->classes[i].free_slots);
        free(c->classes[i].holds);
    }
    free(c->classes);
    free(c->class_of);
    free(c->experts);
    free(c);
}

/* The last slot's expert loses it. */
static void take_away(struct expert_cache *c, struct size_class *k)
{
    const int slot = --k->n_slots;

    if (k->holds[slot] >= 0) {
        c->experts[k->holds[slot]].slot = -1;
        return;
    }
    for (int i = 0; i < k->n_free; i++)
        if (k->free_slots[i] == slot) {
            k->free_slots[i] = k->free_slots[--k->n_free];
            return;
        }
}

void expert_cache_shrink(struct expert_cache *c, uint64_t room_bytes,
                         void (*gone)(void *arg, uint64_t at, uint64_t bytes),
                         void *arg)
{
    for (int i = 0; i < c->n_classes; i++) {
        struct size_class *k = &c->classes[i];
        const int before = k->n_slots;
        const int n =
            slots_of(c->n_experts, k->n_layers, room_bytes, c->least, c->most);

        while (k->n_slots > n)
            take_away(c, k);
        if (k->n_slots == before)
            continue;
        const uint64_t bytes = (uint64_t)(before - k->n_slots) * k->bytes;

        c->bytes -= bytes;
        gone(arg, k->at + (uint64_t)k->n_slots * k->bytes, bytes);
    }
}

/* ---- slots ----------------------------------------------------------------------- */

uint64_t expert_cache_bytes(const struct expert_cache *c)
{
    return c->bytes;
}

size_t expert_cache_slots(const struct expert_cache *c)
{
    size_t n = 0;

    for (int i = 0; i < c->n_classes; i++)
        n += (size_t)c->classes[i].n_slots;
    return n;
}

static struct expert *expert_of(const struct expert_cache *c, int layer, int expert)
{
    return &c->experts[layer * c->n_experts + expert];
}

static struct size_class *class_of(const struct expert_cache *c, int layer)
{
    return &c->classes[c->class_of[layer]];
}

int64_t expert_cache_at(const struct expert_cache *c, int layer, int expert)
{
    const struct size_class *k = class_of(c, layer);
    const int slot = expert_of(c, layer, expert)->slot;

    return slot < 0 ? -1 : (int64_t)(k->at + (uint64_t)slot * k->bytes);
}

static void put(struct expert_cache *c, int layer, int expert, int slot)
{
    class_of(c, layer)->holds[slot] = layer * c->n_experts + expert;
    expert_of(c, layer, expert)->slot = slot;
}

/* The share of tokens that use an expert. */
static double share_of(const struct expert_cache *c, const struct expert *e)
{
    return c->tokens > 0 ? e->used / c->tokens : 0;
}

/* How likely the next token uses it. */
static double chance_of(const struct expert_cache *c, const struct expert *e)
{
    const double again = c->n_repeats > 0 ? c->repeats / c->n_repeats : 0;

    return share_of(c, e) + (e->was_last && again > 0 ? again : 0);
}

/* The slot whose expert is least likely to be used, of those that are not taken. */
static int least_likely(const struct expert_cache *c, const struct size_class *k)
{
    int least = -1;
    double min_chance = 0;

    for (int s = 0; s < k->n_slots; s++) {
        const struct expert *e = &c->experts[k->holds[s]];
        const double chance = chance_of(c, e);

        if (!e->taken && (least < 0 || chance < min_chance)) {
            least = s;
            min_chance = chance;
        }
    }
    return least;
}

/* ---- passes ---------------------------------------------------------------------- */

static void rescale(struct expert_cache *c)
{
    for (int i = 0; i < c->n_layers * c->n_experts; i++)
        c->experts[i].used /= c->weight;
    c->tokens /= c->weight;
    c->weight = 1;
}

void expert_cache_begin(struct expert_cache *c, int n_tokens)
{
    /* What was before a longer prompt has no weight left. */
    const int longest = 16 * EXPERT_CACHE_HALF_LIFE;
    const int n = n_tokens < longest ? n_tokens : longest;
    const double decay = exp2(-1.0 / EXPERT_CACHE_HALF_LIFE);

    c->weight /= pow(decay, n);
    if (c->weight > RESCALE)
        rescale(c);
    c->n_tokens = n_tokens;
    c->per_token = (1 - pow(decay, n)) / (1 - decay) / n_tokens;
    c->tokens += c->weight * c->per_token * n_tokens;
}

bool expert_cache_take(struct expert_cache *c, int layer, int expert, int n_uses,
                       int *evicted)
{
    struct size_class *k = class_of(c, layer);
    struct expert *e = expert_of(c, layer, expert);
    int slot;

    e->used += c->weight * c->per_token * n_uses;
    e->taken = true;
    c->uses++;
    *evicted = -1;
    if (e->slot >= 0) {
        c->hits++;
        return false;
    }
    if (k->n_free) {
        slot = k->free_slots[--k->n_free];
    } else {
        /* Only the layer's own experts are taken, and a class has room for them all. */
        slot = least_likely(c, k);
        *evicted = k->holds[slot];
        c->experts[*evicted].slot = -1;
    }
    put(c, layer, expert, slot);
    return true;
}

void expert_cache_give_back(struct expert_cache *c, int layer)
{
    for (int i = 0; i < c->n_experts; i++) {
        struct expert *e = expert_of(c, layer, i);

        if (e->was_last && c->n_tokens == 1) {
            c->repeats += (e->taken ? 1 : 0) - share_of(c, e);
            c->n_repeats++;
        }
        e->was_last = e->taken && c->n_tokens == 1;
        e->taken = false;
    }
    if (c->n_repeats > MAX_REPEATS) {
        c->repeats /= 2;
        c->n_repeats /= 2;
    }
}

int expert_cache_fill(struct expert_cache *c)
{
    while (c->next_fill < c->n_layers * c->n_experts) {
        const int layer = c->next_fill % c->n_layers;
        const int expert = c->next_fill / c->n_layers;

        c->next_fill++;
        if (c->class_of[layer] < 0 || expert_of(c, layer, expert)->slot >= 0)
            continue;
        struct size_class *k = class_of(c, layer);

        if (!k->n_free)
            continue;
        put(c, layer, expert, k->free_slots[--k->n_free]);
        return layer * c->n_experts + expert;
    }
    return -1;
}

void expert_cache_uses(const struct expert_cache *c, uint64_t *hits, uint64_t *uses)
{
    *hits = c->hits;
    *uses = c->uses;
}
