/* SPDX-License-Identifier: MIT
 *
 * shares_measure.h - makes configs/shares.yaml, by which `bench predict` expects other
 * machines' speeds, from measured sweeps
 *
 * Threading: one thread.
 */
#ifndef SLM_RESEARCH_SHARES_MEASURE_H
#define SLM_RESEARCH_SHARES_MEASURE_H

#include <stdio.h>

#include "harness/decide/predict/shares.h"

/* Shares of the undisturbed rows at the paths, and of kernels.csv next to them in
 * directories. Kernels of a lower ISA level than the engine takes on their machine are
 * left out, with a line for each in notes (NULL: none). Errors: those of
 * result_set_open(), ST_INPUT (a machine is not known, or nothing is of use),
 * ST_NO_MEMORY. */
enum status shares_measure(struct shares *s, const char *const *paths, size_t n,
                           FILE *notes, struct err *err);

/* As a file that shares_load() reads. */
void shares_print(FILE *f, const struct shares *s);

#endif
