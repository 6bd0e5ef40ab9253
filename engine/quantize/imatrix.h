/* SPDX-License-Identifier: MIT
 *
 * imatrix.h - importance matrices: how much each column of a matrix matters
 *
 * An error e in column j of a matrix changes its products by e x_j, so its cost is
 * proportional to the mean of x_j^2 over the inputs x of a text. An *entry* holds the
 * sum of x_j^2 and the number of inputs for one matrix (and each of its slices, where
 * it has experts); entries of several texts can be added.
 *
 * Files: GGUF with general.type "imatrix" (tensors <name>.in_sum2 [n_cols, n_slices]
 * and <name>.counts [1, n_slices], both F32), and the older binary form (.dat), which
 * is only read. Both are untrusted: sizes are checked before they are used.
 *
 * Threading: several threads may read an imatrix that no thread changes.
 */
#ifndef SLM_ENGINE_QUANTIZE_IMATRIX_H
#define SLM_ENGINE_QUANTIZE_IMATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct imatrix;

struct imatrix_entry {
    char *name;      /* of the matrix */
    uint64_t n_cols; /* length of its rows */
    uint64_t n_slices;
    double *sum2;   /* [n_slices][n_cols] */
    double *counts; /* [n_slices] inputs */
};

/* Empty, for inputs of chunk_size tokens at a time. Error: ST_NO_MEMORY. */
enum status imatrix_new(struct imatrix **im, uint32_t chunk_size, struct err *err);
void imatrix_free(struct imatrix *im);

/* Errors: ST_IO, ST_INPUT (the message names the fault), ST_NO_MEMORY. */
enum status imatrix_read(struct imatrix **im, const char *path, struct err *err);

/* Write as GGUF, completely or not at all (outfile.h). Errors: ST_IO, ST_NO_MEMORY. */
enum status imatrix_write(const struct imatrix *im, const char *path, struct err *err);

/* The entry of a matrix, or NULL. */
const struct imatrix_entry *imatrix_find(const struct imatrix *im, const char *name);

/* The same, added if missing. Errors: ST_NO_MEMORY; ST_INPUT (it has another shape: the
 * imatrix belongs to another model). */
enum status imatrix_entry(struct imatrix *im, struct imatrix_entry **entry,
                          const char *name, uint64_t n_cols, uint64_t n_slices,
                          struct err *err);

/* Whether the entry is for rows of n_cols in n_slices. An entry of an older file does
 * not have the number of slices: only the product of both is compared. */
bool imatrix_fits(const struct imatrix_entry *entry, uint64_t n_cols,
                  uint64_t n_slices);

/* One slice's mean squares to w[n_cols], scaled to a mean of 1 and at least 1e-6:
 * errors in a column without inputs must not become unbounded. All 1 where there were
 * no inputs. */
void imatrix_weights(const struct imatrix_entry *entry, uint64_t n_cols, uint64_t slice,
                     float *w);

/* Record a text of the sums, and chunks of texts. Error: ST_NO_MEMORY. */
enum status imatrix_add_dataset(struct imatrix *im, const char *name, struct err *err);
void imatrix_add_chunks(struct imatrix *im, uint32_t n);

size_t imatrix_n_entries(const struct imatrix *im);
const struct imatrix_entry *imatrix_entry_at(const struct imatrix *im, size_t i);
size_t imatrix_n_datasets(const struct imatrix *im);
const char *imatrix_dataset(const struct imatrix *im, size_t i);
uint32_t imatrix_n_chunks(const struct imatrix *im);

#endif
