/* SPDX-License-Identifier: MIT
 *
 * act_scalar.h - quantisation of one block of activations in portable C
 */
#ifndef SLM_KERNELS_ACT_SCALAR_H
#define SLM_KERNELS_ACT_SCALAR_H

#include <math.h>

#include "kernels/activations/activations.h"
#include "kernels/half.h"

/* Largest magnitude of x[n]. Magnitudes compare like their bits as integers, and
 * a NaN is above infinity, so it wins. */
static inline float act_largest(const float *x, size_t n)
{
    uint32_t largest = 0;

    for (size_t i = 0; i < n; i++) {
        const uint32_t magnitude = float_bits(x[i]) & 0x7fffffff;

        largest = magnitude > largest ? magnitude : largest;
    }
    return float_from_bits(largest);
}

/* x[n] -> q[n] with one scale; returns d and adds nothing up. The product is at
 * most 127 * (1 + 2^-23), which rounds to 127. */
static inline float act_quantize_block(const float *x, int8_t *q, size_t n)
{
    const struct act_scale s = act_scale_of(act_largest(x, n));

    for (size_t i = 0; i < n; i++)
        q[i] = s.inverse == 0 ? 0 : (int8_t)rintf(x[i] * s.inverse);
    return s.d;
}

#endif
