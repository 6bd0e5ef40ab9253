/* SPDX-License-Identifier: MIT
 *
 * history_point.c - a point from the columns of a stored row
 */
#include "harness/history/history_point.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/choice.h"

#define MAX_SAMPLES  1000
#define MAX_BATCH    65536
#define MIN_BUDGET_S 0.01
#define MAX_BUDGET_S 600
#define MAX_POSITION (1 << 24)

static enum status whole(int *out, int64_t v, int64_t min, int64_t max,
                         const char *what, struct err *err)
{
    if (v < min || v > max)
        return err_set(err, ST_INPUT, "a stored row's %s is %lld", what, (long long)v);
    *out = (int)v;
    return ST_OK;
}

static enum status set_threads(struct point *p, const struct row *r,
                               const struct topology *topo, struct err *err)
{
    enum status st =
        whole(&p->setup.n_threads, r->n_threads, 1, TOPO_MAX_CPUS, "n_threads", err);

    if (st == ST_OK && r->n_threads_prefill != FIELD_NO_INT)
        st = whole(&p->setup.n_threads_prefill, r->n_threads_prefill, 1, TOPO_MAX_CPUS,
                   "n_threads_prefill", err);
    if (st == ST_OK && !strcmp(r->placement, "list")) {
        p->setup.explicit_cpus = true;
        return placement_parse_cpus(r->cpus, topo, &p->setup.n_threads,
                                    p->setup.n_threads_prefill, p->setup.cpus, err);
    }
    return st ? st
              : choice_parse(&choices_placement, r->placement,
                             "placement of a stored row", &p->setup.placement, err);
}

static enum status set_depth(struct point *p, const struct row *r, struct err *err)
{
    if (!strcmp(r->kind, "prefill")) {
        p->kind = POINT_PREFILL;
        return whole(&p->n_prompt, r->n_prompt, 1, MAX_POSITION, "n_prompt", err);
    }
    p->ctx_prefill = !strcmp(r->ctx_fill, "prefill");
    return whole(&p->ctx, r->ctx, 0, MAX_POSITION, "ctx", err);
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
    if (r->n_batch >= 1 && r->n_batch <= MAX_BATCH)
        p->setup.n_batch = (int)r->n_batch;
    if (r->budget_s >= MIN_BUDGET_S && r->budget_s <= MAX_BUDGET_S)
        p->budget_s = r->budget_s;
}

enum status history_point(struct point *p, const struct row *r,
                          const struct modelref *model, const struct topology *topo,
                          struct err *err)
{
    struct row effort = *r;
    enum status st;

    point_init(p);
    p->setup.model = *model;
    p->setup.isa_disabled = isa_detected() & ~isa_usable();
    fill_older(&effort);
    set_effort(p, &effort);
    p->setup.mem_limit = r->mem_limit_bytes > 0 ? (uint64_t)r->mem_limit_bytes : 0;
    if (!strcmp(r->tuning, "tuned"))
        snprintf(p->setup.tuned, sizeof p->setup.tuned, "auto");
    st = set_threads(p, r, topo, err);
    if (st == ST_OK)
        st = set_depth(p, r, err);
    if (st == ST_OK && *r->kv_type)
        st = choice_parse(&choices_kv, r->kv_type, "kv_type of a stored row",
                          &p->setup.kv_type, err);
    if (st == ST_OK && *r->residency)
        st = choice_parse(&choices_residency, r->residency, "residency of a stored row",
                          &p->setup.residency, err);
    return st;
}
