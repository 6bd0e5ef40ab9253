/* SPDX-License-Identifier: MIT
 *
 * kernel_bed.h - the inside of a bed: cold weights, patterns, threads, roofs
 *
 * Not for other modules. Threading: as kernel_work.h.
 */
#ifndef SLM_HARNESS_KERNELBENCH_KERNEL_BED_H
#define SLM_HARNESS_KERNELBENCH_KERNEL_BED_H

#include "engine/base/team.h"
#include "harness/kernelbench/kernel_parts.h"
#include "harness/machine/probe.h"

/* Rows of KERNEL_COLS weights that are quantised; larger matrices repeat them. */
#define BED_PATTERN_ROWS 64

/* A team of the case's size, pinned as the bed says. */
enum status bed_team(struct team **team, const struct kernel_bed *bed, int n_threads,
                     struct err *err);

/* BED_PATTERN_ROWS rows of a format, kept; packed: in panels. NULL: no memory. */
const void *bed_pattern(struct kernel_bed *bed, enum kern_format format, bool packed);

/* The cold buffer, filled with a format's pattern; format KERN_N_FMT: with whatever it
 * holds, once it holds something. */
enum status bed_cold(struct kernel_bed *bed, enum kern_format format, bool packed,
                     const uint8_t **base, struct err *err);

/* Where the last case stopped reading the cold buffer, in bytes: the next goes on
 * there, so that it does not begin with what a cache still holds. */
size_t *bed_cold_at(struct kernel_bed *bed);

/* The fastest way to read the cold buffer with so many threads, found once. */
const struct probe_read_way *bed_read_way(struct kernel_bed *bed, struct team *team,
                                          const struct probe_buffer *buffer);

/* As parts_check_*(), once per row and number of columns; *weight_ns of a product. */
enum status bed_check(struct kernel_bed *bed, const struct kern_row *row, size_t n_x,
                      double *weight_ns, struct err *err);

#endif
