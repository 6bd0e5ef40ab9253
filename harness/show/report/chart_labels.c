/* SPDX-License-Identifier: MIT
 *
 * chart_labels.c - labels beside their marks, without overlaps
 *
 * Each label takes the best of eight places around its mark; passes are repeated, since
 * later labels have moved. Sizes are shares of the plot's width and
 * height, with the font of plots/pareto.gp on the PNG.
 */
#include "harness/show/report/chart_labels.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GLYPH_WIDTH 0.0096
#define TEXT_HEIGHT 0.031
#define MARK_X      0.008 /* half of a mark */
#define MARK_Y      0.014
#define LINE        0.002 /* half of a line's width */
#define N_PASSES    4

struct box {
    double left, right, low, high;
};

struct label {
    struct box mark, at;
    struct box step[2]; /* the frontier from the mark to the next: across, then up */
    bool has_step;
};

/* In order of preference: the area above and left of a frontier is empty. */
static const struct {
    int x, y;
} places[] = {{-1, 1}, {1, -1}, {-1, 0}, {1, 0}, {0, 1}, {0, -1}, {1, 1}, {-1, -1}};

enum { N_PLACES = sizeof places / sizeof places[0] };

static struct box box_at(const struct box *mark, size_t len, int place)
{
    const double width = GLYPH_WIDTH * (double)len, height = TEXT_HEIGHT;
    const bool aside = places[place].y == 0;
    /* diagonal ones lean on the mark's corner, others keep clear of it */
    const double gap_x = aside ? 0.004 : -0.006, gap_y = 0.003;
    double x = (mark->left + mark->right - width) / 2;
    double y = (mark->low + mark->high - height) / 2;

    if (places[place].x)
        x = places[place].x > 0 ? mark->right + gap_x : mark->left - gap_x - width;
    if (places[place].y)
        y = places[place].y > 0 ? mark->high + gap_y : mark->low - gap_y - height;
    return (struct box){x, x + width, y, y + height};
}

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high &&
           b->low < a->high;
}

/* Cost of label i's box: the area it covers, most for other labels. */
static int faults(const struct box *at, const struct label *v, size_t i, size_t n)
{
    int sum = 8 * ((at->left < 0) + (at->right > 1) + (at->low < 0) + (at->high > 1));

    for (size_t k = 0; k < n; k++) {
        sum += k != i && overlap(at, &v[k].at) ? 6 : 0;
        sum += k != i && overlap(at, &v[k].mark) ? 4 : 0;
        for (int s = 0; s < 2; s++)
            sum += v[k].has_step && overlap(at, &v[k].step[s]) ? 1 : 0;
    }
    return sum;
}

static double share(double v, double min, double max, bool is_log)
{
    return is_log ? log(v / min) / log(max / min) : (v - min) / (max - min);
}

static double value(double share_of, double min, double max, bool is_log)
{
    return is_log ? min * pow(max / min, share_of) : min + share_of * (max - min);
}

/* Marks on the frontier stand one after the other. */
static void add_steps(struct label *v, const struct chart *c)
{
    for (size_t i = 0; i + 1 < c->n; i++) {
        const struct box *a = &v[i].mark, *b = &v[i + 1].mark;
        const double ax = (a->left + a->right) / 2, ay = (a->low + a->high) / 2;
        const double bx = (b->left + b->right) / 2, by = (b->low + b->high) / 2;

        v[i].has_step = isfinite(c->v[i].other) && isfinite(c->v[i + 1].other) &&
                        c->v[i].series == c->v[i + 1].series;
        v[i].step[0] = (struct box){ax, bx, ay - LINE, ay + LINE};
        v[i].step[1] = (struct box){bx - LINE, bx + LINE, ay, by};
    }
}

static void choose_places(struct label *v, const struct chart *c)
{
    for (int pass = 0; pass < N_PASSES; pass++)
        for (size_t i = 0; i < c->n; i++) {
            struct box best = v[i].at;
            int least = -1;

            for (int p = 0; p < N_PLACES && least != 0; p++) {
                const struct box at = box_at(&v[i].mark, strlen(c->v[i].note), p);
                const int sum = faults(&at, v, i, c->n);

                if (least < 0 || sum < least) {
                    least = sum;
                    best = at;
                }
            }
            v[i].at = best;
        }
}

void chart_place_labels(struct chart *c, double x_min, double x_max, double y_min,
                        double y_max, bool log_y)
{
    struct label *v = calloc(c->n + 1, sizeof *v);

    for (size_t i = 0; i < c->n; i++) {
        const double x = share(c->v[i].x, x_min, x_max, true);
        const double y = share(c->v[i].y, y_min, y_max, log_y);

        c->v[i].label_x = c->v[i].x;
        c->v[i].label_y = c->v[i].y;
        if (v) {
            v[i].mark = (struct box){x - MARK_X, x + MARK_X, y - MARK_Y, y + MARK_Y};
            v[i].at = (struct box){-9, -9, -9, -9}; /* nowhere yet */
        }
    }
    if (!v)
        return; /* then they stand upon their marks */
    add_steps(v, c);
    choose_places(v, c);
    for (size_t i = 0; i < c->n; i++) {
        const struct box *at = &v[i].at;

        c->v[i].label_x = value((at->left + at->right) / 2, x_min, x_max, true);
        c->v[i].label_y = value((at->low + at->high) / 2, y_min, y_max, log_y);
    }
    free(v);
}
