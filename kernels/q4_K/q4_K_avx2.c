/* SPDX-License-Identifier: MIT
 *
 * q4_K_avx2.c - q4_K weights times q8_256 activations with AVX2
 *
 * gemv range: an int16 lane after vpmaddubsw is at most 2*15*127 = 3810; vpmaddwd
 * adds two of those times 63, eight times per super-block: 8*2*3810*63 = 3840480.
 * Eight lanes together are 30723840 < 2^31; minima below 8*63*4064 = 2048256.
 * gemm range: see kquant_gemm_avx2.h for 16 bits; a row's 32-bit sums as above.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_gemm_avx2.h"
#include "kernels/q4_K/q4_K.h"

SIMD_INLINE __m256i row_dot(const uint8_t *block, const int8_t *x, __m256i scales)
{
    const uint8_t *qs = block + offsetof(struct block_q4_K, qs);
    const __m256i low = _mm256_set1_epi8(15);
    __m256i acc = _mm256_setzero_si256();

    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const __m256i raw = load_256(qs + 32 * i);
        const __m256i high = _mm256_and_si256(_mm256_srli_epi16(raw, 4), low);

        acc = kq_add_scaled(acc, _mm256_and_si256(raw, low), x + 64 * i, scales, 2 * i);
        acc = kq_add_scaled(acc, high, x + 64 * i + 32, scales, 2 * i + 1);
    }
    return acc;
}

SIMD_INLINE void unpack_tile(const uint8_t *const row[8], size_t at,
                             struct kq_tile *tile)
{
    const __m256i low = _mm256_set1_epi8(15);

    kq_unpack_head(row, at, tile);
    for (size_t i = 0; i < 8; i++) { /* 16 bytes: half of two sub-blocks */
        __m256i *even = tile->q + i / 2 * 16 + i % 2 * 4, *odd = even + 8;
        __m256i raw[4];

        kq_load_dwords(row, at + offsetof(struct block_q4_K, qs) + 16 * i, raw);
        SIMD_UNROLL
        for (int j = 0; j < 4; j++) {
            even[j] = _mm256_and_si256(raw[j], low);
            odd[j] = _mm256_and_si256(_mm256_srli_epi16(raw[j], 4), low);
        }
    }
}

void kern_gemv_q4_K__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          const void *x, float *y)
{
    kq_gemv_affine(n_rows, k, w, w_stride, x, y, sizeof(struct block_q4_K), row_dot);
}

void kern_gemm_q4_K__avx2(size_t n_rows, size_t k, const void *w, size_t w_stride,
                          size_t n_cols, const void *x, size_t x_stride, float *y,
                          size_t y_stride)
{
    const struct kq_gemm_format format = {sizeof(struct block_q4_K), 8, 8, true,
                                          unpack_tile};

    if (n_cols == 1)
        kern_gemv_q4_K__avx2(n_rows, k, w, w_stride, x, y);
    else
        kq_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
