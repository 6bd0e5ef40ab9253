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

/* As 16-bit words, block b has its scale at word 9b and its quants at 9b + 1 to
 * 9b + 8, the last of them word 35. Words above 31 come from a second load that
 * starts at word 4, where they count from 32 + 28. */
static const int16_t quant_words[32] __attribute__((aligned(64))) = {
    1,  2,  3,  4,  5,  6,  7,  8,  10, 11, 12, 13, 14, 15, 16, 17,
    19, 20, 21, 22, 23, 24, 25, 26, 28, 29, 30, 31, 60, 61, 62, 63,
};

SIMD_INLINE struct q32_weights unpack(const uint8_t *w)
{
    const __m512i scale_words = _mm512_castsi256_si512(
        _mm256_setr_epi16(0, 0, 0, 0, 9, 9, 9, 9, 18, 18, 18, 18, 27, 27, 27, 27));
    const __m512i nibble = _mm512_set1_epi8(15);
    const __m512i first = load_512(w), last = load_512(w + 4 * BLOCK - 64);
    const __m512i q = _mm512_permutex2var_epi16(first, load_512(quant_words), last);
    const __m512i d = _mm512_permutexvar_epi16(scale_words, first);

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
