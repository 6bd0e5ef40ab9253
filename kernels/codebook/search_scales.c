/* SPDX-License-Identifier: MIT
 *
 * search_scales.c - the scale of a super-block and the levels of its units
 *
 * See search.h. With every group a hull, this is a search in one dimension, d:
 *
 * 1. Each unit alone: if its groups keep their choices, the best scale is
 *    sum a / sum b and gains (sum a)^2 / sum b. The choices change only at the
 *    corners of the hulls, so that trying those finds the very best scale.
 * 2. d is tried in steps, from where the largest of these scales is a little beyond
 *    the highest level to where it is about in the middle. At each d a unit takes the
 *    better of the two levels around its own best scale.
 * 3. From the best step on, levels and choices are kept and d becomes the regression
 *    on them, sum m a / sum m^2 b, then levels and choices for it, repeatedly.
 * 4. d is rounded to f16; its neighbours there are tried too, which matters where
 *    they are far apart (subnormals). Levels are then chosen out of all.
 */
#include "kernels/codebook/search.h"

#include <float.h>
#include <math.h>

#include "kernels/fit/lanes.h"
#include "kernels/half.h"

#define N_STEPS   12
#define N_REFINES 4

int codebook_normalise(const float *src, float *x)
{
    float largest = 0;
    int exponent;

    for (int i = 0; i < 256; i++) {
        x[i] = src[i] == src[i] ? fminf(fmaxf(src[i], -FLT_MAX), FLT_MAX) : 0;
        largest = fmaxf(largest, fabsf(x[i]));
    }
    if (largest == 0)
        return 0;
    frexpf(largest, &exponent);
    exponent--;
    for (int i = 0; i < 256; i++)
        x[i] = ldexpf(x[i], -exponent);
    return exponent;
}

void codebook_importance(const float *src, float *w)
{
    float sum = 0;

    for (int i = 0; src && i < 256; i++)
        sum += src[i];
    for (int i = 0; i < 256; i++)
        w[i] = sum > 0 ? src[i] * (256 / sum) : 1;
}

/* ---- one unit at one scale --------------------------------------------------------
 */

/* The choices of a unit: what they add up to. */
struct sums {
    float a, b;
    int variant;
};

static inline const struct codebook_choice *
best_choice(const struct codebook_hull *hull, float scale)
{
    const struct codebook_choice *c = hull->c;

    while (scale < c->from) /* the last one's is 0 */
        c++;
    return c;
}

static struct sums sums_of_variant(const struct codebook_block *block, int variant,
                                   int unit, float scale)
{
    const int n = CODEBOOK_GROUPS / block->n_units;
    struct sums sums = {0, 0, variant};

    for (int g = unit * n; g < unit * n + n; g++) {
        const struct codebook_choice *c = best_choice(&block->hulls[variant][g], scale);

        sums.a += c->a;
        sums.b += c->b;
    }
    return sums;
}

static inline float gain_of(struct sums sums, float scale)
{
    return scale * (2 * sums.a - scale * sums.b);
}

static struct sums sums_of_unit(const struct codebook_block *block, int unit,
                                float scale)
{
    struct sums best = sums_of_variant(block, 0, unit, scale);

    for (int variant = 1; variant < block->n_variants; variant++) {
        const struct sums sums = sums_of_variant(block, variant, unit, scale);

        if (gain_of(sums, scale) > gain_of(best, scale))
            best = sums;
    }
    return best;
}

/* The scale that suits a unit best; 0 if none is better than zeros. */
static float best_scale(const struct codebook_block *block, int unit)
{
    const int n = CODEBOOK_GROUPS / block->n_units;
    float best = 0, best_gain = 0;

    for (int variant = 0; variant < block->n_variants; variant++)
        for (int g = unit * n; g < unit * n + n; g++) {
            const struct codebook_hull *hull = &block->hulls[variant][g];

            for (int i = 0; i < hull->n; i++) {
                const struct sums sums =
                    sums_of_variant(block, variant, unit, hull->c[i].from);

                if (sums.a > 0 && sums.b > 0 && sums.a * sums.a > best_gain * sums.b) {
                    best_gain = sums.a * sums.a / sums.b;
                    best = sums.a / sums.b;
                }
            }
        }
    return best;
}

/* ---- all units --------------------------------------------------------------------
 */

/* Everything at one d: the gain, and the regression's sums for a better d. */
struct trial {
    float gain;
    float ma, mmb; /* sums of m a and m^2 b, m = 2 * level + 1 */
};

static void add_unit(struct trial *trial, const struct codebook_block *block, int unit,
                     float d, int low, int high, int *level, int *variant)
{
    struct sums best = {0, 0, 0};
    float best_gain = -INFINITY;

    *level = low;
    for (int l = low; l <= high; l++) {
        const float scale = d * (float)(2 * l + 1);
        const struct sums sums = sums_of_unit(block, unit, scale);
        const float gain = gain_of(sums, scale);

        if (gain > best_gain) {
            best_gain = gain;
            best = sums;
            *level = l;
        }
    }
    *variant = best.variant;
    trial->gain += best_gain;
    trial->ma += (float)(2 * *level + 1) * best.a;
    trial->mmb += (float)((2 * *level + 1) * (2 * *level + 1)) * best.b;
}

/* d > 0. Levels are tried around the scales that suit the units. */
static struct trial try_d(const struct codebook_block *block, const float *scales,
                          float d)
{
    struct trial trial = {0, 0, 0};

    for (int unit = 0; unit < block->n_units; unit++) {
        const float at = fminf((scales[unit] / d - 1) / 2, (float)block->n_levels - 1);
        const int low = at > 0 ? (int)at : 0;
        int level, variant;

        add_unit(&trial, block, unit, d, low, low + 1 < block->n_levels ? low + 1 : low,
                 &level, &variant);
    }
    return trial;
}

static float search_d(const struct codebook_block *block, const float *scales)
{
    struct trial best = {0, 0, 0};
    float top = 0, best_d = 0;

    for (int unit = 0; unit < block->n_units; unit++)
        top = fmaxf(top, scales[unit]);
    if (top == 0)
        return 0;
    for (int i = 0; i < N_STEPS; i++) {
        const float d = top / (float)(2 * block->n_levels - 1) *
                        (0.85f + 1.5f / N_STEPS * (float)i);
        const struct trial trial = try_d(block, scales, d);

        if (trial.gain > best.gain) {
            best = trial;
            best_d = d;
        }
    }
    for (int i = 0; i < N_REFINES && best.mmb > 0; i++) {
        const float d = best.ma / best.mmb;
        const struct trial trial = try_d(block, scales, d);

        if (!(trial.gain > best.gain))
            break;
        best = trial;
        best_d = d;
    }
    return best_d;
}

/* ---- the result -------------------------------------------------------------------
 */

/* The scale for the choices that were made, which does not shrink products. */
static void keep_products(struct codebook_block *block, const float *x, const float *w)
{
    float energy = 0, a = 0, b = 0;

    for (int i = 0; i < 256; i++)
        energy += w[i] * x[i] * x[i];
    for (int g = 0; g < CODEBOOK_GROUPS; g++) {
        const int unit = g * block->n_units / CODEBOOK_GROUPS;
        const float m = (float)(2 * block->level[unit] + 1);

        a += m * block->choice[g]->a;
        b += m * m * block->choice[g]->b;
    }
    if (!(a > 0 && b > 0))
        return;

    const float d = a / b * fit_keep(energy, a * (a / b));

    block->d = half_from_f32(fminf(ldexpf(d, block->exponent), 65504.0f));
}

void codebook_fit(struct codebook_block *block, const float *x, const float *w)
{
    float scales[16], best_gain = 0, best_d = 0;
    int half;

    for (int unit = 0; unit < block->n_units; unit++)
        scales[unit] = best_scale(block, unit);
    half = half_from_f32(
        fminf(ldexpf(search_d(block, scales), block->exponent), 65504.0f));

    block->d = 0;
    for (int h = half > 0 ? half - 1 : 0; h <= half + 1 && h <= 0x7bff; h++) {
        const float d = ldexpf(half_to_f32((uint16_t)h), -block->exponent);
        const struct trial trial = d > 0 ? try_d(block, scales, d) : (struct trial){0};

        if (trial.gain > best_gain) {
            best_gain = trial.gain;
            best_d = d;
            block->d = (uint16_t)h;
        }
    }
    for (int unit = 0; unit < block->n_units; unit++) {
        const int n = CODEBOOK_GROUPS / block->n_units;
        struct trial unused = {0, 0, 0};
        int level, variant;

        add_unit(&unused, block, unit, best_d, 0, block->n_levels - 1, &level,
                 &variant);
        block->level[unit] = (uint8_t)level;
        block->variant[unit] = (uint8_t)variant;
        for (int g = unit * n; g < unit * n + n; g++)
            block->choice[g] =
                best_choice(&block->hulls[variant][g], best_d * (float)(2 * level + 1));
    }
    keep_products(block, x, w);
}
