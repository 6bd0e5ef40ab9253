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

#include "kernels/simd/x16_super_tile.h"

/* ---- a format's kernels ------------------------------------------------------------
 */

/* At most X16_FEW columns, of formats that are not light four, straight from the
 * blocks: up to six at once where the level has registers for them, else by fours;
 * weights are read from a cache the second time. Of n_cols only 2, 4 and 6 are
 * compiled, as each is the whole super-block unrolled. */
SIMD_INLINE void x16_super_few_cols(const struct x16_super_format f, size_t n_panels,
                                    size_t k, const uint8_t *w, size_t n_cols,
                                    const char *x, size_t x_stride, float *y,
                                    size_t y_stride, struct kern_prefetch prefetch)
{
    const size_t panel_bytes = X16_ROWS * (k / X16_SUPER) * f.layout.block_bytes;
    const size_t group = V_FEW_COLS > 4 && n_cols <= 6 ? 6 : 4;
    const struct kern_prefetch again = {0, prefetch.hint, prefetch.n_panels};
    const size_t at_once = n_cols <= group ? n_panels : 1;

    for (size_t p = 0; p < n_panels; p += at_once)
        for (size_t c = 0; c < n_cols; c += group) {
            const size_t left = n_cols - c < group ? n_cols - c : group;

#define X16_FRAME(n)                                                                   \
    x16_super_few(f, n, true, at_once, k, w + p * panel_bytes, left, x + c * x_stride, \
                  x_stride, y + c * y_stride + p * X16_ROWS, y_stride,                 \
                  c == 0 ? prefetch : again)
            if (V_FEW_COLS > 4 && f.light && left > 4)
                X16_FRAME(6);
            else if (left > 2)
                X16_FRAME(4);
            else
                X16_FRAME(2);
#undef X16_FRAME
        }
}

/* How many columns go straight through the blocks. */
SIMD_INLINE size_t x16_super_few_max(const struct x16_super_format f)
{
    return f.light ? X16_FEW : 4;
}

/* Defines pack, unpack, gemv_x16, gemm_x16, gemv and gemm of a format for this level. */
#define X16_SUPER_KERNELS(name, format)                                            \
    X16_KERNELS(name, format, X16_SUPER, x16_super_few, x16_super_few_max(format), \
                x16_super_few_cols, x16_super_rows, x16_super_columns,             \
                x16_super_tile_panel)

#endif
