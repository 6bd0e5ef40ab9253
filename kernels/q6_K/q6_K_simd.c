/* SPDX-License-Identifier: MIT
 *
 * q6_K_simd.c - q6_K weights times q8_256 activations, every vector level
 *
 * Weights stay unsigned, 0..63; the format's 32 is the bias. Range: products of a
 * super-block sum to at most 256 * 63 * 127 * 128 = 262176768, the bias takes off at
 * most 32 * 16 * 128 * 2032 = 133169152: below 2^31 also together.
 *
 * Two bits of qh move to bits 4 and 5 by a shift of 16-bit lanes; what comes in from
 * the neighbouring byte is masked off with the rest.
 */
#include "kernels/q6_K/q6_K.h"
#include "kernels/simd/x16_super.h"

enum { DWORD_QH = 32, DWORD_SCALES = 48 };

/* Four low bits of nibbles, bits 4 and 5 of top. */
SIMD_INLINE vi join(vi nibbles, vi top)
{
    return v_and(v_select(v_set1_8(15), nibbles, top), v_set1_8(63));
}

SIMD_INLINE void weights(const uint8_t *body, int step, x16_emit_fn *emit,
                         struct x16_sink *sink)
{
    const int half = step / 8, j = step % 8;
    const vi a = v_load(body + 64 * (16 * half + j));
    const vi b = v_load(body + 64 * (16 * half + 8 + j));
    const vi qh = v_load(body + 64 * (DWORD_QH + 8 * half + j));

    emit(sink, 32 * half + j, join(a, v_sll16(qh, 4)));
    emit(sink, 32 * half + 8 + j, join(b, v_sll16(qh, 2)));
    emit(sink, 32 * half + 16 + j, join(v_srl16(a, 4), qh));
    emit(sink, 32 * half + 24 + j, join(v_srl16(b, 4), v_srl16(qh, 2)));
}

SIMD_INLINE void scales(const uint8_t *body, const uint8_t *head,
                        struct x16_scales *out)
{
    out->d = v_half(head);
    SIMD_UNROLL
    for (int i = 0; i < 4; i++) {
        const vi four = v_load(body + 64 * (DWORD_SCALES + i));

        SIMD_UNROLL
        for (int j = 0; j < 4; j++)
            out->scale[4 * i + j] = v_scale(v_sra32(v_sll32(four, 24 - 8 * j), 24));
    }
}

static const struct x16_super_format format = {
    .layout = {.block_bytes = sizeof(struct block_q6_K),
               .body_bytes = offsetof(struct block_q6_K, d),
               .n_heads = 1,
               .head_bytes = 2,
               .head_at = {offsetof(struct block_q6_K, d)}},
    .n_subs = 16,
    .max = 63,
    .bias = 32,
    .steps = 16,
    .weights = weights,
    .scales = scales,
};

X16_SUPER_KERNELS(q6_K, format)
