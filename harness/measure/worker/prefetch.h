/* SPDX-License-Identifier: MIT
 *
 * prefetch.h - how an open model reads its weights, as the column `prefetch` has it
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_WORKER_PREFETCH_H
#define SLM_HARNESS_MEASURE_WORKER_PREFETCH_H

#include "engine/engine.h"

/* Hint, distance in bytes (or "off") and interleaved panels of each format for which
 * they matter: "q4_K T0 4096 x4; q6_K off x1", without a comma as it goes into a CSV
 * that people cut at commas; "" where there is no such format. */
const char *prefetch_of_model(const struct slm *m, char *buf, size_t cap);

#endif
