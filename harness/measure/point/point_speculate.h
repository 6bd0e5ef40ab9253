/* SPDX-License-Identifier: MIT
 *
 * point_speculate.h - the worker's side of a point of kind speculate
 *
 * Threading: the worker's main thread only.
 */
#ifndef SLM_HARNESS_MEASURE_POINT_POINT_SPECULATE_H
#define SLM_HARNESS_MEASURE_POINT_POINT_SPECULATE_H

#include "harness/measure/point/point_worker_impl.h"

/* Reads the text, fills the context with its prompt and, where the text has no answer,
 * lets the model make one. Errors: of test_prompt_read() and slm_eval(). */
enum status point_speculate_open(struct point_worker *c, struct err *err);
void point_speculate_close(struct point_worker *c);

enum status point_speculate_warm(struct point_worker *c, struct err *err);

/* Over the text once; *ns: of speculative decoding. If the time is over within the
 * first run, *ns is extrapolated at the same speed. */
enum status point_speculate_run(struct point_worker *c, uint64_t *ns, struct err *err);

/* The columns spec_* of c->row, and c->facts. */
void point_speculate_conclude(struct point_worker *c);

#endif
