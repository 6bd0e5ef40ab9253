/* SPDX-License-Identifier: MIT
 *
 * q5_K_avx512vnni.c - q5_K weights times q8_256 activations, AVX-512 VNNI
 *
 * As q4_K, with the fifth bit brought in from qh. A word shift moves bit s of a
 * byte to bit 4 of the same byte (a shift by at most 4 cannot carry a foreign
 * bit as far as bit 4 from either side); what else it moves is masked off.
 * gemv range: an int16 lane after vpmaddubsw is at most 2*31*127 = 7874, a lane
 * of the super-block's sum 4*2*7874*63 = 3968496, sixteen lanes together
 * 63495936 < 2^31; minima below 8*63*4064 = 2048256.
 * gemm range: 8 * 32*31*127 * 63 = 63495936 < 2^31.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_gemm_avx512.h"
#include "kernels/q5_K/q5_K.h"

/* Four low bits from nibbles, the fifth from bit 4 of top. */
SIMD_INLINE __m512i join(__m512i nibbles, __m512i top)
{
    const __m512i both =
        _mm512_ternarylogic_epi32(nibbles, top, _mm512_set1_epi8(15), KQ_SELECT);

    return _mm512_and_si512(both, _mm512_set1_epi8(31));
}

/* Word shift counts: one for the lower, one for the upper 256 bits. */
SIMD_INLINE __m512i counts(short lower, short upper)
{
    return _mm512_inserti64x4(_mm512_set1_epi16(lower), _mm256_set1_epi16(upper), 1);
}

SIMD_INLINE __m512i row_dot(const uint8_t *block, const struct kq_x *x, __m512i scales)
{
    const uint8_t *qs = block + offsetof(struct block_q5_K, qs);
    const __m512i qh =
        _mm512_broadcast_i64x4(load_256(block + offsetof(struct block_q5_K, qh)));
    const __m512i raw0 = load_512(qs), raw1 = load_512(qs + 64);
    __m512i acc = _mm512_setzero_si512();

    acc = kq_add_scaled(acc, join(raw0, _mm512_sllv_epi16(qh, counts(4, 2))), x->low[0],
                        scales, 0);
    acc = kq_add_scaled(
        acc, join(_mm512_srli_epi16(raw0, 4), _mm512_sllv_epi16(qh, counts(3, 1))),
        x->high[0], scales, 1);
    acc = kq_add_scaled(acc, join(raw1, _mm512_srlv_epi16(qh, counts(0, 2))), x->low[1],
                        scales, 4);
    acc = kq_add_scaled(
        acc, join(_mm512_srli_epi16(raw1, 4), _mm512_srlv_epi16(qh, counts(1, 3))),
        x->high[1], scales, 5);
    return acc;
}

SIMD_INLINE __m512i fifth_bit(__m512i qh, int s)
{
    return s < 4 ? _mm512_slli_epi16(qh, (unsigned)(4 - s))
                 : _mm512_srli_epi16(qh, (unsigned)(s - 4));
}

SIMD_INLINE void unpack_tile(const uint8_t *const row[16], size_t at,
                             struct kq_tile *tile)
{
    __m512i qh[8];

    kq_unpack_head(row, at, tile);
    kq_load_dwords(row, at + offsetof(struct block_q5_K, qh), qh);
    kq_load_dwords(row, at + offsetof(struct block_q5_K, qh) + 16, qh + 4);
    SIMD_UNROLL
    for (int i = 0; i < 8; i++) { /* 16 bytes: half of two sub-blocks */
        __m512i *even = tile->q + i / 2 * 16 + i % 2 * 4, *odd = even + 8;
        const int s = i / 2 * 2;
        __m512i raw[4];

        kq_load_dwords(row, at + offsetof(struct block_q5_K, qs) + 16 * (size_t)i, raw);
        SIMD_UNROLL
        for (int j = 0; j < 4; j++) {
            const __m512i top = qh[i % 2 * 4 + j];

            even[j] = join(raw[j], fifth_bit(top, s));
            odd[j] = join(_mm512_srli_epi16(raw[j], 4), fifth_bit(top, s + 1));
        }
    }
}

void kern_gemv_q5_K__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y)
{
    kq_gemv_affine(n_rows, k, w, w_stride, x, y, sizeof(struct block_q5_K), row_dot);
}

void kern_gemm_q5_K__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                size_t n_cols, const void *x, size_t x_stride, float *y,
                                size_t y_stride)
{
    const struct kq_gemm_format format = {sizeof(struct block_q5_K), 8, true,
                                          unpack_tile};

    if (n_cols == 1)
        kern_gemv_q5_K__avx512vnni(n_rows, k, w, w_stride, x, y);
    else
        kq_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
