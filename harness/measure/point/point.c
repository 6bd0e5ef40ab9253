/* SPDX-License-Identifier: MIT
 *
 * point.c - the deciding side of a point: sandbox and worker
 *
 * The worker is this program again, started inside its memory group.
 */
#include "harness/measure/point/point_measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/stats/stats.h"
#include "harness/machine/probe.h"
#include "harness/machine/sandbox/sandbox.h"
#include "harness/measure/point/point_run.h"
#include "harness/measure/worker/worker.h"

#define USAGE_NS 500000000u /* the group's peak is read twice a second */

#define DISK_BYTES (UINT64_C(256) << 20) /* of the model's file, per pass at most */

/* Limits for a model that streams. Depth and size are the worker's. */
#define MAX_DISK_BYTES   0x1p30
#define MAX_DISK_DEPTH   256
#define MAX_DISK_REQUEST (UINT64_C(64) << 20)

enum status point_run_pin(struct point_run *r, struct err *err)
{
    struct point *p = &r->settings;

    if (p->setup.explicit_cpus || p->setup.placement == PLACEMENT_NONE)
        return ST_OK;
    p->setup.explicit_cpus = true;
    return placement_cpus(r->topo, p->setup.placement, model_setup_threads(&p->setup),
                          p->setup.cpus, err);
}

/* ---- messages of the worker ------------------------------------------------------ */

static void add_samples(struct point_run *r, const json_t *list)
{
    const size_t n = json_array_size(list);

    if (r->samples.n + n > r->samples_cap) {
        const size_t want = (r->samples.n + n) * 2;
        double *grown = realloc(r->samples.ms, want * sizeof *grown);

        if (!grown)
            return; /* fewer samples, and the row has their number */
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

void point_run_usage(struct point_run *r)
{
    if (!r->sandbox || sandbox_read(r->sandbox, &r->usage, NULL))
        return;
    r->usage_ns = clock_ns();
    if (r->usage.peak_bytes > r->peak_bytes)
        r->peak_bytes = r->usage.peak_bytes;
    if (r->usage.current_bytes > r->peak_bytes)
        r->peak_bytes = r->usage.current_bytes;
    if (sandbox_resident_bytes(&r->usage) > r->resident_bytes)
        r->resident_bytes = sandbox_resident_bytes(&r->usage);
}

static void watch(struct point_run *r)
{
    if (clock_ns() - r->usage_ns > USAGE_NS)
        point_run_usage(r);
}

static void on_tick(void *arg, const char *phase, double fraction)
{
    struct point_run *r = arg;

    if (phase && strcmp(phase, r->phase) != 0)
        point_run_usage(r); /* a short point has few moments */
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
        message_take_columns(r->row, value);
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

/* ---- running it ------------------------------------------------------------------ */

/* One request that is answered before anything is measured. False: there is no answer,
 * for a reason that is an error of the whole run, into *status, or one for the row. */
static bool get_answer(struct point_run *r, json_t *request, const char *key,
                       json_t **answer, enum status *status, struct err *err)
{
    struct err ignored = ERR_INIT; /* w->end has what the row needs to know */
    struct worker_client *w = &r->worker;

    if (!request) {
        *status = err_set(err, ST_USAGE, "the name of the model is not UTF-8: %s",
                          r->settings.setup.model.path);
        return false;
    }
    if (worker_client_request(w, request, key, "opening the model", answer, &ignored) ==
        ST_OK)
        return true;
    if (w->end == WORKER_GAVE_UP)
        *status = err_set(err, w->error_status, "%s", w->error);
    return false;
}

bool point_run_need(struct point_run *r, enum status *status, struct err *err)
{
    struct point_need need;
    json_t *answer = NULL;

    if (!get_answer(r, message_request("need", &r->settings, point_room(r), NULL, NULL),
                    "need", &answer, status, err))
        return false;
    *status = point_need_from_json(&need, answer, err);
    json_decref(answer);
    if (*status == ST_OK)
        point_plan(r, &need);
    return *status == ST_OK;
}

bool point_run_roof(struct point_run *r, enum status *status, struct err *err)
{
    json_t *answer = NULL;

    if (!get_answer(r,
                    message_request("roof", &r->settings, point_room(r), r->topo,
                                    r->roof_passes),
                    "done", &answer, status, err))
        return false;
    probe_ways_take(json_object_get(answer, "ways"));
    json_decref(r->roof_passes);
    r->roof_passes = answer;
    return true;
}

/* Passes over the model's file, where there is one: in a directory the probe writes
 * one. The roof is the median of all passes; the spread is their difference, and that
 * between the passes before and after the measurement. */
static void probe_disk_roof(struct point_run *r, uint64_t bytes,
                            const struct probe_disk_way *way)
{
    const char *path = r->settings.setup.model.path;
    double *gbps = r->disk_gbps + r->n_disk_gbps, scratch[2 * POINT_DISK_PASSES];
    struct err ignored = ERR_INIT;
    struct stats s;
    struct stat sb;

    if (stat(path, &sb) || !S_ISREG(sb.st_mode) ||
        probe_disk(path, bytes, way, POINT_DISK_PASSES, gbps, &ignored) != ST_OK)
        return;
    r->n_disk_gbps += POINT_DISK_PASSES;
    stats_summary(&s, r->disk_gbps, (size_t)r->n_disk_gbps, scratch);
    r->roof_disk_gbps = s.median;
    r->disk_spread = 2 * s.mad / s.median;
    if (gbps > r->disk_gbps)
        r->disk_spread =
            fmax(r->disk_spread,
                 fabs(stats_median(gbps, POINT_DISK_PASSES, scratch) -
                      stats_median(r->disk_gbps, POINT_DISK_PASSES, scratch)) /
                     s.median);
}

/* As many bytes as a token streams: a disk behind a cache of its host gives a few of
 * them faster. */
static uint64_t streamed_probe_bytes(const struct point_run *r)
{
    const double bytes = (double)r->row->streamed_bytes;

    return bytes > DISK_BYTES ? (uint64_t)fmin(bytes, MAX_DISK_BYTES) : DISK_BYTES;
}

/* Before a mapped model that does not fit pages from its disk, or a streamed one is
 * read from it. */
static void probe_disk_before(struct point_run *r)
{
    const enum weights_residency residency = r->settings.setup.residency;

    if (!r->fits && residency == WEIGHTS_MMAP)
        probe_disk_roof(r, DISK_BYTES, NULL);
    else if (residency == WEIGHTS_STREAM && r->row->streamed_bytes > 0)
        probe_disk_roof(r, streamed_probe_bytes(r), &probe_disk_streaming);
}

/* Once it is known how weights were streamed, and the worker has given them back. What
 * was read in another way before does not count. */
static void probe_disk_after(struct point_run *r)
{
    const struct probe_disk_way way = {.request_bytes =
                                           (uint64_t)r->facts.stream_request_bytes,
                                       .depth = (int)r->facts.stream_depth};

    if (r->worker.end != WORKER_RUNS || way.depth < 1 || way.depth > MAX_DISK_DEPTH ||
        way.request_bytes < 4096 || way.request_bytes % 4096 ||
        way.request_bytes > MAX_DISK_REQUEST)
        return;
    if (way.depth != probe_disk_streaming.depth ||
        way.request_bytes != probe_disk_streaming.request_bytes)
        r->n_disk_gbps = 0;
    if (r->progress)
        r->progress(r->progress_arg, "probe", 1);
    probe_disk_roof(r, streamed_probe_bytes(r), &way);
}

/* Sends the point, and reads all messages until it is done. */
static void measure(struct point_run *r)
{
    struct err ignored = ERR_INIT;
    json_t *answer = NULL;

    worker_client_request(
        &r->worker,
        message_request("point", &r->settings, point_room(r), r->topo, NULL), "done",
        "measuring a point", &answer, &ignored);
    probe_ways_take(json_object_get(answer, "ways"));
    json_decref(answer);
}

/* The worker's end, and what the row makes of it. */
static void conclude(struct point_run *r)
{
    struct worker_client *w = &r->worker;

    const struct topo_llc cache =
        topology_cache(r->topo, point_step_threads(&r->settings));

    r->facts.llc_bytes = (double)cache.bytes;
    r->facts.llc_hi_bytes = (double)cache.hi;
    r->facts.disk_spread = r->disk_spread;
    worker_client_end(w, w->end == WORKER_INTERRUPTED || w->end == WORKER_SILENT ||
                             w->end == WORKER_UNEXPECTED);
    if (r->sandbox)
        point_run_usage(r);
    else
        worker_client_usage(w, &r->usage);
    point_conclude(r);
}

/* Streamed weights are read from the disk, not from a cache that the model happens to
 * be in. With a limit that was done before. */
static void evict_streamed(struct point_run *r)
{
    uint64_t stayed;

    if (r->settings.setup.residency == WEIGHTS_STREAM && !r->settings.setup.mem_limit &&
        modelref_evict(&r->settings.setup.model, &stayed, NULL) == ST_OK)
        r->cached_bytes = (int64_t)stayed;
}

/* --timeout is another program's. Where it is longer than ours the machine may be slow,
 * and our own points have as long. */
static double silence_s(const struct point *p)
{
    return *p->engine ? worker_silence_s() : fmax(worker_silence_s(), p->load_budget_s);
}

enum status point_run_start(struct point_run *r, bool *greets, struct err *err)
{
    const struct point *p = &r->settings;
    const struct worker_params params = {.who = "the measuring process",
                                         .program = "/proc/self/exe",
                                         .command = "worker",
                                         .timeout_s = silence_s(p),
                                         .pass_errors = true,
                                         .tick = on_tick,
                                         .hear = on_message,
                                         .arg = r};
    const struct sandbox_limits limits = {p->setup.mem_limit,
                                          model_setup_quota(&p->setup)};
    struct err ignored = ERR_INIT;
    uint64_t stayed;
    enum status status = ST_OK;

    if (p->setup.mem_limit)
        if (p->setup.residency != WEIGHTS_MEMORY &&
            modelref_evict(&p->setup.model, &stayed, NULL) == ST_OK)
            r->cached_bytes = (int64_t)stayed;
    if (p->setup.mem_limit || p->setup.quota_hundredths)
        status = sandbox_create_with(&r->around, "", &limits, err);
    if (p->setup.mem_limit)
        r->sandbox = r->around;
    if (status == ST_OK) {
        struct worker_params with = params;

        with.sandbox = r->around;
        status = worker_client_start(&r->worker, &with, err);
    }
    *greets = status == ST_OK && worker_client_greet(&r->worker, &ignored) == ST_OK;
    return status;
}

static enum status run(struct point_run *r, struct err *err)
{
    struct point asked = r->settings;
    bool goes_on = false;
    enum status status;

    if (asked.setup.residency == WEIGHTS_MEMORY && !asked.setup.model.synthetic)
        return err_set(err, ST_USAGE,
                       "weights in memory are those of a synthetic model; %s is a file "
                       "(use --weights packed or mmap, or name SHAPE:QUANT)",
                       asked.setup.model.text);
    status = point_run_start(r, &goes_on, err);
    if (goes_on)
        status = point_run_pin(r, err);
    point_describe(r, &asked);
    goes_on = goes_on && status == ST_OK && point_run_need(r, &status, err);
    if (status || (goes_on && !point_may_try(r)))
        return status;
    if (goes_on) {
        evict_streamed(r);
        probe_disk_before(r);
        measure(r);
        probe_disk_after(r);
    }
    conclude(r);
    return ST_OK;
}

/* The machine as the point will see it. */
static enum status refresh_memory(struct point_run *r, const struct topology *topo,
                                  struct err *err)
{
    r->topo = malloc(sizeof *r->topo);
    if (!r->topo)
        return err_set(err, ST_NO_MEMORY, "no memory to run a point in");
    *r->topo = *topo;
    topology_set_quota(r->topo, model_setup_quota(&r->settings.setup));
    return topology_refresh_memory(r->topo, "", err);
}

void point_samples_free(struct point_samples *samples)
{
    free(samples->ms);
    json_decref(samples->profile);
    *samples = (struct point_samples){0};
}

enum status point_run_begin(struct point_run **out, const struct point *p,
                            const struct topology *topo, struct row *row,
                            point_progress_fn *progress, void *arg, struct err *err)
{
    struct point_run *r = calloc(1, sizeof *r);

    if (!r)
        return err_set(err, ST_NO_MEMORY, "no memory to run a point in");
    *out = r;
    r->settings = *p;
    r->row = row;
    r->progress = progress;
    r->progress_arg = arg;
    r->worker.child = (struct child)CHILD_INIT;
    r->cached_bytes = FIELD_NO_INT;
    r->roof_disk_gbps = NAN;
    snprintf(r->phase, sizeof r->phase, "open");
    r->facts.tokens_per_sample =
        p->kind == POINT_PREFILL ? p->n_prompt : p->n_sequences;
    point_describe(r, p); /* an error has a row, too */
    return interrupted() ? err_set(err, ST_INTERRUPTED, "interrupted")
                         : refresh_memory(r, topo, err);
}

void point_run_end(struct point_run *r, struct point_samples *samples, bool keeps)
{
    if (!r)
        return;
    row_disarm(r->row);
    worker_client_close(&r->worker);
    sandbox_destroy(r->around);
    if (samples && keeps)
        *samples = r->samples;
    else
        point_samples_free(&r->samples);
    json_decref(r->roof_passes);
    free(r->topo);
    free(r);
}

enum status point_run(const struct point *p, const struct topology *topo,
                      struct row *row, struct point_samples *samples,
                      point_progress_fn *progress, void *arg, struct err *err)
{
    struct point_run *r = NULL;
    enum status status = point_run_begin(&r, p, topo, row, progress, arg, err);

    if (status == ST_OK)
        status = run(r, err);
    point_run_end(r, samples, status == ST_OK);
    return status;
}
