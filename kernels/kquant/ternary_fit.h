/* SPDX-License-Identifier: MIT
 *
 * ternary_fit.h - the best ternary approximation of 256 values, for tq1_0 and tq2_0
 *
 * x ~ d * t with t in -1, 0, 1. For a set of values that get t = sign(x), the sum S of
 * their w |x| and the sum W of their importances w, the best d is S / W, and takes
 * S^2 / W off the squared error. The best set is always "all above some magnitude"
 * (d / 2), so it is enough to try magnitudes as thresholds: a histogram of |x| / max|x|
 * gives W and S for each bin border, from the top. Weights that are ternary already
 * come back exactly (as far as d is a half): they lie in the top and the bottom bin.
 */
#ifndef SLM_KERNELS_TERNARY_FIT_H
#define SLM_KERNELS_TERNARY_FIT_H

#include "kernels/kquant/kquant_fit.h"

enum { TERNARY_BINS = 64 };

/* The best d, not yet rounded; w: importances, or NULL. */
static inline float ternary_fit(const float *x, const float *w)
{
    double sum[TERNARY_BINS] = {0}, above = 0, best_gain = 0, best = 0;
    double weight[TERNARY_BINS] = {0}, w_above = 0;
    float peak = 0;

    for (int i = 0; i < KQ_ELEMS; i++)
        peak = fabsf(x[i]) > peak ? fabsf(x[i]) : peak;

    const float inv = TERNARY_BINS * kquant_inverse(peak);

    for (int i = 0; i < KQ_ELEMS; i++) {
        const int bin = kquant_nearest(fabsf(x[i]) * inv - 0.5f, 0, TERNARY_BINS - 1);

        const double wi = w ? (double)w[i] : 1;

        sum[bin] += wi * (double)fabsf(x[i]);
        weight[bin] += wi;
    }
    for (int bin = TERNARY_BINS - 1; bin >= 0; bin--) {
        above += sum[bin];
        w_above += weight[bin];
        if (w_above > 0 && above * above / w_above > best_gain) {
            best_gain = above * above / w_above;
            best = above / w_above;
        }
    }
    return (float)best;
}

/* q[i] = t + 1; returns d as a half. */
static inline uint16_t ternary_quantize(const float *x, const float *w,
                                        uint8_t q[KQ_ELEMS])
{
    const uint16_t d = kquant_half(ternary_fit(x, w));
    const float inv = kquant_inverse(half_to_f32(d));

    for (int i = 0; i < KQ_ELEMS; i++)
        q[i] = (uint8_t)(kquant_nearest(x[i] * inv, -1, 1) + 1);
    return d;
}

#endif
