/* SPDX-License-Identifier: MIT
 *
 * q5_K_avx2.c - q5_K weights times q8_256 activations with AVX2
 *
 * As q4_K, with the fifth bit brought in from qh. A word shift moves bit s of a
 * byte to bit 4 of the same byte (a shift by at most 4 cannot carry a foreign
 * bit as far as bit 4 from either side); what else it moves is masked off.
 * gemv range: an int16 lane after vpmaddubsw is at most 2*31*127 = 7874, a lane
 * of the super-block's sum 8*2*7874*63 = 7936992, eight lanes together 63495936 <
 * 2^31; minima below 8*63*4064 = 2048256.
 * gemm range: see kquant_gemm_avx2.h for 16 bits; a row's 32-bit sums as above.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_gemm_avx2.h"
#include "kernels/q5_K/q5_K.h"

/* Nibbles (0..15) with bit s of qh on top. */
SIMD_INLINE __m256i join(__m256i nibbles, __m256i qh, int s)
{
    const __m256i top =
        s < 4 ? _mm256_slli_epi16(qh, 4 - s) : _mm256_srli_epi16(qh, s - 4);

    return _mm256_or_si256(nibbles, _mm256_and_si256(top, _mm256_set1_epi8(16)));
}

SIMD_INLINE __m256i row_dot(const uint8_t *block, const int8_t *x, __m256i scales)
{
    const uint8_t *qs = block + offsetof(struct block_q5_K, qs);
    const __m256i qh = load_256(block + offsetof(struct block_q5_K, qh));
    const __m256i low = _mm256_set1_epi8(15);
    __m256i acc = _mm256_setzero_si256();

    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i raw = load_256(qs + 32 * i);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(raw, 4), low);

        acc = kq_add_scaled(acc, join(_mm256_and_si256(raw, low), qh, 2 * i),
                            x + 64 * i, scales, 2 * i);
        acc = kq_add_scaled(acc, join(high, qh, 2 * i + 1), x + 64 * i + 32, scales,
                            2 * i + 1);
    }
    return acc;
}

SIMD_INLINE void unpack_tile(const uint8_t *const row[8], size_t at,
                             struct kq_tile *tile)
{
    const __m256i low = _mm256_set1_epi8(15);
    __m256i qh[8];

    kq_unpack_head(row, at, tile);
    kq_load_dwords(row, at + offsetof(struct block_q5_K, qh), qh);
    kq_load_dwords(row, at + offsetof(struct block_q5_K, qh) + 16, qh + 4);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) { /* 16 bytes: half of two sub-blocks */
        __m256i *even = tile->q + i / 2 * 16 + i % 2 * 4, *odd = even + 8;
        const int s = i / 2 * 2;
        __m256i raw[4];

        kq_load_dwords(row, at + offsetof(struct block_q5_K, qs) + 16 * (size_t)i, raw);
        SIMD_UNROLL
        for (int j = 0; j < 4; j++) {
            const __m256i high = _mm256_and_si256(_mm256_srli_epi16(raw[j], 4), low);

            even[j] = join(_mm256_and_si256(raw[j], low), qh[i % 2 * 4 + j], s);
            odd[j] = join(high, qh[i % 2 * 4 + j], s + 1);
        }
    }
}

void kern_gemv_q5_K__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          const void *x, float *y)
{
    kq_gemv_affine(n_rows, k, w, w_stride, x, y, sizeof(struct block_q5_K), row_dot);
}

void kern_gemm_q5_K__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          size_t n_cols, const void *x, size_t x_stride, float *y,
                          size_t y_stride)
{
    const struct kq_gemm_format format = {sizeof(struct block_q5_K), 8, 4, true,
                                          unpack_tile};

    if (n_cols == 1)
        kern_gemv_q5_K__avx2(n_rows, k, w, w_stride, x, y);
    else
        kq_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
