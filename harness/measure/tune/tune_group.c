/* SPDX-License-Identifier: MIT
 *
 * tune_group.c - the sequential comparisons of one setting, one of each format where it
 * has one each
 */
#include <string.h>

#include "harness/measure/tune/tuner.h"

enum status group_add(struct tuner *t, struct tune_group *g, struct tune_outcome *o,
                      const size_t *index, size_t n, struct err *err)
{
    struct contest *c = &g->contest[g->n];
    const enum status st =
        sequential_open(&c->comparison, n, t->p->seed + ++t->n_comparisons, err);

    if (st)
        return st;
    c->o = o;
    memcpy(c->index, index, n * sizeof *index);
    g->setting = o->setting;
    g->most = n > g->most ? n : g->most;
    g->n++;
    return ST_OK;
}

void group_fit(const struct tuner *t, struct tune_group *g, double round_s)
{
    const struct tuner_work work = tuner_work_of(t, g->setting);
    const size_t most = t->n_max / (g->most ? g->most : 1);

    g->n_passes = tuner_passes(t, &work, 2, round_s);
    if ((size_t)g->n_passes > most)
        g->n_passes = (int)most;
}

size_t group_next(struct tune_group *g)
{
    size_t n_slots = 0;

    for (size_t i = 0; i < g->n; i++) {
        struct contest *c = &g->contest[i];

        c->n_order = sequential_round(&c->comparison, c->order);
        n_slots = c->n_order > n_slots ? c->n_order : n_slots;
    }
    return n_slots;
}

static long long value_of(const struct contest *c, size_t candidate)
{
    return c->o->value[c->index[candidate]];
}

/* The slot-th candidate of each comparison together; those with fewer keep what is
 * chosen. */
static struct tune_setup setup_of(const struct tuner *t, const struct tune_group *g,
                                  size_t slot)
{
    struct tune_setup s = t->r->chosen;

    for (size_t i = 0; i < g->n; i++) {
        const struct contest *c = &g->contest[i];

        if (slot < c->n_order)
            tune_set(&s, g->setting, c->o->fmt, value_of(c, c->order[slot]));
    }
    return s;
}

/* A format's own time, where it is known. */
static void record(struct tune_group *g, const struct tune_sample *got)
{
    for (size_t i = 0; i < g->n; i++) {
        struct contest *c = &g->contest[i];

        for (size_t slot = 0; slot < c->n_order; slot++) {
            const double own = c->o->fmt == KERN_N_FMT ? 0 : got[slot].fmt_s[c->o->fmt];

            sequential_record(&c->comparison, c->order[slot],
                              own > 0 ? own : got[slot].seconds);
        }
    }
}

enum status group_play(struct tuner *t, struct tune_group *g, size_t n_slots,
                       struct err *err)
{
    const struct tuner_work work = tuner_work_of(t, g->setting);
    struct tune_setup setup[TUNE_MAX_VALUES];
    struct tune_sample got[TUNE_MAX_VALUES];
    bool counts = false;
    enum status st;

    for (size_t slot = 0; slot < n_slots; slot++)
        setup[slot] = setup_of(t, g, slot);
    st = tuner_round(t, &work, setup, n_slots, g->n_passes, got, &counts, err);
    g->sampled = true;
    if (st || !counts)
        return st;
    record(g, got);
    for (size_t i = 0; i < g->n && st == ST_OK; i++) {
        struct contest *c = &g->contest[i];

        if (c->n_order)
            st = sequential_round_end(&c->comparison, err);
        if (c->comparison.state != SEQUENTIAL_RUNNING)
            tune_set(&t->r->chosen, g->setting, c->o->fmt,
                     value_of(c, sequential_choice(&c->comparison)));
    }
    return st;
}

/* ---- the end ------------------------------------------------------------------- */

static enum status into_outcome(const struct contest *c, struct err *err)
{
    const struct sequential *s = &c->comparison;
    struct tune_outcome *o = c->o;
    const bool decided = o->state == SEQUENTIAL_WON || o->state == SEQUENTIAL_TIE;
    const size_t before = o->choice;
    enum status st = ST_OK;

    for (size_t k = 0; k < s->n && st == ST_OK; k++) {
        st = sequential_ratio(s, k, &o->ratio[c->index[k]], err);
        o->n_rounds[c->index[k]] = s->c[k].n;
        o->out[c->index[k]] = s->c[k].out;
    }
    o->state = s->state;
    o->choice = c->index[sequential_choice(s)];
    o->best = s->duel ? c->index[s->best] : 0;
    o->confirmed = decided && o->choice == before;
    if (o->state != SEQUENTIAL_CUT)
        *o->note = '\0';
    else if (!*o->note)
        snprintf(o->note, sizeof o->note,
                 "the budget ran out before a decision; give a larger --budget");
    return st;
}

enum status group_close(struct tuner *t, struct tune_group *g, bool keep,
                        struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < g->n; i++) {
        struct contest *c = &g->contest[i];

        if (st == ST_OK)
            st = sequential_cut(&c->comparison, err);
        if (st == ST_OK && !(keep && c->comparison.state == SEQUENTIAL_CUT)) {
            st = into_outcome(c, err);
            tune_set(&t->r->chosen, g->setting, c->o->fmt, c->o->value[c->o->choice]);
        }
        sequential_close(&c->comparison);
    }
    g->n = g->most = 0;
    return st;
}
