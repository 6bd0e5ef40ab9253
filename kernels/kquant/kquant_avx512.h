/* SPDX-License-Identifier: MIT
 *
 * kquant_avx512.h - AVX-512 VNNI frames of the K-quant kernels
 *
 * gemv: four rows at a time. A row's products are accumulated in sixteen int32
 * lanes and the four rows are then folded so that 128-bit lane r holds four
 * partial sums of row r. Half scales, six-bit integers and minima of the four
 * rows are taken apart together in the same arrangement: lane r for row r.
 *
 * Scales are applied in integers: vpmaddubsw leaves int16 sums of two products,
 * vpdpwssd multiplies them by the sub-block's scale and adds to int32.
 *
 * gemm is in kquant_gemm_avx512.h.
 */
#ifndef SLM_KERNELS_KQUANT_AVX512_H
#define SLM_KERNELS_KQUANT_AVX512_H

#include <stdbool.h>

#include "kernels/activations/activations.h"
#include "kernels/half.h"
#include "kernels/kquant/kquant.h"
#include "kernels/simd/avx512.h"

/* vpternlogd table: third operand's bits choose the first operand, else the
 * second. */
#define KQ_SELECT 0xe4

/* Software prefetch runs this many super-blocks ahead in each of four rows, and
 * goes on in the next four: the hardware's stream prefetchers stop at every
 * 4 KiB page. It asks for the second level only: lines on their way to the first
 * hold its few miss buffers for the whole latency of memory. */
enum { KQ_AHEAD = 16 };

/* One super-block of the activation column. */
struct kq_x {
    __m512i low[2];  /* [values 0..31 | 64..95], [128..159 | 192..223] */
    __m512i high[2]; /* [values 32..63 | 96..127], [160..191 | 224..255] */
};

/* Integer products of one block, scaled; scales has a row's eight scales as
 * int16 in every 128-bit lane. */
typedef __m512i kq_row_dot_fn(const uint8_t *block, const struct kq_x *x,
                              __m512i scales);

/* The twelve packed bytes of every 128-bit lane (behind d and dmin) become eight
 * scales (bytes 0..7) and eight minima (bytes 8..15). */
SIMD_INLINE __m512i kq_unpack_six(__m512i head)
{
    const __m512i mask_low =
        _mm512_set4_epi32(0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f);
    const __m512i acbc = _mm512_shuffle_epi32(head, _MM_SHUFFLE(3, 2, 3, 1));
    const __m512i a_b = _mm512_shuffle_epi32(head, _MM_SHUFFLE(2, 2, 1, 1));
    const __m512i low = _mm512_srlv_epi32(acbc, _mm512_set4_epi32(4, 0, 0, 0));
    const __m512i top = _mm512_srli_epi32(a_b, 2);

    return _mm512_and_si512(_mm512_ternarylogic_epi32(low, top, mask_low, KQ_SELECT),
                            _mm512_set1_epi8(0x3f));
}

/* Lane r of the result is the sum of the four 128-bit lanes of acc[r]. */
SIMD_INLINE __m512i kq_fold_rows(const __m512i acc[4])
{
    const __m512i s01 = _mm512_add_epi32(_mm512_shuffle_i32x4(acc[0], acc[1], 0x44),
                                         _mm512_shuffle_i32x4(acc[0], acc[1], 0xee));
    const __m512i s23 = _mm512_add_epi32(_mm512_shuffle_i32x4(acc[2], acc[3], 0x44),
                                         _mm512_shuffle_i32x4(acc[2], acc[3], 0xee));

    return _mm512_add_epi32(_mm512_shuffle_i32x4(s01, s23, 0x88),
                            _mm512_shuffle_i32x4(s01, s23, 0xdd));
}

/* Four sums, one per 128-bit lane. */
SIMD_INLINE __m128 kq_sum_lanes(__m512 v)
{
    v = _mm512_add_ps(v, _mm512_permute_ps(v, _MM_SHUFFLE(2, 3, 0, 1)));
    v = _mm512_add_ps(v, _mm512_permute_ps(v, _MM_SHUFFLE(1, 0, 3, 2)));
    return _mm512_castps512_ps128(
        _mm512_permutexvar_ps(_mm512_set4_epi32(12, 8, 4, 0), v));
}

/* Row i, or the last row where there is none. */
SIMD_INLINE const uint8_t *kq_row(const void *w, size_t w_stride, size_t i,
                                  size_t n_rows)
{
    return (const uint8_t *)w + (i < n_rows ? i : n_rows - 1) * w_stride;
}

/* Where to prefetch from while block b of four rows starting at row[0..3] is
 * used: the offset to add to a block's address. Behind the last block that is
 * the start of the next four rows, if there are any. */
SIMD_INLINE ptrdiff_t kq_ahead(size_t b, size_t n_blocks, size_t block_bytes,
                               size_t w_stride, bool more_rows)
{
    const size_t step = n_blocks < KQ_AHEAD ? n_blocks : KQ_AHEAD;
    const size_t ahead = step * block_bytes;

    if (b + step < n_blocks)
        return (ptrdiff_t)ahead;
    return more_rows
               ? (ptrdiff_t)(4 * w_stride + ahead) - (ptrdiff_t)(n_blocks * block_bytes)
               : 0;
}

/* Sixteen sums of 16 as eight sums of 32 in every 128-bit lane (|sum| <= 4064). */
SIMD_INLINE __m512i kq_sums32(const int16_t *sums)
{
    const __m256i pairs = _mm256_madd_epi16(load_256(sums), _mm256_set1_epi16(1));

    return _mm512_broadcast_i32x4(_mm256_cvtepi32_epi16(pairs));
}

SIMD_INLINE struct kq_x kq_load_x(const int8_t *q)
{
    struct kq_x x;

    for (int i = 0; i < 2; i++) {
        const __m512i a = load_512(q + 128 * i);
        const __m512i b = load_512(q + 128 * i + 64);

        x.low[i] = _mm512_shuffle_i64x2(a, b, 0x44);
        x.high[i] = _mm512_shuffle_i64x2(a, b, 0xee);
    }
    return x;
}

/* acc + (u8 weights times activations) times scale, where lanes 0, 1 take the
 * scale at word `first` of the row's eight and lanes 2, 3 the one at first + 2. */
SIMD_INLINE __m512i kq_add_scaled(__m512i acc, __m512i weights, __m512i x,
                                  __m512i scales, int first)
{
    const __m512i choose = _mm512_add_epi16(
        _mm512_set1_epi16((short)(0x0100 + 0x0202 * first)),
        _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(0x0404), 1));

    return _mm512_dpwssd_epi32(acc, _mm512_maddubs_epi16(weights, x),
                               _mm512_shuffle_epi8(scales, choose));
}

/* What the heads of four blocks say, lane r for row r. */
struct kq_heads {
    __m512i scales; /* eight int16 */
    __m512i mins;   /* eight int16 */
    __m512 d, dmin; /* times the column's scale, four times each */
};

SIMD_INLINE struct kq_heads kq_load_heads(const uint8_t *const row[4], size_t at,
                                          float dx)
{
    /* Words 0 (d) and 1 (dmin) of lane r, four times each. */
    const __m512i pick = _mm512_inserti64x4(
        _mm512_castsi256_si512(
            _mm256_setr_epi16(0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24)),
        _mm256_setr_epi16(1, 1, 1, 1, 9, 9, 9, 9, 17, 17, 17, 17, 25, 25, 25, 25), 1);
    const __m512i head = load_4x128(row[0] + at, row[1] + at, row[2] + at, row[3] + at);
    const __m512i six = kq_unpack_six(head);
    const __m512i halves = _mm512_permutexvar_epi16(pick, head);
    const __m512 d = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    const __m512 dmin = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));

    return (struct kq_heads){
        .scales = _mm512_unpacklo_epi8(six, _mm512_setzero_si512()),
        .mins = _mm512_unpackhi_epi8(six, _mm512_setzero_si512()),
        .d = _mm512_mul_ps(d, _mm512_set1_ps(dx)),
        .dmin = _mm512_mul_ps(dmin, _mm512_set1_ps(dx)),
    };
}

/* y[0..n) = four sums (n <= 4), each spread over a 128-bit lane of acc. */
SIMD_INLINE void kq_store_rows(__m512 acc, float *y, size_t n)
{
    _mm_mask_storeu_ps(y, n < 4 ? (__mmask8)((1 << n) - 1) : 15, kq_sum_lanes(acc));
}

/* y[0..n_rows) for a format with the 16-byte head d, dmin, six-bit integers. */
SIMD_INLINE void kq_gemv_affine(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y, size_t block_bytes,
                                kq_row_dot_fn *row_dot)
{
    const size_t n_blocks = k / KQ_ELEMS;

    for (size_t i = 0; i < n_rows; i += 4) {
        const uint8_t *row[4];
        __m512 acc = _mm512_setzero_ps();

        for (size_t r = 0; r < 4; r++)
            row[r] = kq_row(w, w_stride, i + r, n_rows);
        for (size_t b = 0; b < n_blocks; b++) {
            const size_t at = b * block_bytes;
            const ptrdiff_t ahead =
                kq_ahead(b, n_blocks, block_bytes, w_stride, i + 4 < n_rows);
            const struct kq_x xq = kq_load_x(act_q(x) + KQ_ELEMS * b);
            const struct kq_heads h = kq_load_heads(row, at, act_q8_256_d(x, k)[b]);
            const __m512i mins = _mm512_madd_epi16(
                h.mins, kq_sums32(act_q8_256_sums(x, k) + KQ_ELEMS / 16 * b));
            __m512i part[4];

            part[0] = row_dot(row[0] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0x00));
            part[1] = row_dot(row[1] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0x55));
            part[2] = row_dot(row[2] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0xaa));
            part[3] = row_dot(row[3] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0xff));
            for (int r = 0; r < 4; r++)
                prefetch_lines(row[r] + at, ahead, block_bytes);
            acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(kq_fold_rows(part)), h.d, acc);
            acc = _mm512_fnmadd_ps(_mm512_cvtepi32_ps(mins), h.dmin, acc);
        }
        kq_store_rows(acc, y + i, n_rows - i);
    }
}

#endif
