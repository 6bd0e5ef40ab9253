/* SPDX-License-Identifier: MIT
 *
 * iq2_xs_simd.c - iq2_xs weights times q8_256 activations, every vector level
 *
 * Range: a super-block's integer is below 256 * 43 * 127 * 31 = 43337536 < 2^31.
 */
#include "kernels/iq2_xs/iq2_xs.h"
#include "kernels/codebook/codebook_vbmi.h"
#include "kernels/codebook/codebook_x16.h"

/* Body, in dwords: 0..15 two groups each, 9 bits of point, 7 of signs; 16 and 17
 * levels. */
#ifdef KERN_LEVEL_avx512vbmi
enum { STEPS = 1 };

/* Two dwords are taken together: the even bytes of both, the odd bytes of both. */
SIMD_INLINE struct cb_four points(const uint8_t *body, int step)
{
    const vi a = v_load(body + 64 * (2 * step)), b = v_load(body + 64 * (2 * step + 1));
    const vi high = cb_bytes_of(a, b, 1);

    return cb_four(codebook_iq2xs_codes, 512, cb_bytes_of(a, b, 0), high,
                   cb_even_signs(v_srl16(high, 1)));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    (void)step;
    cb_emit_block(points, body, emit, sink);
}
#else
enum { STEPS = 16 };

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi two = v_load(body + 64 * step);
    const vi signs = cb_eighth_sign(v_and(v_srl32(two, 9), v_set1_32(0x7f007f)));
    uint8_t points[sizeof(vi)] __attribute__((aligned(64)));

    v_store(points, v_and(two, v_set1_32(0x01ff01ff)));
    SIMD_UNROLL
    for (int i = 0; i < 2; i++)
        cb_emit_signed(codebook_iq2xs, points + 2 * i, 2, signs, 2 * i, 2 * step + i,
                       emit, sink);
}
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    out->d = v_mul(v_half(block_scales), v_set1_f(0.125f));
    SIMD_UNROLL
    for (int s = 0; s < 16; s++)
        out->scale[s] = cb_scale(v_load(body + 64 * (16 + s / 8)), s % 8 * 4, 15);
}

CB_IQ2_KERNELS(iq2_xs, 16, 18, STEPS)
