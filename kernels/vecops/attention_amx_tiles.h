/* SPDX-License-Identifier: MIT
 *
 * attention_amx_tiles.h - tiles of pairs of bf16 (AMX-BF16: Intel SDM vol. 1, 18; vol.
 * 2)
 *
 * A tile has 16 rows of 16 pairs, and pairs are summed over: sums[i][j] += row i of the
 * first factor times lane j of every row of the second. Register numbers are part of
 * the instructions, hence literals.
 */
#ifndef SLM_KERNELS_VECOPS_ATTENTION_AMX_TILES_H
#define SLM_KERNELS_VECOPS_ATTENTION_AMX_TILES_H

#include <immintrin.h>

#include "kernels/simd/amx.h"

enum {
    SIDE = 16,        /* rows of a tile, pairs of a row */
    PAIRS = 2 * SIDE, /* numbers of a row: a block of what is summed over */
    ROW_BYTES = 64,   /* of a tile */
    MAX_TILES = 4,    /* of the cache at a time */
};

/* The compiler does not know what loads of tiles read. */
SIMD_INLINE void tiles_are_written(void)
{
    __asm__ volatile("" ::: "memory");
}

/* The lanes of 16 that are among the first n, of those from `from` on. */
SIMD_INLINE __mmask16 first_lanes(size_t n, size_t from)
{
    const size_t left = n > from ? n - from : 0;

    return (__mmask16)(left < SIDE ? (1u << left) - 1 : 0xffff);
}

#endif
