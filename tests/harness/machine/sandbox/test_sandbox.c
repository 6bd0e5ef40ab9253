/* SPDX-License-Identifier: MIT
 *
 * test_sandbox.c - where groups are made, and what is read there, on recorded trees
 */
#include "tests/support/sandbox_tree.h"

#include <errno.h>

#include "harness/machine/sandbox/cgroup.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/sandbox/sandbox_group.h"

static void own_leaf(char leaf[300], const char *own)
{
    struct maker me;
    char name[96];

    maker_self(&me, root);
    group_name(&me, "self", name, sizeof name);
    snprintf(leaf, 300, "%s/%s", own, name);
}

/* Groups further up pass memory on already, but have neither our unit's quota nor its
 * CPUs and its limit: the sandbox is below our own group all the same. */
static void v2_stays_below_our_own_group(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    char dir[512], leaf[300], file[400], buf[256];

    (void)state;
    v2_tree();
    own_leaf(leaf, "/sys/fs/cgroup/user/me");
    snprintf(file, sizeof file, "%s/cgroup.procs", leaf);
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    snprintf(dir, sizeof dir, "%s", sandbox_path(s));
    assert_memory_equal(dir, "/sys/fs/cgroup/user/me/slmbench.", 32);
    assert_string_equal(in_group(s, "memory.max"), "536870912");
    assert_string_equal(in_group(s, "memory.swap.max"), "0");
    assert_string_equal(tree_get(root, file, buf, sizeof buf), "4321\n4322\n");
    assert_string_equal(tree_get(root, "/sys/fs/cgroup/user/me/cgroup.subtree_control",
                                 buf, sizeof buf),
                        "+memory");
    assert_int_equal(sandbox_add(s, 777, &err), ST_OK);
    assert_string_equal(in_group(s, "cgroup.procs"), "777\n");
    sandbox_destroy(s);
    assert_false(tree_exists(root, dir));
    assert_false(tree_exists(root, leaf));
}

/* Nor is anything made further up where our own group may not be used. */
static void v2_makes_nothing_further_up(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;

    (void)state;
    v2_tree();
    v2_group("/sys/fs/cgroup/user/me", "cpu\n", "", "4321\n");
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_PERMISSION);
    assert_non_null(strstr(err.msg, "/sys/fs/cgroup/user/me"));
    assert_null(s);
}

/* Started by somebody whom an earlier run has moved into its leaf. */
static void v2_stands_beside_the_leaf_of_another_run(void **state)
{
    static const char leaf[] = "/sys/fs/cgroup/user/me/slmbench.50.self.9900.0";
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    char buf[256];

    (void)state;
    v2_tree();
    v2_group("/sys/fs/cgroup/user/me", "cpu memory\n", "memory\n", "");
    v2_group(leaf, "cpu memory\n", "", "4321\n4322\n");
    tree_put(root, "/proc/self/cgroup", "0::/user/me/slmbench.50.self.9900.0\n");
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    assert_memory_equal(sandbox_path(s), "/sys/fs/cgroup/user/me/slmbench.", 32);
    assert_null(strstr(sandbox_path(s), "self"));
    sandbox_destroy(s);
    assert_string_equal(tree_get(root, "/sys/fs/cgroup/user/me/cgroup.subtree_control",
                                 buf, sizeof buf),
                        "memory\n");
    assert_true(tree_exists(root, leaf));
}

/* The real root may have processes and pass controllers on. */
static void v2_switches_memory_on_in_the_real_root(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    char buf[256];

    (void)state;
    v2_tree();
    v2_group("/sys/fs/cgroup", "cpu memory pids\n", "cpu pids\n", "1\n");
    tree_put(root, "/proc/self/cgroup", "0::/\n");
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    assert_memory_equal(sandbox_path(s), "/sys/fs/cgroup/slmbench.", 24);
    assert_string_equal(
        tree_get(root, "/sys/fs/cgroup/cgroup.subtree_control", buf, sizeof buf),
        "+memory");
    sandbox_destroy(s);
}

/* A second run in the same unit has groups of its own, which lose their limit if the
 * controller is not passed on any more. */
static void v2_leaves_memory_on_for_another_run(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    char leaf[300], buf[256];

    (void)state;
    v2_tree();
    own_leaf(leaf, "/sys/fs/cgroup/user/me");
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    tree_mkdir(root, "/sys/fs/cgroup/user/me/slmbench.50.1.9900.0");
    sandbox_destroy(s);
    assert_string_equal(tree_get(root, "/sys/fs/cgroup/user/me/cgroup.subtree_control",
                                 buf, sizeof buf),
                        "+memory");
    assert_true(tree_exists(root, leaf));
}

/* Only our own group, as in a container: its processes go into a leaf first. */
static void v2_retreats_into_a_leaf(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL, *second = NULL;
    char leaf[300], file[400], buf[256];

    (void)state;
    tree_put(root, "/proc/self/cgroup", "0::/\n");
    tree_put(root, "/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    v2_group("/sys/fs/cgroup", "cpu memory\n", "", "4321\n4322\n");
    tree_put(root, "/sys/fs/cgroup/cgroup.type", "domain\n"); /* not the real root */
    own_leaf(leaf, "/sys/fs/cgroup");
    snprintf(file, sizeof file, "%s/cgroup.procs", leaf);

    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    assert_string_equal(tree_get(root, file, buf, sizeof buf), "4321\n4322\n");
    assert_string_equal(
        tree_get(root, "/sys/fs/cgroup/cgroup.subtree_control", buf, sizeof buf),
        "+memory");
    assert_int_equal(sandbox_create(&second, root, 512 * MIB, &err), ST_OK);
    assert_string_not_equal(sandbox_path(s), sandbox_path(second));
    sandbox_destroy(s);
    assert_true(tree_exists(root, leaf)); /* still needed */
    sandbox_destroy(second);
    assert_false(tree_exists(root, leaf));
    assert_string_equal(
        tree_get(root, "/sys/fs/cgroup/cgroup.subtree_control", buf, sizeof buf),
        "-memory");
}

static void v1_limits_memory_and_swap_together(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;

    (void)state;
    v1_tree();
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    assert_memory_equal(sandbox_path(s), "/sys/fs/cgroup/memory/jobs/mine/slmbench.",
                        41);
    assert_string_equal(in_group(s, "memory.limit_in_bytes"), "536870912");
    assert_string_equal(in_group(s, "memory.memsw.limit_in_bytes"), "536870912");
    assert_string_equal(in_group(s, "memory.swappiness"), "0");
    sandbox_destroy(s);
}

static void reads_usage(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox_usage u;
    struct sandbox *s = NULL;
    char path[600];

    (void)state;
    v2_tree();
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    assert_int_equal(sandbox_read(s, &u, &err), ST_IO); /* no memory.stat yet */
    assert_non_null(strstr(err.msg, sandbox_path(s)));
    snprintf(path, sizeof path, "%s/memory.stat", sandbox_path(s));
    tree_put(root, path,
             "anon 1000\nfile 2000\nfile_mapped 5\npgmajfault 7\n"
             "workingset_refault_anon 1\nworkingset_refault_file 10\n");
    snprintf(path, sizeof path, "%s/memory.events", sandbox_path(s));
    tree_put(root, path, "low 0\nmax 12\noom 2\noom_kill 1\n");
    snprintf(path, sizeof path, "%s/memory.current", sandbox_path(s));
    tree_put(root, path, "3000\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.limit_bytes, 512 * MIB);
    assert_int_equal(u.anon_bytes, 1000);
    assert_int_equal(u.file_bytes, 2000);
    assert_int_equal(u.n_major_faults, 7);
    assert_int_equal(u.n_refaults, 11);
    assert_int_equal(u.n_oom_kills, 1);
    assert_int_equal(u.peak_bytes, 3000); /* no memory.peak: the most seen */
    tree_put(root, path, "2000\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.current_bytes, 2000);
    assert_int_equal(u.peak_bytes, 3000);
    snprintf(path, sizeof path, "%s/memory.peak", sandbox_path(s));
    tree_put(root, path, "9000\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.peak_bytes, 9000);
    sandbox_destroy(s);
}

/* Page cache and what else can be given back is not resident. */
static void reads_what_stays_resident(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox_usage u;
    struct sandbox *s = NULL;
    char path[600];

    (void)state;
    v2_tree();
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    assert_false(sandbox_is_adopted(s));
    snprintf(path, sizeof path, "%s/memory.stat", sandbox_path(s));
    tree_put(root, path,
             "anon 1000\nfile 99999\nkernel 500\nkernel_stack 1\npagetables 2\n"
             "shmem 30\nanon_thp 600\nslab_reclaimable 400\nslab 450\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.kernel_bytes, 100);
    assert_int_equal(sandbox_resident_bytes(&u), 1130);
    tree_put(root, path, /* before Linux 5.18 */
             "anon 1000\nfile 99999\nkernel_stack 1\npagetables 2\npercpu 4\n"
             "shmem 30\nslab_reclaimable 400\nslab_unreclaimable 50\nslab 450\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(sandbox_resident_bytes(&u), 1087);
    sandbox_destroy(s);

    tree_remove(root);
    tree_new(root);
    v1_tree();
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_OK);
    snprintf(path, sizeof path, "%s/memory.stat", sandbox_path(s));
    tree_put(root, path,
             "cache 9\nrss 8\nrss_huge 7\nshmem 6\ntotal_cache 99999\n"
             "total_rss 1000\ntotal_rss_huge 600\ntotal_shmem 30\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(sandbox_resident_bytes(&u), 1030); /* kernel memory not counted */
    snprintf(path, sizeof path, "%s/memory.kmem.usage_in_bytes", sandbox_path(s));
    tree_put(root, path, "200\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(sandbox_resident_bytes(&u), 1230);
    sandbox_destroy(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(v2_stays_below_our_own_group, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(v2_makes_nothing_further_up, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(v2_stands_beside_the_leaf_of_another_run, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(v2_switches_memory_on_in_the_real_root, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(v2_leaves_memory_on_for_another_run, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(v2_retreats_into_a_leaf, setup, remove_root),
        cmocka_unit_test_setup_teardown(v1_limits_memory_and_swap_together, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(reads_usage, setup, remove_root),
        cmocka_unit_test_setup_teardown(reads_what_stays_resident, setup, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
