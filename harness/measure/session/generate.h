/* SPDX-License-Identifier: MIT
 *
 * generate.h - a text that continues a prompt
 *
 * Threading: one generation at a time; it prints.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_GENERATE_H
#define SLM_HARNESS_MEASURE_SESSION_GENERATE_H

#include <limits.h>

#include "harness/base/options.h"
#include "harness/measure/session/session.h"
#include "engine/text/sampler.h"

/* Sampling options, the same in every command that generates text. */
struct sampling {
    double temperature, top_p, min_p, repeat_penalty;
    int top_k, repeat_window;
    uint64_t seed;
};

#define SAMPLING_DEFAULT                                         \
    {                                                            \
        .top_p = 1.0, .repeat_penalty = 1.0, .repeat_window = 64 \
    }

/* Rows of a table of options; s is a struct sampling. */
#define SAMPLING_OPTS(s, temp_help)                                                  \
    OPT_DOUBLE(0, "temp", &(s).temperature, "T", temp_help, 0.0, 1000.0),            \
        OPT_INT(0, "top-k", &(s).top_k, "K",                                         \
                "the K most likely tokens only (default: 0, all)", 0, INT_MAX),      \
        OPT_DOUBLE(0, "top-p", &(s).top_p, "P",                                      \
                   "fewest tokens whose probabilities reach P (default: 1)", 0.0,    \
                   1.0),                                                             \
        OPT_DOUBLE(0, "min-p", &(s).min_p, "P",                                      \
                   "tokens at least P times as likely as the likeliest", 0.0, 1.0),  \
        OPT_DOUBLE(0, "repeat-penalty", &(s).repeat_penalty, "R",                    \
                   "divide logits of recent tokens by R (default: 1)", 0.01, 100.0), \
        OPT_INT(0, "repeat-window", &(s).repeat_window, "N",                         \
                "number of recent tokens (default: 64)", 0, SAMPLER_MAX_WINDOW),     \
        OPT_U64(0, "seed", &(s).seed, "S", "seed of the sampler (default: 0)")

static inline struct sampler_params sampling_params(const struct sampling *s)
{
    return (struct sampler_params){
        .temperature = (float)s->temperature,
        .top_k = s->top_k,
        .top_p = (float)s->top_p,
        .min_p = (float)s->min_p,
        .repeat_penalty = (float)s->repeat_penalty,
        .repeat_window = s->repeat_window,
        .seed = s->seed,
    };
}

struct generate_settings {
    struct session_params session;
    struct sampling sampling;
    const char *prompt;
    const char *draft; /* the model of DRAFTS_MODEL */
    int n_max;         /* tokens */
    bool special;      /* control tokens in the prompt are such */
};

/* Prints each token to standard output as it is made, and the speed to standard error.
 * Errors: ST_USAGE, ST_INTERRUPTED, those of textmodel_look(), textmodel_open() and
 * slm_eval(). */
enum status generate_run(const struct generate_settings *s, struct err *err);

#endif
