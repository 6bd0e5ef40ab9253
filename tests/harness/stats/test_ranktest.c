/* SPDX-License-Identifier: MIT
 *
 * test_ranktest.c - the rank test against tables, against counting, and simulated
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/stats/ranktest.h"

/* All choices of 4 among 9 ranks, counted by bits, ties and all. */
static double counted_p(const double *v, unsigned of_a)
{
    double rank[9], observed = 0, mean = 0;
    int n_as_far = 0, n_all = 0;

    for (int i = 0; i < 9; i++) {
        rank[i] = 0.5;
        for (int j = 0; j < 9; j++)
            rank[i] += v[j] < v[i] ? 1 : v[j] == v[i] ? 0.5 : 0;
        observed += of_a >> i & 1 ? rank[i] : 0;
        mean += rank[i] * 4 / 9;
    }
    for (unsigned set = 0; set < 1u << 9; set++) {
        double sum = 0;

        if (__builtin_popcount(set) != 4)
            continue;
        for (int i = 0; i < 9; i++)
            sum += set >> i & 1 ? rank[i] : 0;
        n_all++;
        n_as_far += fabs(sum - mean) >= fabs(observed - mean) - 1e-9;
    }
    return (double)n_as_far / n_all;
}

static void exact_test_is_what_counting_gives(void **state)
{
    uint64_t seed = 3;

    (void)state;
    for (int round = 0; round < 200; round++) {
        double v[9], a[4], b[5];
        unsigned of_a;
        int n_a = 0, n_b = 0;

        for (int i = 0; i < 9; i++) /* few values: many ties */
            v[i] = (double)(test_random(&seed) % (round < 100 ? 5 : 1000));
        do
            of_a = (unsigned)(test_random(&seed) & 0x1ff);
        while (__builtin_popcount(of_a) != 4);
        for (int i = 0; i < 9; i++)
            *(of_a >> i & 1 ? &a[n_a++] : &b[n_b++]) = v[i];
        assert_float_equal(rank_test(a, 4, b, 5), counted_p(v, of_a), 1e-12);
        assert_float_equal(rank_test(b, 5, a, 4), counted_p(v, of_a), 1e-12);
    }
}

static void separated_series_have_the_least_p(void **state)
{
    const double a[] = {1, 2, 3, 4, 5}, b[] = {6, 7, 8, 9, 10};

    (void)state;
    assert_float_equal(rank_test(a, 3, b, 3), 0.1, 1e-12);
    assert_float_equal(rank_test(a, 4, b, 4), 2.0 / 70, 1e-12);
    assert_float_equal(rank_test(b, 5, a, 5), 2.0 / 252, 1e-12);
    assert_float_equal(rank_test_min_p(5, 5), 2.0 / 252, 1e-9);
    assert_float_equal(rank_test_min_p(3, 3), 0.1, 1e-9);
    assert_float_equal(rank_test_min_p(1, 1), 1, 1e-9);
    assert_float_equal(rank_test_min_p(0, 5), 1, 0);
    assert_float_equal(rank_test(a, 0, b, 5), 1, 0);
}

static void equal_series_do_not_differ(void **state)
{
    double v[60];

    (void)state;
    for (int i = 0; i < 60; i++)
        v[i] = 7;
    assert_float_equal(rank_test(v, 9, v, 9), 1, 1e-9);
    assert_float_equal(rank_test(v, 60, v, 60), 1, 1e-9);
    for (int i = 0; i < 60; i++)
        v[i] = i;
    assert_float_equal(rank_test(v, 9, v, 9), 1, 1e-9);
    assert_float_equal(rank_test(v, 60, v, 60), 1, 1e-9);
}

static double uniform(uint64_t *seed)
{
    return (double)(test_random(seed) >> 11) * 0x1p-53;
}

/* Share of 2000 pairs of series of one skewed distribution with p <= 0.05, and of
 * intervals that hold the true ratio. */
static void simulate(size_t n, double factor, double *rejected, double *covered)
{
    struct err err = ERR_INIT;
    uint64_t seed = 11 + n;
    double a[60], b[60];
    int n_rejected = 0, n_covered = 0;

    for (int round = 0; round < 2000; round++) {
        struct rank_ratio r;

        for (size_t i = 0; i < n; i++) {
            a[i] = 10 - log(1 - uniform(&seed));
            b[i] = factor * (10 - log(1 - uniform(&seed)));
        }
        n_rejected += rank_test(a, n, b, n) <= 0.05;
        assert_int_equal(rank_ratio(&r, a, n, b, n, &err), ST_OK);
        assert_true(r.lo <= r.ratio && r.ratio <= r.hi);
        n_covered += r.lo <= factor && factor <= r.hi;
    }
    *rejected = n_rejected / 2000.0;
    *covered = n_covered / 2000.0;
}

static void errors_are_as_rare_as_promised(void **state)
{
    static const size_t lengths[] = {4, 5, 9, 20, 21, 60};
    const size_t step = test_thin() > 1 ? 2 : 1; /* counted and normal are left */
    double rejected, covered;

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i += step) {
        simulate(lengths[i], 1, &rejected, &covered);
        /* standard error of the simulation: 0.5 %; the test is conservative */
        assert_true(rejected <= 0.065);
        assert_true(covered >= 0.935);
        if (lengths[i] >= 9)
            assert_true(rejected >= 0.025 && covered <= 0.975);
    }
    simulate(9, 1.25, &rejected, &covered);
    assert_true(rejected >= 0.9);
    assert_true(covered >= 0.935);
}

/* The interval leaves out 1 exactly where the test rejects equality. */
static void interval_and_test_agree(void **state)
{
    struct err err = ERR_INIT;
    uint64_t seed = 5;

    (void)state;
    for (int round = 0; round < 500; round++) {
        const size_t n_a = 4 + test_random(&seed) % 8, n_b = 4 + test_random(&seed) % 8;
        double a[12], b[12];
        struct rank_ratio r;

        for (size_t i = 0; i < n_a; i++)
            a[i] = 1 + uniform(&seed);
        for (size_t i = 0; i < n_b; i++)
            b[i] = (1 + uniform(&seed)) * (round % 2 ? 1.3 : 1);
        assert_int_equal(rank_ratio(&r, a, n_a, b, n_b, &err), ST_OK);
        assert_int_equal(r.lo > 1 || r.hi < 1, rank_test(a, n_a, b, n_b) <= 0.05);
    }
}

static void ratio_is_the_middle_quotient(void **state)
{
    const double a[] = {1, 2, 4}, b[] = {2, 4, 8};
    struct err err = ERR_INIT;
    struct rank_ratio r;

    (void)state;
    assert_int_equal(rank_ratio(&r, a, 3, b, 3, &err), ST_OK);
    assert_float_equal(r.ratio, 2, 1e-12);
    assert_float_equal(r.lo, 0, 0); /* three and three: no 95 % interval */
    assert_true(isinf(r.hi));
}

static void holm_steps_down(void **state)
{
    struct err err = ERR_INIT;
    double p[] = {0.01, 0.04, 0.03, 0.005}, one[] = {0.2}, many[] = {0.6, 0.7};

    (void)state;
    assert_int_equal(rank_holm(p, 4, &err), ST_OK);
    assert_float_equal(p[3], 0.02, 1e-12); /* 4 x 0.005 */
    assert_float_equal(p[0], 0.03, 1e-12); /* 3 x 0.01 */
    assert_float_equal(p[2], 0.06, 1e-12); /* 2 x 0.03 */
    assert_float_equal(p[1], 0.06, 1e-12); /* 0.04, but not below the one before */
    assert_int_equal(rank_holm(one, 1, &err), ST_OK);
    assert_float_equal(one[0], 0.2, 1e-12);
    assert_int_equal(rank_holm(many, 2, &err), ST_OK);
    assert_float_equal(many[0], 1, 0);
    assert_int_equal(rank_holm(NULL, 0, &err), ST_OK);
}

static void signs_of_ranks_by_hand(void **state)
{
    const double up[3] = {1, 2, 3}, mixed[3] = {-1, 2, 3}, tied[3] = {1, 1, -1};
    const double none[2] = {0, 0}, with_zero[4] = {0, 1, 2, 3};
    double above, below, many[41];

    (void)state;
    rank_signs(up, 3, &above, &below);
    assert_true(fabs(above - 1.0 / 8) < 1e-12 && fabs(below - 1) < 1e-12);
    rank_signs(mixed, 3, &above, &below); /* sums 5 and 6 of 0 1 2 3 3 4 5 6 */
    assert_true(fabs(above - 2.0 / 8) < 1e-12 && fabs(below - 7.0 / 8) < 1e-12);
    rank_signs(tied, 3, &above, &below); /* two or three of three alike */
    assert_true(fabs(above - 4.0 / 8) < 1e-12 && fabs(below - 7.0 / 8) < 1e-12);
    rank_signs(none, 2, &above, &below);
    assert_true(above == 1 && below == 1);
    rank_signs(with_zero, 4, &above, &below);
    assert_true(fabs(above - 1.0 / 8) < 1e-12);

    /* Exact and normal agree where they meet; the 41st value has the least rank. */
    for (int i = 0; i < 40; i++)
        many[i] = (i % 2 ? 1 : -1) * (1 + 0.01 * i);
    many[40] = 0.5;
    rank_signs(many, 40, &above, &below);
    const double exact = above;
    rank_signs(many, 41, &above, &below);
    assert_true(fabs(above - exact) < 0.05 && fabs(above + below - 1) < 0.02);
}

/* About a value just inside the interval neither side is rejected, about one just
 * outside one is. */
static void an_interval_holds_what_signs_do_not_reject(void **state)
{
    static const size_t lengths[] = {6, 7, 9, 20, 40, 41, 80};
    uint64_t seed = 3;

    (void)state;
    for (size_t at = 0; at < sizeof lengths / sizeof *lengths; at++) {
        const size_t n = lengths[at];
        struct rank_middle r;
        struct err err = ERR_INIT;
        double v[80], about[80], above, below;

        for (size_t i = 0; i < n; i++)
            v[i] = (double)test_random_float(&seed);
        assert_int_equal(rank_middle(&r, v, n, &err), ST_OK);
        assert_true(r.lo < r.middle && r.middle < r.hi);
        for (int end = 0; end < 2; end++)
            for (int inside = 0; inside < 2; inside++) {
                const double slip = inside == end ? -1e-9 : 1e-9;

                for (size_t i = 0; i < n; i++)
                    about[i] = v[i] - (end ? r.hi : r.lo) - slip;
                rank_signs(about, n, &above, &below);
                assert_int_equal(fmin(above, below) > 0.025, inside);
            }
    }
}

static void few_values_have_a_middle_alone(void **state)
{
    const double v[5] = {3, 1, 2, 9, 4};
    struct rank_middle r;
    struct err err = ERR_INIT;

    (void)state;
    for (size_t n = 1; n < RANK_MIN_INTERVAL; n++) {
        assert_int_equal(rank_middle(&r, v, n, &err), ST_OK);
        assert_true(isnan(r.lo) && isnan(r.hi));
    }
    assert_float_equal(r.middle, 3, 0); /* the eighth of 15 means */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exact_test_is_what_counting_gives),
        cmocka_unit_test(separated_series_have_the_least_p),
        cmocka_unit_test(equal_series_do_not_differ),
        cmocka_unit_test(errors_are_as_rare_as_promised),
        cmocka_unit_test(interval_and_test_agree),
        cmocka_unit_test(ratio_is_the_middle_quotient),
        cmocka_unit_test(holm_steps_down),
        cmocka_unit_test(signs_of_ranks_by_hand),
        cmocka_unit_test(an_interval_holds_what_signs_do_not_reject),
        cmocka_unit_test(few_values_have_a_middle_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
