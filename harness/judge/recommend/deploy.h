/* SPDX-License-Identifier: MIT
 *
 * deploy.h - a recommendation as what is typed or applied to deploy it
 *
 * Model of the world: a recommendation comes of the rows of one program. For a program
 * that was measured it comes of its own rows; for one that was not, of another's, and
 * that is printed: settings are carried over, speed is not promised. Sizes are of the
 * context that is served, for each of several users at once: slmbench's sequences,
 * llama-server's slots.
 *
 * llama-server keeps prompts of its slots in memory besides its KV cache, 8 GiB by
 * default (--cache-ram), which ends a container of less; here it gets half of what the
 * limit leaves. Older versions refuse the option and pass over its environment
 * variable, so that is what is written.
 *
 * Names of models come from files of anybody: words are quoted for the shell, strings
 * for YAML, comments are one line.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_JUDGE_RECOMMEND_DEPLOY_H
#define SLM_HARNESS_JUDGE_RECOMMEND_DEPLOY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/base/status.h"
#include "harness/base/choice.h"
#include "harness/judge/recommend/recommend.h"

enum deploy_target {
    DEPLOY_SLMBENCH,
    DEPLOY_LLAMA_CPP,
    DEPLOY_OLLAMA,
    DEPLOY_DOCKER,
    DEPLOY_K8S,
    DEPLOY_N
};
extern const struct choices choices_deploy; /* "slmbench", "llama.cpp", ... */

struct deploy {
    enum deploy_target target;
    char source[24]; /* the program whose rows these are; "": slmbench */
    bool carried;    /* they are not those of the program that is deployed */
    struct recommendation rec;
    char model[PATH_MAX + 24]; /* the GGUF file, or as slmbench takes it */
    char note[400];            /* what is to be done about the file before; "" */
    char cpus[64];             /* "0,2"; "": any */
    int n_threads, n_threads_batch, n_batch;
    int ctx;                      /* of each sequence */
    int n_sequences;              /* answers at once */
    double together_tok_per_s;    /* of n_sequences, as a row has it; 0: not measured */
    bool together_is_lower_bound; /* something disturbed that */
    uint64_t needed_bytes;        /* by all sequences; 0: not known */
    uint64_t mem_limit;           /* bytes */
    bool is_short; /* it is less than that: sequences share what there is */
    int cache_mib; /* of prompts */
};

struct deploy_wish {
    enum deploy_target target;
    const char *engine; /* whose rows are meant; NULL: those of the target where there
                           are some, else those of what is closest to it */
    int n_sequences;    /* >= 1 */
};

/* Recommend for that target: the setting is that of one sequence. Errors: ST_CHECK
 * (nothing qualifies; a server that does not share its KV cache has no memory for so
 * many sequences), ST_USAGE (no such engine in these rows; several models and none is
 * named), ST_INPUT (the row does not say where its model is), ST_NO_MEMORY. */
enum status deploy_make(struct deploy *d, const struct deploy_wish *wish,
                        const struct row *rows, size_t n_rows,
                        const struct recommend_params *params, struct err *err);

/* The command or file, with its reasons as comments. Error: ST_INPUT (a name that this
 * target cannot take; nothing is printed then). */
enum status deploy_print(FILE *f, const struct deploy *d, struct err *err);

#endif
