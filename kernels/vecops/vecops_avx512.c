/* SPDX-License-Identifier: MIT
 *
 * vecops_avx512.c - vector operations with AVX-512
 *
 * Ends shorter than a register are done under a mask; masked-off elements are
 * neither read nor written. Sums run in several registers and are folded once.
 */
#include "kernels/kernels.h"
#include "kernels/simd/avx512.h"
#include "kernels/simd/exp.h"

SIMD_INLINE __mmask16 first(size_t n)
{
    return (__mmask16)(n < 16 ? (1u << n) - 1 : 0xffff);
}

void kern_rmsnorm__avx512(float *y, const float *x, const float *w, size_t n, float eps)
{
    __m512 sum[4];
    size_t i = 0;

    for (int j = 0; j < 4; j++)
        sum[j] = _mm512_setzero_ps();
    for (; i + 64 <= n; i += 64) {
        SIMD_UNROLL
        for (size_t j = 0; j < 4; j++) {
            const __m512 v = _mm512_loadu_ps(x + i + 16 * j);

            sum[j] = _mm512_fmadd_ps(v, v, sum[j]);
        }
    }
    for (; i < n; i += 16) {
        const __m512 v = _mm512_maskz_loadu_ps(first(n - i), x + i);

        sum[0] = _mm512_fmadd_ps(v, v, sum[0]);
    }

    const float total = _mm512_reduce_add_ps(
        _mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
    const __m512 scale = _mm512_div_ps(
        _mm512_set1_ps(1.0f), _mm512_sqrt_ps(_mm512_set1_ps(total / (float)n + eps)));

    for (i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);
        const __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), scale);

        _mm512_mask_storeu_ps(y + i, m,
                              _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i)));
    }
}

void kern_rope__avx512(float *v, const float *cs, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);
        const __m512 a = _mm512_maskz_loadu_ps(m, v + i);
        const __m512 angles = _mm512_maskz_loadu_ps(m, cs + i);
        const __m512 swapped = _mm512_permute_ps(a, _MM_SHUFFLE(2, 3, 0, 1));
        const __m512 sines = _mm512_mul_ps(swapped, _mm512_movehdup_ps(angles));

        /* Even elements: a c - b s; odd ones: b c + a s. */
        _mm512_mask_storeu_ps(v + i, m,
                              _mm512_fmaddsub_ps(a, _mm512_moveldup_ps(angles), sines));
    }
}

void kern_silu_mul__avx512(float *y, const float *gate, const float *up, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);
        const __m512 g = _mm512_maskz_loadu_ps(m, gate + i);
        const __m512 e = exp_avx512(_mm512_sub_ps(_mm512_setzero_ps(), g));
        const __m512 silu = _mm512_div_ps(g, _mm512_add_ps(_mm512_set1_ps(1.0f), e));

        _mm512_mask_storeu_ps(y + i, m,
                              _mm512_mul_ps(silu, _mm512_maskz_loadu_ps(m, up + i)));
    }
}

void kern_add__avx512(float *y, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);

        _mm512_mask_storeu_ps(y + i, m,
                              _mm512_add_ps(_mm512_maskz_loadu_ps(m, y + i),
                                            _mm512_maskz_loadu_ps(m, x + i)));
    }
}
