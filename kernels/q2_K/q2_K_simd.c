/* SPDX-License-Identifier: MIT
 *
 * q2_K_simd.c - q2_K weights times q8_256 activations, every vector level
 *
 * Quants are unsigned, 0..3. Range: a sub-block's dot product is at most 16 * 3 * 127 =
 * 6096, times 15, sixteen times: 1463040 < 2^31; minima at most 16 * 15 * 2032 =
 * 487680.
 */
#include "kernels/q2_K/q2_K.h"
#include "kernels/simd/x16_super.h"

/* Body, in dwords: 0..3 scales and minima, 4..19 quants, 20 d and dmin. Dword j of a
 * half's eight has the fours j, 8 + j, 16 + j and 24 + j of its 128 weights. */
SIMD_INLINE void weights(const uint8_t *body, x16_emit_fn *emit, struct x16_sink *sink)
{
    const vi low = v_set1_8(3);

    SIMD_UNROLL
    for (int j = 0; j < 16; j++) {
        const vi raw = v_load(body + 64 * (4 + j));
        const int four = j / 8 * 32 + j % 8;

        emit(sink, four, v_and(raw, low));
        emit(sink, four + 8, v_and(v_srl16(raw, 2), low));
        emit(sink, four + 16, v_and(v_srl16(raw, 4), low));
        emit(sink, four + 24, v_and(v_srl16(raw, 6), low));
    }
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head,
                        struct x16_scales *out)
{
    const vi nibble = v_set1_32(15), halves = v_load(body + 64 * 20);

    (void)head;
    out->d = v_half_low(halves);
    out->dmin = v_half_low(v_srl32(halves, 16));
    SIMD_UNROLL
    for (int s = 0; s < 16; s++) {
        const vi both = v_srl32(v_load(body + 64 * (s / 4)), s % 4 * 8);

        out->scale[s] = v_and(both, nibble);
        out->min[s] = v_and(v_srl32(both, 4), nibble);
    }
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q2_K),
               .body_bytes = sizeof(struct block_q2_K)},
    .n_subs = 16,
    .max = 3,
    .mins = true,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(q2_K, format)
