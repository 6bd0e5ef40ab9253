/* SPDX-License-Identifier: MIT
 *
 * q6_K_simd.c - q6_K weights times q8_256 activations, every vector level
 *
 * Weights stay unsigned, 0..63; the format's 32 is the bias. Range: products of a
 * super-block sum to at most 256 * 63 * 127 * 128 = 262176768, the bias takes off at
 * most 32 * 16 * 128 * 2032 = 133169152: below 2^31 also together.
 *
 * Two bits of qh move to bits 4 and 5 by a shift of 16-bit lanes; what comes in from
 * the neighbouring byte is masked off with the rest.
 */
#include "kernels/kquant/kquant_rows.h"
#include "kernels/q6_K/q6_K.h"

enum { DWORD_QH = 32, DWORD_SCALES = 48 };

/* In a panel: the scales, then by twos what a step takes of the low nibbles, and its
 * high bits. */
SIMD_INLINE size_t place(size_t dword)
{
    const size_t j = dword % 8;

    if (dword < DWORD_QH)
        return 4 + 3 * (dword / 16 * 8 + j) + dword / 8 % 2;
    return dword < DWORD_SCALES ? 4 + 3 * ((dword - DWORD_QH) / 8 * 8 + j) + 2
                                : dword - DWORD_SCALES;
}

/* Four low bits of nibbles, bits 4 and 5 of top. With 256 bits to select takes three
 * instructions. */
SIMD_INLINE vi join(vi nibbles, vi top)
{
    if (V_LANES == 8)
        return v_or(v_and(nibbles, v_set1_8(15)), v_and(top, v_set1_8(48)));
    return v_and(v_select(v_set1_8(15), nibbles, top), v_set1_8(63));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const int half = step / 8, j = step % 8;
    const vi a = v_load(body + 64 * (4 + 3 * step));
    const vi b = v_load(body + 64 * (5 + 3 * step));
    const vi qh = v_load(body + 64 * (6 + 3 * step));

    emit(sink, 32 * half + j, join(a, v_sll16(qh, 4)));
    emit(sink, 32 * half + 8 + j, join(b, v_sll16(qh, 2)));
    emit(sink, 32 * half + 16 + j, join(v_srl16(a, 4), qh));
    emit(sink, 32 * half + 24 + j, join(v_srl16(b, 4), v_srl16(qh, 2)));
}

/* What has high nibbles is left at bits 2 to 7, times 4. Of qh two bits are kept and
 * two cleared alternately, so that a shift brings in zeros. */
SIMD_INLINE void wide(const uint8_t *body, int step, x16_emit_fn *emit,
                      const struct x16_sink sink)
{
    const int half = step / 8, j = step % 8;
    const vi low = v_set1_8(0x0f), high = v_set1_8(0x3c);
    const vi a = v_load(body + 64 * (4 + 3 * step));
    const vi b = v_load(body + 64 * (5 + 3 * step));
    const vi qh = v_load(body + 64 * (6 + 3 * step));
    const vi even = v_and(qh, v_set1_8(0x33)), odd = v_and(qh, v_set1_8(-0x34));

    emit(sink, 32 * half + j, v_select(low, a, v_sll16(even, 4)));
    emit(sink, 32 * half + 8 + j, v_select(low, b, v_sll16(odd, 2)));
    emit(sink, 32 * half + 16 + j, v_select(high, v_srl16(a, 2), v_sll16(even, 2)));
    emit(sink, 32 * half + 24 + j, v_select(high, v_srl16(b, 2), odd));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    out->d = v_half(block_scales);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const vi four = v_load(body + 64 * i);

        SIMD_UNROLL
        for (int j = 0; j < 4; j++)
            out->scale[4 * i + j] = v_scale(v_sra32(v_sll32(four, 24 - 8 * j), 24));
    }
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q6_K),
               .body_bytes = offsetof(struct block_q6_K, d),
               .n_scales = 1,
               .scale_bytes = 2,
               .scale_at = {offsetof(struct block_q6_K, d)},
               .place = place},
    .n_subs = 16,
    .max = 63,
    .bias = 32,
    .light = true,
    .steps = 16,
    .weights = weights,
    .wide = wide,
    .shifts = 0x2222000022220000,
    .scales = scales,
};

#if KQ_ROWS
/* acc + weights 64i .. 64i + 63 times x times scales 4i .. 4i + 3, one per 128 bits. */
SIMD_INLINE vi add_scaled(vi acc, vi weights, const int8_t *x, vi scales, int i)
{
    const vi four = _mm512_inserti64x4(
        _mm512_castsi256_si512(
            _mm256_inserti128_si256(_mm256_setzero_si256(), _mm_set1_epi16(1), 1)),
        _mm256_inserti128_si256(_mm256_set1_epi16(2), _mm_set1_epi16(3), 1), 1);
    const vi choose = _mm512_add_epi16(four, _mm512_set1_epi16((short)(4 * i)));

    return kq_add_products(acc, _mm512_maddubs_epi16(weights, v_load(x + 64 * i)),
                           _mm512_permutexvar_epi16(choose, scales));
}

/* less: -16 times the sixteen sums, then zeros; taken off twice. Range: an int16 lane
 * of vpmaddubsw is at most 2 * 63 * 127 = 16002, |less| at most 16 * 2032 = 32512. */
SIMD_INLINE vi row_dot(const struct block_q6_K *w, const int8_t *x, vi less)
{
    const vi up = _mm512_inserti64x4(_mm512_set1_epi16(4), _mm256_set1_epi16(2), 1);
    const vi down = _mm512_inserti64x4(_mm512_setzero_si512(), _mm256_set1_epi16(2), 1);
    const vi scales = _mm512_zextsi256_si512(_mm256_cvtepi8_epi16(load_128(w->scales)));
    vi acc = kq_add_products(kq_add_products(v_zero(), scales, less), scales, less);

    SIMD_UNROLL
    for (int h = 0; h < 2; h++) {
        const vi ql = v_load(w->ql + 64 * h);
        const vi qh = _mm512_broadcast_i64x4(load_256(w->qh + 32 * h));

        acc = add_scaled(acc, join(ql, _mm512_sllv_epi16(qh, up)), x, scales, 2 * h);
        acc = add_scaled(acc, join(v_srl16(ql, 4), _mm512_srlv_epi16(qh, down)), x,
                         scales, 2 * h + 1);
    }
    return acc;
}

/* d of four blocks, four times each. */
SIMD_INLINE vf load_d(const uint8_t *const row[KQ_AT_ONCE], size_t at)
{
    uint64_t all = 0;

    SIMD_UNROLL
    for (size_t r = 0; r < KQ_AT_ONCE; r++) {
        uint16_t d;

        memcpy(&d, row[r] + at + offsetof(struct block_q6_K, d), sizeof(d));
        all |= (uint64_t)d << 16 * r;
    }
    return _mm512_permutexvar_ps(
        _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3),
        _mm512_castps128_ps512(_mm_cvtph_ps(_mm_cvtsi64_si128((long long)all))));
}

SIMD_INLINE void rows(const struct x16_super_format *f, size_t n_rows, size_t k,
                      const void *w, size_t w_stride, const void *x, float *y)
{
    const size_t n_blocks = k / KQ_ELEMS, bytes = f->layout.block_bytes;

    for (size_t i = 0; i < n_rows; i += KQ_AT_ONCE) {
        const uint8_t *row[KQ_AT_ONCE];
        vf acc = v_zero_f();

        kq_rows(w, w_stride, i, n_rows, row);
        for (size_t b = 0; b < n_blocks; b++) {
            const ptrdiff_t offset = kq_prefetch_offset(b, n_blocks, bytes, w_stride,
                                                        i + KQ_AT_ONCE < n_rows);
            const int8_t *q = act_q(x) + KQ_ELEMS * b;
            const vf d = v_mul(load_d(row, bytes * b), v_set1_f(act_q8_256_d(x, k)[b]));
            const __m256i sums = load_256(act_q8_256_sums(x, k) + KQ_ELEMS / 16 * b);
            const vi less = _mm512_zextsi256_si512(
                _mm256_slli_epi16(_mm256_sub_epi16(_mm256_setzero_si256(), sums), 4));
            vi part[KQ_AT_ONCE];

            SIMD_UNROLL
            for (int r = 0; r < KQ_AT_ONCE; r++) {
                const uint8_t *block = row[r] + bytes * b;

                part[r] = row_dot((const void *)block, q, less);
                prefetch_lines(block, offset, bytes);
            }
            acc = v_fma(v_to_float(kq_fold_rows(part)), d, acc);
        }
        kq_store_rows(acc, y + i, n_rows - i);
    }
}

KQ_KERNELS(q6_K, format)
#elif defined(KERN_LEVEL_avx2) || defined(KERN_LEVEL_avxvnni)
/* Rows in file order as they are, 256-bit registers: 32 weights of a row are a vector,
 * two sub-blocks. Its products with the column are 16-bit sums of two, which are
 * multiplied by the sub-blocks' scales and added in pairs. */
enum { ROWS_AT_ONCE = 2 };

/* acc + weights 32i .. 32i + 31 times x times their scales; scales: int16 of sub-blocks
 * 0, 2, ... in the lower half, 1, 3, ... in the upper one. */
SIMD_INLINE vi add_scaled(vi acc, vi weights, const int8_t *x, vi scales, int i)
{
    const vi choose = _mm256_set1_epi16((short)(0x0100 + 0x0202 * i));

    return kq_add_products(acc, _mm256_maddubs_epi16(weights, v_load(x + 32 * i)),
                           v_table16(scales, choose));
}

/* less: -16 times the column's sixteen sums, taken off twice. Range: see above; an
 * int16 lane of vpmaddubsw is at most 2 * 63 * 127 = 16002, |less| at most 16 * 2032 =
 * 32512.
 */
SIMD_INLINE vi row_dot(const struct block_q6_K *w, const int8_t *x, vi less)
{
    const __m128i split =
        _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    const __m128i bytes = load_128(w->scales);
    const vi scales = _mm256_cvtepi8_epi16(_mm_shuffle_epi8(bytes, split));
    const vi in_order = _mm256_cvtepi8_epi16(bytes);
    vi acc = kq_add_products(kq_add_products(v_zero(), in_order, less), in_order, less);

    SIMD_UNROLL
    for (int h = 0; h < 2; h++) {
        const vi a = v_load(w->ql + 64 * h), b = v_load(w->ql + 64 * h + 32);
        const vi qh = v_load(w->qh + 32 * h);

        acc = add_scaled(acc, join(a, v_sll16(qh, 4)), x, scales, 4 * h);
        acc = add_scaled(acc, join(b, v_sll16(qh, 2)), x, scales, 4 * h + 1);
        acc = add_scaled(acc, join(v_srl16(a, 4), qh), x, scales, 4 * h + 2);
        acc =
            add_scaled(acc, join(v_srl16(b, 4), v_srl16(qh, 2)), x, scales, 4 * h + 3);
    }
    return acc;
}

/* Lines that are used next lie as many rows on as are used at once. */
SIMD_INLINE void rows(const struct x16_super_format *f, size_t n_rows, size_t k,
                      const void *w, size_t w_stride, const void *x, float *y)
{
    const size_t n_blocks = k / KQ_ELEMS, bytes = f->layout.block_bytes;

    for (size_t i = 0; i < n_rows; i += ROWS_AT_ONCE) {
        const uint8_t *row[ROWS_AT_ONCE];
        vf acc[ROWS_AT_ONCE];

        SIMD_UNROLL
        for (size_t r = 0; r < ROWS_AT_ONCE; r++) {
            row[r] = (const uint8_t *)w + (i + r < n_rows ? i + r : i) * w_stride;
            acc[r] = v_zero_f();
        }
        for (size_t b = 0; b < n_blocks; b++) {
            const int8_t *q = act_q(x) + KQ_ELEMS * b;
            const vf dx = v_set1_f(act_q8_256_d(x, k)[b]);
            const vi sums = v_load(act_q8_256_sums(x, k) + KQ_ELEMS / 16 * b);
            const vi less = v_sll16(_mm256_sub_epi16(v_zero(), sums), 4);

            SIMD_UNROLL
            for (size_t r = 0; r < ROWS_AT_ONCE; r++) {
                const struct block_q6_K *block = (const void *)(row[r] + bytes * b);
                const vf d = _mm256_cvtph_ps(_mm_set1_epi16((short)block->d));
                const vf sum = v_to_float(row_dot(block, q, less));

                prefetch_lines(block, (ptrdiff_t)(ROWS_AT_ONCE * w_stride), bytes);
                acc[r] = v_fma(sum, v_mul(d, dx), acc[r]);
            }
        }
        SIMD_UNROLL
        for (size_t r = 0; r < ROWS_AT_ONCE; r++)
            if (i + r < n_rows)
                y[i + r] = sum_8_floats(acc[r]);
    }
}

X16_SUPER_ROW_KERNELS(q6_K, format, rows)
#else
X16_SUPER_KERNELS(q6_K, format)
#endif
