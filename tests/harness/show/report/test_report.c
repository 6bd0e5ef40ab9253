/* SPDX-License-Identifier: MIT
 *
 * test_report.c - charts and the closing table from recorded rows
 *
 * tests/data/sweeps/yi-9b-6g is made up to hold every case: a thrashing and an
 * out-of-memory quantisation, a disturbed point, a point measured twice.
 */
#include "tests/support/tree.h"

#include <sys/stat.h>

#include "harness/judge/recommend/recommend.h"
#include "harness/show/report/report_chart.h"
#include "harness/show/report/report.h"

#define SWEEP TEST_DATA "sweeps/yi-9b-6g"

static char *slurp(const char *path)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 1 << 20);

    assert_non_null(text);
    if (!f) {
        free(text);
        return NULL;
    }
    assert_true(fread(text, 1, (1 << 20) - 1, f) > 0);
    fclose(f);
    return text;
}

static void rows_are_picked_once_and_in_order(void **state)
{
    struct row *rows = NULL;
    struct report_rows p;
    struct err err = ERR_INIT;
    size_t n_rows = 0;
    char name[REPORT_NAME_MAX];

    (void)state;
    assert_int_equal(row_csv_read(SWEEP "/sweep.csv", &rows, &n_rows, &err), ST_OK);
    assert_int_equal(n_rows, 25);
    assert_int_equal(report_rows_pick(&p, rows, n_rows, &err), ST_OK);
    assert_int_equal(p.n, 24); /* one point was measured twice */
    for (size_t i = 1; i < p.n; i++)
        assert_true(p.v[i]->file_bytes >= p.v[i - 1]->file_bytes);
    assert_string_equal(report_setting_name(&p, p.v[0], name, sizeof name), "Q4_0");
    assert_int_equal(report_setting_end(&p, 0), 8);

    for (size_t i = 0; i < p.n; i++)
        if (strstr(p.v[i]->point, "Q4_K_M/decode/t2/spread/ctx1024"))
            assert_int_equal(row_trust(p.v[i]), ROW_GOOD); /* the repetition */
    report_rows_free(&p);

    /* what differs between settings becomes part of their names */
    rows[0].placement = PLACEMENT_COMPACT;
    rows[1].mem_limit_bytes = FIELD_NO_INT;
    assert_int_equal(report_rows_pick(&p, rows, n_rows, &err), ST_OK);
    report_setting_name(&p, &rows[0], name, sizeof name);
    assert_string_equal(name, "Q4_0 compact 6 GiB");
    report_setting_name(&p, &rows[1], name, sizeof name);
    assert_string_equal(name, "Q4_0 spread no limit");
    report_rows_free(&p);

    /* a number too, and where it goes unsaid it is another one */
    rows[0].kv_window = 512;
    assert_int_equal(report_rows_pick(&p, rows, n_rows, &err), ST_OK);
    report_setting_name(&p, &rows[0], name, sizeof name);
    assert_string_equal(name, "Q4_0 compact window 512 6 GiB");
    report_setting_name(&p, &rows[1], name, sizeof name);
    assert_string_equal(name, "Q4_0 spread no limit");
    report_rows_free(&p);
    free(rows);
}

/* A file that could not be read has a row without quantisation and KV type: neither is
 * part of any name then. */
static void what_failed_has_its_files_name(void **state)
{
    struct row *rows = NULL, some[3];
    struct report_rows p;
    struct err err = ERR_INIT;
    size_t n_rows = 0;
    char name[REPORT_NAME_MAX];

    (void)state;
    assert_int_equal(row_csv_read(SWEEP "/sweep.csv", &rows, &n_rows, &err), ST_OK);
    some[0] = some[1] = rows[0];
    free(rows);
    some[1].n_threads++;
    row_init(&some[2]);
    some[2].kind = POINT_DECODE;
    some[2].status = ROW_STATUS_ERROR;
    some[2].mem_limit_bytes = some[0].mem_limit_bytes;
    strcpy(some[2].model, "broken");
    assert_int_equal(report_rows_pick(&p, some, 3, &err), ST_OK);
    report_setting_name(&p, &some[2], name, sizeof name);
    assert_string_equal(name, "broken");
    report_setting_name(&p, &some[0], name, sizeof name);
    assert_string_equal(name, "yi-1.5-9b Q4_0");
    report_rows_free(&p);
}

static enum status charts_of(const char *dir, struct err *err)
{
    struct result_set set;
    enum status st = result_set_open(&set, dir, RESULT_LAST, err);

    if (st == ST_OK)
        st = report_charts(dir, NULL, &set.parts[0], err);
    result_set_free(&set);
    return st;
}

/* What must stay resident comes before what was charged; without a limit there is no
 * word of one. */
static void the_chart_of_memory_has_what_must_stay_resident(void **state)
{
    char dir[] = "report-test-XXXXXX", path[128];
    struct err err = ERR_INIT;
    struct stat sb;
    struct row r;
    char *text;

    (void)state;
    row_init(&r);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    strcpy(r.validity, "valid");
    strcpy(r.model, "m");
    strcpy(r.quant, "Q4_0");
    r.n_threads = r.ctx = 1;
    r.tok_per_s = 5;
    r.mem_peak_bytes = (int64_t)1 << 30;
    r.mem_resident_bytes = (int64_t)1 << 29;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/sweep.csv", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    row_csv_header(f);
    row_csv_write(f, &r);
    fclose(f);
    const enum status st = charts_of(dir, &err);
    if (st != ST_UNSUPPORTED)
        assert_int_equal(st, ST_OK);
    snprintf(path, sizeof path, "%s/memory.csv", dir);
    if (!stat(path, &sb)) {
        text = slurp(path);
        assert_non_null(strstr(
            text,
            "\n0,0,0,1,1,1,NaN,NaN,0,Q4_0,,1,0,0,0,0.5,512 MiB (charged 1.00 GiB)\n"));
        free(text);
        snprintf(path, sizeof path, "%s/memory.gp", dir);
        text = slurp(path);
        assert_non_null(strstr(text, "'Memory that must stay resident'"));
        free(text);
    }
    tree_remove(dir);
}

static void the_table_has_a_line_per_point(void **state)
{
    const struct recommend_params params = {.ctx = -1};
    static struct recommendation rec;
    struct row *rows = NULL;
    struct err err = ERR_INIT;
    size_t n_rows = 0, n_text = 0;
    char *text = NULL;
    int n_lines = 0, n_stars = 0;

    (void)state;
    assert_int_equal(row_csv_read(SWEEP "/sweep.csv", &rows, &n_rows, &err), ST_OK);
    assert_int_equal(recommend(&rec, rows, n_rows, &params, &err), ST_OK);
    FILE *f = open_memstream(&text, &n_text);
    report_table(f, rows, n_rows, &(const struct row *){&rec.best}, 1);
    fclose(f);
    for (const char *p = text; *p; p++) {
        n_lines += *p == '\n';
        n_stars += *p == '*';
    }
    /* 24 points, the headings, what a star means, 4 of words, 3 of what disturbed means
     */
    assert_int_equal(n_lines, 33);
    assert_int_equal(n_stars, 2);
    assert_non_null(strstr(text, "\n* recommended below\n"));
    const char *best = strchr(text, '*');
    assert_int_equal(strncmp(best, "* Q4_0", 6), 0);
    assert_non_null(strstr(text, "oom"));
    assert_non_null(strstr(text, "paging"));
    assert_non_null(strstr(text, "disturbed: others 11 %"));
    assert_non_null(strstr(text, "\ndisturbed: other programs"));
    for (char *p = text; *p; p++)
        *p = *p == '\n' ? ' ' : *p;
    assert_non_null(
        strstr(text, "limited by compute: arithmetic; paging: page faults"));
    assert_null(strstr(text, "quota"));
    free(text);

    f = open_memstream(&text, &n_text);
    report_table(f, rows, 0, NULL, 0);
    fclose(f);
    assert_string_equal(text, "");
    free(text);
    free(rows);
}

static void copy_sweep(const char *dir)
{
    char path[128];
    char *text = slurp(SWEEP "/sweep.csv");

    snprintf(path, sizeof path, "%s/sweep.csv", dir);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    free(text);
}

/* PNG only where there is gnuplot. */
static void charts_are_drawn(void **state)
{
    static const char *const names[] = {"decode_threads", "decode_context", "prefill",
                                        "memory"};
    static const char *const endings[] = {"csv", "gp", "svg", "png"};
    const bool has_gnuplot = !system("command -v gnuplot >/dev/null");
    char dir[] = "report-test-XXXXXX", path[128], *text;
    struct err err = ERR_INIT;

    (void)state;
    assert_non_null(mkdtemp(dir));
    copy_sweep(dir);
    assert_int_equal(charts_of(dir, &err), ST_OK);
    snprintf(path, sizeof path, "%s/decode_context.csv", dir);
    text = slurp(path);
    assert_non_null(strstr(text, "series,group,ctx,tok_per_s,lo,hi,roof_tok_per_s,"));
    assert_non_null(strstr(text, ",2,Q6_K,oom")); /* a cross */
    free(text);
    snprintf(path, sizeof path, "%s/decode_context.gp", dir);
    text = slurp(path);
    /* 0.15 and 2.9 */
    assert_non_null(strstr(text, "'tokens per second (slower series)'"));
    assert_non_null(strstr(text, "'no figure'"));
    free(text);
    snprintf(path, sizeof path, "%s/memory.csv", dir);
    text = slurp(path);
    assert_non_null(strstr(text, "position,peak_gib,lo,hi,planned_gib,limit,"));
    assert_non_null(
        strstr(text, ",label_x,label_y,panel,doubtful,resident_gib,label\n"));
    assert_non_null(strstr(text, "pages from disk; oom at some points"));
    free(text);
    snprintf(path, sizeof path, "%s/memory.gp", dir);
    text = slurp(path);
    assert_non_null(strstr(text, "'Memory charged, and its limit'"));
    assert_null(strstr(text, "'must stay resident'"));
    free(text);
    snprintf(path, sizeof path, "%s/memory.svg", dir);
    text = slurp(path);
    assert_non_null(strstr(text, "</svg>"));
    free(text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int k = 0; k < 4; k++) {
            struct stat sb;

            snprintf(path, sizeof path, "%s/%s.%s", dir, names[i], endings[k]);
            if (k < 3 || has_gnuplot) {
                assert_int_equal(stat(path, &sb), 0);
                assert_true(sb.st_size > 60);
            }
            unlink(path);
        }
    snprintf(path, sizeof path, "%s/sweep.csv", dir);
    unlink(path);
    assert_int_equal(rmdir(dir), 0); /* nothing else was left */
}

/* A chart without a figure is none. */
static void empty_charts_are_not_drawn(void **state)
{
    struct chart *c = calloc(1, sizeof *c);

    (void)state;
    assert_non_null(c);
    c->name = "prefill";
    c->x_name = "x";
    c->y_name = c->other_name = "y";
    c->n_series = 1;
    assert_true(!chart_plot(c, false) && !c->has_figure);
    chart_mark(c)->state = MARK_CROSS;
    assert_true(!chart_plot(c, true) && !c->has_figure);
    chart_free(c);
    free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_picked_once_and_in_order),
        cmocka_unit_test(what_failed_has_its_files_name),
        cmocka_unit_test(the_chart_of_memory_has_what_must_stay_resident),
        cmocka_unit_test(the_table_has_a_line_per_point),
        cmocka_unit_test(charts_are_drawn),
        cmocka_unit_test(empty_charts_are_not_drawn),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
