/* SPDX-License-Identifier: MIT
 *
 * series.h - one figure of one setting on one machine, run after run
 *
 * Model of the world: rows that agree in machine, model and settings, and one column,
 * are a *series*, in order of time. A run gives it one value: the median of its
 * undisturbed rows, which are launches (launches.h). A run that has only disturbed
 * ones, or unfinished ones, gives none. Runs of one commit within SERIES_SESSION_S are
 * one session, under the same conditions: together they give one value, their median.
 *
 * Threading: one thread per object.
 */
#ifndef SLM_HARNESS_DECIDE_HISTORY_SERIES_H
#define SLM_HARNESS_DECIDE_HISTORY_SERIES_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "harness/rows/result_set.h"

#define SERIES_NAME_MAX 160
#define SERIES_MAX      5000

#define SERIES_SESSION_S 10800.0

/* A column that a gate can judge. */
struct series_metric {
    const char *column, *unit;
    bool less_is_better;
    double scale; /* of the column's value into unit */
};

struct series_value {
    double v;   /* in the metric's unit, above 0 */
    size_t run; /* index into the history's */
    char utc[24];
};

struct series {
    char name[SERIES_NAME_MAX]; /* "yi-1.5-9b Q4_K_M, decode, 2 threads, depth 0" */
    size_t model_len;           /* bytes of it that name the model: up to "decode" */
    const struct series_metric *metric;
    struct row like; /* one of its rows, for its settings */
    bool has_machine;
    struct machine_key machine;
    struct series_value *v; /* malloc'ed, in order of time */
    size_t n;
    size_t n_disturbed; /* runs that gave no value for being disturbed */
    size_t n_joined;    /* runs that gave none of their own, as the session has one */
    size_t n_copies; /* with each_row: rows that are others again, and do not count */
};

struct series_set {
    struct series *v; /* malloc'ed; by model, kind, threads, depth */
    size_t n;
};

struct series_choice {
    const char *metrics; /* columns, separated by commas */
    const char *only;    /* part of the name; NULL: all */
    bool disturbed;      /* take disturbed rows, too */
    bool each_row;       /* every row is a value of its own, sessions or not */
};

/* All series of h. Errors: ST_NO_MEMORY, ST_USAGE (a metric), ST_INPUT (too many). */
enum status series_make(struct series_set *set, const struct result_set *h,
                        const struct series_choice *choice, struct err *err);
void series_free(struct series_set *set);

/* Seconds since 1970 of a text as "2026-01-15T10:15:00Z"; NAN if it is none. */
double series_seconds(const char *utc);

/* Whether two times, the later second, are of one session. Times that cannot be read
 * are: they do not show that anything was measured under other conditions. */
bool series_one_session(const char *first_utc, const char *utc);

/* Whether two rows are of one model and setting. If not, why (may be NULL) is what
 * differs: "placement is 'spread', here 'compact'"; *n_differ (may be NULL), in how
 * many columns. */
bool series_same_setting(const struct row *there, const struct row *here,
                         size_t *n_differ, char *why, size_t cap);

#endif
