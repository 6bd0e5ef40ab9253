/* SPDX-License-Identifier: MIT
 *
 * x16_block.h - loops for blocks of 32 weights times q8_32 activations
 *
 *   weight = d * (q - bias) + m          d, m: floats of the block
 *
 * or, with a scale for each half of it, d * (q - bias) and m * (q - bias). Formats
 * whose blocks are larger have them in parts of 32 (`parts`).
 *
 * A block's products are integers: dot(q - bias, x) = dot(q, x) - bias * sum(x) is
 * exact, then  acc += d * (dx * dot) + m * (dx * sum(x)). Where a part is 32-bit sums
 * (V_DOT32) it starts from -bias * sum(x), else that is added at its end.
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_H
#define SLM_KERNELS_SIMD_X16_BLOCK_H

#include "kernels/simd/vec.h"
#if V_AMX
#include "kernels/simd/x16_block_amx.h"
#include "kernels/simd/x16_int8_amx.h"
#else
#include "kernels/simd/x16_block_tile.h"
#endif

/* ---- a format's kernels ------------------------------------------------------------
 */

/* frame(n), a macro, with the least n of at least n_cols <= X16_FEW that is compiled:
 * 1, 2, 3, 4, 6 or 8, as far as V_FEW_COLS. */
#define X16_BLOCK_FRAME(n_cols, frame)            \
    do {                                          \
        if (V_FEW_COLS > 4 && (n_cols) > 6)       \
            frame(8);                             \
        else if (V_FEW_COLS > 4 && (n_cols) > 4)  \
            frame(6);                             \
        else if (V_FEW_COLS > 1 && (n_cols) == 4) \
            frame(4);                             \
        else if (V_FEW_COLS > 1 && (n_cols) == 3) \
            frame(3);                             \
        else if (V_FEW_COLS > 1 && (n_cols) == 2) \
            frame(2);                             \
        else                                      \
            frame(1);                             \
    } while (0)

/* At most X16_FEW columns, as many at a time as the level has registers for; the second
 * time weights are read from a cache, interleaved panels after one another. */
SIMD_INLINE void x16_block_few_cols(const struct x16_block_format *f, size_t n_panels,
                                    size_t k, const uint8_t *w, size_t n_cols,
                                    const char *x, size_t x_stride, float *y,
                                    size_t y_stride, struct kern_prefetch prefetch)
{
    const size_t panel_bytes =
        X16_ROWS * (k / x16_block_elems(f)) * f->layout.block_bytes;
    const struct kern_prefetch again = {0, prefetch.hint, prefetch.n_panels};

    for (size_t p = 0, at_once; p < n_panels; p += at_once) {
        at_once =
            n_cols <= V_FEW_COLS ? n_panels : x16_interleaved(prefetch, n_panels - p);
        for (size_t c = 0; c < n_cols; c += V_FEW_COLS) {
            const size_t left = n_cols - c < V_FEW_COLS ? n_cols - c : V_FEW_COLS;

#define X16_FRAME(n)                                                                   \
    x16_block_few(f, n, true, at_once, k, w + p * panel_bytes, left, x + c * x_stride, \
                  x_stride, y + c * y_stride + p * X16_ROWS, y_stride,                 \
                  x16_prefetch_frame(n, c == 0 ? prefetch : again))
            X16_BLOCK_FRAME(left, X16_FRAME);
#undef X16_FRAME
        }
    }
}

/* Defines pack, unpack, gemv_x16, gemm_x16, gemv and gemm of a format for this level,
 * and where there are such gemm_int8 and gemm_x16_int8; for tiles, those of several
 * columns. */
#if V_AMX
#define X16_BLOCK_KERNELS(name, format)                                       \
    AMX_KERNELS(name, gemm_x16, gemm, format, x16_block_elems(&format),       \
                (size_t)(X16_BLOCK / x16_block_sums(&format)), amx_block_cut, \
                amx_block_sides, amx_block_panels)                            \
    AMX_INT8_KERNELS(name, format, x16_block_elems(&format), x16_block_int8, 32)
#else
#define X16_BLOCK_KERNELS(name, format)                                         \
    X16_KERNELS(name, format, x16_block_elems(&format), x16_block_few, X16_FEW, \
                x16_block_few_cols, x16_block_rows, x16_block_prepare,          \
                x16_block_tile_panel)                                           \
    X16_INT8_KERNELS(name, format, x16_block_elems(&format), x16_block_int8, 32)
#endif

#endif
