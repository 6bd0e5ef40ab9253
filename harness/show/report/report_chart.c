/* SPDX-License-Identifier: MIT
 *
 * report_chart.c - the marks of a chart and its files
 */
#include "harness/show/report/report_chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"
#include "harness/show/report/chart_axes.h"
#include "harness/show/report/chart_labels.h"
#include "harness/rows/roofs.h"

/* Names in a legend are cut beyond this; models' names alone beyond less, as what
 * follows them tells their settings apart. */
#define NAME_CHARACTERS  80
#define MODEL_CHARACTERS 36

struct mark *chart_mark(struct chart *c)
{
    if (c->n == c->cap) {
        const size_t cap = c->cap ? 2 * c->cap : 32;
        struct mark *v = realloc(c->v, cap * sizeof *v);

        if (!v)
            return NULL;
        c->v = v;
        c->cap = cap;
    }
    struct mark *m = &c->v[c->n++];
    memset(m, 0, sizeof *m);
    m->y = m->lo = m->hi = m->other = m->extra = m->limit = NAN;
    return m;
}

int chart_add_series(struct chart *c, const struct report_rows *p, const struct row *r)
{
    if (c->n_series == CHART_MAX_SERIES) {
        c->n_left_out++;
        return -1;
    }
    char *name = c->series[c->n_series], *legend = c->legend[c->n_series];
    char model[REPORT_NAME_MAX], label[REPORT_NAME_MAX];

    report_setting_name(p, r, name, sizeof c->series[0]);
    report_setting_label(p, r, label, sizeof label);
    snprintf(legend, sizeof c->legend[0], "%s", label);
    if (strcmp(name, label) != 0) { /* it begins with the model */
        char whole[REPORT_NAME_MAX];
        const size_t n = strlen(name) - strlen(label) - 1;

        snprintf(whole, sizeof whole, "%.*s", (int)n, name);
        text_shorten(model, sizeof model, whole, MODEL_CHARACTERS);
        legend[0] = '\0';
        text_append(legend, sizeof c->legend[0], "%s %s", model, label);
    }
    return c->n_series++;
}

void chart_place_bars(struct chart *c)
{
    for (size_t i = 0; i < c->n; i++)
        c->v[i].x = c->v[i].series +
                    (c->v[i].group - (c->n_groups - 1) / 2.0) * 0.8 / c->n_groups;
}

void mark_set_speed(struct mark *m, const struct row *r)
{
    const enum row_trust trust = row_trust(r);

    m->other = r->roof_tok_per_s > 0 ? r->roof_tok_per_s : NAN;
    if (trust == ROW_FAILED) {
        m->state = MARK_CROSS;
        snprintf(m->note, sizeof m->note, "%s", row_failure(r));
        return;
    }
    m->state = trust == ROW_GOOD ? MARK_SOLID : MARK_HOLLOW;
    m->y = r->tok_per_s;
    if (r->tok_per_s_lo > 0 && r->tok_per_s_hi >= r->tok_per_s_lo) {
        m->lo = r->tok_per_s_lo;
        m->hi = r->tok_per_s_hi;
    }
}

void mark_set_best_roof(struct mark *m, const struct row *r,
                        const struct report_rows *p)
{
    const double arithmetic = row_arithmetic_roof(r);

    if (r->disk_bytes_per_token > 0 || row_arithmetic_is_roof(r))
        return; /* it may be that of the disk, or it is that of arithmetic */
    m->other = r->roof_gbps > 0 ? r->roof_tok_per_s / r->roof_gbps *
                                      roof_best(r, p->v, p->n, &m->doubtful)
                                : NAN;
    if (m->other > arithmetic) {
        m->other = arithmetic;
        m->doubtful = false;
    }
}

void chart_free(struct chart *c)
{
    free(c->v);
    c->v = NULL;
    c->n = c->cap = 0;
}

/* ---- files -------------------------------------------------------------------- */

static enum status write_marks(const struct chart *c, const char *dir, struct err *err)
{
    struct chart_file file;
    FILE *f = chart_file_create(&file, dir, c->name, "csv", err);

    if (!f)
        return err->code;
    fprintf(f,
            "series,group,%s,%s,lo,hi,%s,limit,state,name,note,label_x,label_y,"
            "panel,doubtful%s%s\n",
            c->x_name, c->y_name, c->other_name, c->extra_name ? "," : "",
            c->extra_name ? c->extra_name : "");
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        fprintf(f, "%d,%d,%.6g", m->series, m->group, m->x);
        chart_file_number(f, m->y);
        chart_file_number(f, isfinite(m->lo) ? m->lo : m->y);
        chart_file_number(f, isfinite(m->hi) ? m->hi : m->y);
        chart_file_number(f, m->other);
        chart_file_number(f, m->limit);
        fprintf(f, ",%d", (int)m->state);
        chart_file_text(f, c->series[m->series]);
        chart_file_text(f, m->note);
        chart_file_number(f, m->label_x);
        chart_file_number(f, m->label_y);
        fprintf(f, ",%d,%d", c->panel[m->series], m->doubtful);
        if (c->extra_name)
            chart_file_number(f, m->extra);
        fputc('\n', f);
    }
    return chart_file_finish(&file, err);
}

static void write_series(FILE *f, const struct chart *c)
{
    char name[REPORT_NAME_MAX];

    fprintf(f, "n_series = %d\narray series[%d]\n", c->n_series, c->n_series);
    for (int i = 0; i < c->n_series; i++) {
        const char *legend = *c->legend[i] ? c->legend[i] : c->series[i];

        fprintf(f, "series[%d] = ", i + 1);
        gnuplot_quote(f, text_shorten(name, sizeof name, legend, NAME_CHARACTERS));
        fputc('\n', f);
    }
}

static void write_groups(FILE *f, const struct chart *c)
{
    fprintf(f, "n_groups = %d\n", c->n_groups);
    if (c->n_groups)
        fprintf(f, "array group[%d]\n", c->n_groups);
    for (int i = 0; i < c->n_groups; i++) {
        fprintf(f, "group[%d] = ", i + 1);
        gnuplot_quote(f, c->group[i]);
        fputc('\n', f);
    }
}

double chart_next_x(const struct chart *c, double x)
{
    double next = INFINITY;

    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].x > x && c->v[i].x < next)
            next = c->v[i].x;
    return next;
}

const char *chart_roof(const struct chart *c)
{
    return c->roof ? c->roof : "bandwidth / bytes";
}

static void write_settings(FILE *f, const struct chart *c, const struct chart_axes *a)
{
    int n_state[3] = {0, 0, 0}, n_limits = 0, n_second = 0, n_extra = 0,
        n_roofs[2] = {0, 0};

    for (size_t i = 0; i < c->n; i++) {
        n_state[c->v[i].state]++;
        n_limits += isfinite(c->v[i].limit) != 0;
        n_second += c->v[i].group == 1;
        n_extra += isfinite(c->v[i].extra) != 0;
        n_roofs[c->v[i].doubtful] += isfinite(c->v[i].other) != 0;
    }
    fprintf(f, "# %s.gp - written by bench; draw it again with: gnuplot %s.gp\n",
            c->name, c->name);
    fprintf(f, "name = '%s'\ndata = '%s.csv'\n", c->name, c->name);
    fputs("title_text = ", f);
    gnuplot_quote(f, c->title);
    fputs("\nsubtitle_text = ", f);
    gnuplot_quote(f, c->subtitle);
    fprintf(f, "\nx_name = '%s'\ny_name = '%s'\nother_name = '%s'\n", c->x_name,
            c->y_name, c->other_name);
    fprintf(f, "y_title = '%s'\n", c->y_title ? c->y_title : "tokens per second");
    fprintf(f, "roof_name = 'roof: %s'\n", chart_roof(c));
    if (c->x_title)
        fprintf(f, "x_title = '%s'\n", c->x_title);
    write_series(f, c);
    write_groups(f, c);
    chart_write_axes(f, c, a);
    fprintf(f,
            "n_hollow = %d\nn_crosses = %d\nn_limits = %d\nn_second_group = %d\n"
            "n_roofs = %d\nn_doubtful_roofs = %d\n",
            n_state[MARK_HOLLOW], n_state[MARK_CROSS], n_limits, n_second, n_roofs[0],
            n_roofs[1]);
    if (c->extra_name)
        fprintf(f, "n_extra = %d\n", n_extra);
    fputc('\n', f);
}

static enum status draw(const struct chart *c, const struct chart_axes *a,
                        const char *dir, struct err *err)
{
    struct chart_file file;
    FILE *f = chart_file_create(&file, dir, c->name, "gp", err);
    char again[256];

    if (!f)
        return err->code;
    if (c->form)
        file.form = c->form;
    write_settings(f, c, a);
    snprintf(again, sizeof again, "bench plot %.200s", dir);
    return chart_file_draw(&file, c->again ? c->again : again, err);
}

enum status chart_draw(struct chart *c, const char *dir, struct err *err)
{
    struct chart_axes axes;
    enum status st;

    chart_choose_panels(c);
    if (!chart_find_axes(c, &axes)) {
        chart_files_remove(dir, c->name);
        return ST_OK;
    }
    if (c->log_x)
        chart_place_labels(c, axes.x_min, axes.x_max, axes.y[0].min, axes.y[0].max,
                           axes.y[0].log);
    st = write_marks(c, dir, err);
    if (st == ST_OK)
        st = draw(c, &axes, dir, err);
    c->is_drawn = st == ST_OK;
    return st;
}
