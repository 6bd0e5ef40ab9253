/* SPDX-License-Identifier: MIT
 *
 * gate_commits.h - two commits of a repository as the sides of a gate
 *
 * Model of the world: the repository is that of the current directory. Each commit is
 * checked out into a work tree of its own below the cache directory, where --build runs
 * as a shell's command; --run is a side as --a takes it, whose program is named from
 * the top of that tree. With --since A is where HEAD left that commit, and B what the
 * working tree has of files that git knows. The repository's own files are not touched,
 * and the work trees are gone when the gate ends.
 *
 * The build is trusted as far as who named it trusts the commits.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_COMMITS_H
#define SLM_HARNESS_DECIDE_GATE_GATE_COMMITS_H

#include "harness/decide/gate/gate_options.h"

struct gate_commits {
    struct gate_commit {
        char name[128];     /* as it was given */
        char id[64];        /* of the commit; "": none */
        char tree[512];     /* its work tree; "": none yet */
        char program[2560]; /* the side, with the whole path of its program */
    } side[2];
};

/* Whether o names commits; they are found then. *c is zeroed. Errors: ST_USAGE (options
 * that belong together, no repository, no such commit), ST_INTERRUPTED. */
enum status gate_commits_find(struct gate_commits *c, const struct gate_options *o,
                              struct err *err);

/* Whether both have the same files. */
bool gate_commits_same(const struct gate_commits *c);

/* Checks out and builds both; equal commits once. *c is for gate_commits_close() in any
 * case. Errors: ST_INPUT (a build that fails, whose last lines are printed on standard
 * error), ST_IO, ST_INTERRUPTED. */
enum status gate_commits_build(struct gate_commits *c, const struct gate_options *o,
                               struct err *err);

/* Removes the work trees. */
void gate_commits_close(struct gate_commits *c);

#endif
