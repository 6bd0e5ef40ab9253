/* SPDX-License-Identifier: MIT
 *
 * point_worker.h - a point inside the fence: what the files of this room share
 *
 * point_worker.c runs a measurement, point_roof.c probes, point_speculate.c decodes
 * texts, point_chunk.c reads a prompt between samples, and point_columns.c alone fills
 * in the row. point_need.c and point_stand_in.c answer the other requests.
 *
 * Threading: the worker's main thread only; a thread pool works inside its calls.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_POINT_POINT_WORKER_H
#define SLM_HARNESS_MEASURE_WORKER_POINT_POINT_WORKER_H

#include <stdbool.h>

#include "engine/base/mem.h"
#include "engine/engine.h"
#include "engine/speculate/speculate.h"
#include "harness/machine/energy.h"
#include "harness/machine/noise.h"
#include "harness/machine/probe.h"
#include "harness/measure/worker/measured.h"
#include "harness/measure/worker/messages.h"
#include "harness/measure/worker/worker.h"
#include "harness/model/memory_relief.h"
#include "harness/model/test_prompt.h"
#include "harness/stats/stats.h"

#define N_ROOF_PASSES 5   /* before the measurement, and again after it */
#define N_ROOF_BESIDE 200 /* at most, between samples */
#define N_ROOF_PLACES 8   /* of the weights, which passes read one after another */
#define N_PEAK_PASSES 3   /* before the measurement, and again after it */

#define SPECULATE_MAX_PARTS 4096 /* stretches remembered for the interval */

struct point_worker {
    struct point own;
    const struct point *p;
    const int *cpus; /* NULL: unpinned */
    struct topology topo;
    const json_t *cache; /* its cache as the parent has it; NULL: as it is read */
    uint64_t room;       /* memory it may have, as the parent has planned */
    struct slm *model;
    struct measured measured; /* model is its */
    struct measured_step step;
    uint64_t image_bytes; /* of the file, or of the image in memory */
    bool fits;            /* all of the model stays in memory */
    struct memory_relief relief;
    struct row row; /* columns so far: point_columns.c's */
    struct point_facts facts;
    double load_s;
    uint64_t resident_bytes;        /* the most so far, of this process alone */
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
    struct stats roof, peak; /* of these */
    double vectors_gops;     /* 0: not probed */
    uint64_t beside_ns;      /* when the last of these ended */
    double beside_cost_s;    /* what it took, with the token after it */
    size_t n_woken;          /* such tokens, and their time */
    double woken_ms;
    bool profiles;              /* the measured samples have a profile */
    double int8_gops, f32_gops; /* where samples are profiled */
    enum probe_peak step_peak;  /* of the unit that multiplies a step, once the model */
    bool has_step_peak;         /* was open */
    double *plain_ms; /* [2 n_tokens] malloc'ed: steps without a chunk, and room to sort
                         them */
    double step_plain_ms; /* their median; 0: without them */
    struct worker_reports reports;
    struct energy energy; /* of the samples */
    size_t n_samples;
    double sum_ms; /* of them */
    uint64_t measure_begin_ns;
    struct point_speculation *speculation; /* NULL: none */
};

/* ---- point_worker.c -------------------------------------------------------------- */

/* A request, behind the fence that it needs: all four kinds begin with it. Where the
 * model has no file, its shape is read. */
enum status point_read_request(struct point_request *q, const json_t *request,
                               struct err *err);

/* Makes a worker of it. *c is for point_worker_close(). Errors: as above, ST_NO_MEMORY.
 */
enum status point_worker_open(struct point_worker **c, struct point_request *q,
                              const json_t *request, struct err *err);
void point_worker_close(struct point_worker *c);

/* Whether the measured samples have a profile: as requested, or those of several tokens
 * that are long even at the peak. After point_probe_roof(). */
bool point_profiles_samples(const struct point_worker *c);

/* ---- point_roof.c ---------------------------------------------------------------- */

/* Passes of the roof and, where the point needs them, the peaks of arithmetic, into *c.
 * With the model's own threads while there is a model, as many as are
 * measured. weights: read the model's own, else a buffer of the same page
 * size. Errors: those of thread_pool_start() and probe_buffer_open(). */
enum status point_probe_roof(struct point_worker *c, bool weights, struct err *err);

/* Whether it is time for a pass between two samples: since_s after the last one, which
 * took cost_s (0: no pass yet). Passes take a tenth of the time at most;
 * N_ROOF_BESIDE of them suffice in a budget. */
bool point_beside_due(double since_s, double budget_s, double cost_s);

/* Between two samples, where it is due: one pass over another part of the weights, or
 * for prefill one of arithmetic, so that the roof is that of the time in which the
 * samples were taken. The pass leaves its bytes in the caches, so a token is decoded
 * after it that is no sample: the next sample finds them as any other does. After
 * point_probe_roof() with weights. */
void point_probe_beside(struct point_worker *c);

/* ---- point_speculate.c: the kind speculate --------------------------------------- */

struct point_speculation {
    struct test_prompt prompt;
    struct sampler *sampler;
    const int32_t *answer; /* test prompt.ids + test prompt.n_prompt */
    int n_answer;
    int depth;                /* of the prompt */
    int first;                /* answer tokens in the cache before a run */
    int stretch;              /* tokens */
    struct stats_pair *parts; /* plain and speculative, ns; [SPECULATE_MAX_PARTS] */
    size_t n_parts;
    struct speculate_stats sum;
    double plain_ns, drafting_ns;
    uint64_t n_runs;
};

/* Reads the text, fills the context with its prompt and, where the text has no answer,
 * lets the model make one. Errors: those of test_prompt_read() and slm_eval(). */
enum status point_speculate_open(struct point_worker *c, struct err *err);
void point_speculate_close(struct point_worker *c);

enum status point_speculate_warm(struct point_worker *c, struct err *err);

/* Over the text once; *ns: time of speculative decoding. If the time is over within the
 * first run, *ns is extrapolated at the same speed. */
enum status point_speculate_run(struct point_worker *c, uint64_t *ns, struct err *err);

/* What a run read and computed, into c->facts. */
void point_speculate_conclude(struct point_worker *c);

/* ---- point_chunk.c --------------------------------------------------------------- */

/* With a chunk: take a step without it before each sample from here on; keep its time;
 * and fill in the column. */
enum status point_chunk_begin(struct point_worker *c, struct err *err);
void point_chunk_sample(struct point_worker *c);
void point_chunk_end(struct point_worker *c);

/* ---- point_columns.c: the worker's columns of the row ---------------------------- */

/* Facts of the model that is open, and of a file by its plan, into c->row. */
void point_note_model(struct point_worker *c);
void point_note_plan(struct point_worker *c, const struct slm_info *info);

/* Tokens for which weights were streamed since samples began: those of samples and of
 * the steps between them. */
double point_tokens_read(const struct point_worker *c);

/* What was streamed for a token, and how, into c->row and c->facts; nothing of weights
 * that are not streamed. On a text some passes are plain and some speculative: there is
 * no figure of a token. */
void point_note_stream(struct point_worker *c);

/* The energy of samples by their tokens, into c->row: steps between samples are not in
 * it. Runs over a text are of two kinds, and so are steps with a chunk and without:
 * they have none. */
void point_note_energy(struct point_worker *c);

/* Names a unit in the row's unused_units, once, before the others. */
void point_note_unused(struct row *row, const char *unit);

/* Sends the columns and the facts so far. */
void point_report(struct point_worker *c);

/* ---- sizes (point_sizes.c, point_chunk.c) ---------------------------------------- */

/* Size of the buffer that stands in for weights that do not fit, or are another
 * program's: what one pass of its threads reads, but neither more than an eighth of
 * the limit (what the point may use without KV cache and scratch memory; 0: any) nor
 * than the weights, and 16 MiB at least. 0: those are more than half of the limit, and
 * nothing is probed. The model fills its limit, so that a buffer of half of it is never
 * the peak of the point. */
uint64_t point_probe_bytes(int n_threads, uint64_t mem_limit, uint64_t weight_bytes);

/* How the engine opens the point's model within its room, as plan and measurement have
 * it: context, logits, positions that it is cut back by without tokens running again,
 * and its layer that guesses. */
struct slm_params point_params(const struct point *p, uint64_t room);

/* The sequences, their room, and logits of a token of each. */
void point_set_sequences(const struct point *p, struct slm_params *params);

/* Tokens of the prompt that is read in chunks, a multiple of the chunk; 0: no prompt.
 */
int point_chunk_prompt(const struct point *p);

/* What a sample of a decode point reads of weights and KV cache, and its operations,
 * two per multiply-add of a matrix. With a chunk: means over a prompt. */
double point_step_bytes(const struct point *p, const struct slm_info *info);
double point_step_ops(const struct point *p, const struct slm_info *info);

/* What a sample reads and computes, into c->facts. Multiply-adds count the matrices
 * only: the embedding is looked up, not multiplied, the output matrix serves the last
 * position only, and of a layer's experts each token takes a few. */
void point_evaluate_facts(struct point_worker *c, const struct slm_info *info);

/* ---- the worker's answers -------------------------------------------------------- */

/* Each takes a struct point_request as JSON (messages.h), gives up what the process
 * does not need for the point's files (worker.h), and sends its answer. Errors:
 * of opening the model, of the fence, of texts that do not fit the model, and whatever
 * stops the measurement. */
enum status point_need_answer(const json_t *request, struct err *err);
enum status point_roof_answer(const json_t *request, struct err *err);
enum status point_answer(const json_t *request, struct err *err);

#endif
