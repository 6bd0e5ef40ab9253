/* SPDX-License-Identifier: MIT
 *
 * history_point.c - a point from the columns of a stored row
 */
#include "harness/history/history_point.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SAMPLES  1000
#define MIN_BUDGET_S 0.01
#define MAX_BUDGET_S 600

static bool has_setting(const struct point *p, const struct setting *s)
{
    return !s->kinds || s->kinds >> p->kind & 1;
}

/* A column into the setting whose value it is. An empty cell leaves the default of a
 * setting that goes unsaid; others must be there. */
static enum status set_setting(struct point *p, const struct row *r,
                               const struct field *f, struct err *err)
{
    const struct setting *s = setting_row(f->setting);
    char text[ROW_CELL_MAX], what[80];
    size_t size;
    void *field;

    row_cell(r, f, text, sizeof text);
    if (!has_setting(p, s) || (!*text && s->said == SETTING_SAID_IF_SET))
        return ST_OK;
    snprintf(what, sizeof what, "a stored row's %s is %.20s", f->name,
             *text ? text : "empty");
    field = point_field(p, f->setting, &size);
    return setting_parse(f->setting, text, what, field, size, err)
               ? err->code = ST_INPUT
               : ST_OK;
}

static enum status set_settings(struct point *p, const struct row *r,
                                const struct topology *topo, struct err *err)
{
    size_t n;
    const struct field *f = row_fields(&n);
    enum status st = ST_OK;

    p->setup.explicit_cpus = r->placement == ROW_PLACEMENT_LIST;
    for (size_t i = 0; i < n && st == ST_OK; i++)
        if (f[i].is_set &&
            !(f[i].setting == SETTING_placement && p->setup.explicit_cpus))
            st = set_setting(p, r, &f[i], err);
    return st || !p->setup.explicit_cpus
               ? st
               : placement_parse_cpus(r->cpus, topo, &p->setup.n_threads,
                                      p->setup.n_threads_prefill, p->setup.cpus, err);
}

/* Rows of versions without n_wanted, n_batch and budget_s: what of it the command says
 * that reproduces the point, and as many samples as there were. */
static void fill_older(struct row *r)
{
    const char *batch = strstr(r->command, " --batch ");
    const char *budget = strstr(r->command, " --budget ");

    if (r->n_wanted == FIELD_NO_INT)
        r->n_wanted = r->n_samples;
    if (r->n_batch == FIELD_NO_INT && batch)
        r->n_batch = strtol(batch + strlen(" --batch "), NULL, 10);
    if (isnan(r->budget_s) && budget)
        r->budget_s = strtod(budget + strlen(" --budget "), NULL);
}

/* What is out of range is left at the default: it changes how a point is measured, not
 * which one it is. */
static void set_effort(struct point *p, const struct row *r)
{
    if (r->n_wanted >= 1 && r->n_wanted <= MAX_SAMPLES)
        p->n_tokens = (int)r->n_wanted;
    if (r->n_batch >= 1 && r->n_batch <= SETTING_MAX(batch))
        p->setup.n_batch = (int)r->n_batch;
    if (r->budget_s >= MIN_BUDGET_S && r->budget_s <= MAX_BUDGET_S)
        p->budget_s = r->budget_s;
}

enum status history_point(struct point *p, const struct row *r,
                          const struct modelref *model, const struct topology *topo,
                          struct err *err)
{
    struct row effort = *r;

    point_init(p);
    p->setup.model = *model;
    p->setup.isa_disabled = isa_detected() & ~isa_usable();
    fill_older(&effort);
    set_effort(p, &effort);
    p->setup.mem_limit = r->mem_limit_bytes > 0 ? (uint64_t)r->mem_limit_bytes : 0;
    if (r->tuning == TUNED_USED)
        snprintf(p->setup.tuned, sizeof p->setup.tuned, "auto");
    p->kind = r->kind == POINT_PREFILL ? POINT_PREFILL : POINT_DECODE;
    return set_settings(p, r, topo, err);
}
