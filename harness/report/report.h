/* SPDX-License-Identifier: MIT
 *
 * report.h - charts and the closing table of a sweep
 *
 * A point may have been measured several times; its most trusted row is used, see
 * report_rows.h.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_REPORT_REPORT_H
#define SLM_HARNESS_REPORT_REPORT_H

#include <stdint.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/result/row.h"

/* Draw every chart that the rows of dir/sweep.csv can fill, as SVG and PNG, with
 * the .gp file that made them, into dir. Uses gnuplot and the templates in plots/.
 * Errors: ST_UNSUPPORTED (no gnuplot; the way out), ST_IO, ST_INPUT. */
enum status report_charts(const char *dir, struct err *err);

struct recommend_params {
    double min_tps;     /* 0: any */
    int ctx;            /* depth that must be served; the measured depths at or above
                           it count; -1: the deepest measured */
    uint64_t mem_limit; /* 0: the rows' own limit */
    int max_threads;    /* quota and affinity of where it will run; 0: any */
    const char *model;  /* NULL: any */
    double max_kl;      /* most divergence from the reference, nats; points without a
                           known one are left out; 0: RECOMMEND_MAX_KL for those with
                           one, unless nothing else qualifies */
};

/* By default a quantisation may lose so much, nats. A token's likelihood is then off
 * by a third or so now and then (sqrt(2 KL) is a typical error of its logarithm). */
#define RECOMMEND_MAX_KL 0.05

/* A preference (less divergence, a larger quantisation, fewer threads) may cost this
 * share of the speed: in expectation, and of the medians. */
#define RECOMMEND_MAX_REGRET 0.03

struct recommendation {
    struct row best,
        runner_up;        /* as measured; their commands are made of their columns,
                             "" where that cannot be */
    char no_command[256]; /* why best has none although its row had; "": it has, or its
                             row had none */
    int has_runner_up;
    double best_tok_per_s, runner_up_tok_per_s; /* as judged: of a row that was
                                                   disturbed it may be estimated */
    int64_t best_from_ctx, runner_up_from_ctx;  /* from that depth; -1: measured */
    double p_best; /* probability that best is the fastest of those that qualify */
    double regret; /* expected loss against the fastest, as a share of the speed */
    int tie;       /* others are within RECOMMEND_MAX_REGRET of the fastest */
    char why[2000];
    int n_excluded;     /* rows left out: disturbed, too large, too slow, ... */
    char excluded[300]; /* how many for which reason */
};

/* Choose among rows the least expected regret (recommend_speed.h: how sure speeds are),
 * or, of what is within RECOMMEND_MAX_REGRET of the fastest, the lesser divergence
 * where quality is known, else the larger quantisation, then the fewer threads. A
 * setting is judged at its least measured depth that serves ctx. A row that was
 * disturbed there competes with an estimate from the setting's other depths, else with
 * its own speed, a lower bound, and rec->why says so; points above their roof never.
 * The runner-up has another quantisation of weights or KV cache, where there is one.
 * Errors: ST_CHECK when nothing qualifies (says what came closest), ST_NO_MEMORY. */
enum status recommend(struct recommendation *rec, const struct row *rows, size_t n_rows,
                      const struct recommend_params *params, struct err *err);

/* For a person. */
void recommend_print(FILE *f, const struct recommendation *rec);

/* {"best": row, "runner_up": row or null, "best_tok_per_s", "runner_up_tok_per_s",
 * "best_from_ctx", "runner_up_from_ctx" (each null where there is none), "p_best",
 * "regret", "tie", "why", "n_excluded", "excluded"} */
json_t *recommend_json(const struct recommendation *rec);

/* The table a sweep ends with: one line per point, aligned, the chosen one
 * (NULL: none) marked with a star. */
void report_table(FILE *f, const struct row *rows, size_t n_rows,
                  const struct row *chosen);

#endif
