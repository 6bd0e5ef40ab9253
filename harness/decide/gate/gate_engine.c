/* SPDX-License-Identifier: MIT
 *
 * gate_engine.c - turns of other programs
 */
#include "harness/decide/gate/gate_engine.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/measure/engines/engine.h"
#include "harness/measure/engines/engine_check.h"
#include "harness/measure/engines/engine_run.h"
#include "harness/rows/report_rows.h"

#define MIN_TURN_S 0.2 /* of measuring */
#define MAX_TURN_S 5

struct gate_engines {
    struct gate_settings s; /* the gate's, less what other programs do not have */
    char text[2][ENGINE_MAX_TEXT + 1];
    bool prints[2];
    struct row row;
};

/* ---- which kind ------------------------------------------------------------------ */

static bool has_name(const char *text)
{
    const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 0 && text[n] == '=';
}

/* As --engine takes it. */
static enum status name_engine(struct gate_engines *x, int side, const char *program,
                               struct err *err)
{
    char text[2 * ENGINE_MAX_TEXT];

    snprintf(text, sizeof text, "%s%s",
             has_name(program) ? ""
             : side            ? "B="
                               : "A=",
             program);
    return engine_absolute(text, x->text[side], sizeof x->text[side],
                           side ? "--b" : "--a", err);
}

/* A file is a build of bench unless its help shows that it is llama-bench or
 * llama-server; what is no file is a command if it has more than one word. */
static bool is_engine(const struct gate_engines *x, int side, const char *program)
{
    struct err why = ERR_INIT;

    if (access(program, F_OK))
        return has_name(program) || strchr(program, ' ') != NULL;
    return engine_check(x->text[side], true, &why) == ST_OK;
}

/* What other programs do not have is left out, unless somebody wants it. */
static enum status fit_settings(struct gate_engines *x, struct gate_result *r,
                                struct err *err)
{
    struct gate_settings *s = &x->s;

    if (s->kernels.n)
        return err_set(err, ST_USAGE,
                       "kernels of other programs cannot be timed: leave out the key "
                       "kernels");
    s->load = false;
    if (x->prints[0] || x->prints[1]) {
        s->prefill.n = 0;
        snprintf(r->notes, sizeof r->notes,
                 "a template prints one figure, of decoding: there is no prefill");
    }
    if (s->setup.residency != WEIGHTS_MMAP)
        return err_set(err, ST_USAGE,
                       "--weights is a setting of slmbench alone: other programs hold "
                       "weights as they do");
    const enum status st = engine_check_model(&s->setup.model, err);

    return st || !s->has_b_model ? st : engine_check_model(&s->b_model, err);
}

enum status gate_engines_open(struct gate_run *run, struct err *err)
{
    struct gate_engines *x = calloc(1, sizeof *x);
    bool is[2];

    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate");
    run->engines = x;
    for (int side = 0; side < 2; side++) {
        struct err why = ERR_INIT;
        const enum status st = name_engine(x, side, run->program[side], &why);

        is[side] = st == ST_OK && is_engine(x, side, run->program[side]);
    }
    if (is[0] != is[1])
        return err_set(
            err, ST_USAGE,
            "%s is a build of bench and %s another program, which cannot take "
            "turns: `bench sweep --engine` measures both, and `bench compare` "
            "compares them",
            is[0] ? "B" : "A", is[0] ? "A" : "B");
    if (!is[0])
        return ST_OK;
    run->of_engines = true;
    x->s = *run->s;
    for (int side = 0; side < 2; side++) {
        struct engine e;
        enum status st = engine_parse(&e, x->text[side], side ? "--b" : "--a", err);

        if (st == ST_OK)
            st = engine_check(x->text[side], true, err);
        if (st)
            return st;
        x->prints[side] = engine_prints(&e);
    }
    run->s = &x->s;
    return fit_settings(x, run->r, err);
}

void gate_engines_close(struct gate_run *run)
{
    free(run->engines);
    run->engines = NULL;
}

/* ---- turns ----------------------------------------------------------------------- */

static void make_point(const struct gate_run *run, int side, int step, struct point *p)
{
    const struct worker_step *of = &run->plan.step[step];
    const struct gate_settings *s = run->s;
    const double turn_s = gate_plan_turn_s(&run->plan, s);

    point_init(p);
    p->setup = run->open[side].setup;
    p->setup.n_threads = of->n_threads;
    p->kind = of->kind == WORKER_PREFILL ? POINT_PREFILL : POINT_DECODE;
    *(p->kind == POINT_PREFILL ? &p->n_prompt : &p->ctx) = of->n;
    p->budget_s = fmin(MAX_TURN_S, fmax(MIN_TURN_S, turn_s - 1));
    p->load_budget_s = s->timeout_s;
    snprintf(p->engine, sizeof p->engine, "%s", run->engines->text[side]);
}

static void on_phase(void *arg, const char *phase, double fraction)
{
    struct gate_run *run = arg;

    (void)phase, (void)fraction;
    progress_update(&run->progress,
                    (double)(clock_ns() - run->begin_ns) * 1e-9 / run->s->budget_s,
                    run->doing);
}

static void describe_side(struct gate_run *run, int side)
{
    struct gate_side *out = &run->r->side[side];

    snprintf(out->name, sizeof out->name, "%s", run->program[side]);
    snprintf(out->version, sizeof out->version, "%s", run->engines->row.engine_version);
}

enum status gate_engines_turn(struct gate_run *run, int side, int step, double *seconds,
                              char *why, size_t cap, struct err *err)
{
    struct row *row = &run->engines->row;
    struct model_worker *c = &run->client[side];
    struct point_samples samples = {0};
    struct point p;

    make_point(run, side, step, &p);
    row_init(row);
    enum status st = engine_run(&p, run->topo, row, &samples, on_phase, run, err);

    if (st == ST_OK && row->status == ROW_STATUS_INTERRUPTED)
        st = err_set(err, ST_INTERRUPTED, "interrupted");
    else if (st == ST_OK && (row_trust(row) < ROW_DISTURBED || !samples.n))
        st = *row->detail ? err_set(err, ST_INPUT, "%s", row->detail)
                          : err_set(err, ST_INPUT, "%s gave no figure: %s",
                                    side ? "B" : "A", row_failure(row));
    if (st == ST_OK) {
        *seconds = worker_quartile(samples.ms, samples.n) * 1e-3;
        if (side)
            *seconds /= 1 - run->s->slower;
        if (row_trust(row) == ROW_DISTURBED && !*why)
            snprintf(why, cap, "%s",
                     strncmp(row->validity, "disturbed: ", 11) ? row->validity
                                                               : row->validity + 11);
        if (row->mem_peak_bytes > 0 && (uint64_t)row->mem_peak_bytes > c->peak_bytes)
            c->peak_bytes = (uint64_t)row->mem_peak_bytes;
        describe_side(run, side);
    }
    point_samples_free(&samples);
    return st;
}

enum status gate_engines_pilot(struct gate_run *run, struct err *err)
{
    double turn_s[WORKER_MAX_STEPS] = {0};

    snprintf(run->doing, sizeof run->doing, "first timing");
    for (int side = 0; side < 2; side++)
        for (int step = 0; step < run->plan.n_steps; step++) {
            const uint64_t begin = clock_ns();
            char why[128] = "";
            double seconds;
            const enum status st =
                gate_engines_turn(run, side, step, &seconds, why, sizeof why, err);

            if (st)
                return st;
            turn_s[step] = fmax(turn_s[step], (double)(clock_ns() - begin) * 1e-9);
        }
    return gate_plan_fixed(
        &run->plan, run->s, turn_s,
        run->s->budget_s - (double)(clock_ns() - run->begin_ns) * 1e-9, err);
}
