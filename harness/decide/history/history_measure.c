/* SPDX-License-Identifier: MIT
 *
 * history_measure.c - the points of a history, measured again now
 */
#include "harness/decide/history/history_measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/base/dirs.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/decide/history/baseline_rule.h"
#include "harness/rows/point/point_row.h"
#include "harness/decide/history/history_rows.h"
#include "harness/machine/cache.h"
#include "harness/machine/measuring.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/roofs.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/measure/sweep/sweep.h"

#define MAX_POINTS GATE_MAX_METRICS
#define MAX_RUNS   100

struct now {
    struct point p[MAX_POINTS];
    size_t n_good[MAX_POINTS];
    int n_tries[MAX_POINTS];
    size_t n;
    size_t runs;
    enum row_trust min_trust; /* of a row that counts */
    struct topology topo;
    struct modelref model;
    struct sweep_dir *dir;
    struct progress progress;
    size_t n_done, n_planned;
};

/* ---- which of them --------------------------------------------------------------- */

static bool is_model(const struct row *r, const struct modelref *m)
{
    return (!strcmp(r->model, m->name) || point_row_names(r, m->text)) &&
           (m->mix == QUANTMIX_N || !strcmp(r->quant, quantmix_name(m->mix)));
}

/* Why the history has nothing to measure. */
static enum status refuse(const struct series_set *set, const struct now *now,
                          const struct machine_key *here, const struct series *thin,
                          struct err *err)
{
    const struct series *elsewhere = NULL, *other = NULL;
    char why[256];

    for (size_t i = 0; i < set->n; i++) {
        const struct series *s = &set->v[i];
        const bool same =
            s->has_machine && machine_key_same(&s->machine, here, NULL, 0);

        if (same && !is_model(&s->like, &now->model))
            other = s;
        if (!same)
            elsewhere = s;
    }
    if (thin)
        return err_set(
            err, ST_UNSUPPORTED,
            "%zu stored run%s of %s on this machine (%zu more were disturbed, "
            "%zu within three hours of one of the same commit) do not say how "
            "far runs scatter; add %zu more",
            thin->n, thin->n == 1 ? "" : "s", thin->name, thin->n_disturbed,
            thin->n_joined, BASELINE_MIN_RUNS - thin->n);
    if (other)
        return err_set(err, ST_UNSUPPORTED,
                       "no stored run is of %s; there is %s %s on this machine",
                       now->model.text, other->like.model, other->like.quant);
    if (elsewhere && elsewhere->has_machine) {
        machine_key_same(&elsewhere->machine, here, why, sizeof why);
        return err_set(err, ST_UNSUPPORTED, "no stored run is from this machine: %s",
                       why);
    }
    return err_set(err, ST_UNSUPPORTED,
                   elsewhere ? "the machine of the stored rows is not known; add "
                               "--here if it is this one"
                             : "there is no stored run to compare with");
}

/* Points of the series that are of this machine and model, and long enough. */
static enum status choose(struct now *now, const struct series_set *set,
                          const struct machine_key *here, struct err *err)
{
    const struct row *known[MAX_POINTS];
    const struct series *thin = NULL;
    enum status st = ST_OK;

    for (size_t i = 0; i < set->n && st == ST_OK; i++) {
        const struct series *s = &set->v[i];
        bool again = false;

        if (!s->has_machine || !machine_key_same(&s->machine, here, NULL, 0) ||
            !is_model(&s->like, &now->model))
            continue;
        for (size_t k = 0; k < now->n; k++)
            again |= series_same_setting(known[k], &s->like, NULL, NULL, 0);
        thin = s->n < BASELINE_MIN_RUNS ? s : thin;
        if (again || s->n < BASELINE_MIN_RUNS)
            continue;
        if (now->n == MAX_POINTS)
            return err_set(err, ST_USAGE,
                           "there are more than %d points to measure; choose some with "
                           "--only",
                           MAX_POINTS);
        known[now->n] = &s->like;
        st = point_from_row(&now->p[now->n], &s->like, &now->model, &now->topo, err);
        now->n++;
    }
    if (st == ST_OK && !now->n)
        st = refuse(set, now, here, thin, err);
    return st;
}

/* ---- measuring ------------------------------------------------------------------- */

static void on_progress(void *arg, const char *phase, double fraction)
{
    struct now *now = arg;
    char detail[128];

    snprintf(detail, sizeof detail, "%zu of %zu, %s", now->n_done + 1, now->n_planned,
             phase);
    progress_update(&now->progress,
                    ((double)now->n_done + fraction / 2) / (double)now->n_planned,
                    detail);
}

static enum status measure(struct now *now, size_t i, struct err *err)
{
    struct point_samples samples = {0};
    const struct row *rows;
    struct row row;
    size_t n_rows;
    enum status st =
        point_run(&now->p[i], &now->topo, &row, &samples, on_progress, now, err);

    if (st == ST_OK && row.status == ROW_STATUS_INTERRUPTED)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    if (st == ST_OK) {
        row.attempt = ++now->n_tries[i];
        rows = sweep_dir_rows(now->dir, &n_rows);
        roof_mark(&row, rows, n_rows);
        now->n_good[i] += row_trust(&row) >= now->min_trust;
        st = sweep_dir_append(now->dir, &row, &samples, err);
    }
    if (st == ST_OK && row_trust(&row) == ROW_FAILED)
        st = err_set(err, ST_UNSUPPORTED, "%s could not be measured: %s. %s", row.point,
                     row_status_text(&row), row.detail);
    point_samples_free(&samples);
    now->n_done++;
    return st;
}

/* Every point once, in random order; then again. A disturbed point is measured again in
 * a later round, at most as many times as rows were wanted. */
static enum status measure_all(struct now *now, uint64_t seed, struct err *err)
{
    enum status st = ST_OK;

    progress_begin(&now->progress, "history");
    for (size_t round = 0; round < 2 * now->runs && st == ST_OK; round++) {
        size_t order[MAX_POINTS];

        for (size_t i = 0; i < now->n; i++)
            order[i] = i;
        random_shuffle(order, now->n, sizeof *order, &seed);
        for (size_t i = 0; i < now->n && st == ST_OK; i++) {
            if (round >= now->runs && now->n_good[order[i]] >= now->runs)
                continue;
            now->n_planned += round >= now->runs;
            st = interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                               : measure(now, order[i], err);
        }
    }
    progress_end(&now->progress);
    return st;
}

static enum status make_dir(struct now *now, const struct history_options *o,
                            struct gate_result *r, struct err *err)
{
    struct sweep_settings s;
    json_t *machine;
    enum status st;

    if (o->out)
        snprintf(r->dir, sizeof r->dir, "%s", o->out);
    else
        dirs_results(r->dir, sizeof r->dir, "history-");
    st = sweep_dir_create(&now->dir, r->dir, err);
    if (st == ST_OK)
        st = sweep_settings_init(&s, &now->topo, err);
    if (st)
        return st;
    machine = sweep_machine_json(&now->topo, NULL, &s, o->argc, o->argv);
    json_object_del(machine, "sweep"); /* it is none that could be resumed */
    st = sweep_dir_write_machine(now->dir, machine, err);
    json_decref(machine);
    sweep_settings_free(&s);
    return st;
}

static enum status prepare(struct now *now, const struct history_options *o,
                           struct gate_result *r, struct err *err)
{
    bool needs_file = false;
    uint64_t limit = 0;
    enum status st = ST_OK;

    for (size_t i = 0; i < now->n; i++) {
        needs_file |=
            now->model.synthetic && now->p[i].setup.residency != WEIGHTS_MEMORY;
        if (now->p[i].setup.mem_limit)
            limit = now->p[i].setup.mem_limit;
    }
    if (limit)
        st = sandbox_check("", limit, err);
    if (st == ST_OK && needs_file)
        st = modelref_make_file(&now->model, NULL, err);
    if (st == ST_OK)
        st = measuring_begin(err);
    if (st == ST_OK)
        st = cache_find(&now->topo, err);
    return st ? st : make_dir(now, o, r, err);
}

enum status history_measure(const struct result_set *old,
                            const struct series_choice *choice,
                            const struct history_options *o, struct gate_result *r,
                            struct err *err)
{
    struct now *now = calloc(1, sizeof *now);
    struct series_set set = {0};
    struct machine_key here;
    enum status st;

    if (!now)
        return err_set(err, ST_NO_MEMORY, "no memory to measure");
    now->runs = o->runs > 0 && o->runs <= MAX_RUNS ? o->runs : HISTORY_MEASURE_RUNS;
    now->min_trust = choice->disturbed ? ROW_DISTURBED : ROW_GOOD;
    st = history_machine_here(&here, &now->topo, err);
    if (st == ST_OK)
        st = modelref_parse(&now->model, o->model, NULL, err);
    if (st == ST_OK)
        st = series_make(&set, old, choice, err);
    if (st == ST_OK)
        st = choose(now, &set, &here, err);
    now->n_planned = now->n * now->runs;
    if (st == ST_OK)
        st = prepare(now, o, r, err);
    if (st == ST_OK)
        st = measure_all(now, o->seed ? o->seed : 1, err);
    sweep_dir_close(now->dir);
    series_free(&set);
    free(now);
    return st;
}
