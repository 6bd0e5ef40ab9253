/* SPDX-License-Identifier: MIT
 *
 * gate_options.h - the options of `bench gate`, and the ways it can be run
 *
 * cmd_gate.c parses; every mode is one function below, which reads what it needs. What
 * was not given is NULL, 0 or negative; then the configuration or the mode's default
 * holds.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_OPTIONS_H
#define SLM_HARNESS_DECIDE_GATE_GATE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/decide/gate/gate_report.h"
#include "harness/model/modelref.h"

struct gate_options {
    const char *a, *b;               /* programs; with build: commits */
    const char *build, *run, *since; /* gate_commits.h */
    const char *max_kl;              /* gate_quality.h; with b_model */
    bool calibrate;
    const char *detect; /* with calibrate: the slowdown that must be found, "5%" */
    const char *report; /* directory of a gate that has run: its outputs again */

    /* how it measures; texts, which override the configuration */
    const char *config, *model, *b_model, *threads, *prefill, *ctx, *weights, *mem;
    const char *budget, *margin, *inject;
    uint64_t seed; /* 0: a random one */

    /* outputs */
    const char *out; /* directory; NULL: results/gate-<host>-<utc> */
    struct gate_outputs outputs;
    const char *add_to;     /* database that the caller adds the result to */
    const char *exit_codes; /* "0,1,4" */
    int *codes; /* [3] the same, of pass, fail, inconclusive; a mode whose configuration
                   has others puts them here */
};

/* Whether the sides are commits: gate_commits.h. */
static inline bool gate_options_have_commits(const struct gate_options *o)
{
    return o->build || o->run || o->since;
}

/* Whether what o has written is none of what it reads: the model, the programs, the
 * configuration. Errors: ST_USAGE, ST_NO_MEMORY. */
enum status gate_options_check_outputs(const struct gate_options *o,
                                       const struct modelref *model, struct err *err);

/* Each fills *r (zeroed before) as far as it came. Errors: what kept it from
 * measuring; a verdict is no error, and an interrupted gate is ST_OK with
 * GATE_END_INTERRUPTED. */
enum status gate_ab(const struct gate_options *o, struct gate_result *r,
                    struct err *err);
/* The result of a directory, read back. */
enum status gate_report(const struct gate_options *o, struct gate_result *r,
                        struct err *err);

/* Prints and writes its own outputs. */
enum status gate_calibrate(const struct gate_options *o, struct err *err);

#endif
