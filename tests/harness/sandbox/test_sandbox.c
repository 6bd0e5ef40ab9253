/* SPDX-License-Identifier: MIT
 *
 * test_sandbox.c - where groups are made (on recorded trees), and real groups
 *
 * The second half needs the right to make memory cgroups and skips without it.
 */
#include "tests/support/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>
#include <sys/wait.h>

#include "harness/sandbox/cgroup.h"
#include "harness/sandbox/sandbox.h"
#include "harness/sandbox/sandbox_group.h"

#define MIB UINT64_C(1048576)

static char root[64];

static int setup(void **state)
{
    (void)state;
    tree_new(root);
    tree_put(root, "/proc/meminfo",
             "MemTotal: 16777216 kB\nMemAvailable: 8000000 kB\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    tree_remove(root);
    return 0;
}

/* A v2 hierarchy in which we are in /user/me, with the files the kernel makes. */
static void v2_group(const char *dir, const char *controllers, const char *passed_on,
                     const char *procs)
{
    char path[512];

    snprintf(path, sizeof path, "%s/cgroup.controllers", dir);
    tree_put(root, path, controllers);
    snprintf(path, sizeof path, "%s/cgroup.subtree_control", dir);
    tree_put(root, path, passed_on);
    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    tree_put(root, path, procs);
    snprintf(path, sizeof path, "%s/cgroup.type", dir);
    if (strcmp(dir, "/sys/fs/cgroup") != 0)
        tree_put(root, path, "domain\n");
}

static void v2_tree(void)
{
    tree_put(root, "/proc/self/cgroup", "0::/user/me\n");
    tree_put(root, "/proc/self/mountinfo",
             "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    v2_group("/sys/fs/cgroup", "cpu memory pids\n", "cpu memory pids\n", "1\n2\n");
    v2_group("/sys/fs/cgroup/user", "cpu memory pids\n", "cpu memory\n", "");
    v2_group("/sys/fs/cgroup/user/me", "cpu memory\n", "", "4321\n4322\n");
}

static void v1_tree(void)
{
    tree_put(root, "/proc/self/cgroup", "4:memory:/jobs/mine\n0::/\n");
    tree_put(root, "/proc/self/mountinfo",
             "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    tree_put(root, "/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes",
             "9223372036854771712\n");
    tree_mkdir(root, "/sys/fs/cgroup/memory/jobs/mine");
}

static const char *in_group(const struct sandbox *s, const char *file)
{
    static char buf[256];
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", sandbox_path(s), file);
    return tree_get(root, path, buf, sizeof buf);
}

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

/* ---- CPU quotas -------------------------------------------------------------------
 */

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

/* Where the CPU controller is not given to us, nothing is made. */
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
    assert_non_null(strstr(err.msg, "1 GiB that /sys/fs/cgroup/memory.max allows"));
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
    } cases[] = {{15 * MIB, "16 MiB"},
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

/* As somebody who may not write there. */
static void says_how_to_get_permission(void **state)
{
    struct err err = ERR_INIT;
    char path[256];

    (void)state;
    if (geteuid() == 0) {
        /* root may write anywhere but below something that is no directory; take the
         * controller away instead, which leaves no place either */
        v2_tree();
        v2_group("/sys/fs/cgroup", "cpu memory\n", "cpu\n", "1\n");
        tree_put(root, "/sys/fs/cgroup/cgroup.type", "domain\n");
        v2_group("/sys/fs/cgroup/user", "cpu\n", "", "");
        v2_group("/sys/fs/cgroup/user/me", "cpu\n", "", "");
    } else {
        v2_tree();
        snprintf(path, sizeof path, "%s/sys/fs/cgroup/user", root);
        chmod(path, 0555);
        snprintf(path, sizeof path, "%s/sys/fs/cgroup", root);
        chmod(path, 0555);
        snprintf(path, sizeof path, "%s/sys/fs/cgroup/user/me", root);
        chmod(path, 0555);
    }
    assert_int_equal(sandbox_check(root, 0, &err), ST_PERMISSION);
    assert_non_null(strstr(err.msg, "systemd-run --user --scope -p Delegate=yes"));
    assert_non_null(strstr(err.msg, "--mem none"));
    if (geteuid() != 0) {
        snprintf(path, sizeof path, "chmod -R u+w '%s'", root);
        assert_int_equal(system(path), 0);
    }
}

/* ---- leftovers ------------------------------------------------------------------ */

static void names_tell_the_maker(void **state)
{
    static const char *const wrong[] = {
        "slmbench",      "slmbench.",           "slmbench.x.1.2.3",
        "slmbench.12.1", "slmbench.12.1.5.6.7", "slmbench.-4.1.5.6",
        "other.12.1.5.6"};
    struct maker m = {.pid = 12, .start = 345, .pidns = 678}, got;
    char name[96];
    bool self;

    (void)state;
    group_name(&m, "9", name, sizeof name);
    assert_string_equal(name, "slmbench.12.9.345.678");
    assert_true(group_parse(name, &got, &self));
    assert_int_equal(got.pid, 12);
    assert_int_equal(got.start, 345);
    assert_int_equal(got.pidns, 678);
    assert_false(self);
    assert_true(group_parse("slmbench.12.self.345.678", &got, &self) && self);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(group_parse(wrong[i], &got, &self));
}

static void removes_only_the_dead(void **state)
{
    (void)state;
    v2_tree();
    tree_put(root, "/proc/50/stat",
             "50 (a (b) c) S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 9900 1 1\n");
    tree_mkdir(root, "/proc/self/ns");
    char link[200];
    snprintf(link, sizeof link, "%s/proc/self/ns/pid", root);
    assert_int_equal(symlink("pid:[4026531836]", link), 0);

    tree_mkdir(root, "/sys/fs/cgroup/user/slmbench.50.1.9900.4026531836"); /* lives */
    tree_mkdir(root,
               "/sys/fs/cgroup/user/slmbench.50.1.8800.4026531836"); /* number reused */
    tree_mkdir(root,
               "/sys/fs/cgroup/a/b/slmbench.51.1.8800.4026531836"); /* gone, deep */
    tree_mkdir(root,
               "/sys/fs/cgroup/user/slmbench.51.1.8800.4026539999"); /* elsewhere */
    tree_mkdir(root, "/sys/fs/cgroup/user/slmbench.51.self.8800.4026531836");
    tree_mkdir(root, "/sys/fs/cgroup/user/slmbench.foreign");
    assert_int_equal(sandbox_clean_leftovers(root), 3);
    assert_true(tree_exists(root, "/sys/fs/cgroup/user/slmbench.50.1.9900.4026531836"));
    assert_false(
        tree_exists(root, "/sys/fs/cgroup/user/slmbench.50.1.8800.4026531836"));
    assert_false(tree_exists(root, "/sys/fs/cgroup/a/b/slmbench.51.1.8800.4026531836"));
    assert_true(tree_exists(root, "/sys/fs/cgroup/user/slmbench.51.1.8800.4026539999"));
    assert_true(tree_exists(root, "/sys/fs/cgroup/user/slmbench.foreign"));
    assert_int_equal(sandbox_clean_leftovers(root), 0);
}

/* ---- real groups ---------------------------------------------------------------- */

static void need_groups(void)
{
    struct err err = ERR_INIT;

    if (sandbox_check("", 0, &err)) {
        print_message("skipped: %s\n", err.msg);
        skip();
    }
}

/* A child that waits until it is in the group, then touches n bytes. */
static pid_t start_eater(size_t n, int *gate)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) {
        char c;

        close(ends[1]);
        if (read(ends[0], &c, 1) != 1)
            _exit(3);
        char *p =
            mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        for (size_t i = 0; p != MAP_FAILED && i < n; i += 4096)
            ((volatile char *)p)[i] = 1;
        if (n < 32 * MIB)
            pause();
        _exit(0);
    }
    close(ends[0]);
    *gate = ends[1];
    return pid;
}

static void live_limit_kills(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    struct sandbox_usage u;
    int gate, status;

    (void)state;
    need_groups();
    assert_int_equal(sandbox_create(&s, "", 32 * MIB, &err), ST_OK);
    const pid_t pid = start_eater(64 * MIB, &gate);
    assert_int_equal(sandbox_add(s, pid, &err), ST_OK);
    assert_int_equal(write(gate, "x", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(gate);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(sandbox_read(s, &u, &err), ST_OK);
    assert_int_equal(u.limit_bytes, 32 * MIB);
    assert_int_equal(u.n_oom_kills, 1);
    assert_true(u.peak_bytes > 16 * MIB && u.peak_bytes <= 32 * MIB);
    sandbox_destroy(s);
}

/* 20 ms of CPU time at 1 ms in 100 ms. */
static void live_quota_throttles(void **state)
{
    const struct sandbox_limits limits = {0, 0.01};
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    char path[600], text[1024];
    unsigned long long n = 0;
    int ends[2], status;

    (void)state;
    if (sandbox_check_with("", &limits, &err)) {
        print_message("skipped: %s\n", err.msg);
        skip();
    }
    assert_int_equal(sandbox_create_with(&s, "", &limits, &err), ST_OK);
    assert_int_equal(pipe(ends), 0);
    const pid_t pid = fork();
    if (!pid) {
        char c;

        if (read(ends[0], &c, 1) != 1)
            _exit(3);
        while (clock() < CLOCKS_PER_SEC / 50) {
        }
        _exit(0);
    }
    assert_int_equal(sandbox_add(s, pid, &err), ST_OK);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(ends[0]);
    close(ends[1]);
    snprintf(path, sizeof path, "%s/cpu.stat", sandbox_quota_path(s));
    tree_get("", path, text, sizeof text);
    assert_int_equal(sscanf(strstr(text, "nr_throttled"), "nr_throttled %llu", &n), 1);
    assert_true(n > 0);
    snprintf(path, sizeof path, "%s", sandbox_quota_path(s));
    sandbox_destroy(s);
    assert_int_equal(access(path, F_OK), -1);
}

static void live_destroy_kills_and_removes(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *s = NULL;
    char path[512];
    int gate, status;

    (void)state;
    need_groups();
    assert_int_equal(sandbox_create(&s, "", 64 * MIB, &err), ST_OK);
    snprintf(path, sizeof path, "%s", sandbox_path(s));
    const pid_t pid = start_eater(1 * MIB, &gate);
    assert_int_equal(sandbox_add(s, pid, &err), ST_OK);
    assert_int_equal(write(gate, "x", 1), 1);
    assert_int_equal(access(path, F_OK), 0);
    sandbox_destroy(s);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    close(gate);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* A run that is killed leaves its group and its child; the next start removes both,
 * and leaves the group of a run that is alive. */
static void live_leftovers_go(void **state)
{
    struct err err = ERR_INIT;
    struct sandbox *mine = NULL;
    int report[2], status;
    struct {
        char path[512];
        pid_t pid;
    } left;

    (void)state;
    need_groups();
    assert_int_equal(sandbox_create(&mine, "", 64 * MIB, &err), ST_OK);
    assert_int_equal(pipe(report), 0);
    const pid_t run = fork();
    if (!run) {
        struct sandbox *s = NULL;
        int gate;

        if (sandbox_create(&s, "", 64 * MIB, &err))
            _exit(1);
        memset(&left, 0, sizeof left);
        snprintf(left.path, sizeof left.path, "%s", sandbox_path(s));
        left.pid = start_eater(1 * MIB, &gate);
        if (sandbox_add(s, left.pid, &err) || write(gate, "x", 1) != 1 ||
            write(report[1], &left, sizeof left) != sizeof left)
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    close(report[1]);
    assert_int_equal(read(report[0], &left, sizeof left), sizeof left);
    close(report[0]);
    assert_int_equal(waitpid(run, &status, 0), run);
    assert_int_equal(access(left.path, F_OK), 0);
    assert_true(sandbox_clean_leftovers("") >= 1);
    assert_int_equal(access(left.path, F_OK), -1);
    assert_int_equal(access(sandbox_path(mine), F_OK), 0);
    sandbox_destroy(mine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(v2_stays_below_our_own_group, setup, teardown),
        cmocka_unit_test_setup_teardown(v2_makes_nothing_further_up, setup, teardown),
        cmocka_unit_test_setup_teardown(v2_stands_beside_the_leaf_of_another_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(v2_switches_memory_on_in_the_real_root, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(v2_leaves_memory_on_for_another_run, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(v2_retreats_into_a_leaf, setup, teardown),
        cmocka_unit_test_setup_teardown(v1_limits_memory_and_swap_together, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(v2_group_has_limit_and_quota, setup, teardown),
        cmocka_unit_test_setup_teardown(v2_quota_comes_later, setup, teardown),
        cmocka_unit_test_setup_teardown(v2_without_the_cpu_controller, setup, teardown),
        cmocka_unit_test_setup_teardown(v1_has_a_group_for_each_controller, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(refuses_impossible_quotas, setup, teardown),
        cmocka_unit_test_setup_teardown(leftovers_of_both_hierarchies_go, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(reads_usage, setup, teardown),
        cmocka_unit_test_setup_teardown(reads_what_stays_resident, setup, teardown),
        cmocka_unit_test_setup_teardown(takes_a_containers_own_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(a_container_has_no_other_limit, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(own_group_counts_kills, setup, teardown),
        cmocka_unit_test_setup_teardown(refuses_impossible_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(says_where_it_looked, setup, teardown),
        cmocka_unit_test_setup_teardown(says_how_to_get_permission, setup, teardown),
        cmocka_unit_test(names_tell_the_maker),
        cmocka_unit_test_setup_teardown(removes_only_the_dead, setup, teardown),
        cmocka_unit_test(live_limit_kills),
        cmocka_unit_test(live_quota_throttles),
        cmocka_unit_test(live_destroy_kills_and_removes),
        cmocka_unit_test(live_leftovers_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
