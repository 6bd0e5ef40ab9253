/* SPDX-License-Identifier: MIT
 *
 * Locks of files: another process is blamed only where there is one.
 */
#include "engine/base/filelock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/tree_root.h"

static int next_errno; /* of the next flock() */

/* In place of libc's. */
int flock(int fd, int operation)
{
    if (!next_errno)
        return (int)syscall(SYS_flock, fd, operation);
    errno = next_errno;
    next_errno = 0;
    return -1;
}

static int open_one(void)
{
    char path[128];

    snprintf(path, sizeof path, "%s/lock", root);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
}

static void held(void **state)
{
    const int first = open_one(), second = open_one();
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(filelock_take(first, "sweep", "out", &err), ST_OK);
    assert_int_equal(filelock_take(second, "sweep", "out", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "another sweep is writing to out;"));
    err_clear(&err);
    close(first);
    assert_int_equal(filelock_take(second, "sweep", "out", &err), ST_OK);
    close(second);
}

static void without_locks(void **state)
{
    const int fd = open_one();
    struct err err = ERR_INIT;

    (void)state;
    next_errno = ENOLCK;
    assert_int_equal(filelock_take(fd, "sweep", "out", &err), ST_IO);
    assert_non_null(strstr(err.msg, "cannot lock out: "));
    assert_null(strstr(err.msg, "another sweep"));
    err_clear(&err);
    next_errno = EINTR; /* a signal: once more */
    assert_int_equal(filelock_take(fd, "sweep", "out", &err), ST_OK);
    close(fd);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, make_root, remove_root)
    const struct CMUnitTest tests[] = {TEST(held), TEST(without_locks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
