/* SPDX-License-Identifier: MIT
 *
 * gate_builds.c - turns of two builds of bench, each a worker that waits for its next
 */
#include "harness/decide/gate/gate_sides.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "harness/measure/worker/model_worker.h"

#define PILOT_S   0.05 /* of a step */
#define PILOT_MAX 50

struct builds {
    struct model_worker worker[2];
    double warm_s[WORKER_MAX_STEPS]; /* samples of the last uncounted turn */
};

static struct model_worker *client(const struct gate_run *run, int side)
{
    return &((struct builds *)run->own)->worker[side];
}

static enum status open_builds(struct gate_run *run, struct err *err)
{
    run->own = calloc(1, sizeof(struct builds));
    return run->own ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for a gate");
}

static enum status prepare(struct gate_run *run, struct err *err)
{
    enum status st = ST_OK;

    for (int side = 0; side < 2 && st == ST_OK; side++)
        st = worker_check_program(side ? "B" : "A", run->program[side], err);
    if (st == ST_OK)
        st = gate_run_prepare(run, err);
    if (st == ST_OK && run->s->setup.mem_limit)
        st = sandbox_create(&run->sandbox, "", run->s->setup.mem_limit, err);
    return st;
}

static void tick(void *arg, const char *what, double fraction)
{
    gate_run_tick(arg, what, fraction);
}

/* An uncounted turn: it touches pages first, and gives an injected slowdown its usual
 * sample. A prefill that is known to be long needs none. */
static enum status start(struct gate_run *run, int side, struct err *err)
{
    const struct model_worker_params p = {.who = side ? "B" : "A",
                                          .program = run->program[side],
                                          .timeout_s = run->s->timeout_s,
                                          .sandbox = run->sandbox,
                                          .tick = tick,
                                          .arg = run};
    int n[WORKER_MAX_STEPS];
    struct noise noise;
    enum status st = model_worker_start(client(run, side), &p, &run->open[side], err);

    for (int i = 0; i < run->plan.n_steps; i++)
        n[i] = run->plan.step[i].kind != WORKER_PREFILL ||
               run->timing.sample_s[i] < WORKER_LONG_S;
    return st ? st
              : model_worker_sample(client(run, side), n, run->plan.n_steps,
                                    ((struct builds *)run->own)->warm_s, &noise, err);
}

static void end(struct gate_run *run, int side)
{
    model_worker_close(client(run, side));
}

static void end_both(struct gate_run *run)
{
    end(run, 0);
    end(run, 1);
}

static void describe(struct gate_run *run, int side)
{
    const struct model_worker *c = client(run, side);
    struct gate_side *out = &run->r->side[side];

    snprintf(out->name, sizeof out->name, "%s", run->program[side]);
    snprintf(out->version, sizeof out->version, "%.*s",
             (int)strcspn(c->worker.version, " "), c->worker.version);
    snprintf(out->commit, sizeof out->commit, "%s", c->worker.commit);
    snprintf(out->compiler, sizeof out->compiler, "%s", c->worker.compiler);
}

/* What a sample of each step takes, on the slower side. */
static enum status time_samples(struct gate_run *run, const double *about,
                                double *seconds, struct err *err)
{
    int n[WORKER_MAX_STEPS];
    enum status st = ST_OK;

    for (int i = 0; i < run->plan.n_steps; i++) {
        const double fitting = ceil(PILOT_S / about[i]);

        n[i] = fitting < PILOT_MAX ? (int)fitting : PILOT_MAX;
        seconds[i] = 0;
    }
    for (int side = 0; side < 2 && st == ST_OK; side++) {
        double own[WORKER_MAX_STEPS];
        struct noise noise;

        st = model_worker_sample(client(run, side), n, run->plan.n_steps, own, &noise,
                                 err);
        for (int i = 0; i < run->plan.n_steps && st == ST_OK; i++)
            seconds[i] = fmax(seconds[i], own[i]);
    }
    return st;
}

/* An uncounted launch, for the page cache; the second launch is timed. */
static enum status pilot(struct gate_run *run, struct err *err)
{
    struct gate_timing *t = &run->timing;
    enum status st = gate_run_start_both(run, err);

    if (st == ST_OK) {
        describe(run, 0);
        describe(run, 1);
        st = time_samples(run, ((struct builds *)run->own)->warm_s, t->sample_s, err);
    }
    end_both(run);

    const uint64_t begin = clock_ns();
    if (st == ST_OK)
        st = gate_run_start_both(run, err);
    end_both(run);
    t->launch_s = (double)(clock_ns() - begin) * 1e-9;
    return st ? st
              : gate_plan_fit(&run->plan, run->s, t,
                              run->s->budget_s - gate_run_seconds(run), err);
}

static enum status turn(struct gate_run *run, int side, int step, int n,
                        struct gate_turn *turn, struct err *err)
{
    int n_of[WORKER_MAX_STEPS] = {0};
    double all[WORKER_MAX_STEPS];

    n_of[step] = n;
    const enum status st = model_worker_sample(
        client(run, side), n_of, run->plan.n_steps, all, &turn->noise, err);
    if (st == ST_OK) {
        gate_run_tick(run, NULL, 0);
        turn->seconds = all[step];
    }
    return st;
}

static void charge(struct gate_run *run, int side, struct gate_charge *charge)
{
    struct model_worker *c = client(run, side);

    charge->peak_bytes = c->peak_bytes;
    charge->load_s = worker_quartile(c->ready.load_s, (size_t)c->ready.n_loads);
}

static void close_builds(struct gate_run *run)
{
    if (run->own)
        end_both(run);
}

const struct gate_sides gate_builds = {
    .what = "a build of bench",
    .can_shorten = true,
    .open = open_builds,
    .prepare = prepare,
    .pilot = pilot,
    .start = start,
    .turn = turn,
    .charge = charge,
    .end = end,
    .close = close_builds,
};
