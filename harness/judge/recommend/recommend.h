/* SPDX-License-Identifier: MIT
 *
 * recommend.h - the setting to deploy with, from the rows of a sweep
 *
 * Model of the world: a model is one network; its settings differ in quantisation,
 * threads and the rest. Settings of one model are ranked, models are not: which model
 * serves its purpose is no question of speed. Without a floor the fastest setting is
 * wanted, unless little speed costs much quality; with a floor of speed or latency the
 * best quality that reaches it.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_JUDGE_RECOMMEND_RECOMMEND_H
#define SLM_HARNESS_JUDGE_RECOMMEND_RECOMMEND_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <jansson.h>

#include "engine/base/status.h"
#include "harness/base/options.h"
#include "harness/rows/row.h"

struct recommend_params {
    double min_tps;     /* floor of the decode speed; 0: none */
    double max_ttft_s;  /* of the time to first token, model loaded; 0: none */
    int n_prompt;       /* tokens of the prompt; 0: the longest measured, or
                           RECOMMEND_USUAL_PROMPT */
    int ctx;            /* depth that must be served; the measured depths at or above
                           it count; -1: the deepest measured */
    uint64_t mem_limit; /* 0: the rows' own limit */
    int max_threads;    /* quota and affinity of where it will run; 0: any */
    double quota_cpus;  /* rows measured with this quota; 0: those without one, or, if
                           all have one, those with the largest */
    const char *model;  /* as in the rows, or without its quantisation; NULL: the
                           one with the fastest setting */
    double max_kl;      /* most divergence from the reference, nats; points without a
                           known one are left out; 0: RECOMMEND_MAX_KL for those with
                           one, unless nothing else qualifies */
};

/* Reads the limit of an option --mem into the uint64_t at dst. */
enum status recommend_take_mem(void *dst, int id, const char *text, const char *what,
                               struct err *err);

/* Rows of a table of options for such wishes, w. */
#define RECOMMEND_OPTS(w)                                                             \
    OPT_DOUBLE(0, "min-tps", &(w).min_tps, "X", "minimum tokens per second", 0, 1e9), \
        OPT_SECONDS(0, "max-ttft", &(w).max_ttft_s, "S",                              \
                    "maximum seconds to the first token, with the model loaded", 0,   \
                    1e9),                                                             \
        OPT_INT(0, "prompt", &(w).n_prompt, "N",                                      \
                "length of the prompt (default: 512 or the longest)", 1, INT_MAX),    \
        OPT_INT(0, "ctx", &(w).ctx, "N",                                              \
                "context depth (default: the deepest measured)", 0, INT_MAX),         \
        OPT_TAKE(0, "mem", &(w).mem_limit, "LIMIT",                                   \
                 "memory limit, as 6G; container: the one in force here (default: "   \
                 "that of each point)",                                               \
                 recommend_take_mem, SETTING_mem),                                    \
        OPT_INT(0, "max-threads", &(w).max_threads, "N",                              \
                "available CPUs (default: as in machine.json)", 1, INT_MAX),          \
        OPT_DOUBLE(0, "max-kl", &(w).max_kl, "X",                                     \
                   "maximum divergence in nats (default: 0.05, unless nothing else "  \
                   "qualifies)",                                                      \
                   1e-9, 1e9)

/* What people wait for: the first token of a few paragraphs. A sweep measures shorter
 * prompts, which take less time and have about the same speed. */
#define RECOMMEND_USUAL_PROMPT 512

/* Default limit of a quantisation's loss, nats. A token's likelihood is then off
 * by a third or so now and then (sqrt(2 KL) is a typical error of its logarithm). */
#define RECOMMEND_MAX_KL 0.05

/* A preference (better quality, fewer threads) may cost this
 * share of the speed: in expectation, and of the medians. */
#define RECOMMEND_MAX_REGRET 0.03

/* A setting that diverges more must be faster by this share for each tenth of the limit
 * that it gives up: a limit is not a budget to be spent on any gain. */
#define RECOMMEND_KL_PRICE 0.05

/* Where quality was not measured, a type that ranks better may cost this share of the
 * speed. */
#define RECOMMEND_TYPE_SHARE 0.10

/* What another step of quality costs, or gives. */
#define RECOMMEND_MAX_STEPS 3

struct recommend_step {
    struct row row; /* without a command */
    double tok_per_s;
    int64_t from_ctx; /* estimated from that depth; -1: measured */
    char text[300]; /* "Q6_K with 2 threads: 6.10 tok/s, 30 % slower, KL 0.0009 instead
                       of 0.0042" */
};

/* A prompt, by the rows of prefill of a setting. */
struct recommend_prompt {
    int64_t n_prompt;          /* tokens; 0: no prefill was measured */
    int64_t n_measured;        /* the speed is that of a prompt of this length */
    int64_t n_threads;         /* of prefill; may differ from those of decode */
    double tok_per_s;          /* of prefill */
    double warm_s, warm_max_s; /* to the first token, model loaded; upper end of its 95
                                  % interval */
    double cold_s;             /* the same with loading; NAN: not known */
    double sigma;              /* of the logarithm of warm_s, on its upper side */
    bool disturbed;            /* so the times are upper bounds */
};

struct recommend_memory {
    int64_t limit_bytes; /* 0: none */
    int64_t left_bytes;  /* at the recommended depth; -1: not known */
    bool is_lower_bound; /* that is counted with the page cache charged, as the row does
                      not have what it needs without: more may be left */
    int64_t max_ctx;     /* largest context that fits; -1: not known */
    bool by_model;       /* more would fit, but the model was made for no more */
};

struct recommendation {
    struct row best,
        runner_up;        /* as measured; their commands are made of their columns,
                             "" where that cannot be */
    char no_command[256]; /* why best has none although its row had; "": it has, or its
                             row had none */
    int has_runner_up;
    int n_disturbed; /* points that it was not chosen from, as they were disturbed */
    double best_tok_per_s, runner_up_tok_per_s; /* as judged: for a disturbed
                                                   row it may be estimated */
    int64_t best_from_ctx, runner_up_from_ctx;  /* from that depth; -1: measured */
    double p_best;  /* probability that best is the fastest: of all that qualify, or, if
                       it was chosen for its quality, of those with its quality; NAN:
                       not known, as only disturbed rows qualify */
    double regret;  /* expected loss against that, as a share of the speed */
    double p_floor; /* probability that best reaches the floor; NAN: none was given */
    bool by_quality; /* chosen for its quality: not the fastest that qualifies */
    int tie;         /* others are within RECOMMEND_MAX_REGRET of the fastest */
    struct recommend_prompt prompt;
    struct recommend_memory memory;
    struct recommend_step steps[RECOMMEND_MAX_STEPS]; /* the fastest first */
    int n_steps;
    char instead[300];  /* a faster setting that was given up for a better type, as a
                           step's text; "": none was */
    char answer[1400];  /* a few sentences */
    char why[2000];     /* the evidence */
    int n_excluded;     /* rows left out: disturbed, too large, too slow, ... */
    char excluded[400]; /* how many for which reason */
};

/* Choose among rows the least expected regret (recommend_speed.h: how sure speeds are),
 * or, of what is within RECOMMEND_MAX_REGRET of the fastest, the lesser divergence
 * where quality is known, else the better type (quality_order.c), then the fewer
 * threads. A setting with less divergence replaces it unless that costs more speed than
 * RECOMMEND_KL_PRICE allows; where its divergence is not known, one of a better type
 * that costs no more than RECOMMEND_TYPE_SHARE. With a floor, the best quality wins of
 * what is known to reach the floor (by the lower end of the 95 % interval), then the
 * speed. A setting is judged at its least measured depth that serves ctx. A row that
 * was disturbed there competes with an estimate from the setting's other depths, else
 * with its own speed, a lower bound, as rec->why states; points above their roof never.
 * Types of few bits and unknown quality are left out where there is something else.
 * The runner-up has another quantisation of weights or KV cache, where there is one.
 * Errors: ST_CHECK when nothing qualifies (with what came closest), ST_NO_MEMORY. */
enum status recommend(struct recommendation *rec, const struct row *rows, size_t n_rows,
                      const struct recommend_params *params, struct err *err);

struct recommend_choice {
    char text[512];
};

/* "yi-1.5-9b Q4_0, 2 threads, weights packed": the settings of a choice, but the
 * default placement. */
struct recommend_choice recommend_choice(const struct row *r);

/* An object; docs/recommend.md lists its members. NULL: no memory. */
json_t *recommend_json(const struct recommendation *rec);

/* ---- several models -------------------------------------------------------------- */

/* More are not answered at once. */
#define RECOMMEND_MAX_MODELS 16

struct recommend_answer {
    char model[256];
    struct err none; /* why there is no answer: ST_CHECK; ST_OK: there is */
    struct recommendation rec;
};

struct recommend_answers {
    struct recommend_answer *v; /* [n], by name */
    size_t n;
};

/* The quota that recommend_each() chooses rows by, where wanted is params->quota_cpus;
 * 0: rows without one. */
double recommend_quota(const struct row *rows, size_t n_rows, double wanted);
bool recommend_is_of_quota(const struct row *r, double quota);

/* One answer for each model, or for params->model. Errors: ST_CHECK when nothing
 * qualifies of any, or no row has the quota; ST_INPUT (more than RECOMMEND_MAX_MODELS),
 * ST_NO_MEMORY. *answers is to be freed in any case. */
enum status recommend_each(struct recommend_answers *answers, const struct row *rows,
                           size_t n_rows, const struct recommend_params *params,
                           struct err *err);
void recommend_answers_free(struct recommend_answers *answers);

void recommend_print_each(FILE *f, const struct recommend_answers *answers);

/* The object of one answer, or {"models": [..]} of several: those that have none are
 * {"model", "none": why}. */
json_t *recommend_json_each(const struct recommend_answers *answers);

#endif
