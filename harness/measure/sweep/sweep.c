/* SPDX-License-Identifier: MIT
 *
 * sweep.c - the loop over rounds, models and points
 */
#include "harness/base/format.h"
#include "harness/measure/engines/engine_run.h"
#include "harness/rows/report_rows.h"
#include "harness/rows/roofs.h"
#include "harness/measure/sweep/sweep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/progress.h"

#define EST_PHASE_MAX   0.95 /* of a point's own estimate, until it is done */
#define EST_BYTES_PER_S 1e9  /* of loading */

/* The last error of a model that was printed, and how many points have ended with the
 * same since. */
struct model_error {
    char detail[sizeof((struct row *)0)->detail];
    size_t n_more;
};

struct sweep {
    const struct sweep_settings *s;
    const struct sweep_plan *plan;
    const struct topology *topo;
    struct sweep_dir *dir;

    struct progress progress;
    double *est_s;    /* [n_points] of a launch: its budget and loading. Finished
                         launches show what it takes really */
    double est_total; /* of what is due */
    double est_done, spent_s;
    size_t n_finished;       /* launches with a figure */
    size_t n_round, n_begun; /* launches of this round, and those of them that began */
    uint64_t point_begin_ns;
    size_t point; /* running now */
    char label[200];

    struct sweep_tally *tally;  /* [n_points], intervals as when the round began */
    size_t *order;              /* [n_points], of the round */
    int *n_errors;              /* [n_points], launches without a figure, since this
                                   program began */
    bool *is_prepared;          /* [n_models]: its file was made, or cannot be */
    struct model_error *errors; /* [n_models] */
};

static const struct modelref *model_of(const struct sweep *sweep, size_t m)
{
    return &sweep->plan->points[sweep->plan->first[m]].setup.model;
}

static size_t model_at(const struct sweep_plan *plan, size_t point)
{
    size_t m = 0;

    while (plan->first[m + 1] <= point)
        m++;
    return m;
}

/* ---- progress -------------------------------------------------------------------- */

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
    /* until a launch has ended, estimates take whole budgets */
    sweep->progress.is_bound = !sweep->n_finished;
    progress_update(&sweep->progress,
                    (sweep->est_done + within * own) / sweep->est_total, detail);
}

/* Whether the row is the same error as that of an earlier point of model m. */
static bool is_announced(struct sweep *sweep, size_t m, const struct row *row)
{
    struct model_error *e = &sweep->errors[m];

    if (row->status != ROW_STATUS_ERROR || !*row->detail)
        return false;
    if (!strcmp(e->detail, row->detail)) {
        e->n_more++;
        return true;
    }
    memcpy(e->detail, row->detail, sizeof e->detail);
    return false;
}

static void print_announced(struct sweep *sweep, size_t m)
{
    struct model_error *e = &sweep->errors[m];

    if (e->n_more)
        printf("%s: %zu more point%s ended with the same error\n",
               format_path(model_of(sweep, m)->text).text, e->n_more,
               plural(e->n_more, "s"));
    fflush(stdout);
    e->n_more = 0;
}

/* ---- one point ------------------------------------------------------------------- */

/* A point that fails before it was ever measured fails for a lasting reason, such as a
 * file that is no model. */
static bool is_given_up(const struct sweep *sweep, size_t i)
{
    const struct sweep_tally *t = &sweep->tally[i];
    const bool was_measured = t->n_good + t->n_disturbed > 0;

    return sweep->n_errors[i] > (was_measured ? sweep->s->n_repeats : 0);
}

/* The launch that is due of point i; 0: none. */
static int launch_due(const struct sweep *sweep, size_t i)
{
    return is_given_up(sweep, i) ? 0 : sweep_tally_due(&sweep->tally[i], sweep->s);
}

static void estimate(struct sweep *sweep)
{
    sweep->est_total = sweep->est_done;
    for (size_t i = 0; i < sweep->plan->n_points; i++)
        if (launch_due(sweep, i)) /* and what it needs after that, at least */
            sweep->est_total +=
                sweep_tally_left(&sweep->tally[i], sweep->s) * sweep->est_s[i];
}

/* After the first launch: how long all take that are due, and that may become due. */
static void print_left(const struct sweep *sweep)
{
    const struct sweep_settings *s = sweep->s;
    const double scale = sweep->spent_s / sweep->est_done;
    double least = 0, most = 0;

    for (size_t i = 0; i < sweep->plan->n_points; i++) {
        const int left =
            launch_due(sweep, i) ? sweep_tally_left(&sweep->tally[i], s) : 0;
        const int more = s->max_launches - s->n_launches;

        least += left * sweep->est_s[i] * scale;
        most += (left && more > 0 ? left + more : left) * sweep->est_s[i] * scale;
    }
    if (least > 0)
        printf("about %s to %s left, if all launches take as long as this one\n",
               duration_text(least).text, duration_text(most).text);
    fflush(stdout);
}

/* What is due as it is known when a round begins: disturbed launches and intervals that
 * are too wide make it more, and a launch may show that the roofs of rows before it
 * were too low, which are disturbed then. */
static enum status count(struct sweep *sweep, struct err *err)
{
    const struct row *rows;
    size_t n_rows;

    if (sweep_dir_mark_roofs(sweep->dir, err))
        return err->code;
    rows = sweep_dir_rows(sweep->dir, &n_rows);
    if (sweep_tally_all(sweep->tally, sweep->plan, rows, n_rows, err))
        return err->code;
    estimate(sweep);
    return ST_OK;
}

/* Measure and append. What went wrong with the point is in its row; an error
 * status ends the sweep. */
static enum status run_point(struct sweep *sweep, size_t i, int launch, struct err *err)
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
    sweep->n_begun++;
    snprintf(sweep->label, sizeof sweep->label, "round %d, %zu of %zu", launch,
             sweep->n_begun, sweep->n_round);
    status = (*p->engine ? engine_run : point_run)(p, sweep->topo, &row, &samples,
                                                   on_progress, sweep, &why);
    if (status == ST_INTERRUPTED || row.status == ROW_STATUS_INTERRUPTED) {
        point_samples_free(&samples);
        return err_set(err, ST_INTERRUPTED, "interrupted");
    }
    if (status) {
        row.status = ROW_STATUS_ERROR;
        snprintf(row.detail, sizeof row.detail, "%.190s", why.msg);
    }
    const bool failed = row_trust(&row) == ROW_FAILED;
    row.attempt = launch;
    rows = sweep_dir_rows(sweep->dir, &n_rows);
    roof_mark(&row, rows, n_rows);
    status = sweep_dir_append(sweep->dir, &row, &samples, err);
    point_samples_free(&samples);
    sweep->est_done += sweep->est_s[i];
    sweep->spent_s += (double)(clock_ns() - sweep->point_begin_ns) * 1e-9;
    sweep->n_errors[i] += failed;
    sweep->n_finished += !failed;
    sweep_tally_add(&sweep->tally[i], &row);
    estimate(sweep);
    progress_end(&sweep->progress);
    if (status == ST_OK && !is_announced(sweep, model_at(sweep->plan, i), &row))
        sweep_print_row(stdout, &row, sweep->n_begun, sweep->n_round,
                        terminal_columns(stdout));
    if (status == ST_OK && !failed && sweep->n_finished == 1)
        print_left(sweep);
    return status;
}

/* ---- one model ------------------------------------------------------------------- */

/* When it is first needed: makes the file if it is missing, and marks it as used either
 * way: another sweep must not remove it. A failure is an error of every point of the
 * model, which point_run() reports; only an interrupt ends the sweep. */
static enum status prepare_model(struct sweep *sweep, size_t m, struct err *err)
{
    const struct modelref *ref = model_of(sweep, m);
    struct err why = ERR_INIT;
    bool made;
    enum status status;

    if (sweep->is_prepared[m] || !ref->synthetic)
        return ST_OK;
    sweep->is_prepared[m] = true;
    if (access(ref->path, F_OK) && !sweep->s->keep_models)
        if (sweep_dir_will_make(sweep->dir, ref->path, err))
            return err->code;
    progress_end(&sweep->progress);
    status = modelref_make_file(ref, &made, &why);
    if (status == ST_INTERRUPTED)
        return err_set(err, status, "interrupted");
    if (status) {
        printf("%s: %s\n", format_path(ref->text).text, why.msg);
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
    printf("%s stays: another bench uses it\n", format_path(ref->path).text);
    fflush(stdout);
}

/* ---- rounds ---------------------------------------------------------------------- */

/* The least launch that is due of models [first, end); 0: none. */
static int next_round(const struct sweep *sweep, size_t first, size_t end)
{
    int round = 0;

    for (size_t i = sweep->plan->first[first]; i < sweep->plan->first[end]; i++) {
        const int due = launch_due(sweep, i);

        if (due && (!round || due < round))
            round = due;
    }
    return round;
}

/* What is due of a round is known when it begins; later rounds depend on it. */
static void begin_round(struct sweep *sweep, size_t first, size_t end, int round)
{
    sweep->n_begun = sweep->n_round = 0;
    for (size_t i = sweep->plan->first[first]; i < sweep->plan->first[end]; i++)
        sweep->n_round += launch_due(sweep, i) == round;
    if (round == 1)
        return;
    progress_end(&sweep->progress);
    printf("round %d: %zu launch%s\n", round, sweep->n_round,
           plural((long long)sweep->n_round, "es"));
    fflush(stdout);
}

/* Every point of models [first, end) whose launch of that number is due. */
static enum status run_round(struct sweep *sweep, size_t first, size_t end, int round,
                             struct err *err)
{
    enum status status = ST_OK;

    begin_round(sweep, first, end, round);
    sweep_round_order(sweep->plan, sweep->s->base.setup.seed, round, sweep->order);
    for (size_t k = 0; k < sweep->plan->n_points && status == ST_OK; k++) {
        const size_t i = sweep->order[k], m = model_at(sweep->plan, i);

        if (m < first || m >= end || launch_due(sweep, i) != round)
            continue;
        status = prepare_model(sweep, m, err);
        if (status == ST_OK)
            status = run_point(sweep, i, round, err);
    }
    return status;
}

static enum status run_models(struct sweep *sweep, size_t first, size_t end,
                              struct err *err)
{
    enum status status = count(sweep, err);
    int round;

    while (status == ST_OK && (round = next_round(sweep, first, end)) != 0) {
        status = run_round(sweep, first, end, round, err);
        if (status == ST_OK)
            status = count(sweep, err);
    }
    progress_end(&sweep->progress);
    for (size_t m = first; m < end; m++)
        print_announced(sweep, m);
    if (status == ST_INTERRUPTED || sweep->s->keep_models)
        return status;
    for (size_t m = first; m < end; m++)
        if (sweep->plan->first[m] < sweep->plan->first[m + 1])
            remove_model(sweep, model_of(sweep, m));
    return status;
}

/* ---- all ------------------------------------------------------------------------- */

static enum status begin(struct sweep *sweep, struct err *err)
{
    const size_t n = sweep->plan->n_points;

    sweep->est_s = calloc(n, sizeof *sweep->est_s);
    sweep->tally = calloc(n, sizeof *sweep->tally);
    sweep->order = calloc(n, sizeof *sweep->order);
    sweep->n_errors = calloc(n, sizeof *sweep->n_errors);
    sweep->is_prepared = calloc(sweep->plan->n_models, sizeof *sweep->is_prepared);
    sweep->errors = calloc(sweep->plan->n_models, sizeof *sweep->errors);
    if (!sweep->errors || !sweep->est_s || !sweep->tally || !sweep->order ||
        !sweep->n_errors || !sweep->is_prepared)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu points", n);
    for (size_t i = 0; i < n; i++) {
        const struct point *p = &sweep->plan->points[i];
        struct err ignored = ERR_INIT;
        uint64_t bytes = 0;

        modelref_bytes(&p->setup.model, &bytes, &ignored);
        sweep->est_s[i] = p->budget_s + (double)bytes / EST_BYTES_PER_S;
    }
    return ST_OK;
}

static void end(struct sweep *sweep)
{
    free(sweep->est_s);
    free(sweep->tally);
    free(sweep->order);
    free(sweep->n_errors);
    free(sweep->is_prepared);
    free(sweep->errors);
}

enum status sweep_run(const struct sweep_settings *s, const struct sweep_plan *plan,
                      const struct topology *topo, struct sweep_dir *dir,
                      bool one_at_a_time, struct err *err)
{
    struct sweep sweep = {.s = s, .plan = plan, .topo = topo, .dir = dir};
    enum status status = begin(&sweep, err);

    progress_begin(&sweep.progress, "sweep");
    if (!one_at_a_time && status == ST_OK)
        status = run_models(&sweep, 0, plan->n_models, err);
    for (size_t m = 0; one_at_a_time && m < plan->n_models && status == ST_OK; m++)
        status = run_models(&sweep, m, m + 1, err);
    progress_end(&sweep.progress);
    end(&sweep);
    return status;
}
