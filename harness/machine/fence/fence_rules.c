/* SPDX-License-Identifier: MIT
 *
 * fence_rules.c - Landlock's paths (kernel: userspace-api/landlock) and seccomp's calls
 */
#include "harness/machine/fence/fence_rules.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- paths ----------------------------------------------------------------------- */

/* The kernel's interface, whose header older distributions lack. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_add_rule       445
#define SYS_landlock_restrict_self  446
#endif
#define ACCESS_EXECUTE    (UINT64_C(1) << 0)
#define ACCESS_READ_FILE  (UINT64_C(1) << 2)
#define ACCESS_READ_DIR   (UINT64_C(1) << 3)
#define ACCESS_REFER      (UINT64_C(1) << 13) /* version 2: links between folders */
#define RULE_PATH_BENEATH 1
#define ASK_VERSION       1u

struct ruleset_attr {
    uint64_t handled_access_fs;
};

struct path_beneath_attr {
    uint64_t allowed_access;
    int32_t parent_fd;
} __attribute__((packed));

/* The first bit of access to files that each version does not know yet. */
static uint64_t access_of(int version)
{
    static const int n_bits[] = {13, 14, 15, 15, 16};
    const int n = sizeof n_bits / sizeof *n_bits;

    return (UINT64_C(1) << n_bits[(version < n ? version : n) - 1]) - 1;
}

static enum status add_rule(int ruleset, int fd, const char *path, uint64_t access,
                            struct err *err)
{
    const struct path_beneath_attr rule = {access, fd};

    if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0))
        return err_set_errno(err, ST_IO, "cannot restrict itself to reading %s", path);
    return ST_OK;
}

/* A path that is not there is left to its reader, which reports it. */
static enum status add_path(int ruleset, const char *path, struct err *err)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    enum status status = ST_OK;
    uint64_t access = 0;
    struct stat st;

    if (fd < 0)
        return ST_OK;
    if (!fstat(fd, &st))
        access = S_ISDIR(st.st_mode)   ? ACCESS_READ_FILE | ACCESS_READ_DIR
                 : S_ISREG(st.st_mode) ? ACCESS_READ_FILE
                 : S_ISCHR(st.st_mode) ? ACCESS_READ_FILE
                                       : 0;
    if (access)
        status = add_rule(ruleset, fd, path, access, err);
    close(fd);
    return status;
}

int fence_rules_version(void)
{
    const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, ASK_VERSION);

    return version > 0 ? (int)version : 0;
}

enum status fence_rules_make(const struct fence *fence, int *ruleset, int *version,
                             struct err *err)
{
    /* What a program and its libraries are made of, and what the system says of itself.
     */
    static const char *const always[] = {
        "/proc", "/sys", "/dev/null", "/dev/urandom",
        "/usr",  "/lib", "/lib64",    "/etc/ld.so.cache"};
    const int known = fence_rules_version();
    struct ruleset_attr attr;
    enum status status = ST_OK;
    int made;

    *ruleset = -1;
    *version = 0;
    if (known < 1)
        return ST_OK;
    attr.handled_access_fs = access_of(known);
    made = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    if (made < 0)
        return err_set_errno(err, ST_IO, "cannot restrict itself to the model's files");
    for (size_t i = 0; status == ST_OK && i < sizeof always / sizeof *always; i++)
        status = add_path(made, always[i], err);
    for (size_t i = 0; status == ST_OK && i < fence->n_reads; i++)
        status = add_path(made, fence->reads[i], err);
    if (status) {
        close(made);
        return status;
    }
    *ruleset = made;
    *version = known;
    return ST_OK;
}

int fence_rules_enforce(int ruleset)
{
    return (int)syscall(SYS_landlock_restrict_self, ruleset, 0);
}

/* Whoever is restricted in anything may not look into a process that is not: neither
 * read nor write its memory in /proc, whatever the files' modes are. */
enum status fence_rules_enter_apart(int *version, struct err *err)
{
    const int known = fence_rules_version();
    const uint64_t refer = known > 1 ? ACCESS_REFER : 0;
    const struct ruleset_attr attr = {ACCESS_EXECUTE | refer};
    enum status status = ST_OK;
    int ruleset, top;

    *version = known;
    if (known < 1)
        return ST_OK;
    ruleset = (int)syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    top = open("/", O_PATH | O_CLOEXEC);
    if (ruleset >= 0 && top >= 0 && refer)
        status = add_rule(ruleset, top, "/", refer, err);
    if (!status && (ruleset < 0 || fence_rules_enforce(ruleset)))
        status = err_set_errno(err, ST_IO, "cannot keep away from other processes");
    if (top >= 0)
        close(top);
    if (ruleset >= 0)
        close(ruleset);
    return status;
}

/* ---- system calls ---------------------------------------------------------------- */

/* Whose calls these are. */
enum who {
    EVERY = 1,
    SERVER = 2,
    WRITER = 4,
    RING = 8,
    SANITIZED = 16,
};

/* By name, since not every architecture has each; a number, where libseccomp may not
 * know the name. */
static const struct {
    const char *name;
    int number;
    enum who who;
} allowed[] = {
#define FENCE_CALL(name, who)          {#name, -1, who},
#define FENCE_NEWER(number, name, who) {#name, number, who},
#include "harness/machine/fence/fence_calls.def"
};

#define RING_FLAGS 1 /* IORING_ENTER_GETEVENTS */

static unsigned roles_of(const struct fence *fence)
{
    unsigned roles = EVERY;

    roles |= fence->serves ? SERVER : 0;
    roles |= fence->writes ? WRITER : 0;
    roles |= fence->has_ring ? RING : 0;
#ifdef __SANITIZE_ADDRESS__
    roles |= SANITIZED;
#endif
    return roles;
}

/* A descriptor is compared in all 64 bits; flags of io_uring_enter() that give it
 * another meaning (an index of registered rings) are none of those that pass. */
static bool allow(scmp_filter_ctx filter, int number, enum who who,
                  const struct fence *fence)
{
    if (who == SERVER && number == seccomp_syscall_resolve_name("accept4"))
        return !seccomp_rule_add(
            filter, SCMP_ACT_ALLOW, number, 1,
            SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)fence->listener, 0));
    if (who == RING)
        return !seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 2,
                                 SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)fence->ring, 0),
                                 SCMP_A3(SCMP_CMP_LE, RING_FLAGS, 0));
    return !seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);
}

static bool allow_all(scmp_filter_ctx filter, const struct fence *fence)
{
    const unsigned roles = roles_of(fence);
    bool ok = true;

    for (size_t i = 0; ok && i < sizeof allowed / sizeof *allowed; i++) {
        const int named = seccomp_syscall_resolve_name(allowed[i].name);
        const int number = named == __NR_SCMP_ERROR ? allowed[i].number : named;

        if ((allowed[i].who & roles) && number != __NR_SCMP_ERROR)
            ok = allow(filter, number, allowed[i].who, fence);
    }
    return ok;
}

/* Numbers from FIRST_COMMON on are the same on every architecture, and their calls
 * take a size, flags or a descriptor that -1 is none of. */
int fence_n_calls(void)
{
    enum { FIRST_COMMON = 424, LAST = 600 };
    int n = 0;

    for (int i = 0; i < FIRST_COMMON; i++) {
        char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);

        n += name != NULL;
        free(name);
    }
    for (int i = FIRST_COMMON; i < LAST; i++)
        n += syscall(i, -1L, -1L, -1L, -1L, -1L, -1L) >= 0 || errno != ENOSYS;
    return n;
}

/* One that has none does not look at the program, which is at no address. */
bool fence_filter_known(void)
{
    return !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, NULL) ||
           (errno != EINVAL && errno != ENOSYS);
}

bool fence_filter_enter(const struct fence *fence)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(EPERM));
    const bool ok = filter && allow_all(filter, fence) && fence_args_enter(fence) &&
                    !seccomp_load(filter) && fence_later_enter();

    if (filter)
        seccomp_release(filter);
    return ok;
}
