/* SPDX-License-Identifier: MIT
 *
 * q3_K_simd.c - q3_K weights times q8_256 activations, every vector level
 *
 * Quants stay unsigned, 0..7, the format's -4 is the frame's bias. Range: a sub-block's
 * dot product is at most 16 * 7 * 127 = 14224 (with the bias off 16 * 4 * 127), times
 * 32, sixteen times: 7282688 < 2^31; the bias's part at most 16 * 4 * 2032 * 32.
 */
#include "kernels/q3_K/q3_K.h"
#include "kernels/simd/x16_super.h"

/* Body, in dwords: 0..7 top bits, 8..23 low bits, 24..26 scales; d is the head. Dword j
 * of a half's eight has the fours j, 8 + j, 16 + j and 24 + j of its 128 weights, and
 * their top bits are at bits 4h to 4h + 3 of dword j of the first eight. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         struct x16_sink *sink)
{
    const vi low = v_set1_8(3), top = v_set1_8(4);
    const vi tops = v_load(body + 64 * step);

    SIMD_UNROLL
    for (int h = 0; h < 2; h++) {
        const vi raw = v_load(body + 64 * (8 + 8 * h + step));
        /* bits 4h .. 4h + 3 at 2 .. 5, so that shifts go to the right only */
        const vi bits = h == 0 ? v_sll16(tops, 2) : v_srl16(tops, 2);
        const int four = 32 * h + step;

        emit(sink, four, v_or(v_and(raw, low), v_and(bits, top)));
        emit(sink, four + 8,
             v_or(v_and(v_srl16(raw, 2), low), v_and(v_srl16(bits, 1), top)));
        emit(sink, four + 16,
             v_or(v_and(v_srl16(raw, 4), low), v_and(v_srl16(bits, 2), top)));
        emit(sink, four + 24,
             v_or(v_and(v_srl16(raw, 6), low), v_and(v_srl16(bits, 3), top)));
    }
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head,
                        struct x16_scales *out)
{
    const vi nibble = v_set1_8(15), top = v_set1_8(0x30), half = v_set1_8(32);
    const vi a = v_load(body + 64 * 24), b = v_load(body + 64 * 25);
    const vi c = v_load(body + 64 * 26);
    /* four bytes each: scales 0..3, 4..7, 8..11, 12..15 */
    const vi six[4] = {
        v_or(v_and(a, nibble), v_and(v_sll16(c, 4), top)),
        v_or(v_and(b, nibble), v_and(v_sll16(c, 2), top)),
        v_or(v_and(v_srl16(a, 4), nibble), v_and(c, top)),
        v_or(v_and(v_srl16(b, 4), nibble), v_and(v_srl16(c, 2), top)),
    };

    out->d = v_half(head);
    SIMD_UNROLL
    for (int s = 0; s < 16; s++) {
        const vi less = v_sub8(six[s / 4], half);

        out->scale[s] = v_scale(v_sra32(v_sll32(less, 24 - s % 4 * 8), 24));
    }
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q3_K),
               .body_bytes = offsetof(struct block_q3_K, d),
               .n_heads = 1,
               .head_bytes = 2,
               .head_at = {offsetof(struct block_q3_K, d)}},
    .n_subs = 16,
    .max = 7,
    .bias = 4,
    .steps = 8,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(q3_K, format)
