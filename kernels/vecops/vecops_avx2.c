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
SIMD_INLINE __m256 rotate_pairs(__m256 v, __m256 cs)
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
                         rotate_pairs(_mm256_loadu_ps(v + i), _mm256_loadu_ps(cs + i)));
    if (i < n)
        store_part(v + i,
                   rotate_pairs(load_part(v + i, n - i), load_part(cs + i, n - i)),
                   n - i);
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
