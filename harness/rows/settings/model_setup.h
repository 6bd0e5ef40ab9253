/* SPDX-License-Identifier: MIT
 *
 * model_setup.h - how a model is held and run, whoever measures or uses it
 *
 * Model of the world: a point, a gate, a worker and a session hold a model in memory
 * and run it by the same settings: those rows of settings.def whose owner is MODEL.
 * They all have one struct model_setup, which is copied whole; a setting of it is one
 * row and one field. Parsing, defaults, JSON and the engine's parameters are made here.
 *
 * Threading: a struct is its owner's; functions are pure.
 */
#ifndef SLM_HARNESS_ROWS_SETTINGS_MODEL_SETUP_H
#define SLM_HARNESS_ROWS_SETTINGS_MODEL_SETUP_H

#include "engine/engine.h"
#include "harness/machine/topology.h"
#include "harness/model/modelref.h"
#include "harness/rows/settings/setting.h"

struct model_setup {
    struct modelref model;
    /* WEIGHTS_MEMORY: a synthetic image in anonymous 2 MiB pages, no file;
     * WEIGHTS_AUTO: what fits memory */
    enum weights_residency residency;
    enum kern_kv kv_type;
    int kv_window; /* positions that a token sees besides the first ones; 0: all */
    enum slm_sums prefill_sums;
    int n_threads;
    int n_threads_prefill; /* of passes of several tokens; 0: the same */
    enum placement placement;
    int cpus[TOPO_MAX_CPUS]; /* model_setup_threads() of them, where explicit_cpus */
    bool explicit_cpus;
    int n_batch;
    uint64_t mem_limit;   /* bytes; 0: none */
    int quota_hundredths; /* of a CPU; 0: none */
    uint64_t seed;
    uint32_t isa_disabled;
    uint64_t given; /* SETTING_BIT() of what the user has set */
};

/* Defaults of everything but the model. */
void model_setup_init(struct model_setup *s);

/* A setting's field; *size (may be NULL) is the field's. NULL: a model has none. */
void *model_setup_field(struct model_setup *s, enum setting_id id, size_t *size);

/* Threads that are started: the larger of the two counts. */
int model_setup_threads(const struct model_setup *s);

/* The quota in CPUs; 0: none. */
double model_setup_quota(const struct model_setup *s);

/* A setting from its text; it is one of .given then. what names the option or key in
 * messages. Error: ST_USAGE. */
enum status model_setup_set(struct model_setup *s, enum setting_id id, const char *text,
                            const char *what, struct err *err);

/* The same as an option of a command that runs a model for a person. */
struct opt model_setup_option(enum setting_id id, struct model_setup *s);

/* What the engine opens: files, threads, CPUs, batch and KV cache as in *s, within
 * memory_bytes. Context, logits, tuning and an image in memory are the caller's. It
 * borrows from *s. */
struct slm_params model_setup_params(const struct model_setup *s,
                                     uint64_t memory_bytes);

/* "weights mmap, KV cache f16, placement spread, batch 512" into buf, which is
 * returned. */
const char *model_setup_text(const struct model_setup *s, char *buf, size_t cap);

/* ---- to a worker, and back ------------------------------------------------------- */

/* The keys: the fields' names, all of them; or those of .opened, which programs of
 * other versions know. */
enum model_setup_keys { MODEL_SETUP_FIELDS, MODEL_SETUP_OPENED };

/* An object with "model", "path", "quant", the explicit "cpus", and the settings. */
json_t *model_setup_json(const struct model_setup *s, enum model_setup_keys keys);

/* The keys of .opened_if_set, for the greeting of a program that opens them. */
json_t *model_setup_optional_keys(void);

/* The first of them that *s sets and such a list (NULL: a program without one)
 * does not name; NULL: no such key. */
const char *model_setup_unknown_key(const struct model_setup *s, const json_t *known);

/* Reads all but the CPUs. Settings without such a key are left as they are; on failure
 * some may be filled. Error: ST_USAGE. */
enum status model_setup_from_json(struct model_setup *s, const json_t *object,
                                  enum model_setup_keys keys, struct err *err);

/* Reads "cpus" of the object, one for each of model_setup_threads(), where
 * explicit_cpus. Error: ST_USAGE. */
enum status model_setup_read_cpus(struct model_setup *s, const json_t *object,
                                  struct err *err);

#endif
