/* SPDX-License-Identifier: MIT
 *
 * point_measure.h - measure one point: in a fresh worker, inside a sandbox
 *
 * Model of the world: the parent decides and records, a worker (harness/measure/worker)
 * measures. The parent makes the sandbox, evicts the model file, starts the worker
 * inside the group, sends it the point, and reads one JSON object per line from it:
 * phases, samples as they are taken, and at the end the row. Whatever ends the worker -
 * the OOM killer, a timeout, no memory, an interrupt - the parent has a row that
 * reports it, and the samples measured until then.
 *
 * `bench decode` and `bench sweep` both measure through point_run().
 *
 * Threading: one point at a time.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_MEASURE_H
#define SLM_HARNESS_MEASURE_POINT_POINT_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/measure/worker/messages.h"
#include "harness/machine/topology.h"
#include "harness/rows/point/point.h"
#include "harness/measure/worker/point_profile.h"
#include "harness/rows/row.h"

/* Fewer samples than these are `partial` where the time budget ended the point:
 * too few for an interval of the median (decode), or for any spread (prefill). */
#define POINT_MIN_DECODE    6
#define POINT_MIN_PREFILL   2
#define POINT_MIN_SPECULATE 1 /* a run over the whole text has many parts */

struct point_samples {
    double *ms; /* per token, or per prefill pass; malloc'ed */
    size_t n;
    json_t *profile; /* a struct point_profile, where the settings want one */
};

void point_samples_free(struct point_samples *samples);

/* Called when the worker reports: phase ("load", "probe", "fill", "measure") and how
 * far it is within it. */
typedef void point_progress_fn(void *arg, const char *phase, double fraction);

/* Measure. *row is always filled, also on failure of the point itself (ST_OK, and
 * row->status has it); an error status is returned only when nothing could be tried:
 * no permission for cgroups, no model, interrupted before the worker
 * started. samples may be NULL; it is for point_samples_free(). */
enum status point_run(const struct point *p, const struct topology *topo,
                      struct row *row, struct point_samples *samples,
                      point_progress_fn *progress, void *arg, struct err *err);

/* Fill the columns that follow from samples and facts: n_samples, tok_per_s and
 * its interval, latencies, roof_tok_per_s, mbu, gops, validity and limiter.
 * noise may be NULL (the worker was killed before it reported any). */
void point_judge(struct row *row, const struct point_samples *samples,
                 const struct point_facts *facts, const struct noise *noise);

/* What limits the speed of a point, and the evidence: fills in the columns limiter and
 * limiter_why from the other columns and facts; both
 * stay empty where too little is known. */
void point_limit(struct row *row, const struct point_facts *facts);

/* ---- a point from the command line ----------------------------------------------- */

struct point_options {
    struct point point;
    bool json, all; /* how the row is printed; neither: what people need of it */
    bool help;      /* --help was printed: nothing to do */
};

/* Parse argv (argv[0] is the command's name). Errors: ST_USAGE, and those of
 * modelref_parse(). */
enum status point_options_parse(struct point_options *o, int argc, char **argv,
                                const struct topology *topo, struct err *err);

/* Prints a token's time by operation, as a table. row: the point's. */
void point_profile_print(FILE *f, const struct point_profile *p, const struct row *row);

#endif
