/* SPDX-License-Identifier: MIT
 *
 * report_settings.c - decode speed against the memory limit, the number of sequences,
 *                     and the chunk of a prompt read with them
 */
#include "harness/show/report/report_chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/base/order.h"

#define MIB (1024.0 * 1024)
#define GIB (1024 * MIB)

/* ---- where a chart is drawn ------------------------------------------------------ */

/* A row's value of the setting that is the axis; 0: it has no place in the chart. */
typedef int64_t value_fn(const struct row *r);

static bool has_place(const struct row *r)
{
    return r->kind == POINT_DECODE && r->n_threads > 0 && r->ctx >= 0;
}

static int64_t limit_of(const struct row *r)
{
    return has_place(r) && r->mem_limit_bytes > 0 ? r->mem_limit_bytes : 0;
}

static int64_t sequences_of(const struct row *r)
{
    return !has_place(r) ? 0 : r->n_sequences > 1 ? r->n_sequences : 1;
}

/* One more, as a step without a chunk has a place, too. */
static int64_t chunk_of(const struct row *r)
{
    return !has_place(r) ? 0 : r->n_chunk > 0 ? r->n_chunk + 1 : 1;
}

static bool same_place(const struct row *a, const struct row *b)
{
    return a->n_threads == b->n_threads && a->ctx == b->ctx;
}

struct place {
    const struct row *row;
    int64_t value;
};

/* More threads first, then deeper contexts, so that of several places with as many
 * values these come first. */
static int by_place(const void *x, const void *y)
{
    const struct place *a = x, *b = y;

    ORDER_BY(order_ints(b->row->n_threads, a->row->n_threads));
    ORDER_BY(order_ints(b->row->ctx, a->row->ctx));
    return order_ints(a->value, b->value);
}

/* A point of the threads and depth with the most values; NULL: no point has two. */
static const struct row *choose_place(struct chart *c, const struct report_rows *p,
                                      value_fn *value_of)
{
    const struct row *at = NULL;
    struct place *v = malloc((p->n + 1) * sizeof *v);
    size_t n = 0, n_best = 1, n_values = 0;

    c->is_incomplete |= !v;
    for (size_t i = 0; v && i < p->n; i++)
        if (value_of(p->v[i]) > 0)
            v[n++] = (struct place){p->v[i], value_of(p->v[i])};
    if (n)
        qsort(v, n, sizeof *v, by_place);
    for (size_t i = 0; i < n; i++) {
        if (!i || !same_place(v[i - 1].row, v[i].row))
            n_values = 1;
        else
            n_values += v[i - 1].value != v[i].value;
        if (n_values > n_best) {
            at = v[i].row;
            n_best = n_values;
        }
    }
    free(v);
    return at;
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

/* ---- the memory limit ------------------------------------------------------------ */

static void add_limit(struct chart *c, const struct row *r, int series, double unit)
{
    struct mark *m = chart_mark(c);

    m->series = series;
    m->x = (double)r->mem_limit_bytes / unit;
    mark_set_speed(m, r);
    if (r->limiter == LIMITER_PAGING)
        m->other = NAN; /* the disk bounds it */
}

/* Rows as they were requested: what auto chose is no other line. False: no memory. */
static bool pick_chosen(struct report_rows *p, struct row **rows,
                        const struct report_rows *from)
{
    struct err none = ERR_INIT;
    size_t n = 0;

    *rows = malloc((from->n + 1) * sizeof **rows);
    if (!*rows)
        return false;
    for (size_t i = 0; i < from->n; i++) {
        if (!limit_of(from->v[i]))
            continue;
        (*rows)[n] = *from->v[i];
        if ((*rows)[n].weights_asked != FIELD_NO_ENUM)
            (*rows)[n].residency = (*rows)[n].weights_asked;
        n++;
    }
    return !report_rows_pick(p, *rows, n, &none);
}

static void fill_limit(struct chart *c, const struct report_rows *p)
{
    const struct row *place = choose_place(c, p, limit_of);
    double unit = MIB; /* where all are below 1 GiB */

    if (!place)
        return;
    for (size_t i = 0; i < p->n; i++)
        if ((double)p->v[i]->mem_limit_bytes >= GIB)
            unit = GIB;
    if (unit < GIB) {
        c->x_name = "limit_mib";
        c->x_title = "memory limit, MiB";
    }
    for (size_t i = 0; i < p->n; i++) {
        const struct row *r = p->v[i];
        const int series = same_place(r, place) ? series_of(c, p, r) : -1;

        if (series >= 0)
            add_limit(c, r, series, unit);
    }
    snprintf(c->title, sizeof c->title,
             "Decode speed by memory limit, %lld thread%s, context depth %lld",
             (long long)place->n_threads, plural(place->n_threads, "s"),
             (long long)place->ctx);
}

void report_fill_limit(struct chart *c, const struct report_rows *p)
{
    struct report_rows chosen = {.v = NULL};
    struct row *rows = NULL;

    if (pick_chosen(&chosen, &rows, p)) {
        report_rows_ignore(&chosen, "mem_limit_bytes");
        fill_limit(c, &chosen);
        report_rows_free(&chosen);
    } else {
        c->is_incomplete = true;
    }
    free(rows);
}

/* ---- sequences, and a prompt read with them -------------------------------------- */

/* A row's figure into m; false: it has no place in the chart. */
typedef bool set_fn(struct mark *m, const struct report_rows *p, const struct row *r);

static bool set_all(struct mark *m, const struct report_rows *p, const struct row *r)
{
    mark_set_speed(m, r);
    mark_set_best_roof(m, r, p);
    return true;
}

static bool set_each(struct mark *m, const struct report_rows *p, const struct row *r)
{
    const double n = (double)sequences_of(r);

    set_all(m, p, r);
    m->y /= n;
    m->lo /= n;
    m->hi /= n;
    m->other /= n;
    return true;
}

/* Other programs do not report what theirs takes, and rows of older versions lack it.
 */
static bool set_kv(struct mark *m, const struct report_rows *p, const struct row *r)
{
    const bool known = r->kv_bytes > 0, failed = row_trust(r) == ROW_FAILED;

    (void)p;
    if (known) {
        m->y = (double)r->kv_bytes / MIB;
    } else {
        m->state = MARK_CROSS;
        snprintf(m->note, sizeof m->note, "%s", row_failure(r));
    }
    return known || (failed && !*r->engine);
}

/* The time of a step, which the roof is below. */
static bool set_step(struct mark *m, const struct report_rows *p, const struct row *r)
{
    const double ms = 1e3 * (double)sequences_of(r);
    struct mark speed;

    mark_set_speed(m, r);
    mark_set_best_roof(m, r, p);
    speed = *m;
    m->y = ms / speed.y;
    m->lo = ms / speed.hi;
    m->hi = ms / speed.lo;
    m->other = ms / speed.other;
    return true;
}

/* Tokens of the prompt that is read at the same time. */
static bool set_prompt(struct mark *m, const struct report_rows *p, const struct row *r)
{
    const double times = (double)r->n_chunk / (double)sequences_of(r);

    set_all(m, p, r);
    m->y *= times;
    m->lo *= times;
    m->hi *= times;
    m->other *= times;
    return r->n_chunk > 0;
}

#define BOTH_ROOFS "bandwidth or arithmetic"

/* A chart along a setting of steps. */
struct along {
    const char *title, *column; /* of the setting */
    value_fn *value_of;
    int first; /* x of its least value, 1 */
    set_fn *set;
};

/* A line is drawn through marks that follow each other. */
static int by_series(const void *x, const void *y)
{
    const struct mark *a = x, *b = y;

    ORDER_BY(order_ints(a->series, b->series));
    return order_ints((int64_t)a->x, (int64_t)b->x);
}

static void fill_along(struct chart *c, const struct report_rows *all,
                       const struct along *along)
{
    struct report_rows rows = *all; /* its names are without the setting */
    const struct row *place = choose_place(c, all, along->value_of);

    if (!place)
        return;
    report_rows_ignore(&rows, along->column);
    for (size_t i = 0; i < all->n; i++) {
        const struct row *r = all->v[i];
        const int64_t value = along->value_of(r);
        struct mark *m;

        if (value <= 0 || !same_place(r, place))
            continue;
        m = chart_mark(c);
        /* a line without a mark has no name in the legend */
        m->series = along->set(m, all, r) ? series_of(c, &rows, r) : -1;
        m->x = (double)(value - 1 + along->first);
        if (m->series < 0 && !c->is_incomplete)
            c->n--;
    }
    if (c->n)
        qsort(c->v, c->n, sizeof *c->v, by_series);
    snprintf(c->title, sizeof c->title, "%s, %lld thread%s, context depth %lld",
             along->title, (long long)place->n_threads, plural(place->n_threads, "s"),
             (long long)place->ctx);
}

void report_fill_sequences(struct chart *c, const struct report_rows *p)
{
    static const struct along along = {"Decode speed of all sequences together",
                                       "n_sequences", sequences_of, 1, set_all};

    c->roof = BOTH_ROOFS;
    fill_along(c, p, &along);
}

void report_fill_each(struct chart *c, const struct report_rows *p)
{
    static const struct along along = {"Decode speed of each sequence", "n_sequences",
                                       sequences_of, 1, set_each};

    c->roof = BOTH_ROOFS;
    fill_along(c, p, &along);
}

void report_fill_kv(struct chart *c, const struct report_rows *p)
{
    static const struct along along = {"KV cache", "n_sequences", sequences_of, 1,
                                       set_kv};

    c->y_title = "KV cache, MiB";
    c->unit = "MiB";
    fill_along(c, p, &along);
}

void report_fill_step(struct chart *c, const struct report_rows *p)
{
    static const struct along along = {"Time of a step while a prompt is read",
                                       "n_chunk", chunk_of, 0, set_step};

    c->y_title = "ms per step";
    c->unit = "ms";
    c->roof = BOTH_ROOFS;
    fill_along(c, p, &along);
}

void report_fill_chunk(struct chart *c, const struct report_rows *p)
{
    static const struct along along = {"Prefill speed while decoding", "n_chunk",
                                       chunk_of, 0, set_prompt};

    c->roof = BOTH_ROOFS;
    fill_along(c, p, &along);
}
