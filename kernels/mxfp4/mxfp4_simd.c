/* SPDX-License-Identifier: MIT
 *
 * mxfp4_simd.c - mxfp4 weights times q8_32 activations, every vector level
 *
 * Values get a bias of 12, which makes them 0..24. Range: |dot| <= 32 * 24 * 127 =
 * 97536 before and 32 * 12 * 127 after the bias, below 2^24: exact as a float.
 *
 * A scale that is not a number (e = 255) gives sums that are not finite.
 */
#include "kernels/mxfp4/mxfp4.h"
#include "kernels/simd/x16_block.h"

enum { BIAS = 12 };

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi raw = v_load(body + 64 * step);
    const vi table = v_add8(v_bcast_16(mxfp4_values), v_set1_8(BIAS));

    emit(sink, step, v_table16_low(table, raw));
    emit(sink, 4 + step, v_table16_high(table, raw));
}

/* e is a float's exponent field as it is: 2^(e - 127), infinite for 255. A 0 there
 * means 2^-127 here, which is the subnormal with its upper mantissa bit set. */
SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales, vf *d, vf *m)
{
    const vi bits = v_max32(v_sll32(v_u8(block_scales), 23), v_set1_32(0x400000));

    (void)body;
    (void)m;
    *d = v_mul(v_float_bits(bits), v_set1_f(0.5f)); /* values are doubled */
}

static const struct x16_block_format format = {
    .layout = {.block_bytes = sizeof(struct block_mxfp4),
               .body_at = offsetof(struct block_mxfp4, qs),
               .body_bytes = MXFP4_ELEMS / 2,
               .n_scales = 1,
               .scale_bytes = 1},
    .max = 2 * BIAS,
    .bias = BIAS,
    .light = true,
    .steps = 4,
    .weights = weights,
    .scales = scales,
};

X16_BLOCK_KERNELS(mxfp4, format)
