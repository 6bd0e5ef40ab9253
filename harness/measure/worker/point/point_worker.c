/* SPDX-License-Identifier: MIT
 *
 * point_worker.c - the measuring side of a point
 *
 * Order: load, fill the context, probe the roof, warm up, measure, probe again.
 * The roof of a model that fits is read from its own weights, the same pages in the
 * same mapping, and between samples, too, since memory is shared with others. A model
 * that does not fit would be probed at the disk's speed, so a buffer stands in, before
 * the model is read in and after it is closed; nothing but the model is in memory while
 * measuring.
 */
#include <stdlib.h>

#include "engine/base/clock.h"
#include "harness/measure/worker/point/point_worker.h"
#include "harness/measure/worker/point_profile.h"
#include "kernels/isa.h"

#define PRELOAD_SHARE  0.8  /* of the limit, where a model does not fit it */
#define PROFILED_SHARE 0.05 /* of the budget, for samples with a profile */
#define PROFILED_MAX   8
#define LONG_PASS_MS   25.0 /* next to which some 20 us of reading clocks are nothing */
#define RESIDENT_NS    20000000u /* while loading it is looked at as often */

/* The most so far, of this process alone: the parent adds what it knows of the
 * group and the weights that are mapped. Not while a buffer stands in for weights, and
 * not between samples. */
static void note_resident(struct point_worker *c)
{
    uint64_t bytes;

    c->resident_ns = clock_ns();
    if (resident_read("", &bytes) && bytes > c->resident_bytes)
        c->resident_bytes = bytes;
}

/* ---- loading --------------------------------------------------------------------- */

static int report_load(void *arg, uint64_t done, uint64_t total)
{
    struct point_worker *c = arg;

    if (clock_ns() - c->resident_ns > RESIDENT_NS)
        note_resident(c);
    worker_report_progress(&c->reports, "load",
                           total ? (double)done / (double)total : 1);
    return 0;
}

/* Read the weights: all of them if they fit, otherwise as much as the limit holds,
 * since each further page would evict another one. */
static enum status preload(struct point_worker *c, struct err *err)
{
    const struct slm_info *info = slm_info(c->model);
    const uint64_t anon = info->kv_bytes + info->scratch_bytes;
    const uint64_t most = (uint64_t)(PRELOAD_SHARE * (double)c->room);

    return measured_preload(&c->measured,
                            c->fits       ? UINT64_MAX
                            : most > anon ? most - anon
                                          : 0,
                            err);
}

/* Open the model and read it in. */
static enum status load(struct point_worker *c, struct err *err)
{
    struct slm_params params = point_params(c->p, c->room);
    const uint64_t begin = clock_ns();
    uint64_t probing = 0;
    enum status status;

    worker_report_phase(&c->reports, "load", 0);
    point_set_sequences(c->p, &params);
    status = measured_open(&c->measured, &c->p->setup, &params, err);
    c->model = c->measured.m;
    if (status == ST_OK) {
        /* Memory that cannot be paged fits, or the OOM killer ends this process. */
        c->fits = c->p->setup.residency != WEIGHTS_MMAP ||
                  measured_fits(&c->measured, c->room);
        if (!c->fits) {
            const uint64_t probe_begin = clock_ns();

            status = point_probe_roof(c, false, err);
            probing = clock_ns() - probe_begin;
        }
        if (status == ST_OK)
            status = preload(c, err);
        note_resident(c);
    }
    c->load_s = (double)(clock_ns() - begin - probing) * 1e-9;
    return status;
}

/* ---- measuring ------------------------------------------------------------------- */

static int report_fill(void *arg, uint64_t done, uint64_t total)
{
    struct point_worker *c = arg;

    worker_report_phase(&c->reports, "fill", (double)done / (double)total);
    return 0;
}

static enum status fill_context(struct point_worker *c, struct err *err)
{
    if (c->p->kind == POINT_SPECULATE)
        return point_speculate_open(c, err);
    if (c->p->kind == POINT_PREFILL || !c->p->ctx)
        return ST_OK;
    worker_report_phase(&c->reports, "fill", 0);
    c->measured.progress = report_fill;
    return measured_fill(&c->measured, c->p->ctx, c->p->n_shared, c->p->ctx_prefill,
                         c->p->setup.seed, err);
}

static enum status speculate(void *arg, uint64_t *ns, struct err *err)
{
    struct point_worker *c = arg;
    const int depth = slm_n_past(c->model);
    const enum status status = point_speculate_run(c, ns, err);

    slm_truncate(c->model, depth);
    return status;
}

static void describe_step(struct point_worker *c)
{
    static const enum measured_kind kinds[] = {MEASURED_DECODE, MEASURED_PREFILL,
                                               MEASURED_CALL};

    c->step = (struct measured_step){.kind = kinds[c->p->kind],
                                     .depth = slm_n_past(c->model),
                                     .n_tokens = c->p->n_prompt,
                                     .call = speculate,
                                     .call_arg = c};
}

/* Not counted: first touches of scratch, and clocks that need to wake up. Left
 * out where it would take long, since the budget is for measuring. */
static enum status warm_up(struct point_worker *c, struct err *err)
{
    const uint64_t slow_ns = (uint64_t)(c->p->budget_s * 1e9 / 8);
    uint64_t ns = 0;
    enum status status;

    if (!c->fits)
        return ST_OK;
    worker_report_phase(&c->reports, "warm", 0);
    if (c->p->kind == POINT_SPECULATE)
        return point_speculate_warm(c, err);
    status = measured_wake(&c->measured, &ns, err);
    if (c->p->kind == POINT_PREFILL)
        ns *= (uint64_t)c->p->n_prompt; /* at most: a prompt shares its weights */
    if (status == ST_OK && ns < slow_ns)
        status = measured_sample(&c->measured, &c->step, &ns, err);
    return status;
}

/* A sample is written only after its clock has been read. */
static bool take_sample(void *arg, uint64_t ns)
{
    struct point_worker *c = arg;
    const double ms = (double)ns * 1e-6;

    point_chunk_sample(c);
    c->n_samples++;
    c->sum_ms += ms;
    energy_add(&c->energy, "");
    point_probe_beside(c);
    worker_report_sample(&c->reports, ms);
    worker_heartbeat(&c->reports);
    energy_mark(&c->energy, "");
    return clock_ns() < c->measure_begin_ns + (uint64_t)(c->p->budget_s * 1e9);
}

static void report_life(void *arg)
{
    struct point_worker *c = arg;

    worker_heartbeat(&c->reports);
}

/* If a model pages, what it waits for is known; a run over a text is many passes. */
static bool has_account(const struct point_worker *c)
{
    return c->p->profile || (c->fits && c->p->kind != POINT_SPECULATE);
}

bool point_profiles_samples(const struct point_worker *c)
{
    const double ops = c->facts.ops_per_sample;
    const double min_ms = c->peak.median > 0 ? ops * 1e-6 / c->peak.median : 0;

    /* steps without a chunk come between those with one */
    return c->p->profile ||
           (min_ms >= LONG_PASS_MS && has_account(c) && !c->p->n_chunk);
}

static enum status measure(struct point_worker *c, struct err *err)
{
    enum status status = ST_OK;

    c->profiles = point_profiles_samples(c);
    if (point_chunk_begin(c, err) || (c->profiles && slm_profile_start(c->model, err)))
        return err->code;
    worker_report_phase(&c->reports, "measure", 0);
    worker_begin_samples(&c->reports);
    slm_stream_read(c->model, &c->stream_begin);
    c->measure_begin_ns = clock_ns();
    c->measured.alive = report_life;
    energy_open(&c->energy, "");
    status = measured_samples(&c->measured, &c->step, (size_t)c->p->n_tokens,
                              take_sample, c, err);
    worker_end_samples(&c->reports);
    point_chunk_end(c);
    point_note_stream(c);
    point_note_energy(c);
    return status;
}

/* A few samples more, with a profile: it is the evidence for what limits the point, and
 * reading clocks must not be part of measured ones that are short. None where they
 * would take long. */
static enum status take_profiled(struct point_worker *c, size_t *n, double *ms,
                                 struct err *err)
{
    const double max_ms = PROFILED_SHARE * c->p->budget_s * 1e3;
    enum status status = ST_OK;

    *n = 0;
    *ms = 0;
    if (!c->n_samples || c->sum_ms / (double)c->n_samples > max_ms)
        return ST_OK;
    status = slm_profile_start(c->model, err);
    while (status == ST_OK && *n < PROFILED_MAX && *ms <= max_ms) {
        uint64_t ns;

        status = measured_sample(&c->measured, &c->step, &ns, err);
        *ms += (double)ns * 1e-6;
        ++*n;
        worker_heartbeat(&c->reports);
    }
    return status;
}

/* Account for the time of samples by operation. A profile that was requested is of all
 * that were measured and of tokens between them, and is reported. */
static enum status account(struct point_worker *c, struct err *err)
{
    size_t n = c->n_samples + c->n_woken;
    double ms = c->sum_ms + c->woken_ms;
    struct slm_profile *from;
    struct point_profile *p;
    enum status status = ST_OK;

    if (!c->profiles)
        status = take_profiled(c, &n, &ms, err);
    if (status || !n)
        return status;
    from = malloc(sizeof *from);
    p = malloc(sizeof *p);
    if (from && p) {
        slm_profile_read(c->model, from);
        point_profile_make(p, from, n, ms / (double)n, c->int8_gops, c->f32_gops);
        point_profile_facts(p, &c->facts);
        if (c->p->profile)
            worker_send(json_pack("{s:o}", "profile", point_profile_json(p)));
    } else {
        status = err_set(err, ST_NO_MEMORY, "no memory for a profile");
    }
    free(from);
    free(p);
    return status;
}

static void close_model(struct point_worker *c)
{
    memory_relief_end(&c->relief);
    measured_close(&c->measured);
    c->model = NULL;
}

/* What is to be loaded, and how large it is. */
static enum status prepare(struct point_worker *c, struct err *err)
{
    const struct point *p = c->p;
    struct synth_plan *plan = NULL;
    enum status status = topology_read(&c->topo, "", err);

    if (status)
        return status;
    if (c->cache)
        topology_cache_from_json(&c->topo, c->cache);
    measured_init(&c->measured, p->setup.seed);
    c->measured.n_chunk = p->n_chunk;
    c->measured.n_chunk_prompt = point_chunk_prompt(p);
    c->measured.progress = report_load;
    c->measured.arg = c;
    c->fits = true;
    if (p->setup.residency != WEIGHTS_MEMORY)
        return modelref_bytes(&p->setup.model, &c->image_bytes, err);
    status = synth_plan_make(&plan, &p->setup.model.shape, p->setup.model.mix,
                             p->setup.seed, err);
    if (status == ST_OK)
        c->image_bytes = synth_plan_bytes(plan);
    synth_plan_free(plan);
    return status;
}

/* Once the model is loaded. A model that pages from disk waits for that. */
static enum status choose_prefetch(struct point_worker *c, struct err *err)
{
    if (!c->fits || c->p->kind == POINT_PREFILL)
        return ST_OK;
    return slm_measure_prefetch(c->model, SLM_PREFETCH_BUDGET_S,
                                topology_cache(&c->topo, c->p->setup.n_threads).bytes,
                                err);
}

static enum status run(struct point_worker *c, struct err *err)
{
    enum status status = prepare(c, err);

    if (status)
        return status;
    if ((status = load(c, err)))
        return status;
    memory_relief_begin(&c->relief, c->model);
    point_evaluate_facts(c, slm_info(c->model));
    point_note_model(c);
    if ((status = choose_prefetch(c, err)) || (status = fill_context(c, err)))
        return status;
    if (c->fits) {
        worker_report_phase(&c->reports, "probe", 0);
        status = point_probe_roof(c, true, err);
    }
    note_resident(c);
    point_report(c);
    describe_step(c);
    if (status || (status = warm_up(c, err)) || (status = measure(c, err)))
        return status;
    note_resident(c);
    if (c->p->kind == POINT_SPECULATE)
        point_speculate_conclude(c);
    if (has_account(c) && (status = account(c, err)))
        return status;
    worker_report_phase(&c->reports, "probe", 1);
    if (!c->fits) {
        /* The file's pages are charged to the group; together with the probe's buffer
         * they would be a peak that the point itself never reaches. */
        uint64_t stayed;

        close_model(c);
        if (c->p->setup.mem_limit)
            modelref_evict(&c->p->setup.model, &stayed, NULL);
    }
    status = point_probe_roof(c, c->fits, err);
    point_report(c);
    return status;
}

/* ---- requests -------------------------------------------------------------------- */

static enum status fence(const struct point *p, struct err *err)
{
    char text[4096];
    enum status status = ST_OK;

    if (p->kind == POINT_SPECULATE)
        status = test_prompt_find(p->text, text, sizeof text, err);
    return status ? status
                  : worker_fence(&p->setup.model,
                                 p->kind == POINT_SPECULATE ? text : NULL, err);
}

enum status point_read_request(struct point_request *q, const json_t *request,
                               struct err *err)
{
    struct model_setup *setup = &q->point.setup;
    enum status status = message_read_request(q, request, err);

    if (status == ST_OK)
        status = fence(&q->point, err);
    return status ? status
                  : modelref_read_shape(&setup->model,
                                        setup->residency == WEIGHTS_MEMORY, err);
}

/* The process measures nothing afterwards: levels stay disabled. */
enum status point_worker_open(struct point_worker **c, struct point_request *q,
                              const json_t *request, struct err *err)
{
    struct point_worker *new = calloc(1, sizeof *new);

    if (!new)
        return err_set(err, ST_NO_MEMORY, "no memory to measure in");
    *c = new;
    if (point_read_request(q, request, err))
        return err->code;
    isa_disable(q->point.setup.isa_disabled);
    new->own = q->point;
    new->p = &new->own;
    new->room = q->room;
    new->cache = q->cache;
    new->cpus = new->own.setup.explicit_cpus ? new->own.setup.cpus : NULL;
    row_init(&new->row);
    return ST_OK;
}

void point_worker_close(struct point_worker *c)
{
    if (!c)
        return;
    point_speculate_close(c);
    close_model(c);
    free(c);
}

enum status point_answer(const json_t *request, struct err *err)
{
    struct point_worker *c = NULL;
    struct point_request q;
    enum status status = point_worker_open(&c, &q, request, err);

    if (status == ST_OK)
        status = run(c, err);
    point_worker_close(c);
    if (status == ST_OK)
        worker_send(json_pack("{s:b, s:o}", "done", 1, "ways", probe_ways_json()));
    return status;
}
