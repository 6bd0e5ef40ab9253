/* SPDX-License-Identifier: MIT
 *
 * load_roof.h - the memory's bandwidth around a run of requests
 *
 * Model of the world: a server shares this machine's memory with others, other virtual
 * machines included, which no counter shows. So the bandwidth of its CPUs is read
 * before and after the requests of a row, as for a point of another engine
 * (harness/measure/engines/engine_run.h): by this process, on as many of the server's
 * CPUs as it has threads, from a buffer in pages of 4 KiB that is taken out of every
 * cache before each pass, outside the server's sandbox, and given back before requests
 * are sent. A row around which memory gave clearly less than at others, or less at one
 * end than at the other, is disturbed (harness/rows/roofs.h).
 *
 * It waits until the server idles (launch.h). Where it does not, or memory is short,
 * there is no figure, and the row has the reason.
 *
 * Threading: one thread, which has threads of its own while it reads.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_LOAD_ROOF_H
#define SLM_HARNESS_SERVE_LOAD_LOAD_ROOF_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "harness/measure/engines/launch.h"
#include "harness/machine/probe.h"
#include "harness/machine/topology.h"
#include "harness/rows/row.h"

#define LOAD_ROOF_PASSES 32   /* before, and again after, at most */
#define LOAD_ROOF_IDLE_S 10.0 /* to wait for, at most */

/* Passes at one end of a run; n 0: none, and why. */
struct load_roof_end {
    double gbps[LOAD_ROOF_PASSES];
    int n;
    uint64_t at_ns;
    char why[80];
};

struct load_roof {
    pid_t group;                /* the server's processes; 0: they are not ours */
    struct launch_place *place; /* NULL: nothing is known */
    int n_server_threads;       /* as its command names them; 0: unknown */
    int n_threads, cpus[TOPO_MAX_CPUS]; /* that read */
    double usual;                       /* CPUs that the server takes when idle */
    struct load_roof_end before, after;
};

/* Whether the server at url runs on this machine, by a loopback address. */
bool load_roof_is_here(const char *url);

/* Where a server runs: at `place`, which must outlive *r, or on all CPUs of topo
 * (NULL: nothing is known). *r is zeros or of another server. Errors: those of
 * placement_cpus(). */
enum status load_roof_place(struct load_roof *r, const struct topology *topo,
                            struct launch_place *place, pid_t group, struct err *err);

/* Before the first request: what the server takes when it idles. */
void load_roof_begin(struct load_roof *r);

/* Before the requests of a row; what was read after others a moment ago is taken. */
void load_roof_before(struct load_roof *r);

/* After them. */
void load_roof_after(struct load_roof *r);

/* Adds both figures to a row that has its validity already. */
void load_roof_note(const struct load_roof *r, struct row *row);

#endif
