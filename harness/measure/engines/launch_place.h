/* SPDX-License-Identifier: MIT
 *
 * launch_place.h - where a server that bench load starts runs, and where we do
 *
 * Model of the world: the server needs the threads that its command names with -t or
 * --threads, as llama.cpp and bench serve have them. Where that is fewer threads than
 * there are cores, the client keeps one core to itself, the last, and the server gets
 * all others; otherwise they share all CPUs.
 *
 * Threading: the main thread.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_LAUNCH_PLACE_H
#define SLM_HARNESS_MEASURE_ENGINES_LAUNCH_PLACE_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>

#include "harness/machine/topology.h"

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

#endif
