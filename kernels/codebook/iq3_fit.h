/* SPDX-License-Identifier: MIT
 *
 * iq3_fit.h - the search of the iq3_xxs and iq3_s quantisers
 *
 * Both write 256 values as base * (2 * ls + 1) * sign * point, where a point of the
 * grid is four magnitudes, ls (0..15) counts for 32 values and base for all. What is
 * sought are magnitudes m: m = |x|, or -|x| for the value of each eight whose sign is
 * given up where the format stores an even number of minus signs only (the smallest
 * one costs least). With importances in the products, m.g = sum of w m g and |g|^2 =
 * sum of w g^2, the squared error of a group with scale s and point g is
 *     |m|^2 + s * (s * |g|^2 - 2 m.g)
 * so that the best point has the least s * |g|^2 - 2 m.g. Two steps:
 *
 * 1. iq3_fit_scale(): the best real-valued scale of 32 values, among a row of them.
 *    Here a point is looked up: magnitudes are rounded to the grid's eight levels,
 *    which makes a cell of 4096, and the point nearest to the cell is taken; for the
 *    points found the best scale is S(m.g) / S(|g|^2).
 * 2. With base from the largest scale, ls and the points are found exactly: m.g of
 *    all points once, then their least error for each ls near the real-valued one.
 *    Then base is set to its best value for what was found (fit_keep()).
 *
 * The table of cells is filled when a cell is met first, and lives as long as one
 * call of the quantiser: it is no state.
 */
#ifndef SLM_KERNELS_CODEBOOK_IQ3_FIT_H
#define SLM_KERNELS_CODEBOOK_IQ3_FIT_H

#include <stdbool.h>
#include <string.h>

#include "kernels/kquant/kquant_fit.h"

enum {
    IQ3_POINTS = 512, /* of the larger grid */
    IQ3_LANES = 32,
    IQ3_UNKNOWN = 0xffff
};

struct iq3_grid {
    int n_points;
    bool even_signs;       /* the number of minus signs in eight must be even */
    float unit;            /* base = unit * the half that is stored */
    float low, step, high; /* levels: low, low + step, ...; the eighth is high */
    float point[IQ3_POINTS][4];
    float plane[4][IQ3_POINTS]; /* the same, transposed */
    float norm[IQ3_POINTS];     /* |g|^2 */
    uint16_t nearest[4096];     /* point by cell, value 0's level in bits 2-0 */
};

struct iq3_block {
    uint16_t d; /* a half */
    uint8_t ls[8];
    uint16_t point[64];
    uint8_t signs[32]; /* bit j: value j of eight is negative */
};

static inline void iq3_grid_init(struct iq3_grid *grid, const uint8_t (*points)[4],
                                 int n_points)
{
    grid->n_points = n_points;
    for (int i = 0; i < n_points; i++) {
        grid->norm[i] = 0;
        for (int j = 0; j < 4; j++) {
            const float v = points[i][j];

            grid->point[i][j] = v;
            grid->plane[j][i] = v;
            grid->norm[i] += v * v;
        }
    }
    memset(grid->nearest, 0xff, sizeof(grid->nearest));
}

/* 2 a.g for every point, where a = w m: no importances in this product. */
static inline void iq3_dots(const struct iq3_grid *grid, const float m[4], float *dots)
{
    for (int i = 0; i < grid->n_points; i++)
        dots[i] = 2 * (m[0] * grid->plane[0][i] + m[1] * grid->plane[1][i] +
                       m[2] * grid->plane[2][i] + m[3] * grid->plane[3][i]);
}

/* |g|^2 for every point with importances. */
static inline void iq3_norms(const struct iq3_grid *grid, const float w[4],
                             float *norms)
{
    for (int i = 0; i < grid->n_points; i++) {
        float norm = 0;

        for (int j = 0; j < 4; j++)
            norm += w[j] * grid->plane[j][i] * grid->plane[j][i];
        norms[i] = norm;
    }
}

/* The least s * |g|^2 - 2 m.g. Points are dealt out to IQ3_LANES lanes, *lane is the
 * one that has it. */
static inline float iq3_least(const struct iq3_grid *grid, const float *norms,
                              const float *dots, float s, int *lane)
{
    float least[IQ3_LANES];
    int best = 0;

    for (int l = 0; l < IQ3_LANES; l++)
        least[l] = s * norms[l] - dots[l];
    for (int i = IQ3_LANES; i < grid->n_points; i += IQ3_LANES)
        for (int l = 0; l < IQ3_LANES; l++) {
            const float v = s * norms[i + l] - dots[i + l];

            least[l] = v < least[l] ? v : least[l];
        }
    for (int l = 1; l < IQ3_LANES; l++)
        if (least[l] < least[best])
            best = l;
    *lane = best;
    return least[best];
}

/* The point of the lane that has it. */
static inline uint16_t iq3_point(const struct iq3_grid *grid, const float *norms,
                                 const float *dots, float s, int lane)
{
    int best = lane;

    for (int i = lane + IQ3_LANES; i < grid->n_points; i += IQ3_LANES)
        if (s * norms[i] - dots[i] < s * norms[best] - dots[best])
            best = i;
    return (uint16_t)best;
}

static inline uint16_t iq3_nearest(struct iq3_grid *grid, unsigned cell)
{
    if (grid->nearest[cell] == IQ3_UNKNOWN) {
        float dots[IQ3_POINTS], m[4];
        int lane;

        for (int j = 0; j < 4; j++)
            m[j] =
                fminf(grid->low + grid->step * (float)(cell >> 3 * j & 7), grid->high);
        iq3_dots(grid, m, dots);
        iq3_least(grid, grid->norm, dots, 1, &lane);
        grid->nearest[cell] = iq3_point(grid, grid->norm, dots, 1, lane);
    }
    return grid->nearest[cell];
}

/* Magnitudes and signs of eight values. */
static inline uint8_t iq3_signs(const float *x, const float *w, bool even, float *m)
{
    unsigned signs = 0, n_minus = 0;
    int least = 0;

    for (int j = 0; j < 8; j++) {
        const unsigned minus = x[j] < 0;

        m[j] = fabsf(x[j]);
        signs |= minus << j;
        n_minus += minus;
        if (w[j] * m[j] < w[least] * m[least])
            least = j;
    }
    if (even && n_minus % 2 != 0) {
        signs ^= 1u << least;
        m[least] = -m[least];
    }
    return (uint8_t)signs;
}

static inline float iq3_fit_scale(struct iq3_grid *grid, const float m[32],
                                  const float w[32])
{
    double best_gain = 0;
    float peak = 0, best = 0;

    for (int i = 0; i < 32; i++)
        peak = m[i] > peak ? m[i] : peak;
    /* The peak at the lowest level (values that are all alike), then from beyond the
     * highest level to near the middle. */
    for (int step = -1; step < 14; step++) {
        const float at =
            step < 0 ? grid->low : grid->high * (1.15f - 0.05f * (float)step);
        const float inv = at * kquant_inverse(peak) / grid->step;
        const float offset = -grid->low / grid->step;
        float mg[4] = {0}, gg[4] = {0};
        int level[32];

        for (int i = 0; i < 32; i++) {
            float v = m[i] * inv + offset;

            v = v > 0 ? v : 0;
            v = v < 7 ? v : 7;
            level[i] = (int)(v + 0.5f);
        }
        for (int i = 0; i < 32; i += 4) {
            const int cell =
                level[i] | level[i + 1] << 3 | level[i + 2] << 6 | level[i + 3] << 9;
            const float *g = grid->point[iq3_nearest(grid, (unsigned)cell)];

            for (int l = 0; l < 4; l++) {
                mg[l] += w[i + l] * m[i + l] * g[l];
                gg[l] += w[i + l] * g[l] * g[l];
            }
        }

        const double smg = (double)(mg[0] + mg[1] + mg[2] + mg[3]);
        const double sgg = (double)(gg[0] + gg[1] + gg[2] + gg[3]);

        if (smg > 0 && smg * smg / sgg > best_gain) {
            best_gain = smg * smg / sgg;
            best = (float)(smg / sgg);
        }
    }
    return best;
}

/* ls and points of 32 values, and what they add to the sums that base follows from. */
static inline void iq3_fit_points(const struct iq3_grid *grid, const float m[32],
                                  const float w[32], bool even_w, float scale,
                                  float base, uint8_t *ls, uint16_t *point, double *smg,
                                  double *sgg)
{
    const int near = kquant_nearest(scale * kquant_inverse(2 * base) - 0.5f, 0, 15);
    float dots[8][IQ3_POINTS], own[8][IQ3_POINTS];
    const float *norms[8];
    double best = INFINITY;
    int lane[8] = {0};

    for (int g = 0; g < 8; g++) {
        float wm[4];

        for (int j = 0; j < 4; j++)
            wm[j] = w[4 * g + j] * m[4 * g + j];
        iq3_dots(grid, wm, dots[g]);
        if (!even_w)
            iq3_norms(grid, w + 4 * g, own[g]);
        norms[g] = even_w ? grid->norm : own[g];
    }
    *ls = (uint8_t)near;
    for (int l = near > 0 ? near - 1 : 0; l <= near + 1 && l <= 15; l++) {
        const float s = base * (float)(2 * l + 1);
        double error = 0;
        int at[8];

        for (int g = 0; g < 8; g++)
            error += (double)iq3_least(grid, norms[g], dots[g], s, &at[g]);
        if (error * (double)s < best) {
            best = error * (double)s;
            *ls = (uint8_t)l;
            memcpy(lane, at, sizeof(lane));
        }
    }
    for (int g = 0; g < 8; g++) {
        const float s = base * (float)(2 * *ls + 1);
        const double n = 2 * *ls + 1;
        const uint16_t i = iq3_point(grid, norms[g], dots[g], s, lane[g]);

        point[g] = i;
        *smg += n * 0.5 * (double)dots[g][i];
        *sgg += n * n * (double)norms[g][i];
    }
}

/* One super-block; w: importances of its values, or NULL. */
static inline void iq3_quantize(struct iq3_grid *grid, const float *x, const float *w,
                                struct iq3_block *out)
{
    float m[KQ_ELEMS], scale[8], top = 0;
    double smg = 0, sgg = 0;
    float all[KQ_ELEMS];

    for (int i = 0; i < KQ_ELEMS; i++)
        all[i] = w ? w[i] : 1;
    for (int i = 0; i < 32; i++)
        out->signs[i] = iq3_signs(x + 8 * i, all + 8 * i, grid->even_signs, m + 8 * i);
    for (int s = 0; s < 8; s++) {
        scale[s] = iq3_fit_scale(grid, m + 32 * s, all + 32 * s);
        top = fmaxf(top, scale[s]);
    }
    out->d = kquant_half(top / 31 / grid->unit);
    for (int s = 0; s < 8; s++)
        iq3_fit_points(grid, m + 32 * s, all + 32 * s, !w, scale[s],
                       grid->unit * half_to_f32(out->d), &out->ls[s],
                       out->point + 8 * s, &smg, &sgg);
    if (smg > 0) {
        double energy = 0;

        for (int i = 0; i < KQ_ELEMS; i++)
            energy += (double)(all[i] * m[i] * m[i]);
        out->d = kquant_half((float)(smg / sgg / (double)grid->unit) *
                             fit_keep((float)energy, (float)(smg * smg / sgg)));
    }
}

/* Defines kern_quantize_<format>__<level> from the format's pack(found, block) and its
 * grid codebook[n_points], whose levels are LEVEL(code); the others as in struct
 * iq3_grid. */
#define IQ3_QUANTIZE(format, codebook, n_points, even_signs_, unit_, LEVEL)       \
    void KERN_NAME(quantize, format)(const float *src, const float *w, void *dst, \
                                     size_t n)                                    \
    {                                                                             \
        struct block_##format *blocks = dst;                                      \
        struct iq3_grid grid = {.even_signs = even_signs_,                        \
                                .unit = unit_,                                    \
                                .low = LEVEL(0),                                  \
                                .step = LEVEL(1) - LEVEL(0),                      \
                                .high = LEVEL(7)};                                \
                                                                                  \
        iq3_grid_init(&grid, codebook, n_points);                                 \
        for (size_t b = 0; b < n / KQ_ELEMS; b++) {                               \
            struct iq3_block found;                                               \
                                                                                  \
            iq3_quantize(&grid, src + KQ_ELEMS * b, w ? w + KQ_ELEMS * b : NULL,  \
                         &found);                                                 \
            pack(&found, &blocks[b]);                                             \
        }                                                                         \
    }

#endif
