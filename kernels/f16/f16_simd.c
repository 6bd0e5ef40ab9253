/* SPDX-License-Identifier: MIT
 *
 * f16_simd.c - f16 weights times float activations, every vector level; and conversion,
 * where an instruction converts several values
 */
#include "kernels/f16/f16.h"

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/float.h"

FLOAT_KERNELS(f16, f_half, f_half_two, f_load_two, fp_split_f16, F16_BLOCK_BYTES)

/* Memory limits conversion: wider registers gain nothing. */
#if defined(KERN_LEVEL_avx2) || defined(KERN_LEVEL_neon)
SIMD_INLINE void store_halves(uint8_t *at, const float *src)
{
#ifdef KERN_LEVEL_avx2
    _mm_storeu_si128((void *)at,
                     _mm256_cvtps_ph(_mm256_loadu_ps(src), _MM_FROUND_TO_NEAREST_INT));
#else
    vst1q_u8(at, vreinterpretq_u8_f16(vcombine_f16(vcvt_f16_f32(vld1q_f32(src)),
                                                   vcvt_f16_f32(vld1q_f32(src + 4)))));
#endif
}

void KERN_NAME(quantize, f16)(const float *src, const float *w, void *dst, size_t n)
{
    uint8_t *at = dst;
    size_t i = 0;

    (void)w;
    for (; i + 8 <= n; i += 8)
        store_halves(at + i * F16_BLOCK_BYTES, src + i);
    for (; i < n; i++) {
        const uint16_t half = half_from_f32(src[i]);

        memcpy(at + i * F16_BLOCK_BYTES, &half, sizeof half);
    }
}

void KERN_NAME(dequantize, f16)(const void *src, float *dst, size_t n)
{
    const uint8_t *at = src;
    size_t i = 0;

    for (; i + V_LANES <= n; i += V_LANES)
        v_store_f(dst + i, v_half(at + i * F16_BLOCK_BYTES));
    for (; i < n; i++)
        dst[i] = half_to_f32(load_u16(at + i * F16_BLOCK_BYTES));
}
#endif
