/* SPDX-License-Identifier: MIT
 *
 * turn_serve.c - the process that measures when it is its turn
 *
 * A slowdown that was asked for is put in after each sample: the process spins until
 * as much time has passed as the step's usual sample takes longer at that loss of
 * speed, while the other threads of the pool wait as they do between two samples.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/random.h"
#include "engine/engine.h"
#include "engine/base/clock.h"
#include "harness/base/program.h"
#include "harness/base/stats.h"
#include "harness/kernelbench/kernel_work.h"
#include "harness/machine/child.h"
#include "harness/point/point_child.h"
#include "harness/point/turn.h"
#include "kernels/isa.h"

#define N_REMEMBERED 15       /* samples that the usual one is taken of */
#define LOADS_NS     20000000 /* further loads end with this */
#define TOLD_NS      500000000

struct server {
    struct turn_open o;
    struct topology topo;
    struct slm *m;
    struct kernel_fixture *fixture; /* of kernels; NULL: none yet */
    int32_t *tokens;                /* the longest prompt, at least one */
    struct slm_tuning tuning[TURN_MAX_STEPS];
    double *s[TURN_MAX_STEPS];
    double own[TURN_MAX_STEPS][N_REMEMBERED]; /* without what was put in */
    size_t n_own[TURN_MAX_STEPS];
    double last_s[TURN_MAX_STEPS]; /* the last sample, with what was put in */
    int step;                      /* the one that was taken last; -1: none */
    uint64_t told_ns;
};

static void say(json_t *object)
{
    if (object) {
        json_dumpf(object, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
        putchar('\n');
        fflush(stdout);
    }
    json_decref(object);
}

/* ---- opening -------------------------------------------------------------------- */

static int on_load(void *arg, size_t done, size_t total)
{
    struct server *v = arg;
    const uint64_t now = clock_ns();

    if (now - v->told_ns > TOLD_NS) {
        v->told_ns = now;
        say(json_pack("{s:s, s:f}", "phase", "load", "fraction",
                      (double)done / (double)total));
    }
    return 0;
}

/* A mapped model that memory does not hold is left to page itself in. */
static enum status read_weights(struct server *v, uint64_t room, struct err *err)
{
    const struct slm_info *info = slm_info(v->m);

    if (info->residency == WEIGHTS_MMAP &&
        info->weight_bytes + info->kv_bytes + info->scratch_bytes > room)
        return ST_OK;
    return weights_preload(slm_weights(v->m), slm_thread_pool(v->m), on_load, v, err);
}

static enum status open_model(struct server *v, struct err *err)
{
    const struct turn_open *o = &v->o;
    const uint64_t room =
        o->memory_bytes ? o->memory_bytes : topology_model_bytes(&v->topo);
    struct slm_params p = slm_params_default();
    enum status st;

    p.path = o->model.path;
    p.quant = modelref_quant(&o->model);
    p.residency = o->residency;
    p.memory_bytes = room;
    p.isa_mask = isa_usable();
    p.n_threads = p.n_threads_prefill = turn_n_threads(o);
    p.cpus = o->n_cpus ? o->cpus : NULL;
    p.n_ctx = turn_n_ctx(o);
    p.n_batch = o->n_batch;
    p.n_logits = 1;
    p.kv_type = o->kv_type;
    st = slm_open(&v->m, &p, err);
    return st ? st : read_weights(v, room, err);
}

/* Loaded again as long as that is quick: a short time wants to be known more often. */
static enum status load(struct server *v, struct turn_ready *r, struct err *err)
{
    const uint64_t begin = clock_ns();
    enum status st = ST_OK;

    while (st == ST_OK && r->n_loads < v->o.n_loads &&
           (!r->n_loads || clock_ns() - begin < LOADS_NS)) {
        uint64_t ns;

        slm_close(v->m);
        v->m = NULL;
        ns = clock_ns();
        st = open_model(v, err);
        r->load_s[r->n_loads++] = (double)(clock_ns() - ns) * 1e-9;
    }
    return st;
}

static enum status make_buffers(struct server *v, struct err *err)
{
    uint64_t random = v->o.seed | 1;
    const int n = turn_n_ctx(&v->o);
    bool ok;

    v->tokens = malloc((size_t)n * sizeof *v->tokens);
    ok = v->tokens != NULL;
    for (int i = 0; ok && i < n; i++)
        v->tokens[i] =
            (int32_t)random_below(&random, (uint64_t)slm_info(v->m)->n_vocab);
    for (int i = 0; ok && i < v->o.n_steps; i++)
        ok = (v->s[i] = calloc(TURN_MAX_SAMPLES, sizeof *v->s[i])) != NULL;
    return ok ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for samples");
}

/* Each number of threads that decode measures its prefetch. */
static enum status choose_tunings(struct server *v, struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; i < v->o.n_steps && st == ST_OK; i++) {
        const struct turn_step *s = &v->o.step[i];

        v->tuning[i] = slm_tuning_default();
        if (s->kind != TURN_DECODE)
            continue;
        st = slm_tune(v->m, s->n_threads, s->n_threads, &v->tuning[i], err);
        if (st == ST_OK)
            st = slm_measure_prefetch(v->m, SLM_PREFETCH_BUDGET_S, v->topo.llc_bytes,
                                      err);
        if (st == ST_OK)
            slm_get_tuning(v->m, &v->tuning[i]);
    }
    return st;
}

static enum status answer_open(struct server *v, const json_t *object, struct err *err)
{
    struct turn_ready r = {0};
    enum status st = turn_open_from_json(&v->o, object, err);

    if (st == ST_OK && v->m)
        st = err_set(err, ST_USAGE, "the model is open already");
    if (st == ST_OK)
        st = topology_read(&v->topo, "", err);
    if (st)
        return st;
    isa_disable(v->o.isa_disabled);
    v->told_ns = clock_ns();
    if ((st = load(v, &r, err)) || (st = make_buffers(v, err)) ||
        (st = choose_tunings(v, err)))
        return st;
    snprintf(r.quant, sizeof r.quant, "%s", slm_info(v->m)->quant);
    snprintf(r.residency, sizeof r.residency, "%s",
             weights_residency_name(slm_info(v->m)->residency));
    for (int i = 0; i < KERN_N_ISA; i++)
        if (isa_usable() >> i & 1)
            snprintf(r.isa, sizeof r.isa, "%s", isa_name(i));
    r.weight_bytes = slm_info(v->m)->weight_bytes;
    say(json_pack("{s:o}", "ready", turn_ready_json(&r)));
    return ST_OK;
}

/* ---- samples -------------------------------------------------------------------- */

/* What a sample of a step takes by itself: the lower quartile of the last ones, as the
 * gate takes it. */
static double usual_ns(const struct server *v, int step)
{
    const size_t n = v->n_own[step] < N_REMEMBERED ? v->n_own[step] : N_REMEMBERED;
    double sorted[N_REMEMBERED];

    for (size_t i = 0; i < n; i++) {
        size_t at = i;

        for (; at > 0 && sorted[at - 1] > v->own[step][i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = v->own[step][i];
    }
    return stats_quantile_sorted(sorted, n, 0.25);
}

/* The time of a sample that began at begin, with what is to be put in. */
static double end_sample(struct server *v, int step, uint64_t begin)
{
    const double slower = v->o.slower;
    uint64_t now = clock_ns();

    if (slower > 0) {
        const double own = (double)(now - begin);
        uint64_t end;

        v->own[step][v->n_own[step]++ % N_REMEMBERED] = own;
        end = now + (uint64_t)(usual_ns(v, step) * slower / (1 - slower));
        while ((now = clock_ns()) < end)
            ;
    }
    return v->last_s[step] = (double)(now - begin) * 1e-9;
}

/* Back at the step's depth, with a token run that does not count: it wakes the pool,
 * and takes what going back has left to be done. */
static enum status begin_decode(struct server *v, int depth, struct err *err)
{
    enum status st = ST_OK;

    if (slm_n_past(v->m) > depth)
        slm_truncate(v->m, depth);
    else if (slm_n_past(v->m) < depth)
        st = slm_fill_synthetic(v->m, depth, v->o.seed, err);
    return st ? st : slm_eval(v->m, v->tokens, 1, SLM_LOGITS_LAST, err);
}

static bool is_long(const struct server *v, int step)
{
    return v->last_s[step] >= TURN_LONG_S;
}

static enum status decode(struct server *v, int step, int n, struct err *err)
{
    const int depth = v->o.step[step].n;
    const bool goes_on = is_long(v, step) && v->step == step;
    enum status st = goes_on ? ST_OK : begin_decode(v, depth, err);

    for (int i = 0; i < n && st == ST_OK; i++) {
        const int at = slm_n_past(v->m) - depth;
        uint64_t begin;

        if (at > TURN_DECODE_SPAN) {
            if ((st = begin_decode(v, depth, err)))
                break;
            i--;
            continue;
        }
        begin = clock_ns();
        st = slm_eval(v->m, &v->tokens[at], 1, SLM_LOGITS_LAST, err);
        v->s[step][i] = end_sample(v, step, begin);
    }
    return st;
}

static enum status prefill(struct server *v, int step, int n, struct err *err)
{
    const size_t n_tokens = (size_t)v->o.step[step].n;
    enum status st = is_long(v, step) ? ST_OK : begin_decode(v, 0, err);

    for (int i = 0; i < n && st == ST_OK; i++) {
        uint64_t begin;

        slm_truncate(v->m, 0);
        begin = clock_ns();
        st = slm_eval(v->m, v->tokens, n_tokens, SLM_LOGITS_LAST, err);
        v->s[step][i] = end_sample(v, step, begin);
    }
    return st;
}

struct sample_of {
    struct server *v;
    int step;
};

static double end_kernel(void *arg, uint64_t begin)
{
    const struct sample_of *of = arg;

    return end_sample(of->v, of->step, begin);
}

static enum status take_kernel(struct server *v, int step, int n, struct err *err)
{
    struct sample_of of = {v, step};

    return turn_kernel_take(&v->fixture, &v->topo, v->o.step[step].format, n,
                            v->s[step], end_kernel, &of, err);
}

static enum status take_step(struct server *v, int step, int n, struct err *err)
{
    const struct turn_step *s = &v->o.step[step];
    enum status st;

    if (!n)
        return ST_OK;
    if (s->kind == TURN_KERNEL)
        return take_kernel(v, step, n, err);
    st = slm_tune(v->m, s->n_threads, s->n_threads, &v->tuning[step], err);
    if (st == ST_OK)
        st =
            s->kind == TURN_DECODE ? decode(v, step, n, err) : prefill(v, step, n, err);
    v->step = step;
    return st;
}

/* The largest amount of memory that this process has had, page cache it has mapped
 * included. */
static uint64_t peak_bytes(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %llu kB", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib << 10;
}

static enum status answer_take(struct server *v, const json_t *counts, struct err *err)
{
    json_t *all = json_array();
    struct noise before, after;
    enum status st = ST_OK;
    int n[TURN_MAX_STEPS];

    if (!v->m || json_array_size(counts) != (size_t)v->o.n_steps)
        st = err_set(err, ST_USAGE, "a turn that does not fit what was opened");
    for (int i = 0; st == ST_OK && i < v->o.n_steps; i++) {
        const json_t *count = json_array_get(counts, (size_t)i);

        n[i] = (int)json_integer_value(count);
        if (!json_is_integer(count) || n[i] < 0 || n[i] > TURN_MAX_SAMPLES)
            st = err_set(err, ST_USAGE, "a turn of more than %d samples",
                         TURN_MAX_SAMPLES);
    }
    noise_read(&before, "");
    for (int i = 0; st == ST_OK && i < v->o.n_steps; i++)
        st = take_step(v, i, n[i], err);
    noise_read(&after, "");
    noise_diff(&after, &before, &after);
    for (int i = 0; st == ST_OK && i < v->o.n_steps; i++) {
        json_t *list = json_array();

        for (int k = 0; k < n[i]; k++)
            json_array_append_new(list, json_real(v->s[i][k]));
        json_array_append_new(all, list);
    }
    if (st == ST_OK)
        say(json_pack("{s:O, s:o, s:I}", "s", all, "noise", point_noise_json(&after),
                      "peak_bytes", (json_int_t)peak_bytes()));
    json_decref(all);
    return st;
}

/* ---- serving -------------------------------------------------------------------- */

static enum status answer(struct server *v, const char *line, struct err *err)
{
    json_t *request = json_loads(line, 0, NULL), *value;
    enum status st;

    if ((value = json_object_get(request, "open")))
        st = answer_open(v, value, err);
    else if ((value = json_object_get(request, "take")))
        st = answer_take(v, value, err);
    else
        st = err_set(err, ST_USAGE,
                     "`bench turn` is started by `bench gate` only, and knows no such "
                     "request: %.100s",
                     line);
    json_decref(request);
    return st;
}

int turn_serve(void)
{
    struct server *v = calloc(1, sizeof *v);
    struct err err = ERR_INIT;
    enum status st = v ? ST_OK : err_set(&err, ST_NO_MEMORY, "no memory to measure in");
    char *line = NULL;
    size_t cap = 0;

    if (v)
        v->step = -1;
    child_offer_to_oom_killer();
    say(json_pack("{s:i, s:s, s:s, s:s}", "turn", TURN_PROTOCOL, "version",
                  build_version(), "commit", build_commit(), "compiler",
                  build_compiler()));
    while (st == ST_OK && getline(&line, &cap, stdin) > 0)
        st = answer(v, line, &err);
    if (st)
        say(json_pack("{s:s, s:i}", "error", err.msg, "code", (int)st));
    if (v) {
        slm_close(v->m);
        kernel_fixture_close(v->fixture);
        for (int i = 0; i < v->o.n_steps; i++)
            free(v->s[i]);
        free(v->tokens);
    }
    free(v);
    free(line);
    return status_exit_code(st);
}
