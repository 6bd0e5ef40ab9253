/* SPDX-License-Identifier: MIT
 *
 * x16_super_format.h - how a format of super-blocks is described, and what an
 *                      activation column brings to a super-block
 */
#ifndef SLM_KERNELS_SIMD_X16_SUPER_FORMAT_H
#define SLM_KERNELS_SIMD_X16_SUPER_FORMAT_H

#include "kernels/simd/x16.h"

enum { X16_SUPER = X16_PIECE };

/* Of one slice of a super-block. pairs: two 16-bit minima per lane, those of sub-blocks
 * 4i and 4i + 2 in pairs[2i], of 4i + 1 and 4i + 3 in pairs[2i + 1], which is how they
 * come out of the bytes of a dword (x16_pairs_u8()). */
struct x16_scales {
    vi scale[16]; /* of every sub-block, in scale form */
    vi pairs[8];
    vf d, dmin;
};

SIMD_INLINE void x16_pairs_u8(vi four, vi *pairs)
{
    const vi even = v_set1_32(0x00ff00ff);

    pairs[0] = v_and(four, even);
    pairs[1] = v_and(v_srl16(four, 8), even);
}

typedef void x16_scales_fn(const uint8_t *body, const uint8_t *block_scales,
                           struct x16_scales *out);

/* In place of weights, for one column where V_WIDE: leaves the products with scales,
 * biases off, in sink.to->sum[sink.strand][0]. */
typedef void x16_products_fn(const uint8_t *body, const struct x16_sink sink);

/* A format's description; constants after inlining. */
struct x16_super_format {
    struct x16_layout layout;
    int n_subs; /* 8 or 16 */
    /* Every scale is 1: products of a whole super-block are one sum where they need not
     * be several that do not wait for each other. */
    bool unscaled;
    int max; /* of |weights| as emitted, for 16-bit parts */
    int bias;
    /* For tiles: 1 where every weight, less the bias, times its scale is within -128 ..
     * 127; -1 where that holds of the negative product. */
    int narrow;
    bool mins;
    bool is_signed; /* weights go to v_dot_s */
    /* A sub-block's products with one column are added up in two sums that do not wait
     * for each other; only without shifts. */
    bool two_chains;
    /* Weights take so few instructions that up to eight columns are multiplied straight
     * from the block; if not, four, and more go through a tile. */
    bool light;
    /* Weights are emitted in another order within every 16, which columns are put into,
     * too: place i has weight order[i]. NULL: as they are. */
    const uint8_t *order;
    int steps; /* of weights, at most 64 */
    x16_weights_fn *weights;
    x16_products_fn *products; /* or NULL */
    /* Or, for v_dot_u where V_WIDE: the same weights shifted to the left, below 256;
     * NULL if that is no shorter. Hexadecimal digit s of shifts, from the right: by how
     * many bits, in sub-block s. */
    x16_weights_fn *wide;
    uint64_t shifts;
    x16_scales_fn *scales; /* gets scale 0; x16_scale_of() has the others */
};

/* ---- the activations' side --------------------------------------------------------
 */

/* n_subs: the format's, or 1 for the super-block as one; wide: weights are; quants:
 * out->q, too, in the format's order. */
SIMD_INLINE void x16_column(const struct x16_super_format *f, const int n_subs,
                            bool wide, bool quants, const char *x, size_t k, size_t b,
                            struct x16_column *out)
{
    const int16_t *sums = act_q8_256_sums(x, k) + 16 * b;
    int32_t sum[16];

    SIMD_UNROLL
    for (size_t i = 0; quants && i < X16_SUPER; i += sizeof(vi)) {
        const vi v = v_load(act_q(x) + X16_SUPER * b + i);

        v_store(out->q + i, f->order != NULL ? v_table16(v, v_bcast_16(f->order)) : v);
    }
    if (f->bias == 0 && !f->mins)
        return;
    if (n_subs == 1) {
        int all = 0;

        for (int s = 0; s < 16; s++)
            all += sums[s];
        out->start[0] = -f->bias * all;
        return;
    }
    if (n_subs == 8 && f->bias == 0) {
        v_sums_of_two(sums, out->sums);
        return;
    }
    for (int s = 0; s < n_subs; s++)
        sum[s] = n_subs == 16 ? sums[s] : sums[2 * s] + sums[2 * s + 1];
    if (f->bias != 0 && n_subs == 16) {
        int32_t times[16];

        SIMD_UNROLL
        for (int s = 0; s < 16; s++)
            times[s] = -f->bias * (wide ? 1 << (f->shifts >> 4 * s & 15) : 1);
        SIMD_UNROLL
        for (int s = 0; s < 16; s += V_LANES)
            v_store(out->start + s, v_mul32(v_s16(sums + s), v_load(times + s)));
    } else if (f->bias != 0) {
        for (int s = 0; s < n_subs; s++)
            out->start[s] =
                -f->bias * sum[s] * (wide ? 1 << (f->shifts >> 4 * s & 15) : 1);
    }
    if (f->mins || !V_DOT32)
        for (int s = 0; s < n_subs; s++)
            out->sums[s % 4 == 1 ? s + 1 : s % 4 == 2 ? s - 1 : s] = (int16_t)sum[s];
}

/* The same for x16_super_step(), of n columns. Copied quants are few addresses, near
 * one register. SIMD_IN_MEMORY: see simd.h. */
SIMD_INLINE void x16_few_column(const struct x16_super_format *f, const int n,
                                const char *x, size_t k, size_t b,
                                struct x16_column *out)
{
    const bool quants = n > 1 || f->order != NULL;

    x16_column(f, f->n_subs, V_WIDE && f->wide != NULL, quants, x, k, b, out);
    if (quants || f->bias != 0 || f->mins)
        SIMD_IN_MEMORY(*out);
}

/* Scales as pairs, for the bias. */
SIMD_INLINE void x16_pair_scales(const vi *scale, int n_subs, vi *pairs)
{
#if V_DOT32
    (void)scale, (void)n_subs, (void)pairs; /* the bias is in the parts' starts */
#else
    SIMD_UNROLL
    for (int s = 0; s < n_subs; s += 4) {
        pairs[s / 2] = v_mix(scale[s], scale[s + 2]);
        pairs[s / 2 + 1] = v_mix(scale[s + 1], scale[s + 3]);
    }
#endif
}

/* sum_s of the paired numbers times sum(x)_s. */
SIMD_INLINE vi x16_dot_sums(const vi *pairs, int n_subs,
                            const struct x16_column *column)
{
    vi sum = v_zero();

    SIMD_UNROLL
    for (int s = 0; s < n_subs; s += 2)
        sum = v_dot_pairs(sum, pairs[s / 2], column->sums + s);
    return sum;
}

#endif
