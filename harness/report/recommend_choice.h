/* SPDX-License-Identifier: MIT
 *
 * recommend_choice.h - the state of a choice: recommend.c decides, recommend_text.c
 * writes the text
 *
 * Threading: data; one thread.
 */
#ifndef SLM_HARNESS_REPORT_RECOMMEND_CHOICE_H
#define SLM_HARNESS_REPORT_RECOMMEND_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/report/recommend_speed.h"
#include "harness/report/report.h"
#include "harness/result/report_rows.h"

/* Why a point does not qualify, in the order of the checks: a point that fails a later
 * check came closer. */
enum reason {
    OTHER_MODEL,
    OTHER_KIND,
    TOO_SHALLOW,
    DEEPER, /* a lesser depth of the same setting serves as well: no exclusion */
    UNFINISHED,
    TOO_LARGE,
    TOO_MANY_THREADS,
    TOO_SLOW,
    UNKNOWN_QUALITY,
    TOO_LOSSY,
    ABOVE_ROOF, /* either figure is wrong: never to be used */
    DISTURBED,  /* and no other depth gives an estimate: only a lower bound */
    N_REASONS,
    ESTIMATED = N_REASONS, /* disturbed, and estimated from other depths */
    QUALIFIES,
    N_VERDICTS
};

#define NO_ROW SIZE_MAX

struct chooser {
    const struct recommend_params *params;
    struct report_rows rows;
    enum reason *why;    /* [rows.n] */
    struct speed *speed; /* [rows.n], of those that qualify or were disturbed */
    double *scratch;     /* [rows.n] */
    int64_t ctx;         /* the requested depth, resolved */
    double max_kl;       /* INFINITY: any */
    int n[N_VERDICTS];

    /* Indices of rows. */
    size_t top;        /* the least expected regret */
    size_t best;       /* the choice */
    size_t runner_up;  /* NO_ROW: none */
    double max_median; /* of all, tok/s */
    int n_equals;      /* top, and those that a preference may choose */
};

/* Ends of the interval; without one the median. */
double row_lo(const struct row *r);
double row_hi(const struct row *r);

/* Memory limit of that row; 0: none. */
uint64_t recommend_limit(const struct chooser *c, const struct row *r);

/* Whether it diverges less, where both divergences are known and from the same
 * reference. */
bool recommend_keeps_more(const struct row *a, const struct row *b);

/* Whether row i is a candidate, and so close to the fastest that a preference may
 * choose it. */
bool recommend_is_equal(const struct chooser *c, size_t i);

/* Fill in why, excluded and n_excluded. */
void recommend_say(struct recommendation *rec, const struct chooser *c);

/* The closest point, and the check it fails. Returns ST_CHECK. */
enum status recommend_say_nothing(const struct chooser *c, struct err *err);

#endif
