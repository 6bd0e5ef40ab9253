/* SPDX-License-Identifier: MIT
 *
 * tuned_use.c - the two looks at a profile
 */
#include "harness/tune/tuned_use.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "harness/base/clock.h"
#include "harness/base/interrupt.h"

#define CHECK_PROMPT 16 /* tokens */
#define CHECK_ROUNDS 40 /* at most, of a phase */
#define MIN_ROUNDS   3
#define MUCH_SLOWER  0.9 /* in every round, where they are too few for an interval */

const char *tuned_state_name(enum tuned_state state)
{
    static const char *const names[] = {"default", "tuned", "missing", "stale",
                                        "slower"};

    return names[state];
}

/* ---- before opening ---------------------------------------------------------------
 */

/* Weights in memory are laid out as packed ones are. */
static bool same_layout(enum weights_residency a, enum weights_residency b)
{
    return (a == WEIGHTS_MMAP) == (b == WEIGHTS_MMAP);
}

static enum status look(struct tuned *t, enum tuned_state *state, const char *path,
                        const struct tuned_key *here, enum weights_residency residency,
                        char *note, size_t cap, struct err *err)
{
    char why[240];
    const enum status st = tuned_load(t, path, err);

    if (st)
        return st;
    *state = TUNED_USED;
    if (!tuned_key_fits(&t->key, here, why, sizeof why)) {
        *state = TUNED_STALE;
        snprintf(note, cap, "the profile is not used, %s; tune again", why);
    } else if (residency != WEIGHTS_AUTO &&
               !same_layout(residency, t->setup.residency)) {
        *state = TUNED_STALE;
        snprintf(note, cap,
                 "the profile is not used: it is for weights that are %s, and %s is "
                 "asked for",
                 weights_residency_name(t->setup.residency),
                 weights_residency_name(residency));
    }
    return ST_OK;
}

enum status tuned_find(struct tuned *t, enum tuned_state *state, const char *asked,
                       const struct topology *topo, uint64_t mem_limit,
                       const struct modelref *model, enum weights_residency residency,
                       char *note, size_t cap, struct err *err)
{
    struct tuned_key here;
    char path[4096];
    enum status st =
        tuned_key_read(&here, topo, mem_limit, model, residency == WEIGHTS_MEMORY, err);

    *note = '\0';
    if (st == ST_OK && !strcmp(asked, "auto")) {
        st = tuned_path(path, sizeof path, &here, err);
        if (st == ST_OK && access(path, F_OK)) {
            *state = TUNED_MISSING;
            snprintf(note, cap,
                     "there is no profile of this model for this machine and these "
                     "limits; `bench tune` makes one");
            return ST_OK;
        }
        asked = path;
    }
    return st ? st : look(t, state, asked, &here, residency, note, cap, err);
}

/* ---- once it is loaded -------------------------------------------------------------
 */

struct check {
    struct slm *m;
    struct tuned_side sides[2];
    int placed; /* side whose CPUs the pool is on */
    int depth;
};

static bool same_cpus(const struct check *c)
{
    const int *a = c->sides[0].cpus, *b = c->sides[1].cpus;
    const size_t n = (size_t)thread_pool_capacity(slm_thread_pool(c->m));

    return a == b || (a && b && !memcmp(a, b, n * sizeof *a));
}

static enum status take(struct check *c, int side, struct err *err)
{
    const struct tuned_side *s = &c->sides[side];
    enum status st = ST_OK;

    if (side != c->placed && !same_cpus(c))
        st = slm_place(c->m, s->cpus, err);
    c->placed = side;
    return st ? st
              : slm_tune(c->m, s->n_threads, s->n_threads_prefill, &s->tuning, err);
}

/* What runs without a profile has measured its prefetch. */
static enum status measure_default(struct check *c, struct err *err)
{
    struct slm_tuning measured;
    enum status st = take(c, 0, err);

    if (st == ST_OK)
        st = slm_measure_prefetch(c->m, SLM_PREFETCH_BUDGET_S, 0, err);
    slm_get_tuning(c->m, &measured);
    memcpy(c->sides[0].tuning.prefetch, measured.prefetch, sizeof measured.prefetch);
    return st;
}

static enum status time_side(struct check *c, int side, int n_tokens, double *seconds,
                             struct err *err)
{
    static const int32_t tokens[CHECK_PROMPT];
    const bool moved = side != c->placed;
    enum status st = take(c, side, err);
    uint64_t begin = 0;

    for (int i = moved ? 0 : 1; i < 2 && st == ST_OK; i++) {
        begin = clock_ns();
        st = slm_eval(c->m, tokens, (size_t)(i ? n_tokens : 1), SLM_LOGITS_LAST, err);
        begin = clock_ns() - begin;
        slm_truncate(c->m, c->depth);
    }
    *seconds = (double)(begin ? begin : 1) * 1e-9;
    return st;
}

/* Clearly slower: an interval below 1, or far behind each time. */
static bool lost(const double *v, size_t n, struct rank_ratio *r)
{
    double best = -INFINITY;

    if (rank_paired(r, v, n, 0.95, NULL))
        return false;
    for (size_t i = 0; i < n; i++)
        best = fmax(best, v[i]);
    return r->hi < 1 || best < log(MUCH_SLOWER);
}

static enum status compare(struct check *c, int n_tokens, double seconds, bool *slower,
                           struct rank_ratio *ratio, struct err *err)
{
    const uint64_t end = clock_ns() + (uint64_t)(seconds * 1e9);
    double log_ratio[CHECK_ROUNDS], warm;
    enum status st = time_side(c, 0, n_tokens, &warm, err);
    size_t n = 0;

    while (st == ST_OK && n < CHECK_ROUNDS && (n < MIN_ROUNDS || clock_ns() < end)) {
        double took[2] = {1, 1};

        for (size_t i = 0; i < 2 && st == ST_OK; i++) {
            const int side = (int)((i + n) % 2);

            st = time_side(c, side, n_tokens, &took[side], err);
        }
        log_ratio[n++] = log(took[0] / took[1]);
        if (interrupted())
            return err_set(err, ST_INTERRUPTED, "interrupted");
    }
    *slower = st == ST_OK && lost(log_ratio, n, ratio);
    return st;
}

enum status tuned_check(struct slm *m, const struct tuned_side sides[2], int placed,
                        enum tune_phase phase, bool *slower, char *note, size_t cap,
                        struct err *err)
{
    struct check c = {m, {sides[0], sides[1]}, placed, slm_n_past(m)};
    const int room = slm_info(m)->n_ctx - c.depth;
    const double seconds = phase == TUNE_BOTH ? TUNED_CHECK_S / 2 : TUNED_CHECK_S;
    struct rank_ratio ratio = {1, 0, 0};
    enum status st = ST_OK;
    bool worse = false;
    char text[64];

    if (phase != TUNE_PREFILL)
        st = measure_default(&c, err);
    if (st == ST_OK && phase != TUNE_PREFILL && room >= 1)
        st = compare(&c, 1, seconds, &worse, &ratio, err);
    if (st == ST_OK && !worse && phase != TUNE_DECODE && room >= 2)
        st = compare(&c, room < CHECK_PROMPT ? room : CHECK_PROMPT, seconds, &worse,
                     &ratio, err);
    if (st == ST_OK)
        st = take(&c, worse ? 0 : 1, err);
    if (st)
        return st;
    if (worse)
        snprintf(note, cap,
                 "the profile is not used: by turns with the default it had %s of its "
                 "speed; tune again",
                 tune_ratio_text(&ratio, text, sizeof text));
    *slower = worse;
    return ST_OK;
}
