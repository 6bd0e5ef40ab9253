/* SPDX-License-Identifier: MIT
 *
 * report_speculation.c - speed-up of speculative decoding, by setting and text
 */
#include "harness/show/report/report_chart.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool is_point(const struct row *r)
{
    return r->kind == POINT_SPECULATE && r->spec_text[0];
}

/* Index of the text's bar, a new one for a new text; -1: too many. */
static int group_of(struct chart *c, const struct row *r)
{
    for (int i = 0; i < c->n_groups; i++)
        if (!strcmp(c->group[i], r->spec_text))
            return i;
    if (c->n_groups == CHART_MAX_SERIES)
        return -1;
    snprintf(c->group[c->n_groups], sizeof c->group[0], "%s", r->spec_text);
    return c->n_groups++;
}

/* The fastest row of that setting and text, or a failed one; or NULL. */
static const struct row *best_of(const struct report_rows *p, size_t begin, size_t end,
                                 const char *text)
{
    const struct row *best = NULL;

    for (size_t i = begin; i < end; i++) {
        const struct row *r = p->v[i];

        if (!is_point(r) || strcmp(r->spec_text, text))
            continue;
        if (!best || row_trust(best) == ROW_FAILED ||
            (row_trust(r) > ROW_FAILED && r->tok_per_s > best->tok_per_s))
            best = r;
    }
    return best;
}

static void add_bar(struct chart *c, const struct row *r, int series, int group)
{
    struct mark *m = chart_mark(c);

    mark_set_speed(m, r);
    m->series = series;
    m->group = group;
    m->other = m->lo = m->hi = NAN;
    if (m->state == MARK_CROSS)
        return;
    m->y = r->spec_speedup;
    m->lo = r->spec_speedup_lo;
    m->hi = r->spec_speedup_hi;
    if (isfinite(r->spec_accept))
        snprintf(m->note, sizeof m->note, "%.0f %% accepted", 100 * r->spec_accept);
    else
        snprintf(m->note, sizeof m->note, "no draft");
}

void report_fill_speculation(struct chart *c, const struct report_rows *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (is_point(p->v[i]))
            group_of(c, p->v[i]);
    for (size_t begin = 0, end; begin < p->n; begin = end) {
        int series = -1;

        end = report_setting_end(p, begin);
        for (int k = 0; k < c->n_groups; k++) {
            const struct row *r = best_of(p, begin, end, c->group[k]);

            if (r && series < 0 && (series = chart_add_series(c, p, r)) < 0)
                break;
            if (r)
                add_bar(c, r, series, k);
        }
    }
    snprintf(c->title, sizeof c->title,
             "Speculative decoding (prompt lookup) against plain decoding, by text");
}
