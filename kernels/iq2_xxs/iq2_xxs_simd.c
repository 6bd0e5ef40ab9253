/* SPDX-License-Identifier: MIT
 *
 * iq2_xxs_simd.c - iq2_xxs weights times q8_256 activations, every vector level
 *
 * Range: a super-block's integer is below 256 * 43 * 127 * 31 = 43337536 < 2^31.
 */
#include "kernels/iq2_xxs/iq2_xxs.h"
#include "kernels/codebook/codebook_vbmi.h"
#include "kernels/codebook/codebook_x16.h"

/* Body, in dwords: the points of unit 0, its signs and level, those of unit 1, ... */
#ifdef KERN_LEVEL_avx512vbmi
enum { STEPS = 1 };

SIMD_INLINE struct cb_four points(const uint8_t *body, int step)
{
    const vi word = v_load(body + 64 * (2 * step + 1));

    return cb_four(codebook_iq2xxs_codes, 256, v_load(body + 64 * (2 * step)), v_zero(),
                   cb_even_signs(cb_windows(word, 0, 7)));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    (void)step;
    cb_emit_block(points, body, emit, sink);
}
#else
enum { STEPS = 8 };

/* Seven signs of each of four groups, in a unit's second dword, to a byte each. */
SIMD_INLINE vi signs_of(vi word)
{
    vi bytes = v_and(word, v_set1_32(0x7f));

    bytes = v_or(bytes, v_and(v_sll32(word, 1), v_set1_32(0x7f00)));
    bytes = v_or(bytes, v_and(v_sll32(word, 2), v_set1_32(0x7f0000)));
    bytes = v_or(bytes, v_and(v_sll32(word, 3), v_set1_32(0x7f000000)));
    return cb_eighth_sign(bytes);
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi signs = signs_of(v_load(body + 64 * (2 * step + 1)));

    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        cb_emit_signed(codebook_iq2xxs, body + 64 * (2 * step) + i, 1, signs, i,
                       4 * step + i, emit, sink);
}
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    out->d = v_mul(v_half(block_scales), v_set1_f(0.125f));
    SIMD_UNROLL
    for (int s = 0; s < 8; s++)
        out->scale[s] = cb_scale(v_load(body + 64 * (2 * s + 1)), 28, 15);
}

CB_IQ2_KERNELS(iq2_xxs, 8, 16, STEPS)
