/* SPDX-License-Identifier: MIT
 *
 * report_chart.c - the marks of a chart and its files
 */
#include "harness/show/report/report_chart.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/base/format.h"
#include "harness/rows/roofs.h"

/* Models' names in a legend are cut beyond this: what follows them distinguishes their
 * settings. */
#define MODEL_CHARACTERS 36

struct mark *chart_mark(struct chart *c)
{
    struct mark *v = array_grow(c->v, c->n, &c->cap, sizeof *v), *m = &c->spare;

    c->is_incomplete |= !v;
    if (v) {
        c->v = v;
        m = &v[c->n++];
    }
    memset(m, 0, sizeof *m);
    m->y = m->lo = m->hi = m->other = m->extra = m->limit = NAN;
    return m;
}

int chart_add_series(struct chart *c, const struct report_rows *p, const struct row *r)
{
    if (c->n_series == CHART_MAX_SERIES) {
        c->n_left_out++;
        return -1;
    }
    char *name = c->series[c->n_series], *legend = c->legend[c->n_series];
    char model[REPORT_NAME_MAX], label[REPORT_NAME_MAX];

    report_setting_name(p, r, name, sizeof c->series[0]);
    report_setting_label(p, r, label, sizeof label);
    snprintf(legend, sizeof c->legend[0], "%s", label);
    if (strcmp(name, label) != 0) { /* it begins with the model */
        char whole[REPORT_NAME_MAX];
        const size_t n = strlen(name) - strlen(label) - 1;

        snprintf(whole, sizeof whole, "%.*s", (int)n, name);
        text_shorten(model, sizeof model, whole, MODEL_CHARACTERS);
        legend[0] = '\0';
        text_append(legend, sizeof c->legend[0], "%s %s", model, label);
    }
    return c->n_series++;
}

void mark_set_speed(struct mark *m, const struct row *r)
{
    const enum row_trust trust = row_trust(r);

    m->other = r->roof_tok_per_s > 0 ? r->roof_tok_per_s : NAN;
    if (trust == ROW_FAILED) {
        m->state = MARK_CROSS;
        snprintf(m->note, sizeof m->note, "%s", row_failure(r));
        return;
    }
    m->state = trust == ROW_GOOD ? MARK_SOLID : MARK_HOLLOW;
    m->y = r->tok_per_s;
    if (r->tok_per_s_lo > 0 && r->tok_per_s_hi >= r->tok_per_s_lo) {
        m->lo = r->tok_per_s_lo;
        m->hi = r->tok_per_s_hi;
    }
}

void mark_set_best_roof(struct mark *m, const struct row *r,
                        const struct report_rows *p)
{
    const double arithmetic = row_arithmetic_roof(r);

    if (r->disk_bytes_per_token > 0 || row_arithmetic_is_roof(r))
        return; /* it may be that of the disk, or it is that of arithmetic */
    m->other = r->roof_gbps > 0 ? r->roof_tok_per_s / r->roof_gbps *
                                      roof_best(r, p->v, p->n, &m->doubtful)
                                : NAN;
    if (m->other > arithmetic) {
        m->other = arithmetic;
        m->doubtful = false;
    }
}

void chart_free(struct chart *c)
{
    free(c->v);
    c->v = NULL;
    c->n = c->cap = 0;
}

double chart_next_x(const struct chart *c, double x)
{
    double next = INFINITY;

    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].x > x && c->v[i].x < next)
            next = c->v[i].x;
    return next;
}

const char *chart_roof(const struct chart *c)
{
    return c->roof ? c->roof : "bandwidth / bytes";
}
