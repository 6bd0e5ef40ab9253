/* SPDX-License-Identifier: MIT
 *
 * tile_rule.h - whether products of many columns are made by tiles
 *
 * Model of the world: tiles (AMX-INT8) have the higher peak, and weights cost more to
 * unpack for them, so that they win with many columns, or, for some formats on some
 * CPUs, never. Both kernels multiply small panels with many columns when the first
 * model with a format is opened; the process keeps the answer. Tiles add sums in
 * another order, so results differ by that rounding, as between other levels. A number
 * of columns that depended on times could differ from run to run, and logits with it;
 * so it is fixed, and only whether tiles are taken at all is measured, far from a tie.
 *
 * Threading: any number of threads.
 */
#ifndef SLM_ENGINE_FORWARD_TILE_RULE_H
#define SLM_ENGINE_FORWARD_TILE_RULE_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h"

#define TILES_NEVER SIZE_MAX

#define TILE_COLUMNS 64 /* columns from which on tiles are taken */

/* TILE_COLUMNS or TILES_NEVER. Measures a format, about a millisecond, unless this
 * process has already done so with these ISA levels. TILES_NEVER also where isa_mask
 * has no kernel by tiles, and where there is no memory to measure. */
size_t tile_columns(enum kern_format fmt, uint32_t isa_mask);

#endif
