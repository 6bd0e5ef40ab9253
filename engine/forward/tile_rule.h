/* SPDX-License-Identifier: MIT
 *
 * tile_rule.h - from how many columns on products are made by tiles
 *
 * Model of the world: tiles (AMX-INT8) have the higher peak, and weights cost more to
 * unpack for them, so that they are faster from some number of columns on, or, for some
 * formats on some CPUs, never. Both kernels multiply small panels with a few numbers of
 * columns when the first model with a format is opened; the process keeps the answer.
 *
 * For blocks of 32 weights, and with int8 sums, both give the same results bit for bit.
 * For super-blocks they round sums in another order, as other levels do, so that a
 * step's logits change where the number changes from one process to the next. So what
 * is presumed stays unless the other is faster by a margin.
 *
 * Threading: any number of threads.
 */
#ifndef SLM_ENGINE_FORWARD_TILE_RULE_H
#define SLM_ENGINE_FORWARD_TILE_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/forward/sums.h"
#include "kernels/kernels.h"

#define TILES_NEVER SIZE_MAX

/* The share of the time by which the one that is not presumed must be faster. */
#define TILE_MARGIN 0.1

/* Numbers of columns that are measured, ascending; those from number TILE_LATE on only
 * where tiles do not win with fewer. */
enum { TILE_N_SIZES = 9, TILE_LATE = 6, TILE_MAX_ROUNDS = 9 };
extern const size_t tile_sizes[TILE_N_SIZES];

/* Times of a product, in any unit, > 0. */
struct tile_times {
    double vectors, tiles;
};

/* The least of tile_sizes of number first .. end-1, so that for it and the larger ones
 * of these tiles are to be taken, by the medians of their time in proportion to that of
 * vectors in the same round; TILES_NEVER: not even for the largest. presumed: the
 * number in force before. 1 <= n_rounds <= TILE_MAX_ROUNDS. */
size_t tile_choose(size_t presumed, int first, int end, size_t n_rounds,
                   const struct tile_times times[][TILE_N_SIZES]);

/* As tile_choose() by the times of these kernels of a format, with columns in the
 * layout act: with sizes from `first` to TILE_LATE, then, where `late` and tiles do not
 * win, with the others, where they must win by the margin. presumed where there is no
 * memory to measure. */
size_t tile_measure(enum kern_format fmt, enum kern_act act, kern_gemm_x16_fn *vectors,
                    kern_gemm_x16_fn *tiles, size_t presumed, int first, bool late);

/* The columns from which on products of the format are made by tiles; with int8 sums
 * SUMS_INT8_COLUMNS or none. Measures it, about a millisecond, some more where tiles do
 * not win by 64 columns, unless this process has already done so with these ISA levels.
 * Presumed are 64 columns for super-blocks and int8 sums, else TILES_NEVER. Where
 * isa_mask has no kernel by tiles nothing is measured, and this is TILES_NEVER. */
size_t tile_columns(enum kern_format fmt, enum slm_sums sums, uint32_t isa_mask);

#endif
