/* SPDX-License-Identifier: MIT
 *
 * generate.h - a text that continues a prompt
 *
 * Threading: one generation at a time; it prints.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_GENERATE_H
#define SLM_HARNESS_MEASURE_SESSION_GENERATE_H

#include "harness/base/options.h"
#include "harness/measure/session/sampling.h"
#include "harness/measure/session/session.h"

struct generate_settings {
    struct session_params session;
    struct sampling sampling;
    const char *prompt;
    const char *speculate, *draft; /* "off", "lookup", "mtp"; a model, or NULL */
    int n_max;                     /* tokens */
    bool special;                  /* control tokens in the prompt are such */
};

/* Prints each token to standard output as it is made, and the speed to standard error.
 * Errors: ST_USAGE, ST_INTERRUPTED, those of textmodel_look(), textmodel_open() and
 * slm_eval(). */
enum status generate_run(const struct generate_settings *s, struct err *err);

#endif
