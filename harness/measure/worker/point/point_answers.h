/* SPDX-License-Identifier: MIT
 *
 * point_answers.h - a worker's answers to requests about a point
 *
 * Each takes a struct point_request as JSON (messages.h), gives up what the process
 * does not need for the point's files (worker.h), and sends its answer. Errors:
 * of opening the model, of the fence, of texts that do not fit the model, and whatever
 * stops the measurement.
 *
 * Threading: the worker's main thread.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_POINT_POINT_ANSWERS_H
#define SLM_HARNESS_MEASURE_WORKER_POINT_POINT_ANSWERS_H

#include <jansson.h>

#include "engine/base/status.h"

enum status point_need_answer(const json_t *request, struct err *err);
enum status point_roof_answer(const json_t *request, struct err *err);
enum status point_answer(const json_t *request, struct err *err);

#endif
