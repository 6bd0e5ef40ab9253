/* SPDX-License-Identifier: MIT
 *
 * x16_super.h - loops for super-blocks of 256 weights times q8_256 activations
 *
 *   weight = d * scale[s] * (q - bias) - dmin * min[s]       in sub-block s
 *
 * A super-block's products are integers; it is turned into floats once:
 *   dx * (d * sum_s scale[s] * dot(q - bias, x)_s - dmin * sum_s min[s] * sum(x)_s)
 * Each format argues in its own file why 32 bits hold these sums.
 *
 * The bias is taken off with the column's sums. Where a part is 32-bit sums
 * (V_DOT32) it starts from -bias * sum(x); else from zero, and scale[s] * sum(x)_s
 * is summed up beside it.
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_H
#define SLM_KERNELS_SIMD_X16_SUPER_H

#include "kernels/simd/vec.h"
#if V_AMX
#include "kernels/simd/x16_int8_amx.h"
#include "kernels/simd/x16_super_amx.h"
#else
#include "kernels/simd/x16_super_tile.h"
#endif

/* ---- a format's kernels ------------------------------------------------------------
 */

/* Columns that are multiplied at a time, of n_cols: eight where the level has registers
 * for them, and six of formats with 16 sub-blocks, whose parts are twice as many; if
 * they are not enough, or the format is not light, four. */
SIMD_INLINE size_t x16_super_group(const struct x16_super_format *f, size_t n_cols)
{
    const size_t most = f->n_subs == 8 ? 8 : 6;

    return V_FEW_COLS > 4 && f->light && n_cols <= most ? most : 4;
}

/* At most X16_FEW columns, straight from the blocks, in groups; for a second group
 * weights are read from a cache, interleaved panels after one another. Of n_cols only
 * 2, 4, 6 and 8 are compiled, as each is the whole super-block unrolled. */
SIMD_INLINE void x16_super_few_cols(const struct x16_super_format *f, size_t n_panels,
                                    size_t k, const uint8_t *w, size_t n_cols,
                                    const char *x, size_t x_stride, float *y,
                                    size_t y_stride, struct kern_prefetch prefetch)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_SUPER) * f->layout.block_bytes;
    const size_t group = x16_super_group(f, n_cols);
    const struct kern_prefetch again = {0, prefetch.hint, prefetch.n_panels};

    for (size_t p = 0, at_once; p < n_panels; p += at_once) {
        at_once = n_cols <= group ? n_panels : x16_interleaved(prefetch, n_panels - p);
        for (size_t c = 0; c < n_cols; c += group) {
            const size_t left = n_cols - c < group ? n_cols - c : group;

#define X16_FRAME(n)                                                                   \
    x16_super_few(f, n, true, at_once, k, w + p * panel_bytes, left, x + c * x_stride, \
                  x_stride, y + c * y_stride + p * X16_ROWS, y_stride,                 \
                  x16_prefetch_frame(n, c == 0 ? prefetch : again))
            if (V_FEW_COLS > 4 && f->light && f->n_subs == 8 && left > 6)
                X16_FRAME(8);
            else if (V_FEW_COLS > 4 && f->light && left > 4)
                X16_FRAME(6);
            else if (left > 2)
                X16_FRAME(4);
            else
                X16_FRAME(2);
#undef X16_FRAME
        }
    }
}

/* How many columns go straight through the blocks. */
SIMD_INLINE size_t x16_super_few_max(const struct x16_super_format *f)
{
    return f->light ? X16_FEW : 4;
}

/* Defines pack, unpack, gemv_x16, gemm_x16, gemv and gemm of a format for this level,
 * and where there are such gemm_int8 and gemm_x16_int8; for tiles, those of several
 * columns. */
#if V_AMX
#define X16_SUPER_KERNELS(name, format)                                            \
    AMX_KERNELS(name, gemm_x16, gemm, format, X16_SUPER, AMX_CHUNK, amx_usual_cut, \
                amx_super_sides, amx_super_panels)                                 \
    AMX_INT8_KERNELS(name, format, X16_SUPER, x16_super_int8, 16)
#else
/* rows_fn: one column times rows in file order. */
#define X16_SUPER_ROW_KERNELS(name, format, rows_fn)                                  \
    X16_KERNELS(name, format, X16_SUPER, x16_super_few, x16_super_few_max(&format),   \
                x16_super_few_cols, rows_fn, x16_super_columns, x16_super_tile_panel) \
    X16_INT8_KERNELS(name, format, X16_SUPER, x16_super_int8, 16)
#define X16_SUPER_KERNELS(name, format) \
    X16_SUPER_ROW_KERNELS(name, format, x16_super_rows)
#endif

#endif
