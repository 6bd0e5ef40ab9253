/* SPDX-License-Identifier: MIT
 *
 * tq1_0_simd.c - tq1_0 weights times q8_256 activations, every vector level
 *
 * Trits stay unsigned, 0..2, the format's -1 is the frame's bias. There are no scales:
 * eight sub-blocks with the scale 1 are so many sums that do not wait for each other.
 * Range: a block's dot product is at most 256 * 2 * 127 = 65024.
 */
#include "kernels/simd/x16_super.h"
#include "kernels/tq1_0/tq1_0.h"

/* The first trit of every byte: 3c >> 8, in 16 bits for even and odd bytes. */
SIMD_INLINE vi first_trit(vi c)
{
    const vi even = v_and(c, v_set1_32(0x00ff00ff)), odd = v_srl16(c, 8);
    const vi even_3 = v_add32(even, v_add32(even, even));
    const vi odd_3 = v_add32(odd, v_add32(odd, odd));

    return v_or(v_srl16(even_3, 8), v_and(odd_3, v_set1_32((int)0xff00ff00)));
}

/* Emits n trits of every byte: fours `four`, four + step, ... */
SIMD_INLINE void trits(vi c, int n, int four, int step, x16_emit_fn *emit,
                       struct x16_sink *sink)
{
    SIMD_UNROLL
    for (int i = 0; i < n; i++) {
        emit(sink, four + i * step, first_trit(c));
        c = v_add8(c, v_add8(c, c));
    }
}

/* Body, in dwords: 0..11 five trits a byte, 12 four. Sub-blocks start and end with
 * their first and last four, as the frame wants it. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         struct x16_sink *sink)
{
    const vi c = v_load(body + 64 * step);

    if (step < 8)
        trits(c, 5, step, 8, emit, sink);
    else if (step < 12)
        trits(c, 5, 40 + step - 8, 4, emit, sink);
    else
        trits(c, 4, 60, 1, emit, sink);
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head,
                        struct x16_scales *out)
{
    (void)body;
    out->d = v_half(head);
    SIMD_UNROLL
    for (int s = 0; s < 8; s++)
        out->scale[s] = v_scale(v_set1_32(1));
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_tq1_0),
               .body_bytes = offsetof(struct block_tq1_0, d),
               .n_heads = 1,
               .head_bytes = 2,
               .head_at = {offsetof(struct block_tq1_0, d)}},
    .n_subs = 8,
    .max = 2,
    .bias = 1,
    .steps = 13,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(tq1_0, format)
