/* SPDX-License-Identifier: MIT
 *
 * sequential.h - sequential comparison of settings with a default, interleaved
 *
 * Candidate 0 is the default. In each round every remaining candidate runs once, in
 * random order, so that slow drift affects all alike; the data are logarithms of
 * quotients within a round. Two parts:
 *
 *   screening  (of three candidates or more) after a few rounds the slower half of the
 *              challengers is dropped, by the middle of all their rounds, until one is
 *              left; a challenger that lost every round by a tenth is dropped at once
 *   duel       that challenger against the default, on new rounds only, since selection
 *              biases the rounds of screening. Interim analyses after 8, 12, 18, 27 and
 *              40 rounds use Wilcoxon's signed rank interval at 99 % each, which bounds
 *              the rate of wrongly replaced defaults at 5 % of sequential comparisons
 *
 * The challenger wins when its interval lies above 1. It is a tie, and the default
 * stays, when the interval ends below the least useful gain, when the challenger is
 * slower at an interim analysis, after the last one, or when screening left no faster
 * challenger.
 *
 * Threading: one thread per sequential comparison.
 */
#ifndef SLM_HARNESS_STATS_SEQUENTIAL_H
#define SLM_HARNESS_STATS_SEQUENTIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/stats/ranktest.h"

#define SEQUENTIAL_MAX_ROUNDS 160
#define SEQUENTIAL_MIN_DUEL   8 /* rounds before the first interim analysis */
#define SEQUENTIAL_MAX_DUEL   40
#define SEQUENTIAL_LEVEL      0.99
#define SEQUENTIAL_WORTH      1.003 /* the least useful gain */

enum sequential_state {
    SEQUENTIAL_RUNNING,
    SEQUENTIAL_WON,  /* best is faster than the default */
    SEQUENTIAL_TIE,  /* no candidate is faster: the default */
    SEQUENTIAL_CUT,  /* ended by the caller before a decision: the default */
    SEQUENTIAL_ALONE /* the default is the only candidate */
};

struct sequential_candidate {
    bool out;
    size_t n, n_screen;                      /* rounds; those of screening come first */
    double log_ratio[SEQUENTIAL_MAX_ROUNDS]; /* the default's time over its own */
};

struct sequential {
    enum sequential_state state;
    size_t n;
    struct sequential_candidate *c; /* [n]; c[0] has only its n used */
    size_t best;                    /* the challenger of the duel; 0: none yet */
    bool duel;
    bool always_duel;    /* duel even if no challenger was faster; set before round 1 */
    int n_screen_rounds; /* before half of them are dropped */
    int n_rounds;        /* since then; in a duel: since its start */
    int n_interim;       /* analyses done */
    double *seconds;     /* [n] of this round; 0: not measured */
    uint64_t random;
};

/* n >= 1 candidates. Error: ST_NO_MEMORY. */
enum status sequential_open(struct sequential *r, size_t n, uint64_t seed,
                            struct err *err);
void sequential_close(struct sequential *r);

/* The candidates of the next round in their order, into order[r->n]; returns their
 * number, 0 at the end. */
size_t sequential_round(struct sequential *r, size_t *order);

/* Records a candidate's time in this round, above 0. */
void sequential_record(struct sequential *r, size_t candidate, double seconds);

/* To be called when all of sequential_round() are recorded. Error: ST_NO_MEMORY. */
enum status sequential_round_end(struct sequential *r, struct err *err);

/* Ends it early, with a last interim analysis if there are enough rounds. */
enum status sequential_cut(struct sequential *r, struct err *err);

/* The choice: best if it has won, else 0. */
size_t sequential_choice(const struct sequential *r);

/* How fast a candidate was, as a multiple of the default's speed, with a 95 % interval,
 * from the duel's rounds if it had one. ratio is 1 if n is 0. */
enum status sequential_ratio(const struct sequential *r, size_t candidate,
                             struct rank_ratio *out, struct err *err);

#endif
