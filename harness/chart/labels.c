/* SPDX-License-Identifier: MIT
 *
 * labels.c - the place around each mark where its label covers least
 *
 * Each label takes the cheapest of the places around its mark, in turn, and a few times
 * over, since those that were placed first did not know of the others.
 */
#include <math.h>

#include "harness/chart/layout.h"

#define ROUNDS     4
#define MANY       200 /* labels, that are placed in one round */
#define MARK       5.0 /* half the size of a mark */
#define OVER_LABEL 20.0
#define OVER_MARK  8.0
#define NEARER     6.0 /* to another mark than to its own */
#define OVER_LINE  3.0
#define CLEAR      2.0 /* of a line, which is drawn some pixels wide */
#define OUTSIDE    50.0
#define N_ALONG    50 /* places along a level that are tried */

/* Around the mark, in heights of the text from the half of the text; those before are
 * preferred. Above and left of a frontier is nothing. */
static const struct {
    double x, y;
} places[] = {{-0.6, -0.6}, {0.6, 0.6},  {0.6, -0.6}, {-0.6, 0.6},
              {0.9, 0},     {-0.9, 0},   {0, -1.2},   {0, 1.2},
              {1.6, -0.9},  {-1.6, 0.9}, {1.6, 0.9},  {-1.6, -0.9},
              {0, -2.2},    {0, 2.2},    {0, -3.2},   {0, 3.2}};
#define N_PLACES (sizeof places / sizeof places[0])

struct rect {
    double left, right, top, bottom;
};

static struct rect rect_of(double x, double y, double half_x, double half_y)
{
    return (struct rect){x - half_x, x + half_x, y - half_y, y + half_y};
}

static struct rect label_rect(const struct plot_label *l)
{
    return rect_of(l->at_x, l->at_y, l->half_x, l->half_y);
}

static bool overlap(const struct rect *a, const struct rect *b)
{
    return a->left < b->right && b->left < a->right && a->top < b->bottom &&
           b->top < a->bottom;
}

/* Whether the segment meets the box: what is left of it after cutting at each side
 * (Liang and Barsky 1984). */
static bool crosses(const struct rect *b, const struct plot_line *l)
{
    const double dx = l->x2 - l->x1, dy = l->y2 - l->y1;
    const double p[4] = {-dx, dx, -dy, dy};
    const double q[4] = {l->x1 - b->left, b->right - l->x1, l->y1 - b->top,
                         b->bottom - l->y1};
    double from = 0, to = 1;

    for (int i = 0; i < 4; i++) {
        if (p[i] == 0) {
            if (q[i] < 0)
                return false;
        } else if (p[i] < 0) {
            from = fmax(from, q[i] / p[i]);
        } else {
            to = fmin(to, q[i] / p[i]);
        }
    }
    return from <= to;
}

/* The cost of a text there over everything but labels. */
static double cost_over(const struct rect *r, const struct plot_around *a)
{
    const struct plot_box *box = &a->box;
    const struct rect near = {r->left - CLEAR, r->right + CLEAR, r->top - CLEAR,
                              r->bottom + CLEAR};
    double cost = 0;

    if (r->left < box->left || r->right > box->left + box->width || r->top < box->top ||
        r->bottom > box->top + box->height)
        cost += OUTSIDE;
    for (size_t i = 0; i < a->n_marks; i++) {
        const struct rect mark = rect_of(a->mark[i].x, a->mark[i].y, MARK, MARK);

        cost += OVER_MARK * overlap(r, &mark);
    }
    for (size_t i = 0; i < a->n_lines; i++)
        cost += OVER_LINE * crosses(&near, &a->line[i]);
    return cost;
}

static double cost_of(const struct plot_label *v, size_t own, size_t n_placed,
                      const struct plot_around *a)
{
    const struct plot_label *l = &v[own];
    const struct rect r = label_rect(l);
    const double far = hypot(l->at_x - l->x, l->at_y - l->y);
    double cost = cost_over(&r, a);

    for (size_t i = 0; i < n_placed; i++) {
        const struct rect other = label_rect(&v[i]);

        cost += OVER_LABEL * (i != own && overlap(&r, &other));
    }
    for (size_t i = 0; i < a->n_marks; i++)
        cost += NEARER *
                (hypot(l->at_x - a->mark[i].x, l->at_y - a->mark[i].y) < far - 1e-6);
    return cost;
}

static void put(struct plot_label *l, size_t place)
{
    const double x = places[place].x, em = 2 * l->half_y;

    l->at_x = l->x + x * em + (x > 0 ? l->half_x : x < 0 ? -l->half_x : 0);
    l->at_y = l->y + places[place].y * em;
}

void plot_place_labels(struct plot_label *v, size_t n, const struct plot_around *around)
{
    for (int round = 0; round < (n > MANY ? 1 : ROUNDS); round++)
        for (size_t i = 0; i < n; i++) {
            double least = INFINITY;
            size_t best = 0;

            for (size_t place = 0; place < N_PLACES; place++) {
                put(&v[i], place);
                const double cost =
                    cost_of(v, i, round ? n : i, around) + 0.1 * (double)place;
                if (cost < least) {
                    least = cost;
                    best = place;
                }
            }
            put(&v[i], best);
        }
}

double plot_place_above(const struct plot_label *v, size_t n,
                        const struct plot_around *around, double y, double width,
                        double height)
{
    const struct plot_box *box = &around->box;
    double best = box->left + 0.01 * box->width, least = INFINITY;

    for (int place = 0; place < N_ALONG; place++) {
        const double x = box->left + (0.01 + 0.98 * place / N_ALONG) * box->width;
        const struct rect r = {x, x + width, y - height, y - 1};
        double cost = 0.01 * place + cost_over(&r, around);

        for (size_t i = 0; i < n; i++) {
            const struct rect other = label_rect(&v[i]);

            cost += OVER_LABEL * overlap(&r, &other);
        }
        if (cost < least) {
            least = cost;
            best = x;
        }
    }
    return best;
}
