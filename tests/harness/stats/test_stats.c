/* SPDX-License-Identifier: MIT
 *
 * test_stats.c - statistics against known distributions
 *
 * The interval's coverage is simulated: of many series whose true median is
 * known, at least 95 % of the intervals must hold it (order statistics are
 * conservative, so more do), also for a skewed distribution.
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/stats/stats.h"

#define N_SERIES 4000

static double uniform(uint64_t *state)
{
    return (double)(test_random(state) >> 11) * 0x1p-53;
}

static void quantiles_are_interpolated(void **state)
{
    const double v[] = {10, 20, 30, 40};

    (void)state;
    assert_float_equal(stats_quantile_sorted(v, 4, 0), 10, 0);
    assert_float_equal(stats_quantile_sorted(v, 4, 1), 40, 0);
    assert_float_equal(stats_quantile_sorted(v, 4, 0.5), 25, 1e-12);
    assert_float_equal(stats_quantile_sorted(v, 4, 0.95), 38.5, 1e-12);
    assert_float_equal(stats_quantile_sorted(v, 4, -3), 10, 0);
    assert_float_equal(stats_quantile_sorted(v, 4, 7), 40, 0);
    assert_float_equal(stats_quantile_sorted(v, 1, 0.3), 10, 0);
}

static void median_leaves_its_input_alone(void **state)
{
    const double v[] = {5, 1, 4, 2, 3};
    double scratch[5];

    (void)state;
    assert_float_equal(stats_median(v, 5, scratch), 3, 0);
    assert_float_equal(v[0], 5, 0);
    assert_float_equal(stats_median(v, 4, scratch), 3, 0);
    assert_float_equal(stats_median(v, 1, scratch), 5, 0);
    assert_float_equal(stats_median(v, 0, scratch), 0, 0);
}

static void summary_of_a_small_series(void **state)
{
    const double v[] = {3, 1, 2, 100, 4};
    double scratch[5];
    struct stats s;

    (void)state;
    stats_summary(&s, v, 5, scratch);
    assert_int_equal(s.n, 5);
    assert_float_equal(s.median, 3, 0);
    assert_float_equal(s.p50, 3, 0);
    assert_float_equal(s.min, 1, 0);
    assert_float_equal(s.max, 100, 0);
    assert_float_equal(s.mean, 22, 1e-12);
    assert_float_equal(s.mad, 1.4826, 1e-9); /* deviations 0 1 1 2 97 */
    assert_true(isnan(s.lo) && isnan(s.hi)); /* five samples are too few for 95 % */
    assert_true(isnan(s.p95) && isnan(s.p99));

    stats_summary(&s, v, 0, scratch);
    assert_int_equal(s.n, 0);
    assert_float_equal(s.median, 0, 0);
    stats_summary(&s, v, 1, scratch);
    assert_true(isnan(s.lo) && isnan(s.hi)); /* not one of no width */
    assert_float_equal(s.mad, 0, 0);
}

/* A percentile is a sample, and three samples are expected above it. */
static void percentiles_need_samples_above_them(void **state)
{
    double v[300], scratch[300];
    struct stats s;

    (void)state;
    for (size_t i = 0; i < 300; i++)
        v[i] = (double)(i + 1);
    stats_summary(&s, v, STATS_P95_MIN - 1, scratch);
    assert_true(isnan(s.p95) && isnan(s.p99));
    stats_summary(&s, v, STATS_P95_MIN, scratch);
    assert_int_equal(STATS_P95_MIN, 60);
    assert_float_equal(s.p95, 57, 0);
    assert_true(isnan(s.p99));
    stats_summary(&s, v, STATS_P99_MIN - 1, scratch);
    assert_true(isnan(s.p99));
    stats_summary(&s, v, STATS_P99_MIN, scratch);
    assert_int_equal(STATS_P99_MIN, 300);
    assert_float_equal(s.p95, 285, 0);
    assert_float_equal(s.p99, 297, 0);
}

/* The ranks that the tables of the sign test give. */
static void interval_ranks_match_the_tables(void **state)
{
    static const struct {
        size_t n, lo, hi; /* ranks from 1 */
    } table[] = {{6, 1, 6},   {8, 1, 8},   {9, 2, 8},    {12, 3, 10},  {15, 4, 12},
                 {20, 6, 15}, {25, 8, 18}, {50, 18, 33}, {100, 40, 61}};
    double v[100], scratch[100];
    struct stats s;

    (void)state;
    for (size_t i = 0; i < 100; i++)
        v[i] = (double)(i + 1);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        stats_summary(&s, v, table[i].n, scratch);
        assert_float_equal(s.lo, (double)table[i].lo, 0);
        assert_float_equal(s.hi, (double)table[i].hi, 0);
    }
}

/* Share of N_SERIES series of n samples whose interval holds the true median. */
static double coverage(size_t n, double (*draw)(uint64_t *), double truth,
                       uint64_t seed)
{
    double v[400], scratch[400];
    int n_hit = 0;

    for (int k = 0; k < N_SERIES; k++) {
        struct stats s;

        for (size_t i = 0; i < n; i++)
            v[i] = draw(&seed);
        stats_summary(&s, v, n, scratch);
        n_hit += s.lo <= truth && truth <= s.hi;
    }
    return (double)n_hit / N_SERIES;
}

static double draw_exponential(uint64_t *state)
{
    return -log(1 - uniform(state));
}

/* One sample in ten is an interruption twenty times as long. */
static double draw_contaminated(uint64_t *state)
{
    const double u = uniform(state);

    return uniform(state) < 0.1 ? 20 + u : u;
}

static void interval_covers_the_median(void **state)
{
    /* median of the contaminated one: 0.9 * x = 0.5 */
    static const size_t sizes[] = {6, 9, 17, 32, 101, 400};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const double u = coverage(sizes[i], uniform, 0.5, 1 + i);
        const double e = coverage(sizes[i], draw_exponential, log(2), 100 + i);
        const double c = coverage(sizes[i], draw_contaminated, 0.5 / 0.9, 200 + i);

        /* standard error of the simulation: 0.35 %; conservative above 95 % by at
         * most the weight of one rank, 2.9 % at n = 8 */
        assert_in_range((int)(u * 1000), 939, 990);
        assert_in_range((int)(e * 1000), 939, 990);
        assert_in_range((int)(c * 1000), 939, 990);
    }
}

static void interval_works_for_very_long_series(void **state)
{
    const size_t n = 100000;
    double *v = malloc(2 * n * sizeof *v);
    struct stats s;

    (void)state;
    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = (double)(i + 1);
    stats_summary(&s, v, n, v + n);
    /* normal approximation: n/2 -+ 1.96 sqrt(n)/2 = 50000 -+ 309.9 */
    assert_float_equal(s.lo, 49690, 2);
    assert_float_equal(s.hi, 50311, 2);
    free(v);
}

static double draw_normal(uint64_t *state)
{
    return sqrt(-2 * log(1 - uniform(state))) * cos(2 * M_PI * uniform(state));
}

/* Autoregressive series of order 1 about 0, as times of successive tokens are. */
static void series_interval_covers_the_median_of_dependent_samples(void **state)
{
    static const double correlations[] = {0, 0.4, 0.6, 0.75};
    /* 1 + 2 sum of 2/pi asin(rho^k) */
    static const double worth[] = {1, 1.86, 2.95, 4.94};
    static const size_t sizes[] = {24, 48, 200};
    enum { N_TRIES = 1000 };

    (void)state;
    for (size_t k = 0; k < 12; k++) {
        const double rho = correlations[k % 4];
        const size_t n = sizes[k / 4];
        double v[200], scratch[200], sum = 0;
        uint64_t seed = k + 1;
        int n_hit = 0;

        for (int t = 0; t < N_TRIES; t++) {
            double x = draw_normal(&seed), lo, hi;

            for (size_t i = 0; i < n; i++) {
                v[i] = x;
                x = rho * x + sqrt(1 - rho * rho) * draw_normal(&seed);
            }
            stats_series_interval(v, n, scratch, &lo, &hi);
            n_hit += lo <= 0 && 0 <= hi;
            sum += stats_dependence(v, n, scratch);
        }
        if (n_hit < N_TRIES * 9 / 10 || n_hit > N_TRIES * 99 / 100)
            fail_msg("n %zu, correlation %g: %d of %d", n, rho, n_hit, N_TRIES);
        if (n == 200 && fabs(sum / N_TRIES - worth[k % 4]) > 0.4)
            fail_msg("correlation %g: one of %g is independent", rho, sum / N_TRIES);
    }
}

static void series_interval_of_few(void **state)
{
    const double v[] = {4, 1, 5, 2, 3}, ascending[] = {1, 2, 3, 4, 5, 6},
                 alike[] = {3, 3, 3, 3, 3, 3, 3, 3, 3, 3};
    double scratch[300], rising[300], lo, hi;

    (void)state;
    for (size_t n = 1; n <= 5; n++) {
        stats_series_interval(v, n, scratch, &lo, &hi);
        assert_true(isnan(lo) && isnan(hi));
    }
    /* six that are alike are worth fewer independent ones: their range */
    stats_series_interval(ascending, 6, scratch, &lo, &hi);
    assert_float_equal(lo, 1, 0);
    assert_float_equal(hi, 6, 0);
    stats_series_interval(alike, 10, scratch, &lo, &hi);
    assert_true(lo == 3 && hi == 3);
    for (int i = 0; i < 300; i++) /* a trend: hardly anything in it is independent */
        rising[i] = i;
    stats_series_interval(rising, 300, scratch, &lo, &hi);
    assert_true(lo < 90 && hi > 210);
}

static void quantiles_of_students_t(void **state)
{
    static const double table[][2] = {{1, 12.7062},  {2, 4.3027},   {3, 3.1824},
                                      {2.5, 3.5746}, {10, 2.2281},  {30, 2.0423},
                                      {120, 1.9799}, {1e9, 1.9600}, {INFINITY, 1.9600}};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        assert_float_equal(stats_t_quantile(table[i][0]), table[i][1], 4e-4);
}

static double scratch_drift[STATS_DRIFT_SCRATCH];

static void drift_finds_a_trend(void **state)
{
    static double v[2000];
    uint64_t seed = 7;

    (void)state;
    for (size_t n = 8; n <= 2000; n = n * 5 / 2) {
        for (size_t i = 0; i < n; i++) /* falls by 10 % of its middle */
            v[i] = 100 * (1.05 - 0.1 * (double)i / (double)n);
        assert_float_equal(stats_drift(v, n, scratch_drift), -0.1, 0.002);
        for (size_t i = 0; i < n; i += 5) /* outliers do not bend it much */
            v[i] *= 1 + (i % 2 ? 3 : -0.9) * (n > 50);
        assert_float_equal(stats_drift(v, n, scratch_drift), -0.1, 0.05);
    }
    for (size_t i = 0; i < 2000; i++)
        v[i] = 10 + uniform(&seed);
    assert_float_equal(stats_drift(v, 2000, scratch_drift), 0, 0.01);
}

static void drift_of_degenerate_series_is_zero(void **state)
{
    const double rising[] = {1, 2, 3, 4, 5, 6, 7};
    const double constant[] = {3, 3, 3, 3, 3, 3, 3, 3};
    const double zero[8] = {0};

    (void)state;
    assert_float_equal(stats_drift(rising, 7, scratch_drift), 0, 0);
    assert_float_equal(stats_drift(constant, 8, scratch_drift), 0, 0);
    assert_float_equal(stats_drift(zero, 8, scratch_drift), 0, 0);
}

/* A series of n with that lag-1 autocorrelation, noise of 5 % and a drift, as a share
 * of its middle. */
static void draw_series(double *v, size_t n, double rho, double noise, double drift,
                        uint64_t *seed)
{
    double x = 0;

    for (size_t i = 0; i < n + 50; i++) {
        double normal = -6;

        for (int k = 0; k < 12; k++)
            normal += uniform(seed);
        x = rho * x + sqrt(1 - rho * rho) * normal;
        if (i >= 50)
            v[i - 50] = 100 * (1 + noise * x + drift * (double)(i - 50) / (double)n);
    }
}

/* Share of series that have a large and significant drift. */
static double share_drifting(size_t n, double rho, double noise, double drift)
{
    enum { N_TRIES = 300 };
    uint64_t seed = 77 + n;
    double v[256];
    int n_found = 0;

    for (int i = 0; i < N_TRIES; i++) {
        struct stats_drift d;

        draw_series(v, n, rho, noise, drift, &seed);
        stats_drift_test(&d, v, n, scratch_drift);
        n_found += fabs(d.drift) > 0.05 && d.p < 0.01;
    }
    return (double)n_found / N_TRIES;
}

/* Noise has a slope, too: of twelve samples with 5 % noise a third drift by more than
 * 5 %. Samples that resemble their neighbours have more of it. */
static void noise_is_no_drift(void **state)
{
    static const size_t sizes[] = {8, 12, 24, 48, 96};
    static const double rhos[] = {0, 0.4, 0.75, 0.9};

    (void)state;
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 4; k++)
            assert_true(share_drifting(sizes[i], rhos[k], 0.05, 0) < 0.05);
}

static void a_drift_beyond_noise_is_found(void **state)
{
    (void)state;
    assert_true(share_drifting(24, 0, 0.03, -0.2) > 0.85);
    assert_true(share_drifting(48, 0, 0.03, 0.1) > 0.95);
    assert_true(share_drifting(48, 0.4, 0.03, 0.2) > 0.85);
    assert_true(share_drifting(96, 0.75, 0.03, -0.2) > 0.75);
}

static void degenerate_series_have_no_significant_drift(void **state)
{
    const double rising[] = {1, 2, 3, 4, 5, 6, 7}, constant[12] = {0};
    struct stats_drift d;

    (void)state;
    stats_drift_test(&d, rising, 7, scratch_drift);
    assert_true(d.p == 1 && d.drift == 0);
    stats_drift_test(&d, constant, 12, scratch_drift);
    assert_true(d.p == 1 && d.drift == 0);
}

/* Pairs of a known ratio with errors: the interval holds it as often as it says. */
static void ratio_interval_covers_the_ratio(void **state)
{
    enum { N_PAIRS = 40, N_TRIES = 300 };
    const struct stats_pair one = {3, 2};
    struct stats_pair v[N_PAIRS];
    uint64_t random = 7;
    double lo, hi, width = 0;
    int n_held = 0;

    (void)state;
    for (int i = 0; i < N_TRIES; i++) {
        for (int k = 0; k < N_PAIRS; k++) {
            v[k].b = 1 + uniform(&random);
            v[k].a = 1.5 * v[k].b + 0.4 * (uniform(&random) - 0.5);
        }
        stats_ratio_interval(v, N_PAIRS, (uint64_t)i + 1, &lo, &hi);
        assert_true(lo < hi);
        n_held += lo <= 1.5 && 1.5 <= hi;
        width += (hi - lo) / N_TRIES;
    }
    assert_true(n_held > 0.9 * N_TRIES && n_held < N_TRIES);
    assert_true(width < 0.1);
    stats_ratio_interval(&one, 1, 1, &lo, &hi);
    assert_true(isnan(lo) && isnan(hi));
}

static void sorting_ascends(void **state)
{
    double v[] = {3, -1, 2.5, -1, INFINITY, 0};
    const size_t n = sizeof v / sizeof v[0];

    (void)state;
    stats_sort(v, n);
    for (size_t i = 1; i < n; i++)
        assert_true(v[i - 1] <= v[i]);
    assert_true(v[0] == -1 && v[1] == -1 && v[n - 1] == INFINITY);
    stats_sort(v, 0);
}

static void bounds_are_clopper_and_pearsons(void **state)
{
    (void)state;
    assert_true(fabs(stats_binomial_upper(0, 300) - (1 - pow(0.05, 1.0 / 300))) < 1e-9);
    assert_true(fabs(stats_binomial_upper(1, 10) - 0.394163) < 1e-5);
    assert_true(stats_binomial_upper(10, 10) == 1);
    assert_true(fabs(stats_binomial_upper(5000, 10000) - 0.508273) < 1e-5);
    assert_true(fabs(stats_binomial_upper(9999, 10000) - 0.9999948707) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorting_ascends),
        cmocka_unit_test(bounds_are_clopper_and_pearsons),
        cmocka_unit_test(quantiles_are_interpolated),
        cmocka_unit_test(median_leaves_its_input_alone),
        cmocka_unit_test(summary_of_a_small_series),
        cmocka_unit_test(percentiles_need_samples_above_them),
        cmocka_unit_test(interval_ranks_match_the_tables),
        cmocka_unit_test(interval_covers_the_median),
        cmocka_unit_test(interval_works_for_very_long_series),
        cmocka_unit_test(ratio_interval_covers_the_ratio),
        cmocka_unit_test(series_interval_covers_the_median_of_dependent_samples),
        cmocka_unit_test(series_interval_of_few),
        cmocka_unit_test(quantiles_of_students_t),
        cmocka_unit_test(drift_finds_a_trend),
        cmocka_unit_test(drift_of_degenerate_series_is_zero),
        cmocka_unit_test(noise_is_no_drift),
        cmocka_unit_test(a_drift_beyond_noise_is_found),
        cmocka_unit_test(degenerate_series_have_no_significant_drift),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
