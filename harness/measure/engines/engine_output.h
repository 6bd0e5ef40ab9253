/* SPDX-License-Identifier: MIT
 *
 * engine_output.h - figures in what another program has printed
 *
 * The output is untrusted: it is bounded, every number is checked, and a regular
 * expression has limits of steps and heap.
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_MEASURE_ENGINES_ENGINE_OUTPUT_H
#define SLM_HARNESS_MEASURE_ENGINES_ENGINE_OUTPUT_H

#include <stddef.h>

#include "engine/base/status.h"

/* Limits of an output, and of the samples that are read from it. */
#define ENGINE_MAX_OUTPUT  (256u << 10)
#define ENGINE_MAX_SAMPLES 1000

struct engine_figures {
    double tok_per_s[ENGINE_MAX_SAMPLES];
    size_t n;               /* 0: only mean and deviation */
    double mean, deviation; /* deviation NAN: not known, of one figure */
    char version[64];       /* "" if it prints none */
};

/* What llama-bench has to measure. */
struct engine_requested {
    int n_prompt, n_gen, n_threads;
};

/* The JSON of llama-bench, a list or a line for each test; the last one counts, and
 * what comes before it is passed over. Errors: ST_INPUT (no JSON, it measured something
 * else, no figure). */
enum status engine_read_llama_bench(struct engine_figures *f, const char *text,
                                    size_t len,
                                    const struct engine_requested *requested,
                                    struct err *err);

/* Every match: the first group, or all of it. A sentence for what the user has written.
 * Errors: ST_INPUT (no match, a match that is no number, too many steps). */
enum status engine_read_regex(struct engine_figures *f, const char *text, size_t len,
                              const char *regex, struct err *err);

/* Error: ST_USAGE (what is wrong, and where). */
enum status engine_check_regex(const char *regex, const char *what, struct err *err);

/* The value at MEMBER.INDEX.MEMBER of the JSON: a number or a list of them. Errors:
 * ST_INPUT (no JSON, no such value). */
enum status engine_read_json(struct engine_figures *f, const char *text, size_t len,
                             const char *path, struct err *err);

#endif
