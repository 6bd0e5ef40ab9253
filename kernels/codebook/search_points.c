/* SPDX-License-Identifier: MIT
 *
 * search_points.c - one pass over a grid for the useful points of eight groups
 *
 * See search.h. A point is two halves of four values; a half has 3^4 = 81 forms, so
 * that what a point is worth is the sum of two table entries. Vector lanes are
 * groups: one pair of look-ups serves eight of them.
 *
 * Where the number of minus signs must be even and is not, one weight takes the
 * wrong sign and its product counts negative: a falls by twice the smallest of the
 * products w |x| g of the group, again a combination of two table entries.
 */
#include "kernels/codebook/search.h"

#include <math.h>
#include <stdint.h>

#include "kernels/codebook/codebook.h"

#define FORMS 81 /* of a half */
#define BATCH 8  /* groups in a pass */

/* ---- the grids in search order ----------------------------------------------------
 */

#define HALF_FORM(code)                                           \
    (((code)&3) + ((code) >> 2 & 3) * 3 + ((code) >> 4 & 3) * 9 + \
     ((code) >> 6 & 3) * 27)
#define CODEBOOK_ENTRY(code) {HALF_FORM(code), HALF_FORM((code) >> 8)},

static const uint8_t iq1s[2048][2] = {
#include "kernels/codebook/iq1s.def"
};
static const uint8_t iq2xxs[256][2] = {
#include "kernels/codebook/iq2xxs.def"
};
static const uint8_t iq2xs[512][2] = {
#include "kernels/codebook/iq2xs.def"
};
static const uint8_t iq2s[1024][2] = {
#include "kernels/codebook/iq2s.def"
};

static const struct source {
    const uint8_t (*halves)[2];
    int n;
    float level[3];
    bool signs_apart, signs_even;
} sources[] = {
    [CODEBOOK_IQ1S_PLUS] = {iq1s, 2048, {-0.875f, 0.125f, 1.125f}, false, false},
    [CODEBOOK_IQ1S_MINUS] = {iq1s, 2048, {-1.125f, -0.125f, 0.875f}, false, false},
    [CODEBOOK_IQ2XXS] = {iq2xxs, 256, {1, 3.125f, 5.375f}, true, true},
    [CODEBOOK_IQ2XS] = {iq2xs, 512, {1, 3.125f, 5.375f}, true, true},
    [CODEBOOK_IQ2S] = {iq2s, 1024, {1, 3.125f, 5.375f}, true, false},
};

/* How many of the four values of a form are at level 1, plus nine times those at
 * level 2; two halves added make a shape, 0..72. */
static int form_shape(int form)
{
    int shape = 0;

    for (; form > 0; form /= 3)
        shape += form % 3 == 2 ? 9 : form % 3;
    return shape;
}

static float shape_square(const float level[3], int shape)
{
    const int ones = shape % 9, twos = shape / 9;

    return (float)(8 - ones - twos) * level[0] * level[0] +
           (float)ones * level[1] * level[1] + (float)twos * level[2] * level[2];
}

void codebook_grid_init(struct codebook_grid *grid, enum codebook_grid_id id)
{
    const struct source *src = &sources[id];
    int shapes[FORMS], count[FORMS] = {0}, start[FORMS];
    int order[CODEBOOK_SHAPES], at = 0;
    float squares = 0;

    for (int form = 0; form < FORMS; form++)
        shapes[form] = form_shape(form);
    for (int i = 0; i < src->n; i++)
        count[shapes[src->halves[i][0]] + shapes[src->halves[i][1]]]++;

    grid->n_shapes = 0;
    for (int shape = 0; shape < FORMS; shape++) {
        const float square = shape_square(src->level, shape);
        int i;

        if (count[shape] == 0)
            continue;
        squares += (float)count[shape] * square;
        for (i = grid->n_shapes++; i > 0; i--) {
            if (shape_square(src->level, order[i - 1]) <= square)
                break;
            order[i] = order[i - 1];
        }
        order[i] = shape;
    }
    for (int i = 0; i < grid->n_shapes; i++) {
        start[order[i]] = at;
        at += count[order[i]];
        grid->shape_end[i] = (uint16_t)at;
    }
    for (int i = 0; i < src->n; i++) {
        const uint8_t *half = src->halves[i];
        const int to = start[shapes[half[0]] + shapes[half[1]]]++;

        grid->half[to][0] = half[0];
        grid->half[to][1] = half[1];
        grid->point[to] = (uint16_t)i;
    }
    for (int l = 0; l < 3; l++)
        grid->level[l] = src->level[l];
    grid->mean_square = squares / (float)(8 * src->n);
    grid->signs_apart = src->signs_apart;
    grid->signs_even = src->signs_even;
}

/* ---- vectors whose lanes are groups ------------------------------------------------
 */

typedef float lanes __attribute__((vector_size(16)));
typedef int32_t lanes_int __attribute__((vector_size(16)));
#define N_VECTORS (BATCH / 4)

static inline lanes splat(float v)
{
    return (lanes){v, v, v, v};
}

static inline lanes_int select_int(lanes_int mask, lanes_int a, lanes_int b)
{
    return (mask & a) | (~mask & b);
}

static inline lanes select_lanes(lanes_int mask, lanes a, lanes b)
{
    return (lanes)select_int(mask, (lanes_int)a, (lanes_int)b);
}

static inline lanes min_lanes(lanes a, lanes b)
{
    return select_lanes(a < b, a, b);
}

/* For both halves, each form and each group. */
struct tables {
    lanes value[2][FORMS][N_VECTORS];  /* a - typical scale / 2 * b */
    lanes square[2][FORMS][N_VECTORS]; /* b */
    lanes flip[2][FORMS][N_VECTORS];   /* twice the smallest w |x| g; 0: none needed */
    float half_scale[BATCH];           /* the typical scale, halved */
};

/* Fills a table of forms from its four values' levels: sums, or minima. */
static void combine(lanes (*table)[N_VECTORS], const lanes level[4][3], int v,
                    bool minima)
{
    int n = 1;

    table[0][v] = splat(minima ? INFINITY : 0);
    for (int p = 0; p < 4; p++, n *= 3)
        for (int l = 2; l >= 0; l--) /* the one that overwrites its source last */
            for (int i = 0; i < n; i++)
                table[l * n + i][v] = minima ? min_lanes(table[i][v], level[p][l])
                                             : table[i][v] + level[p][l];
}

/* x and w of the four groups from group 4v on, and what goes for all their values:
 * the halved typical scale and whether (all bits set) a sign is to be flipped. */
static void fill_half(const struct codebook_grid *grid, struct tables *t, int v, int h,
                      const lanes x[8], const lanes w[8], lanes half_scale,
                      lanes_int odd)
{
    lanes value[4][3], square[4][3], flip[4][3];

    for (int p = 0; p < 4; p++)
        for (int l = 0; l < 3; l++) {
            const float level = grid->level[l];
            const lanes product = w[4 * h + p] * x[4 * h + p] * splat(level);

            square[p][l] = w[4 * h + p] * splat(level * level);
            value[p][l] = product - half_scale * square[p][l];
            flip[p][l] = select_lanes(odd, product + product, splat(0));
        }
    combine(t->value[h], value, v, false);
    combine(t->square[h], square, v, false);
    if (grid->signs_even)
        combine(t->flip[h], flip, v, true);
}

static void fill_tables(const struct codebook_grid *grid, const float *x,
                        const float *w, struct tables *t)
{
    for (int v = 0; v < N_VECTORS; v++) {
        lanes xs[8], ws[8], half_scale;
        lanes_int odd;

        for (int i = 0; i < 4; i++) {
            const int group = 4 * v + i;
            float squares = 0, weights = 0;
            int minus = 0;

            for (int p = 0; p < 8; p++) {
                const float value = x[8 * group + p], weight = w[8 * group + p];

                minus += value < 0;
                xs[p][i] = grid->signs_apart ? fabsf(value) : value;
                ws[p][i] = weight;
                squares += weight * value * value;
                weights += weight;
            }
            odd[i] = -(minus % 2);
            half_scale[i] =
                weights > 0 ? 0.5f * sqrtf(squares / (weights * grid->mean_square)) : 0;
            t->half_scale[group] = half_scale[i];
        }
        for (int h = 0; h < 2; h++)
            fill_half(grid, t, v, h, xs, ws, half_scale, odd);
    }
}

/* ---- hulls ------------------------------------------------------------------------
 */

/* n choices in any order, n > 0, to their hull. The first corner has the least b (it
 * is the best at a very large scale), the last one the largest a. */
static void build_hull(struct codebook_choice *c, int n, struct codebook_hull *hull)
{
    struct codebook_choice *corner = hull->c;
    int m = 0;

    for (int i = 1; i < n; i++) { /* by b; they come nearly in order */
        const struct codebook_choice moving = c[i];
        int to = i;

        for (; to > 0 && c[to - 1].b > moving.b; to--)
            c[to] = c[to - 1];
        c[to] = moving;
    }
    for (int i = 0; i < n; i++) {
        if (m > 0 && c[i].a <= corner[m - 1].a)
            continue;
        while (m > 1 &&
               (c[i].a - corner[m - 1].a) * (corner[m - 1].b - corner[m - 2].b) >=
                   (corner[m - 1].a - corner[m - 2].a) * (c[i].b - corner[m - 1].b))
            m--;
        if (m == CODEBOOK_HULL)
            break;
        corner[m++] = c[i];
    }
    /* 2 a - s b of neighbours is equal at this scale; equal b give infinity, and the
     * first of the two is never taken. */
    for (int i = 0; i + 1 < m; i++)
        corner[i].from =
            2 * (corner[i + 1].a - corner[i].a) / (corner[i + 1].b - corner[i].b);
    corner[m - 1].from = 0;
    hull->n = m;
}

void codebook_merge(struct codebook_hull *into, const struct codebook_hull *other)
{
    struct codebook_choice all[2 * CODEBOOK_HULL];
    int n = 0;

    for (int i = 0; i < into->n; i++)
        all[n++] = into->c[i];
    for (int i = 0; i < other->n; i++)
        all[n++] = other->c[i];
    build_hull(all, n, into);
}

/* ---- the pass ----------------------------------------------------------------------
 */

/* Best points among start..end - 1, for every group: value and place. */
static inline void best_of_shape(const struct codebook_grid *grid,
                                 const struct tables *t, int start, int end, bool flips,
                                 lanes best[N_VECTORS], lanes_int place[N_VECTORS])
{
    for (int v = 0; v < N_VECTORS; v++) {
        best[v] = splat(-INFINITY);
        place[v] = (lanes_int){start, start, start, start};
    }
    for (int i = start; i < end; i++) {
        const int low = grid->half[i][0], high = grid->half[i][1];
        const lanes_int here = {i, i, i, i};

        for (int v = 0; v < N_VECTORS; v++) {
            lanes value = t->value[0][low][v] + t->value[1][high][v];
            lanes_int better;

            if (flips)
                value -= min_lanes(t->flip[0][low][v], t->flip[1][high][v]);
            better = value > best[v];
            best[v] = select_lanes(better, value, best[v]);
            place[v] = select_int(better, here, place[v]);
        }
    }
}

static void search_batch(const struct codebook_grid *grid, const float *x,
                         const float *w, uint16_t variant, struct codebook_hull *hulls)
{
    struct codebook_choice found[BATCH][CODEBOOK_SHAPES];
    struct tables t;
    int start = 0;

    fill_tables(grid, x, w, &t);
    for (int s = 0; s < grid->n_shapes; s++) {
        const int end = grid->shape_end[s];
        lanes best[N_VECTORS];
        lanes_int place[N_VECTORS];

        if (grid->signs_even)
            best_of_shape(grid, &t, start, end, true, best, place);
        else
            best_of_shape(grid, &t, start, end, false, best, place);
        start = end;
        for (int group = 0; group < BATCH; group++) {
            const int v = group / 4, lane = group % 4, at = place[v][lane];
            const float b = t.square[0][grid->half[at][0]][v][lane] +
                            t.square[1][grid->half[at][1]][v][lane];

            found[group][s] = (struct codebook_choice){
                .a = best[v][lane] + t.half_scale[group] * b,
                .b = b,
                .point = grid->point[at],
                .variant = variant,
            };
        }
    }
    for (int group = 0; group < BATCH; group++)
        build_hull(found[group], grid->n_shapes, &hulls[group]);
}

void codebook_search(const struct codebook_grid *grid, const float *x, const float *w,
                     uint16_t variant, struct codebook_hull *hulls)
{
    for (int group = 0; group < CODEBOOK_GROUPS; group += BATCH)
        search_batch(grid, x + 8 * group, w + 8 * group, variant, hulls + group);
}

uint8_t codebook_choose_signs(const float *x, const float *w, const uint8_t *values,
                              bool even)
{
    unsigned signs = 0, least = 0;
    float cost = INFINITY;
    int n = 0;

    for (unsigned p = 0; p < 8; p++) {
        const float product = w[p] * fabsf(x[p]) * (float)values[p];

        signs |= (unsigned)(x[p] < 0) << p;
        n += x[p] < 0;
        if (product < cost) {
            cost = product;
            least = p;
        }
    }
    return (uint8_t)(even && n % 2 != 0 ? signs ^ 1u << least : signs);
}
