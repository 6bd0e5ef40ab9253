/* SPDX-License-Identifier: MIT
 *
 * sandbox_parent.c - where a group with a limit may be made
 *
 * In our own group, never further up: groups above have neither the CPU quota, nor the
 * CPUs, nor the memory limit of the unit or container that this process is in.
 *
 * Version 2: a controller reaches a group only if the parent lists it in
 * cgroup.subtree_control, and a group (but the real root) that does so may have no
 * processes of its own. Where ours has some, they are moved into a leaf below it first,
 * which has the same limits. A process that another run has moved into such a leaf has
 * the group around the leaf for its own.
 * A child is moved from our group into the new one, for which the kernel wants
 * write access to cgroup.procs of the nearest group around both: the parent itself.
 */
#include "harness/base/format.h"
#include "harness/machine/sandbox/sandbox_group.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/sysfile.h"

static bool may_write(const char *root, const char *dir, const char *file)
{
    char path[SYSFILE_PATH_MAX];

    return snprintf(path, sizeof path, "%s%s%s%s", root, dir, file ? "/" : "",
                    file ? file : "") < (int)sizeof path &&
           faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0;
}

/* "+memory +cpu": the controllers, each with sign before it ('\0': none). */
static const char *list_controllers(unsigned controllers, char sign, char *buf,
                                    size_t cap)
{
    static const char *const names[] = {
        [CGROUP_MEMORY] = "memory", [CGROUP_CPU] = "cpu"};
    const char before[2] = {sign, '\0'};

    *buf = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (controllers >> i & 1)
            text_append(buf, cap, "%s%s%s", *buf ? " " : "", before, names[i]);
    return buf;
}

/* Does a file name all of these controllers? */
static bool lists(const char *root, const char *dir, const char *file,
                  unsigned controllers)
{
    char path[CGROUP_PATH_MAX + 64], text[512];

    snprintf(path, sizeof path, "%s/%s", dir, file);
    return sysfile_read(root, path, text, sizeof text) > 0 &&
           (!(controllers & GROUP_MEMORY) || text_has_word(text, "memory")) &&
           (!(controllers & GROUP_CPU) || text_has_word(text, "cpu"));
}

/* Only the real root of the hierarchy has no cgroup.type; it alone may pass
 * controllers on and have processes. */
static bool is_real_root(const char *root, const char *dir)
{
    char path[CGROUP_PATH_MAX + 64], text[64];

    snprintf(path, sizeof path, "%s/cgroup.type", dir);
    return sysfile_read(root, path, text, sizeof text) < 0;
}

static bool may_make_groups(const char *root, const char *dir)
{
    return may_write(root, dir, NULL) && may_write(root, dir, "cgroup.procs");
}

static bool passes_on(const char *root, const char *dir, unsigned controllers)
{
    return lists(root, dir, "cgroup.subtree_control", controllers) &&
           may_make_groups(root, dir);
}

static bool could_pass_on(const char *root, const char *dir, unsigned controllers)
{
    return lists(root, dir, "cgroup.controllers", controllers) &&
           may_make_groups(root, dir) && may_write(root, dir, "cgroup.subtree_control");
}

static int enable(const char *root, const char *dir, unsigned controllers)
{
    char text[32];

    return group_write(root, dir, "cgroup.subtree_control",
                       list_controllers(controllers, '+', text, sizeof text), false);
}

/* On failure everything is put back. */
static bool retreat_into_leaf(struct group_parent *parent, const char *root,
                              const char *own, unsigned controllers)
{
    struct maker me;
    char name[96];

    maker_self(&me, root);
    group_name(&me, "self", name, sizeof name);
    if (snprintf(parent->self_leaf, sizeof parent->self_leaf, "%s/%s", own, name) >=
            (int)sizeof parent->self_leaf ||
        (group_mkdir(root, parent->self_leaf) && errno != EEXIST)) {
        parent->self_leaf[0] = '\0';
        return false;
    }
    snprintf(parent->dir, sizeof parent->dir, "%s", own);
    if (group_move_all(root, own, parent->self_leaf) >= 0 &&
        !enable(root, own, controllers))
        return true;
    const int saved = errno;
    group_move_all(root, parent->self_leaf, own);
    group_rmdir(root, parent->self_leaf);
    parent->self_leaf[0] = '\0';
    errno = saved;
    return false;
}

static bool is_leaf(const char *dir)
{
    struct maker maker;
    bool is_self = false;

    return group_parse(basename(dir), &maker, &is_self) && is_self;
}

static bool find_v2(struct group_parent *parent, const struct cgroup_place *place,
                    const char *root, unsigned controllers)
{
    char *dir = parent->dir;

    snprintf(dir, sizeof parent->dir, "%s", place->dir);
    if (is_leaf(dir))
        cgroup_parent(place, dir);
    if (passes_on(root, dir, controllers))
        return true;
    if (!could_pass_on(root, dir, controllers))
        return false;
    if (is_real_root(root, dir) || !group_has_processes(root, dir))
        return !enable(root, dir, controllers);
    return place->exact && retreat_into_leaf(parent, root, place->dir, controllers);
}

static bool find_v1(struct group_parent *parent, const struct cgroup_place *place,
                    const char *root)
{
    snprintf(parent->dir, sizeof parent->dir, "%s", place->dir);
    return may_write(root, parent->dir, NULL);
}

/* Those that the group is not given: the ones above it do not pass them on. */
static unsigned not_given(const char *root, const char *dir, unsigned controllers)
{
    unsigned missing = 0;

    for (unsigned bit = 1; bit <= controllers; bit <<= 1)
        if (controllers & bit && !lists(root, dir, "cgroup.controllers", bit))
            missing |= bit;
    /* nor its name: the file cannot be read */
    return lists(root, dir, "cgroup.controllers", 0) ? missing : 0;
}

static bool is_read_only(const char *root, const char *dir)
{
    return !may_write(root, dir, NULL) && errno == EROFS;
}

/* Another user, or another group around us, where that would help. */
static const char *way_out(const struct cgroup_place *place, const char *root,
                           unsigned missing)
{
    if (is_read_only(root, place->dir))
        return "it is mounted read-only; run the container with --privileged";
    if (place->version == 1)
        return "run this as root (in a container: --privileged)";
    if (missing && !geteuid())
        return "run this under `systemd-run --scope -p Delegate=yes`";
    if (missing)
        return "run this as root under `systemd-run --scope -p Delegate=yes`, or have "
               "root give it to users (`systemctl edit user@.service`, Delegate=cpu "
               "memory pids)";
    return "run this under `systemd-run --user --scope -p Delegate=yes`, as root (in a "
           "container: --privileged)";
}

static enum status refuse(const struct cgroup_place *place, const char *root,
                          unsigned controllers, struct err *err)
{
    static const char *const not_here[] = {
        [0] = "",
        [GROUP_MEMORY] = ", which is not given the memory controller",
        [GROUP_CPU] = ", which is not given the CPU controller",
        [GROUP_MEMORY | GROUP_CPU] = (", which is not given the memory and CPU "
                                      "controllers"),
    };
    const bool quota = !(controllers & GROUP_MEMORY);
    const char *what = quota ? "cgroup with a CPU quota"
                       : controllers & GROUP_CPU
                           ? "cgroup with memory limit and CPU quota"
                           : "memory cgroup";
    const char *none = quota ? "or without one (--cpus-quota none)"
                             : "with the limit that the container has (--mem "
                               "container), or without one (--mem none)";
    char dir[CGROUP_PATH_MAX];
    unsigned missing;

    snprintf(dir, sizeof dir, "%s", place->dir);
    if (is_leaf(dir))
        cgroup_parent(place, dir);
    missing = place->version == 2 ? not_given(root, dir, controllers) : 0;
    return err_set(err, ST_PERMISSION, "may not make a %s in %.160s%s; %s, %s", what,
                   place->dir, not_here[missing], way_out(place, root, missing), none);
}

enum status group_find_parent(struct group_parent *parent,
                              const struct cgroup_place *place, const char *root,
                              unsigned controllers, struct err *err)
{
    memset(parent, 0, sizeof *parent);
    parent->controllers = controllers;
    if (place->version == 2 ? find_v2(parent, place, root, controllers)
                            : find_v1(parent, place, root))
        return ST_OK;
    return refuse(place, root, controllers, err);
}

enum status group_add_controllers(struct group_parent *parent,
                                  const struct cgroup_place *place, const char *root,
                                  unsigned controllers, struct err *err)
{
    const unsigned missing = controllers & ~parent->controllers;

    if (place->version == 2 && missing && !passes_on(root, parent->dir, missing) &&
        (!could_pass_on(root, parent->dir, missing) ||
         enable(root, parent->dir, missing)))
        return refuse(place, root, missing, err);
    parent->controllers |= missing;
    return ST_OK;
}

/* Groups that another run has made next to our leaf. */
static bool has_others(const struct group_parent *parent, const char *root)
{
    char path[SYSFILE_PATH_MAX];
    DIR *d = sysfile_path(path, sizeof path, root, parent->dir) ? opendir(path) : NULL;
    bool others = false;

    for (struct dirent *e; d && !others && (e = readdir(d));) {
        struct maker maker;
        bool is_self;

        others = group_parse(e->d_name, &maker, &is_self) &&
                 strcmp(e->d_name, basename(parent->self_leaf)) != 0;
    }
    if (d)
        closedir(d);
    return others;
}

void group_release_parent(const struct group_parent *parent, const char *root)
{
    char text[32];

    /* Other runs' groups would lose their limits with the controllers. The leaf then
     * stays, is as good as the group around it, and is removed by a later run once it
     * is empty. */
    if (!parent->self_leaf[0] || has_others(parent, root))
        return;
    /* Processes may only come back once no controller is passed on any more. */
    list_controllers(parent->controllers, '-', text, sizeof text);
    if (!group_write(root, parent->dir, "cgroup.subtree_control", text, false) &&
        group_move_all(root, parent->self_leaf, parent->dir) >= 0)
        group_rmdir(root, parent->self_leaf);
}
