/* SPDX-License-Identifier: MIT
 *
 * q8_256_avx2.c - activations to q8_256 with AVX2
 */
#include "kernels/activations/act_avx2.h"
#include "kernels/kernels.h"

/* sums[0] and sums[1] of 32 bytes. */
static inline void store_two_sums(int16_t *sums, __m256i q)
{
    __m256i v = act_partial_sums(q);

    v = _mm256_add_epi32(v, _mm256_shuffle_epi32(v, 0x4e));
    v = _mm256_add_epi32(v, _mm256_shuffle_epi32(v, 0xb1));
    sums[0] = (int16_t)_mm256_cvtsi256_si32(v);
    sums[1] = (int16_t)_mm256_extract_epi32(v, 4);
}

void kern_quantize_act_q8_256__avx2(const float *src, void *dst, size_t k)
{
    int8_t *q = dst;
    float *d = (float *)act_q8_256_d(dst, k);
    int16_t *sums = (int16_t *)act_q8_256_sums(dst, k);

    for (size_t b = 0; b < k / 256; b++) {
        const float *x = src + b * 256;
        __m256i largest = _mm256_setzero_si256();
        struct act_scale scale;

        for (size_t i = 0; i < 256; i += 32)
            largest = act_max_32(largest, x + i);
        scale = act_scale_of(act_max_lane(largest));
        d[b] = scale.d;
        for (size_t i = 0; i < 256; i += 32) {
            const __m256i v = act_round_32(x + i, scale.inverse);

            _mm256_storeu_si256((__m256i *)(q + b * 256 + i), v);
            store_two_sums(sums + b * 16 + i / 16, v);
        }
    }
}
