/* SPDX-License-Identifier: MIT
 *
 * to_kv_neon.c - keys and values as the KV cache stores them, with NEON
 */
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/simd/neon.h"

enum { BLOCK = 32, LANES = 4, VECS = BLOCK / LANES };

/* A NaN stays one. */
SIMD_INLINE float32x4_t limit(float32x4_t x, float least, float most)
{
    return vmaxq_f32(vdupq_n_f32(least), vminq_f32(vdupq_n_f32(most), x));
}

void kern_to_kv_f16__neon(void *dst, const float *src, size_t n)
{
    char *out = dst;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        const uint16x4_t half = vreinterpret_u16_f16(
            vcvt_f16_f32(limit(vld1q_f32(src + i), -KERN_HALF_MAX, KERN_HALF_MAX)));

        memcpy(out + 2 * i, &half, sizeof half);
    }
    kern_to_kv_f16__scalar(out + 2 * i, src + i, n - i);
}

void kern_to_kv_bf16__neon(void *dst, const float *src, size_t n)
{
    char *out = dst;
    size_t i = 0;

    for (; i + LANES <= n; i += LANES) {
        const float32x4_t x = limit(vld1q_f32(src + i), -KERN_BF16_MAX, KERN_BF16_MAX);
        const uint32x4_t bits = vreinterpretq_u32_f32(x), top = vshrq_n_u32(bits, 16);
        const uint32x4_t is_odd = vandq_u32(top, vdupq_n_u32(1));
        const uint32x4_t rounded =
            vshrq_n_u32(vaddq_u32(bits, vaddq_u32(is_odd, vdupq_n_u32(0x7fff))), 16);
        const uint32x4_t quiet = vorrq_u32(top, vdupq_n_u32(0x40));
        const uint16x4_t bf16 = vmovn_u32(vbslq_u32(vceqq_f32(x, x), rounded, quiet));

        memcpy(out + 2 * i, &bf16, sizeof bf16);
    }
    kern_to_kv_bf16__scalar(out + 2 * i, src + i, n - i);
}

/* 32 values, zeros where there was a NaN. */
SIMD_INLINE void load_block(const float *src, float32x4_t *x)
{
    SIMD_UNROLL
    for (int i = 0; i < VECS; i++) {
        x[i] = vld1q_f32(src + LANES * i);
        x[i] = vreinterpretq_f32_u32(
            vandq_u32(vreinterpretq_u32_f32(x[i]), vceqq_f32(x[i], x[i])));
    }
}

/* As the reference's. */
SIMD_INLINE float scale_of(const float32x4_t *x, float end, uint8_t *stored)
{
    float32x4_t up = vdupq_n_f32(0), down = vdupq_n_f32(0);

    SIMD_UNROLL
    for (int i = 0; i < VECS; i++) {
        up = vmaxq_f32(up, x[i]);
        down = vminq_f32(down, x[i]);
    }

    const float hi = vmaxvq_f32(up), lo = -vminvq_f32(down);
    const float largest = hi > lo ? hi : end > 0 ? lo : -lo;
    float wanted = largest / end;

    wanted = wanted > KERN_HALF_MAX ? KERN_HALF_MAX : wanted;
    wanted = wanted < -KERN_HALF_MAX ? -KERN_HALF_MAX : wanted;

    const uint16_t half = half_from_f32(wanted);
    const float d = half_to_f32(half);

    memcpy(stored, &half, sizeof half);
    return d != 0 ? 1 / d : 0;
}

/* 16 values from x to bytes. */
SIMD_INLINE int8x16_t round_16(const float32x4_t *x, float inverse, float least,
                               float most)
{
    int16x4_t v[4];

    SIMD_UNROLL
    for (int i = 0; i < 4; i++)
        v[i] =
            vmovn_s32(vcvtnq_s32_f32(limit(vmulq_n_f32(x[i], inverse), least, most)));
    return vcombine_s8(vmovn_s16(vcombine_s16(v[0], v[1])),
                       vmovn_s16(vcombine_s16(v[2], v[3])));
}

void kern_to_kv_q8_0__neon(void *dst, const float *src, size_t n)
{
    uint8_t *out = dst;

    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, out += 2 + BLOCK) {
        float32x4_t x[VECS];

        load_block(src, x);

        const float inverse = scale_of(x, 127, out);

        vst1q_s8((int8_t *)out + 2, round_16(x, inverse, -127, 127));
        vst1q_s8((int8_t *)out + 18, round_16(x + 4, inverse, -127, 127));
    }
}

void kern_to_kv_q4_0__neon(void *dst, const float *src, size_t n)
{
    uint8_t *out = dst;

    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, out += 2 + BLOCK / 2) {
        float32x4_t x[VECS];

        load_block(src, x);

        const float inverse = scale_of(x, -8, out);
        const uint8x16_t lo =
            vreinterpretq_u8_s8(vaddq_s8(round_16(x, inverse, -8, 7), vdupq_n_s8(8)));
        const uint8x16_t hi = vreinterpretq_u8_s8(
            vaddq_s8(round_16(x + 4, inverse, -8, 7), vdupq_n_s8(8)));

        vst1q_u8(out + 2, vorrq_u8(lo, vshlq_n_u8(hi, 4)));
    }
}
