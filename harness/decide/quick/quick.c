/* SPDX-License-Identifier: MIT
 *
 * quick.c - rounds of short measurements
 */
#include "harness/decide/quick/quick.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/machine/cache.h"
#include "harness/machine/cores.h"
#include "harness/machine/measuring.h"
#include "harness/machine/sandbox/sandbox.h"

/* Shares of all the time: a decode point's, of the largest model; a pass over a prompt,
 * at most; comparing CPUs. Loading and probing take the rest. */
#define DECODE_SHARE 0.05
#define PASS_SHARE   0.1
#define CORES_SHARE  0.05

#define MIN_PROMPT 16
#define MAX_TOKENS 2000

struct run {
    struct quick_answer *a;
    const struct quick_settings *s;
    const struct topology *topo;
    struct point *points; /* [a->n_models] */
    uint64_t begin_ns;
    double round_s; /* what a round took; 0: none is over */
    char what[96];
    struct progress progress;
};

static double elapsed(const struct run *r)
{
    return (double)(clock_ns() - r->begin_ns) * 1e-9;
}

/* ---- progress -------------------------------------------------------------------- */

/* By time, which is what is given. */
static void on_progress(void *arg, const char *phase, double fraction)
{
    struct run *r = arg;
    char text[160];

    (void)fraction;
    snprintf(text, sizeof text, "%s, %s", r->what, phase);
    progress_update(&r->progress, fmin(elapsed(r) / r->s->seconds, 0.99), text);
}

/* ---- one launch ------------------------------------------------------------------ */

/* What a quota does is no disturbance: all models here have it. */
static bool is_valid(const struct row *row)
{
    return !strncmp(row->validity, "valid", 5) ||
           !strncmp(row->validity, "disturbed: throttled", 20);
}

/* The largest share that a verdict names, as 41 in "disturbed: waiting 41 %, others
 * 3 %"; 100 where it names none. */
static double disturbed_pct(const char *validity)
{
    double most = -1, pct;
    char percent[2];

    for (const char *p = validity; (p = strchr(p, ' ')) != NULL;)
        if (sscanf(++p, "%lf %1[%]", &pct, percent) == 2)
            most = fmax(most, fabs(pct));
    return most < 0 ? 100 : fmin(most, 100);
}

static struct quick_launch launch_of(const struct row *row)
{
    return (struct quick_launch){
        .tok_per_s = row->tok_per_s,
        .roof_gbps = row->roof_gbps,
        .mbu = row->mbu,
        .others_pct = isfinite(row->others_pct) ? row->others_pct : 0,
        .steal_pct = isfinite(row->steal_pct) ? row->steal_pct : 0,
        .throttled = row->throttled_pct > 0 ? row->throttled_pct / 100 : 0,
        .is_valid = is_valid(row),
        .disturbed_pct = is_valid(row) ? 0 : disturbed_pct(row->validity),
    };
}

/* A row that failed has no figure, and the reason is the error. */
static enum status check(const struct row *row, const struct point *p, struct err *err)
{
    if (row->status == ROW_STATUS_INTERRUPTED || interrupted())
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (row->tok_per_s > 0)
        return ST_OK;
    return err_set(err,
                   row->status == ROW_STATUS_NO_FIT || row->status == ROW_STATUS_OOM
                       ? ST_NO_MEMORY
                       : ST_IO,
                   "%s gave no figure: %s", p->setup.model.text,
                   *row->detail ? row->detail : "it ended before its first token");
}

static enum status measure(struct run *r, const struct point *p,
                           struct quick_point *into, struct err *err)
{
    struct row row;
    enum status st;

    snprintf(r->what, sizeof r->what, "%.40s, %s", p->setup.model.name,
             p->kind == POINT_PREFILL ? "prompt" : "decoding");
    st = point_run(p, r->topo, &row, NULL, on_progress, r, err);
    if (st == ST_OK)
        st = check(&row, p, err);
    if (st == ST_OK && into->n < QUICK_MAX_ROUNDS)
        into->launch[into->n++] = launch_of(&row);
    return st;
}

/* ---- the two points of a model --------------------------------------------------- */

/* The smaller the model, the sooner its median holds still. */
static struct point decode_point(const struct run *r, size_t i)
{
    const struct quick_model *models = r->a->models;
    struct point p = r->points[i];
    double share = 1;

    for (size_t k = 0; k < r->a->n_models; k++)
        if (models[k].is_measured)
            share =
                fmin(share, models[i].work.memory_bytes / models[k].work.memory_bytes);
    p.n_tokens = MAX_TOKENS;
    p.budget_s = r->s->seconds * DECODE_SHARE * fmax(share, 0.4);
    return p;
}

/* A prompt is read in passes of many tokens, at least this many times as fast as tokens
 * are decoded. */
#define PREFILL_GAIN 3

/* The requested prompt, or as much of it as a pass has time for. How fast that is, is
 * known of a smaller model, or guessed from decoding. */
static int prompt_tokens(const struct run *r, size_t i)
{
    const struct quick_model *models = r->a->models;
    const double pass_s = r->s->seconds * PASS_SHARE;
    int n = r->s->n_prompt;
    double tok_per_s =
        models[i].decode.n ? PREFILL_GAIN * models[i].decode.launch[0].tok_per_s : NAN;

    for (size_t k = 0; k <= i; k++)
        if (models[k].prefill.n)
            tok_per_s = models[k].prefill.launch[0].tok_per_s *
                        (double)models[k].n_params / (double)models[i].n_params;
    while (n / 2 >= MIN_PROMPT && n > tok_per_s * pass_s)
        n /= 2;
    return n;
}

static struct point prefill_point(const struct run *r, size_t i)
{
    struct point p = r->points[i];

    p.kind = POINT_PREFILL;
    p.ctx = 0;
    p.n_prompt = r->a->models[i].prefill_tokens ? r->a->models[i].prefill_tokens
                                                : prompt_tokens(r, i);
    p.n_tokens = 3;
    p.budget_s = r->s->seconds * PASS_SHARE / 2;
    return p;
}

static enum status measure_model(struct run *r, size_t i, bool prefill_first,
                                 struct err *err)
{
    struct quick_model *m = &r->a->models[i];
    enum status st = ST_OK;

    for (int k = 0; k < 2 && st == ST_OK; k++) {
        const bool prefill = (k == 0) == prefill_first;
        const struct point p = prefill ? prefill_point(r, i) : decode_point(r, i);

        if (prefill)
            m->prefill_tokens = p.n_prompt;
        st = measure(r, &p, prefill ? &m->prefill : &m->decode, err);
    }
    return st;
}

/* ---- rounds ---------------------------------------------------------------------- */

/* Every other one backwards. */
static enum status measure_round(struct run *r, int round, struct err *err)
{
    enum status st = ST_OK;

    for (size_t k = 0; k < r->a->n_models && st == ST_OK; k++) {
        const size_t i = round % 2 ? r->a->n_models - 1 - k : k;

        if (r->a->models[i].is_measured)
            st = measure_model(r, i, round % 2, err);
    }
    return st;
}

/* Another round is begun where a good part of it is within the time. */
static bool has_time(const struct run *r)
{
    return elapsed(r) + 0.7 * r->round_s < r->s->seconds;
}

static enum status measure_rounds(struct run *r, struct err *err)
{
    enum status st = ST_OK;

    do {
        const double before = elapsed(r);

        st = measure_round(r, r->a->n_rounds, err);
        r->round_s = elapsed(r) - before;
        r->a->n_rounds += st == ST_OK;
    } while (st == ST_OK && r->a->n_rounds < QUICK_MAX_ROUNDS && has_time(r));
    return st;
}

/* ---- all of it ------------------------------------------------------------------- */

static enum status find_machine(struct run *r, struct topology *topo, struct err *err)
{
    enum status st;

    snprintf(r->what, sizeof r->what, "the machine");
    on_progress(r, "cores", 0);
    st = cores_find(topo, r->s->seconds * CORES_SHARE, err);
    if (st == ST_OK)
        st = cache_find(topo, err);
    topology_set_quota(topo, model_setup_quota(&r->s->base.setup));
    on_progress(r, "sizes", 0);
    return st;
}

static enum status run_all(struct run *r, struct topology *topo, struct err *err)
{
    enum status st = measuring_begin(err);

    r->begin_ns = clock_ns();
    if (st == ST_OK && (find_machine(r, topo, err) ||
                        quick_plan_models(r->a, &r->points, r->s, topo, err) ||
                        measure_rounds(r, err)))
        st = err->code;
    r->a->measured_s = elapsed(r);
    return st;
}

enum status quick_run(struct quick_answer *a, const struct quick_settings *s,
                      struct topology *topo, struct err *err)
{
    struct run r = {.a = a, .s = s, .topo = topo};
    enum status st;

    memset(a, 0, sizeof *a);
    sandbox_clean_leftovers("");
    progress_begin(&r.progress, "quick");
    st = run_all(&r, topo, err);
    progress_end(&r.progress);
    a->n_threads =
        s->base.setup.n_threads ? s->base.setup.n_threads : topo->threads_default;
    a->n_prompt = s->n_prompt;
    a->want_tok_per_s = s->want_tok_per_s;
    a->llc_bytes = topology_cache(topo, a->n_threads).bytes;
    free(r.points);
    if (st == ST_OK)
        quick_conclude(a);
    return st;
}

void quick_free(struct quick_answer *a)
{
    free(a->models);
    a->models = NULL;
}
