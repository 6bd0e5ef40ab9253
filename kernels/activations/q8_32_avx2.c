/* SPDX-License-Identifier: MIT
 *
 * q8_32_avx2.c - activations to q8_32 with AVX2
 */
#include "kernels/activations/act_avx2.h"
#include "kernels/kernels.h"

static inline int sum_8_ints(__m256i v)
{
    __m128i s =
        _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));

    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1)));
}

void kern_quantize_act_q8_32__avx2(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_32_d(dst, k);
    float *s = (float *)act_q8_32_s(dst, k);
    int32_t *sums = (int32_t *)act_q8_32_sums(dst, k);

    for (size_t b = 0; b < k / 32; b++) {
        const float *x = src + b * 32;
        const struct act_scale scale =
            act_scale_of(act_max_lane(act_max_32(_mm256_setzero_si256(), x)));
        const __m256i v = act_round_32(x, scale.inverse);

        _mm256_storeu_si256((__m256i *)(q + b * 32), v);
        d[b] = scale.d;
        sums[b] = sum_8_ints(act_partial_sums(v));
        s[b] = scale.d * (float)sums[b];
    }
}
