/* SPDX-License-Identifier: MIT
 *
 * avx512.h - helpers shared by kernels with 512-bit registers
 *
 * Static inline functions only; for files compiled with at least AVX-512 F BW DQ
 * VL.
 */
#ifndef SLM_KERNELS_SIMD_AVX512_H
#define SLM_KERNELS_SIMD_AVX512_H

#include "kernels/simd/avx2.h"

SIMD_INLINE __m512i load_512(const void *p)
{
    return _mm512_loadu_si512(p);
}

/* Four 16-byte pieces, the first lowest. A masked broadcast from memory is a load and
 * a blend, where an insertion would take the port of the shuffles. */
SIMD_INLINE __m512i load_4x128(const void *p0, const void *p1, const void *p2,
                               const void *p3)
{
    __m512i v = _mm512_castsi128_si512(load_128(p0));

    v = _mm512_mask_broadcast_i32x4(v, 0x00f0, load_128(p1));
    v = _mm512_mask_broadcast_i32x4(v, 0x0f00, load_128(p2));
    return _mm512_mask_broadcast_i32x4(v, 0xf000, load_128(p3));
}

#endif
