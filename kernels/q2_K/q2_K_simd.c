/* SPDX-License-Identifier: MIT
 *
 * q2_K_simd.c - q2_K weights times q8_256 activations, every vector level
 *
 * Quants are unsigned, 0..3. Range: a sub-block's dot product is at most 16 * 3 * 127 =
 * 6096, times 15, sixteen times: 1463040 < 2^31; minima at most 16 * 15 * 2032 =
 * 487680.
 */
#include "kernels/kquant/kquant_pairs.h"
#include "kernels/q2_K/q2_K.h"
#include "kernels/simd/x16_super.h"

/* Body, in dwords: 0..3 scales and minima, 4..19 quants, 20 d and dmin. Dword j of a
 * half's eight has the fours j, 8 + j, 16 + j and 24 + j of its 128 weights. */
SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         const struct x16_sink sink)
{
    const vi low = v_set1_8(3), raw = v_load(body + 64 * (4 + step));
    const int four = step / 8 * 32 + step % 8;

    emit(sink, four, v_and(raw, low));
    emit(sink, four + 8, v_and(v_srl16(raw, 2), low));
    emit(sink, four + 16, v_and(v_srl16(raw, 4), low));
    emit(sink, four + 24, v_srl8(raw, 6));
}

/* Left where they are: times 1, 4, 16, 64. */
SIMD_INLINE void wide(const uint8_t *body, int step, x16_emit_fn *emit,
                      const struct x16_sink sink)
{
    const vi raw = v_keep(v_load(body + 64 * (4 + step)));
    const int four = step / 8 * 32 + step % 8;

    emit(sink, four, v_and(raw, v_set1_8(0x03)));
    emit(sink, four + 8, v_and(raw, v_set1_8(0x0c)));
    emit(sink, four + 16, v_and(raw, v_set1_8(0x30)));
    emit(sink, four + 24, v_and(raw, v_set1_8(0xc0)));
}

#if V_WIDE
#define PRODUCTS products

/* A part of 16 weights, times 1 or 4, fits 16 bits: the scale is applied by a product
 * of pairs whose upper halves are zero. Parts times 16 and 64 are shifted that far. */
SIMD_INLINE void products(const uint8_t *body, const struct x16_sink sink)
{
    vi sum_1 = v_zero(), sum_4 = v_zero();

    SIMD_UNROLL
    for (int group = 0; group < 4; group++) {
        const int half = group / 2, odd = group % 2;
        vi part[4] = {v_zero(), v_zero(), v_zero(), v_zero()};

        x16_prefetch_later(sink, group, 4, sum_4);
        SIMD_UNROLL
        for (int j = 0; j < 4; j++) {
            const vi raw = v_keep(v_load(body + 64 * (4 + 4 * group + j)));
            const int8_t *x = sink.q + 4 * (32 * half + 4 * odd + j);

            SIMD_UNROLL
            for (int i = 0; i < 4; i++)
                part[i] =
                    v_dot_u(part[i], v_and(raw, v_set1_8(3 << 2 * i)), x + 32 * i);
        }
        SIMD_UNROLL
        for (int i = 0; i < 4; i++) {
            const vi four = v_and(v_load(body + 64 * (2 * half + i / 2)), v_set1_8(15));
            const vi scale = v_scale_u8(four, i % 2 * 2 + odd);
            const vi fits = i < 2 ? part[i] : v_sra32(part[i], 4);

            if (i % 2 == 0)
                sum_1 = kq_add_pairs(sum_1, fits, scale);
            else
                sum_4 = kq_add_pairs(sum_4, fits, scale);
        }
    }
    sink.to->sum[sink.strand][0] = v_add32(sum_1, v_sra32(sum_4, 2));
}
#else
#define PRODUCTS NULL
#endif

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *block_scales,
                        struct x16_scales *out)
{
    const vi nibble = v_set1_8(15), halves = v_load(body + 64 * 20);

    (void)block_scales;
    out->d = v_half_low(halves);
    out->dmin = v_half_low(v_srl32(halves, 16));
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const vi both = v_load(body + 64 * i), low = v_and(both, nibble);

        SIMD_UNROLL
        for (int j = 0; j < 4; j++)
            out->scale[4 * i + j] = v_scale_u8(low, j);
        out->pairs[2 * i] = v_and(v_srl16(both, 4), v_set1_32(0x000f000f));
        out->pairs[2 * i + 1] = v_srl16(both, 12);
    }
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q2_K),
               .body_bytes = sizeof(struct block_q2_K)},
    .n_subs = 16,
    .max = 3,
    .narrow = 1,
    .mins = true,
    .steps = 16,
    .weights = weights,
    .products = PRODUCTS,
    .wide = wide,
    .shifts = 0x6644220066442200,
    .scales = scales,
};

X16_SUPER_KERNELS(q2_K, format)
