/* SPDX-License-Identifier: MIT
 *
 * q8_0_avx512vnni.c - q8_0 weights times q8_32 activations with vpdpbusd
 *
 * Flipping the sign bit adds 128: u = q + 128 is 0..255.
 */
#include "kernels/q8_0/q8_0.h"

#include "kernels/kernels.h"
#include "kernels/simd/avx512vnni_q32.h"

#define BLOCK sizeof(struct block_q8_0)

/* Two blocks' quants side by side. */
SIMD_INLINE __m512i load_pair(const uint8_t *w)
{
    return _mm512_inserti64x4(_mm512_castsi256_si512(load_256(w + 2)),
                              load_256(w + BLOCK + 2), 1);
}

/* The four scales are 16-bit words 0, 17, 34 and 51 of the first 128 bytes. */
SIMD_INLINE struct q32_weights unpack(const uint8_t *w)
{
    const __m512i scale_words = _mm512_castsi256_si512(
        _mm256_setr_epi16(0, 0, 0, 0, 17, 17, 17, 17, 34, 34, 34, 34, 51, 51, 51, 51));
    const __m512i sign = _mm512_set1_epi8(-128);
    const __m512i d =
        _mm512_permutex2var_epi16(load_512(w), scale_words, load_512(w + 64));
    const __m512i q01 = load_pair(w), q23 = load_pair(w + 2 * BLOCK);

    return (struct q32_weights){
        .lo = _mm512_xor_si512(_mm512_shuffle_i64x2(q01, q23, 0x88), sign),
        .hi = _mm512_xor_si512(_mm512_shuffle_i64x2(q01, q23, 0xdd), sign),
        .d = _mm512_cvtph_ps(_mm512_castsi512_si256(d)),
    };
}

static const struct q32_format format = {unpack, BLOCK, 128};

void kern_gemv_q8_0__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y)
{
    q32_gemv(format, n_rows, k, w, w_stride, x, y);
}

void kern_gemm_q8_0__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                size_t n_cols, const void *x, size_t x_stride, float *y,
                                size_t y_stride)
{
    q32_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
