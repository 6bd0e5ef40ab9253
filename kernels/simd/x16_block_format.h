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

/* d and m of one slice of a block; m may be left alone where there is none. */
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
    int max; /* of |weights| as emitted, for 16-bit parts */
    int bias;
    bool has_m;
    bool is_signed;        /* weights go to v_dot_s */
    bool light;            /* as in x16_super.h */
    enum x16_row_kind row; /* not NONE: block scale 0 is d and 1, right behind it, m */
    int steps;             /* of weights, at most 8 */
    x16_weights_fn *weights;
    /* Or, for v_dot_u where V_WIDE: weights 16..31 times 16; NULL if there is none. */
    x16_weights_fn *wide;
    x16_block_scales_fn *scales; /* gets scale 0; x16_scale_of() has the others */
};

/* start[i] = -bias * sum(x) of blocks b to b + n - 1. */
SIMD_INLINE void x16_block_starts(const struct x16_block_format *f, const char *x,
                                  size_t k, size_t b, size_t n, int32_t *start)
{
    const int32_t *sums = act_q8_32_sums(x, k) + b;

    if (f->bias == 0)
        return;
    if (n == X16_BATCH) {
        typedef int32_t batch __attribute__((vector_size(4 * X16_BATCH)));
        batch of; /* spelled out: GCC makes eight insertions of a loop */

        memcpy(&of, sums, sizeof(of));
        of *= -f->bias;
        memcpy(start, &of, sizeof(of));
    } else {
        for (size_t i = 0; i < n; i++)
            start[i] = -f->bias * sums[i];
    }
}

#endif
