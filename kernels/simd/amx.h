/* SPDX-License-Identifier: MIT
 *
 * amx.h - tiles: the operations of AMX-INT8 (Intel SDM vol. 1, 18; vol. 2)
 *
 * Eight registers of at most 16 rows of 64 bytes. One instruction multiplies a tile of
 * bytes A [m][k] with a tile B [k / 4][n][4] and adds to a tile of 32-bit sums C
 * [m][n]: four bytes of a row of A with four bytes of a dword of B. Here a row of A is
 * a column of activations, and a dword lane of B is a row of weights: a line of 16
 * interleaved rows (x16.h) is a line of B.
 *
 *   tiles 0..3   C [m][16]
 *   tiles 4, 5   A [m][k]
 *   tiles 6, 7   B [k / 4][16][4]
 *
 * What tiles there are is configured where a kernel begins and given up where it ends:
 * the state would widen every switch between threads, and keep cores from deep sleep.
 * Tile numbers are part of the instructions, so they are literals.
 */
#ifndef SLM_KERNELS_SIMD_AMX_H
#define SLM_KERNELS_SIMD_AMX_H

#include <immintrin.h>

#include "kernels/simd/simd.h"

/* m rows of A and C, k bytes of a row of A. */
SIMD_INLINE void amx_begin(size_t m, size_t k)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};

    for (int i = 0; i < 8; i++) {
        config.rows[i] = (uint8_t)(i < 6 ? m : k / 4);
        config.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? k : 64);
    }
    __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

SIMD_INLINE void amx_end(void)
{
    __asm__ volatile("tilerelease");
}

/* GCC's intrinsics do not say that they read memory, so that it may drop the stores of
 * what is loaded. */
#define AMX_ZERO(c) __asm__ volatile("tilezero %%tmm" #c : :)
/* rows `stride` bytes apart */
#define AMX_LOAD(tile, p, stride)                       \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile \
                     :                                  \
                     : "r"(p), "r"((size_t)(stride))    \
                     : "memory")
/* A tile of fewer than 16 rows writes those: what is added up of the others is of
 * columns that amx_store() leaves out, and integers cannot trap. */
#define AMX_STORE(tile, p)                                  \
    __asm__ volatile("tilestored %%tmm" #tile ", (%1,%2,1)" \
                     : "=m"(*(char(*)[1024])(p))            \
                     : "r"(p), "r"((size_t)64))
/* C += A times B: signed bytes with signed, with unsigned ones */
#define AMX_DOT_S(c, a, b) \
    __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define AMX_DOT_U(c, a, b) \
    __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)

#endif
