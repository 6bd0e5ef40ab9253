/* SPDX-License-Identifier: MIT
 *
 * test_probe.c - the probe's loops read and compute what they claim
 *
 * No figure is compared with another one: a loaded machine must pass too.
 */
#include "tests/support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdatomic.h>
#include <time.h>

#include "harness/machine/probe.h"
#include "kernels/probe/evict.h"

#define KIB 1024

static struct topology *small_topology(void)
{
    struct topology *t = calloc(1, sizeof *t);

    assert_non_null(t);
    t->n_cpus = t->n_cores = t->n_allowed = t->n_allowed_cores = 1;
    t->n_packages = t->n_nodes = 1;
    t->cpu[0].allowed = true;
    t->threads_default = 1;
    t->mem_total = t->mem_available = (uint64_t)1 << 30;
    return t;
}

/* Every variant sums every word once, also for sizes that the streams do not
 * divide, and nothing beyond the end is touched (but prefetched). */
static void every_read_loop_reads_every_word(void **state)
{
    static const size_t sizes[] = {64, 128, 192, 4096, 4096 + 64 * 3, 64 * KIB - 64};
    static const size_t distances[] = {0, 512, 4096};
    size_t n_kernels;
    const struct probe_kernel *k = probe_kernels(&n_kernels);
    uint64_t seed = 3;

    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        uint64_t *p = guard_alloc(sizes[s]), sum = 0;

        for (size_t i = 0; i < sizes[s] / sizeof *p; i++)
            sum += p[i] = test_random(&seed);
        for (size_t i = 0; i < n_kernels; i++) {
            if (k[i].op != PROBE_OP_stream_read || !(isa_usable() >> k[i].isa & 1))
                continue;
            for (int n = 1; n <= 4; n *= 2)
                for (size_t a = 0; a < 3; a++)
                    assert_int_equal(k[i].fn.stream_read(p, sizes[s], n, distances[a]),
                                     sum);
        }
        guard_free(p, sizes[s]);
    }
}

/* Any part of a line at either end, up to a guard page; what was written just before is
 * still there. */
static void evicting_keeps_the_contents(void **state)
{
    enum { BYTES = 64 * KIB };
    static const struct {
        size_t begin, bytes;
    } ranges[] = {{0, BYTES},      {1, 1},         {63, 2},          {64, 64},
                  {4095, 2},       {BYTES - 1, 1}, {BYTES - 65, 65}, {7, BYTES - 7},
                  {BYTES - 64, 0}, {BYTES, 0}};
    unsigned char *p = guard_alloc(BYTES);

    (void)state;
    for (size_t r = 0; r < sizeof ranges / sizeof ranges[0]; r++) {
        for (size_t i = 0; i < BYTES; i++)
            p[i] = (unsigned char)(i * 7 + r);
        evict_from_caches(p + ranges[r].begin, ranges[r].bytes);
        for (size_t i = 0; i < BYTES; i++)
            assert_int_equal(p[i], (unsigned char)(i * 7 + r));
    }
    guard_free(p, BYTES);
}

/* Twice the rounds are twice the operations, and the result depends on them. */
static void every_peak_loop_counts_its_operations(void **state)
{
    size_t n_kernels;
    const struct probe_kernel *k = probe_kernels(&n_kernels);

    (void)state;
    for (size_t i = 0; i < n_kernels; i++) {
        uint64_t once = 0, twice = 0, sink[3] = {0, 0, 0};

        if (k[i].op == PROBE_OP_stream_read || !(isa_usable() >> k[i].isa & 1))
            continue;
        kern_peak_int8_fn *run = k[i].op == PROBE_OP_peak_int8
                                     ? k[i].fn.peak_int8
                                     : (kern_peak_int8_fn *)k[i].fn.peak_f32;
        run(0, &sink[0]);
        once = run(50, &sink[1]);
        twice = run(100, &sink[2]);
        assert_true(once > 0);
        assert_int_equal(twice, 2 * once);
        assert_int_not_equal(sink[0], sink[1]);
    }
}

static void the_scalar_level_is_always_there(void **state)
{
    (void)state;
    for (int op = PROBE_OP_stream_read; op <= PROBE_OP_peak_f32; op++) {
        const struct probe_kernel *k = probe_kernel_best((enum probe_op)op, 0);

        assert_non_null(k);
        assert_int_equal(k->isa, KERN_ISA_scalar);
        assert_true(probe_kernel_best((enum probe_op)op, isa_usable())->isa >= k->isa);
    }
}

/* A pass asserts the sum of all words. */
static void read_well(const struct probe_buffer *b, struct thread_pool *pool)
{
    const struct probe_read_way way = probe_read_tune(b, pool, isa_usable());

    assert_non_null(way.kernel);
    for (int i = 0; i < 2; i++)
        assert_true(probe_read_pass(b, pool, &way) > 0);
}

static void reading_is_plausible(void **state)
{
    static const uint64_t sizes[] = {1, 64 * KIB, 5 * 1024 * KIB + 4096};
    struct topology *topo = small_topology();

    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads++)
        for (size_t i = 0; i < 3; i++)
            for (int pages = MEM_PAGES_4K; pages <= MEM_PAGES_2M; pages++) {
                struct probe_buffer b = {.huge_bytes = 0};
                struct err err = ERR_INIT;
                struct thread_pool *pool;

                assert_int_equal(thread_pool_start(&pool, n_threads, NULL, &err),
                                 ST_OK);
                assert_int_equal(probe_buffer_open(&b, pool, sizes[i],
                                                   (enum mem_pages)pages, topo, &err),
                                 ST_OK);
                assert_true(b.bytes >= sizes[i] && b.bytes % 4096 == 0);
                read_well(&b, pool);
                if (pages == MEM_PAGES_4K)
                    assert_int_equal(b.huge_bytes, 0);
                probe_buffer_close(&b);
                probe_buffer_close(&b);
                assert_null(b.base);
                thread_pool_stop(pool);
            }
    free(topo);
}

static void borrowed_memory_stays_as_it_is(void **state)
{
    static _Alignas(64) uint64_t words[3 * 512 + 7];
    struct probe_buffer b;
    struct err err = ERR_INIT;
    struct thread_pool *pool;
    uint64_t sum = 0, seed = 1;

    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        words[i] = test_random(&seed);
    for (size_t i = 0; i < 3 * 512; i++)
        sum += words[i];
    assert_int_equal(thread_pool_start(&pool, 2, NULL, &err), ST_OK);
    probe_buffer_borrow(&b, pool, words, sizeof words, MEM_PAGES_4K);
    assert_int_equal(b.bytes, 3 * 4096);
    assert_true(b.sum == sum);
    read_well(&b, pool);
    seed = 1;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        assert_true(words[i] == test_random(&seed));

    /* others may cut a mapped file: whoever owns the memory finds that, not we */
    const struct probe_read_way way = probe_way_find(&b, pool, isa_usable());
    words[512] += 1;
    assert_true(probe_read_pass(&b, pool, &way) > 0);
    probe_buffer_close(&b);
    thread_pool_stop(pool);
}

/* A thread that is stopped in its first chunk until the others have read most of the
 * buffer: with equal shares they never would. */
static struct {
    const struct probe_kernel *real;
    size_t total;
    atomic_size_t n_read;
    atomic_bool stopped, in_time;
} uneven;

static uint64_t read_unevenly(const void *p, size_t bytes, int n_streams,
                              size_t distance)
{
    const bool first = !atomic_exchange(&uneven.stopped, true);
    const time_t end = time(NULL) + 60;
    bool most = false;

    while (first && !most && time(NULL) < end) {
        most = atomic_load(&uneven.n_read) >= uneven.total / 10 * 8;
        usleep(1000);
    }
    if (first)
        atomic_store(&uneven.in_time, most);
    atomic_fetch_add(&uneven.n_read, bytes);
    return uneven.real->fn.stream_read(p, bytes, n_streams, distance);
}

static void others_read_for_a_slow_thread(void **state)
{
    static const size_t sizes[] = {128 * KIB, 40 * KIB * KIB + 4096};
    const struct probe_kernel slow = {.op = PROBE_OP_stream_read,
                                      .fn.stream_read = read_unevenly};
    const struct probe_read_way way = {&slow, 1, 0};
    struct topology *topo = small_topology();

    (void)state;
    uneven.real = probe_kernel_best(PROBE_OP_stream_read, 0);
    for (int n_threads = 2; n_threads <= 3; n_threads++)
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct probe_buffer b = {.huge_bytes = 0};
            struct err err = ERR_INIT;
            struct thread_pool *pool;

            assert_int_equal(thread_pool_start(&pool, n_threads, NULL, &err), ST_OK);
            assert_int_equal(
                probe_buffer_open(&b, pool, sizes[i], MEM_PAGES_4K, topo, &err), ST_OK);
            uneven.total = b.bytes;
            atomic_store(&uneven.n_read, 0);
            atomic_store(&uneven.stopped, false);
            probe_read_pass(&b, pool, &way);
            assert_true(uneven.in_time);
            assert_int_equal(uneven.n_read, b.bytes);
            probe_buffer_close(&b);
            thread_pool_stop(pool);
        }
    free(topo);
}

static void automatic_size_respects_the_limit(void **state)
{
    struct topology *topo = small_topology();
    struct probe_buffer b = {.huge_bytes = 0};
    struct err err = ERR_INIT;
    struct thread_pool *pool;

    (void)state;
    topo->llc_bytes = (uint64_t)1 << 30; /* of no importance */
    topo->mem_limit = 32 << 20;
    assert_int_equal(thread_pool_start(&pool, 1, NULL, &err), ST_OK);
    assert_int_equal(probe_buffer_open(&b, pool, 0, MEM_PAGES_4K, topo, &err), ST_OK);
    assert_int_equal(b.bytes, 8 << 20);
    probe_buffer_close(&b);
    topo->mem_limit = 0;
    assert_int_equal(probe_buffer_open(&b, pool, 0, MEM_PAGES_4K, topo, &err), ST_OK);
    assert_int_equal(b.bytes, 256 << 20);
    probe_buffer_close(&b);
    thread_pool_stop(pool);
    free(topo);
    assert_int_equal(probe_pass_bytes(2), 256 << 20);
    assert_int_equal(probe_pass_bytes(96), 96 * (16 << 20));
    setenv("SLMBENCH_PROBE", "rough", 1);
    assert_int_equal(probe_pass_bytes(2), 16 << 20);
    assert_int_equal(probe_pass_bytes(96), 96 << 20);
    unsetenv("SLMBENCH_PROBE");
}

/* Passes that a kernel was called for, by any thread. */
static atomic_size_t n_tried;

static uint64_t count_reads(const void *p, size_t bytes, int n_streams, size_t distance)
{
    atomic_fetch_add(&n_tried, 1);
    return uneven.real->fn.stream_read(p, bytes, n_streams, distance);
}

/* A part is the beginning of each share. */
static void parts_are_of_every_share(void **state)
{
    const struct probe_kernel counting = {.op = PROBE_OP_stream_read,
                                          .fn.stream_read = count_reads};
    const struct probe_read_way way = {&counting, 1, 0};
    struct topology *topo = small_topology();
    struct probe_buffer b = {.huge_bytes = 0};
    struct err err = ERR_INIT;
    struct thread_pool *pool;

    (void)state;
    uneven.real = probe_kernel_best(PROBE_OP_stream_read, 0);
    assert_int_equal(thread_pool_start(&pool, 2, NULL, &err), ST_OK);
    assert_int_equal(probe_buffer_open(&b, pool, 64 * 4096, MEM_PAGES_4K, topo, &err),
                     ST_OK);
    atomic_store(&n_tried, 0);
    assert_true(probe_read_part(&b, pool, &way, 4096) > 0);
    assert_int_equal(n_tried, 2); /* chunks are larger */
    atomic_store(&n_tried, 0);
    assert_true(probe_read_part(&b, pool, &way, SIZE_MAX) > 0);
    assert_int_equal(n_tried, 16);
    probe_buffer_close(&b);
    thread_pool_stop(pool);
    free(topo);
}

/* The fastest way is found once for the same threads, CPUs and pages, and what another
 * process found is believed if it is a way. */
static void a_way_is_kept(void **state)
{
    struct topology *topo = small_topology();
    struct probe_buffer b = {.huge_bytes = 0};
    struct probe_read_way way;
    struct err err = ERR_INIT;
    struct thread_pool *pool;
    json_t *ways, *list, *before = probe_ways_json();
    const char *key;

    (void)state;
    assert_int_equal(json_object_size(before), 0);
    assert_int_equal(thread_pool_start(&pool, 2, NULL, &err), ST_OK);
    assert_int_equal(probe_buffer_open(&b, pool, 16 << 20, MEM_PAGES_4K, topo, &err),
                     ST_OK);
    b.bytes = 64 * KIB; /* of a tiny model */
    probe_way_find(&b, pool, isa_usable());
    json_decref(before);
    before = probe_ways_json();
    assert_int_equal(json_object_size(before), 0);
    b.bytes = 16 << 20;
    way = probe_way_find(&b, pool, isa_usable());
    assert_ptr_equal(way.kernel, probe_kernel_best(PROBE_OP_stream_read, isa_usable()));
    ways = probe_ways_json();
    assert_int_equal(json_object_size(ways), 1);

    json_object_foreach(ways, key, list)
    {
        json_t *other = json_pack("{s:[i, i]}", key, 4, 512);
        json_t *none = json_pack("{s:[i, i], s:s}", key, 3, 77, "x", "y");

        probe_ways_take(other);
        probe_ways_take(none);
        probe_ways_take(NULL);
        json_decref(other);
        json_decref(none);
    }
    way = probe_way_find(&b, pool, isa_usable());
    assert_int_equal(way.n_streams, 4);
    assert_int_equal(way.prefetch_bytes, 512);
    b.pages = MEM_PAGES_2M; /* others have ways of their own */
    probe_way_find(&b, pool, isa_usable());
    thread_pool_use(pool, 1);
    probe_way_find(&b, pool, isa_usable());
    json_decref(ways);
    ways = probe_ways_json();
    assert_int_equal(json_object_size(ways), 3);
    json_decref(ways);
    json_decref(before);
    probe_buffer_close(&b);
    thread_pool_stop(pool);
    free(topo);
}

static void compute_reports_the_level_used(void **state)
{
    struct err err = ERR_INIT;
    struct thread_pool *pool;
    double gops = 0;

    (void)state;
    assert_int_equal(thread_pool_start(&pool, 1, NULL, &err), ST_OK);
    assert_int_equal(probe_compute(PROBE_PEAK_INT8, 0, pool, 1, &gops),
                     KERN_ISA_scalar);
    assert_true(gops > 0);
    gops = 0;
    probe_compute(PROBE_PEAK_F32, isa_usable(), pool, 1, &gops);
    assert_true(gops > 0);
    thread_pool_stop(pool);
}

/* Number of files left in a directory is the same before and after. */
static void disk_leaves_nothing_behind(void **state)
{
    char dir[] = "probe-test-XXXXXX", path[64];
    double gbps[2] = {0};
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(mkdtemp(dir));
    const enum status st = probe_disk(dir, 4 << 20, NULL, 2, gbps, &err);
    if (st == ST_OK)
        assert_true(gbps[0] > 0 && gbps[1] > 0);
    else
        assert_true((st == ST_UNSUPPORTED || st == ST_NO_MEMORY) && err.msg[0]);

    err_clear(&err);
    snprintf(path, sizeof path, "%s/small", dir);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    assert_int_equal(probe_disk(path, 4 << 20, NULL, 1, gbps, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "0 bytes"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0); /* fails unless empty */

    err_clear(&err);
    assert_int_equal(probe_disk(dir, 4 << 20, NULL, 1, gbps, &err), ST_IO);
    assert_non_null(strstr(err.msg, dir));
}

/* A file below the usual request is read in smaller ones, and refused in the usual. */
static void disk_is_read_as_asked(void **state)
{
    const struct probe_disk_way way = {.request_bytes = 64 << 10, .depth = 3};
    char dir[] = "probe-test-XXXXXX", path[64];
    double gbps[2] = {0};
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
    const int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 10 * (64 << 10) + 1), 0);
    close(fd);

    assert_int_equal(probe_disk(path, 1 << 30, NULL, 1, gbps, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "1.00 MiB"));
    err_clear(&err);
    const enum status st = probe_disk(path, 1 << 30, &way, 2, gbps, &err);
    if (st == ST_OK)
        assert_true(gbps[0] > 0 && gbps[1] > 0);
    else
        assert_true(st == ST_UNSUPPORTED && err.msg[0]);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static void memory_is_no_disk(void **state)
{
    struct err err = ERR_INIT;
    double gbps;

    (void)state;
    if (access("/dev/shm", W_OK))
        skip();
    const enum status st = probe_disk("/dev/shm", 1 << 20, NULL, 1, &gbps, &err);
    assert_true(st == ST_UNSUPPORTED || st == ST_NO_MEMORY);
}

static void report_has_every_row(void **state)
{
    struct topology *topo = small_topology();
    struct probe_params params = {.topo = topo,
                                  .placement = PLACEMENT_NONE,
                                  .max_threads = 2,
                                  .bytes = 1 << 20,
                                  .n_passes = 2,
                                  .isa_mask = isa_usable()};
    struct probe_report r;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(probe_all(&r, &params, &err), ST_OK);
    assert_int_equal(r.n_read_rows, 4);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(r.read[i].n_threads, 1 + i / 2);
        assert_int_equal(r.read[i].gbps.n, 2);
        assert_true(r.read[i].gbps.min > 0);
    }
    assert_true(r.int8_gops[1].median > 0 && r.f32_gops[0].median > 0);
    assert_false(r.has_disk);

    json_t *json = probe_report_json(&r);
    assert_non_null(json);
    assert_int_equal(json_array_size(json_object_get(json, "read")), 4);
    assert_non_null(json_object_get(json_object_get(json, "disk"), "why_not"));
    json_decref(json);
    probe_report_free(&r);

    params.max_threads = 0;
    assert_int_equal(probe_all(&r, &params, &err), ST_USAGE);
    free(topo);
}

/* What follows is the arithmetic of the roofs, and only of those there are. */
static void advice_follows_from_the_roofs(void **state)
{
    struct probe_read_row rows[] = {
        {.n_threads = 1, .bytes = 1 << 30, .gbps.median = 10},
        {.n_threads = 2, .bytes = 1 << 30, .gbps.median = 52},
        {.n_threads = 4, .bytes = 1 << 30, .gbps.median = 53},
    };
    struct probe_report r = {.n_read_rows = 3,
                             .read = rows,
                             .validity = "valid",
                             .n_peak_threads = 4,
                             .int8_gops = {{.median = 300}, {.median = 921.6}},
                             .has_disk = true,
                             .disk_gbps.median = 0.53};
    struct topo_advice advice[PROBE_MAX_ADVICE];
    struct topology *topo = calloc(1, sizeof *topo);

    (void)state;
    assert_non_null(topo);
    topo->llc_bytes = 32 << 20;
    topo->mem_available = UINT64_C(64) << 30;
    assert_int_equal(probe_advice(&r, topo, advice), 3);
    assert_non_null(strstr(advice[0].text, "at most 10.0 tok/s with 4 threads"));
    assert_non_null(strstr(advice[0].text, "at 53.0 GB/s from memory. 2 threads read"));
    assert_null(strstr(advice[0].text, "does not fit"));
    assert_non_null(strstr(advice[1].text, "at least 10.0 s: "));
    assert_non_null(strstr(advice[1].text, "at 922 GOPS in int8 with 4 threads"));
    assert_non_null(strstr(advice[2].text, "reading 5.3 GB takes at least 10.0 s"));

    topo->unused_units = 1;
    assert_int_equal(probe_advice(&r, topo, advice), 4);
    assert_non_null(strstr(advice[2].text, "no kernel here uses AMX-FP16"));
    topo->unused_units = 0;

    topo->mem_available = UINT64_C(2) << 30;
    strcpy(r.validity, "disturbed: others 30 %");
    r.n_peak_threads = 1;
    r.has_disk = false;
    assert_int_equal(probe_advice(&r, topo, advice), 3);
    assert_non_null(strstr(advice[0].text, "Here it does not fit"));
    assert_non_null(strstr(advice[1].text, "at 300 GOPS in int8 with 1 thread."));
    assert_non_null(strstr(advice[2].text, "busy machine (disturbed: others 30 %)"));

    topo->llc_bytes = UINT64_C(2) << 30; /* the buffer was in no cache */
    assert_int_equal(probe_advice(&r, topo, advice), 3);
    assert_non_null(strstr(advice[0].text, "tok/s"));
    free(topo);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_read_loop_reads_every_word),
        cmocka_unit_test(evicting_keeps_the_contents),
        cmocka_unit_test(every_peak_loop_counts_its_operations),
        cmocka_unit_test(the_scalar_level_is_always_there),
        cmocka_unit_test(reading_is_plausible),
        cmocka_unit_test(borrowed_memory_stays_as_it_is),
        cmocka_unit_test(others_read_for_a_slow_thread),
        cmocka_unit_test(automatic_size_respects_the_limit),
        cmocka_unit_test(parts_are_of_every_share),
        cmocka_unit_test(a_way_is_kept),
        cmocka_unit_test(compute_reports_the_level_used),
        cmocka_unit_test(disk_leaves_nothing_behind),
        cmocka_unit_test(disk_is_read_as_asked),
        cmocka_unit_test(memory_is_no_disk),
        cmocka_unit_test(report_has_every_row),
        cmocka_unit_test(advice_follows_from_the_roofs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
