/* SPDX-License-Identifier: MIT
 *
 * doctor.h - which parts of this program work on a machine, and what mends the others
 *
 * Model of the world: topology_advice() and the modules that later do the work
 * (sandbox, fence, disk probe, client, noise) are called once, and nothing of what they
 * do stays. A check is fine, a note (worth knowing; no measurement suffers), or partly:
 * a command does not work here, or measures slower or less certainly.
 *
 * A recorded tree shows what its files show; what only the living machine could answer
 * (fence, disk, programs, noise) is left out.
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_DECIDE_DOCTOR_DOCTOR_H
#define SLM_HARNESS_DECIDE_DOCTOR_DOCTOR_H

#include <jansson.h>
#include <stdbool.h>

#include "harness/machine/topology.h"

enum doctor_state { DOCTOR_FINE, DOCTOR_NOTE, DOCTOR_PARTLY };

struct doctor_check {
    char name[24];
    enum doctor_state state;
    char found[512]; /* one sentence or two */
    char mend[160];  /* a command; "": no command mends it, or none is needed */
};

/* A process that reads a model; a server; a command that runs a model for its user. */
enum doctor_role { DOCTOR_READER, DOCTOR_SERVER, DOCTOR_COMMAND, DOCTOR_N_ROLES };

/* The fence (fence.h) of a reader, as it is from inside. */
struct doctor_fence {
    int n_calls;                               /* that this kernel has; 0: not known */
    int n_allowed[DOCTOR_N_ROLES];             /* with some arguments; 0: not known */
    int landlock;                              /* version of its interface; 0: none */
    bool other_files;                          /* it can read what it was not to read */
    bool filtered;                             /* system calls are (seccomp) */
    bool no_new_privs, capabilities, terminal; /* it has, or can type into one */
    bool ring, other_rings; /* it can use an io_uring that reads; make another one */
    int uid;                /* it is; -1: not known */
    char error[200];        /* why it cannot be entered; "": it can */
};

#define DOCTOR_MAX 32
struct doctor {
    struct doctor_check check[DOCTOR_MAX];
    int n;
    bool has_fence; /* else it is that of another machine */
    struct doctor_fence fence;
};

/* Takes three seconds and sleeps most of the time. root: that of topo, "" for this
 * machine. dir: where models and results will lie; 128 MiB are written and read there
 * in a file without a name. Nothing that is missing is an error. */
void doctor_examine(struct doctor *d, const struct topology *topo, const char *root,
                    const char *dir);

/* How many checks are DOCTOR_PARTLY. */
int doctor_n_partly(const struct doctor *d);

/* Prints the checks and the verdict on standard output. */
void doctor_print(const struct doctor *d);

/* {"verdict": "fine"|"partly", "checks": [{"name", "state", "found", "mend"}], "fence":
 * null or {"system_calls": {"kernel", "reader", "server", "command"}, "landlock",
 * "seccomp", "other_files", "no_new_privs", "capabilities", "terminal", "io_uring":
 * "none"|"reads"|"any", "uid"}}, where null is not known; NULL: no memory. */
json_t *doctor_json(const struct doctor *d);

#endif
