/* SPDX-License-Identifier: MIT
 *
 * half.h - 16-bit floats, one value at a time
 *
 *   f16   IEEE 754 binary16   | s | eeeee | mmmmmmmmmm |        bias 15
 *   bf16  the upper half of a float32
 *                             | s | eeeeeeee | mmmmmmm |        bias 127
 *
 * Both round to nearest, ties to even; both keep infinities and turn every NaN
 * into a quiet one. Portable C; where the compiler targets F16C, that is used:
 * it gives the same bits. Kernels that convert many values have their own ways.
 */
#ifndef SLM_KERNELS_HALF_H
#define SLM_KERNELS_HALF_H

#include <stdint.h>
#include <string.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

static inline uint32_t float_bits(float f)
{
    uint32_t bits;

    memcpy(&bits, &f, sizeof(bits));
    return bits;
}

static inline float float_from_bits(uint32_t bits)
{
    float f;

    memcpy(&f, &bits, sizeof(f));
    return f;
}

/* A 16-bit value at any address. */
static inline uint16_t load_u16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof(v));
    return v;
}

static inline float half_to_f32(uint16_t h)
{
#ifdef __F16C__
    return _cvtsh_ss(h);
#else
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16;
    const uint32_t rest = (uint32_t)(h & 0x7fff) << 13; /* fields in float's places */

    if (rest >= 0x7c00u << 13) /* infinity; NaN becomes quiet */
        return float_from_bits(sign | 0x70000000u | rest |
                               (rest > 0x7c00u << 13 ? 0x400000u : 0));
    if (rest >= 0x0400u << 13) /* normal: move the bias from 15 to 127 */
        return float_from_bits(sign | (rest + (112u << 23)));
    /* Zero or subnormal, mantissa * 2^-24: place the mantissa below an exponent
     * of 113 (2^-14), where it counts in units of 2^-24, and take the 2^-14 off. */
    return float_from_bits(sign |
                           float_bits(float_from_bits(113u << 23 | rest) - 0x1p-14f));
#endif
}

static inline uint16_t half_from_f32(float f)
{
#ifdef __F16C__
    return _cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT);
#else
    const uint32_t bits = float_bits(f);
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    const uint32_t rest = bits & 0x7fffffff;

    if (rest > 0x7f800000u) /* NaN: keep the top of the payload, make it quiet */
        return (uint16_t)(sign | 0x7e00 | (rest >> 13 & 0x3ff));
    if (rest >= 0x477ff000u) /* 65520 and more round to infinity */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000u) {
        /* Below 2^-14: adding 0.5 leaves a unit of 2^-24 in the last place, so
         * the addition itself rounds to a multiple of the smallest half. */
        const uint32_t shifted = float_bits(float_from_bits(rest) + 0.5f);

        return (uint16_t)(sign | (shifted - 0x3f000000u));
    }
    /* Normal: round to 13 bits less (half up, minus one if the kept bit is even),
     * then move the bias; a carry runs into the exponent as it should. */
    return (uint16_t)(sign | (rest + 0xfffu + (rest >> 13 & 1) - (112u << 23)) >> 13);
#endif
}

static inline float bf16_to_f32(uint16_t b)
{
    return float_from_bits((uint32_t)b << 16);
}

static inline uint16_t bf16_from_f32(float f)
{
    const uint32_t bits = float_bits(f);

    if ((bits & 0x7fffffff) > 0x7f800000u)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#endif
