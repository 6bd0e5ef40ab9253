/* SPDX-License-Identifier: MIT
 *
 * sequential.c - screening by halves, then a duel with interim analyses
 */
#include "harness/stats/sequential.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/random.h"

#define SCREEN_ROUNDS   4
#define HOPELESS        0.9 /* of the default's speed, in each of HOPELESS_ROUNDS */
#define HOPELESS_ROUNDS 3

static const int analyses[] = {SEQUENTIAL_MIN_DUEL, 12, 18, 27, SEQUENTIAL_MAX_DUEL};

#define N_INTERIM ((int)(sizeof analyses / sizeof analyses[0]))

enum status sequential_open(struct sequential *r, size_t n, uint64_t seed,
                            struct err *err)
{
    struct sequential new = {.n = n, .n_screen_rounds = SCREEN_ROUNDS};

    assert(n >= 1);
    new.c = calloc(n, sizeof *new.c);
    new.seconds = calloc(n, sizeof *new.seconds);
    if (!new.c || !new.seconds) {
        free(new.c);
        free(new.seconds);
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu settings", n);
    }
    new.random = seed * 0x9e3779b97f4a7c15u + 0x632be59bd9b4e019u;
    new.state = n == 1 ? SEQUENTIAL_ALONE : SEQUENTIAL_RUNNING;
    new.duel = n == 2;
    new.best = n == 2;
    *r = new;
    return ST_OK;
}

void sequential_close(struct sequential *r)
{
    free(r->c);
    free(r->seconds);
    memset(r, 0, sizeof *r);
}

size_t sequential_round(struct sequential *r, size_t *order)
{
    size_t n = 0;

    if (r->state != SEQUENTIAL_RUNNING)
        return 0;
    memset(r->seconds, 0, r->n * sizeof *r->seconds);
    for (size_t i = 0; i < r->n; i++)
        if (r->duel ? i == 0 || i == r->best : !r->c[i].out)
            order[n++] = i;
    random_shuffle(order, n, sizeof *order, &r->random);
    return n;
}

void sequential_record(struct sequential *r, size_t candidate, double seconds)
{
    assert(candidate < r->n && seconds > 0);
    r->seconds[candidate] = seconds;
}

/* ---- screening ---------------------------------------------------------------- */

/* Hodges and Lehmann's estimate: for a few rounds it is more efficient than their
 * median, and robust against one late round in five. */
static double screened(const struct sequential_candidate *c)
{
    struct rank_ratio r;

    return rank_paired(&r, c->log_ratio, c->n, 0.95, NULL) ? 1 : r.ratio;
}

static bool is_hopeless(const struct sequential_candidate *c)
{
    if (c->n < HOPELESS_ROUNDS)
        return false;
    for (size_t i = 0; i < c->n; i++)
        if (c->log_ratio[i] > log(HOPELESS))
            return false;
    return true;
}

static size_t challengers(const struct sequential *r)
{
    size_t n = 0;

    for (size_t i = 1; i < r->n; i++)
        n += !r->c[i].out;
    return n;
}

static void drop_worst(struct sequential *r)
{
    size_t worst = 0;
    double least = INFINITY;

    for (size_t i = 1; i < r->n; i++) {
        const double ratio = r->c[i].out ? INFINITY : screened(&r->c[i]);

        if (ratio < least) {
            least = ratio;
            worst = i;
        }
    }
    r->c[worst].out = true;
}

/* The last challenger meets the default, unless screening found it no faster. */
static void begin_duel(struct sequential *r)
{
    r->duel = true;
    r->n_rounds = 0;
    for (size_t i = 1; i < r->n; i++) {
        r->c[i].n_screen = r->c[i].n;
        if (!r->c[i].out)
            r->best = i;
    }
    if (!r->best || (!r->always_duel && screened(&r->c[r->best]) <= 1)) {
        r->state = SEQUENTIAL_TIE;
        r->best = 0;
    }
}

static void screen(struct sequential *r)
{
    for (size_t i = 1; i < r->n; i++)
        if (!r->always_duel || challengers(r) > 1)
            r->c[i].out |= is_hopeless(&r->c[i]);
    if (r->n_rounds >= r->n_screen_rounds) {
        const size_t keep = challengers(r) / 2;

        while (challengers(r) > (keep ? keep : 1))
            drop_worst(r);
        r->n_rounds = 0;
        if (challengers(r) == 1)
            begin_duel(r);
    }
    if (!r->duel && !challengers(r))
        begin_duel(r);
}

/* ---- the duel ----------------------------------------------------------------- */

static enum status interval(const struct sequential *r, size_t i, double level,
                            struct rank_ratio *out, struct err *err)
{
    const struct sequential_candidate *c = &r->c[i];
    const size_t from = i == r->best ? c->n_screen : 0;

    return rank_paired(out, c->log_ratio + from, c->n - from, level, err);
}

static enum status analyse(struct sequential *r, bool last, struct err *err)
{
    struct rank_ratio ratio;
    const enum status st = interval(r, r->best, SEQUENTIAL_LEVEL, &ratio, err);

    if (st)
        return st;
    r->n_interim++;
    if (ratio.lo > 1)
        r->state = SEQUENTIAL_WON;
    else if (last || ratio.hi < SEQUENTIAL_WORTH ||
             (ratio.ratio < 1 && !r->always_duel))
        r->state = SEQUENTIAL_TIE;
    return ST_OK;
}

enum status sequential_round_end(struct sequential *r, struct err *err)
{
    for (size_t i = 1; i < r->n; i++) {
        struct sequential_candidate *c = &r->c[i];

        if (r->seconds[i] > 0 && c->n < SEQUENTIAL_MAX_ROUNDS)
            c->log_ratio[c->n++] = log(r->seconds[0] / r->seconds[i]);
    }
    r->c[0].n++;
    r->n_rounds++;
    if (!r->duel)
        screen(r);
    else if (r->n_rounds == analyses[r->n_interim])
        return analyse(r, r->n_interim + 1 == N_INTERIM, err);
    return ST_OK;
}

enum status sequential_cut(struct sequential *r, struct err *err)
{
    enum status st = ST_OK;

    if (r->state != SEQUENTIAL_RUNNING)
        return ST_OK;
    if (r->duel && r->n_rounds >= SEQUENTIAL_MIN_DUEL)
        st = analyse(r, false, err);
    if (r->state == SEQUENTIAL_RUNNING)
        r->state = SEQUENTIAL_CUT;
    return st;
}

size_t sequential_choice(const struct sequential *r)
{
    return r->state == SEQUENTIAL_WON ? r->best : 0;
}

enum status sequential_ratio(const struct sequential *r, size_t candidate,
                             struct rank_ratio *out, struct err *err)
{
    if (candidate == 0) {
        *out = (struct rank_ratio){1, 1, 1};
        return ST_OK;
    }
    return interval(r, candidate, 0.95, out, err);
}
