/* SPDX-License-Identifier: MIT
 *
 * research.h - the commands of `bench-research`, and their options
 *
 * main.c parses; every command is one function, which reads the options that it has.
 * What was not given is NULL or 0, and then the command's default counts.
 *
 * Threading: one thread.
 */
#ifndef SLM_RESEARCH_RESEARCH_H
#define SLM_RESEARCH_RESEARCH_H

#include "engine/base/status.h"
#include "harness/base/options.h"

struct research_options {
    struct str_list traces; /* recorded machines; none: those in research/traces */
    uint64_t n;             /* gates of each kind, histories, turns to record, or
                               launches of a repeat */
    uint64_t seed;
    const char *threads, *margin;
    const char *out; /* directory; NULL: nothing is kept */
    bool no_charts;
    const char *path;         /* of a recording, or the first of sweeps' directories */
    const char *const *paths; /* [n_paths], of all of them */
    size_t n_paths;
    const char *model, *note; /* of a recording */
};

/* Gates on invented and recorded machines: tables on standard output, rows and charts
 * into o->out. Errors: ST_CHECK (equal builds failed more often than the rule
 * promises), ST_USAGE, ST_INTERRUPTED, ST_IO, ST_INPUT, ST_NO_MEMORY. */
enum status research_gates(const struct research_options *o, struct err *err);

/* Change points, thresholds and comparisons with stored runs on invented histories.
 * Errors: ST_INTERRUPTED, ST_IO, ST_INPUT, ST_NO_MEMORY. */
enum status research_histories(const struct research_options *o, struct err *err);

/* How often intervals of a few launches each hold the figure of all launches of the
 * sweep in o->path. Errors: those of result_set_open(), ST_NO_MEMORY. */
enum status research_coverage(const struct research_options *o, struct err *err);

/* configs/shares.yaml from the sweeps in o->paths, on standard output. Errors: those of
 * shares_measure(), ST_INPUT. */
enum status research_shares(const struct research_options *o, struct err *err);

/* Times of equal turns of o->model on this machine into o->path. Errors: those of
 * gate_trace_record(), ST_USAGE. */
enum status research_record_trace(const struct research_options *o, struct err *err);

#endif
