/* SPDX-License-Identifier: MIT
 *
 * test_expert_cache.c - slots of experts: who gets one, who loses one, and how often
 * an expert is there on routers of known popularity
 */
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/weights/expert_cache.h"

#define MAX_LAYERS  8
#define MAX_EXPERTS 64

static const uint64_t equal[] = {100, 100, 100, 100, 100, 100, 100, 100};

static struct expert_cache *open_cache(int n_layers, int n_experts,
                                       const uint64_t *bytes, uint64_t room)
{
    struct err err = ERR_INIT;
    struct expert_cache *c = NULL;

    assert_int_equal(expert_cache_open(&c, n_layers, n_experts, bytes, room, &err),
                     ST_OK);
    return c;
}

/* Every expert's place is a slot of its own inside the memory. */
static void check_places_in(const struct expert_cache *c, int n_layers, int n_experts,
                            const uint64_t *bytes, uint64_t memory)
{
    int64_t begin[MAX_LAYERS * MAX_EXPERTS], end[MAX_LAYERS * MAX_EXPERTS];
    int n = 0;

    for (int l = 0; l < n_layers; l++)
        for (int e = 0; bytes[l] && e < n_experts; e++) {
            const int64_t at = expert_cache_at(c, l, e);

            if (at < 0)
                continue;
            begin[n] = at;
            end[n] = at + (int64_t)bytes[l];
            assert_true((uint64_t)end[n] <= memory);
            for (int i = 0; i < n; i++)
                assert_true(end[i] <= at || begin[i] >= end[n]);
            n++;
        }
}

static void check_places(const struct expert_cache *c, int n_layers, int n_experts,
                         const uint64_t *bytes)
{
    check_places_in(c, n_layers, n_experts, bytes, expert_cache_bytes(c));
}

static void too_little_room_is_refused(void **state)
{
    const uint64_t bytes[] = {100, 0, 120, 100};
    struct err err = ERR_INIT;
    struct expert_cache *c = NULL;

    (void)state;
    assert_int_equal(expert_cache_min_bytes(4, 8, bytes), 8 * 220);
    assert_int_equal(expert_cache_max_bytes(4, 8, bytes), 8 * 320);
    assert_int_equal(expert_cache_open(&c, 4, 8, bytes, 8 * 220 - 1, &err),
                     ST_NO_MEMORY);
    assert_null(c);
    assert_non_null(strstr(err.msg, "experts need"));
    c = open_cache(4, 8, bytes, 8 * 220);
    assert_int_equal(expert_cache_slots(c), 16);
    expert_cache_close(c);
    expert_cache_close(NULL);
}

static void where_all_fit_all_are_read_once(void **state)
{
    const uint64_t bytes[] = {100, 0, 120, 100};
    struct expert_cache *c = open_cache(4, 8, bytes, 1 << 20);
    uint64_t hits, uses;
    int evicted, n_read = 0;

    (void)state;
    assert_int_equal(expert_cache_bytes(c), 8 * 320);
    for (int pass = 0; pass < 3; pass++) {
        expert_cache_begin(c, 1);
        for (int l = 0; l < 4; l++) {
            for (int e = 0; bytes[l] && e < 8; e++) {
                n_read += expert_cache_take(c, l, e, 1, &evicted);
                assert_int_equal(evicted, -1);
            }
            expert_cache_give_back(c, l);
        }
    }
    check_places(c, 4, 8, bytes);
    expert_cache_uses(c, &hits, &uses);
    assert_int_equal(n_read, 24);
    assert_int_equal(uses, 72);
    assert_int_equal(hits, 48);
    expert_cache_close(c);
}

static void what_is_taken_keeps_its_slot(void **state)
{
    struct expert_cache *c = open_cache(2, 4, equal, 4 * 100);
    int evicted;

    (void)state;
    expert_cache_begin(c, 1);
    for (int e = 0; e < 4; e++)
        assert_true(expert_cache_take(c, 0, e, 1, &evicted));
    expert_cache_give_back(c, 0);
    /* 3 is worth most of layer 0; the others go first, and those taken of layer 1
     * never.
     */
    expert_cache_begin(c, 1);
    assert_false(expert_cache_take(c, 0, 3, 1, &evicted));
    expert_cache_give_back(c, 0);
    for (int e = 0; e < 4; e++) {
        assert_true(expert_cache_take(c, 1, e, 1, &evicted));
        assert_int_equal(evicted / 4, 0);
        assert_int_equal(evicted == 3, e == 3);
        check_places(c, 2, 4, equal);
    }
    expert_cache_give_back(c, 1);
    expert_cache_close(c);
}

static void free_slots_are_filled_evenly(void **state)
{
    const uint64_t bytes[] = {100, 0, 100, 100, 140};
    struct expert_cache *c = open_cache(5, 6, bytes, 9 * 100 + 6 * 140 + 50);
    const size_t n_slots = expert_cache_slots(c);
    int per_layer[5] = {0}, n = 0, evicted;

    (void)state;
    expert_cache_begin(c, 1);
    assert_true(expert_cache_take(c, 0, 0, 1, &evicted));
    for (int i; (i = expert_cache_fill(c)) >= 0; n++)
        per_layer[i / 6]++;
    assert_int_equal(n + 1, n_slots);
    assert_int_equal(per_layer[1], 0);
    assert_int_equal(per_layer[4], 6);
    assert_in_range(per_layer[0], 2, 3);
    assert_in_range(per_layer[2], 2, 4);
    assert_in_range(per_layer[3], 2, 4);
    check_places(c, 5, 6, bytes);
    expert_cache_close(c);
}

struct memory {
    const struct expert_cache *c;
    uint64_t bytes;
};

static void note_gone(void *arg, uint64_t at, uint64_t bytes)
{
    struct memory *m = arg;

    assert_true(at % 20 == 0 && bytes % 20 == 0);
    m->bytes += bytes;
}

static void slots_are_taken_away(void **state)
{
    const uint64_t bytes[] = {100, 0, 100, 100, 140, 140};
    const uint64_t most = expert_cache_max_bytes(6, 6, bytes);
    const uint64_t least = expert_cache_min_bytes(6, 6, bytes);
    struct expert_cache *c = open_cache(6, 6, bytes, most);
    int evicted;

    (void)state;
    while (expert_cache_fill(c) >= 0)
        continue;
    for (uint64_t room = most - 150;; room = room > least + 150 ? room - 150 : least) {
        struct memory gone = {.c = c};
        const uint64_t before = expert_cache_bytes(c);
        int n = 0;

        expert_cache_shrink(c, room, note_gone, &gone);
        assert_int_equal(before - expert_cache_bytes(c), gone.bytes);
        assert_int_equal(expert_cache_bytes(c),
                         expert_cache_planned_bytes(6, 6, bytes, room));
        check_places_in(c, 6, 6, bytes, most);
        for (int l = 0; l < 6; l++)
            for (int e = 0; bytes[l] && e < 6; e++)
                n += expert_cache_at(c, l, e) >= 0;
        assert_int_equal(n, expert_cache_slots(c));
        if (room == least)
            break;
    }
    /* And it goes on: a layer's experts still fit all at once. */
    expert_cache_begin(c, 1);
    for (int l = 0; l < 6; l++) {
        for (int e = 0; bytes[l] && e < 6; e++)
            expert_cache_take(c, l, e, 1, &evicted);
        check_places_in(c, 6, 6, bytes, most);
        if (bytes[l])
            expert_cache_give_back(c, l);
    }
    expert_cache_close(c);

    /* Free slots can be taken away, too. */
    c = open_cache(6, 6, bytes, most);
    struct memory gone = {.c = c};

    expert_cache_shrink(c, least, note_gone, &gone);
    for (size_t n = expert_cache_slots(c); n > 0; n--)
        assert_true(expert_cache_fill(c) >= 0);
    assert_int_equal(expert_cache_fill(c), -1);
    check_places_in(c, 6, 6, bytes, most);
    expert_cache_close(c);
}

/* ---- hit rates ------------------------------------------------------------------- */

/* Popularities of a layer's experts, 1 / rank^exponent in an order of its own. */
struct router {
    double sums[MAX_LAYERS][MAX_EXPERTS]; /* cumulated, by expert */
    double stay; /* probability that a token takes an expert of the last one again */
    int last[MAX_LAYERS][MAX_EXPERTS];
    int n_used;
    uint64_t rng;
};

static void make_router(struct router *r, double exponent, double stay, int n_used)
{
    *r = (struct router){.stay = stay, .n_used = n_used, .rng = 7};
    for (int l = 0; l < MAX_LAYERS; l++) {
        int order[MAX_EXPERTS];
        double sum = 0;

        for (int e = 0; e < MAX_EXPERTS; e++) {
            const int at = (int)random_below(&r->rng, (uint64_t)e + 1);

            order[e] = order[at];
            order[at] = e;
        }
        for (int e = 0; e < MAX_EXPERTS; e++)
            r->sums[l][e] = sum += pow(order[e] + 1, -exponent);
    }
}

static double uniform(struct router *r)
{
    return (double)random_below(&r->rng, 1 << 30) / (1 << 30);
}

static bool has(const int *list, int n, int e)
{
    for (int i = 0; i < n; i++)
        if (list[i] == e)
            return true;
    return false;
}

static void route(struct router *r, int layer, int *chosen)
{
    const double *sums = r->sums[layer];
    int n = 0;

    for (int i = 0; i < r->n_used; i++)
        if (uniform(r) < r->stay)
            chosen[n++] = r->last[layer][i];
    while (n < r->n_used) {
        const double at = uniform(r) * sums[MAX_EXPERTS - 1];
        int e = 0;

        while (sums[e] < at)
            e++;
        if (!has(chosen, n, e))
            chosen[n++] = e;
    }
    memcpy(r->last[layer], chosen, (size_t)n * sizeof *chosen);
}

/* The hit rate of n_tokens after as many, with room for a share of all experts. */
static double hit_rate(double exponent, double stay, double share, int n_tokens)
{
    struct router r;
    struct expert_cache *c =
        open_cache(MAX_LAYERS, MAX_EXPERTS, equal,
                   (uint64_t)(share * MAX_LAYERS * MAX_EXPERTS * 100) + 50);
    uint64_t hits0 = 0, uses0 = 0, hits, uses;
    int chosen[MAX_EXPERTS], evicted;

    make_router(&r, exponent, stay, 4);
    for (int t = 0; t < 2 * n_tokens; t++) {
        if (t == n_tokens)
            expert_cache_uses(c, &hits0, &uses0);
        expert_cache_begin(c, 1);
        for (int l = 0; l < MAX_LAYERS; l++) {
            route(&r, l, chosen);
            for (int i = 0; i < r.n_used; i++)
                expert_cache_take(c, l, chosen[i], 1, &evicted);
            expert_cache_give_back(c, l);
        }
    }
    expert_cache_uses(c, &hits, &uses);
    expert_cache_close(c);
    return (double)(hits - hits0) / (double)(uses - uses0);
}

/* The share of uses that falls on the most popular experts of each layer: what the best
 * constant choice would hit if a token could take an expert twice. */
static double best_constant(double exponent, double share)
{
    double sum = 0, top = 0;

    for (int e = 0; e < MAX_EXPERTS; e++) {
        sum += pow(e + 1, -exponent);
        if (e < share * MAX_EXPERTS)
            top += pow(e + 1, -exponent);
    }
    return top / sum;
}

static void hit_rates_follow_popularity_and_locality(void **state)
{
    (void)state;
    /* Equally popular experts: the share of them that is in memory. */
    assert_float_equal(hit_rate(0, 0, 0.25, 2000), 0.25, 0.03);
    assert_float_equal(hit_rate(0, 0, 0.5, 2000), 0.5, 0.03);
    /* Popular ones stay: near the best choice that knows the popularities (without
     * repeats in a token it is somewhat lower than this bound). */
    assert_true(hit_rate(1, 0, 0.25, 2000) > 0.88 * best_constant(1, 0.25));
    assert_true(hit_rate(1, 0, 0.5, 2000) > 0.93 * best_constant(1, 0.5));
    /* Those of the last token stay, too. */
    assert_true(hit_rate(0, 0.5, 0.25, 2000) > 0.5 + 0.5 * 0.25 - 0.03);
}

/* A text of another kind: other experts are popular, and soon they are in memory. */
static void old_uses_count_less(void **state)
{
    struct expert_cache *c = open_cache(1, 8, equal, 8 * 100);
    struct expert_cache *small = open_cache(2, 8, equal, 8 * 100);
    int evicted;

    (void)state;
    for (int t = 0; t < 5000; t++) {
        expert_cache_begin(small, 1);
        for (int e = 0; e < 8; e++)
            expert_cache_take(small, 0, e, 1, &evicted);
        expert_cache_give_back(small, 0);
    }
    for (int t = 0; t < EXPERT_CACHE_HALF_LIFE * 4; t++) {
        expert_cache_begin(small, 1);
        expert_cache_take(small, 1, 5, 1, &evicted);
        expert_cache_give_back(small, 1);
        expert_cache_take(small, 0, t % 8, 1, &evicted);
        expert_cache_give_back(small, 0);
    }
    assert_true(expert_cache_at(small, 1, 5) >= 0);
    /* A long prompt is one pass and counts as its tokens. */
    expert_cache_begin(c, 4096);
    assert_true(expert_cache_take(c, 0, 1, 4000, &evicted));
    expert_cache_close(c);
    expert_cache_close(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(too_little_room_is_refused),
        cmocka_unit_test(where_all_fit_all_are_read_once),
        cmocka_unit_test(what_is_taken_keeps_its_slot),
        cmocka_unit_test(free_slots_are_filled_evenly),
        cmocka_unit_test(slots_are_taken_away),
        cmocka_unit_test(hit_rates_follow_popularity_and_locality),
        cmocka_unit_test(old_uses_count_less),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
