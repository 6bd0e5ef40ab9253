/* SPDX-License-Identifier: MIT
 *
 * x16_block_rows.h - one column times rows in file order, blocks of 32, 256-bit
 *                    registers
 *
 * Interleaving rows costs more than multiplying them once. Here a block of one row
 * is a vector: its 32 products with the column become eight 32-bit sums, a float each,
 * times d * dx. Four rows share what is loaded of the column. The block scales of
 * sixteen blocks are collected by interleaving, and converted to floats as vectors: m *
 * s is then one product for sixteen blocks.
 *
 * Range: as argued by each format for the sum of all 32 products; pairs in 16 bits are
 * at most 2 * 128 * 127 < 2^15, the bias's part of them at most 2 * 16 * 127.
 */
#ifndef SLM_KERNELS_SIMD_X16_BLOCK_ROWS_H
#define SLM_KERNELS_SIMD_X16_BLOCK_ROWS_H

#include "kernels/simd/x16_block_format.h"

#if V_BLOCK_ROWS

enum {
    ROWS_AT_ONCE = 4,
    ROWS_BATCH = 16, /* blocks whose scales are read together */
};

/* Bytes of 16 where the row's qh has a bit, added to 32 nibbles. */
SIMD_INLINE __m256i block_rows_fifth(__m256i nibbles, const uint8_t *qh)
{
    uint32_t bits;

    memcpy(&bits, qh, sizeof(bits));
#ifdef __AVX512BW__
    return _mm256_mask_add_epi8(nibbles, bits, nibbles, _mm256_set1_epi8(16));
#else
    const __m256i byte = _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202,
                                            0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    const __m256i spread = _mm256_shuffle_epi8(_mm256_set1_epi32((int)bits), byte);
    const __m256i has = _mm256_cmpeq_epi8(_mm256_and_si256(spread, bit), bit);

    return _mm256_add_epi8(nibbles, _mm256_and_si256(has, _mm256_set1_epi8(16)));
#endif
}

/* A block's 32 weights as x16_dot() takes them. */
SIMD_INLINE __m256i block_rows_weights(const struct x16_block_format *f,
                                       const uint8_t *body)
{
    const __m256i shifts = _mm256_setr_epi32(0, 0, 0, 0, 4, 4, 4, 4);
    const bool five = f->row == X16_ROW_FIVE;
    __m256i w;

    if (f->row == X16_ROW_BYTES) {
        w = load_256(body);
        return V_SIGNED ? w : _mm256_xor_si256(w, _mm256_set1_epi8(-128));
    }
    w = _mm256_broadcastsi128_si256(load_128(body + (five ? 4 : 0)));
    w = _mm256_and_si256(_mm256_srlv_epi32(w, shifts), _mm256_set1_epi8(15));
    return five ? block_rows_fifth(w, body) : w;
}

/* What the bias adds to every sum of products; in pairs of 16-bit sums where there is
 * no dot instruction. Taken off lane by lane, or lanes would be large and their sum
 * small. */
SIMD_INLINE __m256i block_rows_bias(const struct x16_block_format *f, __m256i x)
{
    const __m256i bias = _mm256_set1_epi8((char)f->bias);

#if V_DOT32
    return dpbusd_256(_mm256_setzero_si256(), bias, x);
#else
    return _mm256_maddubs_epi16(bias, x);
#endif
}

/* Eight sums of four products, less the bias's. */
SIMD_INLINE __m256i block_rows_dot(const struct x16_block_format *f, __m256i less,
                                   __m256i w, __m256i x)
{
#if V_DOT32
    if (f->bias == 0)
        return dpbusd_256(_mm256_setzero_si256(), w, x);
    return dpbusd_256(_mm256_sub_epi32(_mm256_setzero_si256(), less), w, x);
#else
    __m256i pairs;

    if (f->is_signed)
        pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    else
        pairs = _mm256_maddubs_epi16(w, x);
    if (f->bias != 0)
        pairs = _mm256_sub_epi16(pairs, less);
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
#endif
}

/* The block scales of n blocks of one row: scale = d * dx; returns the sum of m * s.
 * The 16 bytes from the first scale on lie within its block; behind block n the last
 * one is read. */
SIMD_INLINE __m256 block_rows_scales(const struct x16_block_format *f, size_t n,
                                     const uint8_t *block, const float *dx,
                                     const float *s, float *scale)
{
    __m256 sum = _mm256_setzero_ps();
    __m128i two[8], four[4];

    SIMD_UNROLL
    for (size_t i = 0; i < 8; i++) { /* d d m m */
        const size_t a = 2 * i < n ? 2 * i : n - 1,
                     b = 2 * i + 1 < n ? 2 * i + 1 : n - 1;

        two[i] = _mm_unpacklo_epi16(
            load_128(block + a * f->layout.block_bytes + f->layout.scale_at[0]),
            load_128(block + b * f->layout.block_bytes + f->layout.scale_at[0]));
    }
    SIMD_UNROLL
    for (size_t i = 0; i < 4; i++) /* d d d d m m m m */
        four[i] = _mm_unpacklo_epi32(two[2 * i], two[2 * i + 1]);
    SIMD_UNROLL
    for (size_t i = 0; i < 2; i++) {
        const __m128i d = _mm_unpacklo_epi64(four[2 * i], four[2 * i + 1]);
        const __m128i m = _mm_unpackhi_epi64(four[2 * i], four[2 * i + 1]);

        _mm256_storeu_ps(scale + 8 * i, _mm256_mul_ps(_mm256_cvtph_ps(d),
                                                      _mm256_loadu_ps(dx + 8 * i)));
        if (f->has_m)
            sum = _mm256_fmadd_ps(_mm256_cvtph_ps(m), _mm256_loadu_ps(s + 8 * i), sum);
    }
    return sum;
}

/* acc[r] += n blocks of four rows from block b on; n <= ROWS_BATCH. */
SIMD_INLINE void block_rows_step(const struct x16_block_format *f, size_t n,
                                 const uint8_t *const *row, const char *x, size_t k,
                                 size_t b, __m256 *acc)
{
    const float *dx = act_q8_32_d(x, k) + b, *s = act_q8_32_s(x, k) + b;
    float scale[ROWS_AT_ONCE][ROWS_BATCH];
    float padded[2][ROWS_BATCH] = {{0}};

    if (n < ROWS_BATCH) {
        dx = memcpy(padded[0], dx, n * sizeof(float));
        s = memcpy(padded[1], s, n * sizeof(float));
    }
    SIMD_UNROLL
    for (size_t r = 0; r < ROWS_AT_ONCE; r++) {
        const __m256 more = block_rows_scales(f, n, row[r] + b * f->layout.block_bytes,
                                              dx, s, scale[r]);

        if (f->has_m)
            acc[r] = _mm256_add_ps(acc[r], more);
    }
    SIMD_IN_MEMORY(scale);
    for (size_t i = 0; i < n; i++) {
        const size_t at = (b + i) * f->layout.block_bytes + f->layout.body_at;
        const __m256i xq = load_256(act_q(x) + X16_BLOCK * (b + i));
        const __m256i less =
            f->bias == 0 ? _mm256_setzero_si256() : block_rows_bias(f, xq);

        SIMD_UNROLL
        for (size_t r = 0; r < ROWS_AT_ONCE; r++) {
            const __m256i dot =
                block_rows_dot(f, less, block_rows_weights(f, row[r] + at), xq);

            acc[r] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot),
                                     _mm256_set1_ps(scale[r][i]), acc[r]);
        }
    }
}

/* Four sums of eight. */
SIMD_INLINE __m128 block_rows_sums(const __m256 acc[ROWS_AT_ONCE])
{
    const __m256 s =
        _mm256_hadd_ps(_mm256_hadd_ps(acc[0], acc[1]), _mm256_hadd_ps(acc[2], acc[3]));

    return _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
}

/* Rows that are used next lie four rows on: their lines are prefetched meanwhile. */
SIMD_INLINE void block_rows_gemv(const struct x16_block_format *f, size_t n_rows,
                                 size_t k, const void *w, size_t w_stride,
                                 const char *x, float *y)
{
    const size_t n_blocks = k / X16_BLOCK;

    for (size_t i = 0; i < n_rows; i += ROWS_AT_ONCE) {
        const size_t n = n_rows - i < ROWS_AT_ONCE ? n_rows - i : ROWS_AT_ONCE;
        const uint8_t *row[ROWS_AT_ONCE];
        __m256 acc[ROWS_AT_ONCE];
        float sums[ROWS_AT_ONCE];
        size_t b = 0;

        SIMD_UNROLL
        for (size_t r = 0; r < ROWS_AT_ONCE; r++) {
            row[r] = (const uint8_t *)w + (i + (r < n ? r : n - 1)) * w_stride;
            acc[r] = _mm256_setzero_ps();
        }
        for (; b + ROWS_BATCH <= n_blocks; b += ROWS_BATCH) {
            SIMD_UNROLL
            for (size_t r = 0; r < ROWS_AT_ONCE; r++)
                prefetch_lines(row[r] + b * f->layout.block_bytes,
                               (ptrdiff_t)(ROWS_AT_ONCE * w_stride),
                               ROWS_BATCH * f->layout.block_bytes);
            block_rows_step(f, ROWS_BATCH, row, x, k, b, acc);
        }
        if (b < n_blocks)
            block_rows_step(f, n_blocks - b, row, x, k, b, acc);
        _mm_storeu_ps(sums, block_rows_sums(acc));
        memcpy(y + i, sums, n * sizeof(float));
    }
}

#endif
#endif
