/* SPDX-License-Identifier: MIT
 *
 * test_chart.c - panels, ranges and ticks of charts, their roofs and threads, and that
 * gnuplot draws them at both ends of size without a warning
 */
#include "tests/support/test.h"

#include <math.h>
#include <unistd.h>

#include "harness/base/format.h"
#include "harness/chart/chart_files.h"
#include "harness/chart/layout.h"
#include "harness/show/report/report_chart.h"
#include "harness/rows/report_rows.h"

static struct chart *new_chart(void)
{
    struct chart *c = calloc(1, sizeof *c);

    assert_non_null(c);
    c->name = "chart_test";
    c->x_name = "ctx";
    c->x_title = "depth";
    c->y_name = "tok_per_s";
    c->other_name = "roof_tok_per_s";
    c->may_split = true;
    return c;
}

static void free_chart(struct chart *c)
{
    chart_free(c);
    free(c);
}

/* Another series, with a figure at x = 0 and at x = 1000. */
static void add_series(struct chart *c, double at_0, double at_1000)
{
    const double y[] = {at_0, at_1000};

    snprintf(c->series[c->n_series], sizeof c->series[0], "s%d", c->n_series);
    for (int i = 0; i < 2; i++) {
        struct mark *m = chart_mark(c);

        assert_non_null(m);
        m->series = c->n_series;
        m->x = 1000 * i;
        m->y = y[i];
        m->state = isfinite(y[i]) ? MARK_SOLID : MARK_CROSS;
    }
    c->n_series++;
}

static void find_axes(struct chart *c, struct chart_axes *a)
{
    chart_choose_panels(c);
    assert_true(chart_find_axes(c, a, 1));
}

/* The ticks of an axis of its plot, laid out for a file: "0 500 1000". */
static void assert_ticks(struct chart *c, bool is_x, const char *wanted)
{
    struct plot *p = chart_plot(c, false);
    char text[400] = "", buf[40];

    assert_non_null(p);
    plot_lay_out(p, &plot_look_file);
    const struct plot_axis *axis = is_x ? &p->panel[0].x : &p->panel[0].y;

    for (int i = 0; i < axis->n; i++)
        text_append(text, sizeof text, "%s%s", i ? " " : "",
                    plot_tick_text(axis, &axis->v[i], buf));
    assert_string_equal(text, wanted);
    plot_free(p);
}

static void slow_series_have_a_panel(void **state)
{
    struct chart *c = new_chart();
    struct chart_axes a;

    (void)state;
    add_series(c, 0.12, 0.11);
    add_series(c, 8, 6);
    add_series(c, 7.5, 5);
    add_series(c, NAN, NAN);
    c->v[0].other = 10; /* a roof of another scale */
    c->v[2].other = 9;
    find_axes(c, &a);
    assert_int_equal(c->n_panels, 2);
    assert_int_equal(c->panel[0], 1);
    assert_int_equal(c->panel[1], 0);
    assert_int_equal(c->panel[2], 0);
    assert_int_equal(c->panel[3], 1); /* a cross */
    assert_false(a.y[0].log);
    assert_false(a.y[1].log);
    assert_true(a.y[0].max > 9 && a.y[0].max < 12);
    assert_true(a.y[1].max > 0.12 && a.y[1].max < 0.2);
    assert_true(isnan(c->v[0].other));
    assert_float_equal(c->v[2].other, 9, 0);
    assert_true(c->v[6].y > 0 && c->v[6].y < 0.02); /* the cross, on the lower edge */
    free_chart(c);
}

static void at_most_three_panels(void **state)
{
    static const double speeds[] = {1e5, 9e4, 1000, 10, 0.1};
    struct chart *c = new_chart();
    struct chart_axes a;

    (void)state;
    for (int i = 0; i < 5; i++)
        add_series(c, speeds[i], speeds[i] / 2);
    find_axes(c, &a);
    assert_int_equal(c->n_panels, 3);
    assert_int_equal(c->panel[0], 0);
    assert_int_equal(c->panel[1], 0);
    assert_int_equal(c->panel[4], 2);
    free_chart(c);
}

/* Where series fill the axis, and where the chart may not be split, it is logarithmic.
 */
static void series_that_follow_each_other_share_an_axis(void **state)
{
    struct chart *c = new_chart();
    struct chart_axes a;

    (void)state;
    for (int i = 0; i < 6; i++)
        add_series(c, 100 * pow(0.4, i), 80 * pow(0.4, i));
    find_axes(c, &a);
    assert_int_equal(c->n_panels, 1);
    assert_true(a.y[0].log);
    free_chart(c);

    c = new_chart();
    add_series(c, 14000, 400); /* one series over the whole range */
    find_axes(c, &a);
    assert_int_equal(c->n_panels, 1);
    assert_true(a.y[0].log);
    free_chart(c);

    c = new_chart();
    c->may_split = false;
    add_series(c, 8, 8);
    add_series(c, 0.1, 0.1);
    find_axes(c, &a);
    assert_int_equal(c->n_panels, 1);
    assert_true(a.y[0].log);
    free_chart(c);
}

/* One wide interval is no reason for a logarithmic axis. */
static void a_wide_interval_keeps_the_axis_linear(void **state)
{
    struct chart *c = new_chart();
    struct chart_axes a;

    (void)state;
    add_series(c, 0.3, 0.28);
    c->v[0].lo = 0.05;
    c->v[0].hi = 1.4;
    find_axes(c, &a);
    assert_false(a.y[0].log);
    assert_true(a.y[0].max > 1.4);
    add_series(c, 30, 0.28); /* and the other way round it is seen whole */
    find_axes(c, &a);
    assert_true(a.y[0].log && a.y[0].min < 0.05);
    free_chart(c);
}

static void ticks_are_round_and_apart(void **state)
{
    struct chart *c = new_chart();
    struct chart_axes a;

    (void)state;
    add_series(c, 150000, 120000);
    chart_mark(c)->x = 10; /* too close to 0 for a tick of its own */
    c->v[2].y = 1;
    c->v[2].lo = c->v[2].hi = NAN;
    chart_mark(c)->x = 500;
    c->v[3].y = 140000;
    c->v[2].y = 149000;
    find_axes(c, &a);
    assert_ticks(c, true, "0 500 1000");
    assert_ticks(c, false, "0 20000 40000 60000 80000 100000 120000 140000 160000");
    free_chart(c);
}

/* 0 has no place on a logarithmic axis: it stands beyond a gap. */
static void zero_is_beyond_a_gap(void **state)
{
    static const double x[] = {0, 0.001, 0.2};
    struct chart *c = new_chart();
    struct chart_axes a;

    (void)state;
    c->may_split = false;
    c->log_x = true;
    c->n_series = 1;
    for (int i = 0; i < 3; i++) {
        chart_mark(c)->x = x[i];
        c->v[i].y = 5;
    }
    assert_ticks(c, true, "0 0.001 0.01 0.1");
    c->v[0].x = 0; /* it was moved */
    find_axes(c, &a);
    assert_true(c->v[0].x == a.zero_x && a.x_min < a.zero_x);
    assert_true(a.zero_x * 2 < a.gap_x && a.gap_x * 2 < 0.001);
    free_chart(c);
}

/* ---- the chart of depths --------------------------------------------------------- */

static struct row point(const char *quant, int threads, int ctx, double tps,
                        double roof_gbps)
{
    const double gb = strcmp(quant, "Q8") ? 5 : 10;
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    r.limiter = LIMITER_MEMORY;
    r.file_bytes = (int64_t)(gb * 1e9);
    strcpy(r.validity, "valid");
    strcpy(r.model, "m");
    snprintf(r.quant, sizeof r.quant, "%s", quant);
    snprintf(r.point, sizeof r.point, "%s/%d/%d", quant, threads, ctx);
    snprintf(r.cpus, sizeof r.cpus, "0-%d", threads - 1);
    r.n_threads = threads;
    r.ctx = ctx;
    r.tok_per_s = tps;
    r.tok_per_s_lo = tps * 0.995;
    r.tok_per_s_hi = tps * 1.005;
    r.roof_gbps = roof_gbps;
    r.roof_tok_per_s = roof_gbps / gb;
    return r;
}

static const struct mark *mark_at(const struct chart *c, int series, double x)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].series == series && c->v[i].x == x)
            return &c->v[i];
    fail_msg("no mark of series %d at %g", series, x);
    return NULL;
}

/* Four threads are faster at depth 0, by too little for the recommendation. */
static void the_recommended_threads_are_drawn(void **state)
{
    struct row rows[] = {point("Q4", 2, 0, 8.0, 50), point("Q4", 2, 4096, 7.0, 20),
                         point("Q4", 4, 0, 8.1, 50), point("Q4", 4, 4096, 7.02, 50),
                         point("Q8", 2, 0, 4.0, 50), point("Q8", 2, 4096, 3.0, 50),
                         point("Q8", 4, 0, 4.5, 51), point("Q8", 4, 4096, 4.0, 51),
                         point("Q9", 2, 0, 0.1, 70), point("Q9", 2, 4096, 0.1, 10)};
    struct chart *c = new_chart();
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    strcpy(rows[1].validity, "disturbed: memory gave 20.0 GB/s, at other points 50.0");
    rows[1].tok_per_s = 3.9;
    rows[8].limiter = rows[9].limiter = LIMITER_PAGING;
    assert_int_equal(report_rows_pick(&p, rows, sizeof rows / sizeof *rows, &err),
                     ST_OK);
    report_fill_context(c, &p);
    assert_false(c->is_incomplete);
    assert_int_equal(c->n_series, 3);
    assert_string_equal(c->series[0], "Q4, 2 threads");
    assert_string_equal(c->series[1], "Q9, 2 threads");
    assert_string_equal(c->series[2], "Q8, 4 threads");
    assert_non_null(strstr(c->title, "recommended threads"));
    assert_int_equal(c->n, 6);

    /* the roof of the disturbed row is the machine's, not its minute's */
    assert_float_equal(mark_at(c, 0, 0)->other, 10, 1e-9);
    assert_float_equal(mark_at(c, 0, 4096)->other, 10, 1e-9);
    assert_false(mark_at(c, 0, 4096)->doubtful);
    assert_int_equal(mark_at(c, 0, 4096)->state, MARK_HOLLOW);
    assert_true(isnan(mark_at(c, 1, 0)->other)); /* it is bound by the disk */
    assert_float_equal(mark_at(c, 2, 0)->other, 5.1, 1e-9);
    report_rows_free(&p);
    free_chart(c);
}

static void roofs_of_disturbed_rows_are_doubtful(void **state)
{
    struct row rows[] = {point("Q4", 2, 0, 8.0, 50), point("Q4", 2, 4096, 5.0, 35)};
    struct chart *c = new_chart();
    struct report_rows p;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 2; i++)
        strcpy(rows[i].validity, "disturbed: others 40 %");
    assert_int_equal(report_rows_pick(&p, rows, 2, &err), ST_OK);
    report_fill_context(c, &p);
    assert_false(c->is_incomplete);
    assert_string_equal(c->title,
                        "Decode speed by context depth, 2 threads (recommended)");
    assert_true(c->v[0].doubtful && c->v[1].doubtful);
    assert_float_equal(c->v[0].other, c->v[1].other, 1e-9);
    report_rows_free(&p);
    free_chart(c);
}

/* ---- gnuplot --------------------------------------------------------------------- */

static enum status draw(struct chart *c, const char *dir, struct err *err)
{
    return chart_files_draw(chart_plot(c, false), dir, NULL, err);
}

/* Draws and, where there is gnuplot, draws again: it must have nothing to say. And
 * where there is none we draw it. */
static void draw_without_a_word(struct chart *c)
{
    char dir[] = "chart-test-XXXXXX", command[200];
    struct err err = ERR_INIT;

    assert_non_null(mkdtemp(dir));
    if (draw(c, dir, &err))
        fail_msg("%s", err.msg);
    snprintf(command, sizeof command,
             "cd %s && if command -v gnuplot >/dev/null; then LC_ALL=C.UTF-8 gnuplot "
             "%s.gp >said 2>&1 "
             "&& [ ! -s said ]; fi",
             dir, c->name);
    if (system(command)) {
        snprintf(command, sizeof command, "cat %s/said", dir);
        (void)!system(command);
        fail_msg("gnuplot has something to say about %s of %s", c->name, c->y_name);
    }
    char *const path = strdup(getenv("PATH"));

    assert_non_null(path);
    setenv("PATH", "/nowhere", 1);
    if (draw(c, dir, &err))
        fail_msg("without gnuplot: %s", err.msg);
    setenv("PATH", path, 1);
    free(path);
    snprintf(command, sizeof command, "rm -r %s", dir);
    assert_int_equal(system(command), 0);
}

static struct chart *made(bool bars, bool log_x, int n_series, int n_groups, int n_x)
{
    struct chart *c = new_chart();

    c->bars = bars;
    c->log_x = log_x;
    c->may_split = !bars && !log_x;
    c->n_series = n_series;
    c->n_groups = n_groups;
    for (int k = 0; k < n_groups; k++)
        snprintf(c->group[k], sizeof c->group[0], "%d threads", 1 << k % 8);
    for (int s = 0; s < n_series; s++) {
        snprintf(c->series[s], sizeof c->series[0], "%s%d it's",
                 n_series > 2
                     ? "a-model-with-a-long-name-of-its-file-and-more-than-that-"
                     : "",
                 s);
        for (int i = 0; i < n_x * (n_groups ? n_groups : 1); i++) {
            struct mark *m = chart_mark(c);

            assert_non_null(m);
            m->series = s;
            m->group = n_groups ? i % n_groups : 0;
            m->x = c->bars ? s : c->log_x ? 0.001 * s : 512.0 * i;
            m->y = (s % 3 == 0 ? 150000 : s % 3 == 1 ? 9 : 0.1) / (1 + 0.1 * i);
            m->lo = m->y * 0.9;
            m->hi = m->y * 1.1;
            m->other = m->y * 1.2;
            m->doubtful = s % 2 == 1;
            m->state = n_series == 1 ? MARK_SOLID : (enum mark_state)((s + i) % 3);
            snprintf(m->note, sizeof m->note, "it's, \"%d\"", i);
            if (m->state == MARK_CROSS)
                m->y = m->lo = m->hi = NAN;
        }
    }
    return c;
}

static void every_form_is_drawn_at_every_size(void **state)
{
    static const struct {
        const char *y_name, *other_name, *x_name, *extra_name;
        int groups;
        bool bars, log_x;
    } forms[] = {
        {"tok_per_s", "roof_tok_per_s", "ctx", NULL, 0, false, false},
        {"tok_per_s", "roof_tok_per_s", "position", NULL, 8, true, false},
        {"speedup", "none", "position", NULL, 3, true, false},
        {"peak_gib", "planned_gib", "position", "resident_gib", 1, true, false},
        {"tok_per_s", "frontier", "kl_mean", NULL, 0, false, true}};
    static const int sizes[][2] = {{1, 1}, {3, 3}, {30, 6}}; /* series, figures */

    (void)state;
    for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            struct chart *c =
                made(forms[f].bars, forms[f].log_x, sizes[k][0],
                     forms[f].groups > sizes[k][1] ? sizes[k][1] : forms[f].groups,
                     forms[f].groups ? 1 : sizes[k][1]);

            c->y_name = forms[f].y_name;
            c->other_name = forms[f].other_name;
            c->x_name = forms[f].x_name;
            c->extra_name = forms[f].extra_name;
            draw_without_a_word(c);
            free_chart(c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_series_have_a_panel),
        cmocka_unit_test(at_most_three_panels),
        cmocka_unit_test(series_that_follow_each_other_share_an_axis),
        cmocka_unit_test(a_wide_interval_keeps_the_axis_linear),
        cmocka_unit_test(ticks_are_round_and_apart),
        cmocka_unit_test(zero_is_beyond_a_gap),
        cmocka_unit_test(the_recommended_threads_are_drawn),
        cmocka_unit_test(roofs_of_disturbed_rows_are_doubtful),
        cmocka_unit_test(every_form_is_drawn_at_every_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
