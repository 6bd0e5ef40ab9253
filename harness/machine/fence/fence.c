/* SPDX-License-Identifier: MIT
 *
 * fence.c - a process gives up what it does not need: user, capabilities, system calls
 *
 * The order matters: Landlock's rules are made of paths while they can still be opened,
 * the user changes while there are capabilities for it, and seccomp is last, since it
 * forbids nothing that the others need but is the easiest to get wrong.
 */
#include "harness/machine/fence/fence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/base/invoker.h"
#include "harness/machine/fence/fence_rules.h"

#define NOBODY 65534

/* ---- user ------------------------------------------------------------------------ */

static bool is_link(int dir, const char *name)
{
    struct stat st;

    return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISLNK(st.st_mode);
}

/* Whether the effective user may read the file, or the folder and all in it but links,
 * which lead to files that are on the list themselves, or to none of the model's. */
static bool may_read(const char *path)
{
    DIR *dir;
    bool all = true;

    if (faccessat(AT_FDCWD, path, R_OK, AT_EACCESS))
        return errno == ENOENT; /* its reader will report it */
    dir = opendir(path);
    if (!dir)
        return errno == ENOTDIR;
    for (const struct dirent *e; all && (e = readdir(dir));)
        all = !faccessat(dirfd(dir), e->d_name, R_OK, AT_EACCESS) || errno == ENOENT ||
              is_link(dirfd(dir), e->d_name);
    closedir(dir);
    return all;
}

/* Whether that user could read all that is to be read. Called as root, and root again
 * afterwards. */
static bool user_may_read(const struct fence *fence, uid_t uid, gid_t gid)
{
    gid_t own[NGROUPS_MAX];
    const gid_t own_gid = getegid();
    const int n_own = getgroups(NGROUPS_MAX, own);
    bool may = n_own >= 0 && !setgroups(0, NULL) && !setegid(gid) && !seteuid(uid);

    for (size_t i = 0; may && i < fence->n_reads; i++)
        may = may_read(fence->reads[i]);
    if (seteuid(0) || setegid(own_gid) || (n_own >= 0 && setgroups((size_t)n_own, own)))
        return false;
    return may;
}

/* Root becomes whoever called sudo, or nobody; neither, where neither may read the
 * files: root without a capability reads no more than root's own files and everybody's.
 */
static enum status change_user(const struct fence *fence, struct err *err)
{
    uid_t uid;
    gid_t gid;

    if (geteuid() || fence->keeps_user)
        return ST_OK;
    if (!invoker_get(&uid, &gid) || !user_may_read(fence, uid, gid)) {
        uid = gid = NOBODY;
        if (!user_may_read(fence, uid, gid))
            return ST_OK;
    }
    if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
        return err_set_errno(err, ST_IO, "cannot become user %u to read the model",
                             (unsigned)uid);
    /* Else its own /proc/self files are root's. */
    prctl(PR_SET_DUMPABLE, 1);
    return ST_OK;
}

/* ---- capabilities ---------------------------------------------------------------- */

/* While there is the capability to do so. */
static void clear_bounding_set(void)
{
    for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
        prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
}

/* Where the call is refused, as in some containers, there may be none anyway. */
static enum status drop_capabilities(struct fence_state *state, struct err *err)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}},
                                  left[2] = {{0}};

    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
    state->capabilities = syscall(SYS_capset, &head, none) &&
                          (syscall(SYS_capget, &head, left) || left[0].permitted ||
                           left[1].permitted || left[0].effective || left[1].effective);
    return state->capabilities
               ? err_set(err, ST_IO,
                         "cannot give up its capabilities to read the model")
               : ST_OK;
}

/* ---- what is missing ------------------------------------------------------------- */

/* A variable of the environment, which children inherit: what a process has found that
 * starts others. Where a kernel has all, a child that finds less has met a failure. */
#define FOUND "SLMBENCH_FENCE"
#define WHOLE "whole"
#define PART  "part"

void fence_note_elsewhere(void)
{
    setenv(FOUND, PART, 1);
}

static void print_missing(bool landlock, bool seccomp)
{
    fprintf(
        stderr,
        "bench: note: this kernel has no %s%s%s, so a process that reads a model is "
        "fenced in only in part (docs/security.md)\n",
        landlock ? "" : "Landlock (Linux 5.13)", landlock || seccomp ? "" : " and ",
        seccomp ? "" : "seccomp filters");
    setenv(FOUND, PART, 1);
}

void fence_note_missing(void)
{
    const bool landlock = fence_rules_version() > 0, seccomp = fence_filter_known();

    if (getenv(FOUND))
        return;
    if (landlock && seccomp)
        setenv(FOUND, WHOLE, 1);
    else
        print_missing(landlock, seccomp);
}

/* After it was entered. */
static enum status check_whole(bool landlock, bool seccomp, struct err *err)
{
    const char *found = getenv(FOUND);

    if (landlock && seccomp)
        return ST_OK;
    if (found && !strcmp(found, WHOLE))
        return err_set(err, ST_IO,
                       "cannot put up the whole fence to read the model: %s "
                       "could not be used",
                       landlock ? "seccomp" : "Landlock");
    if (!found)
        print_missing(landlock, seccomp);
    return ST_OK;
}

/* ---- all of it ------------------------------------------------------------------- */

static enum status filter_calls(const struct fence *fence, bool *filtered,
                                struct err *err)
{
    *filtered = fence_filter_enter(fence);
    if (!*filtered && fence_filter_known())
        return err_set(err, ST_IO,
                       "cannot give up the system calls that reading a model does not "
                       "need, though this kernel filters them");
    return ST_OK;
}

enum status fence_enter(const struct fence *fence, struct fence_state *state,
                        struct err *err)
{
    enum status st;
    int ruleset;

    *state = (struct fence_state){0};
    st = fence_rules_make(fence, &ruleset, &state->landlock, err);
    if (st)
        return st;
    clear_bounding_set();
    if ((st = change_user(fence, err)))
        goto out;
    state->uid = getuid();
    if ((st = drop_capabilities(state, err)))
        goto out;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        st = err_set_errno(err, ST_IO, "cannot give up new privileges");
        goto out;
    }
    state->no_new_privs = true;
    if (ruleset >= 0 && fence_rules_enforce(ruleset))
        st = err_set_errno(err, ST_IO, "cannot restrict itself to the model's files");
    if (st == ST_OK)
        st = filter_calls(fence, &state->seccomp, err);
    if (st == ST_OK)
        st = check_whole(state->landlock > 0, state->seccomp, err);
out:
    if (ruleset >= 0)
        close(ruleset);
    return st;
}

enum status fence_enter_calls(int ring, struct err *err)
{
    const struct fence fence = {.writes = true, .has_ring = ring >= 0, .ring = ring};
    static bool entered;
    bool filtered;
    int landlock;

    if (entered)
        return ST_OK;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return err_set_errno(err, ST_IO, "cannot give up new privileges");
    if (fence_rules_enter_apart(&landlock, err) ||
        filter_calls(&fence, &filtered, err) ||
        check_whole(landlock > 0, filtered, err))
        return err->code;
    entered = true;
    return ST_OK;
}
