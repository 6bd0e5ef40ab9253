/* SPDX-License-Identifier: MIT
 *
 * test_sandbox_quota.c - CPU quotas beside memory limits, on recorded trees
 */
#include "tests/support/sandbox_tree.h"

#include <errno.h>

#include "harness/machine/sandbox/cgroup.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/sandbox/sandbox_group.h"

/* ---- CPU quotas ------------------------------------------------------------------ */

static const char *in_quota_group(const struct sandbox *s, const char *file)
{
    static char buf[256];
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", sandbox_quota_path(s), file);
    return tree_get(root, path, buf, sizeof buf);
}

/* One group has both; both controllers are passed on, and taken back. */
static void v2_group_has_limit_and_quota(void **state)
{
    const struct sandbox_limits limits = {512 * MIB, 1.5};
    struct err err = ERR_INIT;
    struct sandbox *s = NULL, *plain = NULL;
    char dir[512], buf[256];

    (void)state;
    v2_tree();
    assert_int_equal(sandbox_create_with(&s, root, &limits, &err), ST_OK);
    snprintf(dir, sizeof dir, "%s", sandbox_path(s));
    assert_string_equal(sandbox_quota_path(s), dir);
    assert_false(sandbox_is_adopted(s));
    assert_string_equal(in_group(s, "memory.max"), "536870912");
    assert_string_equal(in_group(s, "cpu.max"), "150000 100000");
    assert_string_equal(tree_get(root, "/sys/fs/cgroup/user/me/cgroup.subtree_control",
                                 buf, sizeof buf),
                        "+memory +cpu");
    assert_int_equal(sandbox_create(&plain, root, 256 * MIB, &err), ST_OK);
    assert_string_equal(in_group(plain, "cpu.max"), "");
    sandbox_destroy(plain);
    assert_int_equal(sandbox_add(s, 777, &err), ST_OK);
    assert_string_equal(in_group(s, "cgroup.procs"), "777\n");
    sandbox_destroy(s);
    assert_false(tree_exists(root, dir));
    assert_string_equal(tree_get(root, "/sys/fs/cgroup/user/me/cgroup.subtree_control",
                                 buf, sizeof buf),
                        "-memory -cpu");
}

/* A quota joins where groups with a limit are made already. */
static void v2_quota_comes_later(void **state)
{
    const struct sandbox_limits limits = {0, 0.25};
    struct err err = ERR_INIT;
    struct sandbox *s = NULL, *memory = NULL;
    char buf[256];

    (void)state;
    v2_tree();
    v2_group("/sys/fs/cgroup/user/me", "cpu memory\n", "", "");
    assert_int_equal(sandbox_create(&memory, root, 512 * MIB, &err), ST_OK);
    assert_int_equal(sandbox_create_with(&s, root, &limits, &err), ST_OK);
    assert_string_equal(tree_get(root, "/sys/fs/cgroup/user/me/cgroup.subtree_control",
                                 buf, sizeof buf),
                        "+cpu");
    assert_true(sandbox_is_adopted(s));
    assert_string_equal(in_quota_group(s, "cpu.max"), "25000 100000");
    assert_string_equal(in_quota_group(s, "memory.max"), "");
    sandbox_destroy(s);
    sandbox_destroy(memory);
}

/* Where the CPU controller is not given to us, nothing is made, and what helps is
 * named: being root does not, nor another group of the same user's. */
static void v2_without_the_cpu_controller(void **state)
{
    const struct sandbox_limits limits = {512 * MIB, 1}, quota = {0, 1};
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;

    (void)state;
    v2_tree();
    v2_group("/sys/fs/cgroup/user/me", "memory\n", "", "4321\n");
    assert_int_equal(sandbox_create_with(&s, root, &limits, &err), ST_PERMISSION);
    assert_non_null(strstr(err.msg, "memory limit and CPU quota"));
    assert_non_null(
        strstr(err.msg, "user/me, which is not given the CPU controller; "));
    assert_non_null(strstr(err.msg, "`systemd-run --scope -p Delegate=yes`"));
    assert_null(strstr(err.msg, "--user"));
    err_clear(&err);
    assert_int_equal(sandbox_create_with(&s, root, &quota, &err), ST_PERMISSION);
    assert_non_null(strstr(err.msg, "--cpus-quota none"));
    assert_null(s);
}

static void v1_cpu_tree(const char *quota_us)
{
    v1_tree();
    tree_put(root, "/proc/self/cgroup",
             "4:memory:/jobs/mine\n3:cpu,cpuacct:/jobs\n0::/\n");
    tree_put(root, "/proc/self/mountinfo",
             "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
             "36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n");
    tree_put(root, "/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", quota_us);
    tree_put(root, "/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "50000\n");
}

/* Each controller has a hierarchy, and the child is in both groups. */
static void v1_has_a_group_for_each_controller(void **state)
{
    const struct sandbox_limits limits = {512 * MIB, 0.5};
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    char dir[512];

    (void)state;
    v1_cpu_tree("-1\n");
    assert_int_equal(sandbox_create_with(&s, root, &limits, &err), ST_OK);
    assert_memory_equal(sandbox_path(s), "/sys/fs/cgroup/memory/jobs/mine/slmbench.",
                        41);
    assert_memory_equal(sandbox_quota_path(s), "/sys/fs/cgroup/cpu/jobs/slmbench.", 33);
    assert_string_equal(in_quota_group(s, "cpu.cfs_period_us"), "100000");
    assert_string_equal(in_quota_group(s, "cpu.cfs_quota_us"), "50000");
    assert_int_equal(sandbox_add(s, 777, &err), ST_OK);
    assert_string_equal(in_group(s, "cgroup.procs"), "777\n");
    assert_string_equal(in_quota_group(s, "cgroup.procs"), "777\n");
    snprintf(dir, sizeof dir, "%s", sandbox_quota_path(s));
    sandbox_destroy(s);
    assert_false(tree_exists(root, dir));
}

static void refuses_impossible_quotas(void **state)
{
    const struct sandbox_limits more = {0, 2.5}, tiny = {0, 0.001}, some = {0, 1};
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;

    (void)state;
    v1_cpu_tree("100000\n"); /* two CPUs */
    assert_int_equal(sandbox_create_with(&s, root, &more, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "above the 2 that "
                                    "/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us allows"));
    err_clear(&err);
    assert_int_equal(sandbox_create_with(&s, root, &tiny, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "below 0.01"));
    err_clear(&err);
    v1_tree(); /* without the controller */
    assert_int_equal(sandbox_create_with(&s, root, &some, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no CPU controller"));
    assert_null(s);
}

/* A run that was killed leaves groups in both hierarchies. */
static void leftovers_of_both_hierarchies_go(void **state)
{
    (void)state;
    v1_cpu_tree("-1\n");
    tree_mkdir(root, "/sys/fs/cgroup/memory/jobs/mine/slmbench.50.1.9900.0");
    tree_mkdir(root, "/sys/fs/cgroup/cpu/jobs/slmbench.50.2.9900.0");
    assert_int_equal(sandbox_clean_leftovers(root), 2);
    assert_false(tree_exists(root, "/sys/fs/cgroup/cpu/jobs/slmbench.50.2.9900.0"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(v2_group_has_limit_and_quota, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(v2_quota_comes_later, setup, remove_root),
        cmocka_unit_test_setup_teardown(v2_without_the_cpu_controller, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(v1_has_a_group_for_each_controller, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(refuses_impossible_quotas, setup, remove_root),
        cmocka_unit_test_setup_teardown(leftovers_of_both_hierarchies_go, setup,
                                        remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
