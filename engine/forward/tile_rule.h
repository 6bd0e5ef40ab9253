/* SPDX-License-Identifier: MIT
 *
 * tile_rule.h - from how many columns on products are made by tiles
 *
 * Model of the world: tiles (AMX-INT8) have the higher peak, and weights cost more to
 * unpack for them, so that they win with many columns, or, for some formats on some
 * CPUs, never. Both kernels multiply small panels with a few numbers of columns when
 * the first model with a format is opened; the process keeps the answer. Sums are added
 * in another order by tiles: results differ by that rounding, as between other levels.
 *
 * Threading: any number of threads.
 */
#ifndef SLM_ENGINE_FORWARD_TILE_RULE_H
#define SLM_ENGINE_FORWARD_TILE_RULE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define TILES_NEVER SIZE_MAX

/* Numbers of columns that are measured, ascending. */
enum { TILE_N_SIZES = 5 };
extern const size_t tile_sizes[TILE_N_SIZES];

/* The least of tile_sizes from which on, for it and all larger ones, tiles took less
 * time than vectors by a margin; TILES_NEVER: not even for the largest. Times in any
 * unit. */
size_t tile_choose(const double vectors[TILE_N_SIZES],
                   const double tiles[TILE_N_SIZES]);

/* Measures a format, a few milliseconds, unless this process has already done so with
 * these ISA levels. TILES_NEVER also where isa_mask has no kernel by tiles, and where
 * there is no memory to measure. */
size_t tile_columns(enum kern_format fmt, uint32_t isa_mask);

#endif
