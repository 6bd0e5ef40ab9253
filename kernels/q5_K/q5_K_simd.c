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
#include "kernels/kquant/kquant_x16.h"
#include "kernels/q5_K/q5_K.h"

enum { DWORD_QH = 4, DWORD_QS = 12 };

/* Four bits of nibbles below bit `from` of top, which may be above or below 4. */
SIMD_INLINE vi join(vi nibbles, vi top, int from)
{
    const vi at_4 = from <= 4 ? v_sll16(top, 4 - from) : v_srl16(top, from - 4);

    return v_and(v_select(v_set1_8(15), nibbles, at_4), v_set1_8(31));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         struct x16_sink *sink)
{
    const int pair = step / 8, j = step % 8;
    const vi qs = v_load(body + 64 * (DWORD_QS + step));
    const vi qh = v_load(body + 64 * (DWORD_QH + j));

    emit(sink, 16 * pair + j, join(qs, qh, 2 * pair));
    emit(sink, 16 * pair + 8 + j, join(v_srl16(qs, 4), qh, 2 * pair + 1));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head,
                        struct x16_scales *out)
{
    (void)head;
    kq_x16_head(body, out);
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q5_K),
               .body_bytes = sizeof(struct block_q5_K)},
    .n_subs = 8,
    .max = 31,
    .mins = true,
    .steps = 32,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(q5_K, format)
