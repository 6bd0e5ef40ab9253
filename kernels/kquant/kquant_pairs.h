/* SPDX-License-Identifier: MIT
 *
 * kquant_pairs.h - scales applied to sums that fit 16 bits
 *
 * Where there is a dot instruction, one of its kind multiplies two pairs of 16-bit
 * numbers and adds: with a scale whose upper half is zero it is a multiplication and an
 * addition at once.
 */
#ifndef SLM_KERNELS_KQUANT_PAIRS_H
#define SLM_KERNELS_KQUANT_PAIRS_H

#include "kernels/simd/vec.h"

#if V_WIDE
/* sum + the lower halves' products + the upper halves'. */
SIMD_INLINE vi kq_add_pairs(vi sum, vi a, vi b)
{
    return dpwssd(sum, a, b);
}

/* Signed byte i of every lane, times 256, in its lower half; zero in the upper one. */
SIMD_INLINE vi kq_scale_256(vi four, int i)
{
    const vi choose = v_add32(v_set1_32((int)0x80800080), v_set1_32(0x100 * i));
    const vi lane = v_bcast_16((const uint32_t[4]){0, 0x400, 0x800, 0xc00});

    return v_table16(four, v_add32(choose, lane));
}
#endif

/* acc + the products of pairs, 16 bits each, at every level. */
SIMD_INLINE vi kq_add_products(vi acc, vi a, vi b)
{
#if V_WIDE
    return kq_add_pairs(acc, a, b);
#else
    return v_add_scaled(acc, a, b);
#endif
}

#endif
