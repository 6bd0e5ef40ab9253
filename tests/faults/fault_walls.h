/* SPDX-License-Identifier: MIT
 *
 * fault_walls.h - what a process has put up of its fence, as its calls show it
 */
#ifndef SLM_TESTS_FAULTS_FAULT_WALLS_H
#define SLM_TESTS_FAULTS_FAULT_WALLS_H

#include <linux/seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/user.h>

#define RESTRICT_SELF 446 /* landlock_restrict_self() */
#define MAX_WALLS     7

struct walls {
    int files, calls; /* rulesets (Landlock) and filters (seccomp) */
};

/* Whether put_up() looks at it. */
static bool is_wall(int call)
{
    return call == RESTRICT_SELF || call == SYS_seccomp || call == SYS_prctl;
}

/* A call that is let through. */
static void put_up(struct walls *w, int call, const struct user_regs_struct *r)
{
    const bool filter = (call == SYS_seccomp && r->rdi == SECCOMP_SET_MODE_FILTER) ||
                        (call == SYS_prctl && r->rdi == PR_SET_SECCOMP);

    if (call == RESTRICT_SELF && w->files < MAX_WALLS)
        w->files++;
    else if (filter && r->rdx && w->calls < MAX_WALLS)
        w->calls++;
}

/* Each pair of numbers has a bit: 8 times the first, and the second. */
static uint64_t walls_bit(const struct walls *w)
{
    return UINT64_C(1) << (w->files * (MAX_WALLS + 1) + w->calls);
}

static bool is_model(const char *path)
{
    const size_t n = strlen(path);

    return (n > 5 && !strcmp(path + n - 5, ".gguf")) || strstr(path, "/hf/") ||
           !strncmp(path, "hf/", 3);
}

#endif
