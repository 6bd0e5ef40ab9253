/* SPDX-License-Identifier: MIT
 *
 * fence_rules.c - Landlock's paths (kernel: userspace-api/landlock) and seccomp's calls
 */
#include "harness/machine/fence_rules.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <stdint.h>
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
#define ACCESS_READ_FILE  (UINT64_C(1) << 2)
#define ACCESS_READ_DIR   (UINT64_C(1) << 3)
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

/* A file that is not there is left to its reader, which reports it. */
static enum status add_file(int ruleset, int dir, const char *path, struct err *err)
{
    const int fd = openat(dir, path, O_PATH | O_CLOEXEC);
    struct stat st;
    enum status status = ST_OK;

    if (fd < 0)
        return ST_OK;
    if (!fstat(fd, &st) && (S_ISREG(st.st_mode) || S_ISCHR(st.st_mode)))
        status = add_rule(ruleset, fd, path, ACCESS_READ_FILE, err);
    close(fd);
    return status;
}

/* What the folder's links lead to: a download cache has links for all its files. */
static enum status add_links(int ruleset, int folder, struct err *err)
{
    const int fd = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    enum status status = ST_OK;

    if (!dir) {
        if (fd >= 0)
            close(fd);
        return ST_OK; /* what cannot be listed has no links to follow */
    }
    for (const struct dirent *e; status == ST_OK && (e = readdir(dir));)
        if (e->d_type == DT_LNK)
            status = add_file(ruleset, fd, e->d_name, err);
    closedir(dir);
    return status;
}

static enum status add_path(int ruleset, const char *path, bool links, struct err *err)
{
    const int fd = open(path, O_PATH | O_CLOEXEC);
    struct stat st;
    enum status status = ST_OK;

    if (fd < 0)
        return ST_OK;
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        status = add_rule(ruleset, fd, path, ACCESS_READ_FILE | ACCESS_READ_DIR, err);
        if (status == ST_OK && links)
            status = add_links(ruleset, fd, err);
    } else {
        status = add_file(ruleset, AT_FDCWD, path, err);
    }
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
        status = add_path(made, always[i], false, err);
    for (size_t i = 0; status == ST_OK && i < fence->n_reads; i++)
        status = add_path(made, fence->reads[i], true, err);
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

/* ---- system calls ---------------------------------------------------------------- */

/* By name, since not every architecture has each. */
static const char *const forbidden[] = {
    /* network */
    "socket", "socketpair", "connect", "bind", "listen", "accept", "socketcall",
/* other processes; LeakSanitizer looks at its own */
#ifndef __SANITIZE_ADDRESS__
    "ptrace",
#endif
    "process_vm_readv", "process_vm_writev", "pidfd_getfd", "kcmp", "process_madvise",
    "pidfd_send_signal", "pidfd_open",
    /* memory, queues and semaphores that others of the user can open */
    "shmget", "shmat", "shmctl", "semget", "semop", "semtimedop", "semctl", "msgget",
    "msgsnd", "msgrcv", "msgctl", "ipc", "mq_open", "mq_unlink",
    /* the system */
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree",
    "fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr", "unshare", "setns",
    "swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load", "init_module",
    "finit_module", "delete_module", "sethostname", "setdomainname", "settimeofday",
    "clock_settime", "adjtimex", "clock_adjtime", "acct", "quotactl", "syslog", "bpf",
    "iopl", "ioperm", "quotactl_fd", "vhangup", "fanotify_init", "uselib",
    "lookup_dcookie", "nfsservctl",
    /* ways around */
    "open_by_handle_at", "name_to_handle_at", "userfaultfd", "keyctl", "add_key",
    "request_key", "personality", "modify_ldt", "vmsplice",
    /* users */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid", "setgroups",
    "setfsuid", "setfsgid", "capset"};

/* Also where Landlock, which knows no modes, owners, times and attributes, is missing.
 */
static const char *const forbidden_to_readers[] = {
    "chmod",       "fchmod",       "fchmodat",     "chown",     "fchown",
    "lchown",      "fchownat",     "setxattr",     "lsetxattr", "fsetxattr",
    "removexattr", "lremovexattr", "fremovexattr", "utime",     "utimes",
    "futimesat",   "utimensat",    "truncate",     "mkdir",     "mkdirat",
    "rmdir",       "unlink",       "unlinkat",     "rename",    "renameat",
    "renameat2",   "link",         "linkat",       "symlink",   "symlinkat",
    "mknod",       "mknodat"};

/* LeakSanitizer makes a process. */
#ifndef __SANITIZE_ADDRESS__
static const char *const starting[] = {"execve", "execveat", "fork", "vfork"};
#else
static const char *const starting[] = {"execve", "execveat"};
#endif

#define RING_FLAGS 1 /* IORING_ENTER_GETEVENTS */

static bool forbid(scmp_filter_ctx filter, const char *name)
{
    const int number = seccomp_syscall_resolve_name(name);

    return number == __NR_SCMP_ERROR ||
           !seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0);
}

static bool forbid_all(scmp_filter_ctx filter, const char *const *names, size_t n)
{
    bool ok = true;

    for (size_t i = 0; ok && i < n; i++)
        ok = forbid(filter, names[i]);
    return ok;
}

#define FORBID_ALL(filter, names) \
    forbid_all(filter, names, sizeof(names) / sizeof *(names))

/* io_uring_enter() but for submitting to and waiting for that ring. The descriptor is
 * compared in all 64 bits, and flags that give it another meaning (an index of
 * registered rings) are none of those that pass. */
static bool forbid_other_rings(scmp_filter_ctx filter, int ring)
{
    const int number = seccomp_syscall_resolve_name("io_uring_enter");

    return !seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 1,
                             SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)ring, 0)) &&
           !seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 1,
                             SCMP_A3(SCMP_CMP_GT, RING_FLAGS, 0));
}

static bool forbid_uring(scmp_filter_ctx filter, const struct fence *fence)
{
    return forbid(filter, "io_uring_setup") && forbid(filter, "io_uring_register") &&
           (fence->has_ring ? forbid_other_rings(filter, fence->ring)
                            : forbid(filter, "io_uring_enter"));
}

/* accept4(), but of that socket, compared in all 64 bits. */
static bool forbid_accept(scmp_filter_ctx filter, const struct fence *fence)
{
    const int number = seccomp_syscall_resolve_name("accept4");

    return fence->serves ? !seccomp_rule_add(
                               filter, SCMP_ACT_ERRNO(EPERM), number, 1,
                               SCMP_A0(SCMP_CMP_NE, (scmp_datum_t)fence->listener, 0))
                         : forbid(filter, "accept4");
}

bool fence_filter_enter(const struct fence *fence)
{
    scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
    bool ok = filter && FORBID_ALL(filter, forbidden) && forbid_accept(filter, fence);

    if (!fence->runs_others)
        ok = ok && FORBID_ALL(filter, starting);
    if (!fence->writes)
        ok = ok && FORBID_ALL(filter, forbidden_to_readers);
    if (!fence->uses_uring)
        ok = ok && forbid_uring(filter, fence);
    ok = ok && fence_args_enter(fence) && !seccomp_load(filter);
    if (filter)
        seccomp_release(filter);
    return ok;
}
