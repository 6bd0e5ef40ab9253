/* SPDX-License-Identifier: MIT
 *
 * recommend_choice.h - the state of a choice: recommend.c decides by speed,
 * recommend_quality.c by quality, recommend_prompt.c knows prompts and
 * recommend_memory.c memory; recommend_text.c and recommend_answer.c write the texts
 *
 * Threading: data; one thread.
 */
#ifndef SLM_HARNESS_JUDGE_RECOMMEND_RECOMMEND_CHOICE_H
#define SLM_HARNESS_JUDGE_RECOMMEND_RECOMMEND_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/judge/recommend/recommend.h"
#include "harness/judge/recommend/recommend_speed.h"
#include "harness/rows/report_rows.h"
#include "engine/quantize/quantmix.h"

/* Why a point does not qualify, in the order of the checks: a point that fails a later
 * check came closer. */
enum reason {
    OTHER_MODEL,
    OTHER_KIND,
    TOO_SHALLOW,
    DEEPER,     /* a lesser depth of the same setting serves as well: no exclusion */
    FAILED,     /* ended by an error */
    NO_ROOM,    /* did not fit, or was killed for memory */
    UNFINISHED, /* ended by its time budget, or by the user */
    TOO_LARGE,
    TOO_MANY_THREADS,
    TOO_SLOW,
    TOO_LATE, /* the first token of a prompt */
    UNKNOWN_QUALITY,
    TOO_LOSSY,
    FEW_BITS,   /* of unknown quality, and something else has more */
    ABOVE_ROOF, /* either figure is wrong: never to be used */
    DISTURBED,  /* and no other depth gives an estimate: only a lower bound */
    N_REASONS,
    ESTIMATED = N_REASONS, /* disturbed, and estimated from other depths */
    QUALIFIES,
    N_VERDICTS
};

#define NO_ROW SIZE_MAX

/* Ranks of quality are 0 (keeps everything) .. QUALITY_N_RANKS - 1 (not known). */
#define QUALITY_N_RANKS (QUANTMIX_N + 1)

struct chooser {
    const struct recommend_params *params;
    struct report_rows rows;
    enum reason *why;    /* [rows.n] */
    struct speed *speed; /* [rows.n], of those that qualify or were disturbed */
    double *scratch;     /* [rows.n] */
    const char *model;   /* NULL: any */
    struct report_name model_name;
    int64_t ctx;      /* the requested depth, resolved */
    int64_t n_prompt; /* the requested prompt, resolved; 0: none was measured */
    double max_kl;    /* INFINITY: any */
    int n[N_VERDICTS];

    struct recommend_prompt prompt; /* of the setting of prompt_row, while judging */
    size_t prompt_row;
    struct recommend_prompt earliest; /* of those that are too late, and one of them */
    size_t earliest_row;

    const char *reference;          /* that divergences are from; NULL: none is known */
    double min_kl[QUALITY_N_RANKS]; /* largest divergence known of this rank and
                                         better ones */

    /* Indices of rows; NO_ROW: none. */
    size_t top;  /* the least expected regret of those in the choice */
    size_t best; /* the choice */
    size_t
        replaced; /* what would have been chosen by speed, had it not diverged more */
    size_t runner_up;
    double max_median; /* of those in the choice, tok/s */
    int n_equals;      /* top, and those that a preference may choose */
};

/* Ends of the interval; without one the median. */
double row_lo(const struct row *r);
double row_hi(const struct row *r);

/* Whether it is of the requested model. */
bool recommend_is_model(const struct chooser *c, const struct row *r);

/* Memory limit of that row; 0: none. */
uint64_t recommend_limit(const struct chooser *c, const struct row *r);

/* Whether row i qualifies, even if only a lower bound of its speed is known. */
static inline bool is_candidate(const struct chooser *c, size_t i)
{
    return c->why[i] >= DISTURBED;
}

/* The same, and its quality is that which is wanted. */
static inline bool is_rival(const struct chooser *c, size_t i)
{
    return is_candidate(c, i) && !c->speed[i].out;
}

/* Whether a floor of speed or latency was given. */
static inline bool has_floor(const struct chooser *c)
{
    return c->params->min_tps > 0 || c->params->max_ttft_s > 0;
}

/* Whether row i is a rival, and so close to the fastest that a preference may choose
 * it. */
bool recommend_is_equal(const struct chooser *c, size_t i);

/* "Q4_0 with 2 threads". */
struct recommend_name {
    char text[REPORT_NAME_MAX + 32];
};
struct recommend_name recommend_name(const struct chooser *c, const struct row *r);

/* ---- recommend_quality.c --------------------------------------------------------- */

/* What is known of divergences among the candidates. */
void quality_learn(struct chooser *c);

/* Whether its divergence is known, from the reference of the others. */
bool quality_is_known(const struct chooser *c, const struct row *r);

/* Order by quality, the better first (< 0): by divergence; a row without a known one
 * counts with the largest known of types that rank no worse, at least; then by rank,
 * then by the size of the file. */
int quality_compare(const struct chooser *c, const struct row *a, const struct row *b);

/* Take types of few bits and unknown quality out of the candidates, where others have
 * more bits. */
void quality_drop_few_bits(struct chooser *c);

/* The candidate with the best quality; NO_ROW: none. */
size_t quality_best(const struct chooser *c);

/* Whether a faster setting was given up for a better type. */
bool quality_is_by_type(const struct chooser *c);

/* The candidate whose divergence is enough below the choice's to outweigh its speed;
 * where the choice's is not known, the best type within RECOMMEND_TYPE_SHARE of its
 * speed. NO_ROW: none. */
size_t quality_worth_more(const struct chooser *c);

/* Speed that the choice must be faster by, as a factor, than one with another
 * divergence. */
double quality_price(const struct chooser *c, double kl_more, double kl_less);

/* Leave only candidates as good as row i in the choice: equal in what they compute, or
 * in divergence but for its standard errors. */
void quality_restrict(struct chooser *c, size_t i);

/* Fill in rec->steps: the settings next to the choice on the Pareto frontier of quality
 * and speed, better ones first. */
void quality_steps(struct recommendation *rec, const struct chooser *c);

/* ---- recommend_prompt.c and recommend_memory.c ----------------------------------- */

/* The length of the prompt to answer for; 0: none was measured. */
int64_t prompt_wanted(const struct chooser *c);

/* By the prefill rows of the setting of row i. */
void prompt_of(struct recommend_prompt *p, const struct chooser *c, size_t i);

/* Probability that the first token comes within max_s seconds. */
double prompt_in_time(const struct recommend_prompt *p, double max_s);

void memory_of(struct recommend_memory *m, const struct chooser *c, size_t i);

/* The least limit with which the point would be tried, and would have what it needs:
 * the larger of what was planned, with the process, and row_needed_bytes(). 0: not
 * known. */
int64_t memory_min_limit(const struct row *r);

/* Whether the point fits that limit (0: none): it was measured under one that was no
 * larger, or memory_min_limit() is not. */
bool memory_fits(const struct row *r, int64_t limit);

/* ---- texts ----------------------------------------------------------------------- */

/* Fill in why, excluded and n_excluded. */
void recommend_write(struct recommendation *rec, const struct chooser *c);

/* Fill in answer and the texts of steps; the rest of rec is complete. */
void recommend_write_answer(struct recommendation *rec, const struct chooser *c);

/* The closest point, and the check it fails. Returns ST_CHECK. */
enum status recommend_write_nothing(const struct chooser *c, struct err *err);

/* Whether both are of the same point, but for how many sequences were decoded together.
 */
bool recommend_same_but_sequences(const struct row *a, const struct row *b);

/* Appends " Speculative decoding ...": its speed-up for the setting with its threads,
 * by text, as far as the interval and accepted drafts support one. Where it was not
 * measured, or only disturbed, but steps of several sequences were: what it would gain,
 * since a pass that checks a draft is a step of as many tokens. Else nothing. */
void recommend_add_speculation(const struct report_rows *p, const struct row *setting,
                               char *buf, size_t cap);

/* ---- types by what they keep of a model, where that was not measured ------------- */

/* Rank of the row's weights and KV cache together. */
int quality_rank(const struct row *r);

/* Whether most weights have fewer than 4 bits. Such types lose too much quality to be
 * chosen for speed alone. */
bool quality_has_few_bits(const struct row *r);

#endif
