/* SPDX-License-Identifier: MIT
 *
 * gate_result.h - what a gate found, as all its outputs report it
 *
 * A gate of two programs and one against stored rows end in the same struct; text,
 * Markdown, JUnit, annotations, JSON and the forest plot are written from it alone.
 *
 * Threading: data of one owner.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_RESULT_H
#define SLM_HARNESS_DECIDE_GATE_GATE_RESULT_H

#include <stdio.h>

#include "engine/base/status.h"
#include "harness/decide/gate/gate_rule.h"
#include "harness/machine/machine_key.h"

enum gate_mode { GATE_MODE_AB, GATE_MODE_BASELINE };

/* What stopped a gate. */
enum gate_end {
    GATE_END_CLEAR,      /* every metric was decided */
    GATE_END_BUDGET,     /* the time was up */
    GATE_END_INTERIM,    /* the last interim analysis was passed */
    GATE_END_INTERRUPTED /* the verdict is inconclusive */
};
extern const char *const gate_end_words[GATE_END_INTERRUPTED + 1]; /* as stored */

/* One of the two sides: a program, or stored rows. */
struct gate_side {
    char name[512];   /* path of the program, or of the stored rows */
    char version[64]; /* "0.1.0" */
    char commit[64];
    char compiler[64];
};

struct gate_metric {
    char name[128]; /* "decode, Q4_K_M, 2 threads, depth 0" */
    char unit[16];  /* "tok/s", "MiB", "s", "GB/s" */
    bool less_is_better;
    double margin; /* of this metric: 0.02 */
    double a, b;   /* medians of the sides, in unit; NAN: none */
    /* Ratio of speeds: below 1, B is worse, also where less is better. */
    struct gate_effect effect;
    enum gate_verdict verdict;
    size_t n_launches, n_rounds;
    struct gate_series series; /* from which the effect was estimated */
};

/* Options of the command line, as they were given; "": not. */
struct gate_given {
    char config[512], threads[128], prefill[128], ctx[128], weights[16], mem[32];
};

/* How far the answers of B's model diverge from those of A's. */
struct gate_divergence {
    double max;    /* the bound, in nats; 0: not judged */
    double kl, se; /* mean of the tokens, and its standard error */
    double top1_pct;
    size_t n_tokens;
    enum gate_verdict verdict;
};

struct gate_result {
    enum gate_mode mode;
    enum gate_verdict verdict;
    enum gate_end end;
    struct gate_rule rule;
    struct gate_side side[2]; /* A (the old one), B (the new one) */
    char cpu[128], model[256], settings[256];
    bool has_machine; /* older files have no machine */
    struct machine_key machine;
    char host[65];
    struct gate_given given;
    char sides[2048]; /* options that name sides and models, as words of a shell; "" in
                         older files, where both sides are programs */
    char when[32];    /* ISO 8601, UTC, of its start */
    struct gate_metric metric[GATE_MAX_METRICS];
    size_t n_metrics;
    struct gate_divergence divergence;
    size_t n_launches, n_rounds, n_interim;
    size_t n_disturbed;  /* rounds left out, by rules fixed beforehand */
    size_t n_again;      /* disturbed turns that were played again */
    char disturbed[256]; /* what disturbed them, and how often: "" if none were */
    double seconds, budget_s;
    char dir[512];    /* where its files are; "": it has none */
    double injected;  /* slowdown put into B: 0.05; 0: none */
    char notes[800];  /* what the verdict leaves out; "": nothing */
    char advice[320]; /* what to do where it is unclear; "": the usual */
};

/* "pass", "fail", "inconclusive" */
const char *gate_verdict_word(enum gate_verdict verdict);

/* The metric that decides the verdict: the slowest failed one, else the one
 * that is furthest from being decided; NULL without metrics. */
const struct gate_metric *gate_worst(const struct gate_result *r);

/* B cannot be this many times as fast as A: then figures of two kinds were compared. */
#define GATE_MAX_SPEEDUP 100

/* Whether m's effect can be one. Error: ST_INPUT (a speed beyond that). */
enum status gate_check_effect(const struct gate_metric *m, struct err *err);

/* The verdict in a sentence or two: effect, interval, probability, and what to do.
 * Returns buf. */
const char *gate_sentence(const struct gate_result *r, char *buf, size_t cap);

/* All of it as a table for a terminal, the sentence at the end. */
void gate_print(FILE *f, const struct gate_result *r);

#endif
