/* SPDX-License-Identifier: MIT
 *
 * report_chart.c - ranges, ticks and files of a chart
 *
 * Ranges are computed here and not left to gnuplot, because points without a
 * figure have to be put somewhere: on the lower edge, one above the other.
 */
#include "harness/report_chart.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "harness/cmd.h"
#include "harness/gnuplot.h"

/* Beyond this ratio a linear axis would press the small figures onto zero. */
#define LOG_RATIO 20.0
#define MAX_TICKS 12

struct axes {
    double x_min, x_max, y_min, y_max;
    bool log_y;
    double cross_y, cross_step; /* first cross, and the next above it */
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
    m->y = m->lo = m->hi = m->other = m->limit = NAN;
    return m;
}

void mark_set_speed(struct mark *m, const struct row *r)
{
    const enum row_trust trust = row_trust(r);

    m->other = r->roof_tok_per_s > 0 ? r->roof_tok_per_s : NAN;
    if (trust == ROW_FAILED) {
        m->state = MARK_CROSS;
        snprintf(m->note, sizeof m->note, "%s", r->status[0] ? r->status : "no figure");
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

/* False when there is no figure to draw. */
static bool find_axes(const struct chart *c, struct axes *a)
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
        include(&least, &most, m->limit);
    }
    if (!(most > 0))
        return false;

    a->log_y = !c->bars && least > 0 && most / least > LOG_RATIO;
    a->y_min = a->log_y ? step_below(least / 1.5) : 0;
    a->y_max = a->log_y ? most * 1.25 : most * 1.12;
    a->cross_y = a->log_y ? a->y_min * pow(a->y_max / a->y_min, 0.04) : 0.04 * a->y_max;
    a->cross_step = a->log_y ? pow(a->y_max / a->y_min, 0.06) : 0.06 * a->y_max;

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

static FILE *create(const char *dir, const char *name, const char *ending,
                    struct err *err)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s.%s", dir, name, ending);
    FILE *f = fopen(path, "we");
    if (!f)
        err_set_errno(err, ST_IO, "%s cannot be written", path);
    return f;
}

static enum status finish(FILE *f, const char *dir, const char *name, struct err *err)
{
    const int failed = ferror(f);

    if (fclose(f) || failed)
        return err_set_errno(err, ST_IO, "the files of %s cannot be written to %s",
                             name, dir);
    return ST_OK;
}

static void write_number(FILE *f, double v)
{
    fputc(',', f);
    if (isfinite(v))
        fprintf(f, "%.6g", v);
    else
        fputs("NaN", f);
}

/* gnuplot cuts a text at a comma even within quotes, and knows no quoted quotes. */
static void write_text(FILE *f, const char *s)
{
    fputc(',', f);
    for (; *s; s++)
        fputc((unsigned char)*s < ' ' ? ' '
              : *s == '"'             ? '\''
              : *s == ','             ? ';'
                                      : *s,
              f);
}

static enum status write_marks(const struct chart *c, const char *dir, struct err *err)
{
    FILE *f = create(dir, c->name, "csv", err);

    if (!f)
        return err->code;
    fprintf(f, "series,group,%s,%s,lo,hi,%s,limit,state,name,note\n", c->x_name,
            c->y_name, c->other_name);
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *m = &c->v[i];

        fprintf(f, "%d,%d,%.6g", m->series, m->group, m->x);
        write_number(f, m->y);
        write_number(f, isfinite(m->lo) ? m->lo : m->y);
        write_number(f, isfinite(m->hi) ? m->hi : m->y);
        write_number(f, m->other);
        write_number(f, m->limit);
        fprintf(f, ",%d", (int)m->state);
        write_text(f, c->series[m->series]);
        write_text(f, m->note);
        fputc('\n', f);
    }
    return finish(f, dir, c->name, err);
}

/* Every x that occurs, less those too close to the one before. */
static void write_x_ticks(FILE *f, const struct chart *c, const struct axes *a)
{
    double last = -INFINITY;
    const char *lead = "";

    fputs("x_ticks = \"", f);
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
    int n_state[3] = {0, 0, 0}, n_limits = 0;

    for (size_t i = 0; i < c->n; i++) {
        n_state[c->v[i].state]++;
        n_limits += isfinite(c->v[i].limit) != 0;
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
    fprintf(f, "n_hollow = %d\nn_crosses = %d\nn_limits = %d\n\n", n_state[MARK_HOLLOW],
            n_state[MARK_CROSS], n_limits);
}

/* The templates: $SLMBENCH_PLOTS, the source tree, or beside the executable. */
static FILE *open_template(const char *name, struct err *err)
{
    const char *given = getenv("SLMBENCH_PLOTS"), *self = self_path();
    const char *slash = strrchr(self, '/');
    char path[3][4096];

    snprintf(path[0], sizeof path[0], "%s/%s.gp",
             given ? given : SLM_SOURCE_DIR "/plots", name);
    snprintf(path[1], sizeof path[1], "%s/plots/%s.gp", SLM_SOURCE_DIR, name);
    snprintf(path[2], sizeof path[2], "%.*s/../share/slmbench/plots/%s.gp",
             slash ? (int)(slash - self) : 0, self, name);
    for (int i = given ? 0 : 1; i < (given ? 1 : 3); i++) {
        FILE *f = fopen(path[i], "re");

        if (f)
            return f;
    }
    err_set(err, ST_UNSUPPORTED,
            "the chart template %s.gp was found neither in %.150s nor in %.150s; set "
            "SLMBENCH_PLOTS to the plots directory of slmbench",
            name, given ? path[0] : path[1], path[2]);
    return NULL;
}

static enum status append_template(FILE *to, const char *name, struct err *err)
{
    FILE *from = open_template(name, err);
    char buf[4096];
    size_t n;

    if (!from)
        return err->code;
    while ((n = fread(buf, 1, sizeof buf, from)) > 0)
        fwrite(buf, 1, n, to);
    fclose(from);
    return ST_OK;
}

static enum status write_script(const struct chart *c, const struct axes *a,
                                const char *dir, struct err *err)
{
    FILE *f = create(dir, c->name, "gp", err);
    enum status st;

    if (!f)
        return err->code;
    write_settings(f, c, a);
    st = append_template(f, "style", err);
    if (st == ST_OK)
        st = append_template(f, c->name, err);
    const enum status closed = finish(f, dir, c->name, err);
    return st ? st : closed;
}

static void remove_files(const char *dir, const char *name)
{
    static const char *const endings[] = {"csv", "gp", "svg", "png"};

    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char path[4096];

        snprintf(path, sizeof path, "%s/%s.%s", dir, name, endings[i]);
        unlink(path);
    }
}

enum status chart_draw(struct chart *c, const char *dir, struct err *err)
{
    char script[64];
    struct axes axes;
    enum status st;

    if (!find_axes(c, &axes)) {
        remove_files(dir, c->name);
        return ST_OK;
    }
    place_crosses(c, &axes);
    st = write_marks(c, dir, err);
    if (st == ST_OK)
        st = write_script(c, &axes, dir, err);
    snprintf(script, sizeof script, "%s.gp", c->name);
    return st ? st : gnuplot_run(dir, script, err);
}
