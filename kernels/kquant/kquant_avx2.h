/* SPDX-License-Identifier: MIT
 *
 * kquant_avx2.h - AVX2 frames of the K-quant kernels
 *
 * gemv: two rows at a time. Each row's products are accumulated in eight int32
 * lanes; the two rows are then folded so that 128-bit lane r holds four partial
 * sums of row r, and half scales, six-bit integers and minima are taken apart in
 * the same arrangement. Scales are applied in integers: vpmaddubsw leaves int16
 * sums of two products, vpmaddwd multiplies them by the sub-block's scale.
 *
 * gemm is in kquant_gemm_avx2.h.
 */
#ifndef SLM_KERNELS_KQUANT_AVX2_H
#define SLM_KERNELS_KQUANT_AVX2_H

#include <stdbool.h>

#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kquant/kquant.h"
#include "kernels/simd/avx2.h"

/* Software prefetch runs this many super-blocks ahead in each of two rows, and
 * goes on in the next two: the hardware's stream prefetchers stop at every
 * 4 KiB page. It asks for the second level only: lines on their way to the first
 * hold its few miss buffers for the whole latency of memory. */
enum { KQ_AHEAD = 16 };

/* Integer products of one block with 256 activations, scaled; scales has a row's
 * eight scales as int16 in both 128-bit lanes. */
typedef __m256i kq_row_dot_fn(const uint8_t *block, const int8_t *x, __m256i scales);

/* The twelve packed bytes of every 128-bit lane (behind d and dmin) become eight
 * scales (bytes 0..7) and eight minima (bytes 8..15). */
SIMD_INLINE __m256i kq_unpack_six(__m256i head)
{
    const __m256i low_bits =
        _mm256_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f,
                          0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    const __m256i top_bits =
        _mm256_setr_epi32(0, 0x30303030, 0, 0x30303030, 0, 0x30303030, 0, 0x30303030);
    const __m256i acbc = _mm256_shuffle_epi32(head, _MM_SHUFFLE(3, 2, 3, 1));
    const __m256i a_b = _mm256_shuffle_epi32(head, _MM_SHUFFLE(2, 2, 1, 1));
    const __m256i low =
        _mm256_srlv_epi32(acbc, _mm256_setr_epi32(0, 0, 0, 4, 0, 0, 0, 4));
    const __m256i top = _mm256_srli_epi32(a_b, 2);

    return _mm256_or_si256(_mm256_and_si256(low, low_bits),
                           _mm256_and_si256(top, top_bits));
}

/* Lane r of the result is the sum of the two 128-bit lanes of a row's sums. */
SIMD_INLINE __m256i kq_fold_rows(__m256i row0, __m256i row1)
{
    return _mm256_add_epi32(_mm256_permute2x128_si256(row0, row1, 0x20),
                            _mm256_permute2x128_si256(row0, row1, 0x31));
}

/* Two sums, one per 128-bit lane, to y[0] and, if there is a second row, y[1]. */
SIMD_INLINE void kq_store_lanes(__m256 v, float *y, bool second)
{
    v = _mm256_add_ps(v, _mm256_permute_ps(v, _MM_SHUFFLE(2, 3, 0, 1)));
    v = _mm256_add_ps(v, _mm256_permute_ps(v, _MM_SHUFFLE(1, 0, 3, 2)));
    y[0] = _mm256_cvtss_f32(v);
    if (second)
        y[1] = _mm_cvtss_f32(_mm256_extractf128_ps(v, 1));
}

/* Where to prefetch from while block b of two rows is used: the offset to add to
 * a block's address. Behind the last block that is the start of the next two
 * rows, if there are any. */
SIMD_INLINE ptrdiff_t kq_ahead(size_t b, size_t n_blocks, size_t block_bytes,
                               size_t w_stride, bool more_rows)
{
    const size_t step = n_blocks < KQ_AHEAD ? n_blocks : KQ_AHEAD;
    const size_t ahead = step * block_bytes;

    if (b + step < n_blocks)
        return (ptrdiff_t)ahead;
    return more_rows
               ? (ptrdiff_t)(2 * w_stride + ahead) - (ptrdiff_t)(n_blocks * block_bytes)
               : 0;
}

/* Sixteen sums of 16 as eight sums of 32 in both 128-bit lanes (|sum| <= 4064). */
SIMD_INLINE __m256i kq_sums32(const int16_t *sums)
{
    const __m256i pairs = _mm256_madd_epi16(load_256(sums), _mm256_set1_epi16(1));

    return _mm256_permute4x64_epi64(_mm256_packs_epi32(pairs, pairs),
                                    _MM_SHUFFLE(2, 0, 2, 0));
}

/* acc + (u8 weights times x[0..31]) times the scale at word s. */
SIMD_INLINE __m256i kq_add_scaled(__m256i acc, __m256i weights, const int8_t *x,
                                  __m256i scales, int s)
{
    const __m256i sum = _mm256_maddubs_epi16(weights, load_256(x));
    const __m256i scale =
        _mm256_shuffle_epi8(scales, _mm256_set1_epi16((short)(0x0100 + 0x0202 * s)));

    return _mm256_add_epi32(acc, _mm256_madd_epi16(sum, scale));
}

/* d and dmin of two heads times dx, each in all of one 128-bit lane. */
SIMD_INLINE void kq_load_d(__m128i head0, __m128i head1, float dx, __m256 *d,
                           __m256 *dmin)
{
    const __m256 both = _mm256_mul_ps(
        _mm256_set_m128(_mm_cvtph_ps(head1), _mm_cvtph_ps(head0)), _mm256_set1_ps(dx));

    *d = _mm256_permute_ps(both, _MM_SHUFFLE(0, 0, 0, 0));
    *dmin = _mm256_permute_ps(both, _MM_SHUFFLE(1, 1, 1, 1));
}

/* y[0..n_rows) for a format with the 16-byte head d, dmin, six-bit integers. */
SIMD_INLINE void kq_gemv_affine(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y, size_t block_bytes,
                                kq_row_dot_fn *row_dot)
{
    const size_t n_blocks = k / KQ_ELEMS;

    for (size_t i = 0; i < n_rows; i += 2) {
        const bool second = i + 1 < n_rows; /* else the last row is done twice */
        const uint8_t *row0 = (const uint8_t *)w + i * w_stride;
        const uint8_t *row1 = row0 + (second ? w_stride : 0);
        __m256 acc = _mm256_setzero_ps();

        for (size_t b = 0; b < n_blocks; b++) {
            const uint8_t *block0 = row0 + b * block_bytes,
                          *block1 = row1 + b * block_bytes;
            const ptrdiff_t ahead =
                kq_ahead(b, n_blocks, block_bytes, w_stride, i + 2 < n_rows);
            const int8_t *q = act_q(x) + KQ_ELEMS * b;
            const __m128i head0 = load_128(block0);
            const __m128i head1 = load_128(block1);
            const __m256i six = kq_unpack_six(_mm256_set_m128i(head1, head0));
            const __m256i scales = _mm256_unpacklo_epi8(six, _mm256_setzero_si256());
            const __m256i mins =
                _mm256_madd_epi16(_mm256_unpackhi_epi8(six, _mm256_setzero_si256()),
                                  kq_sums32(act_q8_256_sums(x, k) + KQ_ELEMS / 16 * b));
            const __m256i prod = kq_fold_rows(
                row_dot(block0, q,
                        _mm256_permute4x64_epi64(scales, _MM_SHUFFLE(1, 0, 1, 0))),
                row_dot(block1, q,
                        _mm256_permute4x64_epi64(scales, _MM_SHUFFLE(3, 2, 3, 2))));
            __m256 d, dmin;

            prefetch_lines(block0, ahead, block_bytes);
            prefetch_lines(block1, ahead, block_bytes);
            kq_load_d(head0, head1, act_q8_256_d(x, k)[b], &d, &dmin);
            acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(prod), d, acc);
            acc = _mm256_fnmadd_ps(_mm256_cvtepi32_ps(mins), dmin, acc);
        }
        kq_store_lanes(acc, y + i, second);
    }
}

#endif
