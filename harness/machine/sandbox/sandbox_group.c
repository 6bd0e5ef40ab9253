/* SPDX-License-Identifier: MIT
 *
 * sandbox_group.c - names, files and removal of memory groups
 */
#include "harness/machine/sandbox/sandbox_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "harness/base/sysfile.h"

#define FIRST_TIME_NAMESPACE 4026531834u /* its inode, on every kernel */

/* ---- names ----------------------------------------------------------------------- */

/* Field 22 of /proc/<pid>/stat; 0 when there is no such process. */
static unsigned long long start_time(const char *root, const char *who)
{
    char text[1024];
    const char *p = sysfile_stat(root, who, text, sizeof text);
    unsigned long long start = 0;

    for (int field = 3; p && field < 22; field++)
        p = strchr(p + 1, ' ');
    return p && sscanf(p, " %llu", &start) == 1 ? start : 0;
}

/* The namespace of that kind, as "pid:[4026531836]"; 0: the kernel has none. */
static unsigned long long namespace_of(const char *root, const char *kind)
{
    char path[SYSFILE_PATH_MAX], text[64];
    unsigned long long inode = 0;

    snprintf(text, sizeof text, "/proc/self/ns/%s", kind);
    if (!sysfile_path(path, sizeof path, root, text))
        return 0;
    const ssize_t n = readlink(path, text, sizeof text - 1);
    if (n <= 0)
        return 0;
    text[n] = '\0';
    return sscanf(text, "%*[a-z]:[%llu]", &inode) == 1 ? inode : 0;
}

/* Where numbers and start times of processes mean the same: each namespace of times
 * counts from another boot. */
static unsigned long long namespaces(const char *root)
{
    const unsigned long long time = namespace_of(root, "time");
    const bool is_usual = time == 0 || time == FIRST_TIME_NAMESPACE;

    return namespace_of(root, "pid") | (is_usual ? 0 : time << 32);
}

void maker_self(struct maker *m, const char *root)
{
    char who[32];

    m->pid = getpid();
    snprintf(who, sizeof who, "%d", (int)m->pid);
    m->start = start_time(root, who);
    m->pidns = namespaces(root);
}

void group_name(const struct maker *m, const char *what, char *buf, size_t cap)
{
    snprintf(buf, cap, "slmbench.%d.%s.%llu.%llu", (int)m->pid, what, m->start,
             m->pidns);
}

bool group_parse(const char *name, struct maker *m, bool *is_self)
{
    char what[16];
    int pid, end = 0;

    if (sscanf(name, "slmbench.%d.%15[0-9a-z].%llu.%llu%n", &pid, what, &m->start,
               &m->pidns, &end) != 4 ||
        name[end] || pid <= 0)
        return false;
    m->pid = pid;
    *is_self = !strcmp(what, "self");
    return true;
}

bool maker_may_live(const struct maker *m, const char *root)
{
    char who[32];

    if (m->pidns != namespaces(root))
        return true;
    snprintf(who, sizeof who, "%d", (int)m->pid);
    const unsigned long long start = start_time(root, who);
    if (start == 0) /* there is no such process, or it cannot be read */
        return !root[0] && (!kill(m->pid, 0) || errno != ESRCH);
    return m->start == 0 || start == m->start;
}

/* ---- directories and files ------------------------------------------------------- */

int group_write(const char *root, const char *dir, const char *file, const char *text,
                bool append)
{
    const int make = root[0] ? O_CREAT | (append ? O_APPEND : O_TRUNC) : 0;
    char path[SYSFILE_PATH_MAX];
    const size_t len = strlen(text);

    if (snprintf(path, sizeof path, "%s%s/%s", root, dir, file) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    const int fd = open(path, O_WRONLY | O_CLOEXEC | make, 0644);
    if (fd < 0)
        return -1;
    const ssize_t n = write(fd, text, len);
    const int saved = n < 0 ? errno : EIO;

    close(fd);
    errno = saved;
    return n == (ssize_t)len ? 0 : -1;
}

int group_mkdir(const char *root, const char *dir)
{
    char path[SYSFILE_PATH_MAX];

    if (!sysfile_path(path, sizeof path, root, dir))
        return -1;
    return mkdir(path, 0755);
}

/* Plain files of a recorded tree are in rmdir()'s way; a kernel's are not. */
static void remove_plain_files(const char *path)
{
    DIR *d = opendir(path);

    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_type == DT_REG)
            unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
}

int group_rmdir(const char *root, const char *dir)
{
    char path[SYSFILE_PATH_MAX];

    if (!sysfile_path(path, sizeof path, root, dir))
        return -1;
    if (root[0])
        remove_plain_files(path);
    return rmdir(path);
}

/* The pids in dir's cgroup.procs, one call each. A 0 is a process that our pid
 * namespace cannot see - and kill(0) would hit ourselves. */
static int each_process(const char *root, const char *dir,
                        int (*fn)(void *arg, pid_t pid), void *arg)
{
    char path[SYSFILE_PATH_MAX];
    int n = 0;

    snprintf(path, sizeof path, "%s/cgroup.procs", dir);
    char *text = sysfile_read_all(root, path);
    for (char *p = text; p && *p; p = (p = strchr(p, '\n')) ? p + 1 : NULL) {
        const long pid = strtol(p, NULL, 10);

        if (pid > 0 && fn(arg, (pid_t)pid)) {
            n = -1;
            break;
        }
        n++;
    }
    free(text);
    return n;
}

static int count_only(void *arg, pid_t pid)
{
    (void)arg, (void)pid;
    return 0;
}

bool group_has_processes(const char *root, const char *dir)
{
    return each_process(root, dir, count_only, NULL) > 0;
}

static int kill_other(void *arg, pid_t pid)
{
    (void)arg;
    if (pid != getpid())
        kill(pid, SIGKILL);
    return 0;
}

int group_remove(const char *root, const char *dir, int version)
{
    struct timespec wait = {0, 1000000}; /* 1 ms, doubled up to 128 ms: 5 s in all */

    for (int attempt = 0;; attempt++) {
        /* cgroup.kill (Linux 5.14) also gets those that are just forking */
        if (!root[0] &&
            (version != 2 || group_write(root, dir, "cgroup.kill", "1", false)))
            each_process(root, dir, kill_other, NULL);
        if (!group_rmdir(root, dir) || errno == ENOENT)
            return 0;
        /* A group that is busy becomes free; what else refuses may have been for once.
         */
        if (attempt == (errno == EBUSY || errno == ENOTEMPTY ? 45 : 3) || root[0])
            return -1;
        nanosleep(&wait, NULL);
        if (wait.tv_nsec < 128000000)
            wait.tv_nsec *= 2;
    }
}

struct move {
    const char *root, *to;
    int n;
};

static int move_one(void *arg, pid_t pid)
{
    struct move *m = arg;
    char text[32];

    snprintf(text, sizeof text, "%d\n", (int)pid);
    if (!group_write(m->root, m->to, "cgroup.procs", text, true)) {
        m->n++;
        return 0;
    }
    return errno == ESRCH ? 0 : -1; /* it has ended meanwhile */
}

int group_move_all(const char *root, const char *from, const char *to)
{
    struct move m = {root, to, 0};

    /* Processes may fork while we move them: until none is left, but not for ever. */
    for (int round = 0; round < (root[0] ? 1 : 20); round++) {
        const int before = m.n;

        if (each_process(root, from, move_one, &m) < 0)
            return -1;
        if (m.n == before)
            break;
    }
    return m.n;
}
