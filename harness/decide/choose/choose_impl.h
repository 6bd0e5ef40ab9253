/* SPDX-License-Identifier: MIT
 *
 * choose_impl.h - the state of a choice, for choose*.c only
 */
#ifndef SLM_HARNESS_DECIDE_CHOOSE_CHOOSE_IMPL_H
#define SLM_HARNESS_DECIDE_CHOOSE_CHOOSE_IMPL_H

#include <jansson.h>

#include "engine/quantize/requant.h"
#include "harness/decide/choose/choose.h"
#include "harness/decide/choose/mix_search.h"
#include "harness/model/modelref.h"

/* Matrices of one kind in neighbouring layers: "ffn_down of layers 4 to 7". */
struct choose_group {
    char name[96];  /* "blk.4-7.ffn_down.weight" */
    size_t *tensor; /* [n] in the source, malloc'ed */
    size_t n;
    uint64_t n_elems;
};

/* ---- finished steps, in one file of JSON ----------------------------------------- */

/* A step has a name and a result, which stays the same whoever runs
 * it. The file is replaced as a whole after each step. It also has what all steps have
 * in common; a directory of other settings is refused, not mixed. It may be damaged or
 * foreign: a result that its reader does not understand is a step to be done again. */

struct choose_state {
    char dir[3000];
    json_t *root; /* {"settings": .., "steps": {..}} */
    int lock;     /* -1: none */
};

/* Open or begin dir/choose.json; settings is released. Errors: ST_USAGE (its steps are
 * of other settings, which are named; another run has it), ST_INPUT, ST_IO. */
enum status choose_state_open(struct choose_state *s, const char *dir, json_t *settings,
                              struct err *err);
void choose_state_close(struct choose_state *s);

/* A finished step; NULL: it is not finished. Borrowed. */
const json_t *choose_state_get(const struct choose_state *s, const char *step);

/* Finish a step; result is released. It is on disk on return. Errors: those of
 * textfile_write_json(). */
enum status choose_state_put(struct choose_state *s, const char *step, json_t *result,
                             struct err *err);

struct choose {
    const struct choose_settings *s;
    struct choose_state state;
    struct modelref ref;
    struct gguf *source;
    enum quantmix source_mix; /* F32, F16, BF16 or Q8_0 */
    char quant[24];
    uint64_t n_params;
    uint64_t memory_bytes; /* that a model may have here */
    struct imatrix *imatrix;

    struct choose_group *groups; /* malloc'ed, [n_groups] */
    size_t n_groups;
    /* Types that a group may take; the last one, KERN_N_FMT, is that of the source,
     * F16 for F32. */
    enum kern_format types[CHOOSE_MAX_TYPES + 1];
    size_t n_types; /* with the source's */
    size_t probed;  /* type that groups are measured in */
    double *error;  /* [n_groups][n_types] relative square error of weights */
    double *kl;     /* [n_groups] divergence with one group in the probed type */
    struct mix_option *option; /* [n_groups][n_types] */
    uint64_t fixed_bytes;      /* of a file, besides its groups */
    size_t n_scored;

    size_t n_steps, n_done; /* that measure a divergence; for the time left */
    double spent_s;         /* in this run's steps */
    size_t n_spent;
    double seconds; /* of all finished steps, in all runs */
};

/* A file of the source: with type[g] of each group, or, type NULL, of a usual mix. */
struct choose_recipe {
    const uint8_t *type;
    enum quantmix mix;
};

/* ---- choose_source.c ------------------------------------------------------------- */

/* Open the source, part it into groups, read the types' names. Errors: ST_USAGE (it is
 * quantised already; types), those of modelref_open() and imatrix_read(). */
enum status choose_open(struct choose *c, struct err *err);
void choose_close(struct choose *c);

/* The format of tensor t in type k of c->types. */
enum kern_format choose_format(const struct choose *c, const struct gguf_tensor *t,
                               size_t k);

/* "q4_K"; "as it is". */
const char *choose_type_name(const struct choose *c, size_t k);

/* The importance matrix of s->calibration, in s->out; path is its name. One that is
 * there is kept. Errors: those of calibrate(). */
enum status choose_importance(char *path, size_t cap, const struct choose_settings *s,
                              struct err *err);

/* ---- choose_error.c -------------------------------------------------------------- */

/* Fill in c->error by a sample of each tensor's rows, in every type. Errors: those of
 * requant_open() and gguf_read_rows(), ST_INTERRUPTED. */
enum status choose_errors(struct choose *c, struct err *err);

/* ---- choose_measure.c ------------------------------------------------------------ */

/* The source as another gguf, which is the caller's. */
enum status choose_make(const struct choose *c, struct gguf **made,
                        const struct choose_recipe *recipe, struct err *err);

/* Measure a recipe's divergence from the source in n_chunks chunks, as a step of that
 * name; a finished step is read. With keep it is the file at path, and f->path is path;
 * a file that is there with as many bytes is not written again. Else the recipe is
 * quantised into memory, or into a file at path that is removed. f->name is printed.
 * Errors: those of gguf_save() and quality_run(). */
enum status choose_measure(struct choose *c, struct choose_file *f, const char *step,
                           const struct choose_recipe *recipe, const char *path,
                           bool keep, int n_chunks, struct err *err);

#endif
