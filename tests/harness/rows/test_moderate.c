/* SPDX-License-Identifier: MIT
 *
 * test_moderate.c - what the variances of many small groups say about one of them
 */
#include "tests/support/test.h"

#include <math.h>

#include "engine/base/random.h"
#include "harness/rows/launches.h"

enum { N_GROUPS = 400 };

static double draw_normal(uint64_t *seed)
{
    const double u = ((double)(random_bits(seed) >> 11) + 0.5) * 0x1p-53;
    const double v = (double)(random_bits(seed) >> 11) * 0x1p-53;

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Chi-squared over its degrees of freedom. */
static double draw_mean_square(int df, uint64_t *seed)
{
    double sum = 0;

    for (int i = 0; i < df; i++)
        sum += pow(draw_normal(seed), 2);
    return sum / df;
}

/* Variances 4 / (chi-squared of prior_df, over prior_df), and samples of df + 1 values
 * of each; prior_df 0: all are 4. */
static void draw_groups(struct variance v[N_GROUPS], int prior_df, int df)
{
    uint64_t seed = 3;

    for (int i = 0; i < N_GROUPS; i++) {
        const double true_var = prior_df ? 4 / draw_mean_square(prior_df, &seed) : 4;

        v[i] = (struct variance){true_var * draw_mean_square(df, &seed), df};
    }
}

static void prior_is_found(void **state)
{
    static struct variance v[N_GROUPS];
    struct variance_prior prior;

    (void)state;
    draw_groups(v, 0, 2);
    prior = variance_prior_fit(v, N_GROUPS);
    assert_true(prior.df > 15);
    assert_float_equal(prior.var, 4, 0.5);
    assert_float_equal(prior.sum_df, 2 * N_GROUPS, 0);

    draw_groups(v, 6, 2);
    prior = variance_prior_fit(v, N_GROUPS);
    assert_true(prior.df > 3.5 && prior.df < 12);
    assert_float_equal(prior.var, 4, 0.8);
}

static void groups_lean_on_the_prior(void **state)
{
    const struct variance_prior prior = {.var = 4, .df = 6, .sum_df = 100};
    const struct variance_prior alike = {.var = 4, .df = INFINITY, .sum_df = 24};
    struct variance v;

    (void)state;
    v = variance_moderate(&prior, (struct variance){8, 2});
    assert_float_equal(v.var, 5, 1e-12);
    assert_float_equal(v.df, 8, 0);
    v = variance_moderate(&prior, (struct variance){0, 0});
    assert_float_equal(v.var, 4, 0);
    assert_float_equal(v.df, 6, 0);
    v = variance_moderate(&alike, (struct variance){8, 2});
    assert_float_equal(v.var, 4, 0);
    assert_float_equal(v.df, 24, 0); /* no more is known than went into it */
}

static void little_is_known_of_little(void **state)
{
    struct variance_prior prior = variance_prior_fit(NULL, 0);
    const struct variance equal[] = {{0, 2}, {0, 2}}, one = {3, 2}, none = {5, 0};
    struct variance v;

    (void)state;
    assert_float_equal(prior.df, 0, 0);
    v = variance_moderate(&prior, one);
    assert_float_equal(v.var, 3, 0);
    assert_float_equal(v.df, 2, 0);
    assert_float_equal(variance_moderate(&prior, none).df, 0, 0);

    prior = variance_prior_fit(equal, 2); /* no scatter at all is no prior */
    assert_float_equal(prior.df, 0, 0);

    prior = variance_prior_fit(&one, 1);
    v = variance_moderate(&prior, one);
    assert_float_equal(v.var, 3, 0);
    assert_float_equal(v.df, 2, 0);
}

/* By the same formulas in Python, with digamma and trigamma from 40 on. */
static void prior_is_exact(void **state)
{
    static const struct {
        struct variance v[12];
        size_t n;
        double df, var;
    } cases[] = {
        {{{0.5, 2}, {1, 2}, {2, 2}, {8, 2}, {0.25, 2}, {20, 2}},
         6,
         2.59424337465,
         2.13703763061},
        {{{0.5, 3}, {1, 3}, {2, 3}, {8, 3}, {0.25, 3}, {20, 3}, {0.1, 3}, {60, 3}},
         8,
         1.13402693512,
         0.95613313643},
        {{{0.5, 14}, {1, 14}, {2, 14}, {8, 14}, {1, 5}, {3, 5}, {7, 0}},
         7, /* the last one has one value: nothing is known of its variance */
         3.73440908723,
         1.43103827992},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct variance_prior p = variance_prior_fit(cases[i].v, cases[i].n);

        assert_float_equal(p.df, cases[i].df, 1e-8);
        assert_float_equal(p.var, cases[i].var, 1e-8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prior_is_found),
        cmocka_unit_test(prior_is_exact),
        cmocka_unit_test(groups_lean_on_the_prior),
        cmocka_unit_test(little_is_known_of_little),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
