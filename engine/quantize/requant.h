/* SPDX-License-Identifier: MIT
 *
 * requant.h - a model as if it had been quantised before: quantised while it is read
 *
 * requant_open() puts a mix over a gguf: the result is an assembled gguf whose tensors
 * have the types of the mix, and whose rows are made when somebody reads them. Loading
 * it (weights.h) therefore quantises straight into the place where weights are kept,
 * and saving it (gguf_save.h) into a file, on as many threads as read, with a buffer of
 * a few hundred KiB each.
 *
 * With an importance matrix the error of weight x in column j counts
 *     m_j * sqrt(mean of the row's x^2 + x^2),
 * m_j the mean square of the inputs there: large weights are the ones that inputs were
 * seen with.
 *
 * Threading: as any gguf; reading rows from several threads is what it is for.
 */
#ifndef SLM_ENGINE_QUANTIZE_REQUANT_H
#define SLM_ENGINE_QUANTIZE_REQUANT_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/quantize/imatrix.h"
#include "engine/quantize/quantmix.h"

/* Matrices whose names match the glob ("blk.*.attn_v.weight"), or contain the pattern
 * where it has none of *?[, take this format whatever the mix says. */
struct requant_rule {
    const char *pattern;
    enum kern_format fmt;
};

/* What quantising a format's tensors did. */
struct requant_measure {
    uint64_t n; /* weights */
    double error2, square2;
    double weighed_error2, weighed_square2; /* the same with importances */
};

struct requant_params {
    enum quantmix mix;
    bool pure; /* every matrix in the mix's base format */
    bool keep_output;
    bool requantise;                  /* also from types that are quantised already */
    const struct requant_rule *rules; /* the first that matches wins */
    size_t n_rules;
    const struct imatrix *imatrix; /* NULL: all columns alike; must outlive the gguf */
    const char *imatrix_name;      /* for the metadata; NULL: none */
    struct requant_measure *measures; /* [KERN_N_FMT], or NULL: not measured. Added to
                                         while rows are read, under a lock */
};

/* What the rules of a mix look at, of tensor t of g. name points into t. */
void requant_describe(struct quantmix_tensor *out, const struct gguf *g,
                      const struct gguf_tensor *t);

/* The type that tensor t of g gets. */
enum kern_format requant_format(const struct requant_params *p, const struct gguf *g,
                                const struct gguf_tensor *t);

/* Put a mix over g, which belongs to the result from here on, also on failure.
 * Metadata stay but for general.file_type and general.quantization_version. What has
 * been read of g is dropped from the page cache. Errors: ST_USAGE (g is quantised
 * already; the message names a tensor), ST_INPUT (the importance matrix is of another
 * model), ST_NO_MEMORY. */
enum status requant_open(struct gguf **out, struct gguf *g,
                         const struct requant_params *p, struct err *err);

#endif
