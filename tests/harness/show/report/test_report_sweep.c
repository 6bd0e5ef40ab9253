/* SPDX-License-Identifier: MIT
 *
 * test_report_sweep.c - what a sweep says when it ends
 */
#include "tests/support/recommend_rows.h"
#include "tests/support/test.h"

#include "harness/show/report/report.h"

enum { N_POINTS = 10, N_ROUNDS = 3 };

static struct row rows[N_POINTS * N_ROUNDS];
static char *text;

/* Ten points in three rounds, the second 8 % slower; half of the points are of each
 * model. */
static void make_rows(void)
{
    for (int round = 0; round < N_ROUNDS; round++)
        for (int i = 0; i < N_POINTS; i++) {
            struct row *r = &rows[round * N_POINTS + i];

            *r = point(i % 2 ? "Q4_0" : "Q8_0", i % 2 ? 50 : 90, 1 + i / 2, 0,
                       (5 + i) * (round == 1 ? 0.92 : 1 + 0.001 * (i % 3)));
            snprintf(r->point, sizeof r->point, "p%02d", i);
            r->attempt = round + 1;
        }
}

static enum status say(size_t n, bool one_by_one)
{
    size_t len = 0;
    FILE *f;

    free(text);
    err_clear(&err);
    f = open_memstream(&text, &len);
    assert_non_null(f);
    char nowhere[] = "nowhere";
    const struct result_run run = {.dir = nowhere};
    const struct result_part part = {.run = &run, .rows = rows, .n = n};
    const enum status st = report_sweep(f, &part, one_by_one, false, &err);
    fclose(f);
    return st;
}

static void a_slow_round_is_said(void **state)
{
    (void)state;
    make_rows();
    assert_int_equal(say(N_POINTS * N_ROUNDS, false), ST_OK);
    assert_non_null(strstr(text, "\nthe machine was 8 % slower in round 2 than in the "
                                 "others (median of 10 points)"));
    assert_null(strstr(text, "faster in round"));
    assert_null(strstr(text, "have no figure"));
    assert_non_null(strstr(text, "  launches"));

    /* Models one after the other: what is slow is a round of one of them. Five points
     * are too few to be sure. */
    assert_int_equal(say(N_POINTS * N_ROUNDS, true), ST_OK);
    assert_null(strstr(text, "in round"));
}

static void what_failed_is_counted_last(void **state)
{
    (void)state;
    make_rows();
    rows[0].status = ROW_STATUS_NO_FIT;
    rows[1].status = ROW_STATUS_ERROR;
    rows[2].status = ROW_STATUS_OOM;
    assert_int_equal(say(N_POINTS, false), ST_PARTIAL);
    assert_string_equal(strstr(text, "results: "),
                        "results: nowhere\n"
                        "3 of 10 points have no figure: 2 did not fit, 1 failed\n");
}

static void nothing_measured_is_an_error(void **state)
{
    (void)state;
    make_rows();
    for (int i = 0; i < N_POINTS; i++)
        rows[i].status = ROW_STATUS_NO_FIT;
    assert_int_equal(say(N_POINTS, false), ST_NO_MEMORY);
    assert_non_null(strstr(err.msg, "no point could be measured; p"));
    rows[3].status = ROW_STATUS_ERROR;
    assert_int_equal(say(N_POINTS, false), ST_CHECK);
    assert_int_equal(say(0, false), ST_OK); /* nothing was wanted */
}

static int free_text(void **state)
{
    (void)state;
    free(text);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_round_is_said),
        cmocka_unit_test(what_failed_is_counted_last),
        cmocka_unit_test(nothing_measured_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, free_text);
}
