/* SPDX-License-Identifier: MIT
 *
 * load_idle.h - when a server has stopped computing
 *
 * Model of the world: requests that are cut off at the end of a run are computed on for
 * a while by some servers, and no interface reports when that ends. CPU time does: a
 * server idles when in a window of LOAD_IDLE_WINDOW_S it takes no more of it than
 * before the first request, and LOAD_IDLE_CPUS. For a server that we started it is the
 * time of its process group and of what descends from it; for another one the time of
 * all other processes of this machine, since it may run in a container.
 *
 * Threading: stateless.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_LOAD_IDLE_H
#define SLM_HARNESS_MEASURE_ENGINES_LOAD_IDLE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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
