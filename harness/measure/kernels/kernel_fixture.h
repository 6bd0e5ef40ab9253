/* SPDX-License-Identifier: MIT
 *
 * kernel_fixture.h - the inside of a fixture: cold weights, patterns, threads, roofs
 *
 * Not for other modules. Threading: as kernel_work.h.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_FIXTURE_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_FIXTURE_H

#include "engine/base/thread_pool.h"
#include "harness/measure/kernels/kernel_parts.h"
#include "harness/machine/probe.h"

/* Rows of KERNEL_COLS weights that are quantised; larger matrices repeat them. */
#define FIXTURE_PATTERN_ROWS 64

/* A pool of the case's size, pinned as in the fixture. */
enum status fixture_pool(struct thread_pool **pool,
                         const struct kernel_fixture *fixture, int n_threads,
                         struct err *err);

/* FIXTURE_PATTERN_ROWS rows of a format, kept; packed: in panels. NULL: no memory. */
const void *fixture_pattern(struct kernel_fixture *fixture, enum kern_format format,
                            bool packed);

/* The cold buffer, filled with a format's pattern; format KERN_N_FMT: with any
 * pattern. */
enum status fixture_cold(struct kernel_fixture *fixture, enum kern_format format,
                         bool packed, const uint8_t **base, struct err *err);

/* As parts_check_*(), once per row and number of columns; *weight_ns of a product. */
enum status fixture_check(struct kernel_fixture *fixture, const struct kern_row *row,
                          size_t n_x, double *weight_ns, struct err *err);

#endif
