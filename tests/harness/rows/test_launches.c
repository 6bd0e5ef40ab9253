/* SPDX-License-Identifier: MIT
 *
 * test_launches.c - several launches of a point: one figure, and how often its interval
 * holds the truth
 */
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/stats/stats.h"
#include "harness/rows/report_rows.h"

/* ---- simulated sweeps ------------------------------------------------------------ */

enum { N_SAMPLES = 48, MAX_POINTS = 24, MAX_LAUNCHES = 5 };

/* A machine: launches differ, samples of one launch resemble each other, and some
 * launches are slow from beginning to end without any counter showing it. */
struct machine {
    const char *name;
    double launch_sd;   /* of a launch's logarithm */
    double sample_sd;   /* of a sample's, about its launch */
    double correlation; /* of successive samples */
    double slow_share, slow_by;
    double round_sd; /* of what all launches of a round have in common */
    int n_points, n_launches;
    bool partial; /* each launch has a few samples only */
};

static double uniform(uint64_t *seed)
{
    return ((double)(random_bits(seed) >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller. */
static double normal(uint64_t *seed)
{
    const double u = uniform(seed), v = uniform(seed);

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double true_speed(int point)
{
    return 5 * pow(1.3, point % 7);
}

/* A row as a point makes it of its samples. */
static struct row launch(const struct machine *m, int point, int attempt, double round,
                         uint64_t *seed)
{
    double ms[N_SAMPLES], scratch[N_SAMPLES], lo, hi;
    double effect = m->launch_sd * normal(seed) + round, x = normal(seed);
    struct row r;

    if (uniform(seed) < m->slow_share)
        effect -= m->slow_by * (0.5 + uniform(seed));
    for (int i = 0; i < N_SAMPLES; i++) {
        ms[i] = 1e3 / true_speed(point) * exp(m->sample_sd * x - effect);
        x = m->correlation * x +
            sqrt(1 - m->correlation * m->correlation) * normal(seed);
    }
    row_init(&r);
    snprintf(r.point, sizeof r.point, "p%02d", point);
    r.attempt = attempt;
    r.kind = POINT_DECODE;
    r.status = m->partial ? ROW_STATUS_PARTIAL : ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    r.n_samples = N_SAMPLES;
    stats_series_interval(ms, N_SAMPLES, scratch, &lo, &hi);
    r.tok_per_s = 1e3 / stats_median(ms, N_SAMPLES, scratch);
    r.tok_per_s_lo = 1e3 / hi;
    r.tok_per_s_hi = 1e3 / lo;
    return r;
}

/* Share of the points of n sweeps whose interval holds the true speed; *width is the
 * mean half width, relative. */
static double coverage(const struct machine *m, int n_sweeps, double *width)
{
    static struct row rows[MAX_POINTS * MAX_LAUNCHES];
    uint64_t seed = 1;
    int n_hit = 0, n_all = 0;

    *width = 0;
    for (int k = 0; k < n_sweeps; k++) {
        struct report_rows picked;
        struct err err = ERR_INIT;
        size_t n = 0;

        for (int a = 0; a < m->n_launches; a++) {
            const double round = m->round_sd * normal(&seed);

            for (int i = 0; i < m->n_points; i++)
                rows[n++] = launch(m, i, a + 1, round, &seed);
        }
        assert_int_equal(report_rows_pick(&picked, rows, n, &err), ST_OK);
        assert_int_equal(picked.n, m->n_points);
        for (size_t i = 0; i < picked.n; i++) {
            const struct row *r = picked.v[i];
            const double truth = true_speed(atoi(r->point + 1));

            n_hit += r->tok_per_s_lo <= truth && truth <= r->tok_per_s_hi;
            n_all++;
            *width += (r->tok_per_s_hi - r->tok_per_s_lo) / 2 / r->tok_per_s;
        }
        report_rows_free(&picked);
    }
    *width /= n_all;
    return (double)n_hit / n_all;
}

static void intervals_hold_the_truth(void **state)
{
    static const struct machine machines[] = {
        {"quiet", 0.01, 0.02, 0.5, 0, 0, 0, 12, 3, false},
        {"a few points", 0.01, 0.02, 0.5, 0, 0, 0, 4, 3, false},
        {"like samples", 0.01, 0.05, 0.75, 0, 0, 0, 12, 3, false},
        {"launches alike", 0, 0.03, 0.6, 0, 0, 0, 12, 3, false},
        {"launches differ", 0.05, 0.02, 0.4, 0, 0, 0, 12, 3, false},
        {"slow launches", 0.01, 0.02, 0.6, 0.05, 0.3, 0, 12, 3, false},
        {"slow rounds", 0.02, 0.02, 0.6, 0.02, 0.3, 0.01, 12, 3, false},
        {"four launches", 0.02, 0.02, 0.6, 0.05, 0.3, 0, 12, 4, false},
        {"five launches", 0.02, 0.02, 0.6, 0.05, 0.3, 0, 24, 5, false},
        {"partial", 0.1, 0.02, 0.4, 0, 0, 0, 6, 2, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++) {
        double width;
        const double share = coverage(&machines[i], 200, &width);

        print_message("%-16s %.1f %%, +- %.1f %%\n", machines[i].name, 100 * share,
                      100 * width);
        if (share < 0.90 || share > 0.99)
            fail_msg("%s: %.1f %% of the intervals hold the truth", machines[i].name,
                     100 * share);
        /* two launches alone would have 12.7 standard errors: +- 100 % */
        assert_true(width < 0.3);
    }
}

/* ---- which launches count -------------------------------------------------------- */

static struct row a_row(int attempt, double tps, const char *validity)
{
    struct row r;

    row_init(&r);
    strcpy(r.point, "p");
    r.attempt = attempt;
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    snprintf(r.validity, sizeof r.validity, "%s", validity);
    r.tok_per_s = tps;
    r.tok_per_s_lo = 0.99 * tps;
    r.tok_per_s_hi = 1.01 * tps;
    r.mem_peak_bytes = 1000 - attempt;
    r.mem_resident_bytes = 500 - attempt;
    return r;
}

static struct report_rows picked;

static void pick(const struct row *rows, size_t n)
{
    struct err err = ERR_INIT;

    assert_int_equal(report_rows_pick(&picked, rows, n, &err), ST_OK);
    assert_int_equal(picked.n, 1);
}

static void the_median_launch_stands_for_the_point(void **state)
{
    const struct row rows[] = {a_row(1, 7.3, "valid"), a_row(2, 12.16, "valid"),
                               a_row(3, 12.0, "valid")};

    (void)state;
    pick(rows, 3);
    const struct row *r = picked.v[0];
    assert_float_equal(r->tok_per_s, 12.0, 1e-9);
    assert_int_equal(r->attempt, 3);
    assert_int_equal(r->mem_peak_bytes, 999); /* the largest of all */
    assert_int_equal(r->mem_resident_bytes, 499);
    assert_int_equal(picked.launches[0].n_used, 3);
    /* one of three launches was 40 % slower: nobody knows which is the rule */
    assert_true(r->tok_per_s_lo < 7.3 && r->tok_per_s_hi > 12.16);
    assert_true(launches_half_width(r) > 0.4);
    report_rows_free(&picked);
}

/* A disturbed launch says nothing about speed, but what it needed was needed. */
static void memory_is_of_all_launches(void **state)
{
    struct row rows[] = {a_row(1, 7.3, "disturbed: others 30 %"), a_row(2, 12, "valid"),
                         a_row(3, 12, "valid")};

    (void)state;
    pick(rows, 2);
    assert_int_equal(picked.launches[0].n_used, 1);
    assert_int_equal(picked.v[0]->attempt, 2);
    assert_float_equal(picked.v[0]->tok_per_s, 12, 0);
    assert_float_equal(picked.v[0]->tok_per_s_lo, rows[1].tok_per_s_lo, 0);
    assert_int_equal(picked.v[0]->mem_peak_bytes, 999);
    assert_int_equal(picked.v[0]->mem_resident_bytes, 499);
    report_rows_free(&picked);

    rows[0].status = ROW_STATUS_OOM; /* what it had when it was killed says nothing */
    rows[0].tok_per_s = NAN;
    rows[2].mem_resident_bytes = FIELD_NO_INT; /* not known of this one */
    pick(rows, 3);
    assert_int_equal(picked.v[0]->mem_peak_bytes, 998);
    assert_int_equal(picked.v[0]->mem_resident_bytes, 498);
    report_rows_free(&picked);
}

/* What stands beside the speed is combined, too. */
static void shares_and_latencies_are_combined(void **state)
{
    struct row rows[] = {a_row(1, 11.9, "valid"), a_row(2, 12.16, "valid"),
                         a_row(3, 12.0, "valid")};
    static const double roof[] = {20, 24, 15};

    (void)state;
    for (int i = 0; i < 3; i++) {
        rows[i].mbu = rows[i].tok_per_s / roof[i];
        rows[i].mbu_lo = rows[i].mbu * 0.99;
        rows[i].mbu_hi = rows[i].mbu * 1.01;
        rows[i].lat_p50_ms = 1e3 / rows[i].tok_per_s;
        rows[i].lat_p95_ms = i ? NAN : 90;
        rows[i].ttft_s = 3 + i;
    }
    pick(rows, 3);
    const struct row *r = picked.v[0];
    assert_float_equal(r->mbu, 11.9 / 20, 1e-9);
    assert_true(r->mbu_lo < 12.16 / 24 && r->mbu_hi > 12.0 / 15);
    assert_float_equal(r->lat_p50_ms, 1e3 / 12.0, 1e-9);
    assert_float_equal(r->lat_p95_ms, 90, 1e-9);
    assert_float_equal(r->ttft_s, 4, 1e-9);
    assert_true(r->ttft_s_lo < 3 && r->ttft_s_hi > 5);
    report_rows_free(&picked);
}

/* The launch nearest the median stands for the point, wherever it is in the group, and
 * a point of one launch is its own row. */
static void the_nearest_launch_is_found(void **state)
{
    static const double speeds[] = {11, 10, 14};

    (void)state;
    for (int i = 0; i < 3; i++) {
        const struct row rows[] = {a_row(1, speeds[i], "valid"),
                                   a_row(2, speeds[(i + 1) % 3], "valid"),
                                   a_row(3, speeds[(i + 2) % 3], "valid")};

        pick(rows, 3);
        assert_float_equal(picked.v[0]->tok_per_s, 11, 1e-9);
        assert_int_equal(picked.v[0]->attempt, 1 + (3 - i) % 3);
        report_rows_free(&picked);
        pick(rows, 1);
        assert_ptr_equal(picked.v[0], &rows[0]);
        report_rows_free(&picked);
    }
}

static void launches_that_agree_are_as_sure_as_their_samples(void **state)
{
    const struct row rows[] = {a_row(1, 10, "valid"), a_row(2, 10, "valid"),
                               a_row(3, 10, "valid")};

    (void)state;
    pick(rows, 3);
    /* +- 1 % each; the median of three has 1.16 / sqrt(3) of that */
    assert_float_equal(launches_half_width(picked.v[0]), 0.0067, 0.0001);
    report_rows_free(&picked);
}

/* Half the interval of a point, as a logarithm. */
static double half_of(const struct row *rows, size_t n)
{
    double half;

    pick(rows, n);
    assert_int_equal(picked.launches[0].n_used, n);
    half = log(picked.v[0]->tok_per_s_hi / picked.v[0]->tok_per_s_lo) / 2;
    assert_float_equal(sqrt(picked.v[0]->tok_per_s_hi * picked.v[0]->tok_per_s_lo),
                       picked.v[0]->tok_per_s, 1e-9);
    report_rows_free(&picked);
    return half;
}

/* The median of n normal values is less certain than their mean, by a known factor. */
static void more_launches_that_agree_are_surer(void **state)
{
    static const double factor[] = {0, 0, 1, 1.160, 1.092, 1.198, 1.135, 1.214, 1.2533};
    struct row rows[12];

    (void)state;
    for (int i = 0; i < 12; i++)
        rows[i] = a_row(i + 1, 10, "valid");
    for (size_t n = 2; n <= 12; n++)
        assert_float_equal(
            half_of(rows, n),
            log(1.01 / 0.99) / 2 * factor[n < 8 ? n : 8] / sqrt((double)n), 1e-6);
}

/* Launches that differ by more than their samples do: Student's t of the launches. */
static void launches_that_differ_decide(void **state)
{
    const double d = 0.1, t_of_2 = 4.302653, t_of_1 = 12.706205;
    struct row three[] = {a_row(1, 10 * exp(-d), "valid"), a_row(2, 10, "valid"),
                          a_row(3, 10 * exp(d), "valid")};
    const struct row two[] = {a_row(1, 10, "valid"), a_row(2, 10 * exp(d), "valid")};

    (void)state;
    assert_float_equal(half_of(three, 3), t_of_2 * 1.160 / sqrt(3) * d, 1e-5);
    assert_float_equal(half_of(two, 2), t_of_1 / sqrt(2) * d / sqrt(2), 1e-5);
    for (int i = 0; i < 3; i++) /* what has no interval of its own adds nothing */
        three[i].tok_per_s_lo = three[i].tok_per_s_hi = NAN;
    assert_float_equal(half_of(three, 3), t_of_2 * 1.160 / sqrt(3) * d, 1e-5);
}

static void disturbed_launches_count_only_alone(void **state)
{
    const struct row rows[] = {a_row(1, 5, "disturbed: others 30 %"),
                               a_row(2, 8, "disturbed: others 8 %"),
                               a_row(3, 6, "disturbed: steal 9 %"),
                               a_row(4, 10, "valid"), a_row(5, 10.2, "valid")};

    (void)state;
    pick(rows, 3);
    assert_int_equal(picked.v[0]->attempt, 2); /* the least disturbed, as it is */
    assert_float_equal(picked.v[0]->tok_per_s, 8, 0);
    assert_float_equal(picked.v[0]->tok_per_s_hi, rows[1].tok_per_s_hi, 0);
    assert_int_equal(picked.launches[0].n_left_out, 2);
    report_rows_free(&picked);

    pick(rows, 4);
    assert_int_equal(picked.v[0]->attempt, 4);
    assert_float_equal(picked.v[0]->tok_per_s, 10, 0);
    assert_float_equal(picked.v[0]->tok_per_s_hi, rows[3].tok_per_s_hi, 0);
    assert_int_equal(picked.launches[0].n_left_out, 3);
    report_rows_free(&picked);

    pick(rows, 5);
    assert_float_equal(picked.v[0]->tok_per_s, sqrt(10 * 10.2), 1e-9);
    assert_int_equal(picked.launches[0].n_used, 2);
    assert_int_equal(picked.launches[0].n_left_out, 3);
    report_rows_free(&picked);
}

static void failed_launches_are_the_last_choice(void **state)
{
    struct row rows[] = {a_row(1, 10, "valid"), a_row(2, NAN, ""), a_row(3, NAN, "")};

    (void)state;
    rows[1].status = rows[2].status = ROW_STATUS_ERROR;
    pick(rows, 3);
    assert_ptr_equal(picked.v[0], &rows[0]);
    assert_int_equal(picked.launches[0].n_left_out, 0);
    report_rows_free(&picked);
    pick(rows + 1, 2);
    assert_ptr_equal(picked.v[0], &rows[2]);
    assert_true(isinf(launches_half_width(picked.v[0])));
    report_rows_free(&picked);
}

/* A point that was launched once is judged by how the launches of others scatter, where
 * that is known of enough of them. */
static void a_single_launch_is_as_sure_as_launches_are(void **state)
{
    struct row rows[10];
    struct err err = ERR_INIT;
    size_t n = 0;

    (void)state;
    for (int point = 0; point < 3; point++)
        for (int k = 0; k < 3; k++) {
            rows[n] = a_row(k + 1, 10 * (1 + 0.1 * (k - 1)), "valid");
            rows[n++].n_threads = point + 2;
        }
    rows[n] = a_row(1, 10, "valid");
    rows[n++].n_threads = 1;
    assert_int_equal(report_rows_pick(&picked, rows, n, &err), ST_OK);
    assert_int_equal(picked.n, 4);
    assert_int_equal(picked.v[0]->n_threads, 1);
    assert_float_equal(picked.v[0]->tok_per_s, 10, 0);
    assert_true(launches_half_width(picked.v[0]) > 0.15);
    report_rows_free(&picked);

    /* of points of another class: nothing */
    for (size_t i = 0; i + 1 < n; i++)
        rows[i].status = ROW_STATUS_PARTIAL;
    assert_int_equal(report_rows_pick(&picked, rows, n, &err), ST_OK);
    assert_ptr_equal(picked.v[0], &rows[9]);
    report_rows_free(&picked);

    /* of one other point: not enough */
    assert_int_equal(report_rows_pick(&picked, rows + 6, n - 6, &err), ST_OK);
    assert_int_equal(picked.n, 2);
    assert_ptr_equal(picked.v[0], &rows[9]);
    report_rows_free(&picked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(intervals_hold_the_truth),
        cmocka_unit_test(the_median_launch_stands_for_the_point),
        cmocka_unit_test(memory_is_of_all_launches),
        cmocka_unit_test(shares_and_latencies_are_combined),
        cmocka_unit_test(the_nearest_launch_is_found),
        cmocka_unit_test(launches_that_agree_are_as_sure_as_their_samples),
        cmocka_unit_test(more_launches_that_agree_are_surer),
        cmocka_unit_test(launches_that_differ_decide),
        cmocka_unit_test(disturbed_launches_count_only_alone),
        cmocka_unit_test(failed_launches_are_the_last_choice),
        cmocka_unit_test(a_single_launch_is_as_sure_as_launches_are),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
