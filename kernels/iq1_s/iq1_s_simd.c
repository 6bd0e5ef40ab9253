/* SPDX-License-Identifier: MIT
 *
 * iq1_s_simd.c - iq1_s weights times q8_256 activations, every vector level
 *
 * Range: a super-block's integer is below 256 * 9 * 127 * 15 = 4389120 < 2^31.
 */
#include "kernels/iq1_s/iq1_s.h"
#include "kernels/codebook/codebook_x16.h"

/* Body, in dwords: 0..7 points, 8..11 two units each: the points' high bits, level,
 * shift. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         struct x16_sink *sink)
{
    const int at = step % 2 * 16;
    const vi points = v_load(body + 64 * step);
    const vi word = v_load(body + 64 * (8 + step / 2));
    const vi shift = cb_shift(word, at + 15);

    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const vi low = v_and(v_srl32(points, 8 * i), v_set1_32(0xff));

        cb_emit_shifted(v_or(low, cb_to_bit_8(word, at + 3 * i, 0x700)), shift,
                        4 * step + i, emit, sink);
    }
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head,
                        struct x16_scales *out)
{
    out->d = v_mul(v_half(head), v_set1_f(0.125f));
    SIMD_UNROLL
    for (int s = 0; s < 8; s++)
        out->scale[s] = cb_scale(v_load(body + 64 * (8 + s / 2)), s % 2 * 16 + 12, 7);
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_iq1_s),
               .body_at = sizeof(uint16_t),
               .body_bytes = 48,
               .n_heads = 1,
               .head_bytes = 2,
               .head_at = {offsetof(struct block_iq1_s, d)}},
    .n_subs = 8,
    .max = CB_IQ1_MAX,
    .bias = CB_IQ1_BIAS,
    .is_signed = V_SIGNED,
    .steps = 8,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(iq1_s, format)
