/* SPDX-License-Identifier: MIT
 *
 * e2m1.h - 4-bit floats nearest to weights, for mxfp4 and nvfp4
 */
#ifndef SLM_KERNELS_FIT_E2M1_H
#define SLM_KERNELS_FIT_E2M1_H

#include "kernels/fit/fit.h"
#include "kernels/mxfp4/mxfp4.h"

/* The E2M1 value nearest to t. */
SIMD_INLINE fit_vec e2m1_nearest(fit_vec t)
{
    const fit_vec size = fit_choose(t < fit_all(0), -t, t);
    fit_vec value = fit_all(0);

    SIMD_UNROLL
    for (int i = 0; i < 7; i++) {
        const float low = mxfp4_values[i], high = mxfp4_values[i + 1];
        const fit_mask above = size > fit_all((low + high) / 4);

        value += (fit_vec)(above & (fit_mask)fit_all((high - low) / 2));
    }
    return fit_choose(t < fit_all(0), -value, value);
}

/* The codes of x times inverse: the number of midpoints below the magnitude, and bit 3
 * for a negative value unless it became zero. */
SIMD_INLINE void e2m1_codes(const fit_vec *x, float inverse, uint8_t *codes)
{
    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec t = x[i] * fit_all(inverse);
        const fit_vec size = fit_choose(t < fit_all(0), -t, t);
        fit_mask code = {0};

        SIMD_UNROLL
        for (int j = 0; j < 7; j++)
            code -= size > fit_all((float)(mxfp4_values[j] + mxfp4_values[j + 1]) / 4);
        for (int j = 0; j < FIT_LANES; j++)
            codes[FIT_LANES * i + j] =
                (uint8_t)(code[j] | (code[j] > 0 && t[j] < 0 ? 8 : 0));
    }
}

#endif
