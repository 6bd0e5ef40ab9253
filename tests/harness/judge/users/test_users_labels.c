/* SPDX-License-Identifier: MIT
 *
 * test_users_labels.c - numbers of users that do not cover each other
 */
#include "harness/judge/users/users_labels.h"

#include <math.h>
#include <stdbool.h>

#include "tests/support/test.h"

#define EM     12.0
#define WIDTH  900.0
#define HEIGHT 330.0

static struct users_label mark(double x, double y, int series, int n_characters)
{
    return (struct users_label){.x = x,
                                .y = y,
                                .lo = y - 8,
                                .hi = y + 8,
                                .series = series,
                                .n_characters = n_characters};
}

static bool covers(const struct users_label *a, const struct users_label *b)
{
    return fabs(a->label_x - b->label_x) <
               0.3 * EM * (a->n_characters + b->n_characters) - 1e-9 &&
           fabs(a->label_y - b->label_y) < EM - 1e-9;
}

static bool covers_mark(const struct users_label *a, const struct users_label *b)
{
    return fabs(a->label_x - b->x) < 0.3 * EM * a->n_characters + 0.4 * EM - 1e-9 &&
           fabs(a->label_y - b->y) < 0.9 * EM - 1e-9;
}

/* Two servers with nearly the same figures, as before this was placed by hand: below
 * and to the right of each mark, one number upon the other. */
static void numbers_beside_each_other(void **state)
{
    struct users_label v[8];

    (void)state;
    for (int i = 0; i < 4; i++) {
        v[i] = mark(100 + 150 * i, 40 + 50 * i, 0, i == 3 ? 2 : 1);
        v[i + 4] = mark(110 + 150 * i, 36 + 50 * i, 1, i == 3 ? 2 : 1);
    }
    users_place_labels(v, 8, WIDTH, HEIGHT, EM);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 8; k++) {
            assert_true(i == k || !covers(&v[i], &v[k]));
            assert_false(covers_mark(&v[i], &v[k]));
            assert_true(hypot(v[i].label_x - v[i].x, v[i].label_y - v[i].y) <=
                        hypot(v[i].label_x - v[k].x, v[i].label_y - v[k].y));
            assert_true(hypot(v[i].label_x - v[i].x, v[i].label_y - v[i].y) < 3 * EM);
        }
}

static void alone_and_at_the_edge(void **state)
{
    struct users_label v[] = {mark(450, 200, 0, 1), mark(899, 1, 1, 3)};

    (void)state;
    users_place_labels(v, 2, WIDTH, HEIGHT, EM);
    assert_true(v[0].label_x > v[0].x && v[0].label_y < v[0].y); /* the usual place */
    assert_true(v[1].label_x + 0.9 * EM <= WIDTH && v[1].label_y >= EM / 2);
    users_place_labels(NULL, 0, WIDTH, HEIGHT, EM);
}

/* The name of a limit goes where no mark, number or line is in its way. */
static void above_a_line(void **state)
{
    struct users_label v[] = {mark(20, 150, 0, 1), mark(60, 215, 0, 1),
                              mark(300, 210, 1, 2)};
    const double half_text = 0.3 * EM * 10;
    double x;

    (void)state;
    assert_true(users_place_above(NULL, 0, WIDTH, 200, 1, 10, EM) < 0.02 * WIDTH);
    users_place_labels(v, 3, WIDTH, HEIGHT, EM);
    x = users_place_above(v, 3, WIDTH, 200, 1, 10, EM) + half_text;
    assert_true(x - half_text > 60 && x + half_text < WIDTH);
    for (int i = 0; i < 3; i++)
        assert_true(fabs(x - v[i].x) > half_text + 0.4 * EM ||
                    fabs(209.6 - v[i].y) > 0.9 * EM);
    /* There is room below at the left where the axis points down. */
    assert_true(users_place_above(v + 2, 1, WIDTH, 200, -1, 10, EM) < 0.02 * WIDTH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_beside_each_other),
        cmocka_unit_test(alone_and_at_the_edge),
        cmocka_unit_test(above_a_line),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
