/* SPDX-License-Identifier: MIT
 *
 * kquant_fit.h - least-squares search of scales and minima, for the quantisers
 *
 * A sub-block x of 16 or 32 values becomes small integers q and one of
 *   a line    x ~ scale * q - min, q in 0..qmax, min >= 0   q2_K q4_K q5_K
 *   a scale   x ~ scale * q, q in -half..half - 1           q3_K q6_K
 * and the super-block's d (and dmin) turn scale and min into integers. Two steps,
 * both minimising the squared error:
 *
 * 1. kquant_fit_line(), kquant_fit_scale(): the real-valued optimum is not found by
 *    mapping the extremes of x to the extremes of q; a slightly narrower or wider
 *    grid moves the rounding. So a row of grids is tried. For each one q is the
 *    rounding of x on it, and for that q the best line is the regression of x on q:
 *        scale = (n Sxq - Sx Sq) / (n Sqq - Sq^2),  -min = (Sx - scale Sq) / n
 *    If that asks for a negative min, it is held at 0: scale = Sxq / Sqq, which is
 *    also the best scale where there is no min, and takes Sxq^2 / Sqq off the squared
 *    error. The error follows from the same sums, so it costs no further pass.
 * 2. kquant_round_line(), kquant_round_scale(): the neighbours of the nearest
 *    integers are tried as well, because an error in one can be made good by the
 *    other and by other q.
 *
 * Sums over x run in four lanes, so that a compiler may use vectors for them.
 * Every conversion to an integer is clamped first and NaN ends at the lower
 * bound, so no input is undefined behaviour.
 */
#ifndef SLM_KERNELS_KQUANT_FIT_H
#define SLM_KERNELS_KQUANT_FIT_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "kernels/half.h"
#include "kernels/kquant/kquant.h"
#include "kernels/simd/simd.h"

/* v rounded to the nearest integer within lo..hi; NaN gives lo. */
static inline int kquant_nearest(float v, int lo, int hi)
{
    v = v > (float)lo ? v : (float)lo;
    v = v < (float)hi ? v : (float)hi;
    return (int)(v - (float)lo + 0.5f) + lo;
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

/* What the searches keep of x and its q. */
struct kquant_sums {
    float xq; /* sum of x * q */
    int q, qq;
};

SIMD_INLINE struct kquant_sums kquant_sum(const float *x, int n, float low, float inv,
                                          int qlo, int qhi)
{
    float xq[4] = {0};
    int q[4] = {0}, qq[4] = {0};

    for (int i = 0; i < n; i += 4)
        for (int l = 0; l < 4; l++) {
            const int v = kquant_nearest((x[i + l] - low) * inv, qlo, qhi);

            xq[l] += x[i + l] * (float)v;
            q[l] += v;
            qq[l] += v * v;
        }
    return (struct kquant_sums){.xq = xq[0] + xq[1] + xq[2] + xq[3],
                                .q = q[0] + q[1] + q[2] + q[3],
                                .qq = qq[0] + qq[1] + qq[2] + qq[3]};
}

/* Squared error of x with given scale and min, every q the nearest. */
SIMD_INLINE float kquant_error(const float *x, int n, float scale, float min, int qlo,
                               int qhi)
{
    const float inv = kquant_inverse(scale);
    float error[4] = {0};

    for (int i = 0; i < n; i += 4)
        for (int l = 0; l < 4; l++) {
            const int q = kquant_nearest((x[i + l] + min) * inv, qlo, qhi);
            const float e = scale * (float)q - min - x[i + l];

            error[l] += e * e;
        }
    return error[0] + error[1] + error[2] + error[3];
}

/* ---- a line: q4_K, q5_K, q2_K ---------------------------------------------------- */

struct kquant_line {
    float scale, min;
};

/* Best line through n values x for the rounding of x on the grid (x - low) * inv; sx
 * is their sum. Returns its squared error less the sum of x^2, which is the same for
 * every grid. */
SIMD_INLINE double kquant_regress(const float *x, int n, double sx, float low,
                                  float inv, int qmax, struct kquant_line *line)
{
    const struct kquant_sums s = kquant_sum(x, n, low, inv, 0, qmax);
    const double sq = s.q, sqq = s.qq, sxq = (double)s.xq;
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

SIMD_INLINE struct kquant_line kquant_fit_line(const float *x, int n, int qmax)
{
    struct kquant_line best = {0, 0};
    double best_error = INFINITY, sx = 0;
    float low = 0, high = 0;

    for (int i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        sx += (double)x[i];
    }
    if (!(high > low)) /* all zero (or not a number) */
        return best;
    for (int step = -8; step <= 8; step++) {
        const float inv = ((float)qmax + 0.125f * (float)step) / (high - low);
        struct kquant_line line;
        const double error = kquant_regress(x, n, sx, low, inv, qmax, &line);

        if (error < best_error) {
            best_error = error;
            best = line;
        }
    }
    return best;
}

/* Integers *sc and *m in 0..top for the line, with the super-block's d and dmin. */
SIMD_INLINE void kquant_round_line(const float *x, int n, struct kquant_line line,
                                   float d, float dmin, int qmax, int top, uint8_t *sc,
                                   uint8_t *m)
{
    const int sc0 = kquant_nearest(line.scale * kquant_inverse(d), 0, top);
    const int m0 = kquant_nearest(line.min * kquant_inverse(dmin), 0, top);
    float best = INFINITY;

    *sc = (uint8_t)sc0;
    *m = (uint8_t)m0;
    for (int i = sc0 > 0 ? sc0 - 1 : 0; i <= sc0 + 1 && i <= top; i++) {
        for (int j = m0 > 0 ? m0 - 1 : 0; j <= m0 + 1 && j <= top; j++) {
            const float error =
                kquant_error(x, n, d * (float)i, dmin * (float)j, 0, qmax);

            if (error < best) {
                best = error;
                *sc = (uint8_t)i;
                *m = (uint8_t)j;
            }
        }
    }
}

/* One super-block x[256] in sub-blocks of sub: the two half scales, the integers
 * sc[256 / sub] and m[256 / sub] in 0..top, and q[256] in 0..qmax, which the format
 * then packs its own way. */
SIMD_INLINE void kquant_quantize_lines(const float *x, int sub, int qmax, int top,
                                       uint16_t *half_d, uint16_t *half_dmin,
                                       uint8_t *sc, uint8_t *m, uint8_t *q)
{
    struct kquant_line line[16];
    float top_scale = 0, top_min = 0;

    for (int s = 0; s < KQ_ELEMS / sub; s++) {
        line[s] = kquant_fit_line(x + sub * s, sub, qmax);
        top_scale = fmaxf(top_scale, line[s].scale);
        top_min = fmaxf(top_min, line[s].min);
    }
    *half_d = kquant_half(top_scale / (float)top);
    *half_dmin = kquant_half(top_min / (float)top);

    const float d = half_to_f32(*half_d), dmin = half_to_f32(*half_dmin);

    for (int s = 0; s < KQ_ELEMS / sub; s++) {
        const float *xs = x + sub * s;

        kquant_round_line(xs, sub, line[s], d, dmin, qmax, top, &sc[s], &m[s]);

        const float inv = kquant_inverse(d * (float)sc[s]);
        const float min = dmin * (float)m[s];

        for (int i = 0; i < sub; i++)
            q[sub * s + i] = (uint8_t)kquant_nearest((xs[i] + min) * inv, 0, qmax);
    }
}

/* ---- a scale: q3_K, q6_K --------------------------------------------------------- */

/* Grids around the one that maps the value of largest magnitude to -half or half - 1.
 */
SIMD_INLINE float kquant_fit_scale(const float *x, int n, int half)
{
    float peak = 0, best_scale = 0;
    double best_gain = 0;

    for (int i = 0; i < n; i++)
        if (fabsf(x[i]) > fabsf(peak))
            peak = x[i];
    for (int step = -16; step <= 16; step++) {
        const float inv = -((float)half + 0.125f * (float)step) * kquant_inverse(peak);
        const struct kquant_sums s = kquant_sum(x, n, 0, inv, -half, half - 1);
        const double gain = s.qq > 0 ? (double)s.xq * (double)s.xq / s.qq : 0;

        if (gain > best_gain) {
            best_gain = gain;
            best_scale = s.xq / (float)s.qq;
        }
    }
    return best_scale;
}

/* The integer in -top..top - 1 for the scale, with the super-block's d. */
SIMD_INLINE int8_t kquant_round_scale(const float *x, int n, float scale, float d,
                                      int half, int top)
{
    const int nearest = kquant_nearest(scale * kquant_inverse(d), -top, top - 1);
    int best = nearest;
    float best_error = INFINITY;

    for (int sc = nearest - 1; sc <= nearest + 1; sc++) {
        const float error = kquant_error(x, n, d * (float)sc, 0, -half, half - 1);

        if (sc >= -top && sc < top && error < best_error) {
            best_error = error;
            best = sc;
        }
    }
    return (int8_t)best;
}

/* One super-block x[256] in sub-blocks of 16: the half scale, the integers sc[16] in
 * -top..top - 1, and q[256] as weight + half, in 0..2 * half - 1. The scale of
 * largest magnitude becomes -top, so that the whole range is used. */
SIMD_INLINE void kquant_quantize_scales(const float *x, int half, int top,
                                        uint16_t *half_d, int8_t sc[16], uint8_t *q)
{
    float scale[16], peak = 0;

    for (int s = 0; s < 16; s++) {
        scale[s] = kquant_fit_scale(x + 16 * s, 16, half);
        if (fabsf(scale[s]) > fabsf(peak))
            peak = scale[s];
    }
    *half_d = kquant_half(peak / (float)-top);

    const float d = half_to_f32(*half_d);

    for (int s = 0; s < 16; s++) {
        const float *xs = x + 16 * s;

        sc[s] = kquant_round_scale(xs, 16, scale[s], d, half, top);

        const float inv = kquant_inverse(d * (float)sc[s]);

        for (int i = 0; i < 16; i++)
            q[16 * s + i] =
                (uint8_t)(kquant_nearest(xs[i] * inv, -half, half - 1) + half);
    }
}

#endif
