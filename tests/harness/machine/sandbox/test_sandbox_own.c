/* SPDX-License-Identifier: MIT
 *
 * test_sandbox_own.c - the group that we are in: a container's limit, kills,
 * permission, on recorded trees
 */
#include "tests/support/sandbox_tree.h"

#include <errno.h>

#include "harness/machine/sandbox/cgroup.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/sandbox/sandbox_group.h"

/* As Docker and Kubernetes start a process that is not privileged: a limit, and a
 * hierarchy that nobody inside may change. */
static void container_tree(void)
{
    tree_put(root, "/proc/self/cgroup", "0::/\n");
    tree_put(root, "/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup2 ro\n");
    tree_put(root, "/sys/fs/cgroup/cgroup.type", "domain\n");
    tree_put(root, "/sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    tree_put(root, "/sys/fs/cgroup/memory.max", "1073741824\n");
    tree_put(root, "/sys/fs/cgroup/memory.current", "3000\n");
    tree_put(root, "/sys/fs/cgroup/memory.peak", "900000\n");
    tree_put(root, "/sys/fs/cgroup/memory.stat", "anon 1000\npgmajfault 70\n");
    tree_put(root, "/sys/fs/cgroup/memory.events", "oom 5\noom_kill 4\n");
}

static void takes_a_containers_own_limit(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    struct sandbox_usage u;
    char buf[64];

    (void)state;
    container_tree();
    assert_int_equal(sandbox_create(&s, root, 1024 * MIB, &err), ST_OK);
    assert_string_equal(sandbox_path(s), "/sys/fs/cgroup");
    assert_true(sandbox_is_adopted(s));
    assert_int_equal(sandbox_add(s, 777, &err), ST_OK); /* is in it from birth */
    assert_false(tree_exists(root, "/sys/fs/cgroup/cgroup.procs"));
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.limit_bytes, 1024 * MIB);
    assert_int_equal(u.n_oom_kills, 0); /* what was before is not ours */
    assert_int_equal(u.n_major_faults, 0);
    assert_int_equal(u.peak_bytes, 3000);
    tree_put(root, "/sys/fs/cgroup/memory.current", "8000\n");
    tree_put(root, "/sys/fs/cgroup/memory.events", "oom 6\noom_kill 5\n");
    tree_put(root, "/sys/fs/cgroup/memory.stat", "anon 1000\npgmajfault 73\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.n_oom_kills, 1);
    assert_int_equal(u.n_major_faults, 3);
    assert_int_equal(u.peak_bytes, 8000);
    tree_put(root, "/sys/fs/cgroup/memory.peak", "950000\n"); /* a new one */
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.peak_bytes, 950000);
    sandbox_destroy(s);
    assert_string_equal(tree_get(root, "/sys/fs/cgroup/memory.max", buf, sizeof buf),
                        "1073741824\n");
}

static void a_container_has_no_other_limit(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;

    (void)state;
    container_tree();
    assert_int_equal(sandbox_create(&s, root, 512 * MIB, &err), ST_PERMISSION);
    assert_non_null(strstr(err.msg, "--mem container"));
    err_clear(&err);
    assert_int_equal(sandbox_create(&s, root, 2048 * MIB, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "1.00 GiB that /sys/fs/cgroup/memory.max allows"));
    err_clear(&err);
    assert_int_equal(sandbox_check(root, 1024 * MIB, &err), ST_OK);
    assert_int_equal(sandbox_check(root, 512 * MIB, &err), ST_PERMISSION);
    assert_null(s);
}

/* Without a limit asked for, the counters of our own group still tell an OOM kill;
 * version 1 before Linux 4.13 has but a counter of charges that failed. */
static void own_group_counts_kills(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    struct sandbox_usage u;

    (void)state;
    v1_tree();
    tree_put(root, "/sys/fs/cgroup/memory/jobs/mine/memory.stat", "rss 1\n");
    tree_put(root, "/sys/fs/cgroup/memory/jobs/mine/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    tree_put(root, "/sys/fs/cgroup/memory/jobs/mine/memory.failcnt", "70\n");
    assert_int_equal(sandbox_adopt(&s, root, &err), ST_OK);
    assert_string_equal(sandbox_path(s), "/sys/fs/cgroup/memory/jobs/mine");
    tree_put(root, "/sys/fs/cgroup/memory/jobs/mine/memory.failcnt", "90\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.limit_bytes, 0);
    assert_int_equal(u.n_oom_kills, 0);
    tree_put(root, "/sys/fs/cgroup/memory/jobs/mine/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.n_oom_kills, 1);
    sandbox_destroy(s);

    tree_put(root, "/sys/fs/cgroup/memory/jobs/mine/memory.oom_control",
             "oom_kill_disable 0\nunder_oom 0\n");
    assert_int_equal(sandbox_adopt(&s, root, &err), ST_OK);
    tree_put(root, "/sys/fs/cgroup/memory/jobs/mine/memory.failcnt", "95\n");
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.n_oom_kills, 5);
    sandbox_destroy(s);
}

static void refuses_impossible_limits(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *says;
    } cases[] = {{1024, "limit of 1.00 KiB is below 16 MiB"},
                 {15 * MIB, "limit of 15.0 MiB is below 16 MiB"},
                 {17 * 1024 * MIB, "this machine has"},
                 {2048 * MIB, "/sys/fs/cgroup/user/memory.max"}};
    struct sandbox *s = NULL;

    (void)state;
    v2_tree();
    tree_put(root, "/sys/fs/cgroup/user/memory.max", "1073741824\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct err err = ERR_INIT;

        assert_int_equal(sandbox_create(&s, root, cases[i].bytes, &err), ST_USAGE);
        assert_non_null(strstr(err.msg, cases[i].says));
        assert_null(s);
    }
    struct err err = ERR_INIT;
    assert_int_equal(sandbox_create(&s, root, 1024 * MIB, &err), ST_OK); /* just fits */
    sandbox_destroy(s);
}

static void says_where_it_looked(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(sandbox_check(root, 0, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "mountinfo"));
    assert_non_null(strstr(err.msg, "--mem none"));
}

/* As somebody who may not write there; root may everywhere, but not where the file is
 * missing. */
static void says_how_to_get_permission(void **state)
{
    struct err err = ERR_INIT;
    char path[256];

    (void)state;
    v2_tree();
    snprintf(path, sizeof path, "%s/sys/fs/cgroup/user/me/cgroup.procs", root);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(sandbox_check(root, 0, &err), ST_PERMISSION);
    assert_non_null(strstr(err.msg, "systemd-run --user --scope -p Delegate=yes"));
    assert_non_null(strstr(err.msg, "--mem none"));
    assert_null(strstr(err.msg, "controller"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(takes_a_containers_own_limit, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(a_container_has_no_other_limit, setup,
                                        remove_root),
        cmocka_unit_test_setup_teardown(own_group_counts_kills, setup, remove_root),
        cmocka_unit_test_setup_teardown(refuses_impossible_limits, setup, remove_root),
        cmocka_unit_test_setup_teardown(says_where_it_looked, setup, remove_root),
        cmocka_unit_test_setup_teardown(says_how_to_get_permission, setup, remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
