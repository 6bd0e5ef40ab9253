/* SPDX-License-Identifier: MIT
 *
 * Samples as distributions and as a run, and shares of the roof by threads.
 */
#include "harness/show/report/report_tokens.h"

#include <math.h>

#include "tests/support/test.h"
#include "tests/support/tree_root.h"

/* Decode rows of quantisation q with so many threads, at a depth. */
static struct row make_row(const char *q, int threads, int ctx, int attempt,
                           const char *utc)
{
    struct row r;

    row_init(&r);
    snprintf(r.model, sizeof r.model, "m");
    snprintf(r.quant, sizeof r.quant, "%s", q);
    snprintf(r.point, sizeof r.point, "m:%s/t%d/c%d", q, threads, ctx);
    snprintf(r.utc, sizeof r.utc, "%s", utc);
    snprintf(r.validity, sizeof r.validity, "valid");
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    r.n_threads = threads;
    r.ctx = ctx;
    r.attempt = attempt;
    r.tok_per_s = 10 * threads;
    r.mbu = 0.4 * threads;
    r.load_s = 2;
    return r;
}

static void write_samples(const char *lines)
{
    char path[128];

    snprintf(path, sizeof path, "%s/samples.csv", root);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(SAMPLES_HEADER, f);
    fputs(lines, f);
    fclose(f);
}

/* Two launches of one point; a third is disturbed and does not count. */
static void distribution(void **state)
{
    struct row rows[] = {make_row("Q4_0", 2, 0, 1, "2026-01-01T00:00:00Z"),
                         make_row("Q4_0", 2, 0, 2, "2026-01-01T00:01:00Z"),
                         make_row("Q4_0", 2, 0, 3, "2026-01-01T00:02:00Z"),
                         make_row("Q4_0", 1, 0, 1, "2026-01-01T00:03:00Z"),
                         make_row("Q4_0", 2, 64, 1, "2026-01-01T00:04:00Z"),
                         make_row("Q8_0", 2, 0, 1, "2026-01-01T00:05:00Z")};
    const size_t n = sizeof rows / sizeof *rows;
    struct token_series_list *list = malloc(sizeof *list);
    struct report_rows p;
    struct samples samples;
    struct err err = ERR_INIT;

    (void)state;
    snprintf(rows[2].validity, sizeof rows[2].validity, "disturbed: others 9 %%");
    write_samples("m:Q4_0/t2/c0,1,0,30\nm:Q4_0/t2/c0,1,1,10\n"
                  "m:Q4_0/t2/c0,2,0,20\nm:Q4_0/t2/c0,3,0,999\n"
                  "m:Q4_0/t1/c0,1,0,999\nm:Q4_0/t2/c64,1,0,999\n");
    assert_int_equal(samples_read(&samples, root, &err), ST_OK);
    assert_int_equal(report_rows_pick(&p, rows, n, &err), ST_OK);
    assert_int_equal(token_series_find(list, &p, rows, n, &samples, &err), ST_OK);
    assert_int_equal(list->n, 1); /* Q8_0 has no samples */
    assert_string_equal(list->v[0].name, "Q4_0");
    assert_int_equal(list->v[0].n, 3);
    assert_true(list->v[0].ms[0] == 10 && list->v[0].ms[1] == 20 &&
                list->v[0].ms[2] == 30);
    assert_int_equal(list->v[0].n_threads, 2);
    assert_false(list->v[0].doubtful);
    token_series_free(list);
    report_rows_free(&p);
    samples_free(&samples);
    free(list);
}

/* Launches in the order of time; an hour between two is cut to a minute. */
static void run_of_launches(void **state)
{
    struct row rows[] = {make_row("Q8_0", 1, 0, 1, "2026-01-01T01:00:10Z"),
                         make_row("Q4_0", 1, 0, 1, "2026-01-01T00:00:00Z"),
                         make_row("Q4_0", 1, 0, 2, "2026-01-01T01:00:30Z"),
                         make_row("Q4_0", 1, 0, 3, "yesterday")};
    struct report_rows p;
    struct samples samples;
    struct token_run run;
    struct err err = ERR_INIT;

    (void)state;
    write_samples("m:Q4_0/t1/c0,1,0,1000\nm:Q4_0/t1/c0,1,1,3000\n"
                  "m:Q4_0/t1/c0,2,0,2000\nm:Q8_0/t1/c0,1,0,500\n");
    assert_int_equal(samples_read(&samples, root, &err), ST_OK);
    assert_int_equal(report_rows_pick(&p, rows, 4, &err), ST_OK);
    assert_int_equal(token_run_find(&run, &p, rows, 4, &samples, &err), ST_OK);
    assert_int_equal(run.n, 3);
    assert_int_equal(run.n_settings, 2);
    assert_int_equal(run.n_pauses, 1);
    assert_ptr_equal(run.v[0].row, &rows[1]);
    assert_ptr_equal(run.v[1].row, &rows[0]);
    assert_ptr_equal(run.v[2].row, &rows[2]);
    assert_true(run.v[0].begin_s == 0 && run.v[0].first_s == 2 && run.v[0].end_s == 6);
    assert_true(run.v[1].after_pause);
    assert_true(run.v[1].begin_s == 6 + TOKEN_RUN_PAUSE_S);
    assert_false(run.v[2].after_pause);
    assert_true(run.v[2].begin_s == run.v[1].begin_s + 20);
    assert_true(run.span_s == run.v[2].begin_s + 4);
    assert_true(run.v[0].median_ms == 2000 && run.v[2].median_ms == 2000);
    assert_true(run.v[1].median_ms == 500);
    assert_int_not_equal(run.v[0].setting, run.v[1].setting);
    assert_int_equal(run.v[0].setting, run.v[2].setting);
    token_run_free(&run);
    report_rows_free(&p);
    samples_free(&samples);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distribution),
        cmocka_unit_test(run_of_launches),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
