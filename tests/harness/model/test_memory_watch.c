/* SPDX-License-Identifier: MIT
 *
 * test_memory_watch.c - when memory is lacking, and how much of it
 */
#include "tests/support/tree_root.h"

#include "harness/model/memory_relief.h"

#define MIB UINT64_C(1048576)
#define S   UINT64_C(1000000000)

static void put(const char *path, const char *format, uint64_t value)
{
    char text[200];

    snprintf(text, sizeof text, format, (unsigned long long)value);
    tree_put(root, path, text);
}

/* A group of version 2, with a file of 20 MiB in the page cache. */
static void v2(uint64_t max_mib, uint64_t used_mib)
{
    tree_put(root, "/proc/self/cgroup", "0::/a\n");
    tree_put(root, "/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    tree_put(root, "/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    put("/sys/fs/cgroup/a/memory.max", "%llu\n", max_mib * MIB);
    tree_put(root, "/sys/fs/cgroup/a/memory.high", "max\n");
    put("/sys/fs/cgroup/a/memory.current", "%llu\n", (used_mib + 20) * MIB);
    put("/sys/fs/cgroup/a/memory.stat", "active_file 0\ninactive_file %llu\n",
        20 * MIB);
}

static void v1(uint64_t limit_mib, uint64_t used_mib)
{
    tree_put(root, "/proc/self/cgroup", "4:memory:/a\n");
    tree_put(root, "/proc/self/mountinfo",
             "31 23 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "%llu\n", limit_mib * MIB);
    put("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "%llu\n", used_mib * MIB);
    put("/sys/fs/cgroup/memory/a/memory.stat", "total_workingset_refault %llu\n", 0);
}

static void available(uint64_t mib)
{
    put("/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: %llu kB\n", mib * 1024);
}

static void a_group_is_filled_up(void **state)
{
    struct memory_watch w;

    (void)state;
    for (int version = 1; version <= 2; version++) {
        void (*const group)(uint64_t, uint64_t) = version == 1 ? v1 : v2;

        tree_remove(root);
        tree_new(root);
        available(4000);
        group(600, 500);
        memory_watch_begin(&w, root, S);
        assert_int_equal(memory_watch_lacking(&w, 2 * S), 0);
        group(600, 600 - 16);
        assert_int_equal(memory_watch_lacking(&w, 3 * S), 0);
        group(600, 600 - 15);
        /* It is not looked at again at once. */
        assert_int_equal(memory_watch_lacking(&w, 3 * S + S / 8), 0);
        assert_int_equal(memory_watch_lacking(&w, 4 * S), (48 - 15) * MIB);
        group(600, 600);
        assert_int_equal(memory_watch_lacking(&w, 5 * S), 48 * MIB);
        group(600, 600 - 48);
        assert_int_equal(memory_watch_lacking(&w, 6 * S), 0);
    }
}

static void a_limit_is_lowered(void **state)
{
    struct memory_watch w;

    (void)state;
    available(4000);
    v2(600, 500);
    memory_watch_begin(&w, root, S);
    v2(400, 500);
    assert_int_equal(memory_watch_lacking(&w, 2 * S), (100 + 48) * MIB);
    /* memory.high is a limit, too, and the lower one counts. */
    v2(600, 500);
    put("/sys/fs/cgroup/a/memory.high", "%llu\n", 450 * MIB);
    assert_int_equal(memory_watch_lacking(&w, 3 * S), (50 + 48) * MIB);
}

static void the_machine_is_full(void **state)
{
    struct memory_watch w;

    (void)state;
    v2(600, 100);
    available(300);
    memory_watch_begin(&w, root, S);
    assert_int_equal(memory_watch_lacking(&w, 2 * S), 0);
    available(10);
    assert_int_equal(memory_watch_lacking(&w, 3 * S), 38 * MIB);
    /* More is lacking in the group. */
    v2(600, 650);
    assert_int_equal(memory_watch_lacking(&w, 4 * S), (50 + 48) * MIB);
}

static void stall(uint64_t us)
{
    put("/sys/fs/cgroup/a/memory.pressure",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=%llu\n", us);
}

static void tasks_wait_for_memory(void **state)
{
    struct memory_watch w;

    (void)state;
    v2(600, 100);
    available(3000);
    stall(5000000);
    memory_watch_begin(&w, root, 10 * S);
    stall(5100000);
    assert_int_equal(memory_watch_lacking(&w, 11 * S), 0); /* a tenth of the time */
    stall(5500000);
    assert_int_equal(memory_watch_lacking(&w, 12 * S), 64 * MIB);
    stall(5900000);
    assert_int_equal(memory_watch_lacking(&w, 13 * S), 0); /* a step takes a while */
    stall(6500000);
    assert_int_equal(memory_watch_lacking(&w, 14 * S), 64 * MIB);
}

static void machine_stalls(uint64_t us)
{
    put("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=%llu\n",
        us);
}

/* Faults of a process with an odd name. */
static void faults(uint64_t n)
{
    put("/proc/self/stat", "7 (a) b) R 1 7 7 0 -1 4194304 900 800 %llu 0 5 5\n", n);
}

/* Version 1 has no pressure of a group. Somebody else waits at the limit of another
 * group, while there is plenty: nothing of ours is given back, as once was of a server
 * with 22 GiB left. */
static void tasks_of_other_groups_wait(void **state)
{
    struct memory_watch w;

    (void)state;
    v1(600, 100);
    available(3000);
    faults(100);
    machine_stalls(5000000);
    memory_watch_begin(&w, root, 10 * S);
    machine_stalls(6000000);
    faults(130);
    assert_int_equal(memory_watch_lacking(&w, 11 * S), 0);
    machine_stalls(7000000);
    faults(180); /* we wait, too */
    assert_int_equal(memory_watch_lacking(&w, 12 * S), 64 * MIB);
    machine_stalls(9000000);
    assert_int_equal(memory_watch_lacking(&w, 14 * S), 0);
    available(450); /* little of 8 GB */
    machine_stalls(9900000);
    assert_int_equal(memory_watch_lacking(&w, 15 * S), 64 * MIB);
}

static void evicted_pages_are_read_again(void **state)
{
    struct memory_watch w;

    (void)state;
    v1(600, 100);
    available(3000);
    memory_watch_begin(&w, root, 10 * S);
    put("/sys/fs/cgroup/memory/a/memory.stat", "total_workingset_refault %llu\n",
        16000);
    assert_int_equal(memory_watch_lacking(&w, 11 * S), 0);
    put("/sys/fs/cgroup/memory/a/memory.stat", "total_workingset_refault %llu\n",
        33000);
    assert_int_equal(memory_watch_lacking(&w, 12 * S), 64 * MIB);
}

static void nothing_is_known(void **state)
{
    struct memory_watch w;

    (void)state;
    memory_watch_begin(&w, root, S);
    assert_int_equal(memory_watch_lacking(&w, 2 * S), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_group_is_filled_up, make_root, remove_root),
        cmocka_unit_test_setup_teardown(a_limit_is_lowered, make_root, remove_root),
        cmocka_unit_test_setup_teardown(the_machine_is_full, make_root, remove_root),
        cmocka_unit_test_setup_teardown(tasks_wait_for_memory, make_root, remove_root),
        cmocka_unit_test_setup_teardown(tasks_of_other_groups_wait, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(evicted_pages_are_read_again, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(nothing_is_known, make_root, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
