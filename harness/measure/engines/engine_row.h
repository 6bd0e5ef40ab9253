/* SPDX-License-Identifier: MIT
 *
 * engine_row.h - one run of another program, and the row that comes of it
 *
 * Threading: one thread per run.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_ROW_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_ROW_H

#include "harness/measure/engines/engine_child.h"
#include "harness/measure/engines/engine_command.h"
#include "harness/measure/engines/engine_talk.h"
#include "harness/machine/noise.h"
#include "harness/measure/point/point_run.h"

struct engine_run {
    struct engine e;
    struct point_run *r;
    char path[4096]; /* of its program */
    enum engine_depth depth;
    struct engine_effort effort;
    struct engine_requested requested;
    struct engine_figures figures;
    struct engine_serving serving; /* of a server */
    struct engine_talk talk;
    double expected_s, wall_s;
    struct noise noise; /* from its start to its end, loading included */
    uint64_t maxrss_bytes;
    uint64_t peak_bytes, resident_bytes; /* of its sandbox, while it ran */
};

/* The columns that are known before it runs; point_describe() comes before. */
void engine_row_begin(struct engine_run *x);

/* The CPUs, once they are known; and the ceiling that the first passes give: the judge
 * computes it from samples, which come later. */
void engine_row_cpus(struct engine_run *x);
void engine_row_ceiling(struct engine_run *x);

/* It has no figure, and why: a sentence. */
void engine_row_fails(struct engine_run *x, const char *why);

/* After its end: its figures, or why it has no figures. */
void engine_row_end(struct engine_run *x, const struct engine_child *c);

/* Why it was not measured, where the worker of the ceiling has not answered. */
void engine_row_worker(struct engine_run *x, bool answered);

/* The units of the CPU whose use by this program does not show, from its speed: it need
 * not have AMX-INT8 unless it passes the peak of vectors. isa_mask: what is detected;
 * unused_units: as in struct topology. */
void engine_row_units(struct row *row, uint32_t isa_mask, uint32_t unused_units);

/* The row, once the ceiling was probed again. */
void engine_row_conclude(struct engine_run *x);

#endif
