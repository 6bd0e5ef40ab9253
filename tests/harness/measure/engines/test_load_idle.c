/* SPDX-License-Identifier: MIT
 *
 * test_load_idle.c - which processes are the server's, and when they idle
 */
#include "harness/measure/engines/load_idle.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/tree.h"

static void put_process(const char *root, const char *pid, const char *name, int parent,
                        int group, int ticks)
{
    char path[64], text[256];

    snprintf(path, sizeof path, "/proc/%s/stat", pid);
    snprintf(
        text, sizeof text,
        "%s (%s) S %d %d 1 0 -1 4194304 10 20 30 40 %d 2 3 4 20 0 1 0 500 9999 9\n",
        pid, name, parent, group, ticks);
    tree_put(root, path, text);
}

static void a_group_and_what_descends_from_it(void **state)
{
    const uint64_t tick = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    char root[64];

    (void)state;
    tree_new(root);
    put_process(root, "1", "init", 0, 1, 100000);
    put_process(root, "20", "server", 1, 20, 100);
    put_process(root, "21", "a) R 9 (name", 1, 20, 200); /* of the group */
    put_process(root, "5", "runner", 7, 5, 400); /* a grandchild that leads another */
    put_process(root, "7", "runner", 20, 7, 800);
    put_process(root, "22", "other", 1, 22, 1600);
    tree_put(root, "/proc/23/stat", "23 (cut) S 20 20 1");
    tree_put(root, "/proc/stat", "cpu 1 2 3 4\n");
    assert_int_equal(load_idle_group_ns(root, 20), (1500 + 4 * 9) * tick);
    assert_int_equal(load_idle_group_ns(root, 99), 0);
    assert_int_equal(load_idle_group_ns("/no/such/tree", 20), 0);
    tree_remove(root);
}

/* Whether it is seen computing, in one of many windows: next to other work it may get
 * no CPU in most of them. */
static bool is_busy(pid_t child)
{
    for (int i = 0; i < 200; i++)
        if (load_idle_cpus(child) > LOAD_IDLE_CPUS)
            return true;
    return false;
}

/* As is_busy(), by waiting for it to idle. */
static bool is_waited_for(pid_t child)
{
    for (int i = 0; i < 200; i++)
        if (!load_idle_wait(child, 0, 0.1))
            return true;
    return false;
}

/* A process that computes is not idle, one that is stopped is; and one that always took
 * a CPU idles with it. */
static void a_server_is_waited_for(void **state)
{
    const pid_t child = test_fork();

    (void)state;
    assert_true(child >= 0);
    if (!child) {
        setpgid(0, 0);
        for (volatile unsigned i = 0;; i++) {
        }
    }
    setpgid(child, child);
    assert_true(is_waited_for(child));
    assert_true(is_busy(child));
    assert_true(load_idle_wait(child, 1.1, 60));
    kill(child, SIGSTOP);
    assert_true(load_idle_wait(child, 0, 60));
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_and_what_descends_from_it),
        cmocka_unit_test(a_server_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
