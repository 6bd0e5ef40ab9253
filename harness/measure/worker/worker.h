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
#include <stdbool.h>

#include "engine/base/status.h"
#include "harness/machine/noise.h"
#include "harness/machine/fence/fence.h"
#include "harness/model/modelref.h"
#include "engine/engine.h"

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

/* ---- it gives up what a model's files could abuse, before it opens them ---------- */

/* From now on this process reads the model, the file `text` (may be NULL), what comes
 * with the program, and nothing else (fence.h). The first model is the only one: later
 * calls do nothing. Errors: fence_enter()'s, modelref_files()'s. */
enum status worker_fence(const struct modelref *model, const char *text,
                         struct err *err);

/* The fence of a process that accepts connections of a socket that listens. It reads
 * the model, a draft model and the file `text` (either may be NULL). */
enum status worker_fence_server(const struct modelref *model,
                                const struct modelref *draft, const char *text,
                                int listener, struct err *err);

/* ---- an open model, and memory --------------------------------------------------- */

/* Hint, distance in bytes (or "off") and interleaved panels of each format for which
 * they matter: "q4_K T0 4096 x4; q6_K off x1", without a comma as it goes into a CSV
 * that people cut at commas; "" where there is no such format. */
const char *prefetch_of_model(const struct slm *m, char *buf, size_t cap);

/* Memory of this process that must stay resident: anonymous pages (huge ones included)
 * and page tables, which cannot be dropped and read again; what was swapped out is
 * counted, too. By /proc/self/status below root ("": this machine). Shared memory is
 * left out: a file in memory is mapped as that. Some kernels are off by a few dozen
 * pages for each CPU. False: the kernel does not report it (before Linux 4.5). */
bool resident_read(const char *root, uint64_t *bytes);

#endif
