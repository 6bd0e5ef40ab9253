/* SPDX-License-Identifier: MIT
 *
 * point_child.c - the measuring side of a point
 *
 * Order: load, fill the context, probe the roof, warm up, measure, probe again.
 * The roof of a model that fits is read from its own weights, the same pages in the
 * same mapping, and between samples, too, since memory is shared with others. A model
 * that does not fit would be probed at the disk's speed, so a buffer stands in, before
 * the model is read in and after it is closed; nothing but the model is in memory while
 * measuring. A sample is written only after its clock has been read.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/synth/synth.h"
#include "harness/base/clock.h"
#include "harness/base/parse.h"
#include "harness/machine/child.h"
#include "harness/machine/memory_reserve.h"
#include "harness/machine/sandbox.h"
#include "harness/point/point_child_impl.h"
#include "harness/point/point_speculate.h"
#include "harness/point/point_tuned.h"
#include "harness/tune/prefetch.h"
#include "kernels/isa.h"

#define FLUSH_NS      50000000u /* samples reach the parent within 50 ms */
#define PRELOAD_SHARE 0.8       /* of the limit, where a model does not fit it */

/* ---- loading ---------------------------------------------------------------- */

struct preload {
    struct point_child *c;
    uint64_t stop_at; /* bytes */
};

static int preload_step(void *arg, size_t done, size_t total)
{
    const struct preload *preload = arg;

    if (done >= preload->stop_at)
        return 1;
    return point_tell_load(preload->c, done,
                           total < preload->stop_at ? total : preload->stop_at);
}

/* Read the weights in: all of them where they fit, and otherwise only as much as
 * the limit holds, since every further page would only push out another. */
static enum status preload(struct point_child *c, bool fits, struct err *err)
{
    const struct slm_info *info = slm_info(c->model);
    const uint64_t anon = info->kv_bytes + info->scratch_bytes;
    struct preload how = {.c = c, .stop_at = UINT64_MAX};
    struct err stopped = ERR_INIT;
    enum status status;

    if (!fits) {
        const uint64_t room = c->p->mem_limit ? c->p->mem_limit : c->topo.mem_available;

        how.stop_at = (uint64_t)(PRELOAD_SHARE * (double)room);
        how.stop_at = how.stop_at > anon ? how.stop_at - anon : 0;
    }
    status = weights_preload(slm_weights(c->model), slm_thread_pool(c->model),
                             preload_step, &how, &stopped);
    if (status == ST_OK || (status == ST_INTERRUPTED && !fits))
        return ST_OK;
    return err_set(err, status, "%s", stopped.msg);
}

/* The synthetic model written straight into huge pages. */
static enum status make_image(struct point_child *c, struct err *err)
{
    const enum status status =
        mem_alloc(&c->image, c->image_bytes, MEM_PAGES_2M, "model image", err);

    if (status)
        return status;
    return synth_write_memory(c->plan, c->image.base, point_tell_load, c, err);
}

static bool model_fits(const struct point_child *c)
{
    const struct slm_info *info = slm_info(c->model);
    const uint64_t need = info->weight_bytes + info->kv_bytes + info->scratch_bytes;
    const uint64_t room = c->p->mem_limit ? c->p->mem_limit : c->topo.mem_available;

    return need + RESERVE_SPARE_BYTES <= room;
}

/* Open the model and read it in. */
static enum status load(struct point_child *c, struct err *err)
{
    struct slm_params params = slm_params_default();
    const uint64_t begin = clock_ns();
    uint64_t probing = 0;
    enum status status = ST_OK;

    point_tell_phase(c, "load", 0);
    if (c->p->residency == WEIGHTS_MEMORY) {
        status = make_image(c, err);
        params.image = c->image.base;
        params.image_bytes = c->image_bytes;
        params.image_rewrite = true;
        params.name = c->p->model.text;
    } else {
        params.path = c->p->model.path;
        params.quant = modelref_quant(&c->p->model);
        params.residency = c->p->residency;
    }
    params.isa_mask = isa_usable();
    params.memory_bytes = c->p->mem_limit ? c->p->mem_limit : c->topo.mem_available;
    params.n_threads = c->p->n_threads;
    params.n_threads_prefill = c->p->n_threads_prefill;
    params.n_ctx = point_n_ctx(c->p);
    params.n_batch = c->p->n_batch;
    params.n_logits = point_n_logits(c->p);
    params.kv_type = c->p->kv_type;
    point_tuned_params(c->p, &params);
    if (status == ST_OK && c->p->tuning.state == TUNED_USED)
        status = point_tuned_cpus(c->p, &c->topo, c->cpu_list, &c->cpus, err);
    params.cpus = c->cpus;
    if (status == ST_OK)
        status = slm_open(&c->model, &params, err);
    if (status == ST_OK) {
        /* Memory that cannot be paged fits, or the system ends us. */
        c->fits = c->p->residency != WEIGHTS_MMAP || model_fits(c);
        if (!c->fits) {
            const uint64_t probe_begin = clock_ns();

            status = point_probe_roof(c, false, err);
            probing = clock_ns() - probe_begin;
        }
        if (status == ST_OK)
            status = preload(c, c->fits, err);
    }
    c->row.load_s = (double)(clock_ns() - begin - probing) * 1e-9;
    return status;
}

/* ---- facts ------------------------------------------------------------------ */

/* Multiply-adds count the matrices only: the embedding is looked up, not
 * multiplied, and the output matrix serves the last position only. */
static void evaluate_facts(struct point_child *c)
{
    const struct slm_info *info = slm_info(c->model);
    const bool tied = !gguf_tensor_find(slm_gguf(c->model), "output.weight");
    const double head = (double)info->n_vocab * info->n_embd;
    const double body = (double)info->n_params - (tied ? head : 2 * head);
    const double n = c->p->kind == POINT_PREFILL ? c->p->n_prompt : 1;
    const double passes = ceil(n / c->p->n_batch);

    c->facts.tokens_per_sample = n;
    c->facts.ops_per_sample = 2 * (body * n + head);
    c->facts.bytes_per_sample = c->p->kind == POINT_PREFILL
                                    ? passes * (double)info->weight_token_bytes
                                    : (double)slm_bytes_per_token(info, c->p->ctx);
    c->facts.llc_bytes = (double)c->topo.llc_bytes;
}

static void fill_row(struct point_child *c)
{
    const struct slm_info *info = slm_info(c->model);
    struct row *row = &c->row;
    const uint32_t isa = isa_usable();

    row->n_params = (int64_t)info->n_params;
    snprintf(row->quant, sizeof row->quant, "%s", info->quant);
    snprintf(row->kv_type, sizeof row->kv_type, "%s", kv_type_name(info->kv_type));
    snprintf(row->pages, sizeof row->pages, "4k");
    if (c->p->residency == WEIGHTS_MEMORY) {
        row->file_bytes = (int64_t)c->image_bytes;
        row->mem_planned_bytes =
            (int64_t)(c->image_bytes + info->kv_bytes + info->scratch_bytes);
    }
    if (c->p->residency != WEIGHTS_MMAP) {
        size_t bytes;
        const void *memory = weights_memory(slm_weights(c->model), &bytes);

        if (mem_huge_bytes(memory, bytes) >= bytes / 2)
            snprintf(row->pages, sizeof row->pages, "2m");
    }
    for (int i = 0; i < KERN_N_ISA; i++) {
        if (isa >> i & 1)
            snprintf(row->isa, sizeof row->isa, "%s", isa_name(i));
    }
    if (c->p->kind == POINT_DECODE)
        row->bytes_per_token = (int64_t)slm_bytes_per_token(info, c->p->ctx);
    evaluate_facts(c);
}

/* ---- measuring -------------------------------------------------------------- */

/* Which token it is does not change the cost, so they are drawn. */
static int32_t next_token(struct point_child *c)
{
    return (int32_t)random_below(&c->random, (uint64_t)slm_info(c->model)->n_vocab);
}

static enum status eval_prompt(struct point_child *c, int n, enum slm_logits which,
                               const char *phase, struct err *err)
{
    const int batch = c->p->n_batch;
    int32_t *tokens = malloc((size_t)batch * sizeof *tokens);
    enum status status = ST_OK;

    if (!tokens)
        return err_set(err, ST_NO_MEMORY, "no memory for %d tokens", batch);
    for (int i = 0; i < n && status == ST_OK; i += batch) {
        const int m = n - i < batch ? n - i : batch;

        for (int j = 0; j < m; j++)
            tokens[j] = next_token(c);
        status = slm_eval(c->model, tokens, (size_t)m,
                          i + m == n ? which : SLM_LOGITS_NONE, err);
        if (phase)
            point_tell_phase(c, phase, (double)(i + m) / n);
        else
            point_tell_life(c);
    }
    free(tokens);
    return status;
}

static enum status fill_context(struct point_child *c, struct err *err)
{
    if (c->p->kind == POINT_SPECULATE)
        return point_speculate_open(c, err);
    if (c->p->kind == POINT_PREFILL || !c->p->ctx)
        return ST_OK;
    point_tell_phase(c, "fill", 0);
    if (c->p->ctx_prefill)
        return eval_prompt(c, c->p->ctx, SLM_LOGITS_NONE, "fill", err);
    return slm_fill_synthetic(c->model, c->p->ctx, c->p->seed, err);
}

/* One sample: its time in *ns; the sequence is as before afterwards. */
static enum status sample(struct point_child *c, uint64_t *ns, struct err *err)
{
    const int depth = slm_n_past(c->model);
    uint64_t begin;
    enum status status;

    if (c->p->kind == POINT_SPECULATE) {
        status = point_speculate_run(c, ns, err);
        slm_truncate(c->model, depth);
        return status;
    }
    if (c->p->kind == POINT_PREFILL) {
        begin = clock_ns();
        status = eval_prompt(c, c->p->n_prompt, SLM_LOGITS_LAST, NULL, err);
    } else {
        const int32_t token = next_token(c);

        begin = clock_ns();
        status = slm_eval(c->model, &token, 1, SLM_LOGITS_LAST, err);
    }
    *ns = clock_ns() - begin;
    slm_truncate(c->model, depth);
    return status;
}

/* Not counted: first touches of scratch, and clocks that need to wake up. Left
 * out where it would take long, since the budget is for measuring. */
static enum status warm_up(struct point_child *c, struct err *err)
{
    const uint64_t slow_ns = (uint64_t)(c->p->budget_s * 1e9 / 8);
    const int32_t token = next_token(c);
    const int depth = slm_n_past(c->model);
    uint64_t ns = clock_ns();
    enum status status;

    if (!c->fits)
        return ST_OK;
    point_tell_phase(c, "warm", 0);
    if (c->p->kind == POINT_SPECULATE)
        return point_speculate_warm(c, err);
    status = slm_eval(c->model, &token, 1, SLM_LOGITS_LAST, err);
    slm_truncate(c->model, depth);
    ns = clock_ns() - ns;
    if (c->p->kind == POINT_PREFILL)
        ns *= (uint64_t)c->p->n_prompt; /* at most: a prompt shares its weights */
    if (status == ST_OK && ns < slow_ns)
        status = sample(c, &ns, err);
    return status;
}

static enum status measure(struct point_child *c, struct err *err)
{
    const uint64_t budget_ns = (uint64_t)(c->p->budget_s * 1e9);
    enum status status = ST_OK;
    uint64_t now = 0;

    if (c->p->profile)
        status = slm_profile_start(c->model, err);
    if (status)
        return status;
    point_tell_phase(c, "measure", 0);
    noise_read(&c->noise_begin, "");
    c->measure_begin_ns = c->told_ns = c->noise_told_ns = clock_ns();
    while (c->n_ms < (size_t)c->p->n_tokens && now < c->measure_begin_ns + budget_ns) {
        uint64_t ns;

        status = sample(c, &ns, err);
        if (status)
            break;
        c->ms[c->n_ms++] = (double)ns * 1e-6;
        point_probe_beside(c);
        now = clock_ns();
        if (now - c->told_ns > FLUSH_NS) {
            point_tell_samples(c);
            c->told_ns = now;
        }
        point_tell_life(c);
    }
    point_tell_noise(c);
    point_tell_samples(c);
    return status;
}

static void close_model(struct point_child *c)
{
    slm_close(c->model);
    c->model = NULL;
    mem_free(&c->image);
}

/* The file's pages are charged to the group; with the probe's buffer on top they
 * would become the peak of a point that never had both. */
static void make_room(struct point_child *c)
{
    uint64_t stayed;

    close_model(c);
    if (c->p->mem_limit)
        modelref_evict(&c->p->model, &stayed, NULL);
}

/* What is to be loaded, and how large it is. */
static enum status prepare(struct point_child *c, struct err *err)
{
    const struct point *p = c->p;
    struct modelref ref;
    enum status status = topology_read(&c->topo, "", err);

    if (status)
        return status;
    c->random = p->seed ? p->seed : 1;
    c->fits = true;
    c->ms = calloc((size_t)p->n_tokens, sizeof *c->ms);
    if (!c->ms)
        return err_set(err, ST_NO_MEMORY, "no memory for %d samples", p->n_tokens);
    memset(c->ms, 0xff,
           (size_t)p->n_tokens * sizeof *c->ms); /* touched now, not later */
    if (p->residency != WEIGHTS_MEMORY)
        return modelref_bytes(&p->model, &c->image_bytes, err);
    status = modelref_parse(&ref, p->model.text, NULL, err);
    if (status == ST_OK)
        status = synth_plan_make(&c->plan, &ref.shape, ref.mix, p->seed, err);
    if (status == ST_OK)
        c->image_bytes = synth_plan_bytes(c->plan);
    return status;
}

/* Once it is loaded: a profile is looked at, or else the prefetch measured. What pages
 * from disk has no time for either. */
static enum status choose_tuning(struct point_child *c, struct err *err)
{
    struct tuned_side side = {c->p->n_threads, c->p->n_threads_prefill, NULL,
                              c->p->tuning.choices};

    if (c->p->tuning.state != TUNED_USED) {
        if (!c->fits || c->p->kind == POINT_PREFILL)
            return ST_OK;
        return slm_measure_prefetch(c->model, SLM_PREFETCH_BUDGET_S, c->topo.llc_bytes,
                                    err);
    }
    point_tell_phase(c, "check", 0);
    if (c->fits)
        return point_check_tuned(c->model, &c->own, &c->topo, &c->row, err);
    side.tuning.n_batch = c->p->n_batch;
    return slm_tune(c->model, side.n_threads, side.n_threads_prefill, &side.tuning,
                    err);
}

static enum status run(struct point_child *c, struct err *err)
{
    enum status status = prepare(c, err);

    if (status)
        return status;
    if ((status = load(c, err)))
        return status;
    fill_row(c);
    if ((status = choose_tuning(c, err)) || (status = fill_context(c, err)))
        return status;
    if (c->p->kind != POINT_PREFILL)
        prefetch_of_model(c->model, c->row.prefetch, sizeof c->row.prefetch);
    if (c->fits) {
        point_tell_phase(c, "probe", 0);
        status = point_probe_roof(c, true, err);
    }
    point_tell_row(c);
    if (status || (status = warm_up(c, err)) || (status = measure(c, err)))
        return status;
    if (c->p->kind == POINT_SPECULATE)
        point_speculate_conclude(c);
    if (c->p->profile && (status = point_tell_profile(c, err)))
        return status;
    point_tell_phase(c, "probe", 1);
    if (!c->fits)
        make_room(c);
    status = point_probe_roof(c, c->fits, err);
    point_tell_row(c);
    return status;
}

int point_child_run(const struct point *p)
{
    struct err err = ERR_INIT;
    struct point_child *c = calloc(1, sizeof *c);
    enum status status;

    child_offer_to_oom_killer();
    isa_disable(p->isa_disabled);
    if (!c) {
        status = err_set(&err, ST_NO_MEMORY, "no memory to measure in");
    } else {
        c->own = *p;
        c->p = &c->own;
        c->cpus = p->explicit_cpus ? p->cpus : NULL;
        row_init(&c->row);
        status = run(c, &err);
        point_speculate_close(c);
        close_model(c);
        synth_plan_free(c->plan);
        free(c->ms);
        free(c);
    }
    if (status)
        point_tell(json_pack("{s:s, s:i}", "error", err.msg, "code", (int)status));
    else
        point_tell(json_pack("{s:b}", "done", 1));
    return status_exit_code(status);
}
