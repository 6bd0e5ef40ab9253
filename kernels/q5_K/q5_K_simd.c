/* SPDX-License-Identifier: MIT
 *
 * q5_K_simd.c - q5_K weights times q8_256 activations, every vector level
 *
 * Weights are unsigned, 0..31. Range: a sub-block's dot product is at most
 * 32 * 31 * 127 = 125984, times 63, eight times: 63495936 < 2^31; minima at most
 * 8 * 63 * 4064 = 2048256.
 *
 * Bit 2p (2p + 1) of a byte of qh belongs to the low (high) nibbles of the pair p of
 * sub-blocks. It moves to bit 4 by a shift of 16-bit lanes; what comes in from the
 * neighbouring byte is masked off with the rest.
 */
#include "kernels/kquant/kquant_rows.h"
#include "kernels/kquant/kquant_x16.h"
#include "kernels/q5_K/q5_K.h"

enum { DWORD_QH = 4, DWORD_QS = 12 };

/* In a panel the high bits stand behind the low nibbles of the first pair of
 * sub-blocks, dword by dword; later pairs find them in the cache. */
SIMD_INLINE size_t place(size_t dword)
{
    if (dword < DWORD_QH || dword >= DWORD_QS + 8)
        return dword;
    return dword < DWORD_QS ? 2 * dword - DWORD_QH + 1
                            : 2 * (dword - DWORD_QS) + DWORD_QH;
}

/* Four bits of nibbles below bit `from` of top, which may be above or below 4. */
SIMD_INLINE vi join(vi nibbles, vi top, int from)
{
    const vi at_4 = from <= 4 ? v_sll16(top, 4 - from) : v_srl16(top, from - 4);

    return v_and(v_select(v_set1_8(15), nibbles, at_4), v_set1_8(31));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const int pair = step / 8, j = step % 8;
    const vi qs = v_load(body + 64 * place((size_t)(DWORD_QS + step)));
    const vi qh = v_load(body + 64 * place((size_t)(DWORD_QH + j)));

    emit(sink, 16 * pair + j, join(qs, qh, 2 * pair));
    emit(sink, 16 * pair + 8 + j, join(v_srl16(qs, 4), qh, 2 * pair + 1));
}

/* High nibbles and their top bit left at bits 1 to 5, times 2: one shift of qh serves
 * both. */
SIMD_INLINE void wide(const uint8_t *body, int step, x16_emit_fn *emit,
                      const struct x16_sink sink)
{
    const int pair = step / 8, j = step % 8;
    const vi qs = v_load(body + 64 * place((size_t)(DWORD_QS + step)));
    const vi qh = v_load(body + 64 * place((size_t)(DWORD_QH + j)));
    const vi top = pair < 2    ? v_sll16(qh, 4 - 2 * pair)
                   : pair == 2 ? qh
                               : v_srl16(qh, 2);

    emit(sink, 16 * pair + j, v_and(v_select(v_set1_8(0x0f), qs, top), v_set1_8(0x1f)));
    emit(sink, 16 * pair + 8 + j,
         v_and(v_select(v_set1_8(0x1e), v_srl16(qs, 3), top), v_set1_8(0x3e)));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    (void)block_scales;
    kq_x16_scales(body, out);
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q5_K),
               .body_bytes = sizeof(struct block_q5_K),
               .place = place},
    .n_subs = 8,
    .max = 31,
    .mins = true,
    .light = true,
    .steps = 32,
    .weights = weights,
    .wide = wide,
    .shifts = 0x10101010,
    .scales = scales,
};

#if KQ_ROWS
/* Four bits of nibbles, the fifth from bit 4 of top. */
SIMD_INLINE vi join_4(vi nibbles, vi top)
{
    return v_and(v_select(v_set1_8(15), nibbles, top), v_set1_8(31));
}

/* Shift counts of words: one for the lower, one for the upper 256 bits. */
SIMD_INLINE vi counts(short lower, short upper)
{
    return _mm512_inserti64x4(_mm512_set1_epi16(lower), _mm256_set1_epi16(upper), 1);
}

/* As q4_K, see there. Range: an int16 lane of vpmaddubsw is at most 2 * 31 * 127 =
 * 7874. */
SIMD_INLINE vi row_dot(const uint8_t *block, const struct kq_x *x, vi scales)
{
    const uint8_t *qs = block + offsetof(struct block_q5_K, qs);
    const vi qh =
        _mm512_broadcast_i64x4(load_256(block + offsetof(struct block_q5_K, qh)));
    const vi raw_0 = v_load(qs), raw_1 = v_load(qs + 64);
    vi acc = v_zero();

    acc = kq_add_scaled(acc, join_4(raw_0, _mm512_sllv_epi16(qh, counts(4, 2))),
                        x->low[0], scales, 0);
    acc = kq_add_scaled(acc,
                        join_4(v_srl16(raw_0, 4), _mm512_sllv_epi16(qh, counts(3, 1))),
                        x->high[0], scales, 1);
    acc = kq_add_scaled(acc, join_4(raw_1, _mm512_srlv_epi16(qh, counts(0, 2))),
                        x->low[1], scales, 4);
    return kq_add_scaled(acc,
                         join_4(v_srl16(raw_1, 4), _mm512_srlv_epi16(qh, counts(1, 3))),
                         x->high[1], scales, 5);
}

SIMD_INLINE void rows(const struct x16_super_format *f, size_t n_rows, size_t k,
                      const void *w, size_t w_stride, const void *x, float *y)
{
    kq_gemv_affine(n_rows, k, w, w_stride, x, y, f->layout.block_bytes, row_dot);
}
#endif

KQ_KERNELS(q5_K, format)
