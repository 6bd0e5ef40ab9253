/* SPDX-License-Identifier: MIT
 *
 * test_labels.c - labels next to their marks that do not cover each other
 */
#include "harness/chart/layout.h"

#include <math.h>

#include "tests/support/test.h"

#define EM    12.0
#define WIDTH 900.0
#define LIMIT 130.0

static const struct plot_box panel = {0, 0, WIDTH, 330};

static struct plot_label mark(double x, double y, int n_characters)
{
    return (struct plot_label){
        .x = x, .y = y, .half_x = 0.3 * EM * n_characters, .half_y = EM / 2};
}

static bool covers(const struct plot_label *a, const struct plot_label *b)
{
    return fabs(a->at_x - b->at_x) < a->half_x + b->half_x - 1e-9 &&
           fabs(a->at_y - b->at_y) < a->half_y + b->half_y - 1e-9;
}

static bool covers_mark(const struct plot_label *a, const struct plot_label *b)
{
    return fabs(a->at_x - b->x) < a->half_x + 4 && fabs(a->at_y - b->y) < a->half_y + 4;
}

/* Two series with nearly the same figures: below and to the right of each mark one
 * number would be upon the other. */
static void numbers_next_to_each_other(void **state)
{
    struct plot_label v[8];
    struct plot_line lines[6];
    const struct plot_around around = {panel, v, 8, lines, 6};

    (void)state;
    for (int i = 0; i < 4; i++) {
        v[i] = mark(100 + 150 * i, 290 - 50 * i, i == 3 ? 2 : 1);
        v[i + 4] = mark(110 + 150 * i, 294 - 50 * i, i == 3 ? 2 : 1);
    }
    for (int i = 0; i < 6; i++) {
        const struct plot_label *a = &v[i < 3 ? i : i + 1];

        lines[i] = (struct plot_line){a[0].x, a[0].y, a[1].x, a[1].y};
    }
    plot_place_labels(v, 8, &around);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            const double far = hypot(v[i].at_x - v[i].x, v[i].at_y - v[i].y);

            assert_true(i == k || !covers(&v[i], &v[k]));
            assert_false(covers_mark(&v[i], &v[k]));
            assert_true(far <= hypot(v[i].at_x - v[k].x, v[i].at_y - v[k].y));
            assert_true(far < 3 * EM);
        }
}

static void alone_and_at_the_edge(void **state)
{
    struct plot_label v[] = {mark(450, 130, 1), mark(899, 1, 3)};
    const struct plot_around around = {panel, v, 2, NULL, 0};

    (void)state;
    plot_place_labels(v, 2, &around);
    assert_true(v[0].at_x < v[0].x && v[0].at_y < v[0].y); /* the usual place */
    assert_true(v[1].at_x + 0.9 * EM <= WIDTH && v[1].at_y >= EM / 2);
    plot_place_labels(NULL, 0, &around);
}

/* The name of a limit goes where no mark, label or line is in its way. */
static void above_a_line(void **state)
{
    struct plot_label v[] = {mark(20, 180, 1), mark(60, 115, 1), mark(300, 120, 2)};
    const struct plot_line line = {20, 180, 60, 115};
    const struct plot_around none = {panel, NULL, 0, NULL, 0};
    const struct plot_around around = {panel, v, 3, &line, 1};
    double x;

    (void)state;
    assert_true(plot_place_above(NULL, 0, &none, LIMIT, 70, EM) < 0.02 * WIDTH);
    plot_place_labels(v, 3, &around);
    x = plot_place_above(v, 3, &around, LIMIT, 70, EM);
    assert_true(x > 60 && x + 70 < WIDTH);
    for (int i = 0; i < 3; i++)
        assert_true(x > v[i].x + 4 || x + 70 < v[i].x - 4 || v[i].y > LIMIT);
}

/* A limit through the mark is as wide as the pen: its label does not touch it. */
static void clear_of_a_line(void **state)
{
    struct plot_label v = mark(400, 150, 1);
    struct plot_line limit = {0, 150, WIDTH, 150};
    const struct plot_around around = {panel, &v, 1, &limit, 1};

    (void)state;
    plot_place_labels(&v, 1, &around);
    assert_true(fabs(v.at_y - v.y) >= v.half_y + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_next_to_each_other),
        cmocka_unit_test(alone_and_at_the_edge),
        cmocka_unit_test(above_a_line),
        cmocka_unit_test(clear_of_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
