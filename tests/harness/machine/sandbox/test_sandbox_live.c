/* SPDX-License-Identifier: MIT
 *
 * test_sandbox_live.c - what groups leave behind, and real groups
 *
 * Real groups need the right to make memory cgroups; without it their tests are
 * skipped.
 */
#include "tests/support/sandbox_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "harness/machine/sandbox/cgroup.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/sandbox/sandbox_group.h"

/* ---- leftovers ------------------------------------------------------------------- */

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

    /* from a namespace of times, whose processes have other start times there */
    snprintf(link, sizeof link, "%s/proc/self/ns/time", root);
    assert_int_equal(symlink("time:[4026532500]", link), 0);
    tree_put(root, "/proc/self/stat",
             "50 (a) S 1 1 1 0 -1 4194560 1 0 0 0 1 2 0 0 20 0 1 0 9900 1 1\n");
    struct maker elsewhere, here;
    char name[96], path[200];
    maker_self(&elsewhere, root);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink("time:[4026531834]", link), 0); /* the first one */
    maker_self(&here, root);
    assert_int_equal(here.pidns, 4026531836);
    elsewhere.pid = 50;
    elsewhere.start = 123;
    group_name(&elsewhere, "1", name, sizeof name);
    snprintf(path, sizeof path, "/sys/fs/cgroup/user/%s", name);
    tree_mkdir(root, path);
    assert_int_equal(sandbox_clean_leftovers(root), 0);
    assert_true(tree_exists(root, path));
}

/* ---- real groups ----------------------------------------------------------------- */

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
    const pid_t pid = test_fork();
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
    const pid_t pid = test_fork();
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

/* No descriptor to read /proc with is no reason to kill the processes of a run. */
static void who_cannot_be_read_may_live(void **state)
{
    const pid_t pid = test_fork();
    struct rlimit before, none;
    struct maker me, ended;

    (void)state;
    if (!pid)
        _exit(0);
    maker_self(&me, "");
    ended = me;
    ended.pid = pid;
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);

    const bool may_live = maker_may_live(&me, ""),
               has_ended = !maker_may_live(&ended, "");

    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(may_live);
    assert_true(has_ended);
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
    const pid_t run = test_fork();
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
        cmocka_unit_test(names_tell_the_maker),
        cmocka_unit_test_setup_teardown(removes_only_the_dead, setup, remove_root),
        cmocka_unit_test(live_limit_kills),
        cmocka_unit_test(live_quota_throttles),
        cmocka_unit_test(live_destroy_kills_and_removes),
        cmocka_unit_test(who_cannot_be_read_may_live),
        cmocka_unit_test(live_leftovers_go),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
