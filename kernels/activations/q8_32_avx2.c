/* SPDX-License-Identifier: MIT
 *
 * q8_32_avx2.c - activations to q8_32 with AVX2
 */
#include "kernels/activations/act_avx2.h"
#include "kernels/kernels.h"

/* out[0], out[1]: the sums of lanes 0..3 and 4..7. */
static inline void sums_of_4_ints(__m256i v, int16_t *out)
{
    __m256i s = _mm256_add_epi32(v, _mm256_shuffle_epi32(v, 0x4e));

    s = _mm256_add_epi32(s, _mm256_shuffle_epi32(s, 0xb1));
    out[0] = (int16_t)_mm256_extract_epi16(s, 0);
    out[1] = (int16_t)_mm256_extract_epi16(s, 8);
}

void kern_quantize_act_q8_32__avx2(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_32_d(dst, k);
    float *s = (float *)act_q8_32_s(dst, k);
    int16_t *sums = (int16_t *)act_q8_32_sums(dst, k);

    for (size_t b = 0; b < k / 32; b++) {
        const float *x = src + b * 32;
        const struct act_scale scale =
            act_scale_of(act_max_lane(act_max_32(_mm256_setzero_si256(), x)));
        const __m256i v = act_round_32(x, scale.inverse);

        _mm256_storeu_si256((__m256i *)(q + b * 32), v);
        d[b] = scale.d;
        sums_of_4_ints(act_partial_sums(v), sums + 2 * b);
        s[b] = scale.d * (float)(sums[2 * b] + sums[2 * b + 1]);
    }
}
