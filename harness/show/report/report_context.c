/* SPDX-License-Identifier: MIT
 *
 * report_context.c - decode speed against context depth, with the roof of each setting
 *
 * A row's own roof is that of its minute. Drawn as it is, a neighbour's use of the
 * memory would look like a property of the model, so each setting has one bandwidth:
 * the best comparable one of the sweep.
 */
#include "harness/show/report/report_chart.h"

#include <stdio.h>
#include <stdlib.h>

#include "harness/base/format.h"
#include "harness/judge/recommend/recommend.h"

/* ---- threads --------------------------------------------------------------------- */

/* What is recommended: for each model, and of one setting by itself. */
struct advice {
    struct row *rows; /* [p->n], copies */
    struct recommend_answers each;
    struct recommend_params params;
    struct recommendation *one;
};

/* False: no memory. */
static bool advice_make(struct advice *a, const struct chart *c,
                        const struct report_rows *p)
{
    struct err none = ERR_INIT;

    *a = (struct advice){.params = {.ctx = -1, .max_threads = c->max_threads}};
    a->rows = malloc((p->n + 1) * sizeof *a->rows);
    a->one = malloc(sizeof *a->one);
    if (!a->rows || !a->one)
        return false;
    for (size_t i = 0; i < p->n; i++)
        a->rows[i] = *p->v[i];
    recommend_each(&a->each, a->rows, p->n, &a->params, &none);
    return none.code != ST_NO_MEMORY;
}

/* Threads of a setting for which nothing can be recommended: those that decode fastest
 * at its least depth; -1: it has no decode point. */
static int64_t fastest_threads(const struct report_rows *p, size_t begin, size_t end)
{
    const struct row *best =
        report_fastest_at(p, begin, end, report_min_depth(p, begin, end));

    return best ? best->n_threads : -1;
}

/* The number of threads for the setting [begin, end). */
static int64_t advised_threads(struct advice *a, const struct report_rows *p,
                               size_t begin, size_t end)
{
    struct err none = ERR_INIT;

    for (size_t i = 0; i < a->each.n; i++)
        if (!a->each.v[i].none.code &&
            report_same_setting(&a->each.v[i].rec.best, p->v[begin]))
            return a->each.v[i].rec.best.n_threads;
    if (!recommend(a->one, a->rows + begin, end - begin, &a->params, &none))
        return a->one->best.n_threads;
    return fastest_threads(p, begin, end);
}

/* ---- marks ----------------------------------------------------------------------- */

static void name_threads(struct chart *c, const int64_t *threads, bool all_alike)
{
    if (all_alike && c->n_series) {
        snprintf(c->title, sizeof c->title,
                 "Decode speed by context depth, %lld thread%s (recommended)",
                 (long long)threads[0], plural(threads[0], "s"));
        return;
    }
    snprintf(c->title, sizeof c->title,
             "Decode speed by context depth, at each setting's recommended threads");
    for (int i = 0; i < c->n_series; i++) {
        const char *s = plural(threads[i], "s");

        text_append(c->series[i], sizeof c->series[i], ", %lld thread%s",
                    (long long)threads[i], s);
        text_append(c->legend[i], sizeof c->legend[i], ", %lld thread%s",
                    (long long)threads[i], s);
    }
}

static void fill(struct chart *c, const struct report_rows *p, struct advice *a)
{
    int64_t threads[CHART_MAX_SERIES];
    bool all_alike = true;

    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        const int64_t n = advised_threads(a, p, begin, end);
        const int series = n < 0 ? -1 : chart_add_series(c, p, p->v[begin]);

        if (series < 0)
            continue;
        threads[series] = n;
        all_alike &= n == threads[0];
        for (size_t i = begin; i < end; i++)
            if (p->v[i]->kind == POINT_DECODE && p->v[i]->n_threads == n) {
                struct mark *m = chart_mark(c);

                m->series = series;
                m->x = (double)p->v[i]->ctx;
                mark_set_speed(m, p->v[i]);
                mark_set_best_roof(m, p->v[i], p);
            }
    }
    name_threads(c, threads, all_alike);
}

void report_fill_context(struct chart *c, const struct report_rows *p)
{
    struct advice a;

    if (advice_make(&a, c, p))
        fill(c, p, &a);
    else
        c->is_incomplete = true;
    recommend_answers_free(&a.each);
    free(a.one);
    free(a.rows);
}
