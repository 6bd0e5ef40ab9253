/* SPDX-License-Identifier: MIT
 *
 * launch.h - a server that `bench load` starts itself, in a sandbox
 *
 * Model of the world: the command is a shell's, of one program, with {port} where a
 * free port of this machine belongs. It runs in a sandbox where a limit of memory or a
 * CPU quota is given; with a limit the model that its -m or --model names leaves the
 * page cache before, so that it is charged for it. /health is requested until it is
 * ready, and ends with all it has started.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_LAUNCH_H
#define SLM_HARNESS_MEASURE_ENGINES_LAUNCH_H

#include <stdint.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "engine/base/status.h"
#include "harness/rows/row.h"
#include "harness/machine/child.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/machine/topology.h"

/* Where it runs, and where we do: the server needs the threads that its command names
 * with -t or
 * --threads, as llama.cpp and bench serve have them. Where that is fewer threads than
 * there are cores, the client keeps one core to itself, the last, and the server gets
 * all others; otherwise they share all CPUs. */

struct launch_place {
    int n_threads;             /* that the command names; 0: none */
    bool is_pinned;            /* the server: to server[] */
    bool is_apart;             /* client[] are CPUs that it does not have */
    int server[TOPO_MAX_CPUS]; /* [n_server] */
    int n_server;
    int client[TOPO_MAX_CPUS]; /* [n_client]: all allowed CPUs of one core, or all that
                                  the server was not given */
    int n_client;
    bool is_kept; /* launch_place_keep() has pinned us */
    cpu_set_t before;
};

/* The word that follows -SHORT or --LONG in a shell's command, or stands behind
 * --LONG=, without quotes; false: none, or none of a plain word. */
bool launch_option(const char *command, char letter, const char *name, char *buf,
                   size_t cap);

void launch_place_find(struct launch_place *p, const char *command,
                       const struct topology *topo);

/* The server runs on these CPUs ("0,2-3"), the client on all others; if there are no
 * others, both share. Errors: ST_USAGE (placement_parse_cpus()). */
enum status launch_place_set(struct launch_place *p, const char *cpus,
                             const struct topology *topo, struct err *err);

/* Pins us to our core, and back to where we were. */
void launch_place_keep(struct launch_place *p);
void launch_place_leave(struct launch_place *p);

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

/* ---- when a server has stopped computing ----------------------------------------- */

/* Requests that are cut off at the end of a run are computed on for
 * a while by some servers, and no interface reports when that ends. CPU time does: a
 * server idles when in a window of LOAD_IDLE_WINDOW_S it takes no more of it than
 * before the first request, and LOAD_IDLE_CPUS. For a server that we started it is the
 * time of its process group and of what descends from it; for another one the time of
 * all other processes of this machine, since it may run in a container. */

#define LOAD_IDLE_WINDOW_S 0.3
#define LOAD_IDLE_CPUS     0.05 /* a tick of the kernel's clock in such a window */

/* CPU time so far of the process group and its descendants, those included that have
 * ended and were waited for. root: "" or the top of a recorded tree. 0: no process. */
uint64_t load_idle_group_ns(const char *root, pid_t group);

/* CPUs that the server takes in one window. group 0: all other processes. */
double load_idle_cpus(pid_t group);

/* Waits for a window with no more than that in addition to usual; false: no such window
 * in max_s, or interrupted(). */
bool load_idle_wait(pid_t group, double usual, double max_s);

#endif
