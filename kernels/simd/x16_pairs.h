/* SPDX-License-Identifier: MIT
 *
 * x16_pairs.h - unpacked tiles, and how they are laid out where V_PAIRS is 1
 *
 * SMMLA multiplies two rows of 8 bytes with two columns of 8 bytes and adds to 2 x 2
 * sums: twice the products of an instruction that broadcasts. A tile's vectors come
 * from the format with four weights of sixteen rows each. Where V_PAIRS is 1, two of
 * them become eight weights of rows 0..7 and of rows 8..15, in each quarter a pair of
 * rows:
 *
 *   quarter   | row 2i: weights 8j .. 8j + 7 | row 2i + 1: weights 8j .. 8j + 7 |
 *
 * Eight rows, a *half*, times two columns are then one vector of sums, with in each
 * quarter a pair of rows:
 *
 *   | row 2i, col. 0 | row 2i, col. 1 | row 2i + 1, col. 0 | row 2i + 1, col. 1 |
 *
 * They stay so until the columns' floats are complete; scales of rows are kept in the
 * tile twice each, to stand beside them.
 */
#ifndef SLM_KERNELS_SIMD_X16_PAIRS_H
#define SLM_KERNELS_SIMD_X16_PAIRS_H

#include "kernels/simd/x16.h"

enum { X16_HALVES = 1 + V_PAIRS };

/* Sums of n_cols columns, with those of columns that are done again. */
#define X16_TILE_SUMS(n_cols) \
    (V_PAIRS ? ((n_cols) + V_TILE_COLS - 1) / V_TILE_COLS * V_TILE_COLS : (n_cols))

/* frame(n), a macro, for all columns in groups of V_TILE_COLS, c each time the first,
 * and for those that are left: of five to eight three or four first, as each n is
 * compiled apart. */
#define X16_TILE_GROUPS(n_cols, c, frame)                                      \
    while ((c) < (n_cols)) {                                                   \
        const size_t left = (n_cols) - (c);                                    \
                                                                               \
        if (left >= V_TILE_COLS && (V_TILE_COLS % 4 == 0 || left != 8)) {      \
            frame(V_TILE_COLS);                                                \
            (c) += V_TILE_COLS;                                                \
        } else if (V_TILE_COLS > 4 && (left == 4 || left == 7 || left == 8)) { \
            frame(4);                                                          \
            (c) += 4;                                                          \
        } else if (left >= 3) {                                                \
            frame(3);                                                          \
            (c) += 3;                                                          \
        } else if (left == 2) {                                                \
            frame(2);                                                          \
            (c) += 2;                                                          \
        } else {                                                               \
            frame(1);                                                          \
            (c) += 1;                                                          \
        }                                                                      \
    }

/* Keeps weights in a tile. Fours come in ascending order within a sub-block, which has
 * an even number of them. */
SIMD_INLINE void x16_tile_put(vi *tile, int four, vi w)
{
    tile[four] = w;
#if V_PAIRS
    if (four % 2 != 0)
        v_pair_rows(&tile[four - 1], &tile[four]);
#endif
}

/* Floats of rows as they are used beside the sums, out[half]. */
SIMD_INLINE void x16_tile_floats(vf rows, vf *out)
{
#if V_PAIRS
    out[0] = v_pair_row_floats(rows, 0);
    out[1] = v_pair_row_floats(rows, 1);
#else
    out[0] = rows;
#endif
}

#if V_PAIRS
/* The columns of a tile's group, c of n_cols on: as many as V_TILE_COLS, or two where
 * two are left. Missing ones are the last again. Returns how many. */
SIMD_INLINE int x16_pair_group(const struct x16_column *columns, size_t c,
                               size_t n_cols, const struct x16_column **at)
{
    for (size_t i = 0; i < V_TILE_COLS; i++)
        at[i] = columns + (c + i < n_cols ? c + i : n_cols - 1);
    return n_cols - c > 2 ? V_TILE_COLS : 2;
}

/* part[p] += n fours of a half's weights times columns 2p and 2p + 1; w: the tile's
 * first vector of these fours, q[c]: column c's quants for them. */
SIMD_INLINE void x16_pair_dots(vi *part, const vi *w, int half, const int fours,
                               const int n_cols, const int8_t *const *q, int at)
{
    SIMD_UNROLL
    for (int t = 0; t < fours; t += 4) {
        int8x16_t xs[V_TILE_COLS / 2][2];

        SIMD_UNROLL
        for (int p = 0; p < n_cols / 2; p++)
            v_pair_columns(q[2 * p] + 4 * (at + t), q[2 * p + 1] + 4 * (at + t), xs[p]);
        SIMD_UNROLL
        for (int j = 0; j < 2; j++) {
            SIMD_UNROLL
            for (int p = 0; p < n_cols / 2; p++)
                part[p] = v_dot_2x2(part[p], w[t + 2 * j + half], xs[p][j]);
        }
    }
}
#endif

#endif
