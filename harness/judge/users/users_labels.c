/* SPDX-License-Identifier: MIT
 *
 * users_labels.c - the place around each mark where its label covers least
 *
 * Each label takes the cheapest of the places around its mark, in turn, and a few times
 * over, since those that were placed first did not know of the others.
 */
#include "harness/judge/users/users_labels.h"

#include <math.h>
#include <stdbool.h>

#define ROUNDS       4
#define CHARACTER    0.6 /* of the em */
#define MARK         0.4 /* half the size of a mark, in em */
#define OVER_LABEL   20.0
#define OVER_MARK    8.0
#define NEARER       6.0 /* to another mark than to its own */
#define OVER_LINE    3.0
#define OVER_WHISKER 2.0
#define OUTSIDE      50.0
#define ABOVE        0.8 /* a line: the middle of its text, in em */
#define N_ALONG      50  /* places along a line that are tried */

/* Around the mark, in em from the half of the text; those before are preferred. */
static const struct {
    double x, y;
} places[] = {{0.7, -0.7}, {-0.7, 0.7},  {0.7, 0.7},  {-0.7, -0.7}, {0.9, 0},
              {-0.9, 0},   {0, -1.2},    {0, 1.2},    {1.6, -0.9},  {-1.6, 0.9},
              {1.6, 0.9},  {-1.6, -0.9}, {0.5, -1.8}, {-0.5, 1.8}};
#define N_PLACES (sizeof places / sizeof places[0])

struct box {
    double left, right, low, high;
};

static struct box box_of(double x, double y, double half_x, double half_y)
{
    return (struct box){x - half_x, x + half_x, y - half_y, y + half_y};
}

static struct box label_box(const struct users_label *l, double em)
{
    return box_of(l->label_x, l->label_y, CHARACTER * em * l->n_characters / 2, em / 2);
}

static bool overlap(const struct box *a, const struct box *b)
{
    return a->left < b->right && b->left < a->right && a->low < b->high &&
           b->low < a->high;
}

/* Whether the segment from (x, y) to (to_x, to_y) meets the box: what is left of it
 * after cutting at each side (Liang and Barsky 1984). */
static bool crosses(const struct box *b, double x, double y, double to_x, double to_y)
{
    const double dx = to_x - x, dy = to_y - y;
    const double p[4] = {-dx, dx, -dy, dy};
    const double q[4] = {x - b->left, b->right - x, y - b->low, b->high - y};
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

static double distance(const struct users_label *label, const struct users_label *mark)
{
    return hypot(label->label_x - mark->x, label->label_y - mark->y);
}

/* The cost of a text in the box over mark l, its interval, and the line to the next
 * mark. */
static double cost_over(const struct box *box, const struct users_label *l,
                        bool is_last, double em)
{
    const struct box mark = box_of(l->x, l->y, MARK * em, MARK * em);
    double cost = OVER_MARK * overlap(box, &mark) +
                  OVER_WHISKER * crosses(box, l->x, l->lo, l->x, l->hi);

    if (!is_last && l[1].series == l->series)
        cost += OVER_LINE * crosses(box, l->x, l->y, l[1].x, l[1].y);
    return cost;
}

static double cost_of(const struct users_label *v, size_t n, size_t own,
                      size_t n_placed, double width, double height, double em)
{
    const struct box box = label_box(&v[own], em);
    double cost = 0;

    if (box.left < 0 || box.right > width || box.low < 0 || box.high > height)
        cost += OUTSIDE;
    for (size_t i = 0; i < n; i++) {
        const struct users_label *l = &v[i];
        const struct box label = label_box(l, em);

        cost += OVER_LABEL * (i != own && i < n_placed && overlap(&box, &label));
        cost += NEARER * (distance(&v[own], l) < distance(&v[own], &v[own]));
        cost += cost_over(&box, l, i + 1 == n, em);
    }
    return cost;
}

static void put(struct users_label *l, size_t place, double em)
{
    const double half = CHARACTER * em * l->n_characters / 2;
    const double side = places[place].x > 0 ? half : places[place].x < 0 ? -half : 0;

    l->label_x = l->x + places[place].x * em + side;
    l->label_y = l->y + places[place].y * em;
}

static void place_one(struct users_label *v, size_t n, size_t own, size_t n_placed,
                      double width, double height, double em)
{
    double least = INFINITY;
    size_t best = 0;

    for (size_t place = 0; place < N_PLACES; place++) {
        put(&v[own], place, em);

        const double cost =
            cost_of(v, n, own, n_placed, width, height, em) + 0.1 * (double)place;
        if (cost < least) {
            least = cost;
            best = place;
        }
    }
    put(&v[own], best, em);
}

void users_place_labels(struct users_label *v, size_t n, double width, double height,
                        double em)
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < n; i++)
            place_one(v, n, i, round ? n : i, width, height, em);
}

double users_place_above(const struct users_label *v, size_t n, double width, double y,
                         double above, int n_characters, double em)
{
    const double half = CHARACTER * em * n_characters / 2;
    const double middle = y + above * ABOVE * em;
    double best = 0.01 * width, least = INFINITY;

    for (int place = 0; place < N_ALONG; place++) {
        const double x = (0.01 + 0.98 * place / N_ALONG) * width;
        const struct box box = box_of(x + half, middle, half, em / 2);
        double cost = 0.01 * place + OUTSIDE * (box.right > width);

        for (size_t i = 0; i < n; i++) {
            const struct box label = label_box(&v[i], em);

            cost += OVER_LABEL * overlap(&box, &label) +
                    cost_over(&box, &v[i], i + 1 == n, em);
        }
        if (cost < least) {
            least = cost;
            best = x;
        }
    }
    return best;
}
