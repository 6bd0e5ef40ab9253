/* SPDX-License-Identifier: MIT
 *
 * test_cache.c - the size of the last-level cache: found on made-up machines, kept, and
 * the answer of one function
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/machine/cache.h"

#define MIB ((uint64_t)1 << 20)

/* Memory takes 80 ps a byte, the cache 40. It serves sets up to 0.8 of its size whole,
 * sets of 1.6 not at all, of 1.2 the half. */
struct machine {
    double cache_bytes, noise;
    uint64_t reported;
    uint64_t room;          /* bytes that can be read at all */
    int n_reads, max_reads; /* 0: any */
    uint64_t max_read;
    unsigned random;
};

static double ns(struct machine *m, double served)
{
    m->random = m->random * 1664525u + 1013904223u;
    return (0.08 - 0.04 * served) *
           (1 + m->noise * ((double)(m->random >> 16) / 65536 - 0.5));
}

static bool read_set(void *arg, uint64_t bytes, struct cache_point *p)
{
    struct machine *m = arg;
    const double of = (double)bytes / m->cache_bytes;

    if (bytes > m->room || (m->max_reads && m->n_reads == m->max_reads))
        return false;
    m->n_reads++;
    m->max_read = bytes > m->max_read ? bytes : m->max_read;
    p->again_gbps = 1 / ns(m, fmax(0, fmin(1, (1.6 - of) / 0.8)));
    p->evicted_gbps = 1 / ns(m, 0);
    return true;
}

static struct topo_llc find(struct machine *m, uint64_t start, uint64_t from,
                            uint64_t most)
{
    const struct cache_search s = {.start = start,
                                   .from = from,
                                   .most = most,
                                   .reported = m->reported,
                                   .read = read_set,
                                   .arg = m};

    return cache_search(&s);
}

static void finds_caches_of_all_sizes(void **state)
{
    static const double mib[] = {4, 20, 32, 80, 300, 480, 1126};

    (void)state;
    for (size_t i = 0; i < sizeof mib / sizeof *mib; i++)
        for (int noisy = 0; noisy < 2; noisy++) {
            struct machine m = {.cache_bytes = mib[i] * (double)MIB,
                                .noise = noisy * 0.1,
                                .room = UINT64_MAX};
            const struct topo_llc llc = find(&m, MIB, 0, 4096 * MIB);

            assert_in_range(llc.bytes, (uint64_t)(1.05 * m.cache_bytes),
                            (uint64_t)(1.35 * m.cache_bytes));
            assert_true(llc.lo < llc.bytes && llc.bytes < llc.hi);
            assert_true(llc.hi < 2 * m.cache_bytes);
            /* neither more is read nor touched than the cache needs */
            assert_in_range(m.n_reads, 1, 32);
            assert_true((double)m.max_read <= 2.5 * m.cache_bytes);
        }
}

/* Where the size is expected, the sizes before it are left out. */
static void begins_near_what_is_expected(void **state)
{
    struct machine m = {.cache_bytes = 80.0 * MIB, .room = UINT64_MAX};
    struct machine n = m;

    (void)state;
    find(&m, MIB, 0, 4096 * MIB);
    const struct topo_llc llc = find(&n, MIB, 48 * MIB, 4096 * MIB);
    assert_in_range(llc.bytes, 84 * MIB, 108 * MIB);
    assert_true(n.n_reads < m.n_reads);
}

/* Whenever time is over, there is an answer, and its range holds what is true. */
static void time_can_end(void **state)
{
    (void)state;
    for (int n = 1; n < 24; n++) {
        struct machine m = {.cache_bytes = 80.0 * MIB,
                            .reported = 300 * MIB,
                            .room = UINT64_MAX,
                            .max_reads = n};
        const struct topo_llc llc = find(&m, 4 * MIB, 0, 600 * MIB);

        assert_true(llc.bytes > 0 && llc.lo <= llc.bytes && llc.bytes <= llc.hi);
        assert_true(llc.hi >= 96 * MIB);
        assert_true(llc.bytes < 128 * MIB); /* which was not served, if it was read */
    }
}

static void limits_are_answers_too(void **state)
{
    struct machine none = {.cache_bytes = 1, .noise = 0.05, .room = UINT64_MAX};
    struct machine huge = {.cache_bytes = 1e15, .room = UINT64_MAX};
    struct machine tight = {.cache_bytes = 1e15, .room = 64 * MIB};
    struct machine empty = {.cache_bytes = 1, .room = 0};
    struct topo_llc llc = find(&none, 8 * MIB, 0, 600 * MIB);

    (void)state;
    assert_int_equal(llc.bytes, 4 * MIB); /* not what a set was found to be served of */
    assert_int_equal(llc.hi, 8 * MIB);
    llc = find(&huge, 8 * MIB, 0, 600 * MIB);
    assert_int_equal(llc.bytes, 600 * MIB);
    llc = find(&tight, 8 * MIB, 0, 600 * MIB);
    assert_int_equal(llc.bytes, 64 * MIB); /* at least */
    assert_int_equal(llc.hi, 128 * MIB);
    tight.reported = 300 * MIB;
    assert_int_equal(find(&tight, 8 * MIB, 0, 600 * MIB).hi, 300 * MIB);
    tight.reported = 4 * MIB;
    assert_int_equal(find(&tight, 8 * MIB, 0, 600 * MIB).hi, 128 * MIB);
    llc = find(&empty, 8 * MIB, 0, 600 * MIB);
    assert_int_equal(llc.bytes, 0);
}

/* What is reported is no bound, neither above nor below. */
static void reported_sizes_are_no_bound(void **state)
{
    static const uint64_t reported[] = {0, MIB, 4 * MIB, 480 * MIB};

    (void)state;
    for (size_t i = 0; i < sizeof reported / sizeof *reported; i++) {
        struct machine m = {
            .cache_bytes = 80.0 * MIB, .reported = reported[i], .room = UINT64_MAX};
        const struct topo_llc llc = find(&m, MIB, 0, 4096 * MIB);

        assert_in_range(llc.bytes, 84 * MIB, 108 * MIB);
        assert_in_range(llc.hi, llc.bytes, 160 * MIB);
    }
}

/* ---- the answer ------------------------------------------------------------------ */

static void measured_before_reported(void **state)
{
    struct topology *t = calloc(1, sizeof *t);
    char text[200];

    (void)state;
    assert_int_equal(topology_cache(t, 1).bytes, 0);
    assert_string_equal(topology_cache_text(t, text, sizeof text),
                        "no size reported, not measured");
    t->llc_bytes = 480 * MIB;
    assert_int_equal(topology_cache(t, 4).bytes, 480 * MIB);
    assert_int_equal(topology_cache(t, 4).lo, 480 * MIB);
    t->llc_one = (struct topo_llc){32 * MIB, 30 * MIB, 34 * MIB};
    t->llc_all = (struct topo_llc){64 * MIB, 48 * MIB, 96 * MIB};
    t->llc_threads = 5;
    assert_int_equal(topology_cache(t, 1).bytes, 32 * MIB);
    assert_int_equal(topology_cache(t, 3).bytes, 48 * MIB);
    assert_int_equal(topology_cache(t, 5).bytes, 64 * MIB);
    assert_int_equal(topology_cache(t, 8).hi, 96 * MIB);
    assert_string_equal(topology_cache_text(t, text, sizeof text),
                        "480 MiB reported, about 64 MiB of it serve this machine (48 "
                        "to 96; one thread: 32 MiB, 30 to 34)");
    t->llc_disturbed = true;
    assert_string_equal(
        topology_cache_text(t, text, sizeof text),
        "480 MiB reported, at least 64 MiB of it serve this machine (48 "
        "to 96; one thread: 32 MiB, 30 to 34; other programs used the "
        "CPUs)");
    t->llc_disturbed = false;
    t->llc_bytes = 60 * MIB;
    assert_string_equal(
        topology_cache_text(t, text, sizeof text),
        "60.0 MiB reported, and sets of up to about 64 MiB are read from it "
        "(48 to 96; one thread: 32 MiB, 30 to 34)");
    t->llc_bytes = 0;
    assert_string_equal(
        topology_cache_text(t, text, sizeof text),
        "no size reported, about 64 MiB serve this machine (48 to 96; one "
        "thread: 32 MiB, 30 to 34)");
    free(t);
}

static void is_kept_in_json(void **state)
{
    struct topology *t = calloc(1, sizeof *t), *back = calloc(1, sizeof *back);
    json_t *object;

    (void)state;
    t->llc_bytes = 480 * MIB;
    object = topology_json(t);
    topology_cache_from_json(back, json_object_get(object, "cpu"));
    json_decref(object);
    assert_int_equal(topology_cache(back, 2).bytes, 480 * MIB);
    t->llc_one = (struct topo_llc){32 * MIB, 30 * MIB, 34 * MIB};
    t->llc_all = (struct topo_llc){64 * MIB, 48 * MIB, 96 * MIB};
    t->llc_threads = 2;
    t->llc_disturbed = true;
    object = topology_json(t);
    topology_cache_from_json(back, json_object_get(object, "cpu"));
    assert_int_equal(back->llc_bytes, 480 * MIB);
    assert_int_equal(back->llc_threads, 2);
    assert_true(back->llc_disturbed);
    assert_int_equal(topology_cache(back, 2).lo, 48 * MIB);
    assert_int_equal(topology_cache(back, 1).hi, 34 * MIB);

    /* invalid sizes are ignored */
    json_t *all = json_object_get(
        json_object_get(json_object_get(object, "cpu"), "llc_measured"), "all_threads");
    json_object_set_new(all, "lo", json_integer(-1));
    topology_cache_from_json(back, json_object_get(object, "cpu"));
    assert_int_equal(topology_cache(back, 1).bytes, 480 * MIB);
    json_decref(object);

    /* a file from before */
    object = json_pack("{s:i}", "llc_bytes", 4096);
    topology_cache_from_json(back, object);
    assert_int_equal(topology_cache(back, 1).bytes, 4096);
    json_decref(object);
    topology_cache_from_json(back, NULL);
    assert_int_equal(topology_cache(back, 1).bytes, 0);
    free(t);
    free(back);
}

static void a_part_is_named(void **state)
{
    const struct topo_llc llc = {64, 48, 96};

    (void)state;
    assert_int_equal(topology_cached(&llc, 64), TOPO_CACHED);
    assert_int_equal(topology_cached(&llc, 65), TOPO_CACHED_PARTLY);
    assert_int_equal(topology_cached(&llc, 192), TOPO_CACHED_PARTLY);
    assert_int_equal(topology_cached(&llc, 193), TOPO_CACHED_NOT);
    assert_int_equal(topology_cached(&(struct topo_llc){0}, 1), TOPO_CACHED_NOT);
}

/* This machine, whatever comes out, also where much less memory is left. */
static void this_machine(void **state)
{
    struct topology *t = calloc(1, sizeof *t);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(topology_read(t, "", &err), ST_OK);
    assert_int_equal(cache_find(t, &err), ST_OK);
    if (t->llc_all.bytes) {
        assert_true(t->llc_all.lo <= t->llc_all.bytes);
        assert_true(t->llc_all.bytes <= t->llc_all.hi);
    }
    t->llc_all = t->llc_one = (struct topo_llc){0};
    t->llc_bytes = 1126 * MIB;
    t->mem_available = 16 * MIB;
    assert_int_equal(cache_find(t, &err), ST_OK);
    free(t);
}

static void a_known_size_is_not_measured(void **state)
{
    struct topology *t = calloc(1, sizeof *t);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(topology_read(t, "", &err), ST_OK);
    setenv("SLMBENCH_LLC", "64M", 1);
    assert_int_equal(cache_find(t, &err), ST_OK);
    assert_int_equal(t->llc_all.bytes, 64 * MIB);
    assert_int_equal(t->llc_one.lo, 64 * MIB);
    assert_int_equal(t->llc_one.hi, 64 * MIB);
    t->llc_all = t->llc_one = (struct topo_llc){0};
    setenv("SLMBENCH_LLC", "none", 1);
    assert_int_equal(cache_find(t, &err), ST_OK);
    assert_int_equal(t->llc_all.bytes, 0);
    setenv("SLMBENCH_LLC", "large", 1);
    assert_int_equal(cache_find(t, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "SLMBENCH_LLC: 'large' is not a size"));
    unsetenv("SLMBENCH_LLC");
    free(t);
}

static void is_found_where_it_decides(void **state)
{
    struct topology *t = calloc(1, sizeof *t);
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(topology_read(t, "", &err), ST_OK);
    t->llc_bytes = 300 * MIB;
    t->n_caches = 2;
    t->cache[0] = (struct topo_cache){.level = 2, .bytes = 2 * MIB, .n_instances = 1};
    t->cache[1] = (struct topo_cache){.level = 3, .bytes = 300 * MIB, .n_instances = 1};
    assert_int_equal(cache_find_for(t, 1, &err), ST_OK); /* the first levels hold it */
    assert_int_equal(cache_find_for(t, 301 * MIB, &err), ST_OK); /* not even reported */
    assert_int_equal(t->llc_all.bytes, 0);
    free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_caches_of_all_sizes),
        cmocka_unit_test(begins_near_what_is_expected),
        cmocka_unit_test(time_can_end),
        cmocka_unit_test(limits_are_answers_too),
        cmocka_unit_test(reported_sizes_are_no_bound),
        cmocka_unit_test(a_known_size_is_not_measured),
        cmocka_unit_test(is_found_where_it_decides),
        cmocka_unit_test(measured_before_reported),
        cmocka_unit_test(is_kept_in_json),
        cmocka_unit_test(a_part_is_named),
        cmocka_unit_test(this_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
