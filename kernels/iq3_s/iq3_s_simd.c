/* SPDX-License-Identifier: MIT
 *
 * iq3_s_simd.c - iq3_s weights times q8_256 activations, every vector level
 *
 * Range: with the bias weights are at most 31, so a sub-block's dot product stays
 * below 32 * 31 * 127 = 125984 while it is summed up; without it is at most 32 * 15 *
 * 127 = 60960, times 31, eight times: 15118080 < 2^31.
 */
#include "kernels/codebook/iq3_x16.h"
#include "kernels/iq3_s/iq3_s.h"

enum { BIAS = V_SIGNED ? 0 : 16 };

/* Body, in dwords: 0..15 indices' low bytes, 16 and 17 their ninth bits, 18..25 signs,
 * 26 scales. */
#ifdef KERN_LEVEL_avx512vbmi
static const uint8_t codes[2 * 512] __attribute__((aligned(64))) = {
#define CODEBOOK_ENTRY(code) IQ3_CODES_01(code),
#include "kernels/codebook/iq3s.def"
#undef CODEBOOK_ENTRY
#define CODEBOOK_ENTRY(code) IQ3_CODES_23(code),
#include "kernels/codebook/iq3s.def"
};

#define LEVEL(code) CODEBOOK_IQ3S_LEVEL(code)
static const uint8_t levels[4][64] __attribute__((aligned(64))) = {IQ3_LEVELS};

SIMD_INLINE struct cb_16 points(const uint8_t *body, int step)
{
    const vi ninths = v_load(body + 64 * (16 + step / 8));

    return cb_16(codes, 512, v_load(body + 64 * step),
                 cb_windows(ninths, step % 8 * 4, 1),
                 v_load(body + 64 * (18 + step / 2)), step % 2 * 16);
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    (void)step;
    cb_emit_block_16(points, levels, body, emit, sink);
}
#elif defined(V_WORDS)
#define NIBBLE(code, i) CODEBOOK_IQ3S_LEVEL((code) >> 3 * (i)&7) << 4 * (i)
#define CODEBOOK_ENTRY(code) \
    NIBBLE(code, 0) | NIBBLE(code, 1) | NIBBLE(code, 2) | NIBBLE(code, 3),
static const uint16_t grid[512] __attribute__((aligned(64))) = {
#include "kernels/codebook/iq3s.def"
};

/* A level is a nibble. */
SIMD_INLINE vi level(vi words)
{
    return v_or(v_and(words, v_set1_8(15)), v_set1_8(BIAS));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const int j = step; /* 16 weights of sub-block j / 2 */
    const vi raw = v_load(body + 64 * j);
    const vi ninths = cb_spread(v_load(body + 64 * (16 + j / 8)), j / 2 % 4);
    const vi signs = iq3_sign_bytes(v_load(body + 64 * (18 + j / 2)), j % 2);
    const int first = j % 2 == 0 ? 0x00040001 : 0x00400010; /* points 0 and 2 */

    iq3_emit_words(v_words_512(grid, raw, ninths, v_set1_32(first)), 0, signs, BIAS,
                   level, 4 * j, emit, sink);
    iq3_emit_words(v_words_512(grid, v_srl16(raw, 8), ninths, v_set1_32(first << 1)), 1,
                   signs, BIAS, level, 4 * j + 2, emit, sink);
}
#else
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const int b = step; /* a sub-block */
    const vi ninths = v_srl32(v_load(body + 64 * (16 + b / 4)), b % 4 * 8);
    const vi signs = v_load(body + 64 * (18 + b));

    SIMD_UNROLL
    for (int g = 0; g < 8; g++) {
        const vi four = v_srl32(v_load(body + 64 * (2 * b + g / 4)), g % 4 * 8);
        const vi index = v_or(v_and(four, v_set1_32(255)),
                              v_and(v_sll32(ninths, 8 - g), v_set1_32(256)));

        iq3_emit(codebook_iq3s, index, signs, BIAS, b, g, emit, sink);
    }
}
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    const vi all = v_load(body + 64 * 26);

    out->d = v_half(block_scales);
    SIMD_UNROLL
    for (int s = 0; s < 8; s++) {
        const vi twice = v_sll32(v_srl32(all, 4 * s), 1);

        out->scale[s] = v_scale(v_or(v_and(twice, v_set1_32(30)), v_set1_32(1)));
    }
}

IQ3_KERNELS(iq3_s, 27, 15)
