/* SPDX-License-Identifier: MIT
 *
 * without_seccomp.c - runs a program as on a kernel that was built without seccomp
 *
 * usage: without-seccomp PROGRAM [ARGUMENT...]
 *
 * No kernel of Debian's is built so, and no parameter switches seccomp off. Here a
 * filter answers what such a kernel answers: seccomp() is ENOSYS, and so is prctl() of
 * PR_GET_SECCOMP and PR_SET_SECCOMP EINVAL. What differs from such a kernel is
 * /proc/self/status, which has a line "Seccomp: 2" of this filter.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LOAD(field) \
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define SKIP_UNLESS(value, n) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, n)
#define ANSWER(value)         BPF_STMT(BPF_RET | BPF_K, value)

int main(int argc, char **argv)
{
    struct sock_filter code[] = {
        LOAD(nr),
        SKIP_UNLESS(SYS_seccomp, 1),
        ANSWER(SECCOMP_RET_ERRNO | ENOSYS),
        SKIP_UNLESS(SYS_prctl, 5),
        LOAD(args[0]),
        SKIP_UNLESS(PR_GET_SECCOMP, 1),
        ANSWER(SECCOMP_RET_ERRNO | EINVAL),
        SKIP_UNLESS(PR_SET_SECCOMP, 1),
        ANSWER(SECCOMP_RET_ERRNO | EINVAL),
        ANSWER(SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (argc < 2)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
        perror("without-seccomp");
        return 3;
    }
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
