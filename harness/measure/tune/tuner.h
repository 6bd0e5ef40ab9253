/* SPDX-License-Identifier: MIT
 *
 * tuner.h - inside tune_run(): rounds, groups of sequential comparisons, and the steps
 *
 * A *round* runs each of some setups for a while, interleaved, and gives one time for
 * each. A round that was disturbed does not count and is run again, while no more than
 * a part of the budget was lost that way. Three steps are made of rounds:
 *
 *   search   setting after setting, each with all others as chosen so far (tune.c)
 *   confirm  all settings again, their rounds interleaved over seconds, so that one
 *            burst of foreign load decides none of them (tune_confirm.c)
 *   finish   all choices together against all defaults; choices are taken back until
 *            the rest wins (tune_final.c)
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNER_H
#define SLM_HARNESS_MEASURE_TUNE_TUNER_H

#include "harness/measure/tune/tune.h"

#define TUNER_SEARCH_END    0.62 /* of the budget */
#define TUNER_CONFIRM_END   0.86
#define TUNER_LATEST        1.25 /* where choices have to be taken back */
#define TUNER_MAX_PASSES    64
#define TUNER_MAX_SAMPLES   (TUNE_MAX_VALUES * TUNER_MAX_PASSES) /* of a round */
#define TUNER_USUAL_SAMPLES 50 /* of a sequential comparison */

/* One sequential comparison of a setting, or of one format's value of it. */
struct contest {
    struct sequential comparison;
    struct tune_outcome *o;
    size_t index[TUNE_MAX_VALUES]; /* of its candidates among the outcome's values */
    size_t order[TUNE_MAX_VALUES], n_order;
};

/* The comparisons of one setting: they share their samples. */
struct tune_group {
    enum tune_setting setting;
    size_t n, most; /* comparisons; candidates of the one with most */
    int n_passes;   /* through the candidates, in a round */
    bool sampled;
    struct contest contest[KERN_N_FMT];
};

/* What a sample of a round is. */
struct tuner_work {
    enum tune_phase phase; /* TUNE_BOTH: the model opened anew, tokens, a prompt */
    int n_prompt;
};

struct tuner {
    const struct tune_params *p;
    const struct tune_machine *m;
    struct tune_result *r;
    struct tune_group group[TUNE_N_SETTINGS];
    struct tune_setup found; /* by the search */
    struct tune_sample *taken;
    size_t n_max; /* samples that taken[] holds */
    double begin;
    double prefill_s;             /* per token */
    double slower[TUNE_BOTH + 1]; /* of a phase: what rounds took lately, as a
                                     multiple of what their samples take alone */
    double wasted_s;              /* in rounds that did not count */
    double tried;                 /* of all combinations, above 0 while they run */
    const char *what;             /* is being measured, for the progress line */
    uint64_t n_comparisons;
};

/* ---- rounds (tune_rounds.c) ------------------------------------------------------ */

double tuner_now(const struct tuner *t);

/* Seconds until a share of the budget is spent. */
double tuner_left(const struct tuner *t, double share);

/* What begins now, for the progress line or log. Error: ST_INTERRUPTED. */
enum status tuner_step(struct tuner *t, const char *what, struct err *err);

/* ST_INTERRUPTED if the machine requests it. */
enum status tuner_check(const struct tuner *t, struct err *err);

struct tuner_work tuner_work_of(const struct tuner *t, enum tune_setting setting);

/* What a sample is likely to take. */
double tuner_cost(const struct tuner *t, const struct tuner_work *work);

/* Passes of a round of n setups that takes about `seconds`, at least 1. */
int tuner_passes(const struct tuner *t, const struct tuner_work *work, size_t n,
                 double seconds);

/* A round of n setups: their median times into out[n]. *counts: it was not disturbed,
 * or has to count all the same. */
enum status tuner_round(struct tuner *t, const struct tuner_work *work,
                        const struct tune_setup *setup, size_t n, int n_passes,
                        struct tune_sample *out, bool *counts, struct err *err);

/* ---- groups (tune_group.c) ------------------------------------------------------- */

/* Adds the comparison of an outcome's values, those of index[n] alone. Error:
 * ST_NO_MEMORY. */
enum status group_add(struct tuner *t, struct tune_group *g, struct tune_outcome *o,
                      const size_t *index, size_t n, struct err *err);

/* Passes of its rounds, so that one of two candidates takes so many seconds. */
void group_fit(const struct tuner *t, struct tune_group *g, double round_s);

/* Samples of the group's next round; 0 when all of its comparisons are over. */
size_t group_next(struct tune_group *g);

/* That round. What a comparison has decided is chosen from then on. */
enum status group_play(struct tuner *t, struct tune_group *g, size_t n_slots,
                       struct err *err);

/* Ends its comparisons, into their outcomes. keep: what is undecided stays as chosen,
 * not the default; its outcome, too. */
enum status group_close(struct tuner *t, struct tune_group *g, bool keep,
                        struct err *err);

/* ---- steps ----------------------------------------------------------------------- */

/* The search of one setting, for so many seconds (tune.c). It is not tried where these
 * are too few for any decision. */
enum status tuner_search(struct tuner *t, enum tune_setting setting, double seconds,
                         struct err *err);

/* Settings that were not tried, until a share of the budget is spent. */
enum status tuner_search_rest(struct tuner *t, double share, struct err *err);

enum status tuner_confirm(struct tuner *t, struct err *err);
enum status tuner_finish(struct tuner *t, struct err *err);
enum status tuner_exhaust(struct tuner *t, struct err *err);

#endif
