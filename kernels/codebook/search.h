/* SPDX-License-Identifier: MIT
 *
 * search.h - how the quantisers of IQ1 and IQ2 find grid points and scales
 *
 * A super-block of 256 weights is 32 groups of eight, each written as a grid point
 * g times the scale of its unit (two or four neighbouring groups); a unit's scale
 * is d * (2 * level + 1). With importances w the squared error of a group x at
 * scale s is
 *     sum w (x - s g)^2 = sum w x^2 - s (2 a - s b),  a = sum w x g,  b = sum w g^2
 * so a grid point is two numbers, whatever the scale, and at scale s the best one
 * has the largest 2 a - s b. As s falls from infinity, the best points are the
 * corners of the upper convex hull of all (b, a), in order of growing b. That hull,
 * about ten points, is all that the search needs of a group:
 *
 * 1. codebook_search() finds the hulls;
 * 2. codebook_fit() looks for d and the levels with the least error. An error at
 *    any scale now costs a short walk per group, so that many d can be tried, and
 *    for each of them everything else is the best there is.
 *
 * The pass (search_points.c) takes points by *shape*: how many values have each of
 * the three levels. Equal importances give all points of a shape the same b, so
 * only the one with the largest a can be on the hull; otherwise the one that
 * is best at a typical scale is taken, which is close.
 *
 * Values must be finite and of moderate size; codebook_normalise() sees to it.
 *
 * Threading: everything is in the caller's structures.
 */
#ifndef SLM_KERNELS_CODEBOOK_SEARCH_H
#define SLM_KERNELS_CODEBOOK_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

#define CODEBOOK_GROUPS 32 /* of eight weights, in a super-block */
#define CODEBOOK_SHAPES 45 /* ways of dealing eight values to three levels */
#define CODEBOOK_HULL   48 /* corners kept; more than a grid has shapes */

/* ---- grids ---------------------------------------------------------------------- */

enum codebook_grid_id {
    CODEBOOK_IQ1S_PLUS,  /* values -1 0 1, all plus 1/8 */
    CODEBOOK_IQ1S_MINUS, /* minus 1/8 */
    CODEBOOK_IQ2XXS,     /* magnitudes 8 25 43, taken as eighths, and signs, the */
    CODEBOOK_IQ2XS,      /* number of minus signs even... */
    CODEBOOK_IQ2S,       /* ... or any */
};

/* A grid in search order. */
struct codebook_grid {
    float level[3];
    float mean_square; /* of all values */
    bool signs_apart;  /* the points are magnitudes */
    bool signs_even;   /* and the number of minus signs is even */
    int n_shapes;
    uint16_t shape_end[CODEBOOK_SHAPES]; /* in the arrays below; b grows */
    uint8_t half[2048][2]; /* values 0..3 and 4..7 as numbers of four base-3 digits */
    uint16_t point[2048];  /* the index that the format stores */
};

/* Cheap compared with quantising a row: callers need not keep a grid. */
void codebook_grid_init(struct codebook_grid *grid, enum codebook_grid_id id);

/* ---- grid points of a group ------------------------------------------------------ */

struct codebook_choice {
    float a, b;
    float from; /* the best choice from this scale up (to the one before it) */
    uint16_t point;
    uint16_t variant; /* the caller's, as given to codebook_search() */
};

/* Choices by falling scale; the last one's `from` is 0. */
struct codebook_hull {
    int n;
    struct codebook_choice c[CODEBOOK_HULL];
};

/* A super-block x[256] with importances w[256] >= 0 to the hulls of its groups. */
void codebook_search(const struct codebook_grid *grid, const float *x, const float *w,
                     uint16_t variant, struct codebook_hull *hulls);

/* into becomes the hull of both. */
void codebook_merge(struct codebook_hull *into, const struct codebook_hull *other);

/* The signs of a group x[8] at a grid point with these values, bit j set: weight j is
 * negative. If their number is to be even and that of x is not, the weight that
 * costs least takes the wrong one. */
uint8_t codebook_choose_signs(const float *x, const float *w, const uint8_t *values,
                              bool even);

/* ---- scales of a super-block ------------------------------------------------------
 */

struct codebook_block {
    /* in */
    int n_units;    /* 8 or 16 */
    int n_levels;   /* level is 0..n_levels - 1 */
    int n_variants; /* 1 or 2 sets of hulls; a unit takes all of its from one */
    struct codebook_hull hulls[2][CODEBOOK_GROUPS];
    int exponent; /* what codebook_normalise() gave: values are x * 2^-exponent */
    /* out */
    uint16_t d; /* f16, for the values before they were normalised */
    uint8_t level[16], variant[16];
    const struct codebook_choice *choice[CODEBOOK_GROUPS];
};

/* src[256] to x[256], the largest magnitude in 1..2 (or all 0); what is no number
 * becomes 0, an infinity the largest float. Returns the exponent. */
int codebook_normalise(const float *src, float *x);

/* Importances src[256], which say nothing but by their ratios, to w[256] with a mean
 * of 1; NULL, or nothing but zeros: all equal. */
void codebook_importance(const float *src, float *w);

/* x and w as given to codebook_search(). */
void codebook_fit(struct codebook_block *block, const float *x, const float *w);

/* ---- a format's kernels ------------------------------------------------------------
 */

/* Defines kern_quantize_<format>__scalar from the format's quantize_block(grids, src,
 * w, block), which takes src[256] with importances w[256]; ...: the ids of its grids.
 */
#define CODEBOOK_QUANTIZE(format, ...)                                                 \
    void kern_quantize_##format##__scalar(const float *src, const float *w, void *dst, \
                                          size_t n)                                    \
    {                                                                                  \
        static const enum codebook_grid_id ids[] = {__VA_ARGS__};                      \
        enum { N_GRIDS = sizeof(ids) / sizeof(ids[0]) };                               \
        struct block_##format *blocks = dst;                                           \
        struct codebook_grid grids[N_GRIDS];                                           \
        float importance[256];                                                         \
                                                                                       \
        for (int i = 0; i < N_GRIDS; i++)                                              \
            codebook_grid_init(&grids[i], ids[i]);                                     \
        for (size_t b = 0; b < n / 256; b++) {                                         \
            codebook_importance(w ? w + 256 * b : NULL, importance);                   \
            quantize_block(grids, src + 256 * b, importance, &blocks[b]);              \
        }                                                                              \
    }

/* Defines kern_dequantize_<format>__scalar from the format's <format>_d(), _level() of
 * a unit of n_groups groups and a group's integers `values`. scale(d, level) and
 * weight(scale, q) round as the format is defined. */
#define CODEBOOK_DEQUANTIZE(format, n_groups, values, scale, weight)                  \
    void kern_dequantize_##format##__scalar(const void *src, float *dst, size_t n)    \
    {                                                                                 \
        const struct block_##format *blocks = src;                                    \
                                                                                      \
        for (size_t b = 0; b < n / 256; b++) {                                        \
            const float d = half_to_f32(format##_d(&blocks[b]));                      \
                                                                                      \
            for (int g = 0; g < CODEBOOK_GROUPS; g++) {                               \
                const float s = scale(d, format##_level(&blocks[b], g / (n_groups))); \
                int8_t q[8];                                                          \
                                                                                      \
                values(&blocks[b], g, q);                                             \
                for (int j = 0; j < 8; j++)                                           \
                    *dst++ = weight(s, q[j]);                                         \
            }                                                                         \
        }                                                                             \
    }

/* IQ2: d times (level + 1/2) first, then that times the grid's value. */
#define CODEBOOK_IQ2_SCALE(d, level)  ((d) * (0.5f + (float)(level)) * 0.25f)
#define CODEBOOK_IQ2_WEIGHT(scale, q) ((scale) * (float)(q))

/* IQ1: d times the level first, then that times the shifted value, in eighths. */
#define CODEBOOK_IQ1_SCALE(d, level)  ((d) * (float)(2 * (level) + 1))
#define CODEBOOK_IQ1_WEIGHT(scale, q) ((scale) * ((float)(q)*0.125f))

#endif
