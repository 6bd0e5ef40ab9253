/* SPDX-License-Identifier: MIT
 *
 * modelref.h - a model as the command line names it: a GGUF file or SHAPE:QUANT
 *
 * SHAPE:QUANT ("yi-1.5-9b:Q4_K_M") is a synthetic model of a shape in
 * configs/models; it is made on first use in the cache directory
 * (--cache-dir, $SLMBENCH_CACHE, $XDG_CACHE_HOME/slmbench, ~/.cache/slmbench), or
 * directly in memory.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MODELREF_H
#define SLM_HARNESS_MODELREF_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/status.h"
#include "engine/synth.h"

#define MODELREF_SEED 1 /* of the weights of SHAPE:QUANT models */

struct modelref {
    char text[256]; /* as given */
    bool synthetic;
    char path[512];           /* of the GGUF file: given, or in the cache directory */
    char name[96];            /* shape, or file name without .gguf */
    struct synth_shape shape; /* synthetic only */
    enum quantmix mix;
};

/* Errors: ST_USAGE (neither a file nor a known SHAPE:QUANT; lists the shapes or
 * quantisations there are). cache_dir may be NULL. */
enum status modelref_parse(struct modelref *ref, const char *text,
                           const char *cache_dir, struct err *err);

/* Make the file if it is synthetic and not there yet, or there with another
 * content than this version makes; *made (may be NULL) says whether. Shows
 * progress. Errors: as synth_write_file(). */
enum status modelref_make_file(const struct modelref *ref, bool *made, struct err *err);

/* Size of the file, made or not. Errors: ST_IO, ST_USAGE. */
enum status modelref_bytes(const struct modelref *ref, uint64_t *bytes,
                           struct err *err);

/* Write a planned model to path under a progress bar; stops when interrupted().
 * Errors: as synth_write_file(). */
enum status modelref_write_plan(const struct synth_plan *plan, const char *path,
                                struct err *err);

/* <cache directory>/file, as above; cache_dir may be NULL. Error: ST_USAGE. */
enum status modelref_cache_path(char *out, size_t cap, const char *cache_dir,
                                const char *file, struct err *err);

/* A quantisation mix by its name, in any case. Error: ST_USAGE (unknown; the
 * nearest one, or all of them). */
enum status mix_parse(enum quantmix *mix, const char *name, struct err *err);

/* Shape descriptions: configs/models/<name>.yaml in the source tree, beside the
 * executable (../share/slmbench/models), or, if it is set, the directory
 * $SLMBENCH_SHAPES alone; or a path that ends in .yaml. Errors: ST_USAGE (unknown;
 * lists those found), ST_INPUT. */
enum status shape_load(struct synth_shape *shape, const char *name, struct err *err);
/* Names found, sorted; malloc'ed array of malloc'ed strings. */
enum status shape_list(char ***names, int *n, struct err *err);

#endif
