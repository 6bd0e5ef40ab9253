/* SPDX-License-Identifier: MIT
 *
 * sweep_due.c - which launches of a point are due
 */
#include "engine/base/strtab.h"
#include "harness/rows/report_rows.h"
#include "harness/measure/sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PAGING 2 /* launches of a point that pages from disk in each */

void sweep_tally_add(struct sweep_tally *t, const struct row *r)
{
    const bool is_measured = r->status == ROW_STATUS_OK ||
                             (r->status == ROW_STATUS_PARTIAL && r->n_samples != 0);

    /* A worker has run, too, where the kernel refused memory at that moment only. */
    const bool is_planned = r->status == ROW_STATUS_NO_FIT && r->mem_peak_bytes <= 0;

    t->is_ended |= is_planned || r->status == ROW_STATUS_OOM ||
                   (is_measured && r->limiter == LIMITER_QUOTA &&
                    strncmp(r->validity, "valid", 5));
    t->n_rows++;
    if (!is_measured)
        return;
    ++*(strncmp(r->validity, "valid", 5) ? &t->n_disturbed : &t->n_good);
    t->n_paging += r->limiter == LIMITER_PAGING;
}

/* A point that pages is slow to measure and repeats itself. */
static int left_paging(const struct sweep_tally *t, const struct sweep_settings *s)
{
    const int wanted = s->n_launches < MAX_PAGING ? s->n_launches : MAX_PAGING;

    return t->n_paging < wanted ? wanted - t->n_paging : 0;
}

int sweep_tally_left(const struct sweep_tally *t, const struct sweep_settings *s)
{
    const int not_replaced =
        t->n_disturbed > s->n_repeats ? t->n_disturbed - s->n_repeats : 0;
    const bool is_wide = t->half_width > s->ci_pct / 100;
    int wanted = s->n_launches;

    if (t->is_ended)
        return 0;
    if (t->n_paging && t->n_paging == t->n_good + t->n_disturbed)
        return left_paging(t, s);
    if (is_wide && t->n_good >= wanted && s->max_launches > wanted)
        wanted = s->max_launches;
    wanted -= t->n_good + not_replaced;
    return wanted < 0 ? 0 : wanted;
}

int sweep_tally_due(const struct sweep_tally *t, const struct sweep_settings *s)
{
    return sweep_tally_left(t, s) ? t->n_rows + 1 : 0;
}

/* ---- all points ------------------------------------------------------------------ */

struct counting {
    struct sweep_tally *tally;
    char (*ids)[96];
    struct strtab points; /* of ids */
};

static enum status begin(struct counting *c, const struct sweep_plan *plan,
                         struct err *err)
{
    c->ids = malloc(plan->n_points * sizeof *c->ids);
    if (!c->ids || strtab_init(&c->points, plan->n_points, err))
        return err_set(err, ST_NO_MEMORY, "no memory to count the rows of %zu points",
                       plan->n_points);
    for (size_t i = 0; i < plan->n_points; i++) {
        point_id(&plan->points[i], c->ids[i], sizeof c->ids[i]);
        strtab_put(&c->points, c->ids[i], (uint32_t)strlen(c->ids[i]), (uint32_t)i);
        c->tally[i] = (struct sweep_tally){0};
    }
    return ST_OK;
}

static struct sweep_tally *tally_of(const struct counting *c, const struct row *r)
{
    const uint32_t i = strtab_find(&c->points, r->point, strlen(r->point));

    return i == STRTAB_NONE ? NULL : &c->tally[i];
}

static enum status measure_widths(const struct counting *c, const struct row *rows,
                                  size_t n_rows, struct err *err)
{
    struct report_rows picked;

    if (report_rows_pick(&picked, rows, n_rows, err))
        return err->code;
    for (size_t i = 0; i < picked.n; i++) {
        struct sweep_tally *t = tally_of(c, picked.v[i]);

        if (t)
            t->half_width = fmax(t->half_width, launches_half_width(picked.v[i]));
    }
    report_rows_free(&picked);
    return ST_OK;
}

enum status sweep_tally_all(struct sweep_tally *tally, const struct sweep_plan *plan,
                            const struct row *rows, size_t n_rows, struct err *err)
{
    struct counting c = {.tally = tally};
    enum status st = begin(&c, plan, err);

    for (size_t i = 0; i < n_rows && st == ST_OK; i++) {
        struct sweep_tally *t = tally_of(&c, &rows[i]);

        if (t)
            sweep_tally_add(t, &rows[i]);
    }
    if (st == ST_OK)
        st = measure_widths(&c, rows, n_rows, err);
    strtab_free(&c.points);
    free(c.ids);
    return st;
}
