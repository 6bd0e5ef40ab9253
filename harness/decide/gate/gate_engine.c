/* SPDX-License-Identifier: MIT
 *
 * gate_engine.c - a gate's sides that are other programs
 *
 * A side is a command as `--engine` takes it (harness/measure/engines/engine.h), its
 * NAME= left out if need be: llama-bench, llama-server, a template that prints its
 * figure, a server. Each turn is a point that engine_run() measures: the program is
 * started, and its samples' lower quartile is the turn's time. What disturbed the point
 * disturbed the round. Peak memory is judged as of two builds; the time to load is not,
 * as only servers have one.
 */
#include "harness/decide/gate/gate_sides.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "harness/measure/engines/engine.h"
#include "harness/measure/engines/engine_run.h"
#include "harness/measure/worker/model_worker.h"
#include "harness/rows/report_rows.h"

#define MIN_TURN_S 0.2 /* of measuring */
#define MAX_TURN_S 5

struct engines {
    struct gate_settings s; /* the gate's, less what other programs do not have */
    char text[2][ENGINE_MAX_TEXT + 1];
    bool prints[2];
    struct row row;
};

static struct engines *own(const struct gate_run *run)
{
    return run->own;
}

/* ---- which kind ------------------------------------------------------------------ */

static bool has_name(const char *text)
{
    const size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz"
                                  "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");

    return n > 0 && text[n] == '=';
}

/* As --engine takes it. */
static enum status name_engine(char *out, int side, const char *program,
                               struct err *err)
{
    char text[2 * ENGINE_MAX_TEXT];

    snprintf(text, sizeof text, "%s%s",
             has_name(program) ? ""
             : side            ? "B="
                               : "A=",
             program);
    return engine_absolute(text, out, ENGINE_MAX_TEXT + 1, side ? "--b" : "--a", err);
}

/* A file is a build of bench unless its help shows that it is llama-bench or
 * llama-server; what is no file is a command if it has more than one word. */
static enum status is_engine(const struct gate_run *run, int side, bool *is,
                             struct err *err)
{
    const char *program = run->program[side];
    char text[ENGINE_MAX_TEXT + 1];
    struct err why = ERR_INIT;

    (void)err;
    *is = name_engine(text, side, program, &why) == ST_OK &&
          (access(program, F_OK) ? has_name(program) || strchr(program, ' ')
                                 : engine_check(text, true, &why) == ST_OK);
    return ST_OK;
}

/* What other programs do not have is left out, unless somebody wants it. */
static enum status fit_settings(struct engines *x, struct gate_result *r,
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

static enum status open_engines(struct gate_run *run, struct err *err)
{
    struct engines *x = calloc(1, sizeof *x);

    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate");
    run->own = x;
    x->s = *run->s;
    for (int side = 0; side < 2; side++) {
        struct engine e;
        enum status st = name_engine(x->text[side], side, run->program[side], err);

        if (st == ST_OK)
            st = engine_parse(&e, x->text[side], side ? "--b" : "--a", err);
        if (st == ST_OK)
            st = engine_check(x->text[side], true, err);
        if (st)
            return st;
        x->prints[side] = engine_prints(&e);
    }
    run->s = &x->s;
    return fit_settings(x, run->r, err);
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
    snprintf(p->engine, sizeof p->engine, "%s", own(run)->text[side]);
}

static void on_phase(void *arg, const char *phase, double fraction)
{
    (void)phase, (void)fraction;
    gate_run_tick(arg, NULL, 0);
}

static void describe_side(struct gate_run *run, int side)
{
    struct gate_side *out = &run->r->side[side];

    snprintf(out->name, sizeof out->name, "%s", run->program[side]);
    snprintf(out->version, sizeof out->version, "%s", own(run)->row.engine_version);
}

/* A point that engine_run() measures: the program is started for it. */
static enum status turn(struct gate_run *run, int side, int step, int n,
                        struct gate_turn *turn, struct err *err)
{
    struct row *row = &own(run)->row;
    struct gate_charge *c = &run->charge[side];
    struct point_samples samples = {0};
    struct point p;

    (void)n; /* as many as the turn's time holds */
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
        turn->seconds = worker_quartile(samples.ms, samples.n) * 1e-3;
        if (side)
            turn->seconds /= 1 - run->s->slower;
        /* Where only the roof is too low, the times are not. */
        if (row_trust(row) == ROW_DISTURBED && !row_above_roof(row))
            snprintf(turn->why, sizeof turn->why, "%s",
                     strncmp(row->validity, "disturbed: ", 11) ? row->validity
                                                               : row->validity + 11);
        if (row->mem_peak_bytes > 0 && (uint64_t)row->mem_peak_bytes > c->peak_bytes)
            c->peak_bytes = (uint64_t)row->mem_peak_bytes;
        describe_side(run, side);
    }
    point_samples_free(&samples);
    return st;
}

/* A first turn of each step and side, which reads the model into memory. */
static enum status pilot(struct gate_run *run, struct err *err)
{
    double turn_s[WORKER_MAX_STEPS] = {0};

    for (int side = 0; side < 2; side++)
        for (int step = 0; step < run->plan.n_steps; step++) {
            const uint64_t begin = clock_ns();
            struct gate_turn ignored = {.seconds = 0};
            const enum status st = turn(run, side, step, 1, &ignored, err);

            if (st)
                return st;
            turn_s[step] = fmax(turn_s[step], (double)(clock_ns() - begin) * 1e-9);
        }
    return gate_plan_fixed(&run->plan, run->s, turn_s,
                           run->s->budget_s - gate_run_seconds(run), err);
}

const struct gate_sides gate_engines = {
    .what = "another program",
    .has_long_turns = true,
    .is = is_engine,
    .open = open_engines,
    .prepare = gate_run_prepare,
    .pilot = pilot,
    .turn = turn,
};
