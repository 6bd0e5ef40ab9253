/* SPDX-License-Identifier: MIT
 *
 * tune.c - setting after setting within a budget, and the last comparison
 */
#include "harness/tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/stats.h"

#define FINAL_SHARE   0.15 /* of the budget, for the last comparison */
#define FIRST_PROMPT  16   /* tokens: how long does prefill take at all? */
#define MOST_PROMPT   256
#define OPEN_TOKENS   5  /* after opening, a sample of the weights' setting */
#define USUAL_SAMPLES 50 /* of a sequential comparison */
#define PASSES_WANTED 24 /* of prefill within a setting's share, at least */

/* One sequential comparison: of a setting, or of a format of it. */
struct contest {
    struct sequential comparison;
    struct tune_outcome *o;
    size_t order[TUNE_MAX_VALUES], n_order;
};

struct tuner {
    const struct tune_params *p;
    const struct tune_machine *m;
    struct tune_result *r;
    struct contest contest[KERN_N_FMT];
    size_t n_contests;
    double begin, end; /* of tuning settings one by one */
    double prefill_s;  /* per token */
    const char *what;  /* is being measured, for the progress line */
    uint64_t n_comparisons;
};

/* ---- samples ------------------------------------------------------------------ */

static double now(const struct tuner *t)
{
    return t->m->now(t->m->arg);
}

static enum status check(const struct tuner *t, struct err *err)
{
    if (t->m->stop && t->m->stop(t->m->arg))
        return err_set(err, ST_INTERRUPTED, "interrupted");
    if (t->m->progress)
        t->m->progress(t->m->arg, (now(t) - t->begin) / t->p->budget_s, t->what);
    return ST_OK;
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

/* Prompts are as long as the longest batch, or all batches would be alike. */
static int longest_batch(const struct tune_outcome *o)
{
    long long most = o->value[0];

    for (size_t i = 1; i < o->n; i++)
        most = o->value[i] > most ? o->value[i] : most;
    return (int)most;
}

static int prompt_of(const struct tuner *t, enum tune_setting setting)
{
    return setting == TUNE_BATCH ? longest_batch(t->contest[0].o) : t->r->n_prompt;
}

static enum status sample(struct tuner *t, enum tune_setting setting,
                          const struct tune_setup *s, struct tune_sample *out,
                          struct err *err)
{
    const struct tune_setting_info *info = tune_setting_info(setting);
    const enum status st = check(t, err);

    if (st)
        return st;
    if (info->reopens)
        return sample_opened(t, s, out, err);
    if (info->phase == TUNE_DECODE)
        return t->m->decode(t->m->arg, s, out, err);
    return t->m->prefill(t->m->arg, s, prompt_of(t, setting), out, err);
}

/* What a sample is likely to take. */
static double sample_cost(const struct tuner *t, enum tune_setting setting)
{
    const struct tune_setting_info *info = tune_setting_info(setting);

    if (info->reopens)
        return t->r->open_s + (OPEN_TOKENS + 1) * t->r->token_s + t->r->prompt_s;
    return info->phase == TUNE_DECODE ? t->r->token_s
                                      : t->prefill_s * prompt_of(t, setting);
}

/* ---- a round of all contests ----------------------------------------------------- */

/* The slot-th candidate of each contest together; contests with fewer keep what they
 * have. */
static enum status run_slot(struct tuner *t, enum tune_setting setting, size_t slot,
                            struct err *err)
{
    struct tune_setup s = t->r->chosen;
    struct tune_sample got = {0};
    enum status st;

    for (size_t i = 0; i < t->n_contests; i++) {
        const struct contest *c = &t->contest[i];

        if (slot < c->n_order)
            tune_set(&s, setting, c->o->fmt, c->o->value[c->order[slot]]);
    }
    st = sample(t, setting, &s, &got, err);
    for (size_t i = 0; i < t->n_contests && st == ST_OK; i++) {
        struct contest *c = &t->contest[i];
        const double own = c->o->fmt == KERN_N_FMT ? 0 : got.fmt_s[c->o->fmt];

        if (slot < c->n_order)
            sequential_record(&c->comparison, c->order[slot],
                              own > 0 ? own : got.seconds);
    }
    return st;
}

/* Samples of the next round; 0 when all contests are over. */
static size_t next_round(struct tuner *t)
{
    size_t n_slots = 0;

    for (size_t i = 0; i < t->n_contests; i++) {
        struct contest *c = &t->contest[i];

        c->n_order = sequential_round(&c->comparison, c->order);
        n_slots = c->n_order > n_slots ? c->n_order : n_slots;
    }
    return n_slots;
}

static enum status run_contests(struct tuner *t, enum tune_setting setting,
                                double deadline, struct err *err)
{
    enum status st = ST_OK;

    for (size_t n_slots; st == ST_OK && (n_slots = next_round(t)) > 0;) {
        if (now(t) + (double)n_slots * sample_cost(t, setting) > deadline)
            break;
        for (size_t slot = 0; slot < n_slots && st == ST_OK; slot++)
            st = run_slot(t, setting, slot, err);
        for (size_t i = 0; i < t->n_contests && st == ST_OK; i++)
            if (t->contest[i].n_order)
                st = sequential_round_end(&t->contest[i].comparison, err);
        /* A decided sequential comparison runs on with its choice, while others are
         * open. */
        for (size_t i = 0; i < t->n_contests && st == ST_OK; i++)
            tune_set(
                &t->r->chosen, setting, t->contest[i].o->fmt,
                t->contest[i].o->value[sequential_choice(&t->contest[i].comparison)]);
    }
    for (size_t i = 0; i < t->n_contests && st == ST_OK; i++)
        st = sequential_cut(&t->contest[i].comparison, err);
    return st;
}

/* ---- one setting ----------------------------------------------------------------- */

static enum status open_contest(struct tuner *t, enum tune_setting setting,
                                enum kern_format fmt, struct err *err)
{
    struct contest *c = &t->contest[t->n_contests];
    struct tune_outcome o = {.setting = setting, .fmt = fmt};
    enum status st;

    o.n = tune_values(&t->p->space, &t->r->chosen, setting, fmt, o.value);
    st = sequential_open(&c->comparison, o.n, t->p->seed + ++t->n_comparisons, err);
    if (st)
        return st;
    c->o = &t->r->outcome[t->r->n++];
    *c->o = o;
    t->n_contests++;
    return ST_OK;
}

static enum status close_contests(struct tuner *t, enum tune_setting setting,
                                  struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < t->n_contests; i++) {
        struct contest *c = &t->contest[i];
        struct tune_outcome *o = c->o;

        for (size_t k = 0; k < o->n && st == ST_OK; k++) {
            st = sequential_ratio(&c->comparison, k, &o->ratio[k], err);
            o->n_rounds[k] = c->comparison.c[k].n;
            o->out[k] = c->comparison.c[k].out;
        }
        o->state = c->comparison.state;
        o->choice = sequential_choice(&c->comparison);
        o->best = c->comparison.duel ? c->comparison.best : 0;
        if (o->state == SEQUENTIAL_CUT && !*o->note)
            snprintf(o->note, sizeof o->note,
                     "the budget ended it undecided; a larger --budget goes on");
        tune_set(&t->r->chosen, setting, o->fmt, o->value[o->choice]);
        sequential_close(&c->comparison);
    }
    t->n_contests = 0;
    return st;
}

/* Not even the fewest samples that could decide anything? */
static bool too_short(struct tuner *t, enum tune_setting setting, double seconds)
{
    size_t most = 0;

    for (size_t i = 0; i < t->n_contests; i++)
        most = t->contest[i].o->n > most ? t->contest[i].o->n : most;
    const double n = (most > 2 ? 2 * (double)most : 0) + 2 * SEQUENTIAL_MIN_DUEL;
    const double need = n * sample_cost(t, setting);

    if (most < 2 || need <= seconds)
        return false;
    for (size_t i = 0; i < t->n_contests; i++)
        snprintf(t->contest[i].o->note, sizeof t->contest[i].o->note,
                 "not tried: %.0f samples of %.2g s each do not fit its %.3g s of the "
                 "budget; --budget %.0f would do",
                 n, sample_cost(t, setting), seconds > 0 ? seconds : 0,
                 ceil((t->p->budget_s + (need - seconds) / (1 - FINAL_SHARE)) / 10) *
                     10);
    return true;
}

/* What a sequential comparison of a setting that costs little usually takes; one that
 * opens the model or runs long prompts takes what the others leave. */
static double usual_seconds(const struct tuner *t, enum tune_setting setting)
{
    if (setting == TUNE_BATCH || tune_setting_info(setting)->reopens)
        return 0;
    return USUAL_SAMPLES * sample_cost(t, setting);
}

/* Its share of what is left of the budget, or all that later settings will not need. */
static double setting_seconds(const struct tuner *t, enum tune_setting setting)
{
    double sum = 0, left = t->end - now(t), later = 0;

    for (int k = (int)setting; k < TUNE_N_SETTINGS; k++) {
        sum += tune_setting_info((enum tune_setting)k)->share;
        later += k > (int)setting ? usual_seconds(t, (enum tune_setting)k) : 0;
    }
    return left > 0 ? fmax(left * tune_setting_info(setting)->share / sum, left - later)
                    : 0;
}

static enum status tune_one(struct tuner *t, enum tune_setting setting, struct err *err)
{
    const struct tune_setting_info *info = tune_setting_info(setting);
    const double seconds = setting_seconds(t, setting);
    const long long before = tune_get(&t->r->chosen, TUNE_WEIGHTS, KERN_N_FMT);
    enum status st = ST_OK, closed;

    t->what = info->name;
    for (int fmt = 0; info->per_format && fmt < KERN_N_FMT && st == ST_OK; fmt++)
        if (t->p->space.formats[fmt])
            st = open_contest(t, setting, (enum kern_format)fmt, err);
    if (!info->per_format)
        st = open_contest(t, setting, KERN_N_FMT, err);
    if (st == ST_OK && !too_short(t, setting, seconds))
        st = run_contests(t, setting, now(t) + seconds, err);
    else
        for (size_t i = 0; i < t->n_contests && st == ST_OK; i++)
            st = sequential_cut(&t->contest[i].comparison, err);
    closed = close_contests(t, setting, st ? NULL : err);
    /* The last sample may have been of another one. */
    if (st == ST_OK && info->reopens &&
        (t->r->outcome[t->r->n - 1].n_rounds[0] ||
         tune_get(&t->r->chosen, setting, KERN_N_FMT) != before))
        st = t->m->open(t->m->arg, &t->r->chosen, err);
    return st ? st : closed;
}

/* ---- before and after ------------------------------------------------------------ */

/* How long things take, and with that how long a prompt may be. */
static enum status measure_costs(struct tuner *t, struct err *err)
{
    const struct tune_setup *s = &t->r->base;
    struct tune_sample got = {0};
    double begin = now(t), unit = 0;
    enum status st = t->m->open(t->m->arg, s, err);

    t->r->open_s = now(t) - begin;
    if (st == ST_OK && t->m->measure) {
        st = t->m->measure(t->m->arg, &t->r->base, err);
        t->r->chosen = t->r->base;
    }
    for (int i = 0; i < 2 && st == ST_OK; i++) { /* the first one warms up */
        st = t->m->decode(t->m->arg, s, &got, err);
        t->r->token_s = got.seconds;
    }
    if (st == ST_OK)
        st = t->m->prefill(t->m->arg, s, FIRST_PROMPT, &got, err);
    t->prefill_s = got.seconds / FIRST_PROMPT;
    for (int k = 0; k < TUNE_N_SETTINGS; k++)
        unit += tune_setting_info((enum tune_setting)k)->share;
    unit = (t->end - now(t)) / unit;
    t->r->n_prompt = MOST_PROMPT;
    while (t->r->n_prompt > FIRST_PROMPT &&
           (t->r->n_prompt > t->p->space.n_batch ||
            PASSES_WANTED * t->prefill_s * t->r->n_prompt > unit))
        t->r->n_prompt /= 2;
    t->r->prompt_s = t->prefill_s * t->r->n_prompt;
    return st;
}

/* A duel of two setups. */
static enum status duel(struct tuner *t, enum tune_phase phase,
                        const struct tune_setup *base, const struct tune_setup *chosen,
                        double deadline, struct tune_final *out, struct err *err)
{
    const struct tune_setup *const setups[2] = {base, chosen};
    size_t order[2], n;
    struct sequential comparison;
    enum status st =
        sequential_open(&comparison, 2, t->p->seed + ++t->n_comparisons, err);

    if (st)
        return st;
    /* All work depends on it: it is not given up because its first rounds were slow. */
    comparison.always_duel = true;
    t->what = "tuned or default";
    while (st == ST_OK && (n = sequential_round(&comparison, order)) > 0) {
        struct tune_sample got = {0};

        /* The few rounds without which there is no answer may run over. */
        if (now(t) > deadline && comparison.n_rounds >= SEQUENTIAL_MIN_DUEL)
            break;
        for (size_t i = 0; i < n && st == ST_OK; i++) {
            st = check(t, err);
            if (st == ST_OK)
                st = phase == TUNE_DECODE
                         ? t->m->decode(t->m->arg, setups[order[i]], &got, err)
                         : t->m->prefill(t->m->arg, setups[order[i]], t->r->n_prompt,
                                         &got, err);
            if (st == ST_OK)
                sequential_record(&comparison, order[i], got.seconds);
        }
        if (st == ST_OK)
            st = sequential_round_end(&comparison, err);
    }
    if (st == ST_OK)
        st = sequential_cut(&comparison, err);
    if (st == ST_OK)
        st = sequential_ratio(&comparison, 1, &out->ratio, err);
    out->changed = true;
    out->kept = comparison.state == SEQUENTIAL_WON;
    out->n_rounds = comparison.c[1].n;
    sequential_close(&comparison);
    return st;
}

/* A phase's settings, in the setup and in the outcomes, as they were. */
static void revert(struct tune_result *r, enum tune_phase phase)
{
    for (size_t i = 0; i < r->n; i++) {
        struct tune_outcome *o = &r->outcome[i];

        if (tune_setting_info(o->setting)->phase == phase)
            tune_set(&r->chosen, o->setting, o->fmt, o->value[0]);
    }
}

static bool has_changed(const struct tune_result *r, enum tune_phase phase)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];

        if (tune_setting_info(o->setting)->phase == phase && o->choice != 0)
            return true;
    }
    return false;
}

/* What a placement or a distance does to prefill counts there too. */
static enum status finish(struct tuner *t, struct err *err)
{
    struct tune_result *r = t->r;
    struct tune_setup base = r->base;
    const double half = (t->begin + t->p->budget_s - now(t)) / 2;
    const bool decode = has_changed(r, TUNE_DECODE);
    enum status st = ST_OK;

    base.residency = r->chosen.residency;
    base.tuning.pages = r->chosen.tuning.pages;
    if (decode)
        st = duel(t, TUNE_DECODE, &base, &r->chosen, now(t) + half, &r->decode, err);
    if (st == ST_OK && decode && !r->decode.kept)
        revert(r, TUNE_DECODE);
    if (st == ST_OK && (has_changed(r, TUNE_PREFILL) || (decode && r->decode.kept)))
        st = duel(t, TUNE_PREFILL, &base, &r->chosen, t->begin + t->p->budget_s,
                  &r->prefill, err);
    if (st || !r->prefill.changed || r->prefill.kept)
        return st;
    revert(r, TUNE_PREFILL);
    if (r->prefill.ratio.hi < 1) {
        revert(r, TUNE_DECODE);
        r->decode.kept = false;
    }
    return ST_OK;
}

enum status tune_run(struct tune_result *r, const struct tune_params *p,
                     const struct tune_machine *m, struct err *err)
{
    struct tuner *t = calloc(1, sizeof *t);
    enum status st;

    if (!t)
        return err_set(err, ST_NO_MEMORY, "no memory to tune");
    memset(r, 0, sizeof *r);
    r->base = r->chosen = p->base;
    t->p = p;
    t->m = m;
    t->r = r;
    t->what = "loading";
    t->begin = now(t);
    t->end = t->begin + (1 - FINAL_SHARE) * p->budget_s;
    st = measure_costs(t, err);
    for (int k = 0; k < TUNE_N_SETTINGS && st == ST_OK; k++)
        st = tune_one(t, (enum tune_setting)k, err);
    if (st == ST_OK)
        st = finish(t, err);
    r->spent_s = now(t) - t->begin;
    if (st == ST_OK && p->exhaustive)
        st = tune_exhaust(r, p, m, err);
    free(t);
    return st;
}
