/* SPDX-License-Identifier: MIT
 *
 * model_worker.h - the client side of worker_open.h: the worker of one of a gate's
 * programs
 *
 * An error is one sentence that names the program, its version and its last output.
 *
 * Threading: one thread per client, and it is the one that started it.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_MODEL_WORKER_H
#define SLM_HARNESS_MEASURE_WORKER_MODEL_WORKER_H

#include "harness/measure/worker/worker_open.h"
#include "harness/measure/worker/worker_client.h"

struct model_worker {
    struct worker_client worker;
    struct worker_ready ready;
    uint64_t peak_bytes; /* after its last samples */
};

struct model_worker_params {
    const char *who, *program;
    double timeout_s;
    struct sandbox *sandbox;                                    /* may be NULL */
    void (*tick)(void *arg, const char *what, double fraction); /* may be NULL */
    void *arg;
};

/* Is there such a program? Error: ST_USAGE. */
enum status worker_check_program(const char *who, const char *program, struct err *err);

/* Starts the program and lets it open the model. *c is for model_worker_close()
 * afterwards in any case. Errors: ST_USAGE (no such program, or one that has no
 * such worker), ST_IO (it died, or is silent), ST_INTERRUPTED, those of the program
 * itself, and of sandbox_add(). */
enum status model_worker_start(struct model_worker *c,
                               const struct model_worker_params *p,
                               const struct worker_open *open, struct err *err);

/* The lower quartile of n times, 0 if n is 0; v is sorted. A machine's
 * disturbances only add time, so the shorter samples are those of the program alone
 * (Chen and Revels 2016, arXiv 1608.04295). A change that makes fewer than three
 * quarters of the samples longer is not detected. */
double worker_quartile(double *v, size_t n);

/* n[i] samples of each of n_steps steps; seconds[i] becomes their worker_quartile().
 * Errors: as above. */
enum status model_worker_sample(struct model_worker *c, const int *n, int n_steps,
                                double *seconds, struct noise *noise, struct err *err);

/* Ends it. */
void model_worker_close(struct model_worker *c);

#endif
