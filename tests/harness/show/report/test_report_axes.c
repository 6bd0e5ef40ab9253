/* SPDX-License-Identifier: MIT
 *
 * test_report_axes.c - what charts have on their axes: limits, sequences, chunks,
 * divergence, texts; from rows that are made up
 */
#include "tests/support/tree.h"

#include <math.h>

#include "harness/show/report/report_chart.h"

static struct row limited(const char *quant, int gib, int ctx, double tps,
                          enum weights_residency asked, enum weights_residency chosen)
{
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    strcpy(r.model, "m");
    snprintf(r.quant, sizeof r.quant, "%s", quant);
    snprintf(r.point, sizeof r.point, "m:%s/%s/ctx%d/%dG", quant,
             weights_residency_name(asked), ctx, gib);
    r.file_bytes = !strcmp(quant, "Q6_K") ? 7 : 5;
    r.n_threads = 2;
    r.ctx = ctx;
    r.tok_per_s = tps;
    r.roof_tok_per_s = 2 * tps;
    r.mem_limit_bytes = (int64_t)gib << 30;
    r.residency = (int)chosen;
    r.weights_asked = (int)asked;
    if (chosen == WEIGHTS_MMAP)
        r.limiter = LIMITER_PAGING;
    return r;
}

/* A line is of what was asked for, whatever auto has chosen, and has its limits. */
static void limits_are_an_axis(void **state)
{
    const struct row rows[] = {
        limited("Q6_K", 4, 0, 0.5, WEIGHTS_AUTO, WEIGHTS_STREAM),
        limited("Q6_K", 6, 0, 1, WEIGHTS_AUTO, WEIGHTS_STREAM),
        limited("Q6_K", 8, 0, 5, WEIGHTS_AUTO, WEIGHTS_PACKED),
        limited("Q6_K", 4, 0, 0.1, WEIGHTS_MMAP, WEIGHTS_MMAP),
        limited("Q6_K", 8, 4096, 4, WEIGHTS_AUTO, WEIGHTS_PACKED),
        limited("Q6_K", 6, 4096, 0.8, WEIGHTS_AUTO, WEIGHTS_STREAM),
        limited("Q4_K_M", 4, 0, 2, WEIGHTS_AUTO, WEIGHTS_STREAM),
    };
    const size_t n = sizeof rows / sizeof rows[0];
    struct report_rows p;
    struct chart c = {.name = "decode_limit"};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(report_rows_pick(&p, rows, n, &err), ST_OK);
    report_fill_limit(&c, &p);
    assert_false(c.is_incomplete);
    assert_string_equal(c.title,
                        "Decode speed by memory limit, 2 threads, context depth 0");
    assert_int_equal(c.n_series, 3);
    assert_string_equal(c.series[0], "Q4_K_M auto");
    assert_string_equal(c.series[1], "Q6_K auto");
    assert_string_equal(c.series[2], "Q6_K mmap");
    assert_int_equal(c.n, 5); /* at depth 4096 are fewer limits */
    for (size_t i = 0; i < c.n; i++)
        if (c.v[i].series == 1)
            assert_true(c.v[i].x == 4 || c.v[i].x == 6 || c.v[i].x == 8);
        else if (c.v[i].series == 2)
            assert_true(isnan(c.v[i].other)); /* it pages */
    chart_free(&c);
    report_rows_free(&p);

    /* a single limit is no axis */
    c = (struct chart){.name = "decode_limit"};
    assert_int_equal(report_rows_pick(&p, rows + 3, 1, &err), ST_OK);
    report_fill_limit(&c, &p);
    assert_false(c.is_incomplete);
    assert_int_equal(c.n, 0);
    chart_free(&c);
    report_rows_free(&p);
}

static struct row together(int n, int shared, int ctx, double tps)
{
    struct row r = limited("Q6_K", 8, ctx, tps, WEIGHTS_AUTO, WEIGHTS_PACKED);

    snprintf(r.point, sizeof r.point, "m/s%d/shared%d/ctx%d", n, shared, ctx);
    if (n > 1)
        r.n_sequences = n;
    if (shared)
        r.n_shared = shared;
    r.tok_per_s_lo = tps - 1;
    r.tok_per_s_hi = tps + 1;
    r.roof_gbps = 10;
    r.kv_bytes = (int64_t)(n * ctx - (n - 1) * shared) << 20;
    return r;
}

/* A line for each prefix, along the number of sequences, at the depth with most of
 * them; of all sequences together, of each, and their KV cache. */
static void sequences_are_an_axis(void **state)
{
    const struct row rows[] = {together(1, 0, 512, 10),   together(2, 0, 512, 18),
                               together(8, 0, 512, 40),   together(8, 256, 512, 44),
                               together(2, 256, 512, 19), together(2, 0, 4096, 9),
                               together(1, 0, 4096, 8)};
    static report_fill_fn *const fill[] = {report_fill_sequences, report_fill_each,
                                           report_fill_kv};
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(report_rows_pick(&p, rows, sizeof rows / sizeof *rows, &err),
                     ST_OK);
    for (int k = 0; k < 3; k++) {
        struct chart c = {.name = "decode_sequences"};

        fill[k](&c, &p);
        assert_false(c.is_incomplete);
        assert_non_null(strstr(c.title, ", 2 threads, context depth 512"));
        assert_int_equal(c.n_series, 2);
        assert_null(strstr(c.series[1], "sequences"));
        assert_non_null(strstr(c.series[1], "shared"));
        assert_int_equal(c.n, 5);
        for (size_t i = 0; i < c.n; i++) {
            const struct mark *m = &c.v[i];
            const double each = k == 1 ? m->x : 1;
            const struct row *r = m->x == 1        ? &rows[0]
                                  : m->series == 0 ? &rows[m->x == 2 ? 1 : 2]
                                  : m->x == 2      ? &rows[4]
                                                   : &rows[3];

            /* lines are drawn through marks that follow each other */
            assert_true(i == 0 || c.v[i - 1].series < m->series ||
                        (c.v[i - 1].series == m->series && c.v[i - 1].x < m->x));
            if (k == 2) {
                assert_true(m->y == (double)(r->kv_bytes >> 20) && isnan(m->other));
                continue;
            }
            assert_float_equal(m->y, r->tok_per_s / each, 1e-9);
            assert_float_equal(m->hi, (r->tok_per_s + 1) / each, 1e-9);
            assert_float_equal(m->other, r->roof_tok_per_s / each, 1e-9);
        }
        chart_free(&c);
    }
    report_rows_free(&p);

    /* a single number is no axis */
    assert_int_equal(report_rows_pick(&p, rows + 2, 2, &err), ST_OK);
    for (int k = 0; k < 3; k++) {
        struct chart c = {.name = "decode_sequences"};

        fill[k](&c, &p);
        assert_false(c.is_incomplete);
        assert_int_equal(c.n, 0);
    }
    report_rows_free(&p);
}

/* What failed has a cross, with the reason; the cache of another program is not known,
 * which is no failure. */
static void caches_that_are_not_known(void **state)
{
    struct row rows[] = {together(1, 0, 512, 10), together(2, 0, 512, 18),
                         together(16, 0, 512, NAN), together(1, 0, 512, 9)};
    struct chart c = {.name = "kv_cache"};
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    rows[2].status = ROW_STATUS_NO_FIT;
    rows[2].kv_bytes = rows[3].kv_bytes = FIELD_NO_INT;
    strcpy(rows[3].engine, "llama.cpp");
    strcat(rows[3].point, "/llama.cpp");
    assert_int_equal(report_rows_pick(&p, rows, 4, &err), ST_OK);
    report_fill_kv(&c, &p);
    assert_false(c.is_incomplete);
    assert_int_equal(c.n_series, 1);
    assert_int_equal(c.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(c.v[i].state == MARK_CROSS, c.v[i].x == 16);
    assert_string_equal(c.v[2].note, row_failure(&rows[2]));
    chart_free(&c);
    report_rows_free(&p);
}

/* The roof of a step is memory's at its best, or that of arithmetic where it is lower.
 */
static void steps_have_two_roofs(void **state)
{
    struct row rows[] = {together(1, 0, 512, 10), together(2, 0, 512, 18),
                         together(8, 0, 512, 40)};
    static const double roofs[] = {20, 18 * 12.0 / 5, 60};
    struct chart c = {.name = "decode_sequences"};
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    rows[0].roof_gbps = rows[2].roof_gbps =
        20; /* of 1 and 8 memory gave twice as much */
    rows[1].gops = 5;
    rows[1].roof_gops = 12;
    rows[2].gops = 10;
    rows[2].roof_gops = 15;
    rows[2].roof_tok_per_s = 59.99; /* as stored */
    assert_int_equal(report_rows_pick(&p, rows, 3, &err), ST_OK);
    report_fill_sequences(&c, &p);
    assert_false(c.is_incomplete);
    assert_string_equal(chart_roof(&c), "bandwidth or arithmetic");
    assert_int_equal(c.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_float_equal(c.v[i].other, roofs[i], 0.02);
    chart_free(&c);
    report_rows_free(&p);
}

/* Steps with a chunk beside one without: their time, and the prompt's speed. */
static void chunks_are_an_axis(void **state)
{
    struct row rows[] = {together(2, 0, 512, 20), together(2, 0, 512, 10),
                         together(2, 0, 512, 4)};
    struct chart c = {.name = "step_chunk"};
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 1; i < 3; i++) {
        rows[i].n_chunk = i == 1 ? 32 : 128;
        strcat(rows[i].point, i == 1 ? "/32" : "/128");
    }
    assert_int_equal(report_rows_pick(&p, rows, 3, &err), ST_OK);
    report_fill_step(&c, &p);
    assert_false(c.is_incomplete);
    assert_string_equal(chart_roof(&c), "bandwidth or arithmetic");
    assert_int_equal(c.n_series, 1);
    assert_int_equal(c.n, 3);
    for (size_t i = 0; i < 3; i++) {
        const struct mark *m = &c.v[i];

        assert_true(m->x == (i ? (double)rows[i].n_chunk : 0));
        assert_float_equal(m->y, 2e3 / rows[i].tok_per_s, 1e-9);
        assert_float_equal(m->lo, 2e3 / (rows[i].tok_per_s + 1), 1e-9);
        assert_float_equal(m->other, m->y / 2, 1e-9); /* below it */
    }
    chart_free(&c);
    c = (struct chart){.name = "prefill_chunk"};
    report_fill_chunk(&c, &p);
    assert_false(c.is_incomplete);
    assert_int_equal(c.n, 2);
    assert_float_equal(c.v[0].y, 10 * 32 / 2, 1e-9);
    assert_float_equal(c.v[1].y, 4 * 128 / 2, 1e-9);
    assert_float_equal(c.v[1].other, 2 * c.v[1].y, 1e-9);
    chart_free(&c);
    report_rows_free(&p);
}

/* A point for the chart of speed against divergence. */
static struct row known(const char *quant, int ctx, double tps, double kl)
{
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    strcpy(r.reference, "m-f16");
    snprintf(r.quant, sizeof r.quant, "%s", quant);
    snprintf(r.model, sizeof r.model, "m-%s", quant);
    r.n_threads = 1;
    r.ctx = ctx;
    r.tok_per_s = tps;
    r.kl_mean = kl;
    r.mem_limit_bytes = 100;
    r.mem_peak_bytes = 90;
    return r;
}

static void the_frontier_is_what_nothing_beats(void **state)
{
    struct row rows[] = {known("Q8", 0, 2, 0.001),     known("Q5", 0, 3, 0.01),
                         known("slow", 0, 2.5, 0.02),  known("Q2", 0, 5, 0.2),
                         known("page", 0, 9, 0.0001),  known("other", 0, 1, 0.3),
                         known("unknown", 0, 99, NAN), known("Q5", 1024, 1, 0.01),
                         known("f16", 0, 1, 0),        known("oom", 0, NAN, 0.0005)};
    static const char *const frontier[] = {"f16", "Q8", "Q5", "Q2", "other"};
    struct chart *c = calloc(1, sizeof *c);
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    rows[4].limiter = LIMITER_PAGING;
    strcpy(rows[5].reference, "another");
    rows[9].status = ROW_STATUS_OOM;
    assert_non_null(c);
    c->log_x = true;
    assert_int_equal(report_rows_pick(&p, rows, sizeof rows / sizeof *rows, &err),
                     ST_OK);
    report_fill_pareto(c, &p);
    assert_false(c->is_incomplete);
    assert_int_equal(c->n, 8);
    assert_int_equal(c->n_series, 2);
    assert_non_null(strstr(c->title, "depth 0"));
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        assert_int_equal(isfinite(m->other) != 0, i < 5);
        if (i < 5) { /* in the order of series and divergence */
            size_t k = 0;

            while (k < 5 && strcmp(frontier[k], m->note))
                k++;
            assert_true(k < 5 && isfinite(m->other) && m->other == m->y);
            if (i && c->v[i - 1].series == m->series)
                assert_true(c->v[i - 1].x < m->x && c->v[i - 1].y <= m->y);
        } else if (strstr(m->note, "page")) {
            assert_string_equal(m->note, "page 9.00 tok/s");
            assert_true(m->group == PARETO_TOO_LARGE && m->state == MARK_CROSS);
        } else if (strstr(m->note, "oom")) {
            assert_string_equal(m->note, "oom oom");
            assert_true(m->group == PARETO_FITS && m->state == MARK_CROSS);
        } else {
            assert_string_equal(m->note, "slow");
        }
    }
    report_rows_free(&p);
    chart_free(c);
    free(c);
}

/* Exact sums have an empty cell, and a name all the same. */
static void sums_are_named(void **state)
{
    struct row rows[] = {known("Q8_0", 0, 2, NAN), known("Q8_0", 0, 3, NAN)};
    struct report_rows p;
    struct err err = ERR_INIT;
    char name[REPORT_NAME_MAX];

    (void)state;
    rows[1].prefill_sums = SLM_SUMS_INT8;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(report_rows_pick(&p, rows, 2, &err), ST_OK);
        report_setting_name(&p, &rows[i], name, sizeof name);
        assert_string_equal(name, i ? "Q8_0 sums int8" : "Q8_0 sums exact");
        report_rows_free(&p);
    }
}

/* Files that are named after their quantisation do not say it twice. */
static void files_are_named_once(void **state)
{
    struct row rows[] = {known("Q8_0", 0, 2, NAN), known("Q4_0", 0, 3, NAN)};
    struct report_rows p;
    struct err err = ERR_INIT;
    char name[REPORT_NAME_MAX];

    (void)state;
    assert_int_equal(report_rows_pick(&p, rows, 2, &err), ST_OK);
    assert_string_equal(report_setting_name(&p, &rows[0], name, sizeof name), "Q8_0");
    report_rows_free(&p);
    strcpy(rows[1].model, "other.q4_0"); /* another model: names differ in more */
    assert_int_equal(report_rows_pick(&p, rows, 2, &err), ST_OK);
    assert_string_equal(report_setting_name(&p, &rows[0], name, sizeof name), "m Q8_0");
    report_setting_name(&p, &rows[1], name, sizeof name);
    assert_string_equal(name, "other Q4_0");
    report_rows_free(&p);
    strcpy(rows[1].model, "-Q4_0"); /* nothing would be left */
    assert_string_equal(report_model_name(&rows[1]).text, "-Q4_0");
    strcpy(rows[1].model, "xQ4_0"); /* part of a word */
    assert_string_equal(report_model_name(&rows[1]).text, "xQ4_0");
}

static struct row drafted(const char *quant, const char *text, int threads, double tps,
                          double speedup)
{
    struct row r = known(quant, 300, tps, NAN);

    r.kind = POINT_SPECULATE;
    snprintf(r.spec_text, sizeof r.spec_text, "%s", text);
    snprintf(r.point, sizeof r.point, "%s%s%d", quant, text, threads);
    r.n_threads = threads;
    r.spec_speedup = speedup;
    r.spec_accept = 0.5;
    return r;
}

static void speculation_is_bars_by_text(void **state)
{
    struct row rows[] = {
        drafted("A", "copy", 1, 5, 1.5),   drafted("A", "copy", 2, 9, 2),
        drafted("A", "free", 2, 6, 1),     drafted("B", "copy", 2, 4, 3),
        drafted("B", "free", 2, NAN, NAN), known("C", 0, 7, NAN)};
    struct chart *c = calloc(1, sizeof *c);
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(c);
    rows[4].status = ROW_STATUS_OOM;
    assert_int_equal(report_rows_pick(&p, rows, sizeof rows / sizeof *rows, &err),
                     ST_OK);
    report_fill_speculation(c, &p);
    assert_false(c->is_incomplete);
    assert_int_equal(c->n_series, 2);
    assert_int_equal(c->n_groups, 2);
    assert_int_equal(c->n, 4);
    assert_true(c->v[0].y == 2.0 && c->v[1].y == 1.0 && c->v[2].y == 3.0);
    assert_string_equal(c->v[0].note, "50 % accepted");
    assert_int_equal(c->v[3].state, MARK_CROSS);
    assert_string_equal(c->v[3].note, "oom");
    report_rows_free(&p);
    chart_free(c);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_an_axis),
        cmocka_unit_test(sequences_are_an_axis),
        cmocka_unit_test(caches_that_are_not_known),
        cmocka_unit_test(steps_have_two_roofs),
        cmocka_unit_test(chunks_are_an_axis),
        cmocka_unit_test(the_frontier_is_what_nothing_beats),
        cmocka_unit_test(sums_are_named),
        cmocka_unit_test(files_are_named_once),
        cmocka_unit_test(speculation_is_bars_by_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
