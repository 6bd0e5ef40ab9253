/* SPDX-License-Identifier: MIT
 *
 * sweep.c - the loop over models and points
 */
#include "harness/base/format.h"
#include "harness/result/roofs.h"
#include "harness/sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"

/* Seconds of a point besides its measuring budget, as an initial estimate: process
 * start, probes, and loading at a disk's 1 GB/s. Finished points correct it. */
#define EST_FIXED_S     3.0
#define EST_BYTES_PER_S 1e9
#define EST_PHASE_MAX   0.95 /* of a point's own estimate, until it is done */

struct sweep {
    const struct sweep_settings *s;
    const struct sweep_plan *plan;
    const struct topology *topo;
    struct sweep_dir *dir;

    struct progress progress;
    double *est_s;    /* [n_points] */
    double est_total; /* of what is due */
    double est_done, spent_s;
    size_t n_due, n_finished;
    uint64_t point_begin_ns;
    size_t point; /* running now */
    char label[200];
};

/* ---- progress --------------------------------------------------------------- */

static void on_progress(void *arg, const char *phase, double fraction)
{
    struct sweep *sweep = arg;
    const double own = sweep->est_s[sweep->point];
    const double scale = sweep->est_done > 0 ? sweep->spent_s / sweep->est_done : 1;
    double within = (double)(clock_ns() - sweep->point_begin_ns) * 1e-9 / (own * scale);
    char detail[256];

    if (within > EST_PHASE_MAX)
        within = EST_PHASE_MAX;
    snprintf(detail, sizeof detail, "%s, %s %.0f %%", sweep->label, phase,
             100 * fraction);
    progress_update(&sweep->progress,
                    (sweep->est_done + within * own) / sweep->est_total, detail);
}

static void print_row(const struct sweep *sweep, const struct row *row)
{
    const double half = (row->tok_per_s_hi - row->tok_per_s_lo) / 2;
    char speed[96] = "", size[24] = "", figure[24];

    if (row->tok_per_s > 0)
        snprintf(speed, sizeof speed, "%9s tok/s",
                 format_measured(figure, sizeof figure, row->tok_per_s, half, 3));
    if (row->tok_per_s_lo > 0) {
        text_append(speed, sizeof speed, " [%s, ",
                    format_measured(figure, sizeof figure, row->tok_per_s_lo, half, 3));
        text_append(speed, sizeof speed, "%s]",
                    format_measured(figure, sizeof figure, row->tok_per_s_hi, half, 3));
    }
    printf("[%zu/%zu] %-52s %s %s", sweep->n_finished, sweep->n_due, row->point,
           row_status_text(row), speed);
    if (row->mbu > 0)
        printf(", %.0f %% of roof", 100 * row->mbu);
    if (row->limiter != FIELD_NO_ENUM)
        printf(", limited by %s", row_limiter_text(row));
    if (row->mem_peak_bytes > 0)
        printf(", peak %s",
               format_bytes(size, sizeof size, (uint64_t)row->mem_peak_bytes));
    if (*row->validity && strncmp(row->validity, "valid", 5))
        printf(", %s", row->validity);
    if (*row->detail)
        printf("; %s", row->detail);
    putchar('\n');
    fflush(stdout);
}

/* ---- one point -------------------------------------------------------------- */

/* Measure and append. What went wrong with the point is in its row; an error
 * status ends the sweep. */
static enum status run_point(struct sweep *sweep, size_t i, int attempt,
                             struct err *err)
{
    const struct point *p = &sweep->plan->points[i];
    struct point_samples samples = {0};
    struct err why = ERR_INIT;
    const struct row *rows;
    struct row row;
    size_t n_rows;
    enum status status;

    row_init(&row);
    sweep->point = i;
    sweep->point_begin_ns = clock_ns();
    snprintf(sweep->label, sizeof sweep->label, "%zu of %zu", sweep->n_finished + 1,
             sweep->n_due);
    status = point_run(p, sweep->topo, &row, &samples, on_progress, sweep, &why);
    if (status == ST_INTERRUPTED || row.status == ROW_STATUS_INTERRUPTED) {
        point_samples_free(&samples);
        return err_set(err, ST_INTERRUPTED, "interrupted");
    }
    if (status) {
        row.status = ROW_STATUS_ERROR;
        snprintf(row.detail, sizeof row.detail, "%.190s", why.msg);
    }
    row.attempt = attempt;
    rows = sweep_dir_rows(sweep->dir, &n_rows);
    roof_mark(&row, rows, n_rows);
    status = sweep_dir_append(sweep->dir, &row, &samples, err);
    point_samples_free(&samples);
    sweep->n_finished++;
    sweep->est_done += sweep->est_s[i];
    sweep->spent_s += (double)(clock_ns() - sweep->point_begin_ns) * 1e-9;
    progress_end(&sweep->progress);
    if (status == ST_OK)
        print_row(sweep, &row);
    return status;
}

static int attempt_due(const struct sweep *sweep, size_t i)
{
    size_t n;
    const struct row *rows = sweep_dir_rows(sweep->dir, &n);
    char id[96];

    point_id(&sweep->plan->points[i], id, sizeof id);
    return sweep_attempt_due(rows, n, id, sweep->s->n_repeats);
}

/* ---- one model -------------------------------------------------------------- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Makes the file if it is missing, and marks it as used either way: another sweep must
 * not remove it. A failure is an error of every point of the model,
 * which point_run() reports; only an interrupt ends the sweep. */
static enum status make_model(struct sweep *sweep, const struct modelref *ref,
                              struct err *err)
{
    struct err why = ERR_INIT;
    bool made;
    enum status status;

    if (!ref->synthetic)
        return ST_OK;
    if (!exists(ref->path) && !sweep->s->keep_models) {
        status = sweep_dir_will_make(sweep->dir, ref->path, err);
        if (status)
            return status;
    }
    progress_end(&sweep->progress);
    status = modelref_make_file(ref, &made, &why);
    if (status == ST_INTERRUPTED)
        return err_set(err, status, "interrupted");
    if (status) {
        printf("%s: %s\n", ref->text, why.msg);
        fflush(stdout);
    }
    return ST_OK;
}

/* .made comes with the directory, which may be foreign: a file that it names is removed
 * only if it is one that this program makes. */
static void remove_model(struct sweep *sweep, const struct modelref *ref)
{
    if (!modelref_is_made(ref) || !sweep_dir_has_made(sweep->dir, ref->path) ||
        modelref_remove(ref))
        return;
    progress_end(&sweep->progress);
    printf("%s stays: another bench uses it\n", ref->path);
    fflush(stdout);
}

/* Points in the plan's order. Disturbed points are repeated after all others, since the
 * disturbance may be over by then. */
static enum status run_model(struct sweep *sweep, size_t m, struct err *err)
{
    const size_t first = sweep->plan->first[m], end = sweep->plan->first[m + 1];
    enum status status = ST_OK;
    bool prepared = false, again = true;

    for (int round = 0; again && status == ST_OK && round <= sweep->s->n_repeats;
         round++) {
        again = false;
        for (size_t i = first; i < end && status == ST_OK; i++) {
            const int attempt = attempt_due(sweep, i);

            if (!attempt || attempt > round + 1)
                continue;
            if (!prepared) {
                status = make_model(sweep, &sweep->plan->points[i].setup.model, err);
                prepared = true;
            }
            if (status == ST_OK && round)
                sweep->est_total += sweep->est_s[i];
            if (status == ST_OK && round)
                sweep->n_due++;
            if (status == ST_OK)
                status = run_point(sweep, i, attempt, err);
            again = true;
        }
    }
    if (first < end && status != ST_INTERRUPTED && !sweep->s->keep_models)
        remove_model(sweep, &sweep->plan->points[first].setup.model);
    return status;
}

/* ---- all -------------------------------------------------------------------- */

static enum status estimate(struct sweep *sweep, struct err *err)
{
    const struct sweep_plan *plan = sweep->plan;

    sweep->est_s = calloc(plan->n_points, sizeof *sweep->est_s);
    if (!sweep->est_s)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu estimates",
                       plan->n_points);
    for (size_t i = 0; i < plan->n_points; i++) {
        struct err ignored = ERR_INIT;
        uint64_t bytes = 0;

        if (modelref_bytes(&plan->points[i].setup.model, &bytes, &ignored))
            bytes = 0;
        sweep->est_s[i] =
            EST_FIXED_S + plan->points[i].budget_s + (double)bytes / EST_BYTES_PER_S;
        if (attempt_due(sweep, i)) {
            sweep->est_total += sweep->est_s[i];
            sweep->n_due++;
        }
    }
    return ST_OK;
}

enum status sweep_run(const struct sweep_settings *s, const struct sweep_plan *plan,
                      const struct topology *topo, struct sweep_dir *dir,
                      struct err *err)
{
    struct sweep sweep = {.s = s, .plan = plan, .topo = topo, .dir = dir};
    enum status status = estimate(&sweep, err);

    progress_begin(&sweep.progress, "sweep");
    for (size_t m = 0; m < plan->n_models && status == ST_OK; m++)
        status = run_model(&sweep, m, err);
    progress_end(&sweep.progress);
    free(sweep.est_s);
    return status;
}
