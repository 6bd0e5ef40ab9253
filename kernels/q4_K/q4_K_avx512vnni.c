/* SPDX-License-Identifier: MIT
 *
 * q4_K_avx512vnni.c - q4_K weights times q8_256 activations, AVX-512 VNNI
 *
 * gemv (kquant_avx512.h): 64 bytes of qs are low nibbles of sub-blocks s, s+2
 * and high nibbles of s+1, s+3; the activations are arranged to match.
 * Range: an int16 lane after vpmaddubsw is at most 2*15*127 = 3810; vpdpwssd
 * adds two of those times 63, four times per super-block: 4*2*3810*63 = 1920240.
 * Sixteen lanes together are 30723840 < 2^31; minima below 8*63*4064 = 2048256.
 *
 * gemm (kquant_gemm_avx512.h): a sub-block's dot product is at most 32*15*127 =
 * 60960, times 63, eight times: 30723840 < 2^31.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_gemm_avx512.h"
#include "kernels/q4_K/q4_K.h"

SIMD_INLINE __m512i row_dot(const uint8_t *block, const struct kq_x *x, __m512i scales)
{
    const uint8_t *qs = block + offsetof(struct block_q4_K, qs);
    const __m512i low = _mm512_set1_epi8(15);
    __m512i acc = _mm512_setzero_si512();

    SIMD_UNROLL
    for (int i = 0; i < 2; i++) {
        const __m512i raw = load_512(qs + 64 * i);

        acc = kq_add_scaled(acc, _mm512_and_si512(raw, low), x->low[i], scales, 4 * i);
        acc = kq_add_scaled(acc, _mm512_and_si512(_mm512_srli_epi16(raw, 4), low),
                            x->high[i], scales, 4 * i + 1);
    }
    return acc;
}

SIMD_INLINE void unpack_tile(const uint8_t *const row[16], size_t at,
                             struct kq_tile *tile)
{
    const __m512i low = _mm512_set1_epi8(15);

    kq_unpack_head(row, at, tile);
    for (size_t i = 0; i < 8; i++) { /* 16 bytes: half of two sub-blocks */
        __m512i *even = tile->q + i / 2 * 16 + i % 2 * 4, *odd = even + 8;
        __m512i raw[4];

        kq_load_dwords(row, at + offsetof(struct block_q4_K, qs) + 16 * i, raw);
        for (int j = 0; j < 4; j++) {
            even[j] = _mm512_and_si512(raw[j], low);
            odd[j] = _mm512_and_si512(_mm512_srli_epi16(raw[j], 4), low);
        }
    }
}

void kern_gemv_q4_K__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y)
{
    kq_gemv_affine(n_rows, k, w, w_stride, x, y, sizeof(struct block_q4_K), row_dot);
}

void kern_gemm_q4_K__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                size_t n_cols, const void *x, size_t x_stride, float *y,
                                size_t y_stride)
{
    const struct kq_gemm_format format = {sizeof(struct block_q4_K), 8, true,
                                          unpack_tile};

    if (n_cols == 1)
        kern_gemv_q4_K__avx512vnni(n_rows, k, w, w_stride, x, y);
    else
        kq_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
