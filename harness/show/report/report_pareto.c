/* SPDX-License-Identifier: MIT
 *
 * report_pareto.c - speed against divergence, with the Pareto frontier
 *
 * A point is a setting whose divergence from a reference is known, at one context
 * depth and its best thread count. Divergences from different references cannot be
 * compared: each reference is a series with a frontier of its own. What does not fit
 * its memory limit is shown on the lower edge and is on no frontier.
 */
#include "harness/show/report/report_chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"

#define REFERENCE_CHARACTERS 30 /* of a name in the legend */

static bool has_divergence(const struct row *r)
{
    return isfinite(r->kl_mean) && r->kl_mean >= 0 && r->reference[0];
}

/* Whether the setting [begin, end) finished at that depth. */
static bool reaches(const struct report_rows *p, size_t begin, size_t end,
                    int64_t depth)
{
    const struct row *r = report_fastest_at(p, begin, end, depth);

    return r && row_trust(r) > ROW_FAILED;
}

/* Whether all settings that finished anywhere finished at that depth. */
static bool all_reach(const struct report_rows *p, int64_t depth)
{
    for (size_t begin = 0, end; begin < p->n; begin = end) {
        bool any = false;

        end = report_setting_end(p, begin);
        for (size_t i = begin; i < end; i++)
            any |= p->v[i]->kind == POINT_DECODE && has_divergence(p->v[i]) &&
                   row_trust(p->v[i]) > ROW_FAILED;
        if (any && !reaches(p, begin, end, depth))
            return false;
    }
    return true;
}

/* The deepest depth that all reach; else the least one. */
static int64_t depth_of_all(const struct report_rows *p)
{
    int64_t deepest = -1, least = -1;

    for (size_t i = 0; i < p->n; i++) {
        const struct row *r = p->v[i];

        if (r->kind != POINT_DECODE || r->ctx < 0 || !has_divergence(r))
            continue;
        if (least < 0 || r->ctx < least)
            least = r->ctx;
        if (r->ctx > deepest && all_reach(p, r->ctx))
            deepest = r->ctx;
    }
    return deepest >= 0 ? deepest : least;
}

static bool fits(const struct row *r)
{
    const int64_t limit = r->mem_limit_bytes;

    if (r->status == ROW_STATUS_OOM || r->status == ROW_STATUS_NO_FIT)
        return false;
    return limit <= 0 ||
           (r->limiter != LIMITER_PAGING && row_needed_bytes(r) <= limit &&
            r->mem_planned_bytes <= limit);
}

/* The series of that reference; -1: the chart is full. */
static int series_of(struct chart *c, const struct row *r)
{
    for (int i = 0; i < c->n_series; i++)
        if (!strcmp(c->series[i], r->reference))
            return i;
    if (c->n_series == CHART_MAX_SERIES)
        return -1;
    snprintf(c->series[c->n_series], sizeof c->series[0], "%s", r->reference);
    text_shorten(c->legend[c->n_series], sizeof c->legend[0], r->reference,
                 REFERENCE_CHARACTERS);
    return c->n_series++;
}

static bool is_rival(const struct mark *a, const struct mark *b)
{
    return a->series == b->series && a->state != MARK_CROSS && isfinite(a->y);
}

/* No other setting of the series is as fast and as close to the reference, and better
 * in one of both. */
static bool on_frontier(const struct chart *c, const struct mark *m)
{
    if (!is_rival(m, m))
        return false;
    for (size_t i = 0; i < c->n; i++) {
        const struct mark *o = &c->v[i];

        if (is_rival(o, m) && o->x <= m->x && o->y >= m->y &&
            (o->x < m->x || o->y > m->y))
            return false;
    }
    return true;
}

/* Frontiers first, each from left to right, so that a line can follow the rows. */
static int compare(const void *x, const void *y)
{
    const struct mark *a = x, *b = y;
    const bool fa = isfinite(a->other), fb = isfinite(b->other);

    if (fa != fb)
        return fb - fa;
    if (a->series != b->series)
        return a->series - b->series;
    return (a->x > b->x) - (a->x < b->x);
}

/* A setting that pages from disk would compress the axis for all others: its mark is
 * below them, with its figure as text. */
static void set_aside(struct mark *m, const struct row *r, const char *label)
{
    m->group = PARETO_TOO_LARGE;
    m->state = MARK_CROSS;
    m->y = m->lo = m->hi = NAN;
    snprintf(m->note, sizeof m->note, "%.24s %.12s tok/s", label,
             report_figure(r->tok_per_s).text);
}

static void add_point(struct chart *c, const struct report_rows *p, const struct row *r)
{
    const int series = series_of(c, r);
    char label[REPORT_NAME_MAX];
    struct mark *m;

    if (series < 0) {
        c->n_left_out++;
        return;
    }
    m = chart_mark(c);
    mark_set_speed(m, r);
    m->series = series;
    m->x = r->kl_mean;
    if (r->mem_limit_bytes > 0)
        m->limit = (double)r->mem_limit_bytes / (1 << 30);
    report_setting_label(p, r, label, sizeof label);
    snprintf(m->note, sizeof m->note, "%.30s", label);
    if (m->state == MARK_CROSS)
        snprintf(m->note, sizeof m->note, "%.30s %s", label, row_status_text(r));
    else if (!fits(r))
        set_aside(m, r, label);
}

void report_fill_pareto(struct chart *c, const struct report_rows *p)
{
    const int64_t depth = depth_of_all(p);

    for (size_t begin = 0, end; begin < p->n; begin = end) {
        end = report_setting_end(p, begin);
        const struct row *r = report_fastest_at(p, begin, end, depth);

        if (r && has_divergence(r))
            add_point(c, p, r);
    }
    for (size_t i = 0; i < c->n; i++)
        c->v[i].other = on_frontier(c, &c->v[i]) ? c->v[i].y : NAN;
    if (c->n > 0) /* v may be NULL else */
        qsort(c->v, c->n, sizeof *c->v, compare);
    snprintf(c->title, sizeof c->title,
             "Decode speed against divergence from the reference, context depth %lld",
             (long long)depth);
}
