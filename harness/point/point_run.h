/* SPDX-License-Identifier: MIT
 *
 * point_run.h - one run of a point, shared by the files of its deciding side
 *
 * point_plan.c computes what is needed, point.c starts the worker and reads its
 * messages, point_end.c fills in the result.
 *
 * Threading: one thread per run.
 */
#ifndef SLM_HARNESS_POINT_POINT_RUN_H
#define SLM_HARNESS_POINT_POINT_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "harness/sandbox/sandbox.h"
#include "harness/point/point.h"
#include "harness/point/point_need.h"
#include "harness/worker/worker_client.h"

#define POINT_DISK_PASSES 3 /* before the measurement, and again after it */

struct point_run {
    struct point settings; /* as the worker gets them */
    struct topology *topo; /* with memory as it is now */
    struct row *row;
    point_progress_fn *progress;
    void *progress_arg;

    int64_t cached_bytes; /* of the model, elsewhere, when the point began */
    uint64_t weight_bytes, anon_bytes; /* as planned */
    bool fits;

    struct sandbox *sandbox; /* with a memory limit; else NULL */
    struct sandbox *around;  /* the same, or one with a CPU quota alone; NULL: none */
    struct worker_client worker;

    double disk_gbps[2 * POINT_DISK_PASSES]; /* of the model's disk */
    int n_disk_gbps;
    double disk_spread; /* of them, as a share of their median */

    struct point_samples samples;
    size_t samples_cap;
    struct point_facts facts;
    struct noise noise;
    bool has_noise;
    char phase[16];
    char tuned_note[200]; /* why a profile is not used */

    struct sandbox_usage usage;
    uint64_t peak_bytes, resident_bytes; /* the most of its sandbox */
    uint64_t usage_ns, measure_ns;
};

/* Fill in the columns that are known before it runs. p: as the caller gave it,
 * with the placement that r->settings has resolved into CPUs. */
void point_describe(struct point_run *r, const struct point *p);

/* Memory that the point may have: the least of its limit, of what the limits in force
 * leave, and of what is available. */
uint64_t point_room(const struct point_run *r);

/* In words, for behind a need: "the limit is 6.00 GiB". */
const char *point_available_text(const struct point_run *r, char *buf, size_t cap);

/* What it needs, into r and the row. */
void point_plan(struct point_run *r, const struct point_need *need);

/* Whether it may be tried; if not, the row says why. */
bool point_may_try(struct point_run *r);

/* The row's status, detail, peak and figures, once the worker has ended. */
void point_conclude(struct point_run *r);

#endif
