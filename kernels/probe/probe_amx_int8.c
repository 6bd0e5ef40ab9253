/* SPDX-License-Identifier: MIT
 *
 * probe_amx_int8.c - the compute ceiling of tiles: products of four pairs of them, all
 * in registers
 */
#include "kernels/probe/probe.h"
#include "kernels/simd/amx.h"

enum { ROWS = 16, ROW_BYTES = 64, SUMS = 4 };

uint64_t KERN_LEVEL_NAME(peak_int8)(uint64_t n_iters, uint64_t *sink)
{
    uint8_t bytes[ROWS][ROW_BYTES] __attribute__((aligned(64)));
    uint32_t sums[ROWS][16] __attribute__((aligned(64)));

    memset(bytes, 3, sizeof bytes);
    amx_begin(ROWS, ROW_BYTES);
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    AMX_LOAD(4, bytes, ROW_BYTES);
    AMX_LOAD(5, bytes, ROW_BYTES);
    AMX_LOAD(6, bytes, ROW_BYTES);
    AMX_LOAD(7, bytes, ROW_BYTES);
    for (uint64_t it = 0; it < n_iters; it++) {
        AMX_DOT_S(0, 4, 6);
        AMX_DOT_S(1, 4, 7);
        AMX_DOT_S(2, 5, 6);
        AMX_DOT_S(3, 5, 7);
    }
    *sink = 0;
    AMX_STORE(0, sums);
    *sink += sums[0][0];
    AMX_STORE(1, sums);
    *sink += sums[0][0];
    AMX_STORE(2, sums);
    *sink += sums[0][0];
    AMX_STORE(3, sums);
    *sink += sums[0][0];
    amx_end();
    return n_iters * SUMS * ROWS * 16 * ROW_BYTES * 2;
}
