/* SPDX-License-Identifier: MIT
 *
 * kquant_rows.h - q4_K, q5_K and q6_K rows in file order times one column, 512-bit
 *                 registers
 *
 * Interleaving rows costs more than multiplying them once. Here four rows are processed
 * side by side. A row's products are accumulated in sixteen int32 lanes and the
 * four rows are then folded so that 128-bit lane r holds four partial sums of row r.
 * Half scales, six-bit integers and minima of the four rows are taken apart together in
 * the same arrangement: lane r for row r.
 *
 * Scales are applied in integers: vpmaddubsw leaves int16 sums of two products, which
 * are multiplied by the sub-block's scale and added in pairs.
 */
#ifndef SLM_KERNELS_KQUANT_ROWS_H
#define SLM_KERNELS_KQUANT_ROWS_H

#include "kernels/kquant/kquant.h"
#include "kernels/kquant/kquant_pairs.h"
#include "kernels/simd/x16_super.h"

#if defined(KERN_LEVEL_avx512) || defined(KERN_LEVEL_avx512vnni)
#define KQ_ROWS 1

/* The prefetch distance in each of four rows, in super-blocks; it continues in the next
 * four rows. The hardware's stream prefetchers stop at every 4 KiB page. */
enum { KQ_PREFETCH_BLOCKS = 16, KQ_AT_ONCE = 4 };

/* One super-block of the activation column. */
struct kq_x {
    vi low[2];  /* [values 0..31 | 64..95], [128..159 | 192..223] */
    vi high[2]; /* [values 32..63 | 96..127], [160..191 | 224..255] */
};

/* Integer products of one block, scaled; scales has a row's eight scales as int16 in
 * every 128-bit lane. */
typedef vi kq_row_dot_fn(const uint8_t *block, const struct kq_x *x, vi scales);

/* The twelve packed bytes of every 128-bit lane (behind d and dmin) become eight scales
 * (bytes 0..7) and eight minima (bytes 8..15). */
SIMD_INLINE vi kq_unpack_six(vi packed)
{
    const vi low = _mm512_set4_epi32(0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f);
    const vi acbc = _mm512_shuffle_epi32(packed, _MM_SHUFFLE(3, 2, 3, 1));
    const vi a_b = _mm512_shuffle_epi32(packed, _MM_SHUFFLE(2, 2, 1, 1));
    const vi nibbles = _mm512_srlv_epi32(acbc, _mm512_set4_epi32(4, 0, 0, 0));

    return v_and(v_select(low, nibbles, v_srl32(a_b, 2)), v_set1_8(0x3f));
}

/* Lane r of the result is the sum of the four 128-bit lanes of acc[r]. */
SIMD_INLINE vi kq_fold_rows(const vi acc[KQ_AT_ONCE])
{
    const vi s01 = v_add32(_mm512_shuffle_i32x4(acc[0], acc[1], 0x44),
                           _mm512_shuffle_i32x4(acc[0], acc[1], 0xee));
    const vi s23 = v_add32(_mm512_shuffle_i32x4(acc[2], acc[3], 0x44),
                           _mm512_shuffle_i32x4(acc[2], acc[3], 0xee));

    return v_add32(_mm512_shuffle_i32x4(s01, s23, 0x88),
                   _mm512_shuffle_i32x4(s01, s23, 0xdd));
}

/* y[0..n) = four sums (n <= 4), each spread over a 128-bit lane of acc. */
SIMD_INLINE void kq_store_rows(vf acc, float *y, size_t n)
{
    acc = _mm512_add_ps(acc, _mm512_permute_ps(acc, _MM_SHUFFLE(2, 3, 0, 1)));
    acc = _mm512_add_ps(acc, _mm512_permute_ps(acc, _MM_SHUFFLE(1, 0, 3, 2)));
    acc = _mm512_permutexvar_ps(_mm512_set4_epi32(12, 8, 4, 0), acc);
    v_store_some(y, acc, n < KQ_AT_ONCE ? n : KQ_AT_ONCE);
}

/* Rows i to i + 3; the last row where there is none. */
SIMD_INLINE void kq_rows(const void *w, size_t w_stride, size_t i, size_t n_rows,
                         const uint8_t *row[KQ_AT_ONCE])
{
    for (size_t r = 0; r < KQ_AT_ONCE; r++)
        row[r] = (const uint8_t *)w + (i + r < n_rows ? i + r : n_rows - 1) * w_stride;
}

/* What to add to a block's address to get the address to prefetch, while block b of
 * four rows is used. Behind the last block the next four rows start, if there are any.
 */
SIMD_INLINE ptrdiff_t kq_prefetch_offset(size_t b, size_t n_blocks, size_t block_bytes,
                                         size_t w_stride, bool more_rows)
{
    const size_t step = n_blocks < KQ_PREFETCH_BLOCKS ? n_blocks : KQ_PREFETCH_BLOCKS;
    const size_t distance = step * block_bytes;

    if (b + step < n_blocks)
        return (ptrdiff_t)distance;
    return more_rows ? (ptrdiff_t)(KQ_AT_ONCE * w_stride + distance) -
                           (ptrdiff_t)(n_blocks * block_bytes)
                     : 0;
}

/* Sixteen sums of 16 as eight sums of 32 in every 128-bit lane (|sum| <= 4064). */
SIMD_INLINE vi kq_sums32(const int16_t *sums)
{
    const __m256i pairs = _mm256_madd_epi16(load_256(sums), _mm256_set1_epi16(1));

    return _mm512_broadcast_i32x4(_mm256_cvtepi32_epi16(pairs));
}

SIMD_INLINE struct kq_x kq_load_x(const int8_t *q)
{
    struct kq_x x;

    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
        const vi a = v_load(q + 128 * i), b = v_load(q + 128 * i + 64);

        x.low[i] = _mm512_shuffle_i64x2(a, b, 0x44);
        x.high[i] = _mm512_shuffle_i64x2(a, b, 0xee);
    }
    return x;
}

/* acc + (u8 weights times activations) times scale, where 128-bit lanes 0, 1 take the
 * scale at word `first` of the row's eight and lanes 2, 3 the one at first + 2. */
SIMD_INLINE vi kq_add_scaled(vi acc, vi weights, vi x, vi scales, int first)
{
    const vi choose = _mm512_add_epi16(
        _mm512_set1_epi16((short)(0x0100 + 0x0202 * first)),
        _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(0x0404), 1));

    return kq_add_products(acc, _mm512_maddubs_epi16(weights, x),
                           _mm512_shuffle_epi8(scales, choose));
}

/* The scales and minima of four blocks, lane r for row r. */
struct kq_block_scales {
    vi scales;  /* eight int16 */
    vi mins;    /* eight int16 */
    vf d, dmin; /* times the column's scale, four times each */
};

SIMD_INLINE struct kq_block_scales kq_load_scales(const uint8_t *const row[KQ_AT_ONCE],
                                                  size_t at, float dx)
{
    /* words 0 (d) and 1 (dmin) of lane r, four times each */
    const vi pick = _mm512_inserti64x4(
        _mm512_castsi256_si512(
            _mm256_setr_epi16(0, 0, 0, 0, 8, 8, 8, 8, 16, 16, 16, 16, 24, 24, 24, 24)),
        _mm256_setr_epi16(1, 1, 1, 1, 9, 9, 9, 9, 17, 17, 17, 17, 25, 25, 25, 25), 1);
    const vi packed = load_4x128(row[0] + at, row[1] + at, row[2] + at, row[3] + at);
    const vi six = kq_unpack_six(packed);
    const vi halves = _mm512_permutexvar_epi16(pick, packed);
    const vf d = _mm512_cvtph_ps(_mm512_castsi512_si256(halves));
    const vf dmin = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(halves, 1));

    return (struct kq_block_scales){
        .scales = _mm512_unpacklo_epi8(six, v_zero()),
        .mins = _mm512_unpackhi_epi8(six, v_zero()),
        .d = v_mul(d, v_set1_f(dx)),
        .dmin = v_mul(dmin, v_set1_f(dx)),
    };
}

/* y[0..n_rows) for a format whose block begins with d, dmin and twelve bytes of
 * six-bit integers. */
SIMD_INLINE void kq_gemv_affine(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y, size_t block_bytes,
                                kq_row_dot_fn *row_dot)
{
    const size_t n_blocks = k / KQ_ELEMS;

    for (size_t i = 0; i < n_rows; i += KQ_AT_ONCE) {
        const uint8_t *row[KQ_AT_ONCE];
        vf acc = v_zero_f();

        kq_rows(w, w_stride, i, n_rows, row);
        for (size_t b = 0; b < n_blocks; b++) {
            const size_t at = b * block_bytes;
            const ptrdiff_t offset = kq_prefetch_offset(
                b, n_blocks, block_bytes, w_stride, i + KQ_AT_ONCE < n_rows);
            const struct kq_x xq = kq_load_x(act_q(x) + KQ_ELEMS * b);
            const struct kq_block_scales h =
                kq_load_scales(row, at, act_q8_256_d(x, k)[b]);
            const vi mins = _mm512_madd_epi16(
                h.mins, kq_sums32(act_q8_256_sums(x, k) + KQ_ELEMS / 16 * b));
            vi part[KQ_AT_ONCE];

            part[0] = row_dot(row[0] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0x00));
            part[1] = row_dot(row[1] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0x55));
            part[2] = row_dot(row[2] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0xaa));
            part[3] = row_dot(row[3] + at, &xq,
                              _mm512_shuffle_i32x4(h.scales, h.scales, 0xff));
            SIMD_UNROLL
            for (int r = 0; r < KQ_AT_ONCE; r++)
                prefetch_lines(row[r] + at, offset, block_bytes);
            acc = v_fma(v_to_float(kq_fold_rows(part)), h.d, acc);
            acc = v_fnma(v_to_float(mins), h.dmin, acc);
        }
        kq_store_rows(acc, y + i, n_rows - i);
    }
}

/* Of a format whose rows() is kq_gemv_affine() or alike. */
#define KQ_KERNELS(name, format) X16_SUPER_ROW_KERNELS(name, format, rows)
#else
#define KQ_ROWS                  0
#define KQ_KERNELS(name, format) X16_SUPER_KERNELS(name, format)
#endif

#endif
