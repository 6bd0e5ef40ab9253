/* SPDX-License-Identifier: MIT
 *
 * point_worker.h - a point as a request to a worker, and what both sides agree on
 *
 * The request is {"point": SETTINGS} as point_json() has them, with "room", "cache":
 * its size on this machine (topology_cache_json()), and "ways": how other workers of
 * the session read memory (probe_ways_json()). Beside phases, samples and noise
 * (worker.h) the worker sends, each in a line of its own:
 *     {"row": {...}}                         columns that are known
 *     {"facts": {...}}                       struct point_facts
 *     {"profile": {...}}                     struct point_profile of the samples
 * and its answer, once everything was reported, is {"done": true, "ways": {..}}.
 *
 * Threading: the worker's main thread writes, the parent reads.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_WORKER_H
#define SLM_HARNESS_MEASURE_POINT_POINT_WORKER_H

#include <stdint.h>
#include <jansson.h>

#include "harness/machine/topology.h"
#include "harness/measure/point/point_measure.h"

/* The worker's side: measures, and reports. Errors: whatever stopped it. */
enum status point_answer(const json_t *settings, struct err *err);

/* {"roof": {"point": SETTINGS, "room": BYTES, "ways": {..}, "gbps": [..], "gops":
 * [..]}}: the ceilings of a point that another program measures, probed over a buffer,
 * and its facts; with the passes of earlier requests, which the answer has with those
 * of this one beside "done" (point_stand_in.c). Errors: of opening the model, of the
 * threads.
 */
enum status point_roof_answer(const json_t *request, struct err *err);

/* The process gives up what it does not need for the point's files (worker_fence.h).
 * Errors: worker_fence()'s, test_prompt_find()'s. */
enum status point_fence(const struct point *p, struct err *err);

/* Both sides of "facts". Missing keys leave a field as it is. */
json_t *point_facts_json(const struct point_facts *facts);
void point_facts_from_json(struct point_facts *facts, const json_t *object);

/* Size of the buffer that stands in for weights that do not fit, or are another
 * program's: what one pass of its threads reads, but neither more than an eighth of
 * the limit (what the point may use beside KV cache and scratch memory; 0: any) nor
 * than the weights, and 16 MiB at least. 0: those are more than half of the limit, and
 * nothing is probed. The model fills its limit, so that a buffer of half of it is never
 * the peak of the point. */
uint64_t point_probe_bytes(int n_threads, uint64_t mem_limit, uint64_t weight_bytes);

/* Memory that the engine may use of the point's room: of streamed weights it decides
 * how many layers are streamed, so it is what the plan has counted with. */
uint64_t point_memory(const struct point *p, uint64_t room);

/* Tokens whose logits a pass may ask for. */
int point_n_logits(const struct point *p);

/* Positions of the KV cache that the point opens its model with. */
int point_n_ctx(const struct point *p);

/* Tokens of the prompt that is read in chunks, a multiple of them; 0: there is none. */
int point_chunk_prompt(const struct point *p);

/* Threads of a sample: of prefill where it has a chunk. */
int point_step_threads(const struct point *p);

/* What a sample of a decode point reads of weights and KV cache, and its operations,
 * two per multiply-add of a matrix. With a chunk: means over a prompt. */
double point_step_bytes(const struct point *p, const struct slm_info *info);
double point_step_ops(const struct point *p, const struct slm_info *info);

/* The sequences, their room, and logits of a token of each. */
void point_set_sequences(const struct point *p, struct slm_params *params);

/* Positions that it is cut back by without tokens running again. */
int point_n_back(const struct point *p);

#endif
