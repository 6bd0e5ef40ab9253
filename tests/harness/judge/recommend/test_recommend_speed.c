/* SPDX-License-Identifier: MIT
 *
 * test_recommend_speed.c - probabilities and regrets against known ones, estimates
 * between depths
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/judge/recommend/recommend_speed.h"

static struct err err;

static struct speed speed(double median, double sigma)
{
    return (struct speed){
        .median = median, .sigma_lo = sigma, .sigma_hi = sigma, .from_ctx = -1};
}

static void an_interval_is_met(void **state)
{
    struct row r;
    struct speed s;

    (void)state;
    row_init(&r);
    r.tok_per_s = 10;
    r.tok_per_s_lo = 8;
    r.tok_per_s_hi = 11;
    s = speed_measured(&r);
    assert_float_equal(speed_lo(&s), 8, 1e-9);
    assert_float_equal(speed_hi(&s), 11, 1e-9);
    r.tok_per_s_lo = r.tok_per_s_hi = 10;
    s = speed_measured(&r);
    assert_float_equal(speed_lo(&s), 10, 0);
    r.tok_per_s_lo = r.tok_per_s_hi = NAN; /* unknown is not exact */
    s = speed_measured(&r);
    assert_float_equal(s.sigma_lo, SPEED_UNKNOWN_SPREAD, 0);
    assert_float_equal(s.sigma_hi, SPEED_UNKNOWN_SPREAD, 0);
}

static double normal_cdf(double z)
{
    return erfc(-z / sqrt(2)) / 2;
}

/* Of two log-normal speeds a probability is a normal one, and with small spreads a
 * regret is the expectation of a normal's positive part. */
static void two_speeds_compare_as_they_should(void **state)
{
    const double a = 0.03, b = 0.02, both = hypot(a, b);
    struct speed v[] = {speed(10, a), speed(0, 0.5), speed(9.9, b)};
    const double d = log(10 / 9.9), p = normal_cdf(d / both);
    const double loss = d * p + both * exp(-d * d / both / both / 2) / sqrt(2 * M_PI);

    (void)state;
    assert_int_equal(speed_compare(v, 3, &err), ST_OK);
    assert_float_equal(v[0].p_best, p, 0.02);
    assert_float_equal(v[2].p_best, 1 - p, 0.02);
    assert_float_equal(v[2].regret, loss, 0.001);
    assert_float_equal(v[0].regret, loss - d, 0.001);
    assert_float_equal(v[1].p_best, 0, 0); /* takes no part */

    struct speed again[] = {speed(10, a), speed(0, 0.5), speed(9.9, b)};
    assert_int_equal(speed_compare(again, 3, &err), ST_OK);
    for (int i = 0; i < 2; i++) { /* what was compared before counts for nothing */
        assert_float_equal(again[0].regret, v[0].regret, 0);
        assert_float_equal(again[2].p_best, v[2].p_best, 0);
        assert_int_equal(speed_compare(again, 3, &err), ST_OK);
    }
}

static void equals_share_the_credit(void **state)
{
    struct speed v[] = {speed(7, 0), speed(7, 0), speed(6, 0)};

    (void)state;
    assert_int_equal(speed_compare(v, 3, &err), ST_OK);
    assert_float_equal(v[0].p_best, 0.5, 1e-9);
    assert_float_equal(v[0].regret, 0, 1e-12);
    assert_float_equal(v[2].p_best, 0, 0);
    assert_float_equal(v[2].regret, 1.0 / 7, 1e-9);
    v[2].least = 8; /* what was shown is the least it does */
    assert_int_equal(speed_compare(v, 3, &err), ST_OK);
    assert_float_equal(v[2].p_best, 1, 1e-9);
    assert_int_equal(speed_compare(v, 0, &err), ST_OK);
}

/* Each side of the median has its own spread. */
static void a_speed_is_reached_with_a_probability(void **state)
{
    struct speed s = {.median = 10, .sigma_lo = 0.1, .sigma_hi = 0.2, .from_ctx = -1};

    (void)state;
    assert_float_equal(speed_reaches(&s, 10), 0.5, 1e-9);
    assert_float_equal(speed_reaches(&s, 10 * exp(-0.1)), normal_cdf(1), 1e-9);
    assert_float_equal(speed_reaches(&s, 10 * exp(0.2)), normal_cdf(-1), 1e-9);
    assert_float_equal(speed_reaches(&s, 0), 1, 0);
    s.least = 12; /* it was shown */
    assert_float_equal(speed_reaches(&s, 12), 1, 0);
    assert_true(speed_reaches(&s, 12.1) < 0.2);
    assert_float_equal(speed_lo(&s), 12, 0);
    s = speed(10, 0);
    assert_float_equal(speed_reaches(&s, 10), 1, 0);
    assert_float_equal(speed_reaches(&s, 10.001), 0, 0);
    assert_float_equal(speed_reaches(&s, 9.999), 1, 0);
}

static void what_is_left_out_takes_no_part(void **state)
{
    struct speed v[] = {speed(10, 0.01), speed(20, 0.01), speed(9, 0.01)};

    (void)state;
    v[1].out = true;
    v[1].p_best = v[1].regret = 7; /* nothing is written there */
    assert_int_equal(speed_compare(v, 3, &err), ST_OK);
    assert_float_equal(v[0].p_best + v[2].p_best, 1, 1e-9);
    assert_true(v[0].p_best > 0.999 && v[0].regret < 1e-4);
    assert_float_equal(v[2].regret, 0.1, 0.001);
    assert_float_equal(v[1].p_best, 7, 0);
    assert_float_equal(v[1].regret, 7, 0);
}

static struct row point(const char *quant, const char *kv, int ctx, double tps)
{
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    strcpy(r.model, "m");
    r.status = ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    snprintf(r.quant, sizeof r.quant, "%s", quant);
    r.kv_type = row_enum_value(&choices_kv, kv);
    r.n_threads = 2;
    r.ctx = ctx;
    r.tok_per_s = tps;
    return r;
}

/* What the first row that was disturbed is estimated at; NAN: nothing is known. */
static struct speed estimate(const struct row *rows, size_t n)
{
    struct speed s = {.median = NAN};
    struct report_rows p;
    double scratch[16];

    assert_true(n <= 16);
    assert_int_equal(report_rows_pick(&p, rows, n, &err), ST_OK);
    for (size_t i = 0; i < p.n; i++)
        if (row_trust(p.v[i]) == ROW_DISTURBED) {
            speed_estimate(&s, &p, i, scratch);
            break;
        }
    report_rows_free(&p);
    return s;
}

static void other_depths_tell(void **state)
{
    struct row rows[] = {
        point("Q4_0", "f16", 0, 20),    point("Q4_0", "f16", 1000, 18),
        point("Q4_0", "f16", 4000, 3),  point("Q8_0", "f16", 0, 10),
        point("Q8_0", "f16", 1000, 10), point("Q8_0", "f16", 4000, 8),
        point("Q8_0", "q8_0", 1000, 8), point("Q8_0", "q8_0", 4000, 7.6),
    };
    struct speed s;

    (void)state;
    strcpy(rows[2].validity, "disturbed: steal 9 %");
    s = estimate(rows, 8); /* from the nearest depth, by settings with the same cache */
    assert_float_equal(s.median, 18 * 0.8, 1e-9);
    assert_int_equal(s.from_ctx, 1000);
    assert_float_equal(s.least, 3, 0);
    assert_true(s.sigma_lo > SPEED_UNKNOWN_SPREAD && s.sigma_lo < 0.12);
    rows[5].status = ROW_STATUS_OOM;
    s = estimate(rows, 8); /* else by those with another */
    assert_float_equal(s.median, 18 * 0.95, 1e-9);
    strcpy(rows[7].validity, "disturbed: others 9 %");
    s = estimate(rows, 8); /* else what another keeps though disturbed, at least */
    assert_float_equal(s.median, 18 * 0.95, 1e-9);
    strcpy(rows[7].validity, "valid");
    rows[7].limiter = LIMITER_PAGING; /* that tells of its memory, not of its depth */
    assert_true(isnan(estimate(rows, 8).median));
    rows[5].status = ROW_STATUS_OK;
    rows[4].status = ROW_STATUS_ERROR;
    s = estimate(rows, 8); /* nobody has been at both: farther */
    assert_float_equal(s.median, 20 * 0.8, 1e-9);
    assert_int_equal(s.from_ctx, 0);
    rows[2].tok_per_s = 17; /* shown is shown */
    s = estimate(rows, 8);
    assert_float_equal(s.median, 17, 0);
    assert_int_equal(s.from_ctx, -1);
    rows[2].tok_per_s = 3;
    rows[2].limiter = LIMITER_PAGING; /* it does not fit: no disturbance */
    assert_true(isnan(estimate(rows, 8).median));
}

/* The median of what others keep: the mean of the middle two where their number is
 * even. */
static void others_count_by_their_median(void **state)
{
    struct row rows[] = {
        point("Q4_0", "f16", 0, 20),  point("Q4_0", "f16", 1000, 3),
        point("Q8_0", "f16", 0, 10),  point("Q8_0", "f16", 1000, 8),
        point("Q8_0", "f16", 0, 10),  point("Q8_0", "f16", 1000, 9),
        point("Q8_0", "f16", 0, 100), point("Q8_0", "f16", 1000, 70),
    };
    struct speed s;

    (void)state;
    for (int i = 2; i < 8; i++)
        rows[i].n_threads = 1 + i / 2;
    strcpy(rows[1].validity, "disturbed: steal 9 %");
    s = estimate(rows, 8);
    assert_float_equal(s.median, 20 * 0.8, 1e-9);
    assert_float_equal(s.sigma_lo, hypot(SPEED_UNKNOWN_SPREAD, SPEED_ESTIMATE_SPREAD),
                       1e-12);
    assert_float_equal(s.sigma_hi, s.sigma_lo, 0);
    assert_float_equal(estimate(rows, 6).median, 20 * 0.85, 1e-9);
}

/* What quiet rows keep counts more than what disturbed ones do, from farther, too. */
static void quiet_rows_count_more_than_near_ones(void **state)
{
    struct row rows[] = {
        point("Q4_0", "f16", 0, 20),    point("Q4_0", "f16", 1000, 18),
        point("Q4_0", "f16", 4000, 3),  point("Q8_0", "f16", 0, 10),
        point("Q8_0", "f16", 4000, 8),  point("Q8_0", "q8_0", 1000, 8),
        point("Q8_0", "q8_0", 4000, 6),
    };
    struct speed s;

    (void)state;
    strcpy(rows[2].validity, "disturbed: steal 9 %");
    strcpy(rows[6].validity, "disturbed: steal 9 %");
    s = estimate(rows, 7);
    assert_int_equal(s.from_ctx, 0);
    assert_float_equal(s.median, 20 * 0.8, 1e-9);
}

/* Depth slows down, so a deeper row alone is a lower bound. */
static void a_deeper_row_is_a_lower_bound(void **state)
{
    struct row rows[] = {point("Q4_0", "f16", 0, 2), point("Q4_0", "f16", 1000, 5)};

    (void)state;
    strcpy(rows[0].validity, "disturbed: steal 9 %");
    assert_float_equal(estimate(rows, 2).median, 5, 0);
    strcpy(rows[0].validity, "valid");
    strcpy(rows[1].validity, "disturbed: steal 9 %");
    assert_true(isnan(estimate(rows, 2).median));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_interval_is_met),
        cmocka_unit_test(two_speeds_compare_as_they_should),
        cmocka_unit_test(equals_share_the_credit),
        cmocka_unit_test(a_speed_is_reached_with_a_probability),
        cmocka_unit_test(what_is_left_out_takes_no_part),
        cmocka_unit_test(other_depths_tell),
        cmocka_unit_test(others_count_by_their_median),
        cmocka_unit_test(quiet_rows_count_more_than_near_ones),
        cmocka_unit_test(a_deeper_row_is_a_lower_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
