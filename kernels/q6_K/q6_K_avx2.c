/* SPDX-License-Identifier: MIT
 *
 * q6_K_avx2.c - q6_K weights times q8_256 activations with AVX2
 *
 * Weights stay unsigned (0..63); the format's -32 is taken off through the sums
 * of the activations: sum sc*(q - 32)*x = sum sc*q*x - 32 * sum sc*sum(x).
 * gemv range: an int16 lane after vpmaddubsw is at most 2*63*127 = 16002; eight
 * times two of those times 128 are 32772096 per int32 lane. The sums' part is at
 * most 32*2*2032*128 = 16646144 per lane. Eight lanes of both: 395345920 < 2^31.
 * gemm range: see kquant_gemm_avx2.h for 16 bits; in 32 bits prod <=
 * 256*63*127*128 = 262176768, 32 * sum sc*sum(x) <= 32*16*128*2032 = 133169152.
 *
 * Bits move to bits 4 and 5 of their byte by word shifts of at most four; what
 * comes in from the neighbouring byte lands outside those two bits.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_gemm_avx2.h"
#include "kernels/q6_K/q6_K.h"

/* The low nibbles of low_bits with bits 4 and 5 of top. */
SIMD_INLINE __m256i join(__m256i low_bits, __m256i top)
{
    return _mm256_or_si256(_mm256_and_si256(low_bits, _mm256_set1_epi8(15)),
                           _mm256_and_si256(top, _mm256_set1_epi8(48)));
}

/* acc + weights times x[0..31], the first 16 times scale 2i of the eight int16
 * in each lane of scales, the others times scale 2i + 1. */
SIMD_INLINE __m256i add_scaled(__m256i acc, __m256i weights, const int8_t *x,
                               __m256i scales, int i)
{
    const __m256i choose =
        _mm256_set_m128i(_mm_set1_epi16((short)(0x0302 + 0x0404 * i)),
                         _mm_set1_epi16((short)(0x0100 + 0x0404 * i)));
    const __m256i sum = _mm256_maddubs_epi16(weights, load_256(x));

    return _mm256_add_epi32(
        acc, _mm256_madd_epi16(sum, _mm256_shuffle_epi8(scales, choose)));
}

SIMD_INLINE __m256i row_dot(const struct block_q6_K *w, const int8_t *x, __m256i sums)
{
    const __m256i all = _mm256_cvtepi8_epi16(load_128(w->scales));
    const __m256i lower = _mm256_permute2x128_si256(all, all, 0x00);
    const __m256i upper = _mm256_permute2x128_si256(all, all, 0x11);
    __m256i acc = _mm256_setzero_si256();

    SIMD_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m256i scales = h == 0 ? lower : upper;
        const __m256i ql0 = load_256(w->ql + 64 * h);
        const __m256i ql1 = load_256(w->ql + 64 * h + 32);
        const __m256i qh = load_256(w->qh + 32 * h);

        acc = add_scaled(acc, join(ql0, _mm256_slli_epi16(qh, 4)), x + 128 * h, scales,
                         0);
        acc = add_scaled(acc, join(ql1, _mm256_slli_epi16(qh, 2)), x + 128 * h + 32,
                         scales, 1);
        acc = add_scaled(acc, join(_mm256_srli_epi16(ql0, 4), qh), x + 128 * h + 64,
                         scales, 2);
        acc = add_scaled(acc, join(_mm256_srli_epi16(ql1, 4), _mm256_srli_epi16(qh, 2)),
                         x + 128 * h + 96, scales, 3);
    }
    return _mm256_sub_epi32(acc, _mm256_slli_epi32(_mm256_madd_epi16(all, sums), 5));
}

/* d of two blocks, each in one 128-bit lane. */
SIMD_INLINE __m256 load_d(const uint8_t *block0, const uint8_t *block1)
{
    const unsigned h0 = load_u16(block0 + offsetof(struct block_q6_K, d));
    const unsigned h1 = load_u16(block1 + offsetof(struct block_q6_K, d));

    return _mm256_permutevar8x32_ps(
        _mm256_castps128_ps256(_mm_cvtph_ps(_mm_cvtsi32_si128((int)(h0 | h1 << 16)))),
        _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1));
}

void kern_gemv_q6_K__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          const void *x, float *y)
{
    const size_t n_blocks = k / KQ_ELEMS, bytes = sizeof(struct block_q6_K);

    for (size_t i = 0; i < n_rows; i += 2) {
        const bool second = i + 1 < n_rows; /* else the last row is done twice */
        const uint8_t *row0 = (const uint8_t *)w + i * w_stride;
        const uint8_t *row1 = row0 + (second ? w_stride : 0);
        __m256 acc = _mm256_setzero_ps();

        for (size_t b = 0; b < n_blocks; b++) {
            const uint8_t *block0 = row0 + b * bytes, *block1 = row1 + b * bytes;
            const ptrdiff_t ahead =
                kq_ahead(b, n_blocks, bytes, w_stride, i + 2 < n_rows);
            const int8_t *q = act_q(x) + KQ_ELEMS * b;
            const __m256 d = _mm256_mul_ps(load_d(block0, block1),
                                           _mm256_set1_ps(act_q8_256_d(x, k)[b]));
            const __m256i sums = load_256(act_q8_256_sums(x, k) + KQ_ELEMS / 16 * b);
            const __m256i prod = kq_fold_rows(row_dot((const void *)block0, q, sums),
                                              row_dot((const void *)block1, q, sums));

            prefetch_lines(block0, ahead, bytes);
            prefetch_lines(block1, ahead, bytes);
            acc = _mm256_fmadd_ps(_mm256_cvtepi32_ps(prod), d, acc);
        }
        kq_store_lanes(acc, y + i, second);
    }
}

/* Scale factors of eight rows: four of the int8 in each of four dwords. */
SIMD_INLINE void unpack_scales(const __m256i packed[4], struct kq_tile *tile)
{
    SIMD_UNROLL
    for (int j = 0; j < 4; j++) {
        __m256i sc[4]; /* int32 */

        sc[0] = _mm256_srai_epi32(_mm256_slli_epi32(packed[j], 24), 24);
        sc[1] = _mm256_srai_epi32(_mm256_slli_epi32(packed[j], 16), 24);
        sc[2] = _mm256_srai_epi32(_mm256_slli_epi32(packed[j], 8), 24);
        sc[3] = _mm256_srai_epi32(packed[j], 24);
        for (int i = 0; i < 4; i++) { /* two int16 in one int32 */
            const __m256i upper = _mm256_slli_epi32(sc[i], 16);

            tile->scale[4 * j + i] = _mm256_blend_epi16(sc[i], upper, 0xaa);
            if (i % 2 == 1)
                tile->pair[2 * j + i / 2] = _mm256_blend_epi16(sc[i - 1], upper, 0xaa);
        }
    }
}

SIMD_INLINE void unpack_tile(const uint8_t *const row[8], size_t at,
                             struct kq_tile *tile)
{
    __m256i tail[4];

    /* The last 16 bytes of the block end with d. */
    kq_load_dwords(row, at + sizeof(struct block_q6_K) - 16, tail);
    tile->d = kq_low_half(_mm256_srli_epi32(tail[3], 16));
    kq_load_dwords(row, at + offsetof(struct block_q6_K, scales), tail);
    unpack_scales(tail, tile);
    for (size_t h = 0; h < 2; h++) {
        __m256i qh[8];

        kq_load_dwords(row, at + offsetof(struct block_q6_K, qh) + 32 * h, qh);
        kq_load_dwords(row, at + offsetof(struct block_q6_K, qh) + 32 * h + 16, qh + 4);
        SIMD_UNROLL
        for (size_t m = 0; m < 4;
             m++) { /* 16 bytes of ql: weights 16m.. and 64+16m.. */
            __m256i *low = tile->q + 32 * h + 4 * m, *high = low + 16;
            __m256i ql[4];

            kq_load_dwords(row, at + 64 * h + 16 * m, ql);
            SIMD_UNROLL
            for (int j = 0; j < 4; j++) {
                const __m256i top = qh[m % 2 * 4 + j];

                low[j] = join(ql[j], _mm256_slli_epi16(top, m < 2 ? 4 : 2));
                high[j] = join(_mm256_srli_epi16(ql[j], 4),
                               m < 2 ? top : _mm256_srli_epi16(top, 2));
            }
        }
    }
}

void kern_gemm_q6_K__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          size_t n_cols, const void *x, size_t x_stride, float *y,
                          size_t y_stride)
{
    const struct kq_gemm_format format = {sizeof(struct block_q6_K), 16, 2, false,
                                          unpack_tile};

    if (n_cols == 1)
        kern_gemv_q6_K__avx2(n_rows, k, w, w_stride, x, y);
    else
        kq_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
