/* SPDX-License-Identifier: MIT
 *
 * point_run.h - one run of a point, shared by the files of its deciding side
 *
 * point_plan.c computes what is needed, point.c starts the worker and reads its
 * messages, point_end.c fills in the result. A row is filled in by point_plan.c before,
 * by point_end.c, point_judge.c and point_limiter.c after, and by the worker's
 * point_columns.c.
 *
 * Threading: one thread per run.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_RUN_H
#define SLM_HARNESS_MEASURE_POINT_POINT_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "harness/measure/point/point_measure.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/measure/worker/worker_client.h"

#define POINT_DISK_PASSES 3 /* before the measurement, and again after it */

struct point_run {
    struct point settings; /* as the worker gets them */
    struct topology *topo; /* with memory as it is now */
    struct row *row;
    point_progress_fn *progress;
    void *progress_arg;

    int64_t cached_bytes; /* of the model, elsewhere, when the point began */
    uint64_t weight_bytes, rows_bytes, anon_bytes; /* as planned */
    bool fits;
    int n_vocab; /* of the model */

    struct sandbox *sandbox; /* with a memory limit; else NULL */
    struct sandbox *around;  /* the same, or one with a CPU quota alone; NULL: none */
    struct worker_client worker;

    double disk_gbps[2 * POINT_DISK_PASSES]; /* of the model's disk */
    int n_disk_gbps;
    double roof_disk_gbps, disk_spread; /* their median, NaN: none; and what they differ
                                           by, as a share of it */

    json_t *roof_passes; /* of point_run_roof(), so far; NULL: none */

    struct point_samples samples;
    size_t samples_cap;
    struct point_facts facts;
    struct noise noise;
    bool has_noise;
    char phase[16];

    struct sandbox_usage usage;
    uint64_t peak_bytes, resident_bytes; /* the most of its sandbox */
    uint64_t usage_ns, measure_ns;
};

/* Begin and end a run: what point_run() does around any measurement. *out is for
 * point_run_end() in any case; keeps: the samples become the caller's. Errors:
 * ST_NO_MEMORY, ST_INTERRUPTED. */
enum status point_run_begin(struct point_run **out, const struct point *p,
                            const struct topology *topo, struct row *row,
                            point_progress_fn *progress, void *arg, struct err *err);
void point_run_end(struct point_run *r, struct point_samples *samples, bool keeps);

/* Sandbox and worker, which greets. *greets false: it has not; the row has the reason.
 */
enum status point_run_start(struct point_run *r, bool *greets, struct err *err);

/* CPUs by number, so that all sides use the same ones. */
enum status point_run_pin(struct point_run *r, struct err *err);

/* What the point needs, into r and the row. False: there is no answer; an error of the
 * whole run is in *status, one of the point in the row. */
bool point_run_need(struct point_run *r, enum status *status, struct err *err);

/* Passes of the roof over a buffer, where no model of this program is in memory, once
 * before a measurement and once after it, into r->facts and the row. False: as
 * point_run_need(). */
bool point_run_roof(struct point_run *r, enum status *status, struct err *err);

/* Look at what the sandbox is charged. */
void point_run_usage(struct point_run *r);

/* Fill in the columns that are known before it runs. p: as the caller gave it,
 * with the placement that r->settings has resolved into CPUs. */
void point_describe(struct point_run *r, const struct point *p);

/* Memory that the point may have: the least of its limit, of what the limits in force
 * leave, and of what is available. */
uint64_t point_room(const struct point_run *r);

/* What it needs, into r and the row. */
void point_plan(struct point_run *r, const struct point_need *need);

/* Whether it may be tried; if not, the row has the reason. */
bool point_may_try(struct point_run *r);

/* The row's status, detail, peak and figures, once the worker has ended. */
void point_conclude(struct point_run *r);

#endif
