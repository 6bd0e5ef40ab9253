/* SPDX-License-Identifier: MIT
 *
 * sandbox_group.h - the mechanics under sandbox.h: names, files, parents, removal
 *
 * Paths are as on the machine; the recorded tree's root goes in front in here.
 */
#ifndef SLM_HARNESS_MACHINE_SANDBOX_SANDBOX_GROUP_H
#define SLM_HARNESS_MACHINE_SANDBOX_SANDBOX_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "engine/base/status.h"
#include "harness/machine/sandbox/cgroup.h"

/* ---- names ----------------------------------------------------------------------- */

/* Who made a group: enough to know him again. */
struct maker {
    pid_t pid;
    unsigned long long start; /* field 22 of /proc/<pid>/stat; 0 unknown */
    unsigned long long pidns; /* inode of his pid namespace, 0 unknown; above bit 32
                                 that of his time namespace, unless it is the first */
};

void maker_self(struct maker *m, const char *root);

/* "slmbench.<pid>.<what>.<start>.<pidns>" */
void group_name(const struct maker *m, const char *what, char *buf, size_t cap);

/* Take such a name apart; is_self tells the leaf our own processes wait in. */
bool group_parse(const char *name, struct maker *m, bool *is_self);

/* Is the process still there (or not for us to judge: another namespace)? */
bool maker_may_live(const struct maker *m, const char *root);

/* ---- directories and files ------------------------------------------------------- */

/* Write text to dir/file; 0, or -1 with errno. In a recorded tree the file is made,
 * and append adds to it (a kernel's file takes one pid at a time and keeps all). */
int group_write(const char *root, const char *dir, const char *file, const char *text,
                bool append);

int group_mkdir(const char *root, const char *dir);

/* Kill what is inside (but in a recorded tree), wait until it is empty, remove it;
 * 0, or -1 with errno after about five seconds of trying. */
int group_remove(const char *root, const char *dir, int version);

/* rmdir() alone, for groups whose processes are not ours to kill. */
int group_rmdir(const char *root, const char *dir);

/* Move every process of one group into another; returns how many were moved, -1
 * with errno if one could not be. */
int group_move_all(const char *root, const char *from, const char *to);

/* Does dir hold processes itself? */
bool group_has_processes(const char *root, const char *dir);

/* ---- where a sandbox may be made ------------------------------------------------- */

/* Controllers that a group is made for: bits, 1u << CGROUP_MEMORY and so on. */
#define GROUP_MEMORY (1u << CGROUP_MEMORY)
#define GROUP_CPU    (1u << CGROUP_CPU)

struct group_parent {
    char dir[CGROUP_PATH_MAX];
    char self_leaf[CGROUP_PATH_MAX]; /* made, and our processes moved there; or "" */
    unsigned controllers;            /* that groups in dir can have */
};

/* A directory in which groups with these controllers can be made, enabling them where
 * that is needed. Errors: as sandbox_create(). */
enum status group_find_parent(struct group_parent *parent,
                              const struct cgroup_place *place, const char *root,
                              unsigned controllers, struct err *err);

/* One that was found passes these on, too. Errors: likewise. */
enum status group_add_controllers(struct group_parent *parent,
                                  const struct cgroup_place *place, const char *root,
                                  unsigned controllers, struct err *err);

/* Undo what group_find_parent() changed; the real root keeps passing controllers on. */
void group_release_parent(const struct group_parent *parent, const char *root);

#endif
