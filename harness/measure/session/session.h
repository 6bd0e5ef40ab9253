/* SPDX-License-Identifier: MIT
 *
 * session.h - open a model for a command that a person runs
 *
 * Threads default to what the machine recommends (topology's threads_default);
 * they are pinned only on request, since an interactive user shares the machine with
 * other programs.
 */
#ifndef SLM_HARNESS_MEASURE_SESSION_SESSION_H
#define SLM_HARNESS_MEASURE_SESSION_SESSION_H

#include <stdbool.h>

#include "engine/engine.h"
#include "harness/rows/settings/model_setup.h"

/* How tokens are drafted (engine/speculate/speculate.h). */
enum session_drafts {
    DRAFTS_OFF,
    DRAFTS_LOOKUP, /* from the text so far */
    DRAFTS_MTP,    /* by the model's own layer that predicts further tokens */
    DRAFTS_MODEL,  /* by a draft model, which is named in its own way */
};

struct session_params {
    const char *model; /* as modelref.h has it; NULL: ST_USAGE */
    const char *quant; /* quantise it to this while loading; or NULL */
    const char *cpus;  /* "0,2": one for each thread; excludes placement; or NULL */
    /* Its model is the one that is opened where it is parsed already (.text), and the
     * CPUs are above. n_threads 0, n_batch 0 and a placement that is not given are the
     * defaults. */
    struct model_setup setup;
    int n_ctx, n_logits, n_sequences; /* as in struct slm_params */
    enum session_drafts drafts;
    bool paged;
    size_t n_pool;
    int n_checkpoints;
    bool serves; /* it accepts connections of `listener`, which listens: then the fence
                    is the whole one, behind which nothing is written and only the
                    model and what runs it are read */
    int listener;
    const char *also;             /* a file that it reads as well; or NULL */
    const struct modelref *draft; /* a model that it opens as well; or NULL */
    uint64_t reserved_bytes;      /* of memory, for something else */
    bool decodes;                 /* many tokens: measure prefetch distances */
};

/* --draft MODEL: *s drafts by a model. NULL: as it is. Error: ST_USAGE for drafts that
 * --speculate chose as well. */
enum status session_take_draft(struct session_params *s, const char *model,
                               struct err *err);

/* The model that params name; a synthetic one is made where its file is missing. From
 * then on the process can start no other program and use no network (fence.h). Errors:
 * those of modelref_parse(), modelref_set_quant(), modelref_make_file() and
 * model_fence_enter(), or worker_fence_server(). */
enum status session_model(struct modelref *ref, const struct session_params *params,
                          struct err *err);

/* Adds the files that opening it reads; makes none. The model is in setup from then on.
 * Errors: those of modelref_parse(), modelref_set_quant() and modelref_files(). */
enum status session_inputs(struct path_list *files, struct session_params *params,
                           struct err *err);

/* How the engine opens the setup's model as params have it, in that much memory. */
struct slm_params session_model_params(const struct session_params *params,
                                       const struct model_setup *setup,
                                       uint64_t memory_bytes);

/* Opens the model and reads its weights, if memory holds them (packed weights must
 * fit), with a progress line; an interrupt ends it. Warns on standard error of more
 * threads than CPUs. *n_threads (may be NULL): the number used. Errors: as
 * topology_read(), placement_cpus(), slm_open() and weights_preload(). */
enum status session_open(struct slm **m, const struct session_params *params,
                         int *n_threads, struct err *err);

/* Rows of a table of options that fill a session_params s; options.h is the caller's to
 * include. */
#define SESSION_OPT_MODEL(s)                                   \
    OPT_STR('m', "model", &(s).model, "MODEL",                 \
            "GGUF file, Hugging Face folder, or SHAPE:QUANT"), \
        OPT_STR(0, "quant", &(s).quant, "QUANT",               \
                "quantise F32, F16 or BF16 weights while loading")
extern const struct choices choices_drafts; /* those of --speculate */
#define SESSION_OPT_SPECULATE(s, help) \
    OPT_CHOICE(0, "speculate", &(s).drafts, "HOW", help, &choices_drafts)
#define SESSION_OPT(s, name) model_setup_option(SETTING_##name, &(s).setup)
#define SESSION_OPT_HOLD(s) \
    SESSION_OPT(s, kv_type), SESSION_OPT(s, weights), SESSION_OPT(s, prefill_sums)
#define SESSION_OPT_PLACE(s)                                         \
    SESSION_OPT(s, placement), OPT_STR(0, "cpus", &(s).cpus, "LIST", \
                                       "pin the threads to these CPUs, in this order")

#endif
