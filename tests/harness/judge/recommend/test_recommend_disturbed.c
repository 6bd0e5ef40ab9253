/* SPDX-License-Identifier: MIT
 *
 * test_recommend_disturbed.c - what the recommendation makes of rows that are in doubt
 */
#include "tests/support/test.h"

#include "tests/support/recommend_rows.h"

static void disturbed_points_are_named(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_0", 50, 1, 0, 2.0)};

    (void)state;
    /* slower: left out */
    strcpy(rows[1].validity, "disturbed: steal 4 %");
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_string_equal(rec.excluded, "1 disturbed");
    assert_null(strstr(rec.why, "Careful"));

    /* probably faster, and that is the least it does: taken, but not as shown */
    rows[1].tok_per_s = 4.1;
    rows[1].tok_per_s_lo = 4.0;
    rows[1].tok_per_s_hi = 4.2;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.best.n_threads, 1);
    assert_string_equal(rec.excluded, "");
    assert_null(strstr(rec.why, "fastest although"));
    assert_non_null(strstr(rec.why, "undisturbed it may be faster (steal 4 %)"));

    /* faster in spite of it: taken, and said */
    strcpy(rows[1].validity, "valid");
    strcpy(rows[0].validity, "disturbed: steal 4 %");
    rows[0].tok_per_s_lo = 4.5;
    rows[0].tok_per_s = 4.6;
    rows[0].tok_per_s_hi = 4.7;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_non_null(strstr(rec.why, "it is the fastest although it was disturbed"));
    assert_non_null(strstr(rec.why, "steal 4 %"));

    /* nothing else: taken, and said */
    assert_int_equal(choose(rows, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_non_null(strstr(rec.why, "every point that qualifies was disturbed"));
    assert_non_null(strstr(rec.answer, "decodes at least "));
    assert_string_equal(rec.excluded, "");

    /* of two lower bounds neither is known to be the faster */
    rows[1] = disturbed(rows[1], "steal 4 %");
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_true(isnan(rec.p_best));
    assert_null(strstr(rec.answer, "probability that"));
    assert_non_null(strstr(rec.answer, "which setting is the fastest is not known"));
}

static void above_the_roof_is_never_used(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 9.0), point("Q4_0", 50, 1, 0, 2.0)};

    (void)state;
    strcpy(rows[0].validity, "disturbed: 30 % above its roof");
    rows[0].mbu = 1.3;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.best.n_threads, 1);
    assert_string_equal(rec.excluded, "1 above the roof, so in doubt");
    assert_int_equal(choose(rows, 1, (struct recommend_params){.ctx = 0}), ST_CHECK);
    assert_non_null(strstr(err.msg, "130 % of its roof"));

    rows[0].mbu = NAN; /* a table of somebody who does not tell the share */
    assert_int_equal(choose(rows, 1, (struct recommend_params){.ctx = 0}), ST_CHECK);
    assert_non_null(strstr(err.msg, "it is faster than its roof"));
}

/* Of several launches of one point the most trusted speak together. */
static void a_repeated_point_speaks_once(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 9.0), point("Q4_0", 50, 2, 0, 4.0),
                         point("Q4_0", 50, 2, 0, 3.0), point("Q4_0", 50, 2, 0, NAN)};

    (void)state;
    strcpy(rows[0].validity, "disturbed: drift +9 %");
    rows[3].status = ROW_STATUS_INTERRUPTED;
    assert_int_equal(choose(rows, 4, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_float_equal(rec.best.tok_per_s, sqrt(4.0 * 3.0), 1e-9);
    assert_false(rec.has_runner_up);
    assert_int_equal(rec.n_excluded, 0);
}

/* Of disturbed attempts the one that was slowed down least speaks, not the latest. */
static void the_least_disturbed_attempt_speaks(void **state)
{
    struct row rows[] = {disturbed(point("Q4_0", 50, 2, 0, 8.67), "others 8 %"),
                         disturbed(point("Q4_0", 50, 2, 0, 4.66), "others 30 %"),
                         disturbed(point("Q4_0", 50, 2, 0, 99), "9 % above its roof")};

    (void)state;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_float_equal(rec.best.tok_per_s, 8.67, 0);
    assert_non_null(strstr(rec.why, "others 8 %"));
}

/* Two quantisations and two thread counts at two depths; the last row is Q4_K_M with
 * two threads at the depth that is wanted, and was disturbed. */
static size_t fill_depths(struct row rows[8], double q4_k_m, double slowed)
{
    const double tps[] = {12, 10, 6.5, 5.5, 6.3, 5.3, q4_k_m, slowed};

    for (int i = 0; i < 8; i++)
        rows[i] = point(i < 4 ? "Q4_0" : "Q4_K_M", i < 4 ? 50 : 53,
                        i / 2 % 2 == (i < 4) ? 1 : 2, i % 2 ? 4096 : 1024, tps[i]);
    rows[7] = disturbed(rows[7], "memory gave 38 GB/s, at other points 68");
    return 8;
}

static void a_disturbed_row_does_not_lose_its_setting(void **state)
{
    const struct recommend_params deepest = {.ctx = -1},
                                  at_least = {.ctx = -1, .min_tps = 9};
    struct row rows[8];
    size_t n = fill_depths(rows, 14, 6.4);

    (void)state;
    /* 14 tok/s at depth 1024, of which others keep 5/6 at depth 4096: 11.8 */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(choose(rows, n, i ? at_least : deepest), ST_OK);
        assert_string_equal(rec.best.quant, "Q4_K_M");
        assert_int_equal(rec.best.n_threads, 2);
        assert_non_null(strstr(rec.why, "11.8 tok/s"));
        assert_non_null(strstr(rec.why, "estimated from depth 1024"));
        assert_non_null(strstr(rec.why, "measure again on a quiet machine"));
        assert_null(strstr(rec.why, "fastest although"));
    }
    assert_string_equal(rec.runner_up.quant, "Q4_0");

    n = fill_depths(rows, 10.6, 6.4); /* 8.8 */
    assert_int_equal(choose(rows, n, deepest), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_null(strstr(rec.why, "Careful"));
    assert_non_null(strstr(rec.why, "Q4_K_M with 2 threads is 11 % slower, estimated "
                                    "from depth 1024, as its row was disturbed"));
    assert_string_equal(rec.runner_up.quant, "Q4_K_M");
    assert_string_equal(rec.excluded, "4 at less context");

    n = fill_depths(rows, 11, 11); /* as disturbed as it was */
    assert_int_equal(choose(rows, n, deepest), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_non_null(strstr(rec.why, "it is the fastest although it was disturbed"));

    /* no other depth tells: what was measured is the least it does */
    rows[6] = disturbed(rows[6], "steal 4 %");
    rows[7] = disturbed(with_interval(point("Q4_K_M", 53, 2, 4096, 10.1), 9.9, 10.3),
                        "steal 4 %");
    assert_int_equal(choose(rows, n, deepest), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_null(strstr(rec.why, "fastest although"));
    assert_non_null(strstr(rec.why, "undisturbed it may be faster"));
}

/* What all kept though disturbed is a lower bound for each of them. */
static void a_depth_where_all_were_disturbed_is_estimated(void **state)
{
    struct row rows[8];
    const size_t n = fill_depths(rows, 14, 6.4);

    (void)state;
    for (int i = 1; i < 7; i += 2)
        rows[i] = disturbed(rows[i], "others 9 %");
    assert_int_equal(choose(rows, n, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_int_equal(rec.best.n_threads, 2);
    assert_int_equal(rec.best_from_ctx, 1024);
    assert_true(rec.best_tok_per_s > 11 && rec.best_tok_per_s < 12);
    assert_float_equal(rec.best.tok_per_s, 6.4, 0);
    assert_true(rec.p_best > 0.9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(disturbed_points_are_named),
        cmocka_unit_test(above_the_roof_is_never_used),
        cmocka_unit_test(a_repeated_point_speaks_once),
        cmocka_unit_test(the_least_disturbed_attempt_speaks),
        cmocka_unit_test(a_disturbed_row_does_not_lose_its_setting),
        cmocka_unit_test(a_depth_where_all_were_disturbed_is_estimated),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
