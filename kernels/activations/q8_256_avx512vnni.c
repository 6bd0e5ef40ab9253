/* SPDX-License-Identifier: MIT
 *
 * q8_256_avx512vnni.c - activations to q8_256, 512 bits
 */
#include "kernels/activations/act_avx512.h"
#include "kernels/kernels.h"

void kern_quantize_act_q8_256__avx512vnni(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_256_d(dst, k);
    int16_t *sums = (int16_t *)act_q8_256_sums(dst, k);

    for (size_t b = 0; b < k / 256; b++) {
        const float *x = src + b * 256;
        __m512i largest = _mm512_setzero_si512();
        struct act_scale scale;

        for (size_t i = 0; i < 256; i += 16)
            largest = act_max_16(largest, x + i);
        scale = act_scale_of(act_max_lane(largest));
        d[b] = scale.d;
        for (size_t i = 0; i < 256; i += 16) {
            const __m512i v = act_round_16(x + i, scale.inverse);

            _mm_storeu_si128((__m128i *)(q + b * 256 + i), _mm512_cvtepi32_epi8(v));
            sums[b * 16 + i / 16] = (int16_t)_mm512_reduce_add_epi32(v);
        }
    }
}
