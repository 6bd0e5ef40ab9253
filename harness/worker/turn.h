/* SPDX-License-Identifier: MIT
 *
 * turn.h - a model that a worker holds open for a gate, and samples of several steps
 *
 * Model of the world: two workers (worker.h), each of a program of its own, have the
 * same model open, and are asked for samples alternately. Both may map the same model
 * file, whose pages are then in memory once.
 *
 *     -> {"open": {..}}                  struct turn_open
 *     <- {"phase": "load", "fraction": 0.25}
 *     <- {"ready": {..}}                 struct turn_ready
 *     -> {"take": [16, 1]}               samples of each step, 0 to leave one out
 *     <- {"s": [[0.012, ..], [0.08]], "noise": {..}, "peak_bytes": 12345}
 *
 * A gate starts its workers as `bench turn`, the name that programs of all versions
 * have for it. Both sides must mean the same by all this: "turn" in the greeting,
 * TURN_PROTOCOL, grows with any change that the other side has to know of.
 *
 * A step is what one metric is measured by. Its state is the same at the beginning of
 * every turn, and so are its tokens: a prefill starts from an empty cache, a decode
 * from a cache filled to its depth with seeded keys and values (where samples are long,
 * it goes on from there, turn by turn, until another step is taken or TURN_DECODE_SPAN
 * is over). A kernel is the best gemv of a format that the program has for this
 * machine, on a matrix in the cache.
 *
 * Threading: one thread on each side.
 */
#ifndef SLM_HARNESS_WORKER_TURN_H
#define SLM_HARNESS_WORKER_TURN_H

#include <stdbool.h>
#include <stdint.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "engine/weights/weights.h"
#include "harness/machine/noise.h"
#include "harness/machine/topology.h"
#include "harness/model/modelref.h"
#include "harness/worker/measured.h"
#include "kernels/kernels.h"

#define TURN_PROTOCOL    1
#define TURN_MAX_STEPS   16
#define TURN_MAX_SAMPLES 4096 /* of a step in one turn */
#define TURN_MAX_LOADS   9

/* Positions that decoding goes on for before it starts again from its depth. */
#define TURN_DECODE_SPAN 64

/* Samples as long as this one are taken singly, those of both sides interleaved, so that
 * a neighbour's burst, which lasts seconds, meets both; and without a token before
 * them that does not count, since waking the pool is nothing beside them. */
#define TURN_LONG_S (MEASURED_LONG_NS * 1e-9)

enum turn_kind { TURN_DECODE, TURN_PREFILL, TURN_KERNEL };

struct turn_step {
    enum turn_kind kind;
    int n_threads;
    int n; /* TURN_DECODE: depth; TURN_PREFILL: tokens of the prompt */
    enum kern_format format; /* TURN_KERNEL: of the weights */
};

struct turn_open {
    struct modelref model; /* text, path, mix and at_load */
    enum weights_residency residency;
    enum kern_kv kv_type;
    int n_batch;
    int cpus[TOPO_MAX_CPUS]; /* n_cpus of them, one for each thread; 0: unpinned */
    int n_cpus;
    uint64_t memory_bytes; /* what all of it may take; 0: this machine's */
    uint32_t isa_disabled;
    uint64_t seed;
    double slower; /* times are stretched so that this share of speed is lost: 0.05 */
    int n_loads;   /* open the model so often, as long as that is quick */
    struct turn_step step[TURN_MAX_STEPS];
    int n_steps;
};

struct turn_ready {
    double load_s[TURN_MAX_LOADS];
    int n_loads;
    char quant[24], isa[16], residency[16];
    uint64_t weight_bytes;
};

/* Both sides of "open" and "ready". Error: ST_USAGE (not as expected). */
json_t *turn_open_json(const struct turn_open *o);
enum status turn_open_from_json(struct turn_open *o, const json_t *object,
                                struct err *err);
json_t *turn_ready_json(const struct turn_ready *r);
enum status turn_ready_from_json(struct turn_ready *r, const json_t *object,
                                 struct err *err);

/* Calls of a kernel in one sample, and the bytes of weights they read. */
#define TURN_KERNEL_CALLS 32
double turn_kernel_bytes(enum kern_format format);

/* Threads to start, and positions of the cache. */
int turn_n_threads(const struct turn_open *o);
int turn_n_ctx(const struct turn_open *o);

/* ---- inside (turn_kernel.c) ------------------------------------------------------ */

struct kernel_fixture;
struct kernel_work;

/* The best gemv of a format, which has run once; *fixture is made when it is NULL, for
 * kernel_fixture_close(). Errors: ST_UNSUPPORTED (no such kernel), those of
 * kernel_work_open(). */
enum status turn_kernel_open(struct kernel_work **work, struct kernel_fixture **fixture,
                             const struct topology *topo, enum kern_format format,
                             struct err *err);

/* A sample's calls, as a measured_step has it. */
enum status turn_kernel_run(void *work, uint64_t *ns, struct err *err);

#endif
