/* SPDX-License-Identifier: MIT
 *
 * modelref.h - a model as the command line names it: a GGUF file, a Hugging Face
 * folder, either of them quantised while it is loaded, or SHAPE:QUANT
 *
 * SHAPE:QUANT ("yi-1.5-9b:Q4_K_M") is a synthetic model of a shape in
 * configs/models; it is made on first use in the cache directory
 * (--cache-dir, $SLMBENCH_CACHE, $XDG_CACHE_HOME/slmbench, ~/.cache/slmbench), or
 * directly in memory.
 *
 * PATH:QUANT ("models/phi-3-mini:Q4_K_M") is an F32, F16 or BF16 file or folder that
 * is quantised while it is loaded.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MODEL_MODELREF_H
#define SLM_HARNESS_MODEL_MODELREF_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/synth/synth.h"
#include "harness/base/options.h"
#include "harness/base/pathlist.h"

#define MODELREF_SEED     1   /* of the weights of SHAPE:QUANT models */
#define MODELREF_NAME_MAX 256 /* with its end; no file's name is longer */

struct modelref {
    char text[PATH_MAX + 24]; /* as given */
    bool synthetic;
    bool at_load;                  /* not synthetic: quantise to mix while loading */
    char path[PATH_MAX];           /* of the GGUF file or folder: given, or in the cache
                                      directory; synthetic: "" where none is known */
    char name[MODELREF_NAME_MAX];  /* shape, or file name without .gguf; each of several
                                      models has its own (model_names.h) */
    char label[MODELREF_NAME_MAX]; /* the same without a quantisation at its end: what
                                      the files of one model have alike */
    uint64_t identity;        /* of its content (model_names.h); 0: not known yet */
    struct synth_shape shape; /* synthetic only */
    enum quantmix mix;        /* synthetic or at_load; else QUANTMIX_N */
    const struct requant_params *requant; /* at_load, in this process alone: by these
                                             rules, which live longer; or NULL */
};

/* One model. Errors: ST_USAGE (neither a file nor a known SHAPE:QUANT; lists the shapes
 * or quantisations there are; a list of quantisations, modelref_expand()). cache_dir
 * may be NULL. */
enum status modelref_parse(struct modelref *ref, const char *text,
                           const char *cache_dir, struct err *err);

/* The list of NAME:Q4_K_M,Q8_0, behind its colon; NULL: text is one model. A file or
 * folder is one, whatever its name. */
const char *modelref_list_of(const char *text);

/* Texts in which a model has a list of quantisations, NAME:Q4_K_M,Q8_0, as one text for
 * each, NAME:Q4_K_M and NAME:Q8_0; others, and what is the name of a file or folder, as
 * they are. out's array and its texts are one allocation, to be freed by free(out->v).
 * Errors: ST_USAGE (an item that is empty, unknown or there twice, named),
 * ST_NO_MEMORY. */
enum status modelref_expand(const char *const *texts, size_t n, struct str_list *out,
                            struct err *err);

/* Expands an option's list in place. */
enum status modelref_expand_list(struct str_list *list, struct err *err);

/* Quantise it while loading, as with --quant: text becomes PATH:QUANT. quant NULL
 * changes nothing. Error: ST_USAGE (unknown, or the name has one already). */
enum status modelref_set_quant(struct modelref *ref, const char *quant,
                               struct err *err);

/* A synthetic model that came from another process, without its shape: reads that where
 * the model is made in memory or its file is not there; else the file is one like any
 * other from then on. Errors: those of modelref_parse(). */
enum status modelref_read_shape(struct modelref *ref, bool in_memory, struct err *err);

/* The value of slm_params.quant: the name of mix, or NULL. */
const char *modelref_quant(const struct modelref *ref);

/* Open the file that is there (modelref_make_file()). Errors: modelfile_open()'s. */
enum status modelref_open(const struct modelref *ref, struct gguf **g, struct err *err);

/* Adds the files that opening the model reads: the file, all parts of it, or all that
 * is in the folder. Files that are not there are added, too, but for a folder's.
 * Errors: ST_NO_MEMORY, ST_USAGE (a path is too long). */
enum status modelref_files(const struct modelref *ref, struct path_list *files,
                           struct err *err);

/* Whether `out` is none of them: path_list_check_output(). out may be NULL. Errors:
 * those of both. */
enum status modelref_check_output(const struct modelref *ref, const char *out,
                                  struct err *err);

/* file_evict() for the file, or all safetensors of a folder; *stayed_bytes is their
 * sum. */
enum status modelref_evict(const struct modelref *ref, uint64_t *stayed_bytes,
                           struct err *err);

/* Make the file if it is synthetic and not there yet, or there with another
 * content than this version makes; *made (may be NULL): it was made. Shows
 * progress. A synthetic file is in use from then on, until this process ends or
 * modelref_remove(): other processes see that by a lock. Errors: as
 * synth_write_file(). */
enum status modelref_make_file(const struct modelref *ref, bool *made, struct err *err);

/* Removes a synthetic file that modelref_is_made(), unless another process uses it;
 * returns whether it is gone. */
bool modelref_remove(const struct modelref *ref);

/* Whether the file is one that modelref_make_file() has made: any other file
 * may have its name. */
bool modelref_is_made(const struct modelref *ref);

/* Size of the file, made or not; for a model quantised while loading, the size of the
 * GGUF file it would be. Errors: ST_IO, ST_USAGE, modelfile_open()'s. */
enum status modelref_bytes(const struct modelref *ref, uint64_t *bytes,
                           struct err *err);

/* Whether there is a place for the file of a synthetic model: before work that ends
 * with making it. Error: ST_USAGE (no cache directory is known). */
enum status modelref_check_cache(const struct modelref *ref, struct err *err);

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

/* A shape description: the name of one that comes with the program (kind "models" of
 * harness/base/program.h), or a path that ends in .yaml. Errors: ST_USAGE (unknown;
 * names those near it), ST_INPUT. */
enum status shape_load(struct synth_shape *shape, const char *name, struct err *err);
/* Names found, sorted; malloc'ed array of malloc'ed strings. */
enum status shape_list(char ***names, int *n, struct err *err);

/* Into near the shapes, at most three, that share most with a name as people type it
 * (llama3:8b, Qwen/Qwen2.5-7B-Instruct), with commas between; returns how many. */
int shape_near(const char *name, char *near, size_t cap);

/* ---- a shape without its weights, for planning ----------------------------------- */

struct model_head {
    struct gguf *g;
    void *image; /* of a shape: address space for all of it, in which only the head has
                    pages; the data of its tensors are zeros */
    uint64_t bytes;
};

/* The plan of a synthetic model with that name. Errors: ST_NO_MEMORY (no address space
 * for it), gguf_parse()'s. */
enum status model_head_of_plan(struct model_head *h, const struct synth_plan *plan,
                               const char *name, struct err *err);

void model_head_close(struct model_head *h);

/* ---- synthetic model files that several processes share -------------------------- */

/* Marks the file as used by this process: it holds a shared lock on it until it ends,
 * and one that wants to remove the file needs the lock for itself. False: it is not
 * there, or somebody is removing it. */
bool model_use(const char *path);

/* Removes the file unless another process uses it; whether it is gone. */
bool model_remove_unused(const char *path);

#endif
