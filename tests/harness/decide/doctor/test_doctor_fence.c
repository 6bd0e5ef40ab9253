/* SPDX-License-Identifier: MIT
 *
 * test_doctor_fence.c - what `bench doctor` finds of the fence is what its table has,
 * and a fence that is missing is found missing
 */
#include "tests/support/test.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/decide/doctor/doctor_internal.h"

enum who { EVERY = 1, SERVER = 2, WRITER = 4, RING = 8, SANITIZED = 16 };

static const struct {
    const char *name;
    int number;
    unsigned who;
} table[] = {
#define FENCE_CALL(name, who)          {#name, -1, who},
#define FENCE_NEWER(number, name, who) {#name, number, who},
#include "harness/machine/fence/fence_calls.def"
};

/* Calls of the table that this architecture has. */
static int expected(unsigned roles)
{
    int n = 0;

#ifdef __SANITIZE_ADDRESS__
    roles |= SANITIZED;
#endif
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        n += (table[i].who & roles) &&
             (seccomp_syscall_resolve_name(table[i].name) >= 0 || table[i].number >= 0);
    return n;
}

static void as_the_table_has_it(void **state)
{
    struct doctor_fence f;
    unsigned ring;

    (void)state;
    doctor_look_at_fence(&f, ".");
    assert_string_equal(f.error, "");
    assert_false(f.capabilities);
    assert_true(f.no_new_privs);
    if (getuid())
        assert_int_equal(f.uid, getuid());
    if (!f.filtered)
        skip(); /* a kernel without filters */
    ring = f.ring ? RING : 0;
    assert_int_equal(f.n_allowed[DOCTOR_READER], expected(EVERY | ring));
    assert_int_equal(f.n_allowed[DOCTOR_SERVER], expected(EVERY | SERVER | ring));
    assert_int_equal(f.n_allowed[DOCTOR_COMMAND], expected(EVERY | WRITER | ring));
    assert_in_range(f.n_calls, f.n_allowed[DOCTOR_COMMAND] + 1, 1000);
    assert_false(f.terminal);
    assert_false(f.other_rings);
}

/* The system call fails with EINVAL from here on, where its first argument is that;
 * ANY: whatever it is. */
#define ANY (-1)
static void forbid(int number, int argument)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)argument, 0,
                 argument == ANY ? 0 : 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {sizeof code / sizeof *code, code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        _exit(77);
}

/* Where calls fail, a check of that name has the text; in a child, which skips where
 * the kernel has no filters. */
static int check_without(const int (*calls)[2], int n, const char *name,
                         const char *text)
{
    const pid_t child = test_fork();
    int status;

    if (!child) {
        static struct doctor d;
        bool found = false;

        for (int i = 0; i < n; i++)
            forbid(calls[i][0], calls[i][1]);
        doctor_check_fence(&d, ".");
        for (int i = 0; i < d.n; i++) {
            fprintf(stderr, "%s: %s\n", d.check[i].name, d.check[i].found);
            found |= !strcmp(d.check[i].name, name) && strstr(d.check[i].found, text);
        }
        _exit(!found);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

static void what_is_missing_is_found(void **state)
{
    static const int landlock[][2] = {{444, ANY}}, ring[][2] = {{425, ANY}},
                     filters[][2] = {{SYS_seccomp, ANY}, {SYS_prctl, PR_SET_SECCOMP}};
    int code;

    (void)state;
    code = check_without(landlock, 1, "Fence", "Landlock is missing");
    if (code == 77)
        skip();
    assert_int_equal(code, 0);
    assert_int_equal(check_without(ring, 1, "Fence", "no io_uring (threads read)"), 0);
    assert_int_equal(check_without(filters, 2, "System calls", "filters are missing"),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_table_has_it),
        cmocka_unit_test(what_is_missing_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
