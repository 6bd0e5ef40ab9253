/* SPDX-License-Identifier: MIT
 *
 * tune_final.c - all choices together against all defaults, and choices taken back
 *
 * Choices may interfere, or may have won by chance. Where all of a phase do not beat
 * its defaults they are measured again, later, as a burst of foreign load may have
 * fallen on the rounds; then the phase runs without each of its choices in turn,
 * interleaved, and the one is taken back without which the rest is fastest, until the
 * rest wins. This may take more than the budget: to throw all away for a lack of time
 * would cost more. What is left of nothing is the default.
 */
#include <math.h>
#include <string.h>

#include "harness/measure/tune/tuner.h"

#define ROUND_S 0.5 /* at most: 8 of them are longer than most bursts */

/* ---- comparisons of setups ------------------------------------------------------- */

/* A prompt in which different batches make a difference. */
static int longest_prompt(const struct tuner *t, const struct tune_setup *setup,
                          size_t n)
{
    int most = setup[0].tuning.n_batch;
    bool differ = false;

    for (size_t i = 1; i < n; i++) {
        differ |= setup[i].tuning.n_batch != setup[0].tuning.n_batch;
        most = setup[i].tuning.n_batch > most ? setup[i].tuning.n_batch : most;
    }
    return differ && most > t->r->n_prompt ? most : t->r->n_prompt;
}

/* Compares n setups with setup[0] until a share of the budget is spent; the few rounds
 * without which there is no answer may run over where needed. *best: the one that was
 * measured against it at last, 0 if none; its figures into out, of which kept says
 * whether it has won. */
static enum status compare(struct tuner *t, enum tune_phase phase,
                           const struct tune_setup *setup, size_t n, double share,
                           bool needed, struct tune_final *out, size_t *best,
                           struct err *err)
{
    const struct tuner_work work = {phase, longest_prompt(t, setup, n)};
    const double round_s =
        fmin(ROUND_S, tuner_left(t, share) / (2 * SEQUENTIAL_MAX_DUEL));
    const int n_passes = tuner_passes(t, &work, n, round_s);
    struct tune_setup now[TUNE_MAX_VALUES];
    struct tune_sample got[TUNE_MAX_VALUES];
    size_t order[TUNE_MAX_VALUES], n_now;
    struct sequential s;
    enum status st = sequential_open(&s, n, t->p->seed + ++t->n_comparisons, err);

    if (st)
        return st;
    /* All work depends on it: it is not given up because its first rounds were slow. */
    s.always_duel = true;
    while (st == ST_OK && (n_now = sequential_round(&s, order)) > 0) {
        bool counts = false;

        if (tuner_left(t, share) < 0 &&
            !(needed && (!s.duel || s.n_rounds < SEQUENTIAL_MIN_DUEL)))
            break;
        for (size_t i = 0; i < n_now; i++)
            now[i] = setup[order[i]];
        st = tuner_round(t, &work, now, n_now, n_passes, got, &counts, err);
        for (size_t i = 0; i < n_now && counts && st == ST_OK; i++)
            sequential_record(&s, order[i], got[i].seconds);
        if (st == ST_OK && counts)
            st = sequential_round_end(&s, err);
    }
    if (st == ST_OK)
        st = sequential_cut(&s, err);
    *best = s.duel ? s.best : 0;
    if (st == ST_OK && *best) {
        st = sequential_ratio(&s, *best, &out->ratio, err);
        out->n_rounds = s.c[*best].n - s.c[*best].n_screen;
    }
    out->changed = true;
    out->kept = s.state == SEQUENTIAL_WON;
    sequential_close(&s);
    return st;
}

/* The defaults, with the weights that are chosen: only these are open. */
static struct tune_setup base_of(const struct tuner *t)
{
    struct tune_setup base = t->r->base;

    base.residency = t->r->chosen.residency;
    base.tuning.pages = t->r->chosen.tuning.pages;
    return base;
}

/* ---- what is chosen -------------------------------------------------------------- */

/* TUNE_BOTH: either phase; the weights belong to no phase. */
static bool is_of(const struct tune_outcome *o, enum tune_phase phase)
{
    const enum tune_phase own = tune_setting_info(o->setting)->phase;

    return own != TUNE_BOTH && (phase == TUNE_BOTH || own == phase);
}

static bool is_changed(const struct tune_result *r, const struct tune_outcome *o)
{
    return tune_get(&r->chosen, o->setting, o->fmt) != o->value[0];
}

static size_t n_changed(const struct tune_result *r, enum tune_phase phase)
{
    size_t n = 0;

    for (size_t i = 0; i < r->n; i++)
        n += is_of(&r->outcome[i], phase) && is_changed(r, &r->outcome[i]);
    return n;
}

/* A phase's settings, in the setup, as they were. */
static void revert(struct tune_result *r, enum tune_phase phase)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];

        if (is_of(o, phase))
            tune_set(&r->chosen, o->setting, o->fmt, o->value[0]);
    }
}

/* A phase's settings as another setup has them. */
static void adopt(struct tune_result *r, enum tune_phase phase,
                  const struct tune_setup *from)
{
    for (size_t i = 0; i < r->n; i++) {
        struct tune_outcome *o = &r->outcome[i];
        const long long value = tune_get(from, o->setting, o->fmt);

        for (size_t k = 0; k < o->n && is_of(o, phase); k++)
            if (o->value[k] == value) {
                tune_set(&r->chosen, o->setting, o->fmt, value);
                o->choice = k;
            }
    }
}

/* ---- taking back ----------------------------------------------------------------- */

/* What is taken back at once: the choice of a format, or, where these are too many for
 * one comparison, of a setting. */
struct units {
    const struct tune_outcome *o[TUNE_MAX_VALUES];
    size_t n;
    bool each; /* of a format */
};

static void find_units(struct units *u, const struct tune_result *r,
                       enum tune_phase phase)
{
    u->each = n_changed(r, phase) < TUNE_MAX_VALUES;
    u->n = 0;
    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];

        if (is_of(o, phase) && is_changed(r, o) &&
            (u->each || !u->n || u->o[u->n - 1]->setting != o->setting))
            u->o[u->n++] = o;
    }
}

static bool goes_with(const struct units *u, size_t unit, const struct tune_outcome *o)
{
    return o == u->o[unit] || (!u->each && o->setting == u->o[unit]->setting);
}

static struct tune_setup without(const struct tune_result *r, const struct units *u,
                                 size_t unit)
{
    struct tune_setup s = r->chosen;

    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];

        if (goes_with(u, unit, o))
            tune_set(&s, o->setting, o->fmt, o->value[0]);
    }
    return s;
}

static void take_back_unit(struct tune_result *r, const struct units *u, size_t unit)
{
    const struct tune_setup s = without(r, u, unit);

    for (size_t i = 0; i < r->n; i++)
        if (is_changed(r, &r->outcome[i]) && goes_with(u, unit, &r->outcome[i]))
            r->outcome[i].taken_back = true;
    r->chosen = s;
}

/* Takes choices of a phase, or of both, back until what is left beats the default,
 * measured in a phase; it is enough that it is no slower where no choice of that phase
 * itself is left. All of them when even the latest time is over. */
static enum status take_back(struct tuner *t, enum tune_phase of, enum tune_phase in,
                             struct tune_final *out, struct err *err)
{
    struct tune_result *r = t->r;
    struct tune_setup setup[TUNE_MAX_VALUES];
    struct units u;

    t->what = "taking choices back";
    for (find_units(&u, r, of); u.n > 1; find_units(&u, r, of)) {
        struct tune_final found = *out;
        size_t best = 0;
        enum status st;

        setup[0] = base_of(t);
        for (size_t i = 0; i < u.n; i++)
            setup[i + 1] = without(r, &u, i);
        st = compare(t, in, setup, u.n + 1, TUNER_LATEST, false, &found, &best, err);
        if (st)
            return st;
        if (!best)
            break;
        found.n_taken_back++;
        *out = found;
        take_back_unit(r, &u, best - 1);
        if (out->kept || (!n_changed(r, in) && !(out->ratio.hi < 1)))
            return ST_OK;
    }
    revert(r, of);
    return ST_OK;
}

/* ---- what was confirmed --------------------------------------------------------- */

/* Two comparisons have chosen it, and it is faster than the default beyond chance. */
static bool is_confirmed(const struct tune_outcome *o)
{
    return o->confirmed && o->choice && o->ratio[o->choice].lo > 1;
}

/* The least that one of a phase's choices is worth, which holds for all of them
 * together; 1: none says it of a whole token or prompt. */
static double min_gain(const struct tune_result *r, enum tune_phase phase)
{
    double least = 1;

    for (size_t i = 0; i < r->n; i++) {
        const struct tune_outcome *o = &r->outcome[i];

        if (is_of(o, phase) && is_changed(r, o) && is_confirmed(o) &&
            o->fmt == KERN_N_FMT)
            least = fmax(least, o->ratio[o->choice].lo);
    }
    return least;
}

/* Where a burst of foreign load has left all choices together neither faster nor slower
 * than the defaults, each that was confirmed by itself is better known than that, and
 * stays; the others go back. Not where together they are known to be worth less than
 * one of them alone: then they interfere. */
static void keep_confirmed(struct tune_result *r, enum tune_phase phase,
                           struct tune_final *f)
{
    if (f->ratio.hi < min_gain(r, phase)) /* not of a NaN: too few rounds */
        return;
    for (size_t i = 0; i < r->n; i++) {
        struct tune_outcome *o = &r->outcome[i];

        if (!is_of(o, phase) || !is_changed(r, o))
            continue;
        if (is_confirmed(o)) {
            f->kept = f->by_choice = true;
        } else {
            tune_set(&r->chosen, o->setting, o->fmt, o->value[0]);
            o->taken_back = true;
        }
    }
}

static bool is_slower(const struct tune_final *f)
{
    return f->ratio.hi < 1; /* not of a NaN: too few rounds */
}

/* ---- the phases ------------------------------------------------------------------ */

/* What is chosen now, or what the search had found where that is something else, the
 * faster of the two. */
static enum status versus_base(struct tuner *t, enum tune_phase phase, double share,
                               struct tune_final *out, struct err *err)
{
    struct tune_setup setup[3] = {base_of(t), t->r->chosen, t->r->chosen};
    size_t n = 2, best = 0;
    enum status st;

    t->what = "tuned or default";
    for (size_t i = 0; i < t->r->n; i++) {
        const struct tune_outcome *o = &t->r->outcome[i];
        const long long value = tune_get(&t->found, o->setting, o->fmt);

        if (is_of(o, phase) && value != tune_get(&setup[2], o->setting, o->fmt)) {
            tune_set(&setup[2], o->setting, o->fmt, value);
            n = 3;
        }
    }
    st = compare(t, phase, setup, n, share, true, out, &best, err);
    if (st == ST_OK && best == 2 && out->kept)
        adopt(t->r, phase, &setup[2]);
    return st;
}

static enum status finish_decode(struct tuner *t, struct err *err)
{
    struct tune_final *d = &t->r->decode;
    enum status st = ST_OK;

    if (!d->kept)
        st = versus_base(t, TUNE_DECODE, 1, d, err);
    if (st == ST_OK && !d->kept && !is_slower(d))
        keep_confirmed(t->r, TUNE_DECODE, d);
    if (st == ST_OK && !d->kept)
        st = take_back(t, TUNE_DECODE, TUNE_DECODE, d, err);
    return st;
}

/* What is left of the choices for decoding has to win again. */
static enum status decode_again(struct tuner *t, struct err *err)
{
    const struct tune_setup setup[2] = {base_of(t), t->r->chosen};
    struct tune_final *d = &t->r->decode;
    enum status st = ST_OK;
    size_t best;

    d->kept = false;
    d->n_taken_back++;
    if (n_changed(t->r, TUNE_DECODE))
        st = compare(t, TUNE_DECODE, setup, 2, TUNER_LATEST, true, d, &best, err);
    if (!d->kept)
        revert(t->r, TUNE_DECODE);
    return st;
}

/* Where prefill is slower than with all defaults, choices for decoding may have done
 * that, and go back, too. */
static enum status finish_prefill(struct tuner *t, struct err *err)
{
    struct tune_result *r = t->r;
    struct tune_final *p = &r->prefill;
    const size_t n_decode = n_changed(r, TUNE_DECODE);
    enum status st = ST_OK;

    if (!p->kept && (p->own || is_slower(p)))
        st = versus_base(t, TUNE_PREFILL, 1, p, err);
    if (st == ST_OK && !p->kept && p->own && !is_slower(p))
        keep_confirmed(r, TUNE_PREFILL, p);
    if (st == ST_OK && !p->kept && (p->own || is_slower(p)))
        st =
            take_back(t, is_slower(p) ? TUNE_BOTH : TUNE_PREFILL, TUNE_PREFILL, p, err);
    if (st == ST_OK && n_changed(r, TUNE_DECODE) < n_decode)
        st = decode_again(t, err);
    return st;
}

/* What a placement or a distance does to prefill counts there too. Both phases are
 * measured before anything is taken back: when it is measured again, time has passed.
 */
enum status tuner_finish(struct tuner *t, struct err *err)
{
    struct tune_result *r = t->r;
    const double now = 1 - tuner_left(t, 1) / t->p->budget_s;
    const double fifth = (1 - now) / 5;
    const bool decode = n_changed(r, TUNE_DECODE) > 0;
    enum status st = ST_OK;

    r->decode.own = decode;
    r->prefill.own = n_changed(r, TUNE_PREFILL) > 0;
    if (decode)
        st = versus_base(t, TUNE_DECODE, now + fifth, &r->decode, err);
    if (st == ST_OK && (r->prefill.own || decode))
        st = versus_base(t, TUNE_PREFILL, now + 3 * fifth, &r->prefill, err);
    if (st == ST_OK && decode)
        st = finish_decode(t, err);
    if (st == ST_OK && r->prefill.changed)
        st = finish_prefill(t, err);
    return st;
}
