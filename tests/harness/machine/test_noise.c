/* SPDX-License-Identifier: MIT
 *
 * test_noise.c - noise counters on recorded trees, and the verdict on them
 *
 * v1-*: a quota in the parent group of version 1, PSI of the machine only.
 * v2-*: version 2, throttled by the group above, PSI of the group.
 * plain: a kernel without cgroups, PSI and steal.
 */
#include "tests/support/tree.h"

#include <math.h>

#include "engine/base/clock.h"
#include "harness/machine/noise.h"

#define TREES TEST_DATA "noise/"

static void v1_counters(void **state)
{
    struct noise a, b, d;

    (void)state;
    noise_read(&a, TREES "v1-before");
    assert_int_equal(a.n_cpus, 2);
    assert_int_equal(a.wall_ns, 1000000000000u);
    assert_int_equal(a.steal_ns, 3000000000u);
    assert_int_equal(a.busy_ns, 1620000000000u);
    assert_int_equal(a.throttled_ns, 4000000000u);
    assert_int_equal(a.n_throttled, 20);
    assert_int_equal(a.n_refaults, 1000); /* the group's, not /proc/vmstat's */
    assert_int_equal(a.pressure_ns, 500000000u);
    assert_int_equal(a.self_ns, 0);

    noise_read(&b, TREES "v1-after");
    noise_diff(&d, &a, &b);
    assert_int_equal(d.wall_ns, 10000000000u);
    assert_int_equal(d.n_throttled, 5);
    assert_int_equal(d.n_refaults, 600);
    assert_float_equal(noise_steal_share(&d), 0.04, 1e-9);
    assert_float_equal(noise_others_share(&d), 0.71, 1e-9);
    d.self_ns = 14000000000u; /* all but 0.2 s of the busy time was ours */
    assert_float_equal(noise_others_share(&d), 0.01, 1e-9);

    char text[96];
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: steal 4 %, throttled 5 %");
}

static void v2_counters(void **state)
{
    struct noise a, b, d;
    char text[96];

    (void)state;
    noise_read(&a, TREES "v2-before");
    assert_int_equal(a.throttled_ns, 1000000); /* of the slice above */
    assert_int_equal(a.n_throttled, 7);
    assert_int_equal(a.n_refaults, 10);
    assert_int_equal(a.pressure_ns, 1000000);

    noise_read(&b, TREES "v2-after");
    noise_diff(&d, &a, &b);
    assert_int_equal(d.n_refaults, 0);
    d.self_ns = 21000000000u;
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    /* pressure without paging of our own is somebody else's */
    assert_string_equal(text, "disturbed: memory pressure 10 %");
    d.n_refaults = 1;
    assert_true(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "valid");
}

static void missing_files_leave_zeros(void **state)
{
    struct noise n, zero;

    (void)state;
    noise_read(&n, TREES "plain");
    assert_int_equal(n.n_cpus, 1);
    assert_int_equal(n.busy_ns, 1550000000u);
    assert_int_equal(n.steal_ns, 0);
    assert_int_equal(n.throttled_ns, 0);
    assert_int_equal(n.pressure_ns, 0);
    assert_int_equal(n.n_refaults, 31);

    memset(&zero, 0, sizeof zero);
    noise_read(&n, TREES "does-not-exist");
    assert_memory_equal(&n, &zero, sizeof n);
}

static void differences_do_not_wrap(void **state)
{
    struct noise a = {.wall_ns = 5, .steal_ns = 100, .n_cpus = 1};
    struct noise b = {.wall_ns = 10, .steal_ns = 40, .n_cpus = 4};

    (void)state;
    noise_diff(&b, &a, &b); /* in place */
    assert_int_equal(b.wall_ns, 5);
    assert_int_equal(b.steal_ns, 0);
    assert_int_equal(b.n_cpus, 4);
}

/* Clocks that suspending, or somebody's setting them, sets apart. */
static void clocks_apart(void **state)
{
    struct noise now, a, b, d;

    (void)state;
    noise_read(&now, "");
    noise_since(&d, &now, "");
    assert_int_equal(d.suspended_ns, 0);
    assert_int_equal(d.clock_set_s, 0);

    a = b = now;
    b.suspended_ns += 90000000000u;
    b.boot_utc_ns -= 7200000000000;
    noise_diff(&d, &a, &b);
    assert_int_equal(d.suspended_ns, 90000000000u);
    assert_int_equal(d.clock_set_s, -7200);
    b = a; /* time that passes between two readings */
    b.suspended_ns += 90000;
    b.boot_utc_ns += 300000000;
    noise_diff(&d, &a, &b);
    assert_int_equal(d.suspended_ns, 0);
    assert_int_equal(d.clock_set_s, 0);
}

static void verdict_thresholds(void **state)
{
    const struct noise quiet = {.wall_ns = 10000000000u,
                                .busy_ns = 20000000000u,
                                .self_ns = 19900000000u,
                                .n_cpus = 2};
    struct noise d = quiet;
    char text[96], small[32];

    (void)state;
    assert_true(noise_verdict(&d, 0.049, text, sizeof text));
    assert_string_equal(text, "valid");
    assert_false(noise_verdict(&d, -0.07, text, sizeof text));
    assert_string_equal(text, "disturbed: drift -7 %");

    /* 3.5 % by others: fine on idle CPUs, not where they pushed us off ours */
    d.self_ns = 19300000000u;
    assert_true(noise_verdict(&d, 0, text, sizeof text));
    d.n_involuntary = 2000;
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_non_null(strstr(text, "others"));

    /* a run too short for ticks of 10 ms to say anything */
    d = (struct noise){.wall_ns = 100000000, .busy_ns = 40000000, .n_cpus = 2};
    assert_true(noise_verdict(&d, 0, text, sizeof text));

    /* the machine slept; the time of day was set, which slows nothing down */
    d = quiet;
    d.suspended_ns = 90000000000u;
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: slept 90 s");
    d = quiet;
    d.clock_set_s = -3600;
    assert_true(noise_verdict(&d, 0, text, sizeof text));
    char remark[200] = "the budget of 2 s ended it after 5 samples";
    noise_remark(&quiet, remark, sizeof remark);
    assert_string_equal(remark, "the budget of 2 s ended it after 5 samples");
    noise_remark(&d, remark, sizeof remark);
    assert_memory_equal(remark, "the budget of 2 s ended it after 5 samples; the ", 48);
    assert_non_null(strstr(remark, "clock was set by -3600 s"));

    /* several causes; those that do not fit are left out whole */
    d = quiet;
    d.steal_ns = 2000000000;
    d.throttled_ns = 1000000000;
    assert_false(noise_verdict(&d, 0.5, text, sizeof text));
    assert_string_equal(text, "disturbed: steal 10 %, throttled 10 %, drift +50 %");
    assert_false(noise_verdict(&d, 0.5, small, sizeof small));
    assert_string_equal(small, "disturbed: steal 10 %");

    memset(&d, 0, sizeof d);
    assert_true(noise_verdict(&d, 0, text, sizeof text));
}

/* 64 CPUs over 10 s, of which we may use two; busy[] and stolen[] are their ticks. */
static void put_stat(const char *root, long seconds, const long busy[64],
                     const long stolen[64])
{
    static const char *const line = "cpu%s %ld 0 0 1000 0 0 0 %ld 0 0\n";
    char text[8192], name[16];
    long all_busy = 0, all_stolen = 0;

    for (int i = 0; i < 64; i++) {
        all_busy += busy[i];
        all_stolen += stolen[i];
    }
    size_t n = (size_t)snprintf(text, sizeof text, line, " ", all_busy, all_stolen);
    for (int i = 0; i < 64; i++) {
        snprintf(name, sizeof name, "%d", i);
        n +=
            (size_t)snprintf(text + n, sizeof text - n, line, name, busy[i], stolen[i]);
    }
    tree_put(root, "/proc/stat", text);
    snprintf(text, sizeof text, "%ld.00 1.00\n", seconds);
    tree_put(root, "/proc/uptime", text);
    tree_put(root, "/proc/self/status",
             "Name:\tbench\nCpus_allowed:\t14\n"
             "Cpus_allowed_list:\t2,4\nThreads:\t2\n");
}

static void counts_on_the_cpus_used(void **state)
{
    long busy[64] = {0}, stolen[64] = {0};
    struct noise a, b, d;
    char root[64], text[96];

    (void)state;
    tree_new(root);
    put_stat(root, 100, busy, stolen);
    noise_read(&a, root);
    assert_int_equal(a.n_cpus, 64);
    assert_int_equal(a.n_our_cpus, 2);
    busy[2] = 1000, busy[4] = 1000; /* of 1000 each, of which 500 are a neighbour's */
    put_stat(root, 110, busy, stolen);
    noise_read(&b, root);
    noise_diff(&d, &a, &b);
    d.self_ns = 15000000000u;
    assert_float_equal(noise_others_share(&d), 0.25, 1e-9);
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: others 25 %");

    /* the same on CPUs that are not ours is little of the machine */
    busy[2] = busy[4] = 1000, busy[7] = 500;
    put_stat(root, 110, busy, stolen);
    noise_read(&b, root);
    noise_diff(&d, &a, &b);
    d.self_ns = 20000000000u;
    assert_float_equal(noise_others_share(&d), 5.0 / 640, 1e-9);
    assert_true(noise_verdict(&d, 0, text, sizeof text));

    stolen[4] = 100, stolen[9] = 30;
    put_stat(root, 110, busy, stolen);
    noise_read(&b, root);
    noise_diff(&d, &a, &b);
    d.self_ns = 20000000000u;
    assert_float_equal(noise_steal_share(&d), 0.05, 1e-9);
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: steal 5 %");
    tree_remove(root);
}

/* Switched out 100 times a second on our two of 64 CPUs. */
static void switches_are_those_of_our_cpus(void **state)
{
    struct noise d = {.wall_ns = 10000000000u,
                      .busy_ns = 21000000000u,
                      .our_busy_ns = 20800000000u,
                      .self_ns = 20000000000u,
                      .n_cpus = 64,
                      .n_our_cpus = 2};
    char text[96];

    (void)state;
    assert_true(noise_verdict(&d, 0, text, sizeof text)); /* 4 %, ... */
    d.n_involuntary = 2000; /* ... which took our CPUs from us */
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: others 4 %");
}

static void waiting_for_a_cpu_is_a_disturbance(void **state)
{
    struct noise d = {.wall_ns = 10000000000u,
                      .wait_ns = 400000000,
                      .n_cpus = 64,
                      .n_our_cpus = 2,
                      .n_threads = 2};
    char text[96];

    (void)state;
    assert_true(noise_verdict(&d, 0, text, sizeof text)); /* timers, kernel threads */
    d.wait_ns = 1200000000;
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: waiting 12 %");
    d.n_threads = 3; /* they wait for each other */
    assert_true(noise_verdict(&d, 0, text, sizeof text));
    d.n_threads = 2;
    d.throttled_ns = 600000000; /* the quota stopped them */
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: throttled 3 %"); /* of both CPUs */
    d.expects_throttling = true;
    assert_true(noise_verdict(&d, 0, text, sizeof text));
    d.expects_throttling = false;
    d.n_threads = 1; /* of one */
    assert_float_equal(noise_throttled_share(&d), 0.06, 1e-12);
    d.n_threads = 2;
    d.throttled_ns = 0;
    d.n_threads = d.n_our_cpus = 64; /* a fifth of a percent of each */
    assert_true(noise_verdict(&d, 0, text, sizeof text));
    d.wait_ns = 5000000000u; /* half of one CPU, for which all others wait */
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    d.wait_ns = 119000000000u; /* of many threads together: no more than all the time */
    assert_false(noise_verdict(&d, 0, text, sizeof text));
    assert_string_equal(text, "disturbed: waiting 100 %");
}

static void put_throttling(const char *root, const char *group, unsigned usec, int n)
{
    char path[200], text[100];

    snprintf(path, sizeof path, "/sys/fs/cgroup%s/cpu.stat", group);
    snprintf(text, sizeof text, "nr_throttled %d\nthrottled_usec %u\n", n, usec);
    tree_put(root, path, text);
}

/* A group further up was throttled for minutes, long ago; ours is now. */
static void throttling_is_compared_group_by_group(void **state)
{
    struct noise a, b, d;
    char root[64];

    (void)state;
    tree_new(root);
    tree_put(root, "/proc/self/cgroup", "0::/a/b\n");
    tree_put(root, "/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_put(root, "/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    put_throttling(root, "/a", 500000000, 9000);
    put_throttling(root, "/a/b", 1000000, 20);
    noise_read(&a, root);
    put_throttling(root, "/a/b", 6000000, 70);
    noise_read(&b, root);
    noise_diff(&d, &a, &b);
    assert_int_equal(d.throttled_ns, 5000000000u);
    assert_int_equal(d.n_throttled, 50);
    put_throttling(root, "/a", 508000000,
                   9100); /* both: the one that stopped us more */
    noise_read(&b, root);
    noise_diff(&d, &a, &b);
    assert_int_equal(d.throttled_ns, 8000000000u);
    assert_int_equal(d.n_throttled, 100);
    tree_remove(root);
}

static void live_counters_move(void **state)
{
    struct noise a, d;
    volatile double x = 1;

    (void)state;
    noise_read(&a, "");
    const uint64_t begin = clock_ns();
    while (clock_ns() - begin < 50000000u)
        x = x * 1.0000001;
    noise_since(&d, &a, "");
    assert_true(d.n_our_cpus >= 1 && d.n_our_cpus <= d.n_cpus);
    assert_true(d.n_threads >= 1);
    assert_true(d.wall_ns >= 50000000u);
    assert_true(d.self_ns > 0);
    assert_true(d.n_cpus >= 1);
    assert_true(noise_others_share(&d) >= 0 && noise_others_share(&d) <= 1);
    assert_true(noise_steal_share(&d) >= 0 && noise_steal_share(&d) <= 1);
}

static void rounds_are_disturbed_by_what_happened_beside_them(void **state)
{
    const struct noise quiet = {.wall_ns = 1000000000,
                                .busy_ns = 1960000000,
                                .self_ns = 1950000000,
                                .wait_ns = 10000000,
                                .n_cpus = 2};
    struct noise n = quiet;
    char why[128];

    (void)state;
    assert_false(noise_disturbed(&n, why, sizeof why));
    assert_string_equal(why, "");
    n.wait_ns = 120000000;
    assert_true(noise_disturbed(&n, why, sizeof why));
    assert_string_equal(why, "waiting 12 %");
    n.steal_ns = 100000000;
    assert_true(noise_disturbed(&n, why, sizeof why));
    assert_string_equal(why, "steal 5 %, waiting 12 %");
    n = quiet;
    n.throttled_ns = 20000000;
    assert_true(noise_disturbed(&n, why, sizeof why));
    assert_string_equal(why, "throttled 2 %");
    n = quiet;
    n.busy_ns += 200000000;
    assert_true(noise_disturbed(&n, why, sizeof why));
    assert_string_equal(why, "others 10 %");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v1_counters),
        cmocka_unit_test(v2_counters),
        cmocka_unit_test(missing_files_leave_zeros),
        cmocka_unit_test(differences_do_not_wrap),
        cmocka_unit_test(clocks_apart),
        cmocka_unit_test(verdict_thresholds),
        cmocka_unit_test(counts_on_the_cpus_used),
        cmocka_unit_test(switches_are_those_of_our_cpus),
        cmocka_unit_test(waiting_for_a_cpu_is_a_disturbance),
        cmocka_unit_test(throttling_is_compared_group_by_group),
        cmocka_unit_test(live_counters_move),
        cmocka_unit_test(rounds_are_disturbed_by_what_happened_beside_them),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
