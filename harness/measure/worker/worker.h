/* SPDX-License-Identifier: MIT
 *
 * worker.h - the process that measures, `bench worker`
 *
 * Model of the world: it reads requests from its standard input and writes to its
 * standard output, one JSON object per line; messages.h lists them. Between requests it
 * sleeps, so that of two such processes only one runs at a time. "open" and "take" are
 * answered here, the others by rooms above.
 *
 * Threading: the process's main thread.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_WORKER_H
#define SLM_HARNESS_MEASURE_WORKER_WORKER_H

#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/machine/noise.h"

/* One kind of request. */
struct worker_task {
    const char *name;
    enum status (*answer)(const json_t *request, struct err *err);
};

/* The process itself: returns its exit code. */
int worker_serve(const struct worker_task *tasks, size_t n);

/* ---- what it sends (worker_report.c) --------------------------------------------- */

/* Sends object, which it takes, as one line. */
void worker_send(json_t *object);

/* What has been reported of one measurement. Zeroed before. */
struct worker_reports {
    uint64_t phase_ns, samples_ns, noise_ns; /* time of the last report */
    struct noise noise_begin;
    double ms[2048]; /* samples that were not reported yet */
    size_t n_ms;
};

/* fraction of the phase that is done, 0 to 1. */
void worker_report_phase(struct worker_reports *r, const char *phase, double fraction);

/* The same at most ten times a second. */
void worker_report_progress(struct worker_reports *r, const char *phase,
                            double fraction);

/* Samples begin: noise is measured from here on. */
void worker_begin_samples(struct worker_reports *r);

/* A sample; it is sent with others, within 50 ms. */
void worker_report_sample(struct worker_reports *r, double ms);

/* The noise so far, at most every 2 s: a sign of progress within a long sample. */
void worker_heartbeat(struct worker_reports *r);

/* The noise of all samples, and the samples that were not sent yet. */
void worker_end_samples(struct worker_reports *r);

#endif
