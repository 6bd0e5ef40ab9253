/* SPDX-License-Identifier: MIT
 *
 * lanes.h - the compiler's own vectors, for the quantisers
 *
 * A compiler may not reorder a plain loop's sums, so the searches say themselves what
 * runs side by side: FIT_LANES floats, which are a register of AVX2 and two elsewhere.
 * That number, and no contraction (cmake/isa.cmake), make the bytes of a quantised
 * file the same on every CPU.
 */
#ifndef SLM_KERNELS_FIT_LANES_H
#define SLM_KERNELS_FIT_LANES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "kernels/simd/simd.h"

#define FIT_LANES 8

typedef float fit_vec __attribute__((vector_size(4 * FIT_LANES)));
typedef int32_t fit_mask __attribute__((vector_size(4 * FIT_LANES)));

/* v in every lane; taking 0 off changes nothing, not even the sign of a zero. */
SIMD_INLINE fit_vec fit_all(float v)
{
    return v - (fit_vec){0};
}

SIMD_INLINE fit_vec fit_choose(fit_mask which, fit_vec yes, fit_vec no)
{
    return (fit_vec)((which & (fit_mask)yes) | (~which & (fit_mask)no));
}

SIMD_INLINE fit_vec fit_max(fit_vec a, fit_vec b)
{
    return fit_choose(a > b, a, b);
}

SIMD_INLINE fit_vec fit_min(fit_vec a, fit_vec b)
{
    return fit_choose(a < b, a, b);
}

SIMD_INLINE fit_vec fit_abs(fit_vec v)
{
    return (fit_vec)((fit_mask)v & 0x7fffffff);
}

/* v within lo..hi; NaN gives lo. */
SIMD_INLINE fit_vec fit_clamp(fit_vec v, float lo, float hi)
{
    return fit_min(fit_max(v, fit_all(lo)), fit_all(hi));
}

/* The nearest integer, ties to even, for |v| < 2^22: 1.5 * 2^23 leaves no bits
 * for a fraction. */
SIMD_INLINE fit_vec fit_round(fit_vec v)
{
    return (v + fit_all(0x1.8p23f)) - fit_all(0x1.8p23f);
}

/* The lanes' sum, halves upon halves. */
SIMD_INLINE float fit_sum(fit_vec v)
{
    float part[FIT_LANES];

    memcpy(part, &v, sizeof(part));
    SIMD_UNROLL
    for (int n = FIT_LANES / 2; n > 0; n /= 2)
        for (int i = 0; i < n; i++)
            part[i] += part[i + n];
    return part[0];
}

/* The largest lane. */
SIMD_INLINE float fit_top(fit_vec v)
{
    float top = v[0];

    for (int i = 1; i < FIT_LANES; i++)
        top = fmaxf(top, v[i]);
    return top;
}

#define FIT_KEEP 0.75f

/* What a scale by regression is multiplied with. Regression shrinks: it leaves an error
 * that is all but independent of the codes, but not of the weights, whose products come
 * out too small by the share of the error in their energy, in every row alike; and what
 * all rows have in common adds up from layer to layer. The scale that keeps products
 * in proportion is 1 / share of the energy that codes reach, and costs little: with a
 * relative squared error of e the scale grows by about e, and the error by the part e
 * of itself. FIT_KEEP of the way is gone: on a small trained model most of what is to
 * be gained (the divergence of IQ1 falls by a quarter, that of Q2_K and IQ2 by an
 * eighth, and from four bits on nothing changes), for little of the error.
 *
 * energy: sum of w x^2; reached: what the codes take off it. */
SIMD_INLINE float fit_keep(float energy, float reached)
{
    if (!(reached > 0.25f * energy)) /* codes that reach almost nothing */
        return 1;
    return 1 + FIT_KEEP * (energy / reached - 1);
}

/* Weights without what is not a number, cut to what f16 scales can reach:
 * 65504 * 32 * 127 < 2^28. */
SIMD_INLINE fit_vec fit_sane(fit_vec x)
{
    return fit_clamp(fit_choose(x == x, x, fit_all(0)), -0x1p30f, 0x1p30f);
}

#endif
