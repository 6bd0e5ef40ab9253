/* SPDX-License-Identifier: MIT
 *
 * point.c - the deciding side of a point: sandbox and child
 *
 * The child is this program again (child.h), started inside its memory group.
 */
#include "harness/point/point.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/machine/sandbox.h"
#include "harness/point/point_child.h"
#include "harness/point/point_run.h"
#include "harness/point/point_tuned.h"
#include "harness/worker/worker.h"

#define TICK_MS  200
#define USAGE_NS 500000000u  /* the group's peak is read twice a second */
#define REAP_NS  5000000000u /* from closing its output to being gone */

/* The child gets its CPUs by number: both sides then mean the same ones. */
static enum status resolve_cpus(struct point_run *r, struct err *err)
{
    struct point *p = &r->settings;

    if (p->explicit_cpus || p->placement == PLACEMENT_NONE)
        return ST_OK;
    p->explicit_cpus = true;
    return placement_cpus(r->topo, p->placement, point_max_threads(p), p->cpus, err);
}

/* ---- starting the child ----------------------------------------------------- */

static enum status start_child(struct point_run *r, struct err *err)
{
    json_t *object = point_json(&r->settings);
    char *settings = object ? json_dumps(object, JSON_COMPACT) : NULL;
    char name[] = "bench", command[] = "point";
    char *argv[] = {name, command, settings, NULL};
    const struct child_params params = {
        .program = "/proc/self/exe", .argv = argv, .sandbox = r->sandbox};
    const enum status status =
        settings ? child_start(&r->child, &params, err)
                 : err_set(err, ST_USAGE, "the name of the model is not UTF-8: %s",
                           r->settings.model.path);

    json_decref(object);
    free(settings);
    return status;
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

static void hear_phase(struct point_run *r, const json_t *message, const char *phase)
{
    if (!strcmp(phase, "measure"))
        r->measure_ns = clock_ns();
    snprintf(r->phase, sizeof r->phase, "%s", phase);
    report(r, json_number_value(json_object_get(message, "fraction")));
}

static void hear_line(void *arg, const char *line, size_t len)
{
    struct point_run *r = arg;
    json_t *message = json_loadb(line, len, 0, NULL), *value;

    if (!message)
        return;
    if ((value = json_object_get(message, "phase")) && json_is_string(value))
        hear_phase(r, message, json_string_value(value));
    if ((value = json_object_get(message, "row")))
        row_from_json(r->row, value);
    if ((value = json_object_get(message, "facts")))
        point_facts_from_json(&r->facts, value);
    if ((value = json_object_get(message, "s"))) {
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
    if ((value = json_object_get(message, "error")) && json_is_string(value)) {
        snprintf(r->child_error, sizeof r->child_error, "%s", json_string_value(value));
        r->child_status =
            (enum status)json_integer_value(json_object_get(message, "code"));
    }
    if (json_object_get(message, "done"))
        r->done = true;
    json_decref(message);
    r->heard_ns = clock_ns();
}

/* ---- watching it -------------------------------------------------------------- */

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

static void end_child(struct point_run *r, enum ending why)
{
    if (r->ending == ENDED_BY_ITSELF) {
        r->ending = why;
        kill(r->child.pid, SIGKILL);
    }
}

static void watch(struct point_run *r)
{
    const uint64_t silence_ns = (uint64_t)(r->settings.load_budget_s * 1e9);
    struct pollfd pfd = {.fd = r->child.out, .events = POLLIN};

    r->heard_ns = clock_ns();
    for (;;) {
        const int ready = poll(&pfd, 1, TICK_MS);
        const uint64_t now = clock_ns();

        if (interrupted())
            end_child(r, ENDED_BY_USER);
        if (now > r->heard_ns && now - r->heard_ns > silence_ns)
            end_child(r, ENDED_BY_TIME);
        if (now - r->usage_ns > USAGE_NS)
            read_usage(r);
        if (ready > 0 && !child_hear(&r->child, hear_line, r))
            return;
        if (ready == 0)
            report(r, 0);
    }
}

/* Its exit status; a child that has closed its output but does not end is ended. */
static int reap(struct point_run *r, struct rusage *usage)
{
    bool killed;
    const int wstatus = child_reap(&r->child, REAP_NS, usage, &killed);

    if (killed && r->ending == ENDED_BY_ITSELF)
        r->ending = ENDED_BY_TIME;
    return wstatus;
}

/* Sandbox, child, waiting and cleaning up. */
static enum status execute(struct point_run *r, struct err *err)
{
    const struct point *p = &r->settings;
    struct rusage usage = {.ru_maxrss = 0};
    enum status status = ST_OK;
    int wstatus;

    if (p->mem_limit) {
        uint64_t stayed;

        if (p->residency != WEIGHTS_MEMORY &&
            modelref_evict(&p->model, &stayed, NULL) == ST_OK)
            r->row->cached_bytes = (int64_t)stayed;
        status = sandbox_create(&r->sandbox, "", p->mem_limit, err);
        if (status)
            return status;
    }
    status = start_child(r, err);
    if (status == ST_OK)
        watch(r);
    if (r->child.pid > 0) {
        if (status)
            kill(r->child.pid, SIGKILL);
        wstatus = reap(r, &usage);
        read_usage(r);
        if (status == ST_OK)
            point_conclude(r, wstatus, &usage);
    }
    return status;
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
    r->child = (struct child)CHILD_INIT;
    snprintf(r->phase, sizeof r->phase, "start");
    r->facts.tokens_per_sample = p->kind == POINT_PREFILL ? p->n_prompt : 1;
    status = point_take_tuned(&asked, topo, r->tuned_note, sizeof r->tuned_note, err);
    if (status == ST_OK) {
        r->settings = asked;
        if (asked.tuning.state == TUNED_USED && asked.residency == WEIGHTS_AUTO &&
            asked.tuning.residency == WEIGHTS_MMAP)
            r->settings.residency = WEIGHTS_MMAP;
        status = resolve_cpus(r, err);
    }
    point_describe(r, &asked);
    if (status == ST_OK)
        status = point_plan(r, err);
    if (status == ST_OK && point_may_try(r))
        status = execute(r, err);
    child_close(&r->child);
    sandbox_destroy(r->sandbox);
    if (samples && status == ST_OK)
        *samples = r->samples;
    else
        point_samples_free(&r->samples);
    free(r);
    return status;
}
