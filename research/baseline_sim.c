/* SPDX-License-Identifier: MIT
 *
 * baseline_sim.c - baseline gates on invented histories
 */
#include "research/baseline_sim.h"

#include <assert.h>
#include <math.h>

#include "engine/base/random.h"
#include "harness/base/interrupt.h"
#include "harness/base/progress.h"
#include "harness/stats/stats.h"
#include "harness/decide/history/baseline_rule.h"
#include "harness/decide/history/change.h"

#define MAX_CHANGES 8
#define LEVEL       0.01
#define SIGMA       0.01

/* The part of a run's noise that is its session's. */
static double draw_session(const struct sim_baseline *b, uint64_t *random)
{
    return b->sessions ? sim_history_noise(b->noise, b->sigma * sqrt(0.5), random) : 0;
}

static double draw_run(const struct sim_baseline *b, double session, uint64_t *random)
{
    const double sigma = b->sessions ? b->sigma * sqrt(0.5) : b->sigma;

    return session + sim_history_noise(b->noise, sigma, random);
}

/* The run that begins at turn `at` of the trace. */
static double traced_run(const struct gate_trace *t, size_t at)
{
    double v[SIM_TURNS_OF_RUN], scratch[SIM_TURNS_OF_RUN];

    for (size_t i = 0; i < SIM_TURNS_OF_RUN; i++)
        v[i] = -t->log_time[at + i];
    return stats_median(v, SIM_TURNS_OF_RUN, scratch);
}

static void draw_traced(const struct sim_baseline *b, double *past, double *fresh,
                        size_t n_fresh, uint64_t *random)
{
    const size_t all = n_fresh * SIM_TURNS_OF_RUN, n = b->trace->n;
    const size_t first = random_bits(random) % (n - all + 1);

    for (size_t i = 0; i < b->n_past; i++)
        past[i] =
            traced_run(b->trace, random_bits(random) % (n - SIM_TURNS_OF_RUN + 1));
    for (size_t i = 0; i < n_fresh; i++)
        fresh[i] = traced_run(b->trace, b->apart ? random_bits(random) % (n - all + 1)
                                                 : first + i * SIM_TURNS_OF_RUN);
}

static void draw(const struct sim_baseline *b, double *past, double *fresh,
                 size_t n_fresh, uint64_t *random)
{
    for (size_t i = 0; i < b->n_past; i++)
        past[i] = draw_run(b, draw_session(b, random), random);
    double session = draw_session(b, random);
    for (size_t i = 0; i < n_fresh; i++) {
        fresh[i] = draw_run(b, session, random);
        session = b->apart ? draw_session(b, random) : session;
    }
}

static enum status play(enum gate_verdict *verdict, const struct sim_baseline *b,
                        uint64_t seed, struct err *err)
{
    const struct gate_rule rule = gate_rule_default();
    const size_t n_fresh = BASELINE_FRESH;
    double v[SIM_MAX_PAST], fresh[BASELINE_FRESH], scratch[BASELINE_FRESH];
    struct change c[MAX_CHANGES];
    struct baseline_effect e;
    enum gate_verdict of_metric;
    size_t n_changes;

    (b->trace ? draw_traced : draw)(b, v, fresh, n_fresh, &seed);
    for (size_t i = 0; i < n_fresh; i++)
        fresh[i] += log1p(-b->slowdown);
    if (change_points(c, MAX_CHANGES, &n_changes, v, b->n_past, LEVEL, seed, err))
        return err->code;
    const size_t from = n_changes ? c[n_changes - 1].at : 0;
    *verdict = GATE_UNCLEAR;
    if (b->n_past - from < BASELINE_MIN_RUNS)
        return ST_OK;
    if (!b->apart)
        fresh[0] = stats_median(fresh, n_fresh, scratch);
    baseline_judge(&e, v + from, b->n_past - from, fresh, b->apart ? n_fresh : 1,
                   &rule);
    return baseline_decide(verdict, &of_metric, &rule, &e, &n_fresh, 1, err);
}

enum status sim_baseline_run(struct sim_verdicts *v, const struct sim_baseline *b,
                             size_t n, uint64_t seed, struct err *err)
{
    assert(b->n_past >= BASELINE_MIN_RUNS && b->n_past <= SIM_MAX_PAST);
    *v = (struct sim_verdicts){0};
    for (; v->n < n; v->n++) {
        enum gate_verdict verdict;
        const enum status st = play(&verdict, b, random_bits(&seed), err);

        if (st)
            return st;
        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
        v->n_fail += verdict == GATE_FAIL;
        v->n_pass += verdict == GATE_PASS;
    }
    return ST_OK;
}

static enum status print_row(FILE *f, struct sim_baseline b, size_t n, uint64_t seed,
                             struct err *err)
{
    static const struct {
        double slowdown;
        bool apart;
    } cells[] = {{0, false},   {0.02, false}, {0.05, false},
                 {0.1, false}, {0, true},     {0.05, true}};

    fprintf(f, "| %s%s | %zu |", b.trace ? "recorded: " : "",
            b.trace      ? b.trace->name
            : b.sessions ? "sessions"
                         : history_noise_name(b.noise),
            b.n_past);
    for (size_t i = 0; i < sizeof cells / sizeof cells[0]; i++) {
        struct sim_verdicts v;

        b.slowdown = cells[i].slowdown;
        b.apart = cells[i].apart;
        const enum status st = sim_baseline_run(&v, &b, n, random_bits(&seed), err);
        if (st)
            return st;
        fprintf(f, " %.1f / %.1f |", 100 * (double)v.n_fail / (double)v.n,
                100 * (double)v.n_pass / (double)v.n);
    }
    fputc('\n', f);
    return ST_OK;
}

enum status sim_baselines_print(FILE *f, const struct gate_trace *traces,
                                size_t n_traces, size_t n, uint64_t seed,
                                struct err *err)
{
    static const size_t pasts[] = {BASELINE_MIN_RUNS, 10, 20, 40};
    const size_t n_pasts = sizeof pasts / sizeof pasts[0];
    const size_t n_rows = (HISTORY_N_NOISES + 1 + n_traces) * n_pasts;
    struct progress progress;
    enum status st = ST_OK;

    fprintf(
        f,
        "\nBaseline gates, margin %.0f %%, noise of %.0f %% from run to run, %d new "
        "runs; %zu gates each: fails / passes, in percent.\n\n"
        "| noise | stored runs | as fast | 2 %% slower | 5 %% slower | 10 %% slower | "
        "as fast, three nights | 5 %% slower, three nights |\n"
        "|---|---|---|---|---|---|---|---|\n",
        100 * gate_rule_default().margin, 100 * SIGMA, BASELINE_FRESH, n);
    progress_begin(&progress, "gates");
    for (size_t i = 0; i < n_rows && st == ST_OK; i++) {
        const size_t k = i / n_pasts;
        const struct sim_baseline b = {
            .noise = k < HISTORY_N_NOISES ? (enum history_noise)k : HISTORY_GAUSSIAN,
            .sessions = k == HISTORY_N_NOISES,
            .trace = k > HISTORY_N_NOISES ? &traces[k - HISTORY_N_NOISES - 1] : NULL,
            .sigma = SIGMA,
            .n_past = pasts[i % n_pasts]};

        st = print_row(f, b, n, random_bits(&seed), err);
        progress_update(&progress, (double)i / (double)n_rows, NULL);
    }
    progress_end(&progress);
    return st;
}
