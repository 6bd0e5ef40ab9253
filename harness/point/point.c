/* SPDX-License-Identifier: MIT
 *
 * point.c - the deciding side of a point: sandbox and worker
 *
 * The worker is this program again, started inside its memory group.
 */
#include "harness/point/point.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/machine/sandbox.h"
#include "harness/point/point_worker.h"
#include "harness/point/point_run.h"
#include "harness/point/point_tuned.h"
#include "harness/worker/worker.h"

#define USAGE_NS 500000000u /* the group's peak is read twice a second */

/* The worker gets its CPUs by number, so that both sides use the same ones. */
static enum status resolve_cpus(struct point_run *r, struct err *err)
{
    struct point *p = &r->settings;

    if (p->setup.explicit_cpus || p->setup.placement == PLACEMENT_NONE)
        return ST_OK;
    p->setup.explicit_cpus = true;
    return placement_cpus(r->topo, p->setup.placement, model_setup_threads(&p->setup),
                          p->setup.cpus, err);
}

/* ---- hearing it -------------------------------------------------------------- */

static void add_samples(struct point_run *r, const json_t *list)
{
    const size_t n = json_array_size(list);

    if (r->samples.n + n > r->samples_cap) {
        const size_t want = (r->samples.n + n) * 2;
        double *grown = realloc(r->samples.ms, want * sizeof *grown);

        if (!grown)
            return; /* fewer samples, and the row says how many */
        r->samples.ms = grown;
        r->samples_cap = want;
    }
    for (size_t i = 0; i < n; i++)
        r->samples.ms[r->samples.n++] = json_number_value(json_array_get(list, i));
}

static void report(struct point_run *r, double fraction)
{
    if (!strcmp(r->phase, "measure")) {
        const double spent = (double)(clock_ns() - r->measure_ns) * 1e-9;
        const double by_time = spent / r->settings.budget_s;

        fraction = (double)r->samples.n / r->settings.n_tokens;
        if (by_time > fraction)
            fraction = by_time;
    }
    if (r->progress)
        r->progress(r->progress_arg, r->phase, fraction > 1 ? 1 : fraction);
}

static void read_usage(struct point_run *r)
{
    if (!r->sandbox || sandbox_read(r->sandbox, &r->usage, NULL))
        return;
    r->usage_ns = clock_ns();
    if (r->usage.peak_bytes > r->peak_bytes)
        r->peak_bytes = r->usage.peak_bytes;
    if (r->usage.current_bytes > r->peak_bytes)
        r->peak_bytes = r->usage.current_bytes;
}

static void watch(struct point_run *r)
{
    if (clock_ns() - r->usage_ns > USAGE_NS)
        read_usage(r);
}

static void on_tick(void *arg, const char *phase, double fraction)
{
    struct point_run *r = arg;

    watch(r);
    if (phase && !strcmp(phase, "measure"))
        r->measure_ns = clock_ns();
    if (phase)
        snprintf(r->phase, sizeof r->phase, "%s", phase);
    report(r, fraction);
}

static void on_message(void *arg, const json_t *message)
{
    struct point_run *r = arg;
    json_t *value;

    watch(r);
    if ((value = json_object_get(message, "row")))
        row_from_json(r->row, value);
    if ((value = json_object_get(message, "facts")))
        point_facts_from_json(&r->facts, value);
    if ((value = json_object_get(message, "ms"))) {
        add_samples(r, value);
        report(r, 0);
    }
    if ((value = json_object_get(message, "profile"))) {
        json_decref(r->samples.profile);
        r->samples.profile = json_incref(value);
    }
    if ((value = json_object_get(message, "noise"))) {
        worker_noise_from_json(&r->noise, value);
        r->has_noise = true;
    }
}

/* ---- running it --------------------------------------------------------------- */

/* Sends the point and reads all messages until the worker has ended. */
static void ask(struct point_run *r, json_t *settings)
{
    struct worker_client *w = &r->worker;
    struct err ignored = ERR_INIT; /* w->end says what the row needs to know */
    json_t *answer = NULL;
    enum status status = worker_client_greet(w, &ignored);

    if (status == ST_OK)
        status = worker_client_ask(w, json_pack("{s:O}", "point", settings), "done",
                                   "measuring a point", &answer, &ignored);
    json_decref(answer);
    worker_client_end(w, w->end == WORKER_INTERRUPTED || w->end == WORKER_SILENT ||
                             w->end == WORKER_UNEXPECTED);
    read_usage(r);
    point_conclude(r);
}

static enum status start(struct point_run *r, struct err *err)
{
    const struct worker_params params = {.who = "the measuring process",
                                         .program = "/proc/self/exe",
                                         .command = "worker",
                                         .timeout_s = r->settings.load_budget_s,
                                         .sandbox = r->sandbox,
                                         .pass_errors = true,
                                         .tick = on_tick,
                                         .hear = on_message,
                                         .arg = r};
    json_t *settings = point_json(&r->settings);
    enum status status =
        settings ? worker_client_start(&r->worker, &params, err)
                 : err_set(err, ST_USAGE, "the name of the model is not UTF-8: %s",
                           r->settings.setup.model.path);

    if (status == ST_OK)
        ask(r, settings);
    json_decref(settings);
    return status;
}

/* Sandbox and worker. */
static enum status execute(struct point_run *r, struct err *err)
{
    const struct point *p = &r->settings;

    if (p->setup.mem_limit) {
        uint64_t stayed;
        enum status status;

        if (p->setup.residency != WEIGHTS_MEMORY &&
            modelref_evict(&p->setup.model, &stayed, NULL) == ST_OK)
            r->row->cached_bytes = (int64_t)stayed;
        status = sandbox_create(&r->sandbox, "", p->setup.mem_limit, err);
        if (status)
            return status;
    }
    return start(r, err);
}

void point_samples_free(struct point_samples *samples)
{
    free(samples->ms);
    json_decref(samples->profile);
    *samples = (struct point_samples){0};
}

enum status point_run(const struct point *p, const struct topology *topo,
                      struct row *row, struct point_samples *samples,
                      point_progress_fn *progress, void *arg, struct err *err)
{
    struct point_run *r = calloc(1, sizeof *r);
    struct point asked;
    enum status status;

    if (!r)
        return err_set(err, ST_NO_MEMORY, "no memory to run a point in");
    if (interrupted()) {
        free(r);
        return err_set(err, ST_INTERRUPTED, "interrupted");
    }
    r->settings = asked = *p;
    r->topo = topo;
    r->row = row;
    r->progress = progress;
    r->progress_arg = arg;
    r->worker.child = (struct child)CHILD_INIT;
    snprintf(r->phase, sizeof r->phase, "start");
    r->facts.tokens_per_sample = p->kind == POINT_PREFILL ? p->n_prompt : 1;
    status = point_take_tuned(&asked, topo, r->tuned_note, sizeof r->tuned_note, err);
    if (status == ST_OK) {
        r->settings = asked;
        if (asked.tuning.state == TUNED_USED && asked.setup.residency == WEIGHTS_AUTO &&
            asked.tuning.residency == WEIGHTS_MMAP)
            r->settings.setup.residency = WEIGHTS_MMAP;
        status = resolve_cpus(r, err);
    }
    point_describe(r, &asked);
    if (status == ST_OK)
        status = point_plan(r, err);
    if (status == ST_OK && point_may_try(r))
        status = execute(r, err);
    worker_client_close(&r->worker);
    sandbox_destroy(r->sandbox);
    if (samples && status == ST_OK)
        *samples = r->samples;
    else
        point_samples_free(&r->samples);
    free(r);
    return status;
}
