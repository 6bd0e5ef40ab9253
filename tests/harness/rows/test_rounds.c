/* SPDX-License-Identifier: MIT
 *
 * test_rounds.c - rounds of a sweep in which the machine was slower
 */
#include "tests/support/test.h"

#include <math.h>

#include "engine/base/random.h"
#include "harness/rows/rounds.h"

enum { N_POINTS = 12 };

static struct row rows[N_POINTS * 8];
static struct round_effect found[ROUNDS_MAX];
static size_t n_rows, n_found;

/* Rounds at these shares of the speed, launches that scatter by scatter. */
static void make_rounds(const double *share, int n_rounds, double scatter,
                        uint64_t seed)
{
    n_rows = 0;
    for (int round = 0; round < n_rounds; round++)
        for (int i = 0; i < N_POINTS; i++) {
            const double u = (double)(random_bits(&seed) >> 11) * 0x1p-53 +
                             (double)(random_bits(&seed) >> 11) * 0x1p-53 - 1;
            struct row *r = &rows[n_rows++];

            row_init(r);
            snprintf(r->point, sizeof r->point, "p%02d", i);
            strcpy(r->model, i % 2 ? "a" : "b");
            r->kind = POINT_DECODE;
            r->status = ROW_STATUS_OK;
            strcpy(r->validity, "valid");
            r->attempt = round + 1;
            r->tok_per_s = (i + 3) * share[round] * exp(scatter * u);
        }
}

static void compare(const struct row *like)
{
    struct err err = ERR_INIT;

    assert_int_equal(rounds_compare(found, &n_found, rows, n_rows, like, &err), ST_OK);
}

static void a_slow_round_is_found(void **state)
{
    (void)state;
    make_rounds((const double[]){1, 0.92, 1}, 3, 0.02, 1);
    compare(NULL);
    assert_int_equal(n_found, 1); /* and no fast ones for it */
    assert_int_equal(found[0].round, 2);
    assert_float_equal(found[0].share, 0.92, 0.01);
    assert_int_equal(found[0].n_points, N_POINTS);

    make_rounds((const double[]){1, 0.8, 1.1, 1, 1}, 5, 0.02, 2);
    compare(NULL);
    assert_int_equal(n_found, 2);
    assert_int_equal(found[0].round, 2);
    assert_int_equal(found[1].round, 3);

    make_rounds((const double[]){1.1, 1}, 2, 0.02, 3); /* of two the slower one */
    compare(NULL);
    assert_int_equal(n_found, 1);
    assert_int_equal(found[0].round, 2);
}

static void of_one_model_alone(void **state)
{
    (void)state;
    make_rounds((const double[]){1, 1, 1}, 3, 0.001, 1);
    for (size_t i = 0; i < n_rows; i++)
        if (!strcmp(rows[i].model, "b") && rows[i].attempt == 2)
            rows[i].tok_per_s *= 0.5;
    compare(&rows[1]);
    assert_int_equal(n_found, 0);
    compare(&rows[0]); /* six points are too few to be sure of */
    assert_int_equal(n_found, 0);
}

static void scatter_is_no_round(void **state)
{
    int n = 0;

    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        make_rounds((const double[]){1, 1, 1, 1}, 4, 0.1, 7 * seed);
        compare(NULL);
        n += n_found > 0;
    }
    if (n > 16)
        fail_msg("%d of 200 sweeps without a slow round have one", n);
}

static void what_says_nothing_is_left_out(void **state)
{
    (void)state;
    n_rows = 0;
    compare(NULL);
    assert_int_equal(n_found, 0);
    make_rounds((const double[]){1, 0.5, 1}, 3, 0.001, 1);
    compare(NULL);
    assert_int_equal(n_found, 1);
    for (size_t i = 0; i < n_rows; i++)
        if (rows[i].attempt == 2) /* known to be disturbed: no news */
            strcpy(rows[i].validity, "disturbed: others 30 %");
    compare(NULL);
    assert_int_equal(n_found, 0);
    for (size_t i = 0; i < n_rows; i++)
        rows[i].attempt = i % 2 ? FIELD_NO_INT : 5000;
    compare(NULL);
    assert_int_equal(n_found, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_round_is_found),
        cmocka_unit_test(of_one_model_alone),
        cmocka_unit_test(scatter_is_no_round),
        cmocka_unit_test(what_says_nothing_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
