/* SPDX-License-Identifier: MIT
 *
 * x16_block_format.h - how a format of blocks of 32 is described, and what an
 *                      activation column brings to a block
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_FORMAT_H
#define SLM_KERNELS_SIMD_X16_BLOCK_FORMAT_H

#include "kernels/simd/x16.h"

enum {
    X16_BLOCK = 32,
    X16_BATCH = 8, /* blocks whose starts, or weights, are prepared together */
};

/* d and m of one slice of a block; m may be left alone where there is none. Where the
 * file's block has several parts, body and block scales are the part's. */
typedef void x16_block_scales_fn(const uint8_t *body, const uint8_t *block_scales,
                                 vf *d, vf *m);

/* How a block's body holds its weights, for levels that multiply rows in file order as
 * they are (x16_block_rows.h). */
enum x16_row_kind {
    X16_ROW_NONE,    /* another way: rows are interleaved */
    X16_ROW_BYTES,   /* signed bytes; `bias` where V_SIGNED is 0 is 128 */
    X16_ROW_NIBBLES, /* low ones are weights 0..15, high ones 16..31 */
    X16_ROW_FIVE,    /* four bytes of fifth bits before the nibbles */
};

/* A format's description; constants after inlining. */
struct x16_block_format {
    struct x16_layout layout;
    /* The number of blocks of 32 in a block of the file (0: 1), one behind the other in
     * its body. The block scales belong to all of them, or part_scales to each in turn.
     */
    int parts;
    int part_scales;
    int max; /* of |weights| as emitted, for 16-bit parts */
    int bias;
    bool has_m;
    bool halves;    /* instead: d is of weights 0..15, m, another scale, of 16..31 */
    bool is_signed; /* weights go to v_dot_s */
    bool light;     /* as in x16_super.h */
    enum x16_row_kind row; /* not NONE: block scale 0 is d and 1, right behind it, m */
    int steps;             /* of weights, at most 8 */
    /* Weights are emitted in another order, which columns are put into, too: place i
     * has weight order[i], i < 32. NULL: as they are. */
    const uint8_t *order;
    x16_weights_fn *weights;
    /* Or, for v_dot_u where V_WIDE: weights 16..31 times 16; NULL if there is none. */
    x16_weights_fn *wide;
    x16_block_scales_fn *scales; /* gets scale 0; x16_scale_of() has the others */
};

SIMD_INLINE size_t x16_block_parts(const struct x16_block_format *f)
{
    return f->parts > 1 ? (size_t)f->parts : 1;
}

/* Weights in a block of the file. */
SIMD_INLINE size_t x16_block_elems(const struct x16_block_format *f)
{
    return X16_BLOCK * x16_block_parts(f);
}

/* Where part p of a block's body and of its block scales are, from the block's. */
SIMD_INLINE size_t x16_part_body(const struct x16_block_format *f, size_t p)
{
    return p * (x16_body_bytes(&f->layout) / x16_block_parts(f));
}

SIMD_INLINE size_t x16_part_scales(const struct x16_block_format *f, size_t p)
{
    return p * (size_t)f->part_scales * X16_ROWS * f->layout.scale_bytes;
}

/* How many sums a block's products are: one, or one of each half. */
SIMD_INLINE int x16_block_sums(const struct x16_block_format *f)
{
    return f->halves ? 2 : 1;
}

/* start[i] = -bias * sum(x) of blocks b to b + n - 1, or of each of their halves. */
SIMD_INLINE void x16_block_starts(const struct x16_block_format *f, const char *x,
                                  size_t k, size_t b, size_t n, int32_t *start)
{
    const int16_t *sums = act_q8_32_sums(x, k) + 2 * b;

    if (f->bias == 0)
        return;
    if (f->halves && n == X16_BATCH) {
        SIMD_UNROLL
        for (int i = 0; i < 2 * X16_BATCH; i += V_LANES)
            v_store(start + i, v_mul32(v_s16(sums + i), v_set1_32(-f->bias)));
    } else if (f->halves) {
        for (size_t i = 0; i < 2 * n; i++)
            start[i] = -f->bias * sums[i];
    } else if (n == X16_BATCH) {
        v_sums_times(sums, -f->bias, start);
    } else {
        for (size_t i = 0; i < n; i++)
            start[i] = -f->bias * (sums[2 * i] + sums[2 * i + 1]);
    }
}

/* The quants of n blocks from block b on, in the format's order. */
SIMD_INLINE void x16_block_quants(const struct x16_block_format *f, const char *x,
                                  size_t b, size_t n, int8_t *to)
{
    const int8_t *from = act_q(x) + X16_BLOCK * b;

    if (f->order == NULL) {
        memcpy(to, from, X16_BLOCK * n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        v_order_32(from + X16_BLOCK * i, f->order, to + X16_BLOCK * i);
}

/* n blocks from b on of one column. */
SIMD_INLINE void x16_block_piece(const struct x16_block_format *f, const char *x,
                                 size_t k, size_t b, size_t n, struct x16_column *out)
{
    x16_block_quants(f, x, b, n, out->q);
    memcpy(out->d, act_q8_32_d(x, k) + b, n * sizeof(float));
    if (f->has_m)
        memcpy(out->s, act_q8_32_s(x, k) + b, n * sizeof(float));
    x16_block_starts(f, x, k, b, n, out->start);
}

#endif
