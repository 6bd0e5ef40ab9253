/* SPDX-License-Identifier: MIT
 *
 * launch.h - a server that `bench load` starts itself, in a sandbox
 *
 * Model of the world: the command is a shell's, of one program, with {port} where a
 * free port of this machine belongs. It runs in a sandbox where a limit of memory or a
 * CPU quota is given; with a limit the model that its -m or --model names leaves the
 * page cache before, so that it is charged for it. /health is requested until it is
 * ready, and ends with all it has started. Where it runs is launch_place.h's.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_LAUNCH_H
#define SLM_HARNESS_MEASURE_ENGINES_LAUNCH_H

#include <stdint.h>

#include "engine/base/status.h"
#include "harness/measure/engines/launch_place.h"
#include "harness/rows/row.h"
#include "harness/machine/child.h"
#include "harness/machine/sandbox/sandbox.h"

#define LAUNCH_MAX_NAME 23 /* of NAME=COMMAND */
#define LAUNCH_MAX_TEXT 2000

struct launch {
    struct child child;
    struct sandbox *sandbox;             /* NULL: no limit and no quota */
    bool has_limit;                      /* of memory */
    uint64_t n_refaults, n_major_faults; /* of it until now */
    char name[LAUNCH_MAX_NAME + 1];
    char url[64];
    struct launch_place place;
    int64_t cached_bytes; /* of its model, which stayed cached; -1: not known */
};

/* NAME=COMMAND into its parts. Error: ST_USAGE (no name of letters, digits, . _ - and
 * at most LAUNCH_MAX_NAME characters; no {port}; too long). */
enum status launch_parse(const char *text, char *name, const char **command,
                         struct err *err);

/* Starts it and waits until it is ready. *l is for launch_stop() in any case. cpus: its
 * CPUs, as "0,2-3"; NULL: launch_place_find()'s. Errors: ST_USAGE, ST_IO (it ended, or
 * is not ready within wait_s, which longer names; with the tail of its stderr),
 * ST_INTERRUPTED, and the sandbox's. */
enum status launch_start(struct launch *l, const char *text,
                         const struct sandbox_limits *limits, const char *cpus,
                         double wait_s, const char *longer, const struct topology *topo,
                         struct err *err);

/* All files of the model that -m or --model of the command names leave the page cache:
 * whoever reads them next is charged for them. Returns bytes that stayed; -1: it names
 * none that is here. */
int64_t launch_evict(const char *command);

/* The most memory that it was charged, what limits it, pages that it read again since
 * the row before, CPUs that are ours alone, and that it has ended, into the row. */
void launch_note(struct launch *l, struct row *row);

/* Memory at its peak of the processes of a group, in bytes: anonymous pages and those
 * of files that they have mapped, without the files of their programs and libraries,
 * since how much of those is mapped differs between two copies of one file. Pages that
 * processes share count for each. root: "" or the top of a recorded tree; 0: unknown.
 */
uint64_t launch_memory(const char *root, pid_t group);

/* Ends it and frees. */
void launch_stop(struct launch *l);

#endif
