/* SPDX-License-Identifier: MIT
 *
 * q8_32_avx512.c - activations to q8_32, 512 bits
 */
#include "kernels/activations/act_avx512.h"
#include "kernels/kernels.h"

void kern_quantize_act_q8_32__avx512(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_32_d(dst, k);
    float *s = (float *)act_q8_32_s(dst, k);
    int16_t *sums = (int16_t *)act_q8_32_sums(dst, k);

    for (size_t b = 0; b < k / 32; b++) {
        const float *x = src + b * 32;
        const __m512i largest =
            act_max_16(act_max_16(_mm512_setzero_si512(), x), x + 16);
        const struct act_scale scale = act_scale_of(act_max_lane(largest));
        const __m512i v0 = act_round_16(x, scale.inverse);
        const __m512i v1 = act_round_16(x + 16, scale.inverse);

        _mm_storeu_si128((__m128i *)(q + b * 32), _mm512_cvtepi32_epi8(v0));
        _mm_storeu_si128((__m128i *)(q + b * 32 + 16), _mm512_cvtepi32_epi8(v1));
        d[b] = scale.d;
        sums[2 * b] = (int16_t)_mm512_reduce_add_epi32(v0);
        sums[2 * b + 1] = (int16_t)_mm512_reduce_add_epi32(v1);
        s[b] = scale.d * (float)(sums[2 * b] + sums[2 * b + 1]);
    }
}
