/* SPDX-License-Identifier: MIT
 *
 * test_measuring.c - who measures on a machine waits for who did before
 */
#include "tests/support/tree.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/interrupt.h"
#include "harness/machine/measuring.h"

static char root[64], path[80];

static int setup(void **state)
{
    (void)state;
    tree_new(root);
    snprintf(path, sizeof path, "%s/lock", root);
    setenv("SLMBENCH_LOCK", path, 1);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    measuring_end();
    tree_remove(root);
    return 0;
}

/* A process that begins to measure, says so with a byte, and then sleeps; what it
 * complains about goes to *complaints. */
static pid_t begin(int *measures, int *complaints)
{
    int said[2], words[2];
    pid_t pid;

    assert_int_equal(pipe(said), 0);
    assert_int_equal(pipe(words), 0);
    pid = test_fork();
    if (!pid) {
        struct err err = ERR_INIT;

        dup2(words[1], STDERR_FILENO);
        if (measuring_begin(&err) || measuring_begin(&err) ||
            write(said[1], "m", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(said[1]);
    close(words[1]);
    *measures = said[0];
    *complaints = words[0];
    return pid;
}

static bool hears(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, ms) == 1;
}

static void end(pid_t pid)
{
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

static void the_second_waits_and_says_for_whom(void **state)
{
    int measures[2], complaints[2];
    char words[600] = "", number[24];
    pid_t first, second;

    (void)state;
    first = begin(&measures[0], &complaints[0]);
    assert_true(hears(measures[0], 60000));
    second = begin(&measures[1], &complaints[1]);
    assert_true(hears(complaints[1], 60000));
    assert_true(read(complaints[1], words, sizeof words - 1) > 0);
    snprintf(number, sizeof number, "process %d (", (int)first);
    assert_non_null(strstr(words, "waiting for "));
    if (!strstr(words, "cannot be seen"))
        assert_non_null(strstr(words, number));
    assert_false(hears(measures[1], 300));
    end(first);
    assert_true(hears(measures[1], 60000));
    end(second);
    for (int i = 0; i < 2; i++) {
        close(measures[i]);
        close(complaints[i]);
    }
}

static void none_and_the_impossible_do_not_wait(void **state)
{
    struct err err = ERR_INIT;
    int measures, complaints;
    pid_t first = begin(&measures, &complaints);

    (void)state;
    assert_true(hears(measures, 60000));
    setenv("SLMBENCH_LOCK", "none", 1);
    assert_int_equal(measuring_begin(&err), ST_OK);
    measuring_end();
    setenv("SLMBENCH_LOCK", "/nowhere/lock", 1);
    assert_int_equal(measuring_begin(&err), ST_OK);
    measuring_end();
    end(first);
    close(measures);
    close(complaints);
}

static const char *remark(void)
{
    static char text[120];

    snprintf(text, sizeof text, "2 samples");
    measuring_remark(text, sizeof text);
    return text;
}

static void measuring_without_the_lock_is_reported(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    assert_string_equal(remark(), "2 samples");
    assert_int_equal(measuring_begin(&err), ST_OK);
    assert_string_equal(remark(), "2 samples");
    measuring_end();
    setenv("SLMBENCH_LOCK", "none", 1);
    assert_int_equal(measuring_begin(&err), ST_OK);
    assert_string_equal(remark(), "2 samples; without the lock: SLMBENCH_LOCK=none");
    setenv("SLMBENCH_LOCK", "/nowhere/lock", 1);
    assert_int_equal(measuring_begin(&err), ST_OK);
    assert_string_equal(remark(), "2 samples; without the lock: no file can be locked");
    measuring_end();
    assert_string_equal(remark(), "2 samples");
}

/* A sweep waits for the program that it measures, which may be a bench. */
static void what_the_holder_starts_does_not_wait(void **state)
{
    struct err err = ERR_INIT;
    int status;
    pid_t pid;

    (void)state;
    assert_int_equal(measuring_begin(&err), ST_OK);
    pid = test_fork();
    if (!pid) {
        const pid_t between = fork(); /* a shell */

        if (!between) {
            alarm(30);
            measuring_end(); /* as exec() does to the descriptor */
            _exit(measuring_begin(&err) || strcmp(remark(), "2 samples") ? 1 : 0);
        }
        waitpid(between, &status, 0);
        _exit(status ? 1 : 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* A link that somebody has put there is not followed. */
static void links_are_not_followed(void **state)
{
    struct err err = ERR_INIT;
    char to[80];

    (void)state;
    snprintf(to, sizeof to, "%s/made", root);
    assert_int_equal(symlink(to, path), 0);
    assert_int_equal(measuring_begin(&err), ST_OK);
    assert_int_not_equal(access(to, F_OK), 0);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_second_waits_and_says_for_whom),
        TEST(none_and_the_impossible_do_not_wait),
        TEST(measuring_without_the_lock_is_reported),
        TEST(what_the_holder_starts_does_not_wait),
        TEST(links_are_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
