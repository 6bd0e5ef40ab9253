/* SPDX-License-Identifier: MIT
 *
 * codebook_x16.h - grid points of sixteen rows side by side, for the IQ1 and IQ2
 * formats' <format>_simd.c (iq3_x16.h: for IQ3)
 *
 * A lane is a row, so that every lane looks up a point of its own. IQ2's magnitudes,
 * at most 43, take the group's signs, or the activations of a single column take them
 * (V_SIGNS_APART); where the dot instruction wants unsigned bytes 64 is added and is
 * the frame's bias. IQ1's values in eighths are shifted by one, at most 9 then, which
 * is their bias.
 */
#ifndef SLM_KERNELS_CODEBOOK_X16_H
#define SLM_KERNELS_CODEBOOK_X16_H

#include "kernels/codebook/codebook.h"
#include "kernels/kquant/kquant_pairs.h"
#include "kernels/simd/x16_super.h"

enum {
    CB_IQ2_MAX = 43,
    CB_IQ2_BIAS = V_SIGNED ? 0 : 64,
    CB_IQ1_MAX = 9,
    CB_IQ1_BIAS = V_SIGNED ? 0 : 9,
};

/* Byte `at` of every lane, four times. */
SIMD_INLINE vi cb_spread(vi v, int at)
{
    static const uint8_t spread[4][16] __attribute__((aligned(16))) = {
        {0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12},
        {1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 9, 9, 13, 13, 13, 13},
        {2, 2, 2, 2, 6, 6, 6, 6, 10, 10, 10, 10, 14, 14, 14, 14},
        {3, 3, 3, 3, 7, 7, 7, 7, 11, 11, 11, 11, 15, 15, 15, 15},
    };

    return v_table16(v, v_bcast_16(spread[at]));
}

/* Bit 7 of every byte becomes the parity of bits 0 to 6; it is 0 before. */
SIMD_INLINE vi cb_eighth_sign(vi seven)
{
    static const uint8_t odd[16] = {0,    0x80, 0x80, 0,    0x80, 0,    0,    0x80,
                                    0x80, 0,    0,    0x80, 0,    0x80, 0x80, 0};
    const vi nibble = v_and(v_xor(seven, v_srl16(seven, 4)), v_set1_8(15));

    return v_or(seven, v_table16(v_bcast_16(odd), nibble));
}

/* Group `group` of an IQ2 block: byte `at` of signs, points whose numbers of `bytes`
 * bytes are at `points`, one in every dword. They are taken from memory one by one:
 * out of a vector they would have to be taken apart. */
SIMD_INLINE void cb_emit_signed(const uint8_t (*grid)[8], const uint8_t *points,
                                int bytes, vi signs, int at, int group,
                                x16_emit_fn *emit, const struct x16_sink sink)
{
    const vi spread = cb_spread(signs, at);
    vi low, high;

    v_gather_8(grid, points, bytes, &low, &high);
    x16_emit_signs(low, spread, v_set1_32(0x08040201), CB_IQ2_BIAS, 2 * group, emit,
                   sink);
    x16_emit_signs(high, spread, v_set1_32((int)0x80402010), CB_IQ2_BIAS, 2 * group + 1,
                   emit, sink);
}

/* Byte `at` of every lane, as a number. */
SIMD_INLINE vi cb_byte(vi v, int at)
{
    static const uint8_t from[4][16] __attribute__((aligned(16))) = {
        {0, 128, 128, 128, 4, 128, 128, 128, 8, 128, 128, 128, 12, 128, 128, 128},
        {1, 128, 128, 128, 5, 128, 128, 128, 9, 128, 128, 128, 13, 128, 128, 128},
        {2, 128, 128, 128, 6, 128, 128, 128, 10, 128, 128, 128, 14, 128, 128, 128},
        {3, 128, 128, 128, 7, 128, 128, 128, 11, 128, 128, 128, 15, 128, 128, 128},
    };

    return v_table16(v, v_bcast_16(from[at]));
}

/* Group `group` of an IQ1 block: shifted points of codebook_iq1s_nibbles. */
SIMD_INLINE void cb_emit_shifted(vi index, int group, x16_emit_fn *emit,
                                 const struct x16_sink sink)
{
#define EIGHTHS(n) 2 * (n)-9 + CB_IQ1_BIAS
    static const int8_t eighths[16] __attribute__((aligned(16))) = {
        EIGHTHS(0), EIGHTHS(1), 0, 0,          EIGHTHS(4),
        EIGHTHS(5), 0,          0, EIGHTHS(8), EIGHTHS(9)};
#undef EIGHTHS
    const vi points = v_gather(codebook_iq1s_nibbles, index);
    const vi table = v_bcast_16(eighths);

    emit(sink, 2 * group, v_table16_low(table, points));
    emit(sink, 2 * group + 1, v_table16_high(table, points));
}

#if V_WIDE
/* The same group times its activations x[8]: nibbles of values 0 to 3 added to *low,
 * 16 times those of 4 to 7 to *high. */
SIMD_INLINE void cb_dot_nibbles(vi index, const int8_t *x, vi *low, vi *high)
{
    const vi points = v_gather(codebook_iq1s_nibbles, index);

    *low = v_dot_u(*low, v_and(points, v_set1_8(0x0f)), x);
    *high = v_dot_u(*high, v_and(points, v_set1_8((int)0xf0)), x + 4);
}

/* Both in eighths; bias: -9 * sum(x). */
SIMD_INLINE vi cb_eighths(vi low, vi high, const int32_t *bias)
{
    const vi twice = v_add32(v_add32(low, low), v_sra32(high, 3));

    return v_add32(twice, v_bcast_4(bias));
}
#endif

/* Lanes' bits `at` and up below mask + 1, as the scale 2 * level + 1. */
SIMD_INLINE vi cb_scale(vi word, int at, int mask)
{
    const vi twice = at > 0 ? v_srl32(word, at - 1) : v_add32(word, word);

    return v_scale(v_select(v_set1_32(2 * mask), twice, v_set1_32(1)));
}

/* Bit `at` of every lane, and those above it, to bit `to`; mask covers them there. */
SIMD_INLINE vi cb_to_bit(vi word, int at, int to, int mask)
{
    return v_and(at < to ? v_sll32(word, to - at) : v_srl32(word, at - to),
                 v_set1_32(mask));
}

/* Byte `at` of every lane in bits 8 to 15, and shifted right in bits 24 to 31, of which
 * the upper `shift` are undefined. */
SIMD_INLINE vi cb_high_bits(vi word, int at, int shift)
{
    static const uint8_t from[4][16] __attribute__((aligned(16))) = {
        {128, 0, 128, 0, 128, 4, 128, 4, 128, 8, 128, 8, 128, 12, 128, 12},
        {128, 1, 128, 1, 128, 5, 128, 5, 128, 9, 128, 9, 128, 13, 128, 13},
        {128, 2, 128, 2, 128, 6, 128, 6, 128, 10, 128, 10, 128, 14, 128, 14},
        {128, 3, 128, 3, 128, 7, 128, 7, 128, 11, 128, 11, 128, 15, 128, 15},
    };
    const vi twice = v_table16(word, v_bcast_16(from[at]));

    return v_select(v_set1_32(0xffff), twice, v_srl32(twice, shift));
}

/* Defines the kernels of an IQ2 format of n_subs_ sub-blocks, whose body of body_dwords
 * dwords follows d and is unpacked in n_steps by the file's weights() and scales(). */
#define CB_IQ2_KERNELS(name, n_subs_, body_dwords, n_steps)         \
    static const struct x16_super_format format = {                 \
        .layout = {.block_bytes = sizeof(struct block_##name),      \
                   .body_at = sizeof(uint16_t),                     \
                   .body_bytes = 4 * (body_dwords),                 \
                   .n_scales = 1,                                   \
                   .scale_bytes = 2,                                \
                   .scale_at = {offsetof(struct block_##name, d)}}, \
        .n_subs = n_subs_,                                          \
        .max = CB_IQ2_MAX,                                          \
        .bias = CB_IQ2_BIAS,                                        \
        .is_signed = V_SIGNED,                                      \
        .two_chains = true,                                         \
        .order = CB_IQ2_ORDER,                                      \
        .steps = n_steps,                                           \
        .weights = weights,                                         \
        .scales = scales,                                           \
    };                                                              \
    X16_SUPER_KERNELS(name, format)

#endif
