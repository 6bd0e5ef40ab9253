/* SPDX-License-Identifier: MIT
 *
 * report_limit.c - decode speed against the memory limit
 */
#include "harness/report/report_limit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/result/order.h"

#define MIB (1024.0 * 1024)
#define GIB (1024 * MIB)

static enum status no_memory(struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "no memory for the marks of a chart");
}

static bool has_limit(const struct row *r)
{
    return r->kind == POINT_DECODE && r->mem_limit_bytes > 0 && r->n_threads > 0 &&
           r->ctx >= 0;
}

static bool same_place(const struct row *a, const struct row *b)
{
    return a->n_threads == b->n_threads && a->ctx == b->ctx;
}

/* More threads first, then deeper contexts, so that of several places with as many
 * limits these come first. */
static int by_place(const void *x, const void *y)
{
    const struct row *a = *(const struct row *const *)x;
    const struct row *b = *(const struct row *const *)y;

    ORDER_BY(order_ints(b->n_threads, a->n_threads));
    ORDER_BY(order_ints(b->ctx, a->ctx));
    return order_ints(a->mem_limit_bytes, b->mem_limit_bytes);
}

/* A point of the threads and depth with the most limits into *place; NULL: there is
 * none with two. */
static enum status choose_place(const struct row **place, const struct report_rows *p,
                                struct err *err)
{
    const struct row **v = malloc((p->n + 1) * sizeof *v);
    size_t n_best = 1, n_limits = 0;

    if (!v)
        return no_memory(err);
    memcpy(v, p->v, p->n * sizeof *v);
    qsort(v, p->n, sizeof *v, by_place);
    *place = NULL;
    for (size_t i = 0; i < p->n; i++) {
        if (!i || !same_place(v[i - 1], v[i]))
            n_limits = 1;
        else
            n_limits += v[i - 1]->mem_limit_bytes != v[i]->mem_limit_bytes;
        if (n_limits > n_best) {
            *place = v[i];
            n_best = n_limits;
        }
    }
    free(v);
    return ST_OK;
}

/* The line that is called as r's would be; a new one; -1: the chart is full. */
static int series_of(struct chart *c, const struct report_rows *p, const struct row *r)
{
    char name[REPORT_NAME_MAX];

    report_setting_name(p, r, name, sizeof name);
    for (int i = 0; i < c->n_series; i++)
        if (!strcmp(c->series[i], name))
            return i;
    return chart_add_series(c, p, r);
}

static enum status add_mark(struct chart *c, const struct row *r, int series,
                            double unit, struct err *err)
{
    struct mark *m = chart_mark(c);

    if (!m)
        return no_memory(err);
    m->series = series;
    m->x = (double)r->mem_limit_bytes / unit;
    mark_set_speed(m, r);
    if (r->limiter == LIMITER_PAGING)
        m->other = NAN; /* the disk bounds it */
    return ST_OK;
}

/* Rows as they were asked for: what auto chose is no other line. */
static enum status pick_asked(struct report_rows *p, struct row **rows,
                              const struct report_rows *from, struct err *err)
{
    size_t n = 0;

    *rows = malloc((from->n + 1) * sizeof **rows);
    if (!*rows)
        return no_memory(err);
    for (size_t i = 0; i < from->n; i++) {
        if (!has_limit(from->v[i]))
            continue;
        (*rows)[n] = *from->v[i];
        if ((*rows)[n].weights_asked != FIELD_NO_ENUM)
            (*rows)[n].residency = (*rows)[n].weights_asked;
        n++;
    }
    return report_rows_pick(p, *rows, n, err);
}

static enum status fill(struct chart *c, const struct report_rows *p, struct err *err)
{
    const struct row *place = NULL;
    double unit = MIB; /* where all are below 1 GiB */
    enum status st = choose_place(&place, p, err);

    if (st || !place)
        return st;
    for (size_t i = 0; i < p->n; i++)
        if ((double)p->v[i]->mem_limit_bytes >= GIB)
            unit = GIB;
    if (unit < GIB) {
        c->x_name = "limit_mib";
        c->x_title = "memory limit, MiB";
    }
    for (size_t i = 0; i < p->n && st == ST_OK; i++) {
        const struct row *r = p->v[i];
        const int series = same_place(r, place) ? series_of(c, p, r) : -1;

        if (series >= 0)
            st = add_mark(c, r, series, unit, err);
    }
    snprintf(c->title, sizeof c->title,
             "Decode speed by memory limit, %lld thread%s, context depth %lld",
             (long long)place->n_threads, plural(place->n_threads, "s"),
             (long long)place->ctx);
    return st;
}

enum status report_fill_limit(struct chart *c, const struct report_rows *p,
                              struct err *err)
{
    struct report_rows asked = {.v = NULL};
    struct row *rows = NULL;
    enum status st = pick_asked(&asked, &rows, p, err);

    if (st == ST_OK) {
        report_rows_ignore_limit(&asked);
        st = fill(c, &asked, err);
        report_rows_free(&asked);
    }
    free(rows);
    return st;
}
