/* SPDX-License-Identifier: MIT
 *
 * worker_open.h - a model that a worker holds open for a gate, and samples of several
 * steps
 *
 * Model of the world: two workers (worker.h), each of a program of its own, have the
 * same model open, and send samples of "open" and "take" (messages.h) alternately. Both
 * may map the same model file, whose pages are then in memory once.
 *
 * A step is what one metric is measured by. Its state is the same at the beginning of
 * every request for samples (a gate's turn), and so are its tokens: a prefill starts
 * from an empty cache, a decode from a cache filled to its depth with seeded keys and
 * values. Where samples are long, a decode continues from one request to the next until
 * another step is taken or WORKER_DECODE_SPAN is over. A kernel is the best gemv of a
 * format that the program has for this machine, on a matrix in the cache.
 *
 * Threading: one thread on each side.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_WORKER_OPEN_H
#define SLM_HARNESS_MEASURE_WORKER_WORKER_OPEN_H

#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/machine/noise.h"
#include "harness/machine/topology.h"
#include "harness/rows/settings/model_setup.h"
#include "harness/measure/worker/measured.h"
#include "harness/measure/worker/messages.h"
#include "kernels/kernels.h"

#define WORKER_MAX_STEPS   16
#define WORKER_MAX_SAMPLES 4096 /* of a step in one request */
#define WORKER_MAX_LOADS   9

/* Positions that decoding continues for before it starts again from its depth. */
#define WORKER_DECODE_SPAN 64

/* Samples of this length or more are taken singly, those of both sides interleaved, so
 * that both meet a neighbour's burst, which lasts seconds. No uncounted token comes
 * before them: what waking the thread pool takes is small compared with them. */
#define WORKER_LONG_S (MEASURED_LONG_NS * 1e-9)

enum worker_step_kind { WORKER_DECODE, WORKER_PREFILL, WORKER_KERNEL };

struct worker_step {
    enum worker_step_kind kind;
    int n_threads;
    int n; /* WORKER_DECODE: depth; WORKER_PREFILL: tokens of the prompt */
    enum kern_format format; /* WORKER_KERNEL: the weights' format */
};

struct worker_open {
    const struct topology *topo; /* whose cache's size is sent, so that both sides have
                                    the same one; NULL: what each reads */
    struct model_setup setup;    /* threads: those of the steps */
    double slower; /* times are stretched so that this share of speed is lost: 0.05 */
    int n_loads;   /* most loads of the model, while they are quick */
    struct worker_step step[WORKER_MAX_STEPS];
    int n_steps;
};

struct worker_ready {
    double load_s[WORKER_MAX_LOADS];
    int n_loads;
    char quant[24], isa[16], residency[16];
    uint64_t weight_bytes;
};

/* Both sides of "open" and "ready". Error: ST_USAGE (not as expected). */
json_t *worker_open_json(const struct worker_open *o);
enum status worker_open_from_json(struct worker_open *o, const json_t *object,
                                  struct err *err);
json_t *worker_ready_json(const struct worker_ready *r);
enum status worker_ready_from_json(struct worker_ready *r, const json_t *object,
                                   struct err *err);

/* Calls of a kernel in one sample, and the bytes of weights they read. */
#define WORKER_KERNEL_CALLS 32
double worker_kernel_bytes(enum kern_format format);

/* Threads to start, and positions of the cache. */
int worker_n_threads(const struct worker_open *o);
int worker_n_ctx(const struct worker_open *o);

/* ---- inside (worker_kernel.c) ---------------------------------------------------- */

struct kernel_fixture;
struct kernel_work;

/* The best gemv of a format, which has run once; *fixture is made when it is NULL, for
 * kernel_fixture_close(). Errors: ST_UNSUPPORTED (no such kernel), those of
 * kernel_work_open(). */
enum status worker_kernel_open(struct kernel_work **work,
                               struct kernel_fixture **fixture,
                               const struct topology *topo, enum kern_format format,
                               struct err *err);

/* A sample's calls, as a measured_step has it. */
enum status worker_kernel_run(void *work, uint64_t *ns, struct err *err);

#endif
