/* SPDX-License-Identifier: MIT
 *
 * tune_confirm.c - all settings compared a second time, interleaved
 *
 * A comparison of short samples is over within a second, and a burst of foreign load
 * that no counter sees may last longer: it then decides about a setting whose values
 * use the CPUs differently. Here a round of each setting follows on a round of each
 * other, so that the rounds of one comparison are spread over seconds, and a burst is a
 * few outliers among them. Values compete with all other settings as they are chosen,
 * which also finds choices that gain nothing in addition to later ones.
 */
#include <math.h>
#include <string.h>

#include "engine/base/random.h"
#include "harness/measure/tune/tuner.h"

#define ROUND_S   0.1 /* of two candidates */
#define MAX_TIMES 6   /* until each choice was the same twice */
#define WEIGHTS_SHARE                                                                 \
    0.5                    /* of the time, at most, to open the model again and again \
                            */
#define DEPEND_SHARE   0.5 /* likewise, for what depends on the weights */
#define DUEL_SAMPLES   28
#define SCREEN_SAMPLES 8 /* per value, where there are more than two */

/* What is compared again, from the most to the least that a budget allows. */
enum extent {
    ALL_VALUES,
    RIVALS, /* the choice, or the closest rival of the default */
    CHOICES /* nothing where the default was chosen */
};

/* An outcome's values that are compared, as index[]; 0: none. */
static size_t values_of(const struct tune_outcome *o, enum extent extent, size_t *index)
{
    const size_t rival = o->choice ? o->choice : o->best;

    if (o->n < 2 || !o->n_rounds[0] || o->confirmed)
        return 0;
    if (extent == ALL_VALUES) {
        for (size_t i = 0; i < o->n; i++)
            index[i] = i;
        return o->n;
    }
    if (!rival || (extent == CHOICES && !o->choice))
        return 0;
    index[0] = 0;
    index[1] = rival;
    return 2;
}

static double samples_of(size_t n)
{
    return n < 2 ? 0 : DUEL_SAMPLES + (n > 2 ? SCREEN_SAMPLES * (double)n : 0);
}

/* Seconds that a setting's comparison is likely to take. */
static double seconds_of(const struct tuner *t, enum tune_setting setting,
                         enum extent extent)
{
    const struct tuner_work work = tuner_work_of(t, setting);
    size_t index[TUNE_MAX_VALUES], most = 0;

    for (size_t i = 0; i < t->r->n; i++)
        if (t->r->outcome[i].setting == setting) {
            const size_t n = values_of(&t->r->outcome[i], extent, index);

            most = n > most ? n : most;
        }
    return samples_of(most) * tuner_passes(t, &work, 2, ROUND_S) * tuner_cost(t, &work);
}

/* As much of a setting as fits so many more seconds than CHOICES takes. */
static void extend(const struct tuner *t, enum tune_setting setting, double *left,
                   enum extent *extent)
{
    const double least = seconds_of(t, setting, CHOICES);

    for (int e = ALL_VALUES; e < CHOICES; e++) {
        const double more = seconds_of(t, setting, (enum extent)e) - least;

        if (more <= *left) {
            *extent = (enum extent)e;
            *left -= more;
            return;
        }
    }
}

/* Choices first; then what time allows, coarse settings before the others. Returns the
 * seconds that all comparisons are likely to take. */
static double choose_extents(const struct tuner *t, double left, enum extent *extent)
{
    double rest = left;

    for (int k = 0; k < TUNE_N_SETTINGS; k++) {
        extent[k] = CHOICES;
        if (!tune_setting_info((enum tune_setting)k)->reopens)
            rest -= seconds_of(t, (enum tune_setting)k, CHOICES);
    }
    for (int coarse = 1; coarse >= 0; coarse--)
        for (int k = 0; k < TUNE_N_SETTINGS; k++) {
            const struct tune_setting_info *info =
                tune_setting_info((enum tune_setting)k);

            if (!info->reopens && info->coarse == (coarse == 1))
                extend(t, (enum tune_setting)k, &rest, &extent[k]);
        }
    return left - rest;
}

static enum status open_group(struct tuner *t, enum tune_setting setting,
                              enum extent extent, double round_s, struct err *err)
{
    struct tune_group *g = &t->group[setting];
    enum status st = ST_OK;

    for (size_t i = 0; i < t->r->n && st == ST_OK; i++) {
        struct tune_outcome *o = &t->r->outcome[i];
        size_t index[TUNE_MAX_VALUES];
        const size_t n = o->setting == setting ? values_of(o, extent, index) : 0;

        if (n)
            st = group_add(t, g, o, index, n, err);
    }
    g->setting = setting;
    g->sampled = false;
    group_fit(t, g, round_s);
    return st;
}

/* Rounds of all groups in random order until each is decided or time is over. */
static enum status play_all(struct tuner *t, uint64_t *random, struct err *err)
{
    int order[TUNE_N_SETTINGS];
    enum status st = ST_OK;
    bool any = true;

    for (int k = 0; k < TUNE_N_SETTINGS; k++)
        order[k] = k;
    while (any && st == ST_OK && tuner_left(t, TUNER_CONFIRM_END) > 0) {
        any = false;
        random_shuffle(order, TUNE_N_SETTINGS, sizeof *order, random);
        for (int k = 0; k < TUNE_N_SETTINGS && st == ST_OK; k++) {
            struct tune_group *g = &t->group[order[k]];
            const struct tuner_work work =
                tuner_work_of(t, (enum tune_setting)order[k]);
            const size_t n_slots = group_next(g);

            if (!n_slots || (double)n_slots * g->n_passes * tuner_cost(t, &work) >
                                tuner_left(t, TUNER_CONFIRM_END))
                continue;
            any = true;
            st = group_play(t, g, n_slots, err);
        }
    }
    return st;
}

static enum status close_all(struct tuner *t, struct err *err)
{
    enum status st = ST_OK;

    for (int k = 0; k < TUNE_N_SETTINGS; k++) {
        const enum status closed = group_close(t, &t->group[k], true, st ? NULL : err);

        st = st ? st : closed;
    }
    return st;
}

static bool differs(const struct tune_result *r, const struct tune_setup *before)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];

        if (tune_get(&r->chosen, o->setting, o->fmt) !=
            tune_get(before, o->setting, o->fmt))
            return true;
    }
    return false;
}

/* The weights' setting opens the model for every sample, and is not interleaved with
 * others. Other weights have other levels and prefetch. */
static enum status confirm_weights(struct tuner *t, struct err *err)
{
    static const enum tune_setting depend[] = {TUNE_LEVEL, TUNE_PREFETCH,
                                               TUNE_LEVEL_PREFILL};
    const struct tune_setup before = t->r->chosen;
    struct tune_group *g = &t->group[TUNE_WEIGHTS];
    enum status st, closed;

    if (seconds_of(t, TUNE_WEIGHTS, CHOICES) >
        WEIGHTS_SHARE * tuner_left(t, TUNER_CONFIRM_END))
        return ST_OK;
    st = open_group(t, TUNE_WEIGHTS, CHOICES, 0, err);
    for (size_t n; st == ST_OK && (n = group_next(g)) > 0 &&
                   tuner_left(t, TUNER_CONFIRM_END) > 0;)
        st = group_play(t, g, n, err);
    closed = group_close(t, g, true, st ? NULL : err);
    st = st ? st : closed;
    if (st == ST_OK && g->sampled)
        st = t->m->open(t->m->arg, &t->r->chosen, err);
    if (st == ST_OK && differs(t->r, &before)) {
        const size_t n = sizeof depend / sizeof depend[0];
        const double seconds =
            DEPEND_SHARE * tuner_left(t, TUNER_CONFIRM_END) / (double)n;

        for (size_t i = 0; i < n && st == ST_OK; i++)
            st = tuner_search(t, depend[i], seconds, err);
    }
    return st;
}

/* What is not confirmed yet once; *done: nothing is left, or there is no time. */
static enum status confirm_once(struct tuner *t, bool must_fit, uint64_t *random,
                                bool *done, struct err *err)
{
    const double left = tuner_left(t, TUNER_CONFIRM_END);
    enum extent extent[TUNE_N_SETTINGS];
    const double need = choose_extents(t, left, extent);
    enum status st = ST_OK, closed;

    *done = left <= 0 || need <= 0 || (need > left && must_fit);
    if (*done)
        return ST_OK;
    for (int k = 0; k < TUNE_N_SETTINGS && st == ST_OK; k++)
        if (!tune_setting_info((enum tune_setting)k)->reopens)
            st = open_group(t, (enum tune_setting)k, extent[k],
                            need > left ? ROUND_S * left / need : ROUND_S, err);
    if (st == ST_OK)
        st = play_all(t, random, err);
    closed = close_all(t, st ? NULL : err);
    return st ? st : closed;
}

enum status tuner_confirm(struct tuner *t, struct err *err)
{
    uint64_t random = t->p->seed ^ 0x9e3779b97f4a7c15u;
    enum status st;
    bool done = false;

    st = tuner_step(t, "confirming all settings", err);
    if (st == ST_OK)
        st = confirm_weights(t, err);
    t->what = "confirming all settings";
    for (int time = 0; time < MAX_TIMES && !done && st == ST_OK; time++)
        st = confirm_once(t, time > 0, &random, &done, err);
    if (st == ST_OK)
        st = tuner_search_rest(t, TUNER_CONFIRM_END, err);
    return st;
}
