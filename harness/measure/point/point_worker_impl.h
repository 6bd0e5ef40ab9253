/* SPDX-License-Identifier: MIT
 *
 * point_worker_impl.h - the worker of a point from inside: point_worker.c
 * runs it, point_roof.c probes, point_speculate.c decodes texts, point_chunk.c reads a
 * prompt meanwhile, point_token.c has what a token took
 *
 * Threading: the worker's main thread only; a thread pool works inside its calls.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_WORKER_IMPL_H
#define SLM_HARNESS_MEASURE_POINT_POINT_WORKER_IMPL_H

#include <stdbool.h>

#include "engine/base/mem.h"
#include "engine/engine.h"
#include "harness/machine/energy.h"
#include "harness/machine/noise.h"
#include "harness/machine/probe.h"
#include "harness/model/memory_relief.h"
#include "harness/measure/point/point_measure.h"
#include "harness/measure/point/point_worker.h"
#include "harness/measure/worker/measured.h"
#include "harness/measure/worker/worker.h"

#define N_ROOF_PASSES 5   /* before the measurement, and again after it */
#define N_ROOF_BESIDE 200 /* at most, between samples */
#define N_ROOF_PLACES 8   /* of the weights, which passes read one after another */
#define N_PEAK_PASSES 3   /* before the measurement, and again after it */

struct point_worker {
    struct point own; /* changed where a profile is slower */
    const struct point *p;
    int cpu_list[TOPO_MAX_CPUS];
    const int *cpus; /* NULL: unpinned */
    struct topology topo;
    const json_t *cache; /* its cache as the asking side has it; NULL: as it is read */
    uint64_t room;       /* memory it may have, as the asking side has planned */
    struct slm *model;
    struct modelref ref;      /* its shape, too, where it is made in memory */
    struct measured measured; /* model is its */
    struct measured_step step;
    uint64_t image_bytes; /* of the file, or of the image in memory */
    bool fits;            /* all of the model stays in memory */
    struct memory_relief relief;
    struct row row; /* columns reported so far */
    struct point_facts facts;
    struct slm_stream stream_begin; /* of what is streamed, when samples begin */
    struct probe_buffer place[N_ROOF_PLACES];
    int n_places, n_place_reads;
    int n_reclaimed; /* times that memory had been given back when they were chosen */
    uint64_t stand_in_bytes; /* of the buffer that is read where the model pages, or
                                is another program's */
    uint64_t resident_ns;    /* when resident memory was last looked at */
    double roof_gbps[2 * N_ROOF_PASSES + N_ROOF_BESIDE];
    double roof_gops[2 * N_PEAK_PASSES + N_ROOF_BESIDE];
    int n_roof_gbps, n_roof_gops, n_beside;
    uint64_t beside_ns;   /* when the last of these ended */
    double beside_cost_s; /* what it took, with the token after it */
    size_t n_woken;       /* such tokens, and their time */
    double woken_ms;
    double int8_gops, f32_gops; /* where samples are profiled */
    size_t tile_tokens; /* of the model, as slm_tile_tokens(); 0: there was none yet */
    double *plain_ms; /* [2 n_tokens] malloc'ed: steps without a chunk, and room to sort
                         them */
    struct worker_reports reports;
    struct energy energy; /* of the samples */
    size_t n_samples;
    double sum_ms; /* of them */
    uint64_t measure_begin_ns;
    struct point_speculation *speculation; /* point_speculate.c's; or NULL */
};

/* What a sample reads and computes, into c->facts. Multiply-adds count the matrices
 * only: the embedding is looked up, not multiplied, the output matrix serves the last
 * position only, and of a layer's experts each token takes a few. */
void point_evaluate_facts(struct point_worker *c, const struct slm_info *info);

/* Passes of the roof and, where the point needs them, the peaks of arithmetic, into
 * c->row and c->facts. With the model's own threads while there is a model, as many
 * as are measured. weights: read the model's own, else a buffer of the same page
 * size. Errors: of thread_pool_start() and probe_buffer_open(). */
enum status point_probe_roof(struct point_worker *c, bool weights, struct err *err);

/* Whether it is time for a pass between two samples: since_s after the last one, which
 * took cost_s (0: there was none). Passes take a tenth of the time at most, and are so
 * many of a budget that N_ROOF_BESIDE of them suffice. */
bool point_beside_due(double since_s, double budget_s, double cost_s);

/* Between two samples, where it is due: one pass over another part of the weights, or
 * for prefill one of arithmetic, so that the roof is that of the time in which the
 * samples were taken. The pass leaves its bytes in the caches, so a token is decoded
 * after it that is no sample: the next sample finds them as any other does. After
 * point_probe_roof() with weights. */
void point_probe_beside(struct point_worker *c);

/* Tokens for which weights were streamed since samples began: of samples, and of the
 * steps between them. */
double point_tokens_read(const struct point_worker *c);

/* What was streamed for a token, and how, into c->row and c->facts; nothing of weights
 * that are not streamed. On a text some passes are plain and some speculative: there is
 * no figure of a token. */
void point_note_stream(struct point_worker *c);

/* The energy of samples by their tokens, into c->row: steps between samples are not in
 * it. Runs over a text are of two kinds, and so are steps with a chunk and without:
 * they have none. */
void point_note_energy(struct point_worker *c);

/* With a chunk: take a step without it before each sample from here on; keep its time;
 * and fill in the column. */
enum status point_chunk_begin(struct point_worker *c, struct err *err);
void point_chunk_sample(struct point_worker *c);
void point_chunk_end(struct point_worker *c);

#endif
