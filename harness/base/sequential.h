/* SPDX-License-Identifier: MIT
 *
 * sequential.h - which of several settings is faster than the default, by turns
 *
 * Candidate 0 is the default. In each round every candidate that is still in runs once,
 * in random order, so that slow drift is no difference between them; what is compared
 * are logarithms of quotients within a round. Two parts:
 *
 *   screening  (of three candidates or more) after a few rounds the worse half of the
 *              challengers goes, by the middle of all their rounds, until one is left;
 *              one that lost every round by a tenth goes at once
 *   duel       that challenger against the default, on fresh rounds only, since the
 *              rounds that made it the best of many flatter it. After 8, 12, 18, 27 and
 *              40 rounds Wilcoxon's signed rank interval is looked at, at 99 % each
 *              time, so that over all looks a default is given up for nothing in at
 *              most one of twenty sequential comparisons
 *
 * The challenger has won when its interval lies above 1. It is a tie, and the default
 * stays, when the interval ends below a gain worth having, when the challenger is the
 * slower one at a look, after the last look, or when screening left nobody who was
 * faster.
 *
 * Threading: one thread per sequential comparison.
 */
#ifndef SLM_HARNESS_BASE_SEQUENTIAL_H
#define SLM_HARNESS_BASE_SEQUENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/base/ranktest.h"

#define SEQUENTIAL_MAX_ROUNDS 160
#define SEQUENTIAL_MIN_DUEL   8 /* rounds before the first look */
#define SEQUENTIAL_MAX_DUEL   40
#define SEQUENTIAL_LEVEL      0.99
#define SEQUENTIAL_WORTH      1.003 /* a gain below this is not looked for any longer */

enum sequential_state {
    SEQUENTIAL_RUNNING,
    SEQUENTIAL_WON,  /* sequential comparison.best is faster than the default */
    SEQUENTIAL_TIE,  /* nothing is: the default */
    SEQUENTIAL_CUT,  /* ended from outside before it was decided: the default */
    SEQUENTIAL_ALONE /* there was nothing to choose from */
};

struct sequential_candidate {
    bool out;
    size_t n, n_screen;                      /* rounds; those of screening come first */
    double log_ratio[SEQUENTIAL_MAX_ROUNDS]; /* the default's time over its own */
};

struct sequential {
    enum sequential_state state;
    size_t n;
    struct sequential_candidate *c; /* [n]; of c[0] only n is used */
    size_t best;                    /* the challenger of the duel; 0: none yet */
    bool duel;
    bool always_duel; /* to be set before the first round: also where nobody was faster
                       */
    int n_screen_rounds; /* before half of them go */
    int n_rounds;        /* since then; in a duel: since its start */
    int n_looks;
    double *seconds; /* [n] of this round; 0: not measured */
    uint64_t random;
};

/* n >= 1 candidates. Error: ST_NO_MEMORY. */
enum status sequential_open(struct sequential *r, size_t n, uint64_t seed,
                            struct err *err);
void sequential_close(struct sequential *r);

/* Who runs in the next round, in which order: into order[r->n]; 0 when it is over. */
size_t sequential_round(struct sequential *r, size_t *order);

/* Its time in this round, above 0. */
void sequential_record(struct sequential *r, size_t candidate, double seconds);

/* All of sequential_round() have been recorded. Error: ST_NO_MEMORY. */
enum status sequential_round_end(struct sequential *r, struct err *err);

/* There is no time for more: a last look, if rounds are enough for one. */
enum status sequential_cut(struct sequential *r, struct err *err);

/* What is chosen: best where it has won, else 0. */
size_t sequential_choice(const struct sequential *r);

/* How fast a candidate was, as a multiple of the default's speed, with a 95 % interval;
 * of the duel's rounds where it had one. ratio is 1 where n is 0. */
enum status sequential_ratio(const struct sequential *r, size_t candidate,
                             struct rank_ratio *out, struct err *err);

#endif
