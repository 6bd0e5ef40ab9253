/* SPDX-License-Identifier: MIT
 *
 * inherited.c - descriptors, limits and signals of whoever starts a process
 */
#include "harness/base/inherited.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- descriptors ----------------------------------------------------------------- */

/* The kernel's, which headers of older distributions lack. */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define CLOEXEC_RANGE (1u << 2)

/* What Linux before 5.11 has no call for: shells give descriptors of their user's
 * below. */
#define INHERITED_MAX 1024

#define FIRST (STDERR_FILENO + 1)

static void close_all(int first, int last)
{
    if (first > last || !syscall(SYS_close_range, first, last, 0))
        return;
    for (int fd = first; fd <= last && fd < INHERITED_MAX; fd++)
        close(fd);
}

static bool keep_standard_files(void)
{
    for (int fd = 0; fd < FIRST; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

/* "/dev/fd/63", anywhere in an argument, as in --prompts=/dev/fd/63. */
static void find_named(bool *is_named, const char *argument)
{
    static const char *const folders[] = {"/dev/fd/", "/proc/self/fd/"};

    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        for (const char *at = argument; (at = strstr(at, folders[i]));) {
            at += strlen(folders[i]);
            const unsigned long fd = strtoul(at, NULL, 10);

            if (fd >= FIRST && fd < INHERITED_MAX)
                is_named[fd] = true;
        }
}

void inherited_close_others(int argc, char **argv)
{
    bool is_named[INHERITED_MAX] = {false};
    int first = FIRST;

    for (int i = 0; i < argc; i++)
        find_named(is_named, argv[i]);
    for (int fd = FIRST; fd < INHERITED_MAX; fd++)
        if (is_named[fd]) {
            close_all(first, fd - 1);
            fcntl(fd, F_SETFD, FD_CLOEXEC);
            first = fd + 1;
        }
    close_all(first, INT_MAX);
}

void inherited_pass_on(int also)
{
    signal(SIGXFSZ, SIG_DFL);
    if (syscall(SYS_close_range, FIRST, ~0u, CLOEXEC_RANGE))
        for (int fd = FIRST; fd < INHERITED_MAX; fd++)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    if (also)
        fcntl(also, F_SETFD, 0);
}

void inherited_close_all(int but)
{
    close_all(0, but - 1);
    close_all(but + 1, INT_MAX);
}

/* ---- limits ---------------------------------------------------------------------- */

static bool set_stack(rlim_t bytes, rlim_t max)
{
    const struct rlimit limit = {bytes, max};

    return !setrlimit(RLIMIT_STACK, &limit);
}

/* The kernel reads the limit of the main thread's when that grows, and leaves room
 * below it for far more; glibc has read it already, for those of all others. */
static enum status raise_stack(struct err *err)
{
    struct rlimit limit;
    pthread_attr_t attr;
    rlim_t had;

    if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur >= INHERITED_STACK)
        return ST_OK;
    had = limit.rlim_max;
    if (!set_stack(INHERITED_STACK, had < INHERITED_STACK ? INHERITED_STACK : had) &&
        (had < INHERITED_STACK_MIN || !set_stack(had, had)))
        return err_set(err, ST_UNSUPPORTED,
                       "stacks are limited to %llu KiB here and %u are needed; `ulimit "
                       "-s %u` before, or as root, gives more",
                       (unsigned long long)had >> 10, INHERITED_STACK_MIN >> 10,
                       INHERITED_STACK >> 10);
    if (!pthread_attr_init(&attr)) {
        pthread_attr_setstacksize(&attr, INHERITED_STACK);
        pthread_setattr_default_np(&attr);
        pthread_attr_destroy(&attr);
    }
    return ST_OK;
}

enum status inherited_settle(struct err *err)
{
    if (!keep_standard_files())
        return err_set_errno(err, ST_IO,
                             "a standard descriptor is closed, and "
                             "/dev/null cannot take its place");
    signal(SIGXFSZ, SIG_IGN);
    return raise_stack(err);
}
