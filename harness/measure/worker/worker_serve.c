/* SPDX-License-Identifier: MIT
 *
 * worker_serve.c - the process that measures, and a gate's requests to it
 */
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/json_read.h"
#include "harness/base/program.h"
#include "harness/measure/kernels/kernel_work.h"
#include "harness/machine/memory_reserve.h"
#include "harness/measure/worker/measured.h"
#include "harness/measure/worker/worker_open.h"
#include "harness/measure/worker/worker.h"
#include "kernels/isa.h"

#define LOADS_NS 20000000 /* no further load begins after this */

struct server {
    struct worker_open o;
    struct topology topo;
    struct measured measured;
    struct kernel_fixture *fixture; /* of kernels; NULL: none yet */
    struct slm_tuning tuning[WORKER_MAX_STEPS];
    struct measured_step step[WORKER_MAX_STEPS];
    double *s[WORKER_MAX_STEPS];
    struct worker_reports reports;
};

/* ---- opening --------------------------------------------------------------------- */

static int on_load(void *arg, uint64_t done, uint64_t total)
{
    struct server *v = arg;

    worker_report_progress(&v->reports, "load", (double)done / (double)total);
    return 0;
}

/* A mapped model that memory does not hold is not read beforehand. */
static enum status read_weights(struct server *v, uint64_t room, struct err *err)
{
    const struct slm_info *info = slm_info(v->measured.m);

    if (info->residency == WEIGHTS_MMAP &&
        info->weight_bytes + info->kv_bytes + info->scratch_bytes > room)
        return ST_OK;
    return measured_preload(&v->measured, UINT64_MAX, err);
}

static enum status open_model(struct server *v, struct err *err)
{
    const struct worker_open *o = &v->o;
    const uint64_t bytes = o->setup.mem_limit ? memory_for_model(o->setup.mem_limit)
                                              : topology_model_bytes(&v->topo, 0);
    const uint64_t room = bytes ? bytes : 1; /* 0 is the machine's */
    struct slm_params p = model_setup_params(&o->setup, room);

    p.n_ctx = worker_n_ctx(o);
    p.n_logits = 1;
    if (measured_open(&v->measured, &o->setup, &p, err))
        return err->code;
    return read_weights(v, room, err);
}

/* Loads again while that is quick: a short time varies more. */
static enum status load(struct server *v, struct worker_ready *r, struct err *err)
{
    const uint64_t begin = clock_ns();
    enum status st = ST_OK;

    while (st == ST_OK && r->n_loads < v->o.n_loads &&
           (!r->n_loads || clock_ns() - begin < LOADS_NS)) {
        uint64_t ns;

        measured_close(&v->measured);
        ns = clock_ns();
        st = open_model(v, err);
        r->load_s[r->n_loads++] = (double)(clock_ns() - ns) * 1e-9;
    }
    return st;
}

static enum status make_buffers(struct server *v, struct err *err)
{
    bool ok = true;

    for (int i = 0; ok && i < v->o.n_steps; i++)
        ok = (v->s[i] = calloc(WORKER_MAX_SAMPLES, sizeof *v->s[i])) != NULL;
    return ok ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for samples");
}

/* A step's state is the same at the beginning of every request, and so are its tokens.
 */
static void describe_steps(struct server *v)
{
    for (int i = 0; i < v->o.n_steps; i++) {
        const struct worker_step *s = &v->o.step[i];
        const bool decodes = s->kind == WORKER_DECODE;

        v->step[i] =
            (struct measured_step){.kind = decodes ? MEASURED_DECODE : MEASURED_PREFILL,
                                   .depth = decodes ? s->n : 0,
                                   .n_tokens = decodes ? 1 : s->n,
                                   .span = WORKER_DECODE_SPAN,
                                   .again = true,
                                   .wakes = true};
    }
}

/* Each number of threads that decode measures its prefetch. */
static enum status choose_tunings(struct server *v, struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; i < v->o.n_steps && st == ST_OK; i++) {
        const struct worker_step *s = &v->o.step[i];

        v->tuning[i] = slm_tuning_default();
        if (s->kind != WORKER_DECODE)
            continue;
        st = slm_tune(v->measured.m, s->n_threads, s->n_threads, &v->tuning[i], err);
        if (st == ST_OK)
            st =
                slm_measure_prefetch(v->measured.m, SLM_PREFETCH_BUDGET_S,
                                     topology_cache(&v->topo, s->n_threads).bytes, err);
        if (st == ST_OK)
            slm_get_tuning(v->measured.m, &v->tuning[i]);
    }
    return st;
}

static enum status answer_open(struct server *v, const json_t *object, struct err *err)
{
    struct worker_ready r = {0};
    enum status st = worker_open_from_json(&v->o, object, err);

    if (st == ST_OK && v->measured.m)
        st = err_set(err, ST_USAGE, "the model is open already");
    if (st == ST_OK)
        st = worker_fence(&v->o.setup.model, NULL, err);
    if (st == ST_OK)
        st = topology_read(&v->topo, "", err);
    if (st)
        return st;
    if (json_object_get(object, "cache"))
        topology_cache_from_json(&v->topo, json_object_get(object, "cache"));
    isa_disable(v->o.setup.isa_disabled);
    measured_init(&v->measured, v->o.setup.seed | 1);
    v->measured.slower = v->o.slower;
    v->measured.progress = on_load;
    v->measured.arg = v;
    describe_steps(v);
    v->reports.phase_ns = clock_ns();
    if ((st = load(v, &r, err)) || (st = make_buffers(v, err)) ||
        (st = choose_tunings(v, err)))
        return st;
    snprintf(r.quant, sizeof r.quant, "%s", slm_info(v->measured.m)->quant);
    snprintf(r.residency, sizeof r.residency, "%s",
             weights_residency_name(slm_info(v->measured.m)->residency));
    snprintf(r.isa, sizeof r.isa, "%s",
             measured_isa(isa_usable(),
                          slm_takes_tiles(v->measured.m,
                                          (size_t)slm_info(v->measured.m)->n_batch)));
    r.weight_bytes = slm_info(v->measured.m)->weight_bytes;
    worker_send(json_pack("{s:o}", "ready", worker_ready_json(&r)));
    return ST_OK;
}

/* ---- samples --------------------------------------------------------------------- */

struct kept {
    double *s;
    size_t n;
};

static bool keep_sample(void *arg, uint64_t ns)
{
    struct kept *kept = arg;

    kept->s[kept->n++] = (double)ns * 1e-9;
    return true;
}

/* The work is opened again each time: between two requests nothing of it may be left,
 * since its thread is the model's first. */
static enum status take_kernel(struct server *v, int step, int n, struct kept *kept,
                               struct err *err)
{
    struct measured_step *s = &v->step[step];
    struct kernel_work *work = NULL;
    enum status st =
        worker_kernel_open(&work, &v->fixture, &v->topo, v->o.step[step].format, err);

    if (st)
        return st;
    s->kind = MEASURED_CALL;
    s->call = worker_kernel_run;
    s->call_arg = work;
    st = measured_samples(&v->measured, s, (size_t)n, keep_sample, kept, err);
    kernel_work_close(work);
    return st;
}

static enum status take_step(struct server *v, int step, int n, struct err *err)
{
    const struct worker_step *s = &v->o.step[step];
    struct kept kept = {v->s[step], 0};

    if (!n)
        return ST_OK;
    if (s->kind == WORKER_KERNEL)
        return take_kernel(v, step, n, &kept, err);
    if (slm_tune(v->measured.m, s->n_threads, s->n_threads, &v->tuning[step], err))
        return err->code;
    return measured_samples(&v->measured, &v->step[step], (size_t)n, keep_sample, &kept,
                            err);
}

/* Addresses of the program and its libraries that are only read. */
struct code {
    uintptr_t begin[64], end[64];
    int n;
};

static int add_code(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct code *code = arg;

    (void)size;
    for (int i = 0; i < info->dlpi_phnum && code->n < 64; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];

        if (p->p_type != PT_LOAD || p->p_flags & PF_W)
            continue;
        code->begin[code->n] = info->dlpi_addr + p->p_vaddr;
        code->end[code->n] = code->begin[code->n] + p->p_memsz;
        code->n++;
    }
    return 0;
}

static bool is_code(const struct code *code, uintptr_t begin, uintptr_t end)
{
    for (int i = 0; i < code->n; i++)
        if (begin < code->end[i] && end > code->begin[i])
            return true;
    return false;
}

/* KiB of the program's files that are mapped: how much of them a fault brings in is up
 * to how the page cache holds them, which differs between two copies of one program. */
static unsigned long long code_kib(void)
{
    struct code code = {.n = 0};
    unsigned long long sum = 0, kib;
    unsigned long begin, end;
    bool counts = false;
    char line[512];
    FILE *f = fopen("/proc/self/smaps", "re");

    dl_iterate_phdr(add_code, &code);
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            counts = is_code(&code, begin, end);
        else if (counts && sscanf(line, "Rss: %llu kB", &kib) == 1)
            sum += kib;
    if (f)
        fclose(f);
    return sum;
}

/* The peak memory of this process, with the weights that it has mapped and without its
 * own code. */
static uint64_t peak_bytes(void)
{
    char line[128];
    unsigned long long kib = 0, code = code_kib();
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib > code ? (kib - code) << 10 : 0;
}

static enum status answer_take(struct server *v, const json_t *counts, struct err *err)
{
    json_t *all = json_array();
    struct noise before, after;
    enum status st = ST_OK;
    int n[WORKER_MAX_STEPS];

    if (!v->measured.m || json_array_size(counts) != (size_t)v->o.n_steps)
        st = err_set(err, ST_USAGE,
                     "samples of other steps than those that were opened");
    for (int i = 0; st == ST_OK && i < v->o.n_steps; i++) {
        const json_t *count = json_array_get(counts, (size_t)i);

        n[i] = (int)json_integer_value(count);
        if (!json_is_integer(count) || n[i] < 0 || n[i] > WORKER_MAX_SAMPLES)
            st = err_set(err, ST_USAGE, "a request of more than %d samples of a step",
                         WORKER_MAX_SAMPLES);
    }
    noise_read(&before, "");
    for (int i = 0; st == ST_OK && i < v->o.n_steps; i++)
        st = take_step(v, i, n[i], err);
    noise_since(&after, &before, "");
    for (int i = 0; st == ST_OK && i < v->o.n_steps; i++) {
        json_t *list = json_array();

        for (int k = 0; k < n[i]; k++)
            json_array_append_new(list, json_real(v->s[i][k]));
        json_array_append_new(all, list);
    }
    if (st == ST_OK)
        worker_send(json_pack("{s:O, s:o, s:I}", "s", all, "noise",
                              worker_noise_json(&after), "peak_bytes",
                              (json_int_t)peak_bytes()));
    json_decref(all);
    return st;
}

/* ---- serving --------------------------------------------------------------------- */

static enum status answer(struct server *v, const struct worker_task *tasks, size_t n,
                          const char *line, struct err *err)
{
    const size_t len = strlen(line);
    json_t *request = json_try(line, len, (struct json_limit){len, len}, 0), *value;
    enum status st = ST_OK;
    size_t i = 0;

    while (i < n && !json_object_get(request, tasks[i].name))
        i++;
    if ((value = json_object_get(request, "open")))
        st = answer_open(v, value, err);
    else if ((value = json_object_get(request, "take")))
        st = answer_take(v, value, err);
    else if (i < n)
        st = tasks[i].answer(json_object_get(request, tasks[i].name), err);
    else
        st = err_set(err, ST_USAGE,
                     "`bench worker` is started by other commands of bench only, and "
                     "knows no such request: %.100s",
                     line);
    json_decref(request);
    return st;
}

static void close_server(struct server *v)
{
    if (!v)
        return;
    measured_close(&v->measured);
    kernel_fixture_close(v->fixture);
    for (int i = 0; i < v->o.n_steps; i++)
        free(v->s[i]);
    free(v);
}

int worker_serve(const struct worker_task *tasks, size_t n)
{
    struct server *v = calloc(1, sizeof *v);
    struct err err = ERR_INIT;
    enum status st = v ? ST_OK : err_set(&err, ST_NO_MEMORY, "no memory to measure in");
    char *line = NULL;
    size_t cap = 0;

    worker_send(json_pack("{s:i, s:o, s:i, s:s, s:s, s:s}", "turn",
                          WORKER_OPEN_PROTOCOL, "opens", model_setup_optional_keys(),
                          "worker", WORKER_PROTOCOL, "version", build_version(),
                          "commit", build_commit(), "compiler", build_compiler()));
    /* If standard output failed, this end tells the parent. */
    while (st == ST_OK && !ferror(stdout) && getline(&line, &cap, stdin) > 0)
        st = answer(v, tasks, n, line, &err);
    if (st == ST_OK && ferror(stdout))
        st = err_set(&err, ST_IO, "the measuring process cannot write its results");
    if (st)
        worker_send(json_pack("{s:s, s:i}", "error", err.msg, "code", (int)st));
    close_server(v);
    free(line);
    return status_exit_code(st);
}
