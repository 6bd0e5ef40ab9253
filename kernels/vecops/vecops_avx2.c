/* SPDX-License-Identifier: MIT
 *
 * vecops_avx2.c - vector operations with AVX2, FMA and F16C
 *
 * Ends shorter than a register go through load_part() and store_part(). Sums run in
 * several registers and are folded once.
 */
#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/avx2.h"
#include "kernels/simd/exp.h"

SIMD_INLINE float largest_of(__m256 v)
{
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));

    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

void kern_rmsnorm__avx2(float *y, const float *x, const float *w, size_t n, float eps)
{
    __m256 sum[4];
    size_t i = 0;

    for (int j = 0; j < 4; j++)
        sum[j] = _mm256_setzero_ps();
    for (; i + 32 <= n; i += 32) {
        SIMD_UNROLL
        for (size_t j = 0; j < 4; j++) {
            const __m256 v = _mm256_loadu_ps(x + i + 8 * j);

            sum[j] = _mm256_fmadd_ps(v, v, sum[j]);
        }
    }
    for (; i < n; i += 8) {
        const __m256 v = n - i >= 8 ? _mm256_loadu_ps(x + i) : load_part(x + i, n - i);

        sum[0] = _mm256_fmadd_ps(v, v, sum[0]);
    }

    const float total = sum_8_floats(
        _mm256_add_ps(_mm256_add_ps(sum[0], sum[1]), _mm256_add_ps(sum[2], sum[3])));
    const __m256 scale = _mm256_div_ps(
        _mm256_set1_ps(1.0f), _mm256_sqrt_ps(_mm256_set1_ps(total / (float)n + eps)));

    for (i = 0; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i,
                         _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), scale),
                                       _mm256_loadu_ps(w + i)));
    if (i < n) {
        const __m256 v = _mm256_mul_ps(load_part(x + i, n - i), scale);

        store_part(y + i, _mm256_mul_ps(v, load_part(w + i, n - i)), n - i);
    }
}

/* Pairs (a, b) turned by (c, s): even elements a c - b s, odd ones b c + a s. */
SIMD_INLINE __m256 turn_pairs(__m256 v, __m256 cs)
{
    const __m256 swapped = _mm256_permute_ps(v, _MM_SHUFFLE(2, 3, 0, 1));

    return _mm256_fmaddsub_ps(v, _mm256_moveldup_ps(cs),
                              _mm256_mul_ps(swapped, _mm256_movehdup_ps(cs)));
}

void kern_rope__avx2(float *v, const float *cs, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(v + i,
                         turn_pairs(_mm256_loadu_ps(v + i), _mm256_loadu_ps(cs + i)));
    if (i < n)
        store_part(v + i, turn_pairs(load_part(v + i, n - i), load_part(cs + i, n - i)),
                   n - i);
}

void kern_softmax__avx2(float *x, size_t n)
{
    const size_t whole = n & ~(size_t)7;
    const __m256i m = first_lanes(n - whole);
    __m256 top = _mm256_set1_ps(x[0]), sum = _mm256_setzero_ps();

    for (size_t i = 0; i < whole; i += 8)
        top = _mm256_max_ps(top, _mm256_loadu_ps(x + i));
    if (whole < n)
        top = _mm256_max_ps(top, _mm256_blendv_ps(top, load_part(x + whole, n - whole),
                                                  _mm256_castsi256_ps(m)));
    top = _mm256_set1_ps(largest_of(top));
    for (size_t i = 0; i < whole; i += 8) {
        const __m256 e = exp_avx2(_mm256_sub_ps(_mm256_loadu_ps(x + i), top));

        _mm256_storeu_ps(x + i, e);
        sum = _mm256_add_ps(sum, e);
    }
    if (whole < n) {
        const __m256 e = exp_avx2(_mm256_sub_ps(load_part(x + whole, n - whole), top));

        store_part(x + whole, e, n - whole);
        sum = _mm256_add_ps(sum, _mm256_and_ps(e, _mm256_castsi256_ps(m)));
    }

    const __m256 scale = _mm256_set1_ps(1.0f / sum_8_floats(sum));

    for (size_t i = 0; i < whole; i += 8)
        _mm256_storeu_ps(x + i, _mm256_mul_ps(_mm256_loadu_ps(x + i), scale));
    if (whole < n)
        store_part(x + whole, _mm256_mul_ps(load_part(x + whole, n - whole), scale),
                   n - whole);
}

SIMD_INLINE __m256 silu(__m256 g)
{
    const __m256 e = exp_avx2(_mm256_sub_ps(_mm256_setzero_ps(), g));

    return _mm256_div_ps(g, _mm256_add_ps(_mm256_set1_ps(1.0f), e));
}

void kern_silu_mul__avx2(float *y, const float *gate, const float *up, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i, _mm256_mul_ps(silu(_mm256_loadu_ps(gate + i)),
                                              _mm256_loadu_ps(up + i)));
    if (i < n) {
        const __m256 g = load_part(gate + i, n - i), u = load_part(up + i, n - i);

        store_part(y + i, _mm256_mul_ps(silu(g), u), n - i);
    }
}

void kern_add__avx2(float *y, const float *x, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps(y + i,
                         _mm256_add_ps(_mm256_loadu_ps(y + i), _mm256_loadu_ps(x + i)));
    for (; i < n; i++)
        y[i] += x[i];
}

void kern_to_f16__avx2(uint16_t *dst, const float *src, size_t n)
{
    size_t i = 0;

    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((void *)(dst + i), _mm256_cvtps_ph(_mm256_loadu_ps(src + i),
                                                            _MM_FROUND_TO_NEAREST_INT |
                                                                _MM_FROUND_NO_EXC));
    for (; i < n; i++)
        dst[i] = half_from_f32(src[i]);
}
