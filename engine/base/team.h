/* SPDX-License-Identifier: MIT
 *
 * team.h - a fixed team of threads and a low-latency barrier
 *
 * A team of n has n-1 threads of its own; the thread that calls team_run() is
 * member 0. All members may be pinned, one CPU each. A run takes all members or,
 * after team_use(), the first few; the others sleep on and cost nothing. Waiting
 * (for work, or in a barrier) spins briefly and then sleeps on a futex; where more
 * members run than there are CPUs it sleeps at once, so oversubscription costs
 * context switches and not whole time slices of spinning. It never yields instead:
 * a yield leaves the CPU to any other program for a whole slice.
 *
 * Threading: one thread at a time may call team_run() on a team, and always the
 * one that started it; it also stops it.
 */
#ifndef SLM_ENGINE_BASE_TEAM_H
#define SLM_ENGINE_BASE_TEAM_H

#include <stddef.h>

#include "engine/base/status.h"

/* More members than this is a mistyped number, not a machine. */
#define TEAM_MAX_MEMBERS 1024

struct team;

typedef void team_fn(void *arg, int member, int n_members);

/* Start a team of n_members, 1..TEAM_MAX_MEMBERS. cpus[n_members] pins member i
 * to CPU cpus[i] (member 0, the caller, too, until team_stop() restores its
 * mask); NULL leaves placement to the OS. Errors: ST_USAGE (n_members, or a CPU
 * outside the affinity mask, named), ST_NO_MEMORY (the system starts no more
 * threads). */
enum status team_start(struct team **team, int n_members, const int *cpus,
                       struct err *err);

/* Run fn(arg, i, n) on every member in use; returns when all are done. */
void team_run(struct team *team, team_fn *fn, void *arg);

/* Inside fn: wait until every member in use has arrived. What members wrote before is
 * visible to all after. */
void team_barrier(struct team *team);

/* Inside fn: hand out work in chunks, so that a member whose CPU was taken away
 * does not hold up the rest. Returns the next index of a shared counter and
 * advances it by chunk. The counter is 0 when fn starts and after each
 * team_barrier(). */
size_t team_next(struct team *team, size_t chunk);

/* Between runs: those from here on take members 0..n-1 only, 1 <= n <=
 * team_capacity(). */
void team_use(struct team *team, int n);

/* Members in use: all of them until team_use() says otherwise. */
int team_size(const struct team *team);

/* Members started. */
int team_capacity(const struct team *team);

/* Ends the threads and frees the team; NULL is fine. */
void team_stop(struct team *team);

/* Contiguous share of n items in multiples of unit for one member. The shares
 * of all members cover n exactly; they differ by at most one unit. */
void team_share(size_t n, size_t unit, int member, int n_members, size_t *begin,
                size_t *end);

#endif
