/* SPDX-License-Identifier: MIT
 *
 * to_kv_scalar.c - keys and values as the KV cache stores them, reference
 */
#include <math.h>
#include <string.h>

#include "kernels/half.h"
#include "kernels/kernels.h"

enum { BLOCK = 32 };

/* A NaN stays one. */
static float limit(float x, float least, float most)
{
    return x > most ? most : x < least ? least : x;
}

void kern_to_kv_f16__scalar(void *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t half =
            half_from_f32(limit(src[i], -KERN_HALF_MAX, KERN_HALF_MAX));

        memcpy((char *)dst + i * sizeof half, &half, sizeof half);
    }
}

void kern_to_kv_bf16__scalar(void *dst, const float *src, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint16_t bf16 =
            bf16_from_f32(limit(src[i], -KERN_BF16_MAX, KERN_BF16_MAX));

        memcpy((char *)dst + i * sizeof bf16, &bf16, sizeof bf16);
    }
}

static float without_nan(float x)
{
    return isnan(x) ? 0 : x;
}

/* The scale that makes the value of largest magnitude `end` (or, of a symmetric range,
 * either end), as it is stored, and what elements are multiplied with. */
static float scale_of(const float *x, float end, uint8_t *stored)
{
    float lo = 0, hi = 0;

    for (size_t i = 0; i < BLOCK; i++) {
        lo = fminf(lo, without_nan(x[i]));
        hi = fmaxf(hi, without_nan(x[i]));
    }

    const float largest = hi > -lo ? hi : lo;
    const uint16_t half = half_from_f32(limit(
        (end > 0 ? fabsf(largest) : largest) / end, -KERN_HALF_MAX, KERN_HALF_MAX));
    const float d = half_to_f32(half);

    memcpy(stored, &half, sizeof half);
    return d != 0 ? 1 / d : 0;
}

static int round_to(float x, float inverse, float least, float most)
{
    return (int)rintf(limit(without_nan(x) * inverse, least, most));
}

void kern_to_kv_q8_0__scalar(void *dst, const float *src, size_t n)
{
    uint8_t *out = dst;

    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, out += 2 + BLOCK) {
        const float inverse = scale_of(src, 127, out);

        for (size_t i = 0; i < BLOCK; i++)
            out[2 + i] = (uint8_t)round_to(src[i], inverse, -127, 127);
    }
}

void kern_to_kv_q4_0__scalar(void *dst, const float *src, size_t n)
{
    uint8_t *out = dst;

    for (size_t b = 0; b < n / BLOCK; b++, src += BLOCK, out += 2 + BLOCK / 2) {
        const float inverse = scale_of(src, -8, out);

        for (size_t i = 0; i < BLOCK / 2; i++)
            out[2 + i] =
                (uint8_t)((round_to(src[i], inverse, -8, 7) + 8) |
                          (round_to(src[i + BLOCK / 2], inverse, -8, 7) + 8) << 4);
    }
}
