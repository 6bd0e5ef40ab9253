/* SPDX-License-Identifier: MIT
 *
 * test_recommend_quality.c - what the recommendation gives for quality: floors, the
 * price of divergence, types of few bits
 */
#include "tests/support/test.h"

#include "tests/support/recommend_rows.h"

/* A row with a divergence. */
static struct row known(const char *quant, int64_t file_bytes, double tps, double kl)
{
    struct row r = point(quant, file_bytes, 2, 0, tps);

    strcpy(r.reference, "m-f16");
    r.kl_mean = kl;
    r.top1_pct = 95;
    return r;
}

/* Enough speed, then quality. */
static void above_a_floor_the_best_quality_wins(void **state)
{
    const struct recommend_params five = {.ctx = 0, .min_tps = 5};
    struct row rows[] = {point("Q4_0", 50, 2, 0, 10), point("Q4_K_M", 53, 2, 0, 8.9),
                         point("Q6_K", 72, 2, 0, 6), point("Q6_K", 72, 1, 0, 5.5),
                         point("Q8_0", 94, 2, 0, 4)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), five), ST_OK);
    assert_string_equal(rec.best.quant, "Q6_K");
    assert_int_equal(rec.best.n_threads, 2); /* the most headroom */
    assert_string_equal(rec.runner_up.quant, "Q4_K_M");
    assert_string_equal(rec.excluded, "1 too slow");

    /* the median reaches the floor, the interval does not */
    rows[2] = with_interval(rows[2], 4.9, 7);
    rows[3] = with_interval(rows[3], 4.9, 6);
    assert_int_equal(choose(rows, COUNT(rows), five), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");

    /* without a floor the fastest */
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
}

/* Five per cent of speed are no reason for a type that keeps less; eleven are. */
static void without_known_quality_the_better_type_may_be_slower(void **state)
{
    const struct recommend_params any = {.ctx = 0};
    struct row rows[] = {point("Q4_0", 50, 2, 0, 10), point("Q4_K_M", 53, 2, 0, 9.5),
                         point("Q4_K_M", 53, 1, 0, 9.1), point("Q8_0", 94, 2, 0, 6)};

    (void)state;
    assert_int_equal(choose(rows, 4, any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_int_equal(rec.best.n_threads, 2); /* fewer threads may cost 3 % only */
    assert_true(rec.by_quality);
    assert_string_equal(rec.runner_up.quant, "Q4_0");
    assert_string_equal(rec.instead,
                        "Q4_0 with 2 threads: 10.0 tok/s, 5 % faster, less "
                        "quality by type (not measured)");
    assert_non_null(strstr(rec.answer, "its type keeps less of a model"));
    assert_non_null(
        strstr(rec.why, "Q4_0 with 2 threads is 5 % faster, but of a type"));

    rows[1] = point("Q4_K_M", 53, 2, 0, 8.9);
    rows[2] = point("Q4_K_M", 53, 1, 0, 8.5);
    assert_int_equal(choose(rows, 4, any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_string_equal(rec.instead, "");

    /* nor does a median of 12 % less get better by an interval that reaches far up */
    rows[1] = with_interval(point("Q4_K_M", 53, 2, 0, 8.8), 8.7, 12);
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_false(rec.by_quality);
    rows[1] = with_interval(point("Q4_K_M", 53, 2, 0, 9.1), 8.9, 12);
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_true(rec.by_quality);

    /* what was measured decides by its own price */
    rows[0] = known("Q4_0", 50, 10, 0.003);
    rows[1] = known("Q4_K_M", 53, 9.5, 0.0029);
    rows[2] = known("Q4_K_M", 53, 9.1, 0.0029);
    assert_int_equal(choose(rows, 4, any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
}

static void above_a_floor_measured_divergence_comes_before_the_type(void **state)
{
    const struct recommend_params five = {.ctx = 0, .min_tps = 5};
    struct row rows[] = {known("Q4_0", 50, 10, 0.006), known("Q4_K_M", 53, 9, 0.009),
                         known("IQ4_XS", 48, 8, 0.005)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), five), ST_OK);
    assert_string_equal(rec.best.quant, "IQ4_XS");

    /* a type diverges at least as far as one that keeps more, if it is not known */
    struct row two[] = {known("F32", 200, 6, 0.02), point("F16", 100, 2, 0, 5.5)};

    assert_int_equal(choose(two, 2, five), ST_OK);
    assert_string_equal(rec.best.quant, "F32");

    /* what differs by less than the errors is equal: then the faster */
    rows[0].kl_se = rows[2].kl_se = 0.001;
    assert_int_equal(choose(rows, COUNT(rows), five), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
}

/* 9 % of speed are not worth the whole of a limit. */
static void a_limit_is_not_a_budget(void **state)
{
    const struct recommend_params any = {.ctx = 0}, set = {.ctx = 0, .max_kl = 0.05};
    struct row rows[] = {known("IQ2_M", 30, 10.9, 0.0500),
                         known("Q4_K_M", 53, 10.0, 0.0034)};

    (void)state;
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_int_equal(choose(rows, 2, set), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_non_null(strstr(rec.why, "9 % faster"));
    assert_non_null(strstr(rec.why, "5 % for each tenth of the limit"));

    /* nine tenths of the limit, and 57 % of speed */
    rows[0] = known("IQ2_M", 30, 16.5, 0.0500);
    assert_int_equal(choose(rows, 2, set), ST_OK);
    assert_string_equal(rec.best.quant, "IQ2_M");
    rows[0] = known("IQ2_M", 30, 10.9, 0.0500);
    assert_int_equal(choose(rows, 2, (struct recommend_params){.max_kl = 1}), ST_OK);
    assert_string_equal(rec.best.quant, "IQ2_M");

    /* whoever may be much slower has not shown that it is worth more */
    rows[1] = with_interval(known("Q4_K_M", 53, 10.0, 0.0034), 5, 20);
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_string_equal(rec.best.quant, "IQ2_M");
}

/* Where everything diverges by more than the limit, the least of it counts. */
static void beyond_the_limit_the_price_goes_on(void **state)
{
    struct row rows[] = {known("Q2_K", 30, 20, 0.5), known("Q3_K_S", 38, 10, 0.06),
                         known("IQ1_S", 20, 40, 1e9)};

    (void)state;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.quant, "Q3_K_S");
    assert_true(rec.by_quality);
    assert_non_null(strstr(rec.why, "Careful: it diverges by more than 0.05"));
    assert_non_null(strstr(rec.why, "must be worth more than 999 %"));
}

static void few_bits_need_a_known_quality(void **state)
{
    struct row rows[] = {point("Q2_K", 30, 2, 0, 12), point("IQ3_S", 34, 2, 0, 11),
                         point("Q4_0", 50, 2, 0, 8)};

    (void)state;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_string_equal(rec.excluded, "2 of few bits whose quality is not known");

    /* measured, it is like any other */
    rows[0] = known("Q2_K", 30, 12, 0.001);
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.quant, "Q2_K");

    /* no alternative */
    assert_int_equal(choose(rows + 1, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.quant, "IQ3_S");
}

static void models_are_not_ranked_against_each_other(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_0", 5, 2, 0, 40.0),
                         point("Q8_0", 9, 2, 0, 30.0)};

    (void)state;
    strcpy(rows[1].model, "small");
    strcpy(rows[2].model, "small");
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_false(rec.has_runner_up);
    assert_null(strstr(rec.why, "slower"));
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.runner_up.quant, "Q8_0");

    /* a model whose files are named after their types is one model */
    strcpy(rows[1].model, "small-Q4_0");
    strcpy(rows[2].model, "small-Q8_0");
    assert_int_equal(choose(rows, 3, (struct recommend_params){.model = "small"}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_string_equal(rec.runner_up.quant, "Q8_0");
}

/* Chosen for its quality it is not the fastest, disturbed or not. */
static void a_disturbed_choice_is_not_called_the_fastest(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 10),
                         disturbed(point("Q6_K", 72, 2, 0, 8), "steal 4 %")};

    (void)state;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.min_tps = 5}), ST_OK);
    assert_string_equal(rec.best.quant, "Q6_K");
    assert_null(strstr(rec.why, "fastest although"));
    assert_non_null(strstr(rec.why, "undisturbed it may be faster"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(above_a_floor_the_best_quality_wins),
        cmocka_unit_test(without_known_quality_the_better_type_may_be_slower),
        cmocka_unit_test(above_a_floor_measured_divergence_comes_before_the_type),
        cmocka_unit_test(a_limit_is_not_a_budget),
        cmocka_unit_test(beyond_the_limit_the_price_goes_on),
        cmocka_unit_test(few_bits_need_a_known_quality),
        cmocka_unit_test(models_are_not_ranked_against_each_other),
        cmocka_unit_test(a_disturbed_choice_is_not_called_the_fastest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
