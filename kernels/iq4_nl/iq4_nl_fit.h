/* SPDX-License-Identifier: MIT
 *
 * iq4_nl_fit.h - rounding to the grid of iq4_nl and iq4_xs, for their quantisers
 */
#ifndef SLM_KERNELS_IQ4_NL_FIT_H
#define SLM_KERNELS_IQ4_NL_FIT_H

#include "kernels/fit/fit.h"
#include "kernels/iq4_nl/iq4_nl.h"

/* Where the largest magnitude of a block is tried on the grid: around its negative
 * end and, with d of the other sign, around its positive one. */
static const float iq4_nl_positions[] = {-127,    -121.0f, -115.0f, -109.0f,
                                         -131.0f, -136.0f, 113,     108.0f,
                                         103.0f,  98.0f,   117.0f,  122.0f};

#define IQ4_NL_N_POSITIONS (int)(sizeof(iq4_nl_positions) / sizeof(iq4_nl_positions[0]))

/* The grid's value nearest to t: every midpoint below t adds the step across it. */
SIMD_INLINE fit_vec iq4_nl_nearest(fit_vec t)
{
    fit_vec value = fit_all(iq4_nl_values[0]);

    SIMD_UNROLL
    for (int i = 0; i < 15; i++) {
        const float low = iq4_nl_values[i], high = iq4_nl_values[i + 1];
        const fit_mask above = t > fit_all((low + high) / 2);

        value += (fit_vec)(above & (fit_mask)fit_all(high - low));
    }
    return value;
}

/* Codes of x ~ d * value: a mask is -1 where t is above a midpoint. */
SIMD_INLINE void iq4_nl_codes(const fit_vec *x, float d, uint8_t *codes)
{
    const float inverse = fit_inverse(d);

    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec t = x[i] * fit_all(inverse);
        fit_mask code = {0};

        SIMD_UNROLL
        for (int j = 0; j < 15; j++)
            code -= t > fit_all((float)(iq4_nl_values[j] + iq4_nl_values[j + 1]) / 2);
        for (int j = 0; j < FIT_LANES; j++)
            codes[FIT_LANES * i + j] = (uint8_t)code[j];
    }
}

#endif
