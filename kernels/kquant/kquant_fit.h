/* SPDX-License-Identifier: MIT
 *
 * kquant_fit.h - least-squares search of scales and minima, for the quantisers
 *
 * A sub-block x of 16 or 32 values with importances w becomes small integers q and
 * one of
 *   a line    x ~ scale * q - min, q in 0..qmax, min >= 0   q2_K q4_K q5_K
 *   a scale   x ~ scale * q, q in -half..half - 1           q3_K q6_K
 * and the super-block's d (and dmin) turn scale and min into integers. Three steps,
 * all minimising the squared error (Sab = sum of w a b, S1 = sum of w):
 *
 * 1. kquant_fit_line(), kquant_fit_scale(): the real-valued optimum is not found by
 *    mapping the extremes of x to the extremes of q; a slightly narrower or wider
 *    grid moves the rounding. So a row of grids is tried. For each one q is the
 *    rounding of x on it, and for that q the best line is the regression of x on q:
 *        scale = (S1 Sxq - Sx Sq) / (S1 Sqq - Sq^2),  -min = (Sx - scale Sq) / S1
 *    If that min is negative, it is set to 0: scale = Sxq / Sqq, which is
 *    also the best scale where there is no min, and takes Sxq^2 / Sqq off the squared
 *    error. The error follows from the same sums, so it costs no further pass. From
 *    the best line on, q and line are found alternately.
 * 2. kquant_round_line(), kquant_round_scale(): the neighbours of the nearest
 *    integers are tried as well, because an error in one can be made good by the
 *    other and by other q.
 * 3. With all integers known, d (and dmin) are the regression on them, a little more
 *    (fit_keep()), and the last q the nearest to what that gives.
 *
 * Lanes are sub-blocks: FIT_LANES of them take every step together, and no sum runs
 * across lanes. Magnitudes are cut to 2^30 when read (fit_sane()), so that nothing
 * overflows; what underflows is treated as zero.
 */
#ifndef SLM_KERNELS_KQUANT_FIT_H
#define SLM_KERNELS_KQUANT_FIT_H

#include <float.h>
#include <math.h>
#include <stdint.h>

#include "kernels/fit/lanes.h"
#include "kernels/half.h"
#include "kernels/kquant/kquant.h"

/* Grids on either side of the plain one, a step apart; iterations of Lloyd's algorithm.
 */
#define KQUANT_LINE_STEPS  8
#define KQUANT_LINE_STEP   0.125f
#define KQUANT_SCALE_STEPS 8
#define KQUANT_SCALE_STEP  0.25f
#define KQUANT_REPEATS     2

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

/* ---- super-blocks as lanes ------------------------------------------------------- */

/* Sub-blocks of up to 32 values, value i of lane l in x[i][l]. */
struct kquant_lanes {
    fit_vec x[32], w[32];
};

/* FIT_LANES sub-blocks of n values from src and their importances; NULL: all equal. */
SIMD_INLINE void kquant_load(const float *src, const float *w, int n,
                             struct kquant_lanes *to)
{
    for (int i = 0; i < n; i++) {
        for (int l = 0; l < FIT_LANES; l++)
            to->x[i][l] = src[n * l + i];
        to->x[i] = fit_sane(to->x[i]);
        to->w[i] = fit_all(1);
        for (int l = 0; w && l < FIT_LANES; l++)
            to->w[i][l] = w[n * l + i];
    }
}

/* The nearest integers within lo..hi. */
SIMD_INLINE fit_vec kquant_round(fit_vec v, float lo, float hi)
{
    return fit_round(fit_clamp(v, lo, hi));
}

/* 1 / d, or 0 where that is no ordinary number. */
SIMD_INLINE fit_vec kquant_inverses(fit_vec d)
{
    const fit_mask tiny = fit_abs(d) < fit_all(0x1p-100f);

    return fit_choose(tiny, fit_all(0), 1 / fit_choose(tiny, fit_all(1), d));
}

/* Squared error of every lane with given scale and min, every q the nearest. */
SIMD_INLINE fit_vec kquant_error(const struct kquant_lanes *s, int n, fit_vec scale,
                                 fit_vec min, float lo, float hi)
{
    const fit_vec inverse = kquant_inverses(scale);
    fit_vec error = fit_all(0);

    for (int i = 0; i < n; i++) {
        const fit_vec q = kquant_round((s->x[i] + min) * inverse, lo, hi);
        const fit_vec e = scale * q - min - s->x[i];

        error += s->w[i] * e * e;
    }
    return error;
}

/* ---- a line: q4_K, q5_K, q2_K ---------------------------------------------------- */

struct kquant_line {
    fit_vec scale, min;
    fit_vec gain; /* what it takes off the sum of w x^2 */
};

/* Best lines for the rounding of x on the grids (x - low) * inverse; sw and sx are the
 * lanes' S1 and Sx. */
SIMD_INLINE struct kquant_line kquant_line_at(const struct kquant_lanes *s, int n,
                                              fit_vec sw, fit_vec sx, fit_vec low,
                                              fit_vec inverse, float qmax)
{
    fit_vec sq = fit_all(0), sqq = fit_all(0), sxq = fit_all(0);

    for (int i = 0; i < n; i++) {
        const fit_vec q = kquant_round((s->x[i] - low) * inverse, 0, qmax);
        const fit_vec wq = s->w[i] * q;

        sq += wq;
        sqq += wq * q;
        sxq += wq * s->x[i];
    }

    /* Sums are rounded, so a determinant that is next to nothing is nothing. */
    const fit_vec det = sw * sqq - sq * sq, least = fit_all(1e-6f) * sw * sqq;
    const fit_mask sloped = (det > least) & (sqq > fit_all(0));
    const fit_vec safe = fit_choose(sqq > fit_all(0), sqq, fit_all(1));
    const fit_vec slope = (sw * sxq - sx * sq) / fit_choose(sloped, det, fit_all(1));
    fit_vec scale = fit_choose(sloped, slope, fit_all(0));
    fit_vec min = (scale * sq - sx) / sw;
    const fit_mask held = min < fit_all(0);

    scale = fit_max(fit_choose(held, sxq / safe, scale), fit_all(0));
    min = fit_max(min, fit_all(0));
    return (struct kquant_line){
        .scale = scale,
        .min = min,
        .gain = 2 * (scale * sxq - min * sx) -
                (scale * scale * sqq + sw * min * min - 2 * scale * min * sq)};
}

SIMD_INLINE struct kquant_line kquant_better_line(struct kquant_line a,
                                                  struct kquant_line b)
{
    const fit_mask better = b.gain > a.gain;

    return (struct kquant_line){.scale = fit_choose(better, b.scale, a.scale),
                                .min = fit_choose(better, b.min, a.min),
                                .gain = fit_choose(better, b.gain, a.gain)};
}

SIMD_INLINE struct kquant_line kquant_fit_line(const struct kquant_lanes *s, int n,
                                               float qmax)
{
    struct kquant_line best = {fit_all(0), fit_all(0), fit_all(0)};
    fit_vec low = fit_all(0), high = fit_all(0), sw = fit_all(0), sx = fit_all(0);

    for (int i = 0; i < n; i++) {
        low = fit_min(s->x[i], low);
        high = fit_max(s->x[i], high);
        sw += s->w[i];
        sx += s->w[i] * s->x[i];
    }

    const fit_vec inverse = kquant_inverses(high - low);

    for (int step = -KQUANT_LINE_STEPS; step <= KQUANT_LINE_STEPS; step++) {
        const float size = qmax + KQUANT_LINE_STEP * (float)step;

        best = kquant_better_line(
            best, kquant_line_at(s, n, sw, sx, low, size * inverse, qmax));
    }
    for (int i = 0; i < KQUANT_REPEATS; i++)
        best =
            kquant_better_line(best, kquant_line_at(s, n, sw, sx, -best.min,
                                                    kquant_inverses(best.scale), qmax));
    return best;
}

/* Integers *sc and *m in 0..top for the lines, with the super-block's d and dmin. */
SIMD_INLINE void kquant_round_line(const struct kquant_lanes *s, int n,
                                   const struct kquant_line *line, float d, float dmin,
                                   float qmax, float top, fit_vec *sc, fit_vec *m)
{
    const fit_vec sc0 = kquant_round(line->scale * kquant_inverse(d), 0, top);
    const fit_vec m0 = kquant_round(line->min * kquant_inverse(dmin), 0, top);
    fit_vec best = fit_all(INFINITY);

    *sc = sc0;
    *m = m0;
    for (int i = -1; i <= 1; i++)
        for (int j = -1; j <= 1; j++) {
            const fit_vec sci = fit_clamp(sc0 + fit_all((float)i), 0, top);
            const fit_vec mj = fit_clamp(m0 + fit_all((float)j), 0, top);
            const fit_vec error = kquant_error(s, n, d * sci, dmin * mj, 0, qmax);
            const fit_mask better = error < best;

            best = fit_choose(better, error, best);
            *sc = fit_choose(better, sci, *sc);
            *m = fit_choose(better, mj, *m);
        }
}

/* The sums that d and dmin follow from: x ~ d * a - dmin * b, a = sc * q, b = m. */
struct kquant_both {
    fit_vec aa, ab, bb, xa, xb, xx;
};

SIMD_INLINE void kquant_add_line(struct kquant_both *sums, const struct kquant_lanes *s,
                                 int n, fit_vec sc, fit_vec m, float d, float dmin,
                                 float qmax)
{
    const fit_vec inverse = kquant_inverses(d * sc), min = dmin * m;

    for (int i = 0; i < n; i++) {
        const fit_vec a = sc * kquant_round((s->x[i] + min) * inverse, 0, qmax);
        const fit_vec wa = s->w[i] * a, wm = s->w[i] * m;

        sums->aa += wa * a;
        sums->ab += wa * m;
        sums->bb += wm * m;
        sums->xa += wa * s->x[i];
        sums->xb += wm * s->x[i];
        sums->xx += s->w[i] * s->x[i] * s->x[i];
    }
}

/* d and dmin by regression; as they are where the sums do not determine them. */
SIMD_INLINE void kquant_solve(const struct kquant_both *sums, float *d, float *dmin)
{
    double aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;

    for (int l = 0; l < FIT_LANES; l++) {
        aa += (double)sums->aa[l];
        ab += (double)sums->ab[l];
        bb += (double)sums->bb[l];
        xa += (double)sums->xa[l];
        xb += (double)sums->xb[l];
    }

    const double det = aa * bb - ab * ab;

    if (det > 1e-6 * aa * bb && xa * bb > xb * ab && xa * ab > xb * aa) {
        *d = (float)((xa * bb - xb * ab) / det);
        *dmin = (float)((xa * ab - xb * aa) / det);
    } else if (bb == 0 && aa > 0 && xa > 0) {
        *d = (float)(xa / aa);
    }

    const double reached =
        (double)*d * (2 * xa - (double)*d * aa) +
        (double)*dmin * (2 * (double)*d * ab - 2 * xb - (double)*dmin * bb);
    const float keep = fit_keep(fit_sum(sums->xx), (float)reached);

    *d *= keep;
    *dmin *= keep;
}

/* One super-block x[256] in sub-blocks of sub, w its importances or NULL: the two half
 * scales, the integers sc[256 / sub] and m[256 / sub] in 0..top, and q[256] in
 * 0..qmax, which the format then packs its own way. */
SIMD_INLINE void kquant_quantize_lines(const float *x, const float *w, int sub,
                                       int qmax, int top, uint16_t *half_d,
                                       uint16_t *half_dmin, uint8_t *sc, uint8_t *m,
                                       uint8_t *q)
{
    const int n_groups = KQ_ELEMS / sub / FIT_LANES, span = sub * FIT_LANES;
    const float most = (float)top, highest = (float)qmax;
    struct kquant_lanes s[16 / FIT_LANES];
    struct kquant_line line[16 / FIT_LANES];
    fit_vec scv[16 / FIT_LANES], mv[16 / FIT_LANES];
    fit_vec top_scale = fit_all(0), top_min = fit_all(0);
    struct kquant_both sums = {fit_all(0), fit_all(0), fit_all(0),
                               fit_all(0), fit_all(0), fit_all(0)};

    for (int g = 0; g < n_groups; g++) {
        kquant_load(x + span * g, w ? w + span * g : NULL, sub, &s[g]);
        line[g] = kquant_fit_line(&s[g], sub, highest);
        top_scale = fit_max(line[g].scale, top_scale);
        top_min = fit_max(line[g].min, top_min);
    }

    float d = half_to_f32(kquant_half(fit_top(top_scale) / most));
    float dmin = half_to_f32(kquant_half(fit_top(top_min) / most));

    for (int g = 0; g < n_groups; g++) {
        kquant_round_line(&s[g], sub, &line[g], d, dmin, highest, most, &scv[g],
                          &mv[g]);
        kquant_add_line(&sums, &s[g], sub, scv[g], mv[g], d, dmin, highest);
    }
    kquant_solve(&sums, &d, &dmin);
    *half_d = kquant_half(d);
    *half_dmin = kquant_half(dmin);
    d = half_to_f32(*half_d);
    dmin = half_to_f32(*half_dmin);
    for (int g = 0; g < n_groups; g++) {
        const fit_vec inverse = kquant_inverses(d * scv[g]), min = dmin * mv[g];

        for (int l = 0; l < FIT_LANES; l++) {
            sc[FIT_LANES * g + l] = (uint8_t)scv[g][l];
            m[FIT_LANES * g + l] = (uint8_t)mv[g][l];
        }
        for (int i = 0; i < sub; i++) {
            const fit_vec qi = kquant_round((s[g].x[i] + min) * inverse, 0, highest);

            for (int l = 0; l < FIT_LANES; l++)
                q[span * g + sub * l + i] = (uint8_t)qi[l];
        }
    }
}

/* ---- a scale: q3_K, q6_K --------------------------------------------------------- */

/* The best scales for the rounding of x times inverse, and what they take off. */
SIMD_INLINE void kquant_scale_at(const struct kquant_lanes *s, int n, fit_vec inverse,
                                 float half, fit_vec *scale, fit_vec *gain)
{
    fit_vec sqq = fit_all(0), sxq = fit_all(0);

    for (int i = 0; i < n; i++) {
        const fit_vec q = kquant_round(s->x[i] * inverse, -half, half - 1);
        const fit_vec wq = s->w[i] * q;

        sqq += wq * q;
        sxq += wq * s->x[i];
    }

    const fit_vec best = sxq / fit_choose(sqq > fit_all(0), sqq, fit_all(1));
    const fit_mask better = best * sxq > *gain;

    *gain = fit_choose(better, best * sxq, *gain);
    *scale = fit_choose(better, best, *scale);
}

/* Grids around the one that maps the value of largest magnitude to -half or half - 1.
 */
SIMD_INLINE fit_vec kquant_fit_scale(const struct kquant_lanes *s, int n, float half)
{
    fit_vec peak = fit_all(0), scale = fit_all(0), gain = fit_all(0);

    for (int i = 0; i < n; i++)
        peak = fit_choose(fit_abs(s->x[i]) > fit_abs(peak), s->x[i], peak);

    const fit_vec inverse = -kquant_inverses(peak);

    for (int step = -KQUANT_SCALE_STEPS; step <= KQUANT_SCALE_STEPS; step++)
        kquant_scale_at(s, n, (half + KQUANT_SCALE_STEP * (float)step) * inverse, half,
                        &scale, &gain);
    for (int i = 0; i < KQUANT_REPEATS; i++)
        kquant_scale_at(s, n, kquant_inverses(scale), half, &scale, &gain);
    return scale;
}

/* The integers in -top..top - 1 for the scales, with the super-block's d. */
SIMD_INLINE fit_vec kquant_round_scale(const struct kquant_lanes *s, int n,
                                       fit_vec scale, float d, float half, float top)
{
    const fit_vec nearest = kquant_round(scale * kquant_inverse(d), -top, top - 1);
    fit_vec best = nearest, best_error = fit_all(INFINITY);

    for (int i = -1; i <= 1; i++) {
        const fit_vec sc = fit_clamp(nearest + fit_all((float)i), -top, top - 1);
        const fit_vec error = kquant_error(s, n, d * sc, fit_all(0), -half, half - 1);
        const fit_mask better = error < best_error;

        best_error = fit_choose(better, error, best_error);
        best = fit_choose(better, sc, best);
    }
    return best;
}

/* d by regression on sc * q. */
SIMD_INLINE float kquant_solve_scale(const struct kquant_lanes *s, const fit_vec *sc,
                                     int n_groups, float d, float half)
{
    fit_vec aa = fit_all(0), xa = fit_all(0), xx = fit_all(0);

    for (int g = 0; g < n_groups; g++) {
        const fit_vec inverse = kquant_inverses(d * sc[g]);

        for (int i = 0; i < 16; i++) {
            const fit_vec a =
                sc[g] * kquant_round(s[g].x[i] * inverse, -half, half - 1);

            aa += s[g].w[i] * a * a;
            xa += s[g].w[i] * a * s[g].x[i];
            xx += s[g].w[i] * s[g].x[i] * s[g].x[i];
        }
    }
    if (!(fit_sum(aa) > 0))
        return d;
    d = fit_sum(xa) / fit_sum(aa);
    return d * fit_keep(fit_sum(xx), fit_sum(xa) * d);
}

/* One super-block x[256] in sub-blocks of 16, w its importances or NULL: the half
 * scale, the integers sc[16] in -top..top - 1, and q[256] as weight + half, in
 * 0..2 * half - 1. The scale of largest magnitude becomes -top, so that the whole range
 * is used. */
SIMD_INLINE void kquant_quantize_scales(const float *x, const float *w, int half,
                                        int top, uint16_t *half_d, int8_t sc[16],
                                        uint8_t *q)
{
    enum { N_GROUPS = 16 / FIT_LANES, SPAN = 16 * FIT_LANES };
    const float h = (float)half, most = (float)top;
    struct kquant_lanes s[N_GROUPS];
    fit_vec scale[N_GROUPS], peak = fit_all(0);
    float largest = 0;

    for (int g = 0; g < N_GROUPS; g++) {
        kquant_load(x + SPAN * g, w ? w + SPAN * g : NULL, 16, &s[g]);
        scale[g] = kquant_fit_scale(&s[g], 16, h);
        peak = fit_choose(fit_abs(scale[g]) > fit_abs(peak), scale[g], peak);
    }
    for (int l = 0; l < FIT_LANES; l++)
        if (fabsf(peak[l]) > fabsf(largest))
            largest = peak[l];

    float d = half_to_f32(kquant_half(largest / -most));

    for (int g = 0; g < N_GROUPS; g++)
        scale[g] = kquant_round_scale(&s[g], 16, scale[g], d, h, most);
    *half_d = kquant_half(kquant_solve_scale(s, scale, N_GROUPS, d, h));
    d = half_to_f32(*half_d);
    for (int g = 0; g < N_GROUPS; g++) {
        const fit_vec inverse = kquant_inverses(d * scale[g]);

        for (int l = 0; l < FIT_LANES; l++)
            sc[FIT_LANES * g + l] = (int8_t)scale[g][l];
        for (int i = 0; i < 16; i++) {
            const fit_vec qi = kquant_round(s[g].x[i] * inverse, -h, h - 1);

            for (int l = 0; l < FIT_LANES; l++)
                q[SPAN * g + 16 * l + i] = (uint8_t)((int)qi[l] + half);
        }
    }
}

#endif
