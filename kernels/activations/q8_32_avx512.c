/* SPDX-License-Identifier: MIT
 *
 * q8_32_avx512.c - activations to q8_32, 512 bits
 */
#include "kernels/activations/act_avx512.h"
#include "kernels/kernels.h"

/* out[0], out[1]: the sums of the two halves of q. */
static inline void sums_of_16(__m256i q, int16_t *out)
{
    const __m256i two = _mm256_maddubs_epi16(_mm256_set1_epi8(1), q);
    __m256i s = _mm256_madd_epi16(two, _mm256_set1_epi16(1));

    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0x4e));
    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0xb1));
    out[0] = (int16_t)_mm256_extract_epi16(s, 0);
    out[1] = (int16_t)_mm256_extract_epi16(s, 8);
}

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
        const __m128i low = _mm512_cvtepi32_epi8(act_round_16(x, scale.inverse));
        const __m128i high = _mm512_cvtepi32_epi8(act_round_16(x + 16, scale.inverse));
        const __m256i v = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);

        _mm256_storeu_si256((__m256i *)(q + b * 32), v);
        d[b] = scale.d;
        sums_of_16(v, sums + 2 * b);
        s[b] = scale.d * (float)(sums[2 * b] + sums[2 * b + 1]);
    }
}
