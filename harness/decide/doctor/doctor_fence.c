/* SPDX-License-Identifier: MIT
 *
 * doctor_fence.c - the fence that this machine gives, as processes behind it find it
 *
 * Children enter the fence and look: at /proc/self/status, at a folder that they were
 * not to read, at a terminal's controls. Others make every system call. A filter that
 * was there before answers those that the fence lets through, so that none is made;
 * where both refuse, the later one's error counts.
 */
#include "harness/decide/doctor/doctor_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "engine/weights/stream_ring.h"
#include "harness/base/apart.h"
#include "harness/base/format.h"
#include "harness/base/sysfile.h"
#include "harness/machine/fence/fence.h"

#define NOBODY 65534

struct looking {
    const char *dir;
    enum doctor_role role;
};

/* ---- entering -------------------------------------------------------------------- */

/* It could be read, and so could everything; look_at_itself() opens it. */
static bool is_root_folder(const char *dir)
{
    struct stat top, st;

    return !stat("/", &top) && !stat(dir, &st) && st.st_dev == top.st_dev &&
           st.st_ino == top.st_ino;
}

#define LISTENER 0 /* stands for a socket that listens: nothing is accepted */

/* As workers, servers and commands do. *ring is the descriptor of the io_uring, or -1.
 */
static enum status enter(const struct looking *l, int *ring, struct fence_state *state,
                         struct err *err)
{
    struct stream_ring *made;
    struct err ignored = ERR_INIT;

    *ring = stream_ring_make(&made, &ignored) ? -1 : stream_ring_fd(made);
    if (l->role == DOCTOR_COMMAND)
        return fence_enter_calls(*ring, err);
    return fence_enter(&(struct fence){.reads = &l->dir,
                                       .n_reads = is_root_folder(l->dir) ? 0 : 1,
                                       .has_ring = *ring >= 0,
                                       .ring = *ring,
                                       .serves = l->role == DOCTOR_SERVER,
                                       .listener = LISTENER},
                       state, err);
}

/* ---- a reader looks at itself ---------------------------------------------------- */

/* A number of /proc/self/status: the first on the line. */
static unsigned long long status_number(const char *status, const char *name, int base)
{
    const char *at = strstr(status, name);

    return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

static bool is_refused(long number, long a, long b)
{
    return syscall(number, a, b, 0, 0, 0, 0) < 0 && errno == EPERM;
}

static enum status look_at_itself(void *result, const void *arg, struct err *err)
{
    struct doctor_fence *f = result;
    struct fence_state state;
    char status[4096];
    int ring, fd;

    if (enter(arg, &ring, &state, err))
        return err->code;
    if (sysfile_read("", "/proc/self/status", status, sizeof status) < 0)
        return err_set(err, ST_IO, "/proc/self/status cannot be read behind it");
    f->landlock = state.landlock;
    f->uid = (int)status_number(status, "\nUid:", 10);
    f->capabilities = status_number(status, "\nCapPrm:", 16) ||
                      status_number(status, "\nCapEff:", 16);
    f->no_new_privs = status_number(status, "\nNoNewPrivs:", 10) == 1;
    /* others around this process may filter, too */
    f->filtered = state.seccomp && status_number(status, "\nSeccomp:", 10) == 2;
    fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    f->other_files = fd >= 0;
    if (fd >= 0)
        close(fd);
    f->terminal = !is_refused(SYS_ioctl, -1, TIOCSTI);
    f->ring = ring >= 0 && !is_refused(SYS_io_uring_enter, ring, 0);
    f->other_rings = !is_refused(SYS_io_uring_setup, 1, 0);
    return ST_OK;
}

/* ---- every system call ----------------------------------------------------------- */

#define N_NUMBERS   1024
#define LET_THROUGH 1000       /* no error of the kernel's */
#define MARK        0x51ab51ab /* both halves of the last argument of calls to answer */

static bool answer_marked(void)
{
    const unsigned at = offsetof(struct seccomp_data, args) + 5 * 8;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | LET_THROUGH),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};

    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool is_let_through(int number, long a, long b)
{
    const long mark = (long)((uint64_t)MARK << 32 | MARK);

    return syscall(number, a, b, 0L, 0L, 0L, mark) < 0 && errno == LET_THROUGH;
}

/* These two the kernel makes itself, past all filters. */
static bool is_the_kernels(int number)
{
#ifdef __x86_64__
    return number == 335 || number == 336; /* uretprobe(), uprobe() */
#else
    (void)number;
    return false;
#endif
}

/* Arguments that the rules of fence_args.c let through: this process, a value of 1, a
 * thread, a terminal's size, the ring. */
static enum status count_calls(void *result, const void *arg, struct err *err)
{
    int *n = result, ring;
    const bool answered = answer_marked();
    struct fence_state state;
    const enum status st = enter(arg, &ring, &state, err);
    const long args[][2] = {{0, 0},          {getpid(), 0}, {1, 0}, {CLONE_THREAD, 0},
                            {0, TIOCGWINSZ}, {ring, 0}};

    if (st || !answered)
        return st;
    for (int number = 0; number < N_NUMBERS; number++) {
        bool passes = false;

        for (size_t i = 0; !passes && i < sizeof args / sizeof *args; i++)
            passes = !is_the_kernels(number) &&
                     is_let_through(number, args[i][0], args[i][1]);
        *n += passes;
    }
    return ST_OK;
}

static enum status count_kernels(void *result, const void *arg, struct err *err)
{
    (void)arg;
    (void)err;
    *(int *)result = fence_n_calls();
    return ST_OK;
}

/* ---- all of it ------------------------------------------------------------------- */

void doctor_look_at_fence(struct doctor_fence *f, const char *dir)
{
    struct looking l = {dir, DOCTOR_READER};
    struct err err = ERR_INIT;

    *f = (struct doctor_fence){.uid = -1};
    fence_note_elsewhere();
    if (apart_run(look_at_itself, f, sizeof *f, &l, &err)) {
        *f = (struct doctor_fence){.uid = -1};
        snprintf(f->error, sizeof f->error, "%.199s", err.msg);
        return;
    }
    if (apart_run(count_kernels, &f->n_calls, sizeof f->n_calls, NULL, &err))
        f->n_calls = 0;
    for (int i = 0; f->filtered && i < DOCTOR_N_ROLES; i++) {
        l.role = (enum doctor_role)i;
        err_clear(&err);
        if (apart_run(count_calls, &f->n_allowed[i], sizeof f->n_allowed[i], &l, &err))
            f->n_allowed[i] = 0;
    }
}

/* ---- as checks ------------------------------------------------------------------- */

static void add_user(struct doctor_check *c, const struct doctor_fence *f)
{
    if (getuid())
        text_append(c->found, sizeof c->found, "your user");
    else if (f->uid == NOBODY)
        text_append(c->found, sizeof c->found, "user nobody");
    else
        text_append(c->found, sizeof c->found, "user %d", f->uid);
}

/* Root would be another user, where that one may read the models. */
static void check_user(struct doctor_check *c, const struct doctor_fence *f,
                       const char *dir)
{
    if (f->uid)
        return;
    if (c->state == DOCTOR_FINE)
        c->state = DOCTOR_NOTE;
    text_append(c->found, sizeof c->found,
                " It stays root for models that no other user may read, as in '%s'.",
                format_path(dir).text);
    doctor_set_mend(c, "chmod a+r MODEL, and chmod a+x its folders");
}

static void check_processes(struct doctor *d, const struct doctor_fence *f,
                            const char *dir)
{
    struct doctor_check *c =
        doctor_add(d, "Fence", DOCTOR_FINE,
                   "Landlock %d (of your files, only the model); ", f->landlock);

    if (!f->landlock || f->other_files) {
        c->state = DOCTOR_PARTLY;
        snprintf(c->found, sizeof c->found,
                 "Landlock is missing: a process that reads a model can read each file "
                 "of its user. Linux 5.13 and later have it, with lsm=landlock,... on "
                 "the kernel's command line; without it, open models that you trust. "
                 "In force: ");
    }
    add_user(c, f);
    text_append(c->found, sizeof c->found, "; %s; %s; %s%s.",
                f->capabilities ? "its capabilities" : "no capability",
                f->terminal ? "its terminal" : "no terminal",
                f->other_rings ? "any io_uring"
                : f->ring      ? "io_uring for reads only"
                               : "no io_uring (threads read)",
                f->no_new_privs ? "" : "; new privileges");
    if (f->capabilities || !f->no_new_privs)
        c->state = DOCTOR_PARTLY;
    check_user(c, f, dir);
}

static void check_calls(struct doctor *d, const struct doctor_fence *f)
{
    const int *n = f->n_allowed;
    char all[24] = "";

    if (f->n_calls)
        snprintf(all, sizeof all, "of %d: ", f->n_calls);
    if (!f->filtered)
        doctor_add(d, "System calls", DOCTOR_PARTLY,
                   "seccomp filters are missing: a process that reads a model can use "
                   "the network, start programs and type into a terminal. A kernel "
                   "with CONFIG_SECCOMP_FILTER has them; without, open models that "
                   "you trust.");
    else if (n[DOCTOR_READER] && n[DOCTOR_SERVER] && n[DOCTOR_COMMAND])
        doctor_add(d, "System calls", DOCTOR_FINE,
                   "%sreader %d, server %d, command %d.", all, n[DOCTOR_READER],
                   n[DOCTOR_SERVER], n[DOCTOR_COMMAND]);
    else
        doctor_add(d, "System calls", DOCTOR_FINE,
                   "filtered; a filter around this process forbids to count which.");
}

void doctor_check_fence(struct doctor *d, const char *dir)
{
    struct doctor_fence *f = &d->fence;

    doctor_look_at_fence(f, dir);
    d->has_fence = true;
    if (f->error[0]) {
        doctor_add(d, "Fence", DOCTOR_PARTLY,
                   "cannot be entered, so no model is measured or served: %s.",
                   f->error);
        return;
    }
    check_processes(d, f, dir);
    check_calls(d, f);
}
