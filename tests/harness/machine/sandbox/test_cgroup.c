/* SPDX-License-Identifier: MIT
 *
 * test_cgroup.c - finding our control group and its limits in v1, v2 and hybrids
 */
#include "tests/support/tree_root.h"

#include <inttypes.h>

#include "harness/machine/sandbox/cgroup.h"

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n"

static void v2(const char *own)
{
    char line[300];

    snprintf(line, sizeof line, "0::%s\n", own);
    tree_put(root, "/proc/self/cgroup", line);
    tree_put(root, "/proc/self/mountinfo", V2_MOUNT);
    tree_put(root, "/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
}

static void finds_v2(void **state)
{
    struct cgroup_place p;

    (void)state;
    v2("/a/b.scope");
    tree_mkdir(root, "/sys/fs/cgroup/a/b.scope");
    cgroup_find(&p, root, CGROUP_MEMORY);
    assert_int_equal(p.version, 2);
    assert_string_equal(p.mount, "/sys/fs/cgroup");
    assert_string_equal(p.dir, "/sys/fs/cgroup/a/b.scope");
    assert_true(p.exact);
    assert_true(cgroup_parent(&p, p.dir));
    assert_string_equal(p.dir, "/sys/fs/cgroup/a");
    assert_true(cgroup_parent(&p, p.dir));
    assert_string_equal(p.dir, "/sys/fs/cgroup");
    assert_false(cgroup_parent(&p, p.dir));
    assert_string_equal(p.dir, "/sys/fs/cgroup");
}

/* A hybrid: cpu in v1, a v2 mount that has no controller but io. */
static void looks_up_each_controller_by_itself(void **state)
{
    struct cgroup_place p;

    (void)state;
    tree_put(root, "/proc/self/cgroup", "3:cpuacct,cpu:/x\n0::/\n");
    tree_put(
        root, "/proc/self/mountinfo",
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
        "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    tree_mkdir(root, "/sys/fs/cgroup/cpu,cpuacct/x");
    tree_put(root, "/sys/fs/cgroup/unified/cgroup.controllers", "io\n");
    cgroup_find(&p, root, CGROUP_CPU);
    assert_int_equal(p.version, 1);
    assert_string_equal(p.dir, "/sys/fs/cgroup/cpu,cpuacct/x");
    cgroup_find(&p, root, CGROUP_MEMORY);
    assert_int_equal(p.version, 0);
    tree_put(root, "/sys/fs/cgroup/unified/cgroup.controllers", "io memory\n");
    cgroup_find(&p, root, CGROUP_MEMORY);
    assert_int_equal(p.version, 2);
    assert_string_equal(p.dir, "/sys/fs/cgroup/unified");
}

/* "cpu" must not be found in "cpuset" or "cpuacct". */
static void takes_whole_names(void **state)
{
    struct cgroup_place p;

    (void)state;
    tree_put(root, "/proc/self/cgroup", "3:cpuset:/x\n2:cpuacct:/y\n");
    tree_put(root, "/proc/self/mountinfo",
             "33 31 0:30 / /m/cpuset rw - cgroup cgroup rw,cpuset\n");
    tree_mkdir(root, "/m/cpuset/x");
    cgroup_find(&p, root, CGROUP_CPU);
    assert_int_equal(p.version, 0);
    cgroup_find(&p, root, CGROUP_CPUSET);
    assert_int_equal(p.version, 1);
}

/* A container without a cgroup namespace: the mount shows just our subtree. */
static void strips_the_mounts_root(void **state)
{
    struct cgroup_place p;

    (void)state;
    tree_put(root, "/proc/self/cgroup", "4:memory:/docker/0123/inner\n");
    tree_put(
        root, "/proc/self/mountinfo",
        "35 31 0:32 /docker/0123 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    tree_mkdir(root, "/sys/fs/cgroup/memory/inner");
    cgroup_find(&p, root, CGROUP_MEMORY);
    assert_string_equal(p.dir, "/sys/fs/cgroup/memory/inner");
    assert_true(p.exact);
    tree_put(root, "/proc/self/cgroup", "4:memory:/docker/01234\n"); /* not a child */
    cgroup_find(&p, root, CGROUP_MEMORY);
    assert_string_equal(p.dir, "/sys/fs/cgroup/memory");
    assert_false(p.exact);
}

static void falls_back_to_the_mount(void **state)
{
    struct cgroup_place p;

    (void)state;
    v2("/../../elsewhere"); /* outside of our cgroup namespace */
    tree_mkdir(root, "/elsewhere");
    cgroup_find(&p, root, CGROUP_CPU);
    assert_int_equal(p.version, 2);
    assert_string_equal(p.dir, "/sys/fs/cgroup");
    v2("/host/path/that/is/not/mounted/here");
    cgroup_find(&p, root, CGROUP_CPU);
    assert_string_equal(p.dir, "/sys/fs/cgroup");
    assert_false(p.exact);
}

static void decodes_blanks_in_mounts(void **state)
{
    struct cgroup_place p;

    (void)state;
    v2("/");
    tree_put(root, "/proc/self/mountinfo",
             "30 23 0:26 / /my\\040cgroups rw - cgroup2 cgroup2 rw\n");
    tree_put(root, "/my cgroups/cgroup.controllers", "memory");
    cgroup_find(&p, root, CGROUP_MEMORY);
    assert_string_equal(p.dir, "/my cgroups");
}

static void survives_nonsense(void **state)
{
    static const char *const groups[] = {"",         "\n\n",        ":",
                                         "::",       "0::",         "0::relative",
                                         "4:memory", "4:memory:\n", "x:y:z"};
    static const char *const mounts[] = {"",
                                         "\n",
                                         "1 2 3",
                                         "1 2 3 4 5 6 7 8 9",
                                         "1 2 3 / /m rw - cgroup2",
                                         "- - - - - - - -",
                                         "1 2 3 / \\04 rw - cgroup2 c rw\n",
                                         "\\777"};
    struct cgroup_limits l;
    struct cgroup_place p;

    (void)state;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        for (size_t j = 0; j < sizeof mounts / sizeof mounts[0]; j++) {
            tree_put(root, "/proc/self/cgroup", groups[i]);
            tree_put(root, "/proc/self/mountinfo", mounts[j]);
            cgroup_find(&p, root, CGROUP_MEMORY);
            assert_int_equal(p.version, 0);
            cgroup_limits_read(&l, root);
            assert_int_equal(l.version, 0);
        }
    }
    tree_remove(root);
    cgroup_limits_read(&l, root); /* no files at all */
    assert_int_equal(l.version, 0);
}

static void takes_the_smallest_limit(void **state)
{
    struct cgroup_limits l;

    (void)state;
    v2("/a/b");
    tree_put(root, "/sys/fs/cgroup/a/b/memory.max", "max\n");
    tree_put(root, "/sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
    tree_put(root, "/sys/fs/cgroup/a/memory.max", "1073741824\n");
    tree_put(root, "/sys/fs/cgroup/a/cpu.max", "50000 20000\n");
    tree_put(root, "/sys/fs/cgroup/a/cpuset.cpus.effective", "0-3,8\n");
    cgroup_limits_read(&l, root);
    assert_int_equal(l.version, 2);
    assert_float_equal(l.quota_cpus, 2.5, 1e-12);
    assert_string_equal(l.quota_source, "/sys/fs/cgroup/a/cpu.max");
    assert_int_equal(l.memory.limit, 1073741824);
    assert_string_equal(l.memory.limit_source, "/sys/fs/cgroup/a/memory.max");
    assert_string_equal(l.cpus, "0-3,8");
}

static void knows_no_limit(void **state)
{
    struct cgroup_limits l;

    (void)state;
    v2("/");
    tree_put(root, "/sys/fs/cgroup/memory.max", "max\n");
    tree_put(root, "/sys/fs/cgroup/cpu.max", "max 100000\n");
    cgroup_limits_read(&l, root);
    assert_int_equal(l.version, 2);
    assert_true(l.quota_cpus == 0);
    assert_int_equal(l.memory.limit, 0);
    assert_string_equal(l.memory.limit_source, "");

    tree_put(root, "/proc/self/cgroup", "2:cpu,memory:/\n");
    tree_put(root, "/proc/self/mountinfo",
             "33 31 0:30 / /both rw - cgroup cgroup rw,cpu,memory\n");
    tree_put(root, "/both/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put(root, "/both/cpu.cfs_quota_us", "-1\n");
    tree_put(root, "/both/cpu.cfs_period_us", "100000\n");
    cgroup_limits_read(&l, root);
    assert_int_equal(l.version, 1);
    assert_true(l.quota_cpus == 0);
    assert_int_equal(l.memory.limit, 0);
}

/* The one trace of a v1 limit above what a container's mount shows. */
static void believes_the_hierarchical_limit(void **state)
{
    struct cgroup_limits l;

    (void)state;
    tree_put(root, "/proc/self/cgroup", "2:memory:/\n");
    tree_put(root, "/proc/self/mountinfo",
             "33 31 0:30 / /m rw - cgroup cgroup rw,memory\n");
    tree_put(root, "/m/memory.limit_in_bytes", "8589934592\n");
    tree_put(root, "/m/memory.stat",
             "cache 12\nhierarchical_memory_limit 4294967296\n");
    cgroup_limits_read(&l, root);
    assert_int_equal(l.memory.limit, 4294967296);
    assert_string_equal(l.memory.limit_source, "/m/memory.stat");
}

/* A limit below another may leave more than that one: siblings have used it. */
static void counts_what_siblings_use(void **state)
{
    struct cgroup_limits l;

    (void)state;
    v2("/pod/me");
    tree_put(root, "/sys/fs/cgroup/pod/me/memory.max", "3000000\n");
    tree_put(root, "/sys/fs/cgroup/pod/me/memory.current", "400000\n");
    tree_put(root, "/sys/fs/cgroup/pod/memory.max", "8000000\n");
    tree_put(root, "/sys/fs/cgroup/pod/memory.current", "7500000\n");
    tree_put(root, "/sys/fs/cgroup/pod/memory.stat",
             "anon 6000000\nfile 1400000\nshmem 600000\nactive_file 300000\n"
             "inactive_file 500000\nslab_reclaimable 40000\nunevictable 9\n");
    cgroup_limits_read(&l, root);
    assert_int_equal(l.memory.limit, 3000000);
    assert_string_equal(l.memory.limit_source, "/sys/fs/cgroup/pod/me/memory.max");
    assert_int_equal(l.memory.left, 8000000 - 7500000 + 840000);
    assert_string_equal(l.memory.left_source, "/sys/fs/cgroup/pod/memory.max");

    tree_put(root, "/sys/fs/cgroup/pod/memory.current", "9500000\n"); /* over it */
    cgroup_limits_read(&l, root);
    assert_int_equal(l.memory.left, 0);
    tree_put(root, "/sys/fs/cgroup/pod/memory.current", "100000\n"); /* all cache */
    cgroup_limits_read(&l, root);
    assert_int_equal(l.memory.left, 2600000); /* without a memory.stat of its own */
}

static void counts_siblings_of_version_1(void **state)
{
    struct cgroup_limits l;

    (void)state;
    tree_put(root, "/proc/self/cgroup", "2:memory:/pod/me\n");
    tree_put(root, "/proc/self/mountinfo",
             "33 31 0:30 / /m rw - cgroup cgroup rw,memory\n");
    tree_put(root, "/m/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put(root, "/m/memory.usage_in_bytes", "99000000\n");
    tree_put(root, "/m/pod/memory.limit_in_bytes", "8000000\n");
    tree_put(root, "/m/pod/memory.usage_in_bytes", "7000000\n");
    tree_put(root, "/m/pod/memory.stat",
             "active_file 1\ninactive_file 1\ntotal_active_file 500000\n"
             "total_inactive_file 250000\nhierarchical_memory_limit 8000000\n");
    tree_put(root, "/m/pod/me/memory.limit_in_bytes", "9223372036854771712\n");
    tree_put(root, "/m/pod/me/memory.stat", "hierarchical_memory_limit 8000000\n");
    cgroup_limits_read(&l, root);
    assert_int_equal(l.memory.limit, 8000000);
    assert_int_equal(l.memory.left, 1750000);
    assert_string_equal(l.memory.left_source, "/m/pod/memory.limit_in_bytes");
}

/* memory.high does not kill, but nothing that needs more gets on. */
static void takes_memory_high_for_a_limit(void **state)
{
    struct cgroup_limits l;

    (void)state;
    v2("/a");
    tree_put(root, "/sys/fs/cgroup/a/memory.max", "2000000\n");
    tree_put(root, "/sys/fs/cgroup/a/memory.high", "1500000\n");
    tree_put(root, "/sys/fs/cgroup/a/memory.current", "500000\n");
    cgroup_limits_read(&l, root);
    assert_int_equal(l.memory.limit, 1500000);
    assert_string_equal(l.memory.limit_source, "/sys/fs/cgroup/a/memory.high");
    assert_int_equal(l.memory.left, 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_v2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(looks_up_each_controller_by_itself, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(takes_whole_names, make_root, remove_root),
        cmocka_unit_test_setup_teardown(strips_the_mounts_root, make_root, remove_root),
        cmocka_unit_test_setup_teardown(falls_back_to_the_mount, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(decodes_blanks_in_mounts, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(survives_nonsense, make_root, remove_root),
        cmocka_unit_test_setup_teardown(takes_the_smallest_limit, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(knows_no_limit, make_root, remove_root),
        cmocka_unit_test_setup_teardown(believes_the_hierarchical_limit, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(counts_what_siblings_use, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(counts_siblings_of_version_1, make_root,
                                        remove_root),
        cmocka_unit_test_setup_teardown(takes_memory_high_for_a_limit, make_root,
                                        remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
