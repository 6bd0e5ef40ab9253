/* SPDX-License-Identifier: MIT
 *
 * test_change.c - histories whose change points are known, and some that have none
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/history/change.h"

#define N    90
#define MOST 8

static double noise(uint64_t *seed)
{
    double sum = 0; /* of 12 uniform values: nearly normal */

    for (int i = 0; i < 12; i++)
        sum += (double)test_random_float(seed) / 2;
    return 0.02 * sum;
}

static void one_step_is_found(void **state)
{
    struct err err = ERR_INIT;
    struct change c[MOST];
    double v[N];
    size_t n;
    uint64_t seed = 3;

    (void)state;
    for (size_t i = 0; i < N; i++)
        v[i] = (i < 40 ? 10 : 9) * (1 + noise(&seed));
    assert_int_equal(change_points(c, MOST, &n, v, N, 0.01, 1, &err), ST_OK);
    assert_int_equal(n, 1);
    assert_in_range(c[0].at, 39, 41);
    assert_true(c[0].p <= 0.01);
    assert_true(fabs(c[0].before - 10) < 0.2 && fabs(c[0].after - 9) < 0.2);
}

static void a_flat_history_has_none(void **state)
{
    struct err err = ERR_INIT;
    struct change c[MOST];
    uint64_t seed = 8;
    size_t n_found = 0;

    (void)state;
    for (uint64_t h = 0; h < 40; h++) {
        double v[N];
        size_t n;

        for (size_t i = 0; i < N; i++)
            v[i] = 1 + noise(&seed) + (test_random(&seed) % 30 ? 0 : 0.1);
        assert_int_equal(change_points(c, MOST, &n, v, N, 0.01, h, &err), ST_OK);
        n_found += n;
    }
    assert_true(n_found <= 3);
    for (size_t length = 0; length < 12; length++) {
        const double same[12] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        size_t n;

        assert_int_equal(change_points(c, MOST, &n, same, length, 0.01, 1, &err),
                         ST_OK);
        assert_int_equal(n, 0);
    }
}

/* Two or three changes of 4 to 10 %, single outliers besides: nearly all are found
 * within 3 places, and nearly nothing else. A threshold on the step from one value to
 * the next finds the outliers. */
static void changes_are_found_among_outliers(void **state)
{
    struct err err = ERR_INIT;
    uint64_t seed = 21;
    size_t n_changes = 0, n_hits = 0, n_false = 0, n_steps = 0;

    (void)state;
    for (uint64_t h = 0; h < 30; h++) {
        const size_t steps_at[3] = {20 + test_random(&seed) % 9,
                                    45 + test_random(&seed) % 9,
                                    70 + test_random(&seed) % 9};
        const size_t n_here = 2 + h % 2;
        double v[N], level = 1;
        struct change c[MOST];
        size_t n;

        for (size_t i = 0, b = 0; i < N; i++) {
            if (b < n_here && i == steps_at[b]) {
                const double size = 0.07 + 0.03 * (double)test_random_float(&seed);

                level += b++ % 2 ? -size : size;
            }
            v[i] = level + noise(&seed) / 2 + (test_random(&seed) % 25 ? 0 : 0.1);
            n_steps += i && fabs(v[i] - v[i - 1]) > 0.05;
        }
        assert_int_equal(change_points(c, MOST, &n, v, N, 0.01, h, &err), ST_OK);
        n_changes += n_here;
        for (size_t k = 0; k < n; k++) {
            size_t hits = 0;

            for (size_t b = 0; b < n_here; b++)
                hits += c[k].at + 3 >= steps_at[b] && c[k].at <= steps_at[b] + 3;
            n_hits += hits;
            n_false += !hits;
        }
    }
    assert_true(n_hits * 10 >= n_changes * 9);
    assert_true(n_false * 10 <= n_changes);
    assert_true(n_steps > 2 * n_changes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step_is_found),
        cmocka_unit_test(a_flat_history_has_none),
        cmocka_unit_test(changes_are_found_among_outliers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
