/* SPDX-License-Identifier: MIT
 *
 * q4_0_avx512vnni.c - q4_0 weights times q8_32 activations with vpdpbusd
 *
 * Nibbles are unsigned already: u = q + 8.
 */
#include "kernels/q4_0/q4_0.h"

#include "kernels/kernels.h"
#include "kernels/simd/avx512vnni_q32.h"

#define BLOCK sizeof(struct block_q4_0)

/* The four scales are 16-bit words 0, 9, 18 and 27 of the 72 bytes. */
SIMD_INLINE struct q32_weights unpack(const uint8_t *w)
{
    const __m512i scale_words = _mm512_castsi256_si512(
        _mm256_setr_epi16(0, 0, 0, 0, 9, 9, 9, 9, 18, 18, 18, 18, 27, 27, 27, 27));
    const __m512i nibble = _mm512_set1_epi8(15);
    const __m512i q =
        load_4x128(w + 2, w + BLOCK + 2, w + 2 * BLOCK + 2, w + 3 * BLOCK + 2);
    const __m512i d = _mm512_permutexvar_epi16(scale_words, load_512(w));

    return (struct q32_weights){
        .lo = _mm512_and_si512(q, nibble),
        .hi = _mm512_and_si512(_mm512_srli_epi16(q, 4), nibble),
        .d = _mm512_cvtph_ps(_mm512_castsi512_si256(d)),
    };
}

static const struct q32_format format = {unpack, BLOCK, 8};

void kern_gemv_q4_0__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y)
{
    q32_gemv(format, n_rows, k, w, w_stride, x, y);
}

void kern_gemm_q4_0__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                size_t n_cols, const void *x, size_t x_stride, float *y,
                                size_t y_stride)
{
    q32_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
