/* SPDX-License-Identifier: MIT
 *
 * quick_answer.h - what `bench quick` concludes: models that were measured, those that
 * follow from them, and sentences
 *
 * Model of the world: a few models of very different sizes were measured, the others
 * are planned only (harness/measure/plan). Decoding reads memory, so that the time of a
 * token is what it reads at a share of the roof (token_time.h); the share is that of
 * the measured models, and between two of them it changes with the logarithm of what a
 * token reads: in a small model synchronising threads costs a larger part. A prompt is
 * arithmetic: its time grows with the parameters.
 *
 * A launch that was disturbed counts only if there is no other. A disturbance slows it
 * down, so the fastest of such launches is a lower bound, and so is what follows from
 * it; a disturbance of a few per cent is reported and leaves an estimate.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_DECIDE_QUICK_QUICK_ANSWER_H
#define SLM_HARNESS_DECIDE_QUICK_QUICK_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <jansson.h>

#include "harness/base/format.h"
#include "harness/model/modelref.h"
#include "harness/rows/token_time.h"

#define QUICK_MAX_ROUNDS 5
#define QUICK_MAX_CURVE  8 /* models that others follow from */

/* One launch of a decode point or of a prefill point. */
struct quick_launch {
    double tok_per_s;
    double roof_gbps;     /* probed in this launch; NaN: a prefill point */
    double mbu;           /* share of that roof; NaN: a prefill point */
    double others_pct;    /* CPU time that other processes took */
    double steal_pct;     /* and the hypervisor */
    double throttled;     /* share of the time that a CPU quota stopped the threads */
    bool is_valid;        /* nothing disturbed it */
    double disturbed_pct; /* the largest share in its verdict; 100: it names none */
};

/* The launches of one point. */
struct quick_point {
    struct quick_launch launch[QUICK_MAX_ROUNDS];
    int n;
};

/* Figures of one point: medians of its undisturbed launches, or the highest of all
 * launches if all were disturbed. NaN: no launch. */
struct quick_figures {
    double tok_per_s, roof_gbps, mbu;
    bool is_disturbed;
    bool is_bound; /* a large disturbance: the figures are lower bounds */
};

/* A disturbance of less takes about as much from a figure as launches scatter. */
#define QUICK_SLIGHT_PCT 5

struct quick_model {
    char text[sizeof((struct modelref *)0)->text]; /* as --model takes it */
    char name[MODELREF_NAME_MAX];
    bool is_shape;     /* called by its size; else by its name */
    bool has_experts;  /* a token does not read all weights */
    bool fits;         /* with ctx tokens of context */
    bool is_measured;  /* decode and prefill have launches */
    uint64_t n_params; /* all experts counted */
    uint64_t needed_bytes;
    int ctx;                /* the requested one, or the model's own limit */
    struct token_work work; /* of a token at that depth */
    struct quick_point decode, prefill;
    int prefill_tokens; /* of a pass that was measured; 0: none yet */

    /* quick_conclude() fills in: */
    double tok_per_s;     /* NaN: not known */
    double prompt_s;      /* n_prompt tokens; NaN: not known */
    double share;         /* of the roof that is expected or was reached; NaN: none */
    bool is_bound;        /* tok_per_s is a lower bound */
    bool prompt_is_bound; /* prompt_s is an upper one */
};

struct quick_answer {
    struct quick_model *models; /* by n_params, the smallest first */
    size_t n_models;
    char quant[24]; /* of shapes */
    int n_threads, n_prompt;
    double want_tok_per_s;
    uint64_t room;      /* memory for a model */
    uint64_t llc_bytes; /* last-level cache; 0: unknown */
    double measured_s;  /* all in all */
    int n_rounds;

    /* quick_conclude() fills in: */
    double roof_gbps; /* median over the models that memory holds; NaN: none */
};

struct quick_figures quick_figures_of(const struct quick_point *p);

/* Figures of all models. */
void quick_conclude(struct quick_answer *a);

#define QUICK_MAX_SENTENCES 16
struct quick_sentence {
    char text[400];
};

/* The answer, most important first; returns how many. After quick_conclude(). */
int quick_sentences(const struct quick_answer *a, struct quick_sentence *out);

/* A round figure, in steps of about a tenth: 10, 11, 12, .. 15, 16, 18,
 * 20, 22, 25, 30, .. */
struct shown_figure quick_round(double v);

/* Figures, launches and sentences. */
json_t *quick_json(const struct quick_answer *a);

#endif
