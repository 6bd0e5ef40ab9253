/* SPDX-License-Identifier: MIT
 *
 * tune_rounds.c - samples, and rounds that count or do not
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "harness/stats/stats.h"
#include "harness/measure/tune/tuner.h"

#define OPEN_TOKENS 5    /* after opening, a sample of the weights' setting */
#define LEARN       0.2  /* weight of the last round */
#define MAX_WASTE   0.25 /* of the budget, in rounds that do not count */

double tuner_now(const struct tuner *t)
{
    return t->m->now(t->m->arg);
}

double tuner_left(const struct tuner *t, double share)
{
    return t->begin + share * t->p->budget_s - tuner_now(t);
}

enum status tuner_check(const struct tuner *t, struct err *err)
{
    if (t->m->stop && t->m->stop(t->m->arg))
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (t->m->progress)
        t->m->progress(t->m->arg,
                       t->tried > 0 ? t->tried
                                    : (tuner_now(t) - t->begin) / t->p->budget_s,
                       t->what);
    return ST_OK;
}

enum status tuner_step(struct tuner *t, const char *what, struct err *err)
{
    t->what = what;
    return tuner_check(t, err);
}

/* ---- samples ------------------------------------------------------------------ */

/* Prompts are as long as the longest batch, or all batches would be alike. */
static int longest_batch(const struct tuner *t)
{
    long long value[TUNE_MAX_VALUES], most = t->r->n_prompt;
    const size_t n =
        tune_values(&t->p->space, &t->r->base, TUNE_BATCH, KERN_N_FMT, value);

    for (size_t i = 0; i < n; i++)
        most = value[i] > most ? value[i] : most;
    return (int)most;
}

struct tuner_work tuner_work_of(const struct tuner *t, enum tune_setting setting)
{
    return (struct tuner_work){tune_setting_info(setting)->phase, setting == TUNE_BATCH
                                                                      ? longest_batch(t)
                                                                      : t->r->n_prompt};
}

/* On the quiet machine, as timed before the search. */
static double quiet_cost(const struct tuner *t, const struct tuner_work *work)
{
    const double prompt_s = t->prefill_s * work->n_prompt;

    return work->phase == TUNE_DECODE ? t->r->token_s
           : work->phase == TUNE_PREFILL
               ? prompt_s
               : t->r->open_s + (OPEN_TOKENS + 1) * t->r->token_s + prompt_s;
}

double tuner_cost(const struct tuner *t, const struct tuner_work *work)
{
    return quiet_cost(t, work) * fmax(1, t->slower[work->phase]);
}

/* Rounds must get shorter where the machine is busier than it was at first, or they
 * would be too few. */
static void learn_cost(struct tuner *t, const struct tuner_work *work, double n_samples,
                       double seconds)
{
    double *slower = &t->slower[work->phase];

    *slower += LEARN * (seconds / (n_samples * quiet_cost(t, work)) - *slower);
}

int tuner_passes(const struct tuner *t, const struct tuner_work *work, size_t n,
                 double seconds)
{
    const size_t held = t->n_max / n;
    const double most = held < TUNER_MAX_PASSES ? (double)held : TUNER_MAX_PASSES;

    if (work->phase == TUNE_BOTH)
        return 1;
    return (int)fmax(1, fmin(most, seconds / ((double)n * tuner_cost(t, work))));
}

/* The weights' setting: opened anew, then tokens and a prompt, both phases alike. */
static enum status sample_opened(struct tuner *t, const struct tune_setup *s,
                                 struct tune_sample *out, struct err *err)
{
    double scratch[OPEN_TOKENS], token[OPEN_TOKENS];
    struct tune_sample prompt;
    enum status st = t->m->open(t->m->arg, s, err);

    for (int i = -1; i < OPEN_TOKENS && st == ST_OK; i++) {
        st = t->m->decode(t->m->arg, s, out, err);
        if (i >= 0)
            token[i] = out->seconds;
    }
    if (st == ST_OK)
        st = t->m->prefill(t->m->arg, s, t->r->n_prompt, &prompt, err);
    if (st == ST_OK)
        out->seconds = sqrt(stats_median(token, OPEN_TOKENS, scratch) * prompt.seconds);
    return st;
}

static enum status sample(struct tuner *t, const struct tuner_work *work,
                          const struct tune_setup *s, struct tune_sample *out,
                          struct err *err)
{
    const enum status st = tuner_check(t, err);

    if (st)
        return st;
    if (work->phase == TUNE_BOTH)
        return sample_opened(t, s, out, err);
    if (work->phase == TUNE_DECODE)
        return t->m->decode(t->m->arg, s, out, err);
    return t->m->prefill(t->m->arg, s, work->n_prompt, out, err);
}

/* ---- rounds ------------------------------------------------------------------- */

static void middle(struct tune_sample *out, const struct tune_sample *taken, int n)
{
    double v[TUNER_MAX_PASSES], scratch[TUNER_MAX_PASSES];

    for (int i = 0; i < n; i++)
        v[i] = taken[i].seconds;
    out->seconds = stats_median(v, (size_t)n, scratch);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        for (int i = 0; i < n; i++)
            v[i] = taken[i].fmt_s[fmt];
        out->fmt_s[fmt] = stats_median(v, (size_t)n, scratch);
    }
}

/* Where the machine is never quiet the budget must not go into rounds that do not
 * count. */
static bool round_counts(struct tuner *t, double begin)
{
    char why[128] = "";
    bool left_out;

    t->r->n_rounds++;
    if (!t->m->disturbed || !t->m->disturbed(t->m->arg, why, sizeof why))
        return true;
    left_out = t->wasted_s < MAX_WASTE * t->p->budget_s;
    disturbances_add(&t->r->disturbances, why, !left_out);
    if (left_out)
        t->wasted_s += tuner_now(t) - begin;
    return !left_out;
}

enum status tuner_round(struct tuner *t, const struct tuner_work *work,
                        const struct tune_setup *setup, size_t n, int n_passes,
                        struct tune_sample *out, bool *counts, struct err *err)
{
    const double begin = tuner_now(t);

    assert(n * (size_t)n_passes <= t->n_max);
    if (t->m->watch)
        t->m->watch(t->m->arg);
    /* Forth and back, so that a drift within the round affects all alike. */
    for (int pass = 0; pass < n_passes; pass++)
        for (size_t i = 0; i < n; i++) {
            const size_t k = pass % 2 ? n - 1 - i : i;
            const enum status st =
                sample(t, work, &setup[k],
                       &t->taken[k * (size_t)n_passes + (size_t)pass], err);

            if (st)
                return st;
        }
    for (size_t k = 0; k < n; k++)
        middle(&out[k], &t->taken[k * (size_t)n_passes], n_passes);
    learn_cost(t, work, (double)n * n_passes, tuner_now(t) - begin);
    *counts = round_counts(t, begin);
    return ST_OK;
}
