/* SPDX-License-Identifier: MIT
 *
 * gate_options.h - the options of `bench gate`, and the ways it can be run
 *
 * cmd_gate.c parses; every mode is a file gate_<mode>.c with one function below, which
 * reads what it needs. What was not given is NULL, 0 or negative, and then the
 * configuration says, or the mode's own default.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_GATE_GATE_OPTIONS_H
#define SLM_HARNESS_GATE_GATE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "harness/base/options.h"
#include "harness/gate/gate_result.h"

struct gate_options {
    /* what is compared */
    const char *a, *b;    /* programs */
    const char *baseline; /* rows of earlier runs: CSV, SQLite, or a directory */
    const char *history;  /* a series of results to find changes in */
    const char *report;   /* directory of a gate that has run: its outputs again */
    bool calibrate;

    /* rows of earlier runs */
    const char *record;   /* database to put rows into */
    struct str_list rows; /* the new rows: directories, CSV or JSON files */
    const char *metrics;  /* columns to judge, separated by commas; NULL: tok_per_s */
    const char *only;     /* series whose name has this text */
    const char *commit;   /* name for what was measured; NULL: as the rows say */
    bool here;            /* rows without a machine are this one's */
    bool disturbed;       /* disturbed rows count, too */
    uint64_t runs;        /* to measure now; 0: 3 */
    uint64_t last;        /* runs of a series that are looked at; 0: 500 */

    /* how; texts, on top of the configuration */
    const char *config, *model, *threads, *prefill, *ctx, *weights, *mem;
    const char *budget, *margin, *inject;
    uint64_t seed; /* 0: by the clock */

    /* what comes out */
    const char *out; /* directory; NULL: results/gate-<host>-<utc> */
    const char *json, *markdown, *junit;
    const char *exit_codes; /* "0,1,4" */
    int *codes; /* [3] the same, of pass, fail, inconclusive; a mode whose configuration
                   has others puts them here */
    bool counts; /* instructions of both programs, too */
    bool annotations, no_charts;

    int argc; /* the command line, for the record */
    char **argv;
};

/* Each fills *r (zeroed before) as far as it came. Errors: what kept it from
 * measuring; a verdict is no error, and an interrupted gate is ST_OK with
 * GATE_END_INTERRUPTED. */
enum status gate_ab(const struct gate_options *o, struct gate_result *r,
                    struct err *err);
enum status gate_baseline(const struct gate_options *o, struct gate_result *r,
                          struct err *err);
/* The result of a directory, read back. */
enum status gate_report(const struct gate_options *o, struct gate_result *r,
                        struct err *err);

/* Print and write by themselves. */
enum status gate_history(const struct gate_options *o, struct err *err);
/* --rows into the database --record. */
enum status gate_store(const struct gate_options *o, struct err *err);
enum status gate_calibrate(const struct gate_options *o, struct err *err);

#endif
