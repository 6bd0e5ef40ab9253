/* SPDX-License-Identifier: MIT
 *
 * users_charts.c - tok/s against latency, the ladder, and times to the first token
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/chart_files.h"
#include "harness/base/format.h"
#include "harness/base/stats.h"
#include "harness/result/samples.h"
#include "harness/users/users.h"

#define LATENCY "users_latency"
#define LADDER  "users_ladder"
#define TTFT    "users_ttft"

#define NAME_CHARACTERS 30   /* of a server in a legend */
#define TEXT_CHARACTERS 60   /* of a model or CPU in the line below the title */
#define MAX_LINES       18   /* distributions in a picture */
#define MAX_STEPS       400  /* quantiles that a distribution is drawn by */
#define LOG_RATIO       12.0 /* beyond it an axis is logarithmic */

/* ---- words ------------------------------------------------------------------------
 */

/* "yi-1.5-9b · 512 + 128 tokens · AMD EPYC, 2 CPUs", as far as it holds for all. */
static void describe(char *buf, size_t cap, const struct users *u, const char *dir)
{
    static const char dot[] = "  \xc2\xb7  ";
    const struct row *first = u->v[0].first;
    bool one_model = true, same_lengths = true;
    struct report_machine machine;
    char text[200];

    for (size_t i = 1; i < u->n; i++) {
        const struct row *r = u->v[i].first;

        one_model &= !strcmp(r->model, first->model);
        same_lengths &= !strcmp(r->prompt_lengths, first->prompt_lengths) &&
                        !strcmp(r->output_lengths, first->output_lengths);
    }
    buf[0] = '\0';
    if (one_model)
        text_append(buf, cap, "%s%s",
                    text_shorten(text, sizeof text, first->model, TEXT_CHARACTERS),
                    dot);
    if (same_lengths)
        text_append(buf, cap, "prompts %s, answers %s tokens%s", first->prompt_lengths,
                    first->output_lengths, dot);
    report_machine_read(&machine, dir);
    text_append(buf, cap, "%s",
                text_shorten(text, sizeof text, machine.cpu_model, TEXT_CHARACTERS));
    if (machine.n_cpus > 0)
        text_append(buf, cap, ", %d CPU%s", machine.n_cpus,
                    plural(machine.n_cpus, "s"));
    if (u->n_left_out)
        text_append(buf, cap, "%smore servers are not shown", dot);
}

/* ---- two figures of each step ------------------------------------------------------
 */

/* A figure that one of the two parts of a chart shows; NAN: none. */
typedef struct users_figure figure_fn(const struct users_step *s);

static struct users_figure ttft_of(const struct users_step *s)
{
    return s->ttft_p90_s;
}

static struct users_figure tpot_of(const struct users_step *s)
{
    return s->tpot_p90_ms;
}

static struct users_figure all_of(const struct users_step *s)
{
    return s->tok_per_s;
}

static struct users_figure each_of(const struct users_step *s)
{
    const struct users_figure *f = &s->tok_per_s;

    return (struct users_figure){f->v / s->n_users, f->lo / s->n_users,
                                 f->hi / s->n_users};
}

static double speed_of(const struct users_step *s)
{
    return s->tok_per_s.v;
}

static double users_of(const struct users_step *s)
{
    return s->n_users;
}

struct two {
    const struct users *u;
    double (*x)(const struct users_step *s);
    figure_fn *y[2];
    const char *x_title, *y_title[2];
    bool has_limits; /* the SLO's */
};

static void put_figure(FILE *f, struct users_figure y)
{
    chart_file_number(f, y.v);
    chart_file_number(f, isfinite(y.lo) ? y.lo : y.v);
    chart_file_number(f, isfinite(y.hi) ? y.hi : y.v);
}

static void put_steps(FILE *f, const void *what)
{
    const struct two *t = what;

    fputs("series,n_users,x,upper,upper_lo,upper_hi,lower,lower_lo,lower_hi,state,"
          "little,server\n",
          f);
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            const struct users_step *s = &t->u->v[i].step[k];

            fprintf(f, "%zu,%d", i, s->n_users);
            chart_file_number(f, t->x(s));
            put_figure(f, t->y[0](s));
            put_figure(f, t->y[1](s));
            fprintf(f, ",%d,%d", s->is_doubtful, s->doubts_little);
            chart_file_text(f, t->u->v[i].name);
            fputc('\n', f);
        }
}

struct range {
    double min, max;
    bool log;
};

static void widen(struct range *r, double v)
{
    r->min = fmin(r->min, v); /* both pass over a NaN */
    r->max = fmax(r->max, v);
}

/* Room around what is drawn; from 0 where that is not far. */
static struct range with_room(struct range r, bool from_zero)
{
    r.log = !from_zero && r.min > 0 && r.max / r.min > LOG_RATIO;
    if (r.log) {
        r.min /= 1.3;
        r.max *= 1.3;
        return r;
    }
    r.min = from_zero || r.min < 0.6 * r.max ? 0 : r.min - 0.1 * (r.max - r.min);
    r.max += 0.1 * (r.max - r.min);
    if (!(r.max > r.min))
        r.max = r.min + 1;
    return r;
}

static double limit_of(const struct slo *slo, int part)
{
    const double v = part ? slo->tpot_ms : slo->ttft_s;

    return v > 0 ? v : NAN;
}

static struct range y_range(const struct two *t, int part)
{
    struct range r = {NAN, NAN, false};

    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            const struct users_figure y = t->y[part](&t->u->v[i].step[k]);

            widen(&r, y.v);
            if (y.lo > 0 || !t->has_limits) /* of a logarithmic axis */
                widen(&r, y.lo);
            widen(&r, y.hi);
        }
    for (size_t i = 0; t->has_limits && i < t->u->n; i++)
        widen(&r, limit_of(&t->u->v[i].slo, part));
    return with_room(r, !t->has_limits);
}

/* Limits that differ, each once. */
static void put_limits(FILE *f, const struct two *t, int part)
{
    double seen[USERS_MAX_SERIES];
    int n = 0;

    fprintf(f, "limits_%d = '", part + 1);
    for (size_t i = 0; t->has_limits && i < t->u->n; i++) {
        const double v = limit_of(&t->u->v[i].slo, part);
        bool is_new = isfinite(v);

        for (int k = 0; k < n; k++)
            is_new &= seen[k] != v;
        if (!is_new)
            continue;
        seen[n++] = v;
        fprintf(f, "%s%.6g", n > 1 ? " " : "", v);
    }
    fputs("'\n", f);
}

/* Each number of users as a tick. */
static void put_user_ticks(FILE *f, const struct users *u)
{
    bool any = false;

    fputs("x_ticks = '", f);
    for (int n = 1; n <= 1024; n++) {
        bool is_there = false;

        for (size_t i = 0; i < u->n; i++)
            for (size_t k = 0; k < u->v[i].n; k++)
                is_there |= u->v[i].step[k].n_users == n;
        if (is_there)
            fprintf(f, "%s%d", any ? ", " : "", n);
        any |= is_there;
    }
    fputs("'\n", f);
}

static void put_settings(FILE *f, const void *what)
{
    const struct two *t = what;
    const char *names[USERS_MAX_SERIES];
    struct range x = {NAN, NAN, false};
    int n_hollow = 0, n_little = 0;

    for (size_t i = 0; i < t->u->n; i++) {
        names[i] = t->u->v[i].name;
        for (size_t k = 0; k < t->u->v[i].n; k++) {
            widen(&x, t->x(&t->u->v[i].step[k]));
            n_hollow += t->u->v[i].step[k].is_doubtful;
            n_little += t->u->v[i].step[k].doubts_little;
        }
    }
    if (t->has_limits) {
        x = with_room(x, true);
    } else {
        x.log = x.max / x.min > 8;
        x.min = x.log ? x.min / 1.15 : x.min - 0.5;
        x.max = x.log ? x.max * 1.15 : x.max + 0.5;
    }
    chart_file_ranges(f, x.min, x.max, 0, 1);
    chart_file_texts(f, "series", names, (int)t->u->n, NAME_CHARACTERS);
    fprintf(f, "log_x = %d\nhas_limits = %d\nn_hollow = %d\nn_little = %d\nx_title = ",
            x.log, t->has_limits, n_hollow, n_little);
    gnuplot_quote(f, t->x_title);
    fputc('\n', f);
    if (t->has_limits)
        fputs("x_ticks = ''\n", f);
    else
        put_user_ticks(f, t->u);
    for (int part = 0; part < 2; part++) {
        const struct range y = y_range(t, part);

        fprintf(f,
                "y_title_%d = '%s'\ny_min_%d = %.6g\ny_max_%d = %.6g\nlog_y_%d = %d\n",
                part + 1, t->y_title[part], part + 1, y.min, part + 1, y.max, part + 1,
                y.log);
        put_limits(f, t, part);
    }
}

static bool has_figures(const struct two *t)
{
    for (size_t i = 0; i < t->u->n; i++)
        for (size_t k = 0; k < t->u->v[i].n; k++)
            if (isfinite(t->y[0](&t->u->v[i].step[k]).v))
                return true;
    return false;
}

static enum status draw_two(const struct two *t, const char *dir, const char *name,
                            const char *title, const char *subtitle, bool *any,
                            struct err *err)
{
    const struct chart_text text = {dir, name, "users", title, subtitle};
    enum status st;

    if (!has_figures(t)) {
        chart_files_remove(dir, name);
        return ST_OK;
    }
    st = chart_files_make(&text, put_steps, put_settings, t, err);
    *any |= st == ST_OK;
    return st;
}

/* ---- distributions -----------------------------------------------------------------
 */

struct line {
    int series, n_users;
    bool is_doubtful;
    double *ttft_s; /* [n], sorted; malloc'ed */
    size_t n, n_failed;
};

struct lines {
    const struct users *u;
    struct line v[MAX_LINES];
    int n;
};

static enum status add_line(struct lines *lines, const struct samples *requests,
                            int series, const struct users_step *s, struct err *err)
{
    const struct users *u = lines->u;
    struct line *l = &lines->v[lines->n];
    size_t n = 0;

    *l = (struct line){
        .series = series, .n_users = s->n_users, .is_doubtful = s->is_doubtful};
    for (int fill = 0; fill < 2; fill++) {
        for (size_t i = 0; i < u->n_rows; i++) {
            const struct row *r = &u->rows[i];
            const struct launch_samples *own =
                r->n_users == s->n_users && users_is_of(&u->v[series], r) &&
                        (s->is_doubtful || row_trust(r) == ROW_GOOD)
                    ? samples_of(requests, r)
                    : NULL;

            for (size_t k = 0; own && k < own->n; k++) {
                const double v = own->ms[k * REQUEST_CELLS + REQUEST_TTFT_S];

                if (!fill)
                    n++;
                else if (isfinite(v))
                    l->ttft_s[l->n++] = v;
                else
                    l->n_failed++;
            }
        }
        if (!n)
            return ST_OK;
        if (!fill && !(l->ttft_s = malloc(n * sizeof *l->ttft_s)))
            return err_set(err, ST_NO_MEMORY, "no memory for the times of %zu requests",
                           n);
    }
    stats_sort(l->ttft_s, l->n);
    if (l->n)
        lines->n++;
    else
        free(l->ttft_s);
    return ST_OK;
}

static void put_lines(FILE *f, const void *what)
{
    const struct lines *lines = what;

    fputs("line,seconds,percent\n", f);
    for (int i = 0; i < lines->n; i++) {
        const struct line *l = &lines->v[i];
        const size_t n = l->n < MAX_STEPS ? l->n : MAX_STEPS;

        fprintf(f, "%d,%.6g,0\n", i, l->ttft_s[0]);
        for (size_t k = 0; k < n; k++) {
            const size_t at = (k + 1) * l->n / n - 1;

            fprintf(f, "%d,%.6g,%.5g\n", i, l->ttft_s[at],
                    100 * (double)(at + 1) / (double)(l->n + l->n_failed));
        }
    }
}

static void put_line_settings(FILE *f, const void *what)
{
    const struct lines *lines = what;
    char text[MAX_LINES][REPORT_NAME_MAX + 32];
    const char *names[MAX_LINES];
    struct range x = {NAN, NAN, false};
    double limit = NAN;
    bool one_limit = true;

    for (int i = 0; i < lines->n; i++) {
        const struct line *l = &lines->v[i];
        const double own = limit_of(&lines->u->v[l->series].slo, 0);
        char name[REPORT_NAME_MAX];

        widen(&x, l->ttft_s[0]);
        widen(&x, l->ttft_s[l->n - 1]);
        one_limit &= !i || own == limit;
        limit = own;
        text_shorten(name, sizeof name, lines->u->v[l->series].name, NAME_CHARACTERS);
        snprintf(text[i], sizeof text[i], "%s%s%d user%s%s",
                 lines->u->n > 1 ? name : "", lines->u->n > 1 ? ", " : "", l->n_users,
                 plural(l->n_users, "s"), l->is_doubtful ? " (disturbed)" : "");
        names[i] = text[i];
    }
    if (one_limit && limit < 4 * x.max)
        widen(&x, limit);
    else
        limit = NAN;
    x = with_room(x, false);
    chart_file_ranges(f, x.min, x.max, 0, 103);
    chart_file_texts(f, "series", names, lines->n, 2 * NAME_CHARACTERS);
    fprintf(f, "log_x = %d\nlimit = %.6g\narray server[%d]\narray step_at[%d]\n", x.log,
            isfinite(limit) ? limit : 0, lines->n, lines->n);
    for (int i = 0; i < lines->n; i++) {
        int at = 0;

        for (int k = 0; k < i; k++)
            at += lines->v[k].series == lines->v[i].series;
        fprintf(f, "server[%d] = %d\nstep_at[%d] = %d\n", i + 1, lines->v[i].series,
                i + 1, at);
    }
}

static enum status draw_ttft(const struct users *u, const char *dir,
                             const char *subtitle, bool *any, struct err *err)
{
    const struct chart_text text = {
        dir, TTFT, TTFT, "Time to the first token, of each number of users", subtitle};
    struct lines *lines = calloc(1, sizeof *lines);
    struct samples requests = {0};
    enum status st = lines ? requests_read(&requests, dir, err)
                           : err_set(err, ST_NO_MEMORY, "no memory for a chart");

    if (lines)
        lines->u = u;
    for (size_t i = 0; st == ST_OK && i < u->n; i++)
        for (size_t k = 0; k < u->v[i].n && lines->n < MAX_LINES && st == ST_OK; k++)
            st = add_line(lines, &requests, (int)i, &u->v[i].step[k], err);
    if (st == ST_OK && lines->n) {
        st = chart_files_make(&text, put_lines, put_line_settings, lines, err);
        *any |= st == ST_OK;
    } else if (st == ST_OK) {
        chart_files_remove(dir, TTFT);
    }
    for (int i = 0; lines && i < lines->n; i++)
        free(lines->v[i].ttft_s);
    samples_free(&requests);
    free(lines);
    return st;
}

/* ---- all of them -------------------------------------------------------------------
 */

enum status users_charts(const char *dir, const struct row *rows, size_t n_rows,
                         bool *any, struct err *err)
{
    struct users u;
    struct two latency = {&u,
                          speed_of,
                          {ttft_of, tpot_of},
                          "tokens per second, of all users together",
                          {"p90 TTFT, s", "p90 ms per token"},
                          true};
    struct two ladder = {&u,
                         users_of,
                         {all_of, each_of},
                         "users",
                         {"tok/s of all users", "tok/s of each"},
                         false};
    char subtitle[400];
    enum status st = users_find(&u, rows, n_rows, err);

    if (st == ST_OK && u.n) {
        describe(subtitle, sizeof subtitle, &u, dir);
        st = draw_two(&latency, dir, LATENCY,
                      "Throughput against latency; numbers are users", subtitle, any,
                      err);
        if (st == ST_OK)
            st = draw_two(&ladder, dir, LADDER, "Throughput by number of users",
                          subtitle, any, err);
        if (st == ST_OK)
            st = draw_ttft(&u, dir, subtitle, any, err);
    }
    users_free(&u);
    return st;
}
