/* SPDX-License-Identifier: MIT
 *
 * iq2_s_simd.c - iq2_s weights times q8_256 activations, every vector level
 *
 * Range: a super-block's integer is below 256 * 43 * 127 * 31 = 43337536 < 2^31.
 */
#include "kernels/iq2_s/iq2_s.h"
#include "kernels/codebook/codebook_vbmi.h"
#include "kernels/codebook/codebook_x16.h"

/* Body, in dwords: 0..7 points, 8..15 signs, 16 and 17 the points' high bits, 18 and 19
 * levels. */
#ifdef KERN_LEVEL_avx512vbmi
enum { STEPS = 1 };

SIMD_INLINE struct cb_four points(const uint8_t *body, int step)
{
    const vi high = cb_windows(v_load(body + 64 * (16 + step / 4)), step % 4 * 8, 2);

    return cb_four(codebook_iq2s_codes, 1024, v_load(body + 64 * step), high,
                   v_load(body + 64 * (8 + step)));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    (void)step;
    cb_emit_block(points, body, emit, sink);
}
#else
enum { STEPS = 8 };

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi low = v_load(body + 64 * step), bytes = v_set1_32(0x00ff00ff);
    const vi signs = v_load(body + 64 * (8 + step));
    const vi high = cb_high_bits(v_load(body + 64 * (16 + step / 4)), step % 4, 4);
    const vi two = v_set1_32(0x03000300);
    /* of groups 0 and 2, of 1 and 3 */
    uint8_t points[2][sizeof(vi)] __attribute__((aligned(64)));

    v_store(points[0], v_or(v_and(low, bytes), v_and(high, two)));
    v_store(points[1],
            v_or(v_and(v_srl16(low, 8), bytes), v_and(v_srl16(high, 2), two)));
    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        cb_emit_signed(codebook_iq2s, points[i % 2] + i / 2 * 2, 2, signs, i,
                       4 * step + i, emit, sink);
}
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    out->d = v_mul(v_half(block_scales), v_set1_f(0.125f));
    SIMD_UNROLL
    for (int s = 0; s < 16; s++)
        out->scale[s] = cb_scale(v_load(body + 64 * (18 + s / 8)), s % 8 * 4, 15);
}

CB_IQ2_KERNELS(iq2_s, 16, 20, STEPS)
