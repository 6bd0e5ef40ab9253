/* SPDX-License-Identifier: MIT
 *
 * tuned.h - a profile: what `bench tune` chose, as a file, and whether it still fits
 *
 * Model of the world: what is fastest depends on the machine, on its limits, on this
 * program and on the model. The profile names all of them (its key); where one differs
 * from here and now the profile is stale and not used. Comments in the file show what
 * each choice was worth; people may edit it, so every value is checked.
 *
 * Threading: none.
 */
#ifndef SLM_HARNESS_MEASURE_TUNE_TUNED_H
#define SLM_HARNESS_MEASURE_TUNE_TUNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/engine.h"
#include "harness/machine/topology.h"
#include "harness/model/modelref.h"
#include "harness/measure/tune/tune.h"

/* The fields of a key, with their names in the file and in messages. Instruction sets:
 * levels in use. Topology: packages, cores, CPUs, and those that may be used. The
 * model's name is not compared, as a renamed file is the same model. */
#define TUNED_FIELDS(X)                     \
    X(CPU, cpu, "CPU")                      \
    X(ISA, isa, "instruction sets")         \
    X(TOPOLOGY, topology, "topology")       \
    X(QUOTA, cpu_quota, "CPU quota")        \
    X(MEMORY, memory_limit, "memory limit") \
    X(KERNEL, kernel, "operating system")   \
    X(BUILD, build, "build of bench")       \
    X(MODEL, model, "model")                \
    X(QUANT, quant, "model's quantisation") \
    X(BYTES, file_bytes, "model's size")    \
    X(TABLES, tables_hash, "model's metadata and tensors (hash)")

enum tuned_field {
#define X(field, name, what) TUNED_##field,
    TUNED_FIELDS(X)
#undef X
        TUNED_N_FIELDS
};

struct tuned_key {
    char text[TUNED_N_FIELDS][160];
};

struct tuned {
    struct tuned_key key;
    char made[24];           /* ISO 8601 */
    struct tune_setup setup; /* n_batch is set */
};

/* Here and now, all but the model. mem_limit: the command's, 0: the machine's. */
void tuned_key_machine(struct tuned_key *key, const struct topology *topo,
                       uint64_t mem_limit);

/* The model, TUNED_MODEL and what follows: a file, which is opened, or a synthetic one
 * that needs none (in_memory). Errors: as gguf_open(), synth_plan_make(). */
enum status tuned_key_model(struct tuned_key *key, const struct modelref *model,
                            bool in_memory, struct err *err);

/* Whether a profile made there fits here; if not, one sentence about the first field
 * that differs into why. */
bool tuned_key_fits(const struct tuned_key *there, const struct tuned_key *here,
                    char *why, size_t cap);

/* Where the profile of a key is kept: <cache directory>/tuned/<model>-<hash>.yaml. The
 * hash leaves out the operating system's kernel and the build, so that a newer profile
 * takes an older one's place. Error: ST_USAGE (no cache directory is known). */
enum status tuned_path(char *out, size_t cap, const struct tuned_key *key,
                       struct err *err);

/* Make the directories above path, so that it shows early that they cannot be. Error:
 * ST_IO. */
enum status tuned_make_place(const char *path, struct err *err);

/* Through a temporary file; directories above path are made. result: for the comments.
 * Error: ST_IO. */
enum status tuned_save(const char *path, const struct tuned *t,
                       const struct tune_result *result, struct err *err);

/* Errors: ST_IO, ST_INPUT (the file, the key and what is wrong). */
enum status tuned_load(struct tuned *t, const char *path, struct err *err);

#endif
