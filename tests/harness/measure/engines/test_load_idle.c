/* SPDX-License-Identifier: MIT
 *
 * test_load_idle.c - which processes are the server's, when they idle, and their memory
 */
#include "harness/measure/engines/launch.h"

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

/* A copy of a program maps more or less of its own file: 300 or 200 KiB here. 20 KiB
 * are its variables, which count, and so does what it maps of a model. */
static void memory_is_without_the_programs_files(void **state)
{
    static const char *const files[] = {"maps", "smaps"};
    char root[64], path[64], text[1024];

    (void)state;
    tree_new(root);
    for (int pid = 20; pid < 23; pid++) {
        char name[16];

        snprintf(name, sizeof name, "%d", pid);
        put_process(root, name, "server", 1, pid == 22 ? 22 : 20, 1);
        snprintf(path, sizeof path, "/proc/%d/status", pid);
        snprintf(text, sizeof text, "Name:\tserver\nVmPeak:\t99999 kB\nVmHWM:\t%d kB\n",
                 pid == 20 ? 5280 : 180);
        tree_put(root, path, text);
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
            snprintf(text, sizeof text,
                     "400000-440000 r--p 00000000 fe:00 77   /bin/x y\nRss: 100 kB\n"
                     "Anonymous: 0 kB\n"
                     "440000-480000 r-xp 00040000 fe:00 77   /bin/x y\nRss: %d kB\n"
                     "Anonymous: 0 kB\n"
                     "480000-490000 rw-p 00080000 fe:00 77   /bin/x y\nRss: 20 kB\n"
                     "Anonymous: 20 kB\n"
                     "500000-900000 r--p 00000000 fe:00 78   /models/m\nRss: 4000 kB\n"
                     "Anonymous: 0 kB\n"
                     "900000-990000 rw-p 00000000 00:00 0\nRss: 1000 kB\n"
                     "Anonymous: 1000 kB\n",
                     pid == 20 ? 180 : 80);
            tree_put(root, path, text);
        }
    }
    assert_int_equal(launch_memory(root, 20), 5000u << 10); /* the second has 0 left */
    assert_int_equal(launch_memory(root, 99), 0);
    assert_int_equal(launch_memory("/no/such/tree", 20), 0);
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
        cmocka_unit_test(memory_is_without_the_programs_files),
        cmocka_unit_test(a_server_is_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
