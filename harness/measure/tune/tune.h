/* SPDX-License-Identifier: MIT
 *
 * tune.h - finding the fastest settings of one model on one machine, within a budget
 *
 * The settings are tuned one after another (tune_settings.h), each by a sequential
 * comparison against its default (sequential.h) with all others as chosen so far.
 * Settings that formats have one each are tuned for all formats at once: a token's time
 * is known per format. Then all of them are compared again, their rounds interleaved,
 * so that no burst of foreign load decides about a setting. At the end all choices for
 * decoding together are compared with the default, and then all choices for prefill;
 * where they are not faster, choices are taken back one by one until the rest is.
 * Rounds that were disturbed do not count and are run again.
 *
 * What is measured on is behind struct tune_machine, so that tests can run all of this
 * on an invented machine whose best setting is known.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNE_H
#define SLM_HARNESS_MEASURE_TUNE_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/stats/disturbances.h"
#include "harness/stats/sequential.h"
#include "harness/measure/tune/tune_settings.h"

struct tune_sample {
    double seconds;
    double fmt_s[KERN_N_FMT]; /* of products with weights of a format; 0: none */
};

/* Errors of its functions end the tuning. */
struct tune_machine {
    void *arg;
    /* Open the model anew with a setup's residency and pages. */
    enum status (*open)(void *arg, const struct tune_setup *s, struct err *err);
    /* One token; a prompt of n_tokens. */
    enum status (*decode)(void *arg, const struct tune_setup *s,
                          struct tune_sample *out, struct err *err);
    enum status (*prefill)(void *arg, const struct tune_setup *s, int n_tokens,
                           struct tune_sample *out, struct err *err);
    double (*now)(void *arg); /* seconds */
    bool (*stop)(void *arg);  /* whether to end; NULL: never */
    /* fraction of the budget, and what is done; NULL: nobody wants to know */
    void (*progress)(void *arg, double fraction, const char *what);
    /* A round begins; whether it was disturbed since, by what happened during it and
     * never by the time it took, and by what ("steal 4 %"); NULL: nobody knows. */
    void (*watch)(void *arg);
    bool (*disturbed)(void *arg, char *why, size_t cap);
    /* Complete the default with what a model finds out by itself when it is loaded;
     * NULL: nothing. */
    enum status (*measure)(void *arg, struct tune_setup *base, struct err *err);
};

struct tune_params {
    struct tune_space space;
    struct tune_setup base; /* the default */
    double budget_s;
    uint64_t seed;
    bool exhaustive; /* try all combinations afterwards, outside the budget */
};

/* What came of one setting, or of one format of it. */
struct tune_outcome {
    enum tune_setting setting;
    enum kern_format fmt; /* KERN_N_FMT: all */
    enum sequential_state state;
    size_t n, choice, best; /* best: the challenger of a duel, or 0 */
    long long value[TUNE_MAX_VALUES];
    struct rank_ratio ratio[TUNE_MAX_VALUES];
    size_t n_rounds[TUNE_MAX_VALUES];
    bool out[TUNE_MAX_VALUES];
    bool confirmed;  /* two comparisons, one after the other, chose the same */
    bool taken_back; /* at the end, since the other choices were faster without it */
    char note[160];  /* why it was cut short, "" */
};

/* All that was chosen for a phase, without what was taken back, against all of its
 * defaults. */
struct tune_final {
    bool changed;   /* there was something to compare */
    bool own;       /* of this phase, or only what choices for decoding do to prefill */
    bool kept;      /* of its own choices, any */
    bool by_choice; /* though all together were not told from the defaults: each that is
                       left was confirmed by itself */
    size_t n_taken_back;
    struct rank_ratio ratio;
    size_t n_rounds;
};

struct tune_exhaustive {
    size_t n_combinations; /* 0: not done */
    struct tune_setup best;
    struct rank_ratio ratio; /* the best one's speed over the tuned one's */
    size_t n_rounds;
};

#define TUNE_MAX_OUTCOMES (TUNE_N_SETTINGS + 3 * KERN_N_FMT)

struct tune_result {
    struct tune_setup base, chosen;
    struct tune_outcome outcome[TUNE_MAX_OUTCOMES];
    size_t n;
    struct tune_final decode, prefill;
    struct tune_exhaustive exhaustive;
    int n_prompt; /* tokens of a prefill sample */
    double token_s, prompt_s, open_s, spent_s;
    size_t n_rounds; /* of all, those that were disturbed, too */
    struct disturbances disturbances;
};

/* Errors: the machine's; ST_INTERRUPTED; ST_NO_MEMORY. */
enum status tune_run(struct tune_result *r, const struct tune_params *p,
                     const struct tune_machine *m, struct err *err);

/* ---- what it prints (tune_report.c) --------------------------------------------- */

/* A few lines; with explain a table of every candidate of every setting. */
void tune_print(FILE *f, const struct tune_result *r, bool explain);
json_t *tune_json(const struct tune_result *r);

/* What the choice of an outcome was worth, in a few words. */
const char *tune_worth(const struct tune_result *r, const struct tune_outcome *o,
                       char *buf, size_t cap);

/* The outcome of a setting (and a format), or NULL. */
const struct tune_outcome *tune_find(const struct tune_result *r,
                                     enum tune_setting setting, enum kern_format fmt);

#endif
