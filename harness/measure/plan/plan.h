/* SPDX-License-Identifier: MIT
 *
 * plan.h - before a model runs: what stays in memory, what is read again for every
 * token, and how fast that is
 *
 * Model of the world: a worker opens the model behind the fence and reports what it
 * needs (messages.h), the same answer that a point is planned with. The roofs of this
 * machine, measured or from a stored measurement, make a time of it (token_time.h).
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MEASURE_PLAN_PLAN_H
#define SLM_HARNESS_MEASURE_PLAN_PLAN_H

#include <stdint.h>
#include <stdio.h>
#include <jansson.h>

#include "engine/speculate/speculate_rule.h"
#include "harness/machine/topology.h"
#include "harness/measure/worker/messages.h"
#include "harness/rows/token_time.h"
#include "harness/measure/worker/worker_client.h"

enum plan_verdict {
    PLAN_FITS,
    PLAN_STREAMS,
    PLAN_PAGES, /* a mapped file that memory does not hold */
    PLAN_NO_FIT
};
extern const char *const plan_verdict_names[];

/* Where the roofs come from. */
struct plan_roofs {
    struct token_roofs gbps; /* 0: not known, or not needed */
    char from[320];          /* "measured now", or the file */
    char disk_why_not[256];  /* why disk_gbps is not known; "" */
    enum mem_pages pages;
    int n_threads;
};

struct plan {
    struct point point; /* a decode point; its residency is the one chosen */
    enum weights_residency wanted;
    struct point_need need;
    uint64_t room;         /* memory for everything */
    char room_from[320];   /* whose limit that is */
    struct topo_llc cache; /* last-level cache, for its threads; 0: unknown */
    enum plan_verdict verdict;
    struct plan_roofs roofs;
    struct token_time time; /* token_s NaN: not predicted, as of a model that the
                               last-level cache holds */
    double tok_per_s_lo, tok_per_s_hi; /* expected between; NaN: not predicted */
    double columns[SPECULATE_MAX + 2]; /* how long products of [n] columns take,
                                          as a multiple of one's; [1] 0: not measured */
    bool has_draft;
    struct point_need draft; /* what a draft model needs, */
    double draft_s;          /* and the time of its token */
};

/* The worker that plans one model, with any number of settings. */
struct planner {
    struct worker_client worker;
};

/* *planner is for planner_close() in any case. Errors: those of starting the worker. */
enum status planner_open(struct planner *planner, struct err *err);
void planner_close(struct planner *planner);

/* Verdict and sizes from the worker into *plan, no roofs. topo: the machine to plan
 * for; its memory, limits and last-level cache count. Errors: the worker's, which are
 * those of opening the model. */
enum status planner_make(struct planner *planner, struct plan *plan,
                         const struct point *p, const struct topology *topo,
                         struct err *err);

/* Plans with a planner of its own. */
enum status plan_make(struct plan *plan, const struct point *p,
                      const struct topology *topo, struct err *err);

/* The verdict from room and need; a part of plan_make(), for tests. */
enum plan_verdict plan_verdict(const struct point_need *need, uint64_t room);

/* What a token takes. */
struct token_work plan_work(const struct plan *plan);

/* How much of what a token reads the last-level cache holds. */
enum topo_cached plan_cached(const struct plan *plan);

/* Fill in the time from roofs and need. */
void plan_predict(struct plan *plan);

/* Measure the roofs that the plan needs, in a second or two, and the last-level cache
 * where *topo has no measured size (cache_find()): read bandwidth of its
 * threads, and where it streams the disk of the model's file, or, where that is not
 * made yet, of its directory. A disk that cannot be probed is a sentence in
 * disk_why_not. Errors: ST_NO_MEMORY, ST_INTERRUPTED, of placement_cpus(). */
enum status plan_measure_roofs(struct plan *plan, struct topology *topo,
                               struct err *err);

/* Measure the columns, of a model that fits, within a second. Errors:
 * kernel_column_costs()'s. */
enum status plan_measure_columns(struct plan *plan, const struct topology *topo,
                                 struct err *err);

/* The draft model that another plan, made for this machine, is of: with the roofs. */
void plan_set_draft(struct plan *plan, struct plan *draft);

/* Drafts whose guesses are right with these probabilities, of the drafts that people
 * report. */
#define PLAN_N_RATES 3
extern const double plan_rates[PLAN_N_RATES];

/* What passes of several tokens cost by the columns, or by SPECULATE_COLUMN where they
 * were not measured; guesses cost nothing. False: no time of a token is predicted. */
bool plan_draft_costs(const struct plan *plan, struct speculate_costs *costs);

/* The time of a guess, in tokens of the model: by its own layer (0: it has no such
 * layer); by the draft model, or SPECULATE_DRAFT_SHARE. */
double plan_own_guess(const struct plan *plan);
double plan_draft_guess(const struct plan *plan);

/* Roofs from the file that `bench probe --json` has written, or the machine.json of a
 * sweep, which has the size of the machine's cache, too (it is unknown otherwise): the
 * row with the plan's pages and as many threads, or the next fewer. Errors:
 * jsonfile_read()'s, ST_INPUT (no such row, or no disk where the plan streams). */
enum status plan_read_roofs(struct plan *plan, const char *path, struct err *err);

/* The first line, and the tables. */
void plan_print(FILE *f, const struct plan *plan);
json_t *plan_json(const struct plan *plan);

/* The first line alone, into buf, which is returned. */
const char *plan_sentence(const struct plan *plan, char *buf, size_t cap);

#endif
