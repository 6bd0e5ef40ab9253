/* SPDX-License-Identifier: MIT
 *
 * vecops_avx512.c - vector operations with AVX-512
 *
 * Ends shorter than a register are done under a mask; masked-off elements are
 * neither read nor written. Sums run in several registers and are folded once.
 *
 * attn_dot works on tiles of four positions and up to four queries, attn_mix on
 * tiles of 64 elements and up to four queries: every key or value is converted
 * from half precision once per tile and sixteen sums are kept in registers.
 * The order of positions and queries is that of attention.h.
 */
#include "kernels/kernels.h"
#include "kernels/simd/avx512.h"
#include "kernels/simd/exp.h"
#include "kernels/vecops/attention.h"

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
        const __m512 turn = _mm512_maskz_loadu_ps(m, cs + i);
        const __m512 swapped = _mm512_permute_ps(a, _MM_SHUFFLE(2, 3, 0, 1));
        const __m512 sines = _mm512_mul_ps(swapped, _mm512_movehdup_ps(turn));

        /* Even elements: a c - b s; odd ones: b c + a s. */
        _mm512_mask_storeu_ps(v + i, m,
                              _mm512_fmaddsub_ps(a, _mm512_moveldup_ps(turn), sines));
    }
}

void kern_softmax__avx512(float *x, size_t n)
{
    const __m512 lowest = _mm512_set1_ps(-__builtin_inff());
    __m512 top = lowest, sum = _mm512_setzero_ps();

    for (size_t i = 0; i < n; i += 16)
        top = _mm512_max_ps(top, _mm512_mask_loadu_ps(lowest, first(n - i), x + i));
    top = _mm512_set1_ps(_mm512_reduce_max_ps(top));
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);
        const __m512 e =
            exp_avx512(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), top));

        _mm512_mask_storeu_ps(x + i, m, e);
        sum = _mm512_mask_add_ps(sum, m, sum, e);
    }

    const __m512 scale = _mm512_set1_ps(1.0f / _mm512_reduce_add_ps(sum));

    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);

        _mm512_mask_storeu_ps(x + i, m,
                              _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), scale));
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

/* Sixteen halves, or the eight that are left. */
SIMD_INLINE __m512 load_halves(const uint16_t *p, __mmask16 m)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p));
}

/* sum[q][t] over d for nq queries and nt positions (constants), 16 sums at most. */
SIMD_INLINE void dot_tile(size_t nq, size_t nt, const float *query, size_t q_stride,
                          const uint16_t *key, size_t kv_stride, size_t d, float scale,
                          float *s, size_t s_stride)
{
    __m512 sum[4][4];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t t = 0; t < nt; t++)
            sum[q][t] = _mm512_setzero_ps();
    }
    for (size_t i = 0; i < d; i += 16) {
        const __mmask16 m = first(d - i);
        __m512 k[4];

        SIMD_UNROLL
        for (size_t t = 0; t < nt; t++)
            k[t] = load_halves(key + t * kv_stride + i, m);
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            const __m512 v = _mm512_maskz_loadu_ps(m, query + q * q_stride + i);

            SIMD_UNROLL
            for (size_t t = 0; t < nt; t++)
                sum[q][t] = _mm512_fmadd_ps(v, k[t], sum[q][t]);
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        if (nt < 4) {
            s[q * s_stride] = scale * _mm512_reduce_add_ps(sum[q][0]);
            continue;
        }
        /* Four registers to four sums: pairs of neighbours within the 128-bit
         * lanes first, then the lanes. */
        const __m512 a = _mm512_add_ps(_mm512_unpacklo_ps(sum[q][0], sum[q][1]),
                                       _mm512_unpackhi_ps(sum[q][0], sum[q][1]));
        const __m512 b = _mm512_add_ps(_mm512_unpacklo_ps(sum[q][2], sum[q][3]),
                                       _mm512_unpackhi_ps(sum[q][2], sum[q][3]));
        const __m512 c =
            _mm512_add_ps(_mm512_shuffle_ps(a, b, _MM_SHUFFLE(1, 0, 1, 0)),
                          _mm512_shuffle_ps(a, b, _MM_SHUFFLE(3, 2, 3, 2)));
        const __m256 e =
            _mm256_add_ps(_mm512_castps512_ps256(c), _mm512_extractf32x8_ps(c, 1));
        const __m128 f =
            _mm_add_ps(_mm256_castps256_ps128(e), _mm256_extractf128_ps(e, 1));

        _mm_storeu_ps(s + q * s_stride, _mm_mul_ps(f, _mm_set1_ps(scale)));
    }
}

/* A dot_queries_fn. */
SIMD_INLINE void dot_queries(size_t nq, const float *query, size_t q_stride,
                             const uint16_t *key, size_t kv_stride, size_t n_kv,
                             size_t d, float scale, float *s, size_t s_stride,
                             size_t fetch)
{
    size_t t = 0;

    for (; t + 4 <= n_kv; t += 4) {
        for (size_t j = 0; j < 4; j++)
            prefetch_row(key, (t + j + KV_AHEAD) * kv_stride, fetch);
        dot_tile(nq, 4, query, q_stride, key + t * kv_stride, kv_stride, d, scale,
                 s + t, s_stride);
    }
    for (; t < n_kv; t++)
        dot_tile(nq, 1, query, q_stride, key + t * kv_stride, kv_stride, d, scale,
                 s + t, s_stride);
}

void kern_attn_dot__avx512(float *s, size_t s_stride, const float *query,
                           size_t q_stride, const uint16_t *key, size_t kv_stride,
                           size_t n_q, size_t n_kv, size_t d, float scale)
{
    attn_dot_blocks(dot_queries, 4, s, s_stride, query, q_stride, key, kv_stride, n_q,
                    n_kv, d, scale);
}

/* out[q][0..16 nc) += sum of p[q][t] * value[t][..] over n positions, for nq
 * queries (constants); fetch: see dot_queries_fn; elements beyond the mask of the last
 * sixteen are left. */
SIMD_INLINE void mix_tile(size_t nq, size_t nc, __mmask16 last, const float *p,
                          size_t p_stride, const uint16_t *value, size_t kv_stride,
                          size_t n, float *out, size_t o_stride, size_t fetch)
{
    __m512 sum[4][4];

    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t c = 0; c < nc; c++)
            sum[q][c] = _mm512_maskz_loadu_ps(c + 1 < nc ? 0xffff : last,
                                              out + q * o_stride + 16 * c);
    }
    for (size_t t = 0; t < n; t++) {
        __m512 v[4];

        prefetch_row(value, (t + KV_AHEAD) * kv_stride, fetch);

        SIMD_UNROLL
        for (size_t c = 0; c < nc; c++)
            v[c] =
                load_halves(value + t * kv_stride + 16 * c, c + 1 < nc ? 0xffff : last);
        SIMD_UNROLL
        for (size_t q = 0; q < nq; q++) {
            SIMD_UNROLL
            for (size_t c = 0; c < nc; c++)
                sum[q][c] = _mm512_fmadd_ps(_mm512_set1_ps(p[q * p_stride + t]), v[c],
                                            sum[q][c]);
        }
    }
    SIMD_UNROLL
    for (size_t q = 0; q < nq; q++) {
        SIMD_UNROLL
        for (size_t c = 0; c < nc; c++)
            _mm512_mask_storeu_ps(out + q * o_stride + 16 * c,
                                  c + 1 < nc ? 0xffff : last, sum[q][c]);
    }
}

/* A mix_queries_fn. */
SIMD_INLINE void mix_queries(size_t nq, const float *p, size_t p_stride,
                             const uint16_t *value, size_t kv_stride, size_t n,
                             size_t d, float *out, size_t o_stride, size_t fetch)
{
    size_t i = 0;

    for (; i + 64 <= d; i += 64)
        mix_tile(nq, 4, 0xffff, p, p_stride, value + i, kv_stride, n, out + i, o_stride,
                 i == 0 ? fetch : 0);
    for (; i < d; i += 16)
        mix_tile(nq, 1, first(d - i), p, p_stride, value + i, kv_stride, n, out + i,
                 o_stride, i == 0 ? fetch : 0);
}

void kern_attn_mix__avx512(float *out, size_t o_stride, const float *p, size_t p_stride,
                           const uint16_t *value, size_t kv_stride, size_t n_q,
                           size_t n_kv, size_t d)
{
    attn_mix_blocks(mix_queries, 4, out, o_stride, p, p_stride, value, kv_stride, n_q,
                    n_kv, d);
}

void kern_to_f16__avx512(uint16_t *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        const __mmask16 m = first(n - i);
        const __m512 v = _mm512_maskz_loadu_ps(m, src + i);

        _mm256_mask_storeu_epi16(
            dst + i, m,
            _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    }
}
