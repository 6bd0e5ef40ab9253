/* SPDX-License-Identifier: MIT
 *
 * kquant_fit.h - least-squares search of scales and minima, for the quantisers
 *
 * x is to be written as scale * q - min with integers q in 0..qmax and min >= 0
 * (a q4_K or q5_K sub-block). Two steps, both minimising the squared error:
 *
 * 1. kquant_fit(): the real-valued optimum is not found by mapping the extremes
 *    of x to 0 and qmax; a slightly narrower or wider grid moves the rounding.
 *    So a row of grids is tried. For each one q is the rounding of x on it, and
 *    for that q the best line is the regression of x on q:
 *        scale = (n Sxq - Sx Sq) / (n Sqq - Sq^2),  -min = (Sx - scale Sq) / n
 *    If that asks for a negative min, it is held at 0: scale = Sxq / Sqq.
 *    The error follows from the same sums, so it costs no further pass.
 * 2. kquant_round(): the super-block's d and dmin turn scale and min into
 *    integers; the neighbours of the nearest integers are tried as well, because
 *    an error in one can be made good by the other and by other q.
 *
 * Every conversion to an integer is clamped first and NaN ends at the lower
 * bound, so no input is undefined behaviour.
 */
#ifndef SLM_KERNELS_KQUANT_FIT_H
#define SLM_KERNELS_KQUANT_FIT_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "kernels/half.h"

#define KQ_SUB 32 /* elements of a q4_K or q5_K sub-block */

/* v rounded to the nearest integer within lo..hi; NaN gives lo. */
static inline int kquant_nearest(float v, int lo, int hi)
{
    if (!(v > (float)lo))
        return lo;
    if (v >= (float)hi)
        return hi;
    return (int)floorf(v + 0.5f);
}

/* The half nearest to v within the finite halves (65504 is the largest). */
static inline uint16_t kquant_half(float v)
{
    return half_from_f32(fminf(fmaxf(v, -65504.0f), 65504.0f));
}

/* 1 / d, or 0 for d = 0 and for a d so small that the inverse overflows: such a
 * step rounds everything to the same integer anyway. */
static inline float kquant_inverse(float d)
{
    return fabsf(d) > 1.0f / FLT_MAX ? 1.0f / d : 0.0f;
}

struct kquant_line {
    float scale, min;
};

/* Best line through x for the rounding of x on the grid (x - low) * inv.
 * Returns its squared error less the sum of x^2, which is the same for every
 * grid. */
static inline double kquant_regress(const float *x, float low, float inv, int qmax,
                                    struct kquant_line *line)
{
    const double n = KQ_SUB;
    double sx = 0, sq = 0, sxq = 0, sqq = 0;

    for (int i = 0; i < KQ_SUB; i++) {
        const double q = kquant_nearest((x[i] - low) * inv, 0, qmax);

        sx += (double)x[i];
        sq += q;
        sxq += (double)x[i] * q;
        sqq += q * q;
    }

    const double det = n * sqq - sq * sq;
    double scale = det > 0 ? (n * sxq - sx * sq) / det : 0;
    double offset = (sx - scale * sq) / n;

    if (offset > 0) {
        offset = 0;
        scale = sqq > 0 ? sxq / sqq : 0;
    }
    line->scale = (float)fmax(scale, 0);
    line->min = (float)-offset;
    /* sum (x - scale q - offset)^2, expanded, without the sum of x^2. */
    return scale * scale * sqq + n * offset * offset + 2 * scale * offset * sq -
           2 * scale * sxq - 2 * offset * sx;
}

static inline struct kquant_line kquant_fit(const float *x, int qmax)
{
    struct kquant_line best = {0, 0};
    double best_error = INFINITY;
    float low = 0, high = 0;

    for (int i = 0; i < KQ_SUB; i++) {
        low = fminf(low, x[i]);
        high = fmaxf(high, x[i]);
    }
    if (!(high > low)) /* all zero (or not a number) */
        return best;
    for (int step = -8; step <= 8; step++) {
        const float inv = ((float)qmax + 0.125f * (float)step) / (high - low);
        struct kquant_line line;
        const double error = kquant_regress(x, low, inv, qmax, &line);

        if (error < best_error) {
            best_error = error;
            best = line;
        }
    }
    return best;
}

/* Squared error of x with given scale and min, every q the nearest. */
static inline float kquant_error(const float *x, float scale, float min, int qmax)
{
    const float inv = kquant_inverse(scale);
    float error = 0;

    for (int i = 0; i < KQ_SUB; i++) {
        const int q = kquant_nearest((x[i] + min) * inv, 0, qmax);
        const float e = scale * (float)q - min - x[i];

        error += e * e;
    }
    return error;
}

/* Integers *sc and *m in 0..63 for the line, with the super-block's d and dmin. */
static inline void kquant_round(const float *x, struct kquant_line line, float d,
                                float dmin, int qmax, uint8_t *sc, uint8_t *m)
{
    const int sc0 = kquant_nearest(line.scale * kquant_inverse(d), 0, 63);
    const int m0 = kquant_nearest(line.min * kquant_inverse(dmin), 0, 63);
    float best = INFINITY;

    *sc = (uint8_t)sc0;
    *m = (uint8_t)m0;
    for (int i = sc0 > 0 ? sc0 - 1 : 0; i <= sc0 + 1 && i <= 63; i++) {
        for (int j = m0 > 0 ? m0 - 1 : 0; j <= m0 + 1 && j <= 63; j++) {
            const float error = kquant_error(x, d * (float)i, dmin * (float)j, qmax);

            if (error < best) {
                best = error;
                *sc = (uint8_t)i;
                *m = (uint8_t)j;
            }
        }
    }
}

/* One super-block x[256]: the two half scales, the packed six-bit integers and
 * q[256], which the format then packs its own way. */
static inline void kquant_quantize(const float *x, int qmax, uint16_t *half_d,
                                   uint16_t *half_dmin, uint8_t six[16], uint8_t *q)
{
    struct kquant_line line[8];
    float top_scale = 0, top_min = 0;

    for (int s = 0; s < 8; s++) {
        line[s] = kquant_fit(x + KQ_SUB * s, qmax);
        top_scale = fmaxf(top_scale, line[s].scale);
        top_min = fmaxf(top_min, line[s].min);
    }
    *half_d = kquant_half(top_scale / 63);
    *half_dmin = kquant_half(top_min / 63);

    const float d = half_to_f32(*half_d), dmin = half_to_f32(*half_dmin);

    for (int s = 0; s < 8; s++) {
        const float *xs = x + KQ_SUB * s;

        kquant_round(xs, line[s], d, dmin, qmax, &six[s], &six[8 + s]);

        const float inv = kquant_inverse(d * (float)six[s]);
        const float min = dmin * (float)six[8 + s];

        for (int i = 0; i < KQ_SUB; i++)
            q[KQ_SUB * s + i] = (uint8_t)kquant_nearest((xs[i] + min) * inv, 0, qmax);
    }
}

#endif
