/* SPDX-License-Identifier: MIT
 *
 * tune.c - the search, setting after setting, within a budget
 */
#include "harness/measure/tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/measure/tune/tuner.h"

#define FIRST_PROMPT  16 /* tokens: how long does prefill take at all? */
#define MAX_PROMPT    256
#define COST_SAMPLES  5   /* the quickest is what a sample takes */
#define PASSES_WANTED 60  /* of prefill within a setting's share, at least */
#define ROUND_S       0.1 /* of two candidates: shorter ones show little about noise */

/* ---- one setting ----------------------------------------------------------------- */

/* A setting that is searched again has its outcome already. */
static struct tune_outcome *new_outcome(struct tune_result *r,
                                        enum tune_setting setting, enum kern_format fmt)
{
    struct tune_outcome *o = (struct tune_outcome *)tune_find(r, setting, fmt);

    if (!o)
        o = &r->outcome[r->n++];
    memset(o, 0, sizeof *o);
    o->setting = setting;
    o->fmt = fmt;
    return o;
}

static enum status open_contest(struct tuner *t, enum tune_setting setting,
                                enum kern_format fmt, struct err *err)
{
    struct tune_outcome *o = new_outcome(t->r, setting, fmt);
    size_t index[TUNE_MAX_VALUES];

    o->n = tune_values(&t->p->space, &t->r->chosen, setting, fmt, o->value);
    for (size_t i = 0; i < o->n; i++)
        index[i] = i;
    return group_add(t, &t->group[setting], o, index, o->n, err);
}

/* The fewest samples of a setting that could decide anything. */
static double min_samples(size_t most)
{
    return (most > 2 ? 2 * (double)most : 0) + 2 * SEQUENTIAL_MIN_DUEL;
}

static bool too_short(struct tuner *t, const struct tune_group *g, double seconds)
{
    const struct tuner_work work = tuner_work_of(t, g->setting);
    const double cost = tuner_cost(t, &work);
    const double n = min_samples(g->most);
    const double need = n * cost;

    if (g->most < 2 || need <= seconds)
        return false;
    for (size_t i = 0; i < g->n; i++)
        snprintf(g->contest[i].o->note, sizeof g->contest[i].o->note,
                 "not tried: %.0f samples of %.2g s each do not fit its %.3g s of the "
                 "budget; --budget %.0f would do",
                 n, cost, seconds > 0 ? seconds : 0,
                 ceil((t->p->budget_s + (need - seconds) / TUNER_SEARCH_END) / 10) *
                     10);
    return true;
}

static double share_of(const struct tuner *t, enum tune_setting setting)
{
    double sum = 0;

    for (int k = (int)setting; k < TUNE_N_SETTINGS; k++)
        sum += tune_setting_info((enum tune_setting)k)->share;
    return tuner_left(t, TUNER_SEARCH_END) * tune_setting_info(setting)->share / sum;
}

/* The time that a sequential comparison of a setting usually takes; with long samples
 * its share of the budget must do. */
static double usual_seconds(const struct tuner *t, enum tune_setting setting)
{
    const struct tuner_work work = tuner_work_of(t, setting);
    const double cost = tuner_cost(t, &work);

    return fmin(fmax(TUNER_USUAL_SAMPLES * cost, TUNER_USUAL_SAMPLES / 2 * ROUND_S),
                share_of(t, setting));
}

/* Its share of what is left of the search, or all that later settings will not need. */
static double setting_seconds(const struct tuner *t, enum tune_setting setting)
{
    const double left = tuner_left(t, TUNER_SEARCH_END);
    double later = 0;

    for (int k = (int)setting + 1; k < TUNE_N_SETTINGS; k++)
        later += usual_seconds(t, (enum tune_setting)k);
    return left > 0 ? fmax(share_of(t, setting), left - later) : 0;
}

/* A round that does not count costs the budget, but not the setting. */
static enum status play(struct tuner *t, struct tune_group *g, double seconds,
                        struct err *err)
{
    const struct tuner_work work = tuner_work_of(t, g->setting);
    const double deadline = tuner_now(t) + seconds - t->wasted_s;
    const double round_s = fmin(ROUND_S, 2 * seconds / TUNER_USUAL_SAMPLES);
    enum status st = ST_OK;

    for (size_t n_slots; st == ST_OK && (n_slots = group_next(g)) > 0;) {
        group_fit(t, g, round_s);
        if (tuner_now(t) + (double)n_slots * g->n_passes * tuner_cost(t, &work) >
            deadline + t->wasted_s)
            break;
        st = group_play(t, g, n_slots, err);
    }
    return st;
}

enum status tuner_search(struct tuner *t, enum tune_setting setting, double seconds,
                         struct err *err)
{
    const struct tune_setting_info *info = tune_setting_info(setting);
    struct tune_group *g = &t->group[setting];
    enum status st = tuner_step(t, info->name, err), closed;

    g->sampled = false;
    for (int fmt = 0; info->per_format && fmt < KERN_N_FMT && st == ST_OK; fmt++)
        if (t->p->space.formats[fmt])
            st = open_contest(t, setting, (enum kern_format)fmt, err);
    if (!info->per_format && st == ST_OK)
        st = open_contest(t, setting, KERN_N_FMT, err);
    if (st == ST_OK && !too_short(t, g, seconds))
        st = play(t, g, seconds, err);
    closed = group_close(t, g, false, st ? NULL : err);
    /* The last sample may have been of another one. */
    if (st == ST_OK && info->reopens && g->sampled)
        st = t->m->open(t->m->arg, &t->r->chosen, err);
    return st ? st : closed;
}

/* ---- settings that had no time --------------------------------------------------- */

/* Values of a setting that was not tried; 0: it was, or has nothing to try. */
static size_t n_untried(const struct tuner *t, enum tune_setting setting)
{
    size_t most = 0;

    for (size_t i = 0; i < t->r->n; i++) {
        const struct tune_outcome *o = &t->r->outcome[i];

        if (o->setting != setting || o->n < 2)
            continue;
        if (o->n_rounds[0])
            return 0;
        most = o->n > most ? o->n : most;
    }
    return most;
}

enum status tuner_search_rest(struct tuner *t, double share, struct err *err)
{
    enum status st = ST_OK;

    for (int k = 0; k < TUNE_N_SETTINGS && st == ST_OK; k++) {
        const enum tune_setting setting = (enum tune_setting)k;
        const struct tuner_work work = tuner_work_of(t, setting);
        const double left = tuner_left(t, share),
                     usual = TUNER_USUAL_SAMPLES * tuner_cost(t, &work);
        const size_t n = n_untried(t, setting);
        double sum = 0;

        for (int j = k; j < TUNE_N_SETTINGS; j++)
            if (n_untried(t, (enum tune_setting)j))
                sum += tune_setting_info((enum tune_setting)j)->share;
        if (n && left >= min_samples(n) * tuner_cost(t, &work))
            st = tuner_search(
                t, setting,
                fmin(left, fmax(usual, left * tune_setting_info(setting)->share / sum)),
                err);
    }
    return st;
}

/* ---- before ---------------------------------------------------------------------- */

/* The quickest of a few, as others may be disturbed; the first one warms up. */
static enum status time_samples(struct tuner *t, bool decode, double *seconds,
                                struct err *err)
{
    enum status st = ST_OK;

    for (int i = 0; i < COST_SAMPLES && st == ST_OK; i++) {
        struct tune_sample got = {0};

        st = decode ? t->m->decode(t->m->arg, &t->r->base, &got, err)
                    : t->m->prefill(t->m->arg, &t->r->base, FIRST_PROMPT, &got, err);
        *seconds = i < 2 ? got.seconds : fmin(*seconds, got.seconds);
    }
    return st;
}

/* How long things take, and with that how long a prompt may be. */
static enum status measure_costs(struct tuner *t, struct err *err)
{
    const double begin = tuner_now(t);
    double unit = 0, prompt_s = 0;
    enum status st = tuner_step(t, "loading", err);

    if (st == ST_OK)
        st = t->m->open(t->m->arg, &t->r->base, err);
    t->r->open_s = tuner_now(t) - begin;
    if (st == ST_OK && t->m->measure) {
        st = t->m->measure(t->m->arg, &t->r->base, err);
        t->r->chosen = t->r->base;
    }
    if (st == ST_OK)
        st = time_samples(t, true, &t->r->token_s, err);
    if (st == ST_OK)
        st = time_samples(t, false, &prompt_s, err);
    t->prefill_s = prompt_s / FIRST_PROMPT;
    for (int k = 0; k < TUNE_N_SETTINGS; k++)
        unit += tune_setting_info((enum tune_setting)k)->share;
    unit = tuner_left(t, TUNER_SEARCH_END) / unit;
    t->r->n_prompt = MAX_PROMPT;
    while (t->r->n_prompt > FIRST_PROMPT &&
           (t->r->n_prompt > t->p->space.n_batch ||
            PASSES_WANTED * t->prefill_s * t->r->n_prompt > unit))
        t->r->n_prompt /= 2;
    t->r->prompt_s = t->prefill_s * t->r->n_prompt;
    return st;
}

static enum status run(struct tuner *t, struct err *err)
{
    enum status st = measure_costs(t, err);

    for (int k = 0; k < TUNE_N_SETTINGS && st == ST_OK; k++)
        st = tuner_search(t, (enum tune_setting)k,
                          setting_seconds(t, (enum tune_setting)k), err);
    if (st == ST_OK)
        st = tuner_search_rest(t, TUNER_SEARCH_END, err);
    t->found = t->r->chosen;
    if (st == ST_OK)
        st = tuner_confirm(t, err);
    if (st == ST_OK)
        st = tuner_finish(t, err);
    t->r->spent_s = tuner_now(t) - t->begin;
    if (st == ST_OK && t->p->exhaustive)
        st = tuner_exhaust(t, err);
    return st;
}

enum status tune_run(struct tune_result *r, const struct tune_params *p,
                     const struct tune_machine *m, struct err *err)
{
    struct tuner *t = calloc(1, sizeof *t);
    enum status st;

    memset(r, 0, sizeof *r);
    if (t)
        t->taken = calloc(TUNER_MAX_SAMPLES, sizeof *t->taken);
    if (!t || !t->taken) {
        free(t);
        return err_set(err, ST_NO_MEMORY, "no memory to tune");
    }
    r->base = r->chosen = p->base;
    t->p = p;
    t->m = m;
    t->r = r;
    t->n_max = TUNER_MAX_SAMPLES;
    t->begin = tuner_now(t);
    st = run(t, err);
    free(t->taken);
    free(t);
    return st;
}
