/* SPDX-License-Identifier: MIT
 *
 * q8_256_avx512.c - activations to q8_256, 512 bits
 */
#include "kernels/activations/act_avx512.h"
#include "kernels/kernels.h"

/* Sums of each 16 of 64 bytes: pairs, pairs of pairs, four lanes of those. */
static inline void store_four_sums(int16_t *sums, __m512i q)
{
    __m512i v = _mm512_madd_epi16(_mm512_maddubs_epi16(_mm512_set1_epi8(1), q),
                                  _mm512_set1_epi16(1));

    v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_BADC));
    v = _mm512_add_epi32(v, _mm512_shuffle_epi32(v, _MM_PERM_CDAB));
    v = _mm512_maskz_compress_epi32(0x1111, v);
    _mm_storel_epi64((__m128i *)sums, _mm256_castsi256_si128(_mm512_cvtepi32_epi16(v)));
}

void kern_quantize_act_q8_256__avx512(const float *src, void *dst, size_t k)
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
        for (size_t i = 0; i < 256; i += 64) {
            const __m512i v = act_round_64(x + i, scale.inverse);

            _mm512_storeu_si512(q + b * 256 + i, v);
            store_four_sums(sums + b * 16 + i / 16, v);
        }
    }
}
