/* SPDX-License-Identifier: MIT
 *
 * test_coverage.c - a long sweep as many short ones: how launches are dealt, and how
 * many intervals hold the figure of all
 */
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#include "harness/rows/row.h"
#include "research/coverage.h"

static struct row launch(const char *point, double tok_per_s)
{
    struct row r;

    row_init(&r);
    snprintf(r.point, sizeof r.point, "%s", point);
    snprintf(r.model, sizeof r.model, "%s", point);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    r.tok_per_s = tok_per_s;
    r.tok_per_s_lo = tok_per_s * 0.999;
    r.tok_per_s_hi = tok_per_s * 1.001;
    return r;
}

static double noise(uint64_t *seed)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (double)test_random_float(seed);
    return sum / 2; /* about normal, standard deviation 1 */
}

#define REPEATS  200
#define LAUNCHES 3

/* Two points, their launches in turn: scatter of 2 %, and drift through the sweep. */
static size_t make_rows(struct row *rows, double drift, uint64_t seed)
{
    size_t n = 0;

    for (int i = 0; i < LAUNCHES * REPEATS; i++)
        for (int k = 0; k < 2; k++)
            rows[n++] = launch(k ? "b" : "a",
                               (k ? 20 : 10) * exp(0.02 * noise(&seed) +
                                                   drift * i / (LAUNCHES * REPEATS)));
    return n;
}

static void coverage(struct coverage *c, double drift, bool spread)
{
    static struct row rows[2 * LAUNCHES * REPEATS];
    struct err err = ERR_INIT;
    const size_t n = make_rows(rows, drift, 7);

    assert_int_equal(coverage_of(c, rows, n, LAUNCHES, spread, &err), ST_OK);
    assert_int_equal(c->n, 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(c->v[i].n_repeats, spread ? 10 * REPEATS : REPEATS);
        assert_int_equal(c->v[i].n_disturbed, 0);
    }
    assert_string_equal(c->v[0].point, "a");
}

static double share(const struct coverage *c, size_t i)
{
    return (double)c->v[i].n_covered / (double)c->v[i].n_repeats;
}

static void intervals_hold_what_is_true(void **state)
{
    struct coverage c;

    (void)state;
    for (int spread = 0; spread < 2; spread++) {
        coverage(&c, 0, spread != 0);
        for (size_t i = 0; i < 2; i++)
            assert_true(share(&c, i) >= 0.9 && share(&c, i) <= 1);
        assert_true(c.v[0].half_width > 0.01 && c.v[0].half_width < 0.06);
        assert_true(fabs(c.v[0].truth - 10) < 0.1 && fabs(c.v[1].truth - 20) < 0.2);
        coverage_free(&c);
    }
}

/* Launches one after the other know nothing of a drift of the whole sweep; spread ones
 * do. */
static void drift_tells_the_two_ways_apart(void **state)
{
    struct coverage c;

    (void)state;
    coverage(&c, 0.5, false);
    assert_true(share(&c, 0) < 0.5);
    coverage_free(&c);
    coverage(&c, 0.5, true);
    assert_true(share(&c, 0) > 0.8);
    coverage_free(&c);
}

static void launches_that_fill_no_repeat_are_left_over(void **state)
{
    struct row rows[5];
    struct coverage c;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 5; i++)
        rows[i] = launch("a", 10 + 0.01 * i);
    rows[1].status = ROW_STATUS_ERROR; /* no figure */
    rows[1].tok_per_s = NAN;
    assert_int_equal(coverage_of(&c, rows, 5, 3, false, &err), ST_OK);
    assert_int_equal(c.n, 1);
    assert_int_equal(c.v[0].n, 5);
    assert_int_equal(c.v[0].n_repeats, 1);
    coverage_free(&c);
    assert_int_equal(coverage_of(&c, rows, 1, 3, false, &err), ST_OK);
    assert_int_equal(c.v[0].n_repeats, 0);
    coverage_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_what_is_true),
        cmocka_unit_test(drift_tells_the_two_ways_apart),
        cmocka_unit_test(launches_that_fill_no_repeat_are_left_over),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
