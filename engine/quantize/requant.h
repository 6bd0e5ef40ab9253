/* SPDX-License-Identifier: MIT
 *
 * requant.h - a model quantised to a mix while it is read
 *
 * requant_open() makes an assembled gguf whose tensors have the types of the mix and
 * whose rows are quantised when they are read. Loading it (weights.h) quantises
 * directly into the memory of the weights, saving it (gguf_save.h) into a file, on as
 * many threads as read, with a buffer of a few hundred KiB each.
 *
 * With an importance matrix the error of weight x in column j has the weight
 *     m_j * sqrt(mean of the row's x^2 + x^2),
 * m_j the mean square of the inputs of column j: large weights count more.
 *
 * Threading: as any gguf; several threads may read rows.
 */
#ifndef SLM_ENGINE_QUANTIZE_REQUANT_H
#define SLM_ENGINE_QUANTIZE_REQUANT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/quantize/imatrix.h"
#include "engine/quantize/quantmix.h"

/* Matrices whose names match the glob ("blk.*.attn_v.weight"), or contain a pattern
 * without *?[, get this format regardless of the mix. */
struct requant_rule {
    const char *pattern;
    enum kern_format fmt;
};

/* The error of quantising to a format. */
struct requant_measure {
    uint64_t n; /* weights */
    double error2, square2;
    double weighed_error2, weighed_square2; /* the same, weighted by importances */
};

struct requant_params {
    enum quantmix mix;
    bool pure; /* every matrix in the mix's base format */
    bool keep_output;
    bool no_file_type; /* rules give types that are no mix's: general.file_type is left
                          out, and readers take the type of most weights */
    bool requantise;   /* also from quantised types */
    const struct requant_rule *rules; /* the first that matches wins */
    size_t n_rules;
    const struct imatrix *imatrix; /* NULL: all columns alike; must outlive the gguf */
    const char *imatrix_name;      /* for the metadata, or NULL */
    struct requant_measure *measures; /* [KERN_N_FMT], or NULL: not measured. Added to
                                         while rows are read, under a lock */
};

/* The type of tensor t of g in the result. */
enum kern_format requant_format(const struct requant_params *p, const struct gguf *g,
                                const struct gguf_tensor *t);

/* Open g in the mix; the result takes over g, also on failure. Metadata stay except
 * general.file_type and general.quantization_version. Bytes of g leave the page cache
 * once read. Errors: ST_USAGE (g is quantised already: the message names a tensor; a
 * rule that matches none),
 * ST_INPUT (the importance matrix belongs to another model), ST_NO_MEMORY. */
enum status requant_open(struct gguf **out, struct gguf *g,
                         const struct requant_params *p, struct err *err);

#endif
