/* SPDX-License-Identifier: MIT
 *
 * report_tokens.c - distributions and times of samples
 */
#include "harness/show/report/report_tokens.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness/stats/stats.h"
#include "harness/base/order.h"

/* ---- distributions --------------------------------------------------------------- */

/* Appends the samples of the point's launches that are trusted as much as its row. */
static enum status add_samples(struct token_series *to, const struct row *point,
                               const struct row *rows, size_t n_rows,
                               const struct samples *samples, struct err *err)
{
    for (size_t i = 0; i < n_rows; i++) {
        const struct row *r = &rows[i];
        const struct launch_samples *own =
            strcmp(r->point, point->point) ? NULL : samples_of(samples, r);

        if (!own || row_trust(r) != row_trust(point))
            continue;
        double *grown = realloc(to->ms, (to->n + own->n) * sizeof *grown);

        if (!grown)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu samples",
                           to->n + own->n);
        to->ms = grown;
        memcpy(to->ms + to->n, own->ms, own->n * sizeof *grown);
        to->n += own->n;
    }
    return ST_OK;
}

enum status token_series_find(struct token_series_list *list,
                              const struct report_rows *p, const struct row *rows,
                              size_t n_rows, const struct samples *samples,
                              struct err *err)
{
    list->n = 0;
    for (size_t begin = 0, end; begin < p->n && list->n < CHART_MAX_SERIES;
         begin = end) {
        end = report_setting_end(p, begin);
        const int64_t depth = report_min_depth(p, begin, end);
        const struct row *point =
            depth < 0 ? NULL : report_fastest_at(p, begin, end, depth);
        struct token_series *s = &list->v[list->n];

        if (!point || row_trust(point) == ROW_FAILED)
            continue;
        memset(s, 0, sizeof *s);
        list->n++;
        if (add_samples(s, point, rows, n_rows, samples, err))
            return err->code;
        if (!s->n) {
            list->n--;
            continue;
        }
        stats_sort(s->ms, s->n);
        report_setting_name(p, point, s->name, sizeof s->name);
        s->n_threads = point->n_threads;
        s->ctx = point->ctx;
        s->doubtful = row_trust(point) != ROW_GOOD;
    }
    return ST_OK;
}

void token_series_free(struct token_series_list *list)
{
    for (int i = 0; i < list->n; i++)
        free(list->v[i].ms);
    list->n = 0;
}

/* ---- the run --------------------------------------------------------------------- */

/* Seconds of "2026-11-23T12:54:10Z"; -1: it is no time. */
static double seconds_of(const char *utc)
{
    struct tm tm = {0};
    const char *end = strptime(utc, "%Y-%m-%dT%H:%M:%S", &tm);

    return end && *end == 'Z' ? (double)timegm(&tm) : -1;
}

static int by_begin(const void *x, const void *y)
{
    const struct token_launch *a = x, *b = y;

    ORDER_BY((a->begin_s > b->begin_s) - (a->begin_s < b->begin_s));
    return (a->row > b->row) - (a->row < b->row);
}

/* Launches of one point next to each other. */
static int by_point(const void *x, const void *y)
{
    const struct token_launch *a = *(const struct token_launch *const *)x;
    const struct token_launch *b = *(const struct token_launch *const *)y;

    return strcmp(a->row->point, b->row->point);
}

/* A point's name and the number of its setting. */
struct point_setting {
    const char *point;
    int setting;
};

static int by_name(const void *x, const void *y)
{
    const struct point_setting *a = x, *b = y;

    return strcmp(a->point, b->point);
}

/* v[p->n], by name. Returns how many settings there are. */
static int number_settings(struct point_setting *v, const struct report_rows *p)
{
    int setting = 0;

    for (size_t begin = 0, end; begin < p->n; begin = end, setting++) {
        end = report_setting_end(p, begin);
        for (size_t i = begin; i < end; i++)
            v[i] = (struct point_setting){p->v[i]->point, setting};
    }
    qsort(v, p->n, sizeof *v, by_name);
    return setting;
}

static enum status find_medians(struct token_run *run, struct err *err)
{
    struct token_launch **sorted = malloc((run->n + 1) * sizeof *sorted);
    double *all = NULL;
    size_t n_all = 0;

    for (size_t i = 0; i < run->n; i++)
        n_all += run->v[i].own ? run->v[i].own->n : 0;
    all = malloc((n_all + 1) * sizeof *all);
    if (!sorted || !all) {
        free(sorted);
        free(all);
        return err_set(err, ST_NO_MEMORY, "no memory for %zu samples", n_all);
    }
    for (size_t i = 0; i < run->n; i++)
        sorted[i] = &run->v[i];
    qsort(sorted, run->n, sizeof *sorted, by_point);
    for (size_t begin = 0, end; begin < run->n; begin = end) {
        size_t n = 0;

        for (end = begin; end < run->n && !by_point(&sorted[begin], &sorted[end]);
             end++) {
            const struct launch_samples *own = sorted[end]->own;

            if (own)
                memcpy(all + n, own->ms, own->n * sizeof *all);
            n += own ? own->n : 0;
        }
        stats_sort(all, n);
        for (size_t i = begin; i < end; i++)
            sorted[i]->median_ms = n ? stats_quantile_sorted(all, n, 0.5) : NAN;
    }
    free(sorted);
    free(all);
    return ST_OK;
}

/* Times since the first launch, without the pauses. */
static void place_launches(struct token_run *run)
{
    double cut = run->n ? run->v[0].begin_s : 0, last = 0;

    for (size_t i = 0; i < run->n; i++) {
        struct token_launch *l = &run->v[i];
        double ms = 0;

        for (size_t k = 0; l->own && k < l->own->n; k++)
            ms += l->own->ms[k];
        l->begin_s -= cut;
        l->after_pause = i && l->begin_s > last + TOKEN_RUN_PAUSE_S;
        if (l->after_pause) {
            cut += l->begin_s - last - TOKEN_RUN_PAUSE_S;
            l->begin_s = last + TOKEN_RUN_PAUSE_S;
            run->n_pauses++;
        }
        l->first_s = l->begin_s + (l->row->load_s > 0 ? l->row->load_s : 0);
        l->end_s = l->first_s + ms / 1000;
        last = fmax(last, l->end_s);
    }
    run->span_s = last;
}

enum status token_run_find(struct token_run *run, const struct report_rows *p,
                           const struct row *rows, size_t n_rows,
                           const struct samples *samples, struct err *err)
{
    struct point_setting *settings = malloc((p->n + 1) * sizeof *settings);

    memset(run, 0, sizeof *run);
    run->v = calloc(n_rows + 1, sizeof *run->v);
    if (!run->v || !settings) {
        free(settings);
        return err_set(err, ST_NO_MEMORY, "no memory for %zu launches", n_rows);
    }
    run->n_settings = number_settings(settings, p);
    for (size_t i = 0; i < n_rows; i++) {
        const struct point_setting wanted = {.point = rows[i].point};
        const struct point_setting *found =
            bsearch(&wanted, settings, p->n, sizeof *settings, by_name);
        const double begin_s = seconds_of(rows[i].utc);

        if (begin_s >= 0 && found && rows[i].kind != ROW_LOAD) /* requests overlap */
            run->v[run->n++] =
                (struct token_launch){.row = &rows[i],
                                      .setting = found->setting,
                                      .begin_s = begin_s,
                                      .own = samples_of(samples, &rows[i])};
    }
    free(settings);
    qsort(run->v, run->n, sizeof *run->v, by_begin);
    place_launches(run);
    return find_medians(run, err);
}

void token_run_free(struct token_run *run)
{
    free(run->v);
    memset(run, 0, sizeof *run);
}
