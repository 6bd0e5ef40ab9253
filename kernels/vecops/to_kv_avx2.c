/* SPDX-License-Identifier: MIT
 *
 * to_kv_avx2.c - keys and values as the KV cache stores them, with AVX2
 *
 * The minimum and maximum instructions return their second operand where either is a
 * NaN.
 */
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/avx2.h"

enum { BLOCK = 32, LANES = 8, VECS = BLOCK / LANES };

SIMD_INLINE __m256 limit(__m256 x, float least, float most)
{
    return _mm256_max_ps(_mm256_set1_ps(least), _mm256_min_ps(_mm256_set1_ps(most), x));
}

void kern_to_kv_f16__avx2(void *dst, const float *src, size_t n)
{
    char *out = dst;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES)
        _mm_storeu_si128(
            (void *)(out + 2 * i),
            _mm256_cvtps_ph(
                limit(_mm256_loadu_ps(src + i), -KERN_HALF_MAX, KERN_HALF_MAX),
                _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    kern_to_kv_f16__scalar(out + 2 * i, src + i, n - i);
}

/* Eight values' upper halves, rounded to nearest even, in the lower halves of the
 * lanes; a NaN becomes a quiet one. */
SIMD_INLINE __m256i round_to_bf16(const float *src)
{
    const __m256 x = limit(_mm256_loadu_ps(src), -KERN_BF16_MAX, KERN_BF16_MAX);
    const __m256i bits = _mm256_castps_si256(x), top = _mm256_srli_epi32(bits, 16);
    const __m256i is_odd = _mm256_and_si256(top, _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_srli_epi32(
        _mm256_add_epi32(bits, _mm256_add_epi32(is_odd, _mm256_set1_epi32(0x7fff))),
        16);
    const __m256i quiet = _mm256_or_si256(top, _mm256_set1_epi32(0x40));
    const __m256 is_nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);

    return _mm256_blendv_epi8(rounded, quiet, _mm256_castps_si256(is_nan));
}

/* The pack takes 128-bit halves in turn; the permutation puts them in order. */
void kern_to_kv_bf16__avx2(void *dst, const float *src, size_t n)
{
    char *out = dst;
    size_t i = 0;

    for (; i + 2 * LANES <= n; i += 2 * LANES)
        _mm256_storeu_si256((void *)(out + 2 * i),
                            _mm256_permute4x64_epi64(
                                _mm256_packus_epi32(round_to_bf16(src + i),
                                                    round_to_bf16(src + i + LANES)),
                                0xd8));
    kern_to_kv_bf16__scalar(out + 2 * i, src + i, n - i);
}

/* 32 values, zeros where there was a NaN. */
SIMD_INLINE void load_block(const float *src, __m256 *x)
{
    SIMD_UNROLL
    for (int i = 0; i < VECS; i++) {
        x[i] = _mm256_loadu_ps(src + LANES * i);
        x[i] = _mm256_and_ps(x[i], _mm256_cmp_ps(x[i], x[i], _CMP_ORD_Q));
    }
}

SIMD_INLINE float largest_lane(__m256 v)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}

/* As the reference's. */
SIMD_INLINE float scale_of(const __m256 *x, float end, uint8_t *stored)
{
    __m256 up = _mm256_setzero_ps(), down = _mm256_setzero_ps();

    SIMD_UNROLL
    for (int i = 0; i < VECS; i++) {
        up = _mm256_max_ps(up, x[i]);
        down = _mm256_max_ps(down, _mm256_sub_ps(_mm256_setzero_ps(), x[i]));
    }

    const float hi = largest_lane(up), lo = largest_lane(down);
    const float largest = hi > lo ? hi : end > 0 ? lo : -lo;
    float wanted = largest / end;

    wanted = wanted > KERN_HALF_MAX ? KERN_HALF_MAX : wanted;
    wanted = wanted < -KERN_HALF_MAX ? -KERN_HALF_MAX : wanted;

    const uint16_t half = half_from_f32(wanted);
    const float d = half_to_f32(half);

    memcpy(stored, &half, sizeof half);
    return d != 0 ? 1 / d : 0;
}

/* 32 values to bytes. The packs interleave 128-bit halves, in groups of four bytes, as
 * 0 2 4 6 1 3 5 7; the permutation puts them in order. */
SIMD_INLINE __m256i round_block(const __m256 *x, float inverse, float least, float most)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i v[VECS];

    SIMD_UNROLL
    for (int i = 0; i < VECS; i++)
        v[i] = _mm256_cvtps_epi32(
            limit(_mm256_mul_ps(x[i], _mm256_set1_ps(inverse)), least, most));
    return _mm256_permutevar8x32_epi32(
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]),
                           _mm256_packs_epi32(v[2], v[3])),
        order);
}

void kern_to_kv_q8_0__avx2(void *dst, const float *src, size_t n)
{
    uint8_t *out = dst;

    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, out += 2 + BLOCK) {
        __m256 x[VECS];

        load_block(src, x);
        _mm256_storeu_si256((void *)(out + 2),
                            round_block(x, scale_of(x, 127, out), -127, 127));
    }
}

void kern_to_kv_q4_0__avx2(void *dst, const float *src, size_t n)
{
    uint8_t *out = dst;

    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, out += 2 + BLOCK / 2) {
        __m256 x[VECS];

        load_block(src, x);

        const __m256i q = _mm256_add_epi8(round_block(x, scale_of(x, -8, out), -8, 7),
                                          _mm256_set1_epi8(8));

        _mm_storeu_si128(
            (void *)(out + 2),
            _mm_or_si128(_mm256_castsi256_si128(q),
                         _mm_slli_epi16(_mm256_extracti128_si256(q, 1), 4)));
    }
}
