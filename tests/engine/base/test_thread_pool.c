/* SPDX-License-Identifier: MIT
 *
 * test_thread_pool.c - the thread pool: barriers, work counter, placement,
 * oversubscription
 */
#include <sched.h>
#include <stdatomic.h>

#include "engine/base/thread_pool.h"
#include "tests/support/test.h"

#define MAX_MEMBERS 16
#define MANY        53 /* that wake each other, and arrive in groups */

struct shared {
    struct thread_pool *pool;
    int n_rounds;
    int value[MANY]; /* one per thread, written without atomics */
    atomic_int n_wrong;
    size_t n_items;
    unsigned char *taken; /* [n_items] */
    atomic_size_t n_taken;
    int cpu[MAX_MEMBERS];
};

static struct thread_pool *start(int n, const int *cpus)
{
    struct err err = ERR_INIT;
    struct thread_pool *pool = NULL;

    assert_int_equal(thread_pool_start(&pool, n, cpus, &err), ST_OK);
    assert_int_equal(thread_pool_size(pool), n);
    return pool;
}

/* Each round everyone writes, passes the barrier, and must see what all wrote. */
static void rounds(void *arg, int thread, int n_threads)
{
    struct shared *s = arg;

    for (int round = 1; round <= s->n_rounds; round++) {
        s->value[thread] = round * 100 + thread;
        thread_pool_barrier(s->pool);
        for (int i = 0; i < n_threads; i++)
            if (s->value[i] != round * 100 + i)
                atomic_fetch_add(&s->n_wrong, 1);
        thread_pool_barrier(s->pool);
    }
}

static void test_barrier_publishes(void **state)
{
    (void)state;
    for (int n = 1; n <= MAX_MEMBERS; n *= 2) {
        struct shared s = {.pool = start(n, NULL), .n_rounds = 300};

        for (int run = 0; run < 10; run++)
            thread_pool_run(s.pool, rounds, &s);
        assert_int_equal(atomic_load(&s.n_wrong), 0);
        for (int i = 0; i < n; i++)
            assert_int_equal(s.value[i], 300 * 100 + i);
        thread_pool_stop(s.pool);
    }
}

/* Two counted loops with a barrier between: the second starts at 0 again. */
static void take_items(void *arg, int thread, int n_threads)
{
    struct shared *s = arg;

    (void)thread;
    (void)n_threads;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i; (i = thread_pool_next(s->pool, 3)) < s->n_items;)
            for (size_t k = i; k < i + 3 && k < s->n_items; k++) {
                s->taken[k]++;
                atomic_fetch_add(&s->n_taken, 1);
            }
        thread_pool_barrier(s->pool);
    }
}

static void test_next_hands_out_each_item_once(void **state)
{
    (void)state;
    for (int n = 1; n <= 8; n++) {
        unsigned char taken[1000] = {0};
        struct shared s = {
            .pool = start(n, NULL), .n_items = sizeof taken, .taken = taken};

        thread_pool_run(s.pool, take_items, &s);
        thread_pool_run(s.pool, take_items, &s);
        for (size_t i = 0; i < sizeof taken; i++)
            assert_int_equal(taken[i], 4);
        assert_int_equal(atomic_load(&s.n_taken), 4 * sizeof taken);
        thread_pool_stop(s.pool);
    }
}

/* Every count up and down again: each run is for the first threads only, and the
 * barrier waits for no others. Three times more threads than CPUs may be there. */
static void test_runs_on_the_first_threads(void **state)
{
    struct shared s = {.pool = start(MAX_MEMBERS, NULL), .n_rounds = 20};

    (void)state;
    assert_int_equal(thread_pool_capacity(s.pool), MAX_MEMBERS);
    for (int i = 0; i < 40; i++) {
        const int n = i % 2 ? 1 + i % MAX_MEMBERS : MAX_MEMBERS - i % MAX_MEMBERS;

        memset(s.value, 0, sizeof s.value);
        thread_pool_use(s.pool, n);
        assert_int_equal(thread_pool_size(s.pool), n);
        thread_pool_run(s.pool, rounds, &s);
        for (int m = 0; m < MAX_MEMBERS; m++)
            assert_int_equal(s.value[m], m < n ? 20 * 100 + m : 0);
    }
    assert_int_equal(atomic_load(&s.n_wrong), 0);
    thread_pool_stop(s.pool);
}

/* Numbers of threads that fill their last group, or leave one thread in it. */
static void test_many_threads(void **state)
{
    static const int counts[] = {MANY, 17, 48, 1, 33, 16, 49, 2, 32, 5, MANY};
    unsigned char taken[1000];
    struct shared s = {.pool = start(MANY, NULL),
                       .n_rounds = 5,
                       .n_items = sizeof taken,
                       .taken = taken};

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        memset(s.value, 0, sizeof s.value);
        memset(taken, 0, sizeof taken);
        thread_pool_use(s.pool, counts[i]);
        thread_pool_run(s.pool, rounds, &s);
        for (int m = 0; m < MANY; m++)
            assert_int_equal(s.value[m], m < counts[i] ? 5 * 100 + m : 0);
        thread_pool_run(s.pool, take_items, &s);
        for (size_t k = 0; k < sizeof taken; k++)
            assert_int_equal(taken[k], 2);
    }
    assert_int_equal(atomic_load(&s.n_wrong), 0);
    thread_pool_stop(s.pool);
}

/* Stopping wakes threads that have slept through every run. */
static void test_stops_threads_never_used(void **state)
{
    struct shared s = {.pool = start(MAX_MEMBERS, NULL), .n_rounds = 1};

    (void)state;
    thread_pool_use(s.pool, 2);
    thread_pool_run(s.pool, rounds, &s);
    thread_pool_stop(s.pool);
    assert_int_equal(atomic_load(&s.n_wrong), 0);
}

/* All threads on one CPU, and back to fewer than there are: whoever waits must let
 * the others run. */
static void test_survives_one_cpu(void **state)
{
    cpu_set_t mask;
    int cpus[MAX_MEMBERS], cpu = 0;
    struct shared s = {.n_rounds = 50};

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof mask, &mask), 0);
    while (!CPU_ISSET((size_t)cpu, &mask))
        cpu++;
    for (int i = 0; i < MAX_MEMBERS; i++)
        cpus[i] = cpu;
    s.pool = start(MAX_MEMBERS, cpus);
    for (int n = MAX_MEMBERS; n >= 1; n /= 2) {
        thread_pool_use(s.pool, n);
        thread_pool_run(s.pool, rounds, &s);
    }
    assert_int_equal(atomic_load(&s.n_wrong), 0);
    thread_pool_stop(s.pool);
}

struct confined {
    struct shared s;
    cpu_set_t mask, before;
};

/* Each thread moves to the one CPU of the mask, passes barriers, and moves back. */
static void rounds_on_one_cpu(void *arg, int thread, int n_threads)
{
    struct confined *c = arg;

    if (sched_setaffinity(0, sizeof c->mask, &c->mask) != 0)
        atomic_fetch_add(&c->s.n_wrong, 1);
    rounds(&c->s, thread, n_threads);
    sched_setaffinity(0, sizeof c->before, &c->before);
}

/* Threads with a CPU each that have come to share one: those that wait must let the
 * others run, and go on when these are elsewhere again. */
static void test_survives_sharing_a_cpu(void **state)
{
    struct confined c = {.s = {.n_rounds = 200}};
    int cpu = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof c.before, &c.before), 0);
    while (!CPU_ISSET((size_t)cpu, &c.before))
        cpu++;
    CPU_ZERO(&c.mask);
    CPU_SET((size_t)cpu, &c.mask);
    for (int n = 2; n <= 4; n++) {
        c.s.pool = start(n, NULL);
        for (int i = 0; i < 3; i++) {
            thread_pool_run(c.s.pool, rounds_on_one_cpu, &c);
            thread_pool_run(c.s.pool, rounds, &c.s);
        }
        thread_pool_stop(c.s.pool);
    }
    assert_int_equal(atomic_load(&c.s.n_wrong), 0);
}

/* Chunks are handed out once each, whoever runs. */
static void test_next_with_fewer_threads(void **state)
{
    unsigned char taken[1000] = {0};
    struct shared s = {
        .pool = start(MAX_MEMBERS, NULL), .n_items = sizeof taken, .taken = taken};

    (void)state;
    for (int n = 1; n <= MAX_MEMBERS; n += 3) {
        memset(taken, 0, sizeof taken);
        thread_pool_use(s.pool, n);
        thread_pool_run(s.pool, take_items, &s);
        for (size_t i = 0; i < sizeof taken; i++)
            assert_int_equal(taken[i], 2);
    }
    thread_pool_stop(s.pool);
}

static void note_cpu(void *arg, int thread, int n_threads)
{
    struct shared *s = arg;
    cpu_set_t mask;

    (void)n_threads;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof mask, &mask) == 0 && CPU_COUNT(&mask) == 1)
        s->cpu[thread] = sched_getcpu();
    else
        s->cpu[thread] = -1;
}

/* The allowed CPUs in reverse order, so that thread 0 is not on the first by
 * chance; more threads than CPUs wrap around. */
static void test_pins_and_restores(void **state)
{
    cpu_set_t before, after;
    int allowed[CPU_SETSIZE], cpus[MAX_MEMBERS], n_allowed = 0;
    struct shared s = {0};

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    for (int i = CPU_SETSIZE - 1; i >= 0; i--)
        if (CPU_ISSET((size_t)i, &before))
            allowed[n_allowed++] = i;
    for (int i = 0; i < 5; i++)
        cpus[i] = allowed[i % n_allowed];
    s.pool = start(5, cpus);
    thread_pool_run(s.pool, note_cpu, &s);
    for (int i = 0; i < 5; i++)
        assert_int_equal(s.cpu[i], cpus[i]);
    assert_memory_equal(thread_pool_cpus(s.pool), cpus, 5 * sizeof *cpus);
    thread_pool_unpin_caller(s.pool);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    thread_pool_pin_caller(s.pool);
    thread_pool_run(s.pool, note_cpu, &s);
    assert_int_equal(s.cpu[0], cpus[0]);
    thread_pool_stop(s.pool);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    s.pool = start(2, NULL); /* nobody was pinned, so nobody is now */
    assert_null(thread_pool_cpus(s.pool));
    thread_pool_pin_caller(s.pool);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    thread_pool_stop(s.pool);
}

static void test_refuses_foreign_cpu(void **state)
{
    struct err err = ERR_INIT;
    struct thread_pool *pool = NULL;
    const int cpus[2] = {0, 999999};
    const int negative[1] = {-1};

    (void)state;
    assert_int_equal(thread_pool_start(&pool, 2, cpus, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "999999"));
    assert_null(pool);
    err_clear(&err);
    assert_int_equal(thread_pool_start(&pool, 1, negative, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(thread_pool_start(&pool, 0, NULL, &err), ST_USAGE);
    err_clear(&err);
    assert_int_equal(thread_pool_start(&pool, THREAD_POOL_MAX + 1, NULL, &err),
                     ST_USAGE);
    thread_pool_stop(NULL);
}

static void test_share_covers_exactly(void **state)
{
    (void)state;
    for (size_t n = 0; n < 200; n++)
        for (size_t unit = 1; unit <= 16; unit *= 4)
            for (int threads = 1; threads <= 7; threads++) {
                size_t expect = 0, least = SIZE_MAX, most = 0;

                for (int i = 0; i < threads; i++) {
                    size_t begin, end;

                    thread_pool_share(n, unit, i, threads, &begin, &end);
                    assert_int_equal(begin, expect);
                    assert_true(end >= begin && end <= n);
                    assert_true(end == n || end % unit == 0);
                    const size_t units = (end - begin + unit - 1) / unit;
                    least = units < least ? units : least;
                    most = units > most ? units : most;
                    expect = end;
                }
                assert_int_equal(expect, n);
                assert_true(most - least <= 1);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barrier_publishes),
        cmocka_unit_test(test_next_hands_out_each_item_once),
        cmocka_unit_test(test_runs_on_the_first_threads),
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_stops_threads_never_used),
        cmocka_unit_test(test_survives_one_cpu),
        cmocka_unit_test(test_survives_sharing_a_cpu),
        cmocka_unit_test(test_next_with_fewer_threads),
        cmocka_unit_test(test_pins_and_restores),
        cmocka_unit_test(test_refuses_foreign_cpu),
        cmocka_unit_test(test_share_covers_exactly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
