/* SPDX-License-Identifier: MIT
 *
 * report_chart.c - ranges, ticks and files of a chart
 *
 * Ranges are computed here and not left to gnuplot, because points without a
 * figure have to be put somewhere: on the lower edge, one above the other.
 */
#include "harness/report/report_chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/chart_files.h"
#include "harness/report/chart_labels.h"

/* Beyond this ratio a linear axis would press the small figures onto zero. */
#define LOG_RATIO 20.0
#define MAX_TICKS 12

struct axes {
    double x_min, x_max, y_min, y_max;
    bool log_y;
    double cross_y, cross_step; /* first cross, and the next above it */
    double zero_x;              /* where x = 0 stands on a logarithmic axis; or NaN */
};

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
    report_setting_name(p, r, c->series[c->n_series], sizeof c->series[0]);
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

void chart_free(struct chart *c)
{
    free(c->v);
    c->v = NULL;
    c->n = c->cap = 0;
}

/* ---- ranges ------------------------------------------------------------------ */

static void include(double *min, double *max, double value)
{
    if (!isfinite(value))
        return;
    *min = fmin(*min, value);
    *max = fmax(*max, value);
}

/* The largest of 1, 2, 5 x 10^n that is not above v; v > 0. */
static double step_below(double v)
{
    const double decade = pow(10, floor(log10(v)));

    return v >= 5 * decade ? 5 * decade : v >= 2 * decade ? 2 * decade : decade;
}

static double step_after(double step)
{
    const double decade = pow(10, floor(log10(step) + 1e-9));

    return step < 1.5 * decade ? 2 * decade
           : step < 3 * decade ? 5 * decade
                               : 10 * decade;
}

/* A logarithmic axis from below the least quantity to above the largest, with room
 * for labels. A 0 stands left of all others. */
static void find_log_x(struct chart *c, struct axes *a)
{
    double least = INFINITY, most = -INFINITY;
    bool any_zero = false;

    for (size_t i = 0; i < c->n; i++) {
        any_zero |= !(c->v[i].x > 0);
        if (c->v[i].x > 0)
            include(&least, &most, c->v[i].x);
    }
    if (!(most > 0))
        least = most = 1;
    a->zero_x = any_zero ? least / fmax(3, pow(most / least, 0.12)) : NAN;
    for (size_t i = 0; i < c->n; i++)
        if (!(c->v[i].x > 0))
            c->v[i].x = a->zero_x;
    least = any_zero ? a->zero_x : least;
    a->x_min = least / pow(most / least * 10, 0.12);
    a->x_max = most * pow(most / least * 10, 0.15);
}

/* False when there is no figure to draw. */
static bool find_axes(struct chart *c, struct axes *a)
{
    double least = INFINITY, most = -INFINITY;

    a->x_min = INFINITY;
    a->x_max = -INFINITY;
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        include(&a->x_min, &a->x_max, m->x);
        include(&least, &most, m->y);
        include(&least, &most, m->lo);
        include(&least, &most, m->hi);
        include(&least, &most, m->other);
        include(&least, &most, m->extra);
        if (!c->log_x) /* there it is no quantity of this axis */
            include(&least, &most, m->limit);
    }
    if (!(most > 0))
        return false;

    a->log_y = !c->bars && least > 0 && most / least > LOG_RATIO;
    a->y_min = a->log_y ? step_below(least / 1.5) : 0;
    a->y_max = a->log_y ? most * 1.25 : most * 1.12;
    a->cross_y = a->log_y ? a->y_min * pow(a->y_max / a->y_min, 0.04) : 0.04 * a->y_max;
    a->cross_step = a->log_y ? pow(a->y_max / a->y_min, 0.06) : 0.06 * a->y_max;

    a->zero_x = NAN;
    if (c->log_x) {
        find_log_x(c, a);
        return true;
    }
    const double pad = c->bars ? 0.6 : fmax(0.08 * (a->x_max - a->x_min), 0.1);
    a->x_min -= pad;
    a->x_max += pad;
    return true;
}

/* Crosses at one x stand one above the other. */
static void place_crosses(struct chart *c, const struct axes *a)
{
    for (size_t i = 0; i < c->n; i++) {
        int below = 0;

        if (c->v[i].state != MARK_CROSS)
            continue;
        for (size_t k = 0; k < i; k++)
            below += c->v[k].state == MARK_CROSS && c->v[k].x == c->v[i].x;
        c->v[i].y = a->log_y ? a->cross_y * pow(a->cross_step, below)
                             : a->cross_y + a->cross_step * below;
    }
}

/* ---- files -------------------------------------------------------------------- */

static enum status write_marks(const struct chart *c, const char *dir, struct err *err)
{
    struct chart_file file;
    FILE *f = chart_file_create(&file, dir, c->name, "csv", err);

    if (!f)
        return err->code;
    fprintf(f,
            "series,group,%s,%s,lo,hi,%s,limit,state,name,note,label_x,label_y%s%s\n",
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
        if (c->extra_name)
            chart_file_number(f, m->extra);
        fputc('\n', f);
    }
    return chart_file_finish(&file, err);
}

/* Powers of ten, and where 0 stands. */
static void write_decades(FILE *f, const struct axes *a)
{
    const char *lead = "";

    if (isfinite(a->zero_x)) {
        fprintf(f, "'0' %.6g", a->zero_x);
        lead = ",";
    }
    for (double t = pow(10, ceil(log10(a->x_min))); t <= a->x_max; t *= 10) {
        if (isfinite(a->zero_x) && t < a->zero_x * 1.8)
            continue;
        fprintf(f, "%s'%.6g' %.6g", lead, t, t);
        lead = ",";
    }
    fputs("\"\n", f);
}

/* Every x that occurs, less those too close to the one before. */
static void write_x_ticks(FILE *f, const struct chart *c, const struct axes *a)
{
    double last = -INFINITY;
    const char *lead = "";

    fputs("x_ticks = \"", f);
    if (c->log_x) {
        write_decades(f, a);
        return;
    }
    for (;;) {
        double next = INFINITY;

        for (size_t i = 0; i < c->n; i++)
            if (c->v[i].x > last && c->v[i].x < next)
                next = c->v[i].x;
        if (!isfinite(next))
            break;
        if (next - last >= 0.055 * (a->x_max - a->x_min)) {
            fprintf(f, "%s%.6g", lead, next);
            lead = ",";
        }
        last = next;
    }
    fputs("\"\n", f);
}

static void write_y_ticks(FILE *f, const struct axes *a)
{
    const char *lead = "";

    fputs("y_ticks = \"", f);
    if (a->log_y)
        for (double t = a->y_min; t <= a->y_max; t = step_after(t)) {
            fprintf(f, "%s%.6g", lead, t);
            lead = ",";
        }
    fputs("\"\n", f);
}

static void write_names(FILE *f, const char *variable, const char *names, size_t stride,
                        int n)
{
    fprintf(f, "array %s[%d]\n", variable, n);
    for (int i = 0; i < n; i++) {
        fprintf(f, "%s[%d] = ", variable, i + 1);
        gnuplot_quote(f, names + (size_t)i * stride);
        fputc('\n', f);
    }
}

static void write_settings(FILE *f, const struct chart *c, const struct axes *a)
{
    int n_state[3] = {0, 0, 0}, n_limits = 0, n_second = 0, n_extra = 0;

    for (size_t i = 0; i < c->n; i++) {
        n_state[c->v[i].state]++;
        n_limits += isfinite(c->v[i].limit) != 0;
        n_second += c->v[i].group == 1;
        n_extra += isfinite(c->v[i].extra) != 0;
    }
    fprintf(f, "# %s.gp - written by bench; draw it again with: gnuplot %s.gp\n",
            c->name, c->name);
    fprintf(f, "name = '%s'\ndata = '%s.csv'\n", c->name, c->name);
    fputs("title_text = ", f);
    gnuplot_quote(f, c->title);
    fputs("\nsubtitle_text = ", f);
    gnuplot_quote(f, c->subtitle);
    fprintf(f, "\nn_series = %d\n", c->n_series);
    write_names(f, "series", c->series[0], sizeof c->series[0], c->n_series);
    fprintf(f, "n_groups = %d\n", c->n_groups);
    if (c->n_groups)
        write_names(f, "group", c->group[0], sizeof c->group[0], c->n_groups);
    fprintf(f, "x_min = %.6g\nx_max = %.6g\ny_min = %.6g\ny_max = %.6g\nlog_y = %d\n",
            a->x_min, a->x_max, a->y_min, a->y_max, a->log_y);
    write_x_ticks(f, c, a);
    write_y_ticks(f, a);
    fprintf(f, "n_hollow = %d\nn_crosses = %d\nn_limits = %d\nn_second_group = %d\n",
            n_state[MARK_HOLLOW], n_state[MARK_CROSS], n_limits, n_second);
    if (c->extra_name)
        fprintf(f, "n_extra = %d\n", n_extra);
    fputc('\n', f);
}

static enum status draw(const struct chart *c, const struct axes *a, const char *dir,
                        struct err *err)
{
    struct chart_file file;
    FILE *f = chart_file_create(&file, dir, c->name, "gp", err);
    char again[256];

    if (!f)
        return err->code;
    write_settings(f, c, a);
    snprintf(again, sizeof again, "bench plot %.200s", dir);
    return chart_file_draw(&file, again, err);
}

enum status chart_draw(struct chart *c, const char *dir, struct err *err)
{
    struct axes axes;
    enum status st;

    if (!find_axes(c, &axes)) {
        chart_files_remove(dir, c->name);
        return ST_OK;
    }
    if (!c->extra_name) /* its marks without a figure have their plan */
        place_crosses(c, &axes);
    if (c->log_x)
        chart_place_labels(c, axes.x_min, axes.x_max, axes.y_min, axes.y_max,
                           axes.log_y);
    st = write_marks(c, dir, err);
    return st ? st : draw(c, &axes, dir, err);
}
