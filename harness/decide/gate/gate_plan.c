/* SPDX-License-Identifier: MIT
 *
 * gate_plan.c - steps and metrics from settings, the length of turns from a timing
 */
#include "harness/base/format.h"
#include "harness/decide/gate/gate_plan.h"

#include <math.h>
#include <string.h>

#define WANTED_LAUNCHES 40
/* A turn's samples of a step: minimum number and time, so that neither the clock
 * nor one interruption is all of it; and a maximum time, since a verdict counts
 * launches, not samples. */
#define MIN_DECODE  5
#define MIN_LONG    3 /* ... of those that are taken singly */
#define MIN_PREFILL 1
#define MIN_STEP_S  0.008
#define MAX_STEP_S  0.25
#define MAX_DECODE  32 /* ... if these take longer */
#define MAX_PREFILL 2
#define ASKING_S    0.002 /* of a turn, in addition to its samples */
#define SPARE       0.03  /* share of the budget kept in reserve */
#define HOPE        3     /* most speed-up over the first timing */

/* ---- steps and metrics ----------------------------------------------------------- */

static void add_step(struct gate_plan *p, enum worker_step_kind kind, int n_threads,
                     int n)
{
    if (p->n_steps < WORKER_MAX_STEPS)
        p->step[p->n_steps] = (struct worker_step){kind, n_threads, n, KERN_N_FMT};
    p->n_steps++;
}

enum status gate_plan_steps(struct gate_plan *p, const struct gate_settings *s,
                            struct err *err)
{
    memset(p, 0, sizeof *p);
    for (size_t t = 0; t < s->threads.n; t++) {
        for (size_t i = 0; i < s->ctx.n; i++)
            add_step(p, WORKER_DECODE, s->threads.v[t], s->ctx.v[i]);
        for (size_t i = 0; i < s->prefill.n; i++)
            add_step(p, WORKER_PREFILL, s->threads.v[t], s->prefill.v[i]);
    }
    for (size_t i = 0; i < s->kernels.n; i++) {
        add_step(p, WORKER_KERNEL, 1, 0);
        if (p->n_steps <= WORKER_MAX_STEPS)
            p->step[p->n_steps - 1].format = s->kernels.v[i];
    }
    if (!p->n_steps)
        return err_set(err, ST_USAGE,
                       "nothing to measure: neither context depths (ctx) nor prompt "
                       "lengths (prefill)");
    if (gate_plan_n_metrics(p, s) > WORKER_MAX_STEPS)
        return err_set(err, ST_USAGE,
                       "%zu metrics are more than the %d that a gate can judge; list "
                       "fewer threads, ctx or prefill",
                       gate_plan_n_metrics(p, s), WORKER_MAX_STEPS);
    return ST_OK;
}

size_t gate_plan_n_metrics(const struct gate_plan *p, const struct gate_settings *s)
{
    return (size_t)p->n_steps + s->memory + s->load;
}

void gate_plan_metric(const struct gate_plan *p, const struct gate_settings *s,
                      size_t i, struct gate_metric *m)
{
    const size_t n_steps = (size_t)p->n_steps;

    *m = (struct gate_metric){.margin = s->rule.margin, .a = NAN, .b = NAN};
    snprintf(m->unit, sizeof m->unit, "tok/s");
    if (i < n_steps) {
        const struct worker_step *step = &p->step[i];
        const char *ending = plural(step->n_threads, "s");

        if (s->over_http) {
            snprintf(m->name, sizeof m->name,
                     step->kind == WORKER_DECODE ? "TPOT, depth %d" : "TTFT, %d tokens",
                     step->n);
            snprintf(m->unit, sizeof m->unit, "ms");
            m->less_is_better = true;
        } else if (step->kind == WORKER_KERNEL) {
            snprintf(m->name, sizeof m->name, "gemv of %s in the cache, 1 thread",
                     kern_format_info(step->format)->name);
            snprintf(m->unit, sizeof m->unit, "GB/s");
        } else if (step->kind == WORKER_DECODE)
            snprintf(m->name, sizeof m->name, "decode, depth %d, %d thread%s", step->n,
                     step->n_threads, ending);
        else
            snprintf(m->name, sizeof m->name, "prefill, %d tokens, %d thread%s",
                     step->n, step->n_threads, ending);
    } else {
        const bool is_memory = i == n_steps && s->memory;

        snprintf(m->name, sizeof m->name, is_memory ? "peak memory" : "load time");
        snprintf(m->unit, sizeof m->unit, is_memory ? "MiB" : "s");
        m->less_is_better = true;
        m->margin = is_memory ? s->margin_memory : s->margin_load;
    }
}

double gate_plan_speed(const struct gate_settings *s, const struct worker_step *step,
                       double seconds)
{
    if (s->over_http)
        return seconds * 1e3;
    if (step->kind == WORKER_KERNEL)
        return worker_kernel_bytes(step->format) * 1e-9 / seconds;
    return (step->kind == WORKER_PREFILL ? step->n : 1) / seconds;
}

/* ---- lengths --------------------------------------------------------------------- */

size_t gate_plan_fewest(const struct gate_rule *rule, size_t n_metrics)
{
    size_t n = 1;

    while (ldexp(1, -(int)n) > rule->alpha_fail / (double)gate_n_interim(n) /
                                   (double)(n_metrics ? n_metrics : 1))
        n++;
    return n;
}

static int within(double n, int least, int most)
{
    return n < least ? least : n > most ? most : (int)n;
}

static int min_samples(const struct worker_step *step, double sample_s)
{
    return within(ceil(MIN_STEP_S / sample_s),
                  step->kind == WORKER_PREFILL ? MIN_PREFILL
                  : sample_s >= WORKER_LONG_S  ? MIN_LONG
                                               : MIN_DECODE,
                  WORKER_MAX_SAMPLES);
}

static int max_samples(const struct worker_step *step, double sample_s)
{
    return within(ceil(MAX_STEP_S / sample_s),
                  step->kind == WORKER_PREFILL ? MAX_PREFILL : MAX_DECODE,
                  WORKER_MAX_SAMPLES);
}

/* Seconds of a round of a step, with the samples that do not count: one of each turn,
 * or, where they are long, one of a side when it goes back to the step's depth. */
static double round_seconds(const struct gate_plan *p, const struct gate_timing *t,
                            int i)
{
    const double asking_s = t->asking_s[i] > 0 ? t->asking_s[i] : ASKING_S;
    const double ignored = p->step[i].kind == WORKER_PREFILL ? 0
                           : p->n_passes[i] > 1              ? 0.5
                                                             : 1;

    return 4 *
           (p->n_passes[i] * asking_s + (p->n_samples[i] + ignored) * t->sample_s[i]);
}

/* Samples between the fewest (0) and the most (1). */
static void set_samples(struct gate_plan *p, const struct gate_timing *t, double share)
{
    p->launch_s = t->launch_s;
    for (int i = 0; i < p->n_steps; i++) {
        const double sample_s = t->sample_s[i];
        const int least = min_samples(&p->step[i], sample_s);
        const int most = max_samples(&p->step[i], sample_s);

        p->n_samples[i] = most > least ? least + (int)(share * (most - least)) : least;
        p->n_passes[i] =
            sample_s >= WORKER_LONG_S && !t->is_undivided ? p->n_samples[i] : 1;
        p->round_s[i] = round_seconds(p, t, i);
        p->launch_s += (double)p->n_rounds[i] * p->round_s[i];
    }
}

static size_t launches_in(const struct gate_plan *p, double left_s)
{
    const double n = floor(left_s / p->launch_s);

    return n > GATE_MAX_LAUNCHES ? GATE_MAX_LAUNCHES : n > 0 ? (size_t)n : 0;
}

/* The longest turns with which left_s holds the launches, or the shortest. */
static void stretch(struct gate_plan *p, const struct gate_timing *t, double left_s,
                    size_t wanted)
{
    double lo = 0, hi = 1;

    set_samples(p, t, 1);
    if (launches_in(p, left_s) >= wanted)
        return;
    for (int i = 0; i < 20; i++) {
        const double mid = (lo + hi) / 2;

        set_samples(p, t, mid);
        *(launches_in(p, left_s) >= wanted ? &lo : &hi) = mid;
    }
    set_samples(p, t, lo);
}

/* Half the rounds of the step that takes the most of a launch; false: each has one. */
static bool halve_rounds(struct gate_plan *p)
{
    int longest = -1;
    double most = 0;

    for (int i = 0; i < p->n_steps; i++) {
        const double seconds = (double)p->n_rounds[i] * p->round_s[i];

        if (p->n_rounds[i] > 1 && seconds > most) {
            most = seconds;
            longest = i;
        }
    }
    if (longest < 0)
        return false;
    p->n_rounds[longest] /= 2;
    return true;
}

/* Turns, then rounds, until left_s holds enough launches, as far as that goes. */
static void fit(struct gate_plan *p, const struct gate_timing *t, double left_s,
                size_t wanted, size_t enough)
{
    stretch(p, t, left_s, wanted);
    while (launches_in(p, left_s) < enough && halve_rounds(p))
        stretch(p, t, left_s, wanted);
}

size_t gate_plan_rounds(const struct gate_plan *p)
{
    size_t most = 0;

    for (int i = 0; i < p->n_steps; i++)
        if (p->n_rounds[i] > most)
            most = p->n_rounds[i];
    return most;
}

void gate_plan_shorten(struct gate_plan *p, struct gate_timing *t, double slower,
                       double left_s, size_t wanted)
{
    t->launch_s *= slower;
    for (int i = 0; i < p->n_steps; i++) {
        t->sample_s[i] *= slower;
        t->asking_s[i] *= slower;
    }
    fit(p, t, left_s, wanted, wanted);
}

/* How many launches left_s holds, and whether they are enough. */
static enum status count_launches(struct gate_plan *p, const struct gate_settings *s,
                                  double left_s, struct err *err)
{
    const size_t fewest = gate_plan_fewest(&s->rule, gate_plan_n_metrics(p, s));

    p->max_launches = launches_in(p, left_s - SPARE * s->budget_s);
    p->need_s =
        (s->budget_s - left_s + (double)fewest * p->launch_s) / (1 - SPARE) * 1.1;
    if (HOPE * p->max_launches >= fewest)
        return ST_OK;
    return err_set(err, ST_USAGE,
                   "a budget of %s holds %zu launches of this model, and a slowdown "
                   "shows after %zu at the earliest: give it --budget %.0fm, or a "
                   "smaller model, or a shorter prefill",
                   duration_text(s->budget_s).text, p->max_launches, fewest,
                   ceil(p->need_s / 60));
}

enum status gate_plan_fit(struct gate_plan *p, const struct gate_settings *s,
                          const struct gate_timing *t, double left_s, struct err *err)
{
    for (int i = 0; i < p->n_steps; i++)
        p->n_rounds[i] = (size_t)s->n_rounds;
    /* Launches count for more than their rounds. */
    fit(p, t, left_s - SPARE * s->budget_s, WANTED_LAUNCHES, WANTED_LAUNCHES / 2);
    return count_launches(p, s, left_s, err);
}

double gate_plan_turn_s(const struct gate_plan *p, const struct gate_settings *s)
{
    return s->budget_s / (4 * p->n_steps * WANTED_LAUNCHES);
}

enum status gate_plan_fixed(struct gate_plan *p, const struct gate_settings *s,
                            const double *turn_s, double left_s, struct err *err)
{
    p->launch_s = 0;
    for (int i = 0; i < p->n_steps; i++) {
        p->n_rounds[i] = 1;
        p->n_passes[i] = p->n_samples[i] = 1;
        p->round_s[i] = 4 * turn_s[i];
        p->launch_s += p->round_s[i];
    }
    return count_launches(p, s, left_s, err);
}
