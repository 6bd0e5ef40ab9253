/* SPDX-License-Identifier: MIT
 *
 * fit.h - least-squares search of a block's scale, for the quantisers
 *
 * 32 weights x (or FIT_N) with importances w are to be written with few parameters and
 * a code each. Two shapes of the problem:
 *
 * - fit_scale(): x ~ d * v, v from a fixed set of values (a table, or a range of
 *   integers). For given v the best d is Sxv / Svv, and it takes Sxv^2 / Svv off
 *   the squared error (Sab = sum of w a b).
 * - fit_line(): x ~ d * q + m, q in 0..qmax. For given q, d and m are the
 *   regression of x on q, and d takes (n Sxq - Sx Sq)^2 / (n Sqq - Sq^2) off n
 *   times the error that m alone would leave.
 *
 * Which v or q is nearest depends on d, and the error as a function of d has many
 * shallow minima. So a row of scales is tried; each gives codes, the codes a
 * better scale, and from the best of them the two steps are repeated (as in
 * Lloyd's algorithm; the error never grows).
 *
 * After fit_load() magnitudes are at most 2^30, so no sum overflows, and nothing
 * below depends on what underflows.
 */
#ifndef SLM_KERNELS_FIT_H
#define SLM_KERNELS_FIT_H

#include <math.h>
#include <stdint.h>

#include "kernels/fit/lanes.h"
#include "kernels/half.h"

#ifndef FIT_N
#define FIT_N 32 /* or what a format defined before */
#endif
#define FIT_VECS    (FIT_N / FIT_LANES)
#define FIT_REPEATS 4 /* of the two steps, at most */

SIMD_INLINE float fit_highest(const fit_vec *x)
{
    fit_vec high = x[0];

    for (int i = 1; i < FIT_VECS; i++)
        high = fit_max(x[i], high);
    return fit_top(high);
}

SIMD_INLINE float fit_lowest(const fit_vec *x)
{
    fit_vec low = x[0];

    for (int i = 1; i < FIT_VECS; i++)
        low = fit_min(x[i], low);
    return -fit_top(-low);
}

/* ---- blocks --------------------------------------------------------------------- */

/* 32 weights, sane. */
SIMD_INLINE void fit_load(const float *src, fit_vec *x)
{
    memcpy(x, src, FIT_N * sizeof(float));
    for (int i = 0; i < FIT_VECS; i++)
        x[i] = fit_sane(x[i]);
}

/* Their importances; NULL: every weight as important as the next. */
SIMD_INLINE void fit_importance(const float *src, fit_vec *w)
{
    if (src)
        memcpy(w, src, FIT_N * sizeof(float));
    else
        for (int i = 0; i < FIT_VECS; i++)
            w[i] = fit_all(1);
}

/* The i-th of the values in v. */
SIMD_INLINE float fit_at(const fit_vec *v, int i)
{
    return v[i / FIT_LANES][i % FIT_LANES];
}

/* The half nearest to v within the finite halves. */
SIMD_INLINE uint16_t fit_half(float v)
{
    return half_from_f32(fminf(fmaxf(v, -65504.0f), 65504.0f));
}

/* 1 / d, or 0 for d = 0; d is a half times an integer, so the inverse is finite. */
SIMD_INLINE float fit_inverse(float d)
{
    return d != 0 ? 1 / d : 0;
}

/* ---- a scale -------------------------------------------------------------------- */

/* The representable values nearest to t. */
typedef fit_vec fit_nearest_fn(fit_vec t);

struct fit_scale {
    float d;
    float gain; /* squared error that d takes off */
};

/* The best scale for the codes that the scale 1 / inverse gives. */
SIMD_INLINE struct fit_scale fit_scale_at(fit_nearest_fn *nearest, const fit_vec *x,
                                          const fit_vec *w, float inverse)
{
    fit_vec sxv = fit_all(0), svv = fit_all(0);

    SIMD_UNROLL
    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec v = nearest(x[i] * fit_all(inverse)), wv = w[i] * v;

        sxv += wv * x[i];
        svv += wv * v;
    }

    const float xv = fit_sum(sxv), vv = fit_sum(svv);

    if (!(vv > 0))
        return (struct fit_scale){0, 0};
    return (struct fit_scale){xv / vv, xv * (xv / vv)};
}

/* The best scale found from those that put the value of largest magnitude at one
 * of `positions`, which are in units of v. */
SIMD_INLINE struct fit_scale fit_scale(fit_nearest_fn *nearest, const fit_vec *x,
                                       const fit_vec *w, const float *positions,
                                       int n_positions, int n_repeats)
{
    const float low = fit_lowest(x), high = fit_highest(x);
    const float extreme = high > -low ? high : low;
    struct fit_scale best = {0, 0};

    if (fabsf(extreme) < 0x1p-60f) /* f16 scales end at 2^-24 */
        return best;
    for (int i = 0; i < n_positions; i++) {
        const struct fit_scale s = fit_scale_at(nearest, x, w, positions[i] / extreme);

        if (s.gain > best.gain)
            best = s;
    }
    for (int i = 0; i < n_repeats && fabsf(best.d) > 0x1p-100f; i++) {
        const struct fit_scale s = fit_scale_at(nearest, x, w, 1 / best.d);

        if (!(s.gain > best.gain))
            break;
        best = s;
    }
    return best;
}

/* Squared error of x with scale d. */
SIMD_INLINE float fit_scale_error(fit_nearest_fn *nearest, const fit_vec *x,
                                  const fit_vec *w, float d)
{
    const float inverse = fit_inverse(d);
    fit_vec sum = fit_all(0);

    SIMD_UNROLL
    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec e = x[i] - fit_all(d) * nearest(x[i] * fit_all(inverse));

        sum += w[i] * e * e;
    }
    return fit_sum(sum);
}

/* ---- a line --------------------------------------------------------------------- */

struct fit_line {
    float d, m;
    float gain; /* how much d takes off the squared error, times the sum of w */
};

/* The best line for the codes of x on the grid (x - low) * inverse. */
SIMD_INLINE struct fit_line fit_line_at(const fit_vec *x, const fit_vec *w, float low,
                                        float inverse, float qmax)
{
    fit_vec sw = fit_all(0), sy = fit_all(0), sq = fit_all(0);
    fit_vec syq = fit_all(0), sqq = fit_all(0);

    SIMD_UNROLL
    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec y = x[i] - fit_all(low);
        const fit_vec q = fit_round(fit_clamp(y * fit_all(inverse), 0, qmax));
        const fit_vec wy = w[i] * y, wq = w[i] * q;

        sw += w[i];
        sy += wy;
        sq += wq;
        syq += wy * q;
        sqq += wq * q;
    }

    const float n = fit_sum(sw), ys = fit_sum(sy), qs = fit_sum(sq);
    const float cov = n * fit_sum(syq) - ys * qs, var = n * fit_sum(sqq) - qs * qs;

    if (!(var > 0))
        return (struct fit_line){0, n > 0 ? low + ys / n : low, 0};

    const float d = cov / var;

    return (struct fit_line){d, low + (ys - d * qs) / n, cov * d};
}

/* The best line found from grids that end up to 0.8 steps within the range of x or
 * outside of it: even losing a code at an end can pay. */
SIMD_INLINE struct fit_line fit_line(const fit_vec *x, const fit_vec *w, float qmax,
                                     int n_repeats)
{
    const float low = fit_lowest(x), range = fit_highest(x) - low;
    struct fit_line best;

    /* No f16 tells such values apart (and 1 / range could overflow). */
    if (range < 0x1p-60f)
        return (struct fit_line){0, low, 0};
    best = fit_line_at(x, w, low, qmax / range, qmax);
    for (int i = -2; i <= 2; i++)
        for (int j = -2; j <= 2; j++) {
            const float step = range / (qmax + 0.4f * (float)(i + j));
            const struct fit_line l =
                fit_line_at(x, w, low + 0.4f * (float)i * step, 1 / step, qmax);

            if (l.gain > best.gain)
                best = l;
        }
    for (int i = 0; i < n_repeats && best.d > 0x1p-100f; i++) {
        const struct fit_line l = fit_line_at(x, w, best.m, 1 / best.d, qmax);

        if (!(l.gain > best.gain))
            break;
        best = l;
    }
    return best;
}

/* The nearest codes 0..qmax for x ~ d * q + m. */
SIMD_INLINE void fit_line_codes(const fit_vec *x, float d, float m, float qmax,
                                uint8_t *q)
{
    const float inverse = fit_inverse(d);

    for (int i = 0; i < FIT_VECS; i++) {
        const fit_vec t = (x[i] - fit_all(m)) * fit_all(inverse);
        const fit_vec rounded = fit_round(fit_clamp(t, 0, qmax));

        for (int j = 0; j < FIT_LANES; j++)
            q[FIT_LANES * i + j] = (uint8_t)rounded[j];
    }
}

/* ---- codes ---------------------------------------------------------------------- */

/* q[32] of four bits: codes i and i + 16 share a byte. */
SIMD_INLINE void fit_pack_four(const uint8_t *q, uint8_t qs[16])
{
    for (int j = 0; j < FIT_N / 2; j++)
        qs[j] = (uint8_t)(q[j] | q[j + FIT_N / 2] << 4);
}

/* q[32] of five bits: low nibbles as in q4_0, the fifth bits apart. */
SIMD_INLINE void fit_pack_five(const uint8_t *q, uint8_t qs[16], uint8_t qh[4])
{
    memset(qh, 0, 4);
    for (int i = 0; i < FIT_N; i++)
        qh[i / 8] = (uint8_t)(qh[i / 8] | (q[i] >> 4) << i % 8);
    for (int j = 0; j < FIT_N / 2; j++)
        qs[j] = (uint8_t)((q[j] & 15) | (q[j + FIT_N / 2] & 15) << 4);
}

/* ---- quantisers ----------------------------------------------------------------- */

/* A block x ~ d * v: the half d, and codes q = v + bias of integer values v. */
SIMD_INLINE void fit_quantize_scale(fit_nearest_fn *nearest, const float *src,
                                    const fit_vec *w, const float *positions,
                                    int n_positions, int bias, uint8_t d[2], uint8_t *q)
{
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const struct fit_scale s =
        fit_scale(nearest, x, w, positions, n_positions, FIT_REPEATS);
    const uint16_t half = fit_half(s.d);
    const float inverse = fit_inverse(half_to_f32(half));

    memcpy(d, &half, sizeof(half));
    for (int i = 0; i < FIT_VECS; i++)
        x[i] = nearest(x[i] * fit_all(inverse));
    for (int i = 0; i < FIT_N; i++)
        q[i] = (uint8_t)((int)fit_at(x, i) + bias);
}

/* A block x ~ d * q + m: the halves d and m, and codes q in 0..qmax. */
SIMD_INLINE void fit_quantize_line(const float *src, const fit_vec *w, float qmax,
                                   uint8_t d[2], uint8_t m[2], uint8_t *q)
{
    fit_vec x[FIT_VECS];

    fit_load(src, x);

    const struct fit_line line = fit_line(x, w, qmax, FIT_REPEATS);
    const uint16_t half_d = fit_half(line.d), half_m = fit_half(line.m);

    memcpy(d, &half_d, sizeof(half_d));
    memcpy(m, &half_m, sizeof(half_m));
    fit_line_codes(x, half_to_f32(half_d), half_to_f32(half_m), qmax, q);
}

/* Defines kern_quantize_<format>__<level> from the format's quantize_block(src, w,
 * block), FIT_N weights and their importances. */
#define FIT_QUANTIZE(format)                                                      \
    void KERN_NAME(quantize, format)(const float *src, const float *w, void *dst, \
                                     size_t n)                                    \
    {                                                                             \
        struct block_##format *out = dst;                                         \
        fit_vec importance[FIT_VECS];                                             \
                                                                                  \
        for (size_t b = 0; b < n / FIT_N; b++) {                                  \
            fit_importance(w ? w + b *FIT_N : NULL, importance);                  \
            quantize_block(src + b * FIT_N, importance, &out[b]);                 \
        }                                                                         \
    }

#endif
