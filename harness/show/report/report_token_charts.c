/* SPDX-License-Identifier: MIT
 *
 * report_token_charts.c - charts of samples and of shares of the roof, for gnuplot
 */
#include "harness/show/report/report_token_charts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/chart/chart_files.h"
#include "harness/base/format.h"

/* Names in a legend are cut beyond this. */
#define NAME_CHARACTERS 60

/* A distribution is drawn by so many of its quantiles, a run by so many dots. */
#define MAX_STEPS 400
#define MAX_DOTS  6000

/* Beyond this ratio of times their axis is logarithmic. */
#define LOG_RATIO 12.0

/* ---- files ------------------------------------------------------------------------
 */

static void put_texts(FILE *f, const char *name, const char *const *v, int n)
{
    chart_file_texts(f, name, v, n, NAME_CHARACTERS);
}

static enum status draw(const struct chart_text *to, const char *name,
                        const char *title, chart_put_fn *put_data,
                        chart_put_fn *put_settings, const void *what, bool *any,
                        struct err *err)
{
    const struct chart_text text = {.dir = to->dir,
                                    .name = name,
                                    .form = name,
                                    .title = title,
                                    .subtitle = to->subtitle,
                                    .again = to->again};
    const enum status st = chart_files_make(&text, put_data, put_settings, what, err);

    *any |= st == ST_OK;
    return st;
}

/* ---- shares of the roof -----------------------------------------------------------
 */

static void put_shares(FILE *f, const void *what)
{
    const struct roof_map *map = what;

    fputs("column,row,percent,state,note\n", f);
    for (int s = 0; s < map->n_settings; s++)
        for (int t = 0; t < map->n_threads; t++) {
            const struct row *r = map->cell[s][t];

            if (!r)
                continue;
            const bool has = row_trust(r) != ROW_FAILED && r->mbu > 0;
            fprintf(f, "%d,%d", t, s);
            chart_file_number(f, has ? 100 * r->mbu : NAN);
            fprintf(f, ",%d", !has ? 2 : row_trust(r) != ROW_GOOD);
            chart_file_text(f, has                          ? ""
                               : row_trust(r) == ROW_FAILED ? row_failure(r)
                                                            : "no roof");
            fputc('\n', f);
        }
}

static void put_map(FILE *f, const void *what)
{
    const struct roof_map *map = what;
    const char *rows[CHART_MAX_SERIES], *columns[CHART_MAX_SERIES];
    char text[CHART_MAX_SERIES][32];

    for (int s = 0; s < map->n_settings; s++)
        rows[s] = map->name[s];
    for (int t = 0; t < map->n_threads; t++) {
        snprintf(text[t], sizeof text[t], "%lld thread%s", (long long)map->threads[t],
                 plural(map->threads[t], "s"));
        columns[t] = text[t];
    }
    chart_file_ranges(f, -0.5, map->n_threads - 0.5, map->n_settings - 0.5, -0.5);
    put_texts(f, "rows", rows, map->n_settings);
    put_texts(f, "columns", columns, map->n_threads);
}

static bool has_share(const struct roof_map *map)
{
    for (int s = 0; s < map->n_settings; s++)
        for (int t = 0; t < map->n_threads; t++)
            if (map->cell[s][t] && map->cell[s][t]->mbu > 0)
                return true;
    return false;
}

static enum status draw_shares(const struct chart_text *to, const struct report_rows *p,
                               bool *any, struct err *err)
{
    struct roof_map *map = malloc(sizeof *map);
    enum status st = ST_OK;

    if (!map)
        return err_set(err, ST_NO_MEMORY, "no memory for shares of the roof");
    roof_map_fill(map, p);
    if (has_share(map))
        st = draw(to, ROOF_SHARE,
                  "Share of the roof, decoding at each setting's least context depth",
                  put_shares, put_map, map, any, err);
    else
        chart_files_remove(to->dir, ROOF_SHARE);
    free(map);
    return st;
}

/* ---- distributions ----------------------------------------------------------------
 */

static void put_times(FILE *f, const void *what)
{
    const struct token_series_list *list = what;

    fputs("series,ms,percent\n", f);
    for (int i = 0; i < list->n; i++) {
        const struct token_series *s = &list->v[i];
        const size_t n = s->n < MAX_STEPS ? s->n : MAX_STEPS;

        fprintf(f, "%d,%.6g,0\n", i, s->ms[0]);
        for (size_t k = 0; k < n; k++) {
            const size_t at = (k + 1) * s->n / n - 1;

            fprintf(f, "%d,%.6g,%.5g\n", i, s->ms[at],
                    100 * (double)(at + 1) / (double)s->n);
        }
    }
}

static void put_series(FILE *f, const void *what)
{
    const struct token_series_list *list = what;
    const char *names[CHART_MAX_SERIES];
    char text[CHART_MAX_SERIES][REPORT_NAME_MAX + 48];
    double least = INFINITY, most = 0;

    for (int i = 0; i < list->n; i++) {
        const struct token_series *s = &list->v[i];
        char name[REPORT_NAME_MAX];

        least = fmin(least, s->ms[0]);
        most = fmax(most, s->ms[s->n - 1]);
        snprintf(text[i], sizeof text[i], "%s, %lld thread%s",
                 text_shorten(name, sizeof name, s->name, NAME_CHARACTERS - 12),
                 (long long)s->n_threads, plural(s->n_threads, "s"));
        names[i] = text[i];
    }
    const bool is_log = most / least > LOG_RATIO;
    const double room = 0.08 * (most - least) + 1e-9;
    chart_file_ranges(f, is_log ? least / 1.2 : fmax(0, least - room),
                      is_log ? most * 1.2 : most + room, 0, 103);
    fprintf(f, "log_x = %d\n", is_log);
    put_texts(f, "series", names, list->n);
    fprintf(f, "array doubtful[%d]\n", list->n);
    for (int i = 0; i < list->n; i++)
        fprintf(f, "doubtful[%d] = %d\n", i + 1, list->v[i].doubtful);
}

static enum status draw_times(const struct chart_text *to, const struct report_rows *p,
                              const struct result_part *part,
                              const struct samples *samples, bool *any, struct err *err)
{
    struct token_series_list *list = malloc(sizeof *list);
    enum status st;

    if (!list)
        return err_set(err, ST_NO_MEMORY, "no memory for token times");
    st = token_series_find(list, p, part->rows, part->n, samples, err);
    if (st == ST_OK && list->n)
        st = draw(to, TOKEN_TIMES, "Token times, at each setting's least context depth",
                  put_times, put_series, list, any, err);
    else if (st == ST_OK)
        chart_files_remove(to->dir, TOKEN_TIMES);
    token_series_free(list);
    free(list);
    return st;
}

/* ---- the run ----------------------------------------------------------------------
 */

struct run_chart {
    const struct token_run *run;
    const struct report_rows *p;
    size_t n_samples;
    double most; /* of token times, relative to the median */
};

static void put_launch(FILE *f, const struct token_launch *l, size_t every, size_t *at)
{
    double t = l->first_s;

    fprintf(f, "1,%d,%.4f,%.4f,", l->setting, l->begin_s / 60, l->end_s / 60);
    chart_file_number(f, l->row->steal_pct);
    chart_file_number(f, l->row->others_pct);
    chart_file_number(f, fmax(l->row->major_faults_per_token, 0) +
                             fmax(l->row->refaults_per_token, 0));
    fputc('\n', f);
    for (size_t k = 0; l->own && k < l->own->n; k++) {
        t += l->own->ms[k] / 1000;
        if ((*at)++ % every == 0)
            fprintf(f, "0,%d,%.4f,,%.5g,,,\n", l->setting, t / 60,
                    l->own->ms[k] / l->median_ms);
    }
}

static void put_run(FILE *f, const void *what)
{
    const struct run_chart *c = what;
    size_t at = 0;

    fputs("kind,series,minutes,end,relative,steal,others,faults\n", f);
    for (size_t i = 0; i < c->run->n; i++)
        put_launch(f, &c->run->v[i], c->n_samples / MAX_DOTS + 1, &at);
}

static void put_run_settings(FILE *f, const void *what)
{
    const struct run_chart *c = what;
    char name[CHART_MAX_SERIES][REPORT_NAME_MAX];
    const char *names[CHART_MAX_SERIES];
    double most_taken = 0, most_faults = 0;
    int n = 0;

    for (size_t begin = 0; begin < c->p->n && n < CHART_MAX_SERIES;
         begin = report_setting_end(c->p, begin)) {
        names[n] = report_setting_name(c->p, c->p->v[begin], name[n], sizeof name[n]);
        n++;
    }
    for (size_t i = 0; i < c->run->n; i++) {
        const struct row *r = c->run->v[i].row;

        most_taken = fmax(most_taken, fmax(r->steal_pct, 0) + fmax(r->others_pct, 0));
        most_faults = fmax(most_faults, fmax(r->major_faults_per_token, 0) +
                                            fmax(r->refaults_per_token, 0));
    }
    chart_file_ranges(f, 0, fmax(c->run->span_s / 60, 1e-3), 1 / c->most, c->most);
    fprintf(f, "most_taken = %.6g\nmost_faults = %.6g\n",
            most_taken > 0 ? 1.1 * most_taken : 1,
            most_faults > 0 ? 1.1 * most_faults : 1);
    put_texts(f, "series", names, n);
}

static void measure_run(struct run_chart *c)
{
    double most = 2;

    for (size_t i = 0; i < c->run->n; i++) {
        const struct token_launch *l = &c->run->v[i];

        for (size_t k = 0; l->own && k < l->own->n; k++) {
            const double v = l->own->ms[k] / l->median_ms;

            most = fmax(most, fmax(v, 1 / v) * 1.1);
        }
        c->n_samples += l->own ? l->own->n : 0;
    }
    c->most = most;
}

static enum status draw_run(const struct chart_text *to, const struct report_rows *p,
                            const struct result_part *part,
                            const struct samples *samples, bool *any, struct err *err)
{
    struct token_run run;
    struct run_chart c = {.run = &run, .p = p};
    enum status st = token_run_find(&run, p, part->rows, part->n, samples, err);

    if (st == ST_OK)
        measure_run(&c);
    if (st == ST_OK && c.n_samples)
        st = draw(to, TOKEN_RUN, "The run: token times, and what disturbed them",
                  put_run, put_run_settings, &c, any, err);
    else if (st == ST_OK)
        chart_files_remove(to->dir, TOKEN_RUN);
    token_run_free(&run);
    return st;
}

enum status report_token_charts(const struct chart_text *to,
                                const struct report_rows *p,
                                const struct result_part *part, bool *any,
                                struct err *err)
{
    struct samples samples;
    enum status st = samples_read(&samples, part->run->dir, err);

    if (st == ST_OK)
        st = draw_shares(to, p, any, err);
    if (st == ST_OK)
        st = draw_times(to, p, part, &samples, any, err);
    if (st == ST_OK)
        st = draw_run(to, p, part, &samples, any, err);
    samples_free(&samples);
    return st;
}
