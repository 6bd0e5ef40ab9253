/* SPDX-License-Identifier: MIT
 *
 * without.c - runs a program as on a kernel without a part of what a fence is made of
 *
 * usage: without seccomp|landlock|privilege PROGRAM [ARGUMENT...]
 *
 * No kernel of Debian's is built without seccomp, no parameter switches it off, and
 * tests run on the kernel that is there. Here a filter answers what such a kernel
 * answers:
 *
 *     seccomp    seccomp() is ENOSYS, prctl() of PR_GET_SECCOMP and PR_SET_SECCOMP
 * EINVAL landlock   its three calls are ENOSYS privilege  the kernel has filters, but
 * who wants to make one may not: both EPERM
 *
 * What differs from a kernel without seccomp is /proc/self/status, which has a line
 * "Seccomp: 2" of this filter.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)
#define ANSWER(value)         BPF_STMT(BPF_RET | BPF_K, value)
#define FAIL(error)           ANSWER(SECCOMP_RET_ERRNO | (error))

/* 0: a call is not answered. */
static int answer(int seccomp, int get, int set, int landlock)
{
    struct sock_filter code[] = {
        LOAD(nr),       SKIP_UNLESS(SYS_seccomp, 1),
        FAIL(seccomp),  SKIP_UNLESS(444 /* landlock_create_ruleset */, 1),
        FAIL(landlock), SKIP_UNLESS(445 /* landlock_add_rule */, 1),
        FAIL(landlock), SKIP_UNLESS(446 /* landlock_restrict_self */, 1),
        FAIL(landlock), SKIP_UNLESS(SYS_prctl, 5),
        LOAD(args[0]),  SKIP_UNLESS(PR_GET_SECCOMP, 1),
        FAIL(get),      SKIP_UNLESS(PR_SET_SECCOMP, 1),
        FAIL(set),      ANSWER(SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};

    for (size_t i = 0; i < program.len; i++)
        if (code[i].code == (BPF_RET | BPF_K) && code[i].k == SECCOMP_RET_ERRNO)
            code[i].k = SECCOMP_RET_ALLOW;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    const char *part = argc > 2 ? argv[1] : "";
    int failed;

    if (!strcmp(part, "seccomp"))
        failed = answer(ENOSYS, EINVAL, EINVAL, 0);
    else if (!strcmp(part, "landlock"))
        failed = answer(0, 0, 0, ENOSYS);
    else if (!strcmp(part, "privilege"))
        failed = answer(EPERM, 0, EPERM, 0);
    else
        return 2;
    if (failed) {
        perror("without");
        return 3;
    }
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
