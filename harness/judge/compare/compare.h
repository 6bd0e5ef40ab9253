/* SPDX-License-Identifier: MIT
 *
 * compare.h - which of several machines to take, from a sweep of each
 *
 * Model of the world: each directory is a machine, and so is each profile and host of a
 * database of `bench history` or of a folder of sweeps, by the latest rows of its
 * points (result_set.h). Under the same wishes
 * the recommendation's rule (recommend.h) chooses the setting of each; what is compared
 * is that setting's speed, time to the first token, and price of tokens. Speeds have
 * the distributions that recommendations are made with (recommend_speed.h), so a rank
 * has the probability that nothing else is first, unless a machine in it has only
 * disturbed rows: their speeds are lower bounds. A price of tokens is that of a
 * machine's hour over the tokens of it, of one sequence at a time, for the share of the
 * time in which it works. Rows of bench load are compared by themselves: what the
 * servers of all machines carry (users.h).
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_JUDGE_COMPARE_COMPARE_H
#define SLM_HARNESS_JUDGE_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stdio.h>
#include <jansson.h>

#include "harness/judge/compare/prices.h"
#include "harness/judge/recommend/recommend.h"
#include "harness/judge/recommend/recommend_speed.h"
#include "harness/rows/result_set.h"

#define COMPARE_MAX_MACHINES 64

enum compare_by { COMPARE_COST, COMPARE_SPEED, COMPARE_TTFT, COMPARE_N_BY };
extern const struct choices choices_compare_by;

struct compare_params {
    struct recommend_params wishes; /* ctx -1, n_prompt 0: the most that all measured */
    const char *engine;             /* only rows of this program; NULL: any */
    enum compare_by by;
    bool by_given;      /* else by cost, or by speed where a price is not known */
    double utilisation; /* share of the time in which a machine works, 0 to 1 */
    const struct prices *prices;
    const char *prices_from; /* for the reader */
};

/* A figure and the ends of its 95 % interval; NAN: not known. */
struct compare_figure {
    double mid, lo, hi;
};

struct compare_machine {
    char name[128];  /* last part of the directory, or host */
    char cpu[160];   /* "AMD EPYC, 2 CPUs" */
    struct err none; /* why it has no setting; ST_OK: it has one */
    struct recommendation rec;
    struct price price;  /* per_hour 0: not known */
    struct speed speed;  /* decode */
    bool speed_is_bound; /* a lower one: all its rows were disturbed */
    struct compare_figure tok_per_s, ttft_s, cost_in, cost_out; /* costs: per million */
    double max_floor; /* highest floor of decode speed that a setting is known to
                          reach, tok/s */
    double score;     /* what is ranked by, the higher the better; 0: not ranked */
    bool is_bound;    /* so is the score: only disturbed rows are behind it */
    double p_first;   /* NAN: not known, as the score of a ranked machine is a bound */
};

#define COMPARE_MAX_NOTES 24

struct comparison {
    struct compare_machine *v; /* malloc'ed [n], the first first; those without a
                                  setting, or without a price where that counts, last */
    size_t n;
    enum compare_by by;
    double utilisation;
    int64_t ctx, n_prompt;
    char model[256], prices_from[256];
    char origin[160]; /* report_origin() of the rows that were chosen */
    char changes[COMPARE_MAX_NOTES][300]; /* what would change the ranking */
    int n_changes;
    char differs[COMPARE_MAX_NOTES][400]; /* what is not alike */
    int n_differs;
    char users[1200]; /* what the servers carry, by rows of bench load; "": no rows */
    char serves[COMPARE_MAX_NOTES][700]; /* each at the most users that all had */
    int n_serves;
};

/* *c is for compare_free() in any case; c->n is 0 where there are rows of bench load
 * alone. Errors: result_set_open()'s; ST_CHECK (no machine has a setting), ST_INPUT
 * (several models and none chosen; a price is missing or in another currency where
 * costs are requested), ST_USAGE (too many machines), ST_NO_MEMORY. */
enum status compare_make(struct comparison *c, const char *const *paths, size_t n,
                         const struct compare_params *p, struct err *err);
void compare_free(struct comparison *c);

void compare_print(FILE *f, const struct comparison *c);
void compare_print_markdown(FILE *f, const struct comparison *c);
json_t *compare_json(const struct comparison *c);

/* dir/cost_speed.csv, .gp, .svg and .png; nothing where fewer than one machine has a
 * price. again: the command that redraws it. Errors: chart_files_draw()'s. */
#define COMPARE_CHART "cost_speed"
enum status compare_chart(const struct comparison *c, const char *dir,
                          const char *again, bool *drawn, struct err *err);

/* ---- parts of compare_make() ----------------------------------------------------- */

/* Fills in users and serves (compare_users.c). Error: ST_NO_MEMORY. */
enum status compare_users(struct comparison *c, const struct result_part *parts,
                          size_t n, const struct compare_params *p, struct err *err);

/* Fill in what would change the ranking, and what is not alike (compare_notes.c). */
void compare_note(struct comparison *c);

#endif
