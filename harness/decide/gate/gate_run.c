/* SPDX-License-Identifier: MIT
 *
 * gate_run.c - launches and rounds of two programs
 */
#include "harness/decide/gate/gate_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/clock.h"
#include "engine/base/random.h"
#include "harness/base/interrupt.h"
#include "harness/decide/gate/gate_sides.h"
#include "harness/measure/worker/model_worker.h"

#define MIN_TO_DESPAIR 8 /* rounds, before a machine counts as always disturbed */
#define MAX_AGAIN      4 /* times that a turn is played again, while its launch takes */
#define MAX_SLOWER     4 /* no more than this many times what the plan has for it */
#define LOOK_NS \
    50000000 /* how long the machine is looked at; several ticks of its counters */
#define MAX_LOOKS    40
#define MAX_RESTLESS 2 /* waits in vain in a row, before nothing is waited for */

/* ---- watching -------------------------------------------------------------------- */

double gate_run_seconds(const struct gate_run *run)
{
    return (double)(clock_ns() - run->begin_ns) * 1e-9;
}

bool gate_run_has_time(const struct gate_run *run)
{
    return gate_run_seconds(run) + run->next_launch_s <= run->s->budget_s;
}

/* How long the next launch may take. Where the machine has become busier than it was
 * when the plan was made, turns get shorter: a slowdown must still be able to show. */
static void keep_in_budget(struct gate_run *run, double last_s)
{
    const double left = run->s->budget_s - gate_run_seconds(run);
    const double slower = last_s / run->plan.launch_s;
    const size_t fewest = gate_plan_fewest(&run->s->rule, run->r->n_metrics);
    const size_t n = run->r->n_launches;

    /* one slow launch must not leave the rest of the budget unused */
    run->launches_s += last_s;
    run->next_launch_s =
        fmax(run->plan.launch_s, fmin(last_s, 2 * run->launches_s / (double)n));
    if (run->sides->can_shorten && slower > 1 && n < fewest &&
        left / last_s < (double)(fewest - n)) {
        gate_plan_shorten(&run->plan, &run->timing, slower, left, fewest - n);
        run->next_launch_s = run->plan.launch_s;
    }
}

void gate_run_tick(struct gate_run *run, const char *what, double fraction)
{
    char detail[128];

    if (what)
        snprintf(detail, sizeof detail, "%s, %s %.0f %%", run->doing, what,
                 100 * fraction);
    else
        snprintf(detail, sizeof detail, "%s", run->doing);
    progress_update(&run->progress, gate_run_seconds(run) / run->s->budget_s, detail);
}

/* Until nobody else computes; false if that took more than two seconds. */
static bool wait_for_calm(struct gate_run *run)
{
    char why[128];

    for (int i = 0; i < MAX_LOOKS && !interrupted(); i++) {
        struct noise noise;

        gate_run_tick(run, NULL, 0);
        noise_read(&noise, "");
        nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
        noise_since(&noise, &noise, "");
        if (!noise_disturbed(&noise, why, sizeof why))
            return true;
    }
    return false;
}

/* ---- launches -------------------------------------------------------------------- */

static void end(struct gate_run *run)
{
    for (int side = 0; side < 2 && run->sides->end; side++)
        run->sides->end(run, side);
}

enum status gate_run_start_both(struct gate_run *run, struct err *err)
{
    const int first = (int)(random_bits(&run->random) & 1);
    enum status st = run->sides->start(run, first, err);

    return st ? st : run->sides->start(run, !first, err);
}

enum status gate_run_open(struct gate_run *run, const struct gate_settings *s,
                          struct topology *topo, const char *const program[2],
                          struct gate_result *r, struct err *err)
{
    enum status st;

    run->s = s;
    run->topo = topo;
    run->r = r;
    run->program[0] = program[0];
    run->program[1] = program[1];
    run->csv = -1;
    run->calm = wait_for_calm;
    run->random = s->setup.seed;
    run->values = calloc(GATE_MAX_METRICS, sizeof *run->values);
    if (!run->values)
        return err_set(err, ST_NO_MEMORY, "no memory for a gate");
    st = gate_sides_find(run, err);
    if (st == ST_OK)
        st = run->sides->open(run, err);
    s = run->s;
    if (st == ST_OK)
        st = gate_plan_steps(&run->plan, s, err);
    if (st == ST_OK && run->sides->prepare)
        st = run->sides->prepare(run, err);
    if (st)
        return st;
    r->n_metrics = gate_plan_n_metrics(&run->plan, s);
    for (size_t i = 0; i < r->n_metrics; i++)
        gate_plan_metric(&run->plan, s, i, &r->metric[i]);
    run->begin_ns = clock_ns();
    progress_begin(&run->progress, "gate");
    run->progress.is_bound = true; /* it ends as soon as the verdict is clear */
    snprintf(run->doing, sizeof run->doing, "first timing");
    return run->sides->pilot(run, err);
}

void gate_run_close(struct gate_run *run)
{
    progress_end(&run->progress);
    if (run->sides && run->sides->close)
        run->sides->close(run);
    free(run->own);
    sandbox_destroy(run->sandbox);
    if (run->csv >= 0)
        close(run->csv);
    free(run->values);
    run->own = NULL;
    run->values = NULL;
    run->sandbox = NULL;
    run->csv = -1;
}

/* ---- rounds ---------------------------------------------------------------------- */

struct round {
    int side[4];
    bool has[WORKER_MAX_STEPS];
    double seconds[WORKER_MAX_STEPS][4];
    struct noise noise; /* sum of the turns' */
    char why[128];
    bool disturbed;
};

static int larger(int a, int b)
{
    return a > b ? a : b;
}

/* Adds the noise of a turn to that of its round. */
static void add_noise(struct noise *sum, const struct noise *turn)
{
    sum->wall_ns += turn->wall_ns;
    sum->steal_ns += turn->steal_ns;
    sum->busy_ns += turn->busy_ns;
    sum->self_ns += turn->self_ns;
    sum->wait_ns += turn->wait_ns;
    sum->n_involuntary += turn->n_involuntary;
    sum->n_major_faults += turn->n_major_faults;
    sum->n_minor_faults += turn->n_minor_faults;
    sum->throttled_ns += turn->throttled_ns;
    sum->n_throttled += turn->n_throttled;
    sum->n_refaults += turn->n_refaults;
    sum->pressure_ns += turn->pressure_ns;
    sum->suspended_ns += turn->suspended_ns;
    sum->n_cpus = turn->n_cpus;
    sum->our_steal_ns += turn->our_steal_ns;
    sum->our_busy_ns += turn->our_busy_ns;
    sum->n_our_cpus = larger(sum->n_our_cpus, turn->n_our_cpus);
    sum->n_threads = larger(sum->n_threads, turn->n_threads);
}

static bool is_late(const struct gate_run *run)
{
    return gate_run_seconds(run) - run->launch_begin_s >
           MAX_SLOWER * run->plan.launch_s;
}

/* A turn; a long one until it was not disturbed: on a busy machine hardly any round of
 * four long turns is undisturbed as a whole, and many a turn is. Where the machine does
 * not become calm, nothing is gained by waiting. */
static enum status play_turn(struct gate_run *run, int side, int step, int n,
                             struct gate_turn *turn, struct err *err)
{
    for (int left = MAX_AGAIN;; left--) {
        *turn = (struct gate_turn){.seconds = 0};
        const enum status st = run->sides->turn(run, side, step, n, turn, err);

        if (st || !run->sides->has_long_turns)
            return st;
        if (!*turn->why)
            noise_disturbed(&turn->noise, turn->why, sizeof turn->why);
        if (!*turn->why || !left || run->n_restless >= MAX_RESTLESS || is_late(run))
            return ST_OK;
        if (!run->calm(run)) {
            run->n_restless++;
            return ST_OK;
        }
        run->n_restless = 0;
        run->r->n_again++;
    }
}

/* One pass of a step's four turns, its samples' quartiles into seconds. */
static enum status play_pass(struct gate_run *run, struct round *round, int step,
                             double seconds[4], struct err *err)
{
    const int n = run->plan.n_samples[step] / run->plan.n_passes[step];

    for (int i = 0; i < 4; i++) {
        struct gate_turn turn;
        const enum status st = play_turn(run, round->side[i], step, n, &turn, err);

        if (st)
            return st;
        add_noise(&round->noise, &turn.noise);
        if (!*round->why)
            memcpy(round->why, turn.why, sizeof round->why);
        seconds[i] = turn.seconds;
    }
    return ST_OK;
}

static enum status play_step(struct gate_run *run, struct round *round, int step,
                             struct err *err)
{
    double taken[4][WORKER_MAX_SAMPLES];
    const int n_passes = run->plan.n_passes[step];

    for (int pass = 0; pass < n_passes; pass++) {
        double seconds[4];
        const enum status st = play_pass(run, round, step, seconds, err);

        if (st)
            return st;
        for (int turn = 0; turn < 4; turn++)
            taken[turn][pass] = seconds[turn];
    }
    for (int turn = 0; turn < 4; turn++)
        round->seconds[step][turn] = worker_quartile(taken[turn], (size_t)n_passes);
    return ST_OK;
}

/* The round of a launch after n_before of them, step after step: a step's turns lie as
 * close together as they can, since a machine's speed wanders within seconds. */
static enum status play_round(struct gate_run *run, struct round *round,
                              size_t n_before, struct err *err)
{
    const int first = (int)(random_bits(&run->random) & 1);

    *round = (struct round){.side = {first, !first, !first, first}};
    for (int step = 0; step < run->plan.n_steps; step++) {
        enum status st = ST_OK;

        round->has[step] = n_before < run->plan.n_rounds[step];
        if (round->has[step])
            st = play_step(run, round, step, err);
        if (st)
            return st;
    }
    run->n_played++;
    round->disturbed =
        *round->why || noise_disturbed(&round->noise, round->why, sizeof round->why);
    return ST_OK;
}

/* B's speed over A's, as a logarithm. */
static double log_ratio(const struct round *round, int step)
{
    double sum = 0;

    for (int turn = 0; turn < 4; turn++)
        sum += log(round->seconds[step][turn]) * (round->side[turn] ? -1 : 1);
    return sum / 2;
}

static void add_value(struct gate_values *values, int side, double value)
{
    values->v[side][values->n[side]++] = value;
}

/* Into the series and the sides' values. */
static void count_round(struct gate_run *run, const struct round *round)
{
    for (int i = 0; i < run->plan.n_steps; i++) {
        struct gate_series *s = &run->r->metric[i].series;
        const size_t launch = s->n_launches - 1;

        if (!round->has[i])
            continue;
        s->v[launch][s->n_rounds[launch]++] = log_ratio(round, i);
        for (int turn = 0; turn < 4; turn++)
            add_value(
                &run->values[i], round->side[turn],
                gate_plan_speed(run->s, &run->plan.step[i], round->seconds[i][turn]));
    }
    run->r->n_rounds++;
}

static enum status write_round(struct gate_run *run, const struct round *round,
                               size_t number, bool counted, struct err *err)
{
    struct gate_round_line line = {.launch = run->r->n_launches + 1,
                                   .round = number,
                                   .order = round->side[0] ? "BAAB" : "ABBA",
                                   .counted = counted,
                                   .n_values = 4,
                                   .note = round->why};

    for (int i = 0; i < run->plan.n_steps; i++)
        if (round->has[i]) {
            line.value[i] = round->seconds[i];
            line.log_ratio[i] = log_ratio(round, i);
        }
    return gate_rounds_write(run->csv, &line, run->r->metric, run->r->n_metrics, err);
}

/* More than half of all rounds are disturbed. */
static bool always_disturbed(const struct gate_run *run)
{
    return run->n_played >= MIN_TO_DESPAIR &&
           2 * run->troubles.n_rounds > run->n_played;
}

static enum status play_rounds(struct gate_run *run, struct err *err)
{
    const size_t n_rounds = gate_plan_rounds(&run->plan);
    size_t n_counted = 0, n_repeats = n_rounds;
    enum status st = ST_OK;

    for (size_t number = 1; n_counted < n_rounds && st == ST_OK; number++) {
        struct round round;
        bool leave_out;

        st = play_round(run, &round, n_counted, err);
        if (st)
            return st;
        leave_out = round.disturbed && n_repeats > 0 && !always_disturbed(run);
        if (round.disturbed)
            disturbances_add(&run->troubles, round.why, !leave_out);
        if (leave_out) {
            n_repeats--;
            run->r->n_disturbed++;
        } else {
            count_round(run, &round);
            n_counted++;
        }
        st = write_round(run, &round, number, !leave_out, err);
    }
    return st;
}

/* A metric with one value per side and launch, if they are known; less is better. */
static void count_once(struct gate_run *run, struct gate_round_line *line,
                       size_t metric, const double values[2])
{
    struct gate_series *s = &run->r->metric[metric].series;

    if (!(values[0] > 0 && values[1] > 0))
        return;
    line->value[metric] = values;
    line->log_ratio[metric] = log(values[0] / values[1]);
    s->v[s->n_launches - 1][0] = line->log_ratio[metric];
    s->n_rounds[s->n_launches - 1] = 1;
    for (int side = 0; side < 2; side++)
        add_value(&run->values[metric], side, values[side]);
}

static enum status count_launch(struct gate_run *run, struct err *err)
{
    double memory[2], load[2];
    struct gate_round_line line = {.launch = run->r->n_launches + 1,
                                   .order = "AB",
                                   .counted = true,
                                   .n_values = 2,
                                   .note = ""};
    size_t at = (size_t)run->plan.n_steps;

    for (int side = 0; side < 2; side++) {
        struct gate_charge *c = &run->charge[side];

        if (run->sides->charge)
            run->sides->charge(run, side, c);
        memory[side] = (double)c->peak_bytes / (1 << 20);
        load[side] = c->load_s;
    }
    if (run->s->memory)
        count_once(run, &line, at++, memory);
    if (run->s->load)
        count_once(run, &line, at, load);
    return gate_rounds_write(run->csv, &line, run->r->metric, run->r->n_metrics, err);
}

enum status gate_run_launch(struct gate_run *run, struct err *err)
{
    const double begin = gate_run_seconds(run);
    enum status st;

    run->launch_begin_s = begin;
    snprintf(run->doing, sizeof run->doing, "launch %zu, %zu fit the budget",
             run->r->n_launches + 1, run->plan.max_launches);
    memset(run->charge, 0, sizeof run->charge);
    st = run->sides->start ? gate_run_start_both(run, err) : ST_OK;
    if (st == ST_OK) {
        for (size_t i = 0; i < run->r->n_metrics; i++) {
            struct gate_series *s = &run->r->metric[i].series;

            s->n_rounds[s->n_launches++] = 0;
        }
        st = play_rounds(run, err);
    }
    if (st == ST_OK)
        st = count_launch(run, err);
    end(run);
    if (st == ST_OK) {
        run->r->n_launches++;
        keep_in_budget(run, gate_run_seconds(run) - begin);
    }
    return st;
}

void gate_run_sum_up(struct gate_run *run)
{
    struct gate_result *r = run->r;
    double *scratch = malloc(sizeof run->values->v[0]);

    r->seconds = gate_run_seconds(run);
    disturbances_text(&run->troubles, r->disturbed, sizeof r->disturbed);
    for (size_t i = 0; i < r->n_metrics; i++) {
        struct gate_metric *m = &r->metric[i];
        const struct gate_values *v = &run->values[i];

        m->n_launches = m->n_rounds = 0;
        for (size_t l = 0; l < m->series.n_launches; l++) {
            m->n_launches += m->series.n_rounds[l] > 0;
            m->n_rounds += m->series.n_rounds[l];
        }
        if (!scratch || !m->n_rounds)
            continue;
        m->a = stats_median(v->v[0], v->n[0], scratch);
        m->b = stats_median(v->v[1], v->n[1], scratch);
    }
    free(scratch);
}
