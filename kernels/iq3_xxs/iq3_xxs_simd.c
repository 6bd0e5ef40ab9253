/* SPDX-License-Identifier: MIT
 *
 * iq3_xxs_simd.c - iq3_xxs weights times q8_256 activations, every vector level
 *
 * Range: with the bias weights are at most 126, so a sub-block's dot product stays
 * below 32 * 126 * 127 = 512064 while it is summed up; without it is at most 32 * 62 *
 * 127 = 251968, times 31, eight times: 62488064 < 2^31. The scale's factor (ls + 0.5) *
 * 0.5 is a quarter of 2 * ls + 1, the quarter goes into d.
 */
#include "kernels/codebook/iq3_x16.h"
#include "kernels/iq3_xxs/iq3_xxs.h"

enum { BIAS = V_SIGNED ? 0 : 64 };

/* Body, in dwords: 0..15 indices, 16..23 signs and scales. */
#ifdef KERN_LEVEL_avx512vbmi
static const uint8_t codes[2 * 256] __attribute__((aligned(64))) = {
#define CODEBOOK_ENTRY(code) IQ3_CODES_01(code),
#include "kernels/codebook/iq3xxs.def"
#undef CODEBOOK_ENTRY
#define CODEBOOK_ENTRY(code) IQ3_CODES_23(code),
#include "kernels/codebook/iq3xxs.def"
};

#define LEVEL(code) CODEBOOK_IQ3XXS_LEVEL(code)
static const uint8_t levels[4][64] __attribute__((aligned(64))) = {IQ3_LEVELS};

SIMD_INLINE struct cb_16 points(const uint8_t *body, int step)
{
    const vi word = v_load(body + 64 * (16 + step / 2));

    return cb_16(codes, 256, v_load(body + 64 * step), v_zero(),
                 cb_even_signs(cb_windows(word, 0, 7)), step % 2 * 16);
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    (void)step;
    cb_emit_block_16(points, levels, body, emit, sink);
}
#else
/* The four signs of seven bits as bytes, with the eighth that makes their number even.
 */
SIMD_INLINE vi even_signs(vi word)
{
    static const uint8_t odd[16] __attribute__((aligned(16))) = {
        0, 128, 128, 0, 128, 0, 0, 128, 128, 0, 0, 128, 0, 128, 128, 0};
    const vi parity = v_bcast_16(odd), nibble = v_set1_8(15);
    const vi seven = v_or(
        v_or(v_and(word, v_set1_32(0x7f)), v_and(v_sll32(word, 1), v_set1_32(0x7f00))),
        v_or(v_and(v_sll32(word, 2), v_set1_32(0x7f0000)),
             v_and(v_sll32(word, 3), v_set1_32(0x7f000000))));

    return v_or(seven, v_xor(v_table16(parity, v_and(seven, nibble)),
                             v_table16(parity, v_and(v_srl16(seven, 4), nibble))));
}

#ifdef V_WORDS
#define NIBBLE(code, i) ((code) >> 3 * (i)&7) << 4 * (i)
#define CODEBOOK_ENTRY(code) \
    NIBBLE(code, 0) | NIBBLE(code, 1) | NIBBLE(code, 2) | NIBBLE(code, 3),
static const uint16_t grid[256] __attribute__((aligned(64))) = {
#include "kernels/codebook/iq3xxs.def"
};

/* Levels of the lower nibbles. */
SIMD_INLINE vi level(vi words)
{
#define LEVEL(i) BIAS + CODEBOOK_IQ3XXS_LEVEL(i)
    static const uint8_t levels[16] __attribute__((aligned(16))) = {
        LEVEL(0), LEVEL(1), LEVEL(2), LEVEL(3), LEVEL(4), LEVEL(5), LEVEL(6), LEVEL(7)};

    return v_table16(v_bcast_16(levels), v_and(words, v_set1_8(15)));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const int j = step; /* 16 weights */
    const vi raw = v_load(body + 64 * j);
    const vi signs =
        iq3_sign_bytes(even_signs(v_load(body + 64 * (16 + j / 2))), j % 2);

    iq3_emit_words(v_words_256(grid, raw), 0, signs, BIAS, level, 4 * j, emit, sink);
    iq3_emit_words(v_words_256(grid, v_srl16(raw, 8)), 1, signs, BIAS, level, 4 * j + 2,
                   emit, sink);
}
#else
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const int b = step; /* a sub-block */
    const vi signs = even_signs(v_load(body + 64 * (16 + b)));

    SIMD_UNROLL
    for (int g = 0; g < 8; g++) {
        const vi four = v_srl32(v_load(body + 64 * (2 * b + g / 4)), g % 4 * 8);

        iq3_emit(codebook_iq3xxs, v_and(four, v_set1_32(255)), signs, BIAS, b, g, emit,
                 sink);
    }
}
#endif
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    out->d = v_mul(v_half(block_scales), v_set1_f(0.25f));
    SIMD_UNROLL
    for (int s = 0; s < 8; s++) {
        const vi twice = v_srl32(v_load(body + 64 * (16 + s)), 27);

        out->scale[s] = v_scale(v_or(v_and(twice, v_set1_32(30)), v_set1_32(1)));
    }
}

IQ3_KERNELS(iq3_xxs, 24, 62)
