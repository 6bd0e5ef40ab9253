/* SPDX-License-Identifier: MIT
 *
 * activations.h - layouts of a quantised activation column
 *
 * A column of k values is stored as separate arrays (not as an array of
 * blocks), each starting on a 64-byte boundary relative to the column, so that
 * kernels can load or broadcast neighbouring int8 values at any width:
 *
 *   f32     | float x[k]                                                     |
 *
 *   q8_32   | int8 q[k] | float d[k/32] | float s[k/32] | int16 sums[k/16]   |
 *             x[i] ~ d[i/32] * q[i];  sums[j] = sum of q over 16 values;
 *             s[b] = d[b] * (sum of q over block b)
 *             d = max|x| / 127 within the block
 *
 *   q8_256  | int8 q[k] | float d[k/256] | int16 sums[k/16]                  |
 *             x[i] ~ d[i/256] * q[i]; sums[j] = sum of q over 16 values
 *             d = max|x| / 127 within the 256; k is a multiple of 256
 *
 * q is in -127..127, never -128, so that |q| fits the signed operand tricks of
 * AVX2, and |sums[j]| <= 16 * 127 = 2032. q = x * (127 / max|x|), rounded to
 * nearest even; every ISA level writes the same bits.
 *
 * A block whose max|x| is below ACT_TINY, where 127 / max|x| would overflow or d
 * lose bits, becomes zeros with d = 0. In a block with an infinity or a NaN, q is
 * 0 and d not finite, so that every product with it is not a number.
 *
 * What pads an array to 64 bytes is not written and need not be read.
 */
#ifndef SLM_KERNELS_ACTIVATIONS_H
#define SLM_KERNELS_ACTIVATIONS_H

#include <float.h>
#include <stddef.h>
#include <stdint.h>

#define KERN_ALIGN64(n) (((size_t)(n) + 63) & ~(size_t)63)

#define ACT_TINY 0x1p-100f

static inline const int8_t *act_q(const void *x)
{
    return (const int8_t *)x;
}

static inline const float *act_q8_32_d(const void *x, size_t k)
{
    return (const float *)(const void *)((const char *)x + KERN_ALIGN64(k));
}

static inline const float *act_q8_32_s(const void *x, size_t k)
{
    return (const float *)(const void *)((const char *)x + KERN_ALIGN64(k) +
                                         KERN_ALIGN64(k / 32 * sizeof(float)));
}

static inline const int16_t *act_q8_32_sums(const void *x, size_t k)
{
    return (const int16_t *)(const void *)((const char *)x + KERN_ALIGN64(k) +
                                           2 * KERN_ALIGN64(k / 32 * sizeof(float)));
}

static inline const float *act_q8_256_d(const void *x, size_t k)
{
    return (const float *)(const void *)((const char *)x + KERN_ALIGN64(k));
}

static inline const int16_t *act_q8_256_sums(const void *x, size_t k)
{
    return (const int16_t *)(const void *)((const char *)x + KERN_ALIGN64(k) +
                                           KERN_ALIGN64(k / 256 * sizeof(float)));
}

/* What the values of a block are multiplied with and what d becomes, from the
 * largest magnitude of the block. */
struct act_scale {
    float inverse; /* q = round(x * inverse); 0: all q are 0 */
    float d;
};

static inline struct act_scale act_scale_of(float largest)
{
    struct act_scale s = {0, 0};

    if (!(largest < ACT_TINY)) { /* also for a NaN */
        s.d = largest / 127;
        if (largest <= FLT_MAX)
            s.inverse = 127 / largest;
    }
    return s;
}

#endif
