/* SPDX-License-Identifier: MIT
 *
 * gate_settings.h - what a gate measures, and how it judges: configuration and options
 *
 * A YAML file (configs/gates/default.yaml documents the keys), then the options of the
 * command line; both give texts for the same keys, and go through the same parsers.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_DECIDE_GATE_GATE_SETTINGS_H
#define SLM_HARNESS_DECIDE_GATE_GATE_SETTINGS_H

#include "harness/base/options.h"
#include "harness/decide/gate/gate_rule.h"
#include "harness/machine/topology.h"
#include "harness/rows/settings/model_setup.h"

#define GATE_MAX_BUDGET_S 86400

struct gate_options;

struct gate_kernels {
    enum kern_format v[GATE_MAX_METRICS];
    size_t n;
};

struct gate_settings {
    char model_text[256];
    struct model_setup setup; /* mem_limit: around both programs together; seed: for
                                 orders, too, never 0; threads: from the lists */
    struct modelref b_model;  /* B's, where has_b_model: else both have the setup's */
    bool has_b_model;
    double max_kl; /* of B's answers from A's, in nats: gate_quality.h; 0: not judged */
    struct int_list threads, prefill, ctx;
    struct gate_kernels kernels; /* formats whose gemv is timed, too */
    double budget_s, timeout_s;
    int n_rounds; /* of one launch */
    struct gate_rule rule;
    const char *of_command; /* "--model": the first option that was given and that the
                               command of a server has of its own; NULL: none */
    bool over_http;         /* both sides are servers: times of a request are judged */
    bool memory, load;      /* judge peak memory and load time, too */
    double margin_memory, margin_load;
    double slower;    /* put into B: 0.05 */
    int exit_code[3]; /* pass, fail, inconclusive */
};

/* *s is zeroed, and for gate_settings_free() afterwards in any case. Errors: ST_USAGE
 * (file and key, or option, named), ST_IO, and those of modelref_parse(). */
enum status gate_settings_make(struct gate_settings *s, const struct gate_options *o,
                               const struct topology *topo, struct err *err);
void gate_settings_free(struct gate_settings *s);

/* Settings without a model, for a judgement on rows measured elsewhere: rule,
 * margins and exit codes of the configuration and of two options, each NULL where it
 * was not given. */
enum status gate_settings_make_rule(struct gate_settings *s, const char *config,
                                    const char *margin, const char *exit_codes,
                                    const struct topology *topo, struct err *err);

/* One key's value; what names it in messages. Error: ST_USAGE, also for no such key. */
enum status gate_settings_set(struct gate_settings *s, const char *key,
                              const char *text, const struct topology *topo,
                              const char *what, struct err *err);

/* "0,1,4": exit codes of pass, fail, inconclusive. Error: ST_USAGE. */
enum status gate_exit_codes_parse(const char *text, const char *what, int out[3],
                                  struct err *err);

/* How the model is held and run, in a line: "weights mmap, KV cache f16, ...". Returns
 * buf. */
const char *gate_settings_text(const struct gate_settings *s, char *buf, size_t cap);

#endif
