/* SPDX-License-Identifier: MIT
 *
 * measuring.c - one measurement at a time on a machine
 */
#include "harness/machine/measuring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/utf8.h"
#include "harness/base/format.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/base/sysfile.h"

#define AGAIN_US   100000
#define REMIND_NS  60000000000u
#define COMMAND_AT 100 /* characters of a command that are shown */
#define NO_LOCK    "no file can be locked"

static int lock_fd = -1;

/* Why this process measures without the lock; NULL: it has it, or does not measure. */
static const char *without;

/* An existing file of another user is opened without O_CREAT, which kernels refuse in
 * folders that everybody may write to. */
static int open_lock(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (fd < 0 && errno == ENOENT) {
        fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
        if (fd < 0 && errno == EEXIST)
            fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    }
    return fd;
}

/* -1: none, or none wanted. */
static int open_any(void)
{
    static const char *const places[] = {"/run/lock/slmbench.lock",
                                         "/tmp/slmbench.lock"};
    const char *own = getenv("SLMBENCH_LOCK");
    int fd = -1;

    if (own && *own)
        return strcmp(own, "none") ? open_lock(own) : -1;
    for (size_t i = 0; fd < 0 && i < sizeof places / sizeof *places; i++)
        fd = open_lock(places[i]);
    return fd;
}

/* Who holds the lock, as /proc/locks has it: "1: FLOCK ADVISORY WRITE 123 fe:01:4567
 * ..". 0: a process that cannot be seen from here. */
static long holder(int fd)
{
    struct stat st;
    char line[160];
    FILE *f = fopen("/proc/locks", "re");
    long pid = 0;

    if (f && !fstat(fd, &st))
        while (!pid && fgets(line, sizeof line, f)) {
            unsigned major, minor;
            unsigned long long inode;
            long who;

            if (sscanf(line, "%*d: FLOCK ADVISORY WRITE %ld %x:%x:%llu", &who, &major,
                       &minor, &inode) == 4 &&
                who > 0 && inode == (unsigned long long)st.st_ino &&
                major == major(st.st_dev) && minor == minor(st.st_dev))
                pid = who;
        }
    if (f)
        fclose(f);
    return pid;
}

/* The parent of a process; 0: not known. */
static long parent_of(long pid)
{
    char process[24], text[512];
    const char *stat;
    long parent;

    snprintf(process, sizeof process, "%ld", pid);
    stat = sysfile_stat("", process, text, sizeof text);
    return stat && sscanf(stat, " %*c %ld", &parent) == 1 ? parent : 0;
}

/* Whether the holder has started this process, as a sweep starts the programs that it
 * measures: it waits for our end, and we would wait for its. */
static bool is_part_of_holder(int fd)
{
    const long pid = holder(fd);
    long p = getppid();

    for (int i = 0; pid && p > 1 && p != pid && i < 64; i++)
        p = parent_of(p);
    return pid > 1 && p == pid;
}

/* "process 123 (bench sweep -c ..)". */
static const char *describe_holder(int fd, char *buf, size_t cap)
{
    const long pid = holder(fd);
    char path[40], raw[COMMAND_AT] = "", shown[4 * COMMAND_AT];
    FILE *f;
    size_t n = 0;

    if (!pid) {
        snprintf(buf, cap, "a process that cannot be seen from here");
        return buf;
    }
    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    f = fopen(path, "re");
    if (f) {
        n = fread(raw, 1, sizeof raw, f);
        fclose(f);
    }
    while (n && !raw[n - 1])
        n--;
    for (size_t i = 0; i < n; i++)
        raw[i] = raw[i] ? raw[i] : ' ';
    utf8_harmless(shown, sizeof shown, raw, n);
    snprintf(buf, cap, "process %ld%s%s%s", pid, n ? " (" : "", shown, n ? ")" : "");
    return buf;
}

static void print_waiting(int fd, bool again)
{
    char who[512], text[800];

    snprintf(text, sizeof text,
             "%swaiting for %s, which measures on this machine; both at once would "
             "disturb each other (Ctrl-C ends waiting, SLMBENCH_LOCK=none measures "
             "nevertheless)",
             again ? "still " : "", describe_holder(fd, who, sizeof who));
    message_print(text);
}

static const char *why_without(void)
{
    const char *own = getenv("SLMBENCH_LOCK");

    return own && !strcmp(own, "none") ? "SLMBENCH_LOCK=none" : NO_LOCK;
}

enum status measuring_begin(struct err *err)
{
    uint64_t printed_ns = 0;
    int fd;

    if (lock_fd >= 0)
        return ST_OK;
    fd = open_any();
    without = fd >= 0 ? NULL : why_without();
    while (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        const bool is_held = errno == EWOULDBLOCK;

        if ((!is_held && errno != EINTR) || (is_held && is_part_of_holder(fd))) {
            without = is_held ? NULL : NO_LOCK;
            close(fd);
            return ST_OK;
        }
        if (!printed_ns || clock_ns() - printed_ns > REMIND_NS) {
            print_waiting(fd, printed_ns > 0);
            printed_ns = clock_ns();
        }
        if (interrupted()) {
            close(fd);
            return err_set(err, ST_INTERRUPTED, "interrupted");
        }
        usleep(AGAIN_US);
    }
    lock_fd = fd;
    return ST_OK;
}

bool measuring_try(void)
{
    const int fd = lock_fd < 0 ? open_any() : -1;

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        const bool is_held = errno == EWOULDBLOCK;

        close(fd);
        return !is_held;
    }
    if (fd >= 0)
        lock_fd = fd;
    return true;
}

void measuring_remark(char *text, size_t cap)
{
    if (without)
        text_append(text, cap, "%swithout the lock: %s", *text ? "; " : "", without);
}

void measuring_end(void)
{
    without = NULL;
    if (lock_fd >= 0)
        close(lock_fd);
    lock_fd = -1;
}
