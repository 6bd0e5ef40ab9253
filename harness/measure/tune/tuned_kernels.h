/* SPDX-License-Identifier: MIT
 *
 * tuned_kernels.h - what `bench tune --kernels` found for a CPU, as a file
 *
 * Model of the world: how weights in panels are read fastest depends on the CPU, its
 * memory and the weight format. The file has one entry per format; it is kept per CPU
 * model, instruction sets and topology in the cache directory, and `bench tune` of any
 * model starts from it. It may be edited, so every value is checked.
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNED_KERNELS_H
#define SLM_HARNESS_MEASURE_TUNE_TUNED_KERNELS_H

#include "engine/forward/tuning.h"
#include "harness/measure/kernels/kernel_tune.h"
#include "harness/machine/topology.h"

/* Where the file for this machine is kept: <cache directory>/tuned/kernels-<hash>.yaml.
 * Error: ST_USAGE (no cache directory is known). */
enum status tuned_kernels_path(char *out, size_t cap, const struct topology *topo,
                               struct err *err);

/* Through a temporary file; directories above path are made. Error: ST_IO. */
enum status tuned_kernels_save(const char *path, const struct topology *topo,
                               const struct kernel_choices *choices, struct err *err);

/* Levels, prefetch and panels of the formats in the file into *t; the others stay. note
 * (may be NULL): why a file for another machine was not taken, else "". Errors: ST_IO,
 * ST_INPUT (the file, the format and what is wrong), *t untouched. */
enum status tuned_kernels_load(struct slm_tuning *t, const char *path,
                               const struct topology *topo, char *note, size_t cap,
                               struct err *err);

/* The file of this machine, if there is one: as tuned_kernels_load(); none: *t stays.
 */
enum status tuned_kernels_start(struct slm_tuning *t, const struct topology *topo,
                                char *note, size_t cap, struct err *err);

#endif
