/* SPDX-License-Identifier: MIT
 *
 * q6_K_avx512vnni.c - q6_K weights times q8_256 activations, AVX-512 VNNI
 *
 * Weights stay unsigned (0..63); the format's -32 is taken off through the sums
 * of the activations: sum sc*(q - 32)*x = sum sc*q*x - 32 * sum sc*sum(x).
 * gemv range: an int16 lane after vpmaddubsw is at most 2*63*127 = 16002; four
 * times two of those times 128 are 16386048 per int32 lane. -16 * sum(x) is at
 * most 16*2032 = 32512, so it fits int16, and vpdpwssd takes it off twice:
 * 2*2*32512*128 = 16646144 more. A row's true sum is at most 256*32*127*128 =
 * 133169152 < 2^31, and so are partial ones: 16 * (16386048 + 16646144) =
 * 528515072.
 * gemm range: prod <= 256*63*127*128 = 262176768, 32 * sum sc*sum(x) <=
 * 32*16*128*2032 = 133169152.
 *
 * Bits move to bits 4 and 5 of their byte by word shifts of at most four; what
 * comes in from the neighbouring byte lands outside those two bits.
 */
#include "kernels/kernels.h"
#include "kernels/kquant/kquant_gemm_avx512.h"
#include "kernels/q6_K/q6_K.h"

/* Four low bits from nibbles, the others from bits 4 and 5 of top. */
SIMD_INLINE __m512i join(__m512i nibbles, __m512i top)
{
    const __m512i both =
        _mm512_ternarylogic_epi32(nibbles, top, _mm512_set1_epi8(15), KQ_SELECT);

    return _mm512_and_si512(both, _mm512_set1_epi8(63));
}

/* acc + weights 64i..64i+63 times x times scales 4i..4i+3, one per 128 bits. */
SIMD_INLINE __m512i add_scaled(__m512i acc, __m512i weights, const int8_t *x,
                               __m512i scales, int i)
{
    const __m512i four = _mm512_inserti64x4(
        _mm512_castsi256_si512(
            _mm256_inserti128_si256(_mm256_setzero_si256(), _mm_set1_epi16(1), 1)),
        _mm256_inserti128_si256(_mm256_set1_epi16(2), _mm_set1_epi16(3), 1), 1);
    const __m512i choose = _mm512_add_epi16(four, _mm512_set1_epi16((short)(4 * i)));
    const __m512i sum = _mm512_maddubs_epi16(weights, load_512(x + 64 * i));

    return _mm512_dpwssd_epi32(acc, sum, _mm512_permutexvar_epi16(choose, scales));
}

/* sums: -16 times the sixteen sums, then zeros. */
SIMD_INLINE __m512i row_dot(const struct block_q6_K *w, const int8_t *x, __m512i sums)
{
    const __m512i up =
        _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    const __m512i down =
        _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    const __m512i scales =
        _mm512_zextsi256_si512(_mm256_cvtepi8_epi16(load_128(w->scales)));
    __m512i acc = _mm512_dpwssd_epi32(_mm512_setzero_si512(), scales, sums);

    acc = _mm512_dpwssd_epi32(acc, scales, sums);
    SIMD_UNROLL
    for (int h = 0; h < 2; h++) {
        const __m512i ql = load_512(w->ql + 64 * h);
        const __m512i qh = _mm512_broadcast_i64x4(load_256(w->qh + 32 * h));

        acc = add_scaled(acc, join(ql, _mm512_sllv_epi16(qh, up)), x, scales, 2 * h);
        acc =
            add_scaled(acc, join(_mm512_srli_epi16(ql, 4), _mm512_srlv_epi16(qh, down)),
                       x, scales, 2 * h + 1);
    }
    return acc;
}

/* d of four blocks, each in one 128-bit lane. */
SIMD_INLINE __m512 load_d(const uint8_t *const row[4], size_t at)
{
    const size_t d = at + offsetof(struct block_q6_K, d);
    __m128i h = _mm_setzero_si128();

    h = _mm_insert_epi16(h, load_u16(row[0] + d), 0);
    h = _mm_insert_epi16(h, load_u16(row[1] + d), 1);
    h = _mm_insert_epi16(h, load_u16(row[2] + d), 2);
    h = _mm_insert_epi16(h, load_u16(row[3] + d), 3);
    return spread_4_floats(_mm_cvtph_ps(h));
}

void kern_gemv_q6_K__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                const void *x, float *y)
{
    const size_t n_blocks = k / KQ_ELEMS, bytes = sizeof(struct block_q6_K);

    for (size_t i = 0; i < n_rows; i += 4) {
        const uint8_t *row[4];
        __m512 acc = _mm512_setzero_ps();

        for (size_t r = 0; r < 4; r++)
            row[r] = kq_row(w, w_stride, i + r, n_rows);
        for (size_t b = 0; b < n_blocks; b++) {
            const ptrdiff_t ahead =
                kq_ahead(b, n_blocks, bytes, w_stride, i + 4 < n_rows);
            const int8_t *q = act_q(x) + KQ_ELEMS * b;
            const __m512 d = _mm512_mul_ps(load_d(row, bytes * b),
                                           _mm512_set1_ps(act_q8_256_d(x, k)[b]));
            const __m256i sums = load_256(act_q8_256_sums(x, k) + KQ_ELEMS / 16 * b);
            const __m512i sums16 = _mm512_zextsi256_si512(
                _mm256_slli_epi16(_mm256_sub_epi16(_mm256_setzero_si256(), sums), 4));
            __m512i part[4];

            SIMD_UNROLL
            for (int r = 0; r < 4; r++) {
                const uint8_t *block = row[r] + bytes * b;

                part[r] = row_dot((const void *)block, q, sums16);
                prefetch_lines(block, ahead, bytes);
            }
            acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(kq_fold_rows(part)), d, acc);
        }
        kq_store_rows(acc, y + i, n_rows - i);
    }
}

/* Scale factors of sixteen rows: four of the int8 in each of four dwords. */
SIMD_INLINE void unpack_scales(const __m512i packed[4], struct kq_tile *tile)
{
    for (int j = 0; j < 4; j++) {
        const __m512i v = packed[j];

        tile->scale[4 * j] = _mm512_srai_epi32(_mm512_slli_epi32(v, 24), 24);
        tile->scale[4 * j + 1] = _mm512_srai_epi32(_mm512_slli_epi32(v, 16), 24);
        tile->scale[4 * j + 2] = _mm512_srai_epi32(_mm512_slli_epi32(v, 8), 24);
        tile->scale[4 * j + 3] = _mm512_srai_epi32(v, 24);
        for (int i = 0; i < 2; i++) /* two int16 in one int32 */
            tile->pair[2 * j + i] = _mm512_mask_blend_epi16(
                0xaaaaaaaa, tile->scale[4 * j + 2 * i],
                _mm512_slli_epi32(tile->scale[4 * j + 2 * i + 1], 16));
    }
}

SIMD_INLINE void unpack_tile(const uint8_t *const row[16], size_t at,
                             struct kq_tile *tile)
{
    __m512i tail[4];

    /* The last 16 bytes of the block end with d. */
    kq_load_dwords(row, at + sizeof(struct block_q6_K) - 16, tail);
    tile->d = kq_low_half(_mm512_srli_epi32(tail[3], 16));
    kq_load_dwords(row, at + offsetof(struct block_q6_K, scales), tail);
    unpack_scales(tail, tile);
    for (size_t h = 0; h < 2; h++) {
        __m512i qh[8];

        kq_load_dwords(row, at + offsetof(struct block_q6_K, qh) + 32 * h, qh);
        kq_load_dwords(row, at + offsetof(struct block_q6_K, qh) + 32 * h + 16, qh + 4);
        SIMD_UNROLL
        for (size_t m = 0; m < 4;
             m++) { /* 16 bytes of ql: weights 16m.. and 64+16m.. */
            __m512i *low = tile->q + 32 * h + 4 * m, *high = low + 16;
            __m512i ql[4];

            kq_load_dwords(row, at + 64 * h + 16 * m, ql);
            SIMD_UNROLL
            for (int j = 0; j < 4; j++) {
                const __m512i top = qh[m % 2 * 4 + j];

                low[j] = join(ql[j], _mm512_slli_epi16(top, m < 2 ? 4 : 2));
                high[j] = join(_mm512_srli_epi16(ql[j], 4),
                               m < 2 ? top : _mm512_srli_epi16(top, 2));
            }
        }
    }
}

void kern_gemm_q6_K__avx512vnni(size_t n_rows, size_t k, const void *w, size_t w_stride,
                                size_t n_cols, const void *x, size_t x_stride, float *y,
                                size_t y_stride)
{
    const struct kq_gemm_format format = {sizeof(struct block_q6_K), 16, false,
                                          unpack_tile};

    if (n_cols == 1)
        kern_gemv_q6_K__avx512vnni(n_rows, k, w, w_stride, x, y);
    else
        kq_gemm(format, n_rows, k, w, w_stride, n_cols, x, x_stride, y, y_stride);
}
