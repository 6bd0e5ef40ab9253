/* SPDX-License-Identifier: MIT
 *
 * imatrix.h - importance matrices: how much each column of a matrix matters
 *
 * An error e in column j of a matrix changes its products by e x_j, so what it costs is
 * the mean of x_j^2 over the inputs x that a text gives. An *entry* holds for one
 * matrix (and each of its slices, where it has experts) the sum of x_j^2 and the number
 * of inputs; entries add up, so that texts may be taken in parts.
 *
 * Files: GGUF with general.type "imatrix" (tensors <name>.in_sum2 [n_cols, n_slices]
 * and <name>.counts [1, n_slices], both F32), and the older binary form (.dat), which
 * is only read. Both are not trusted: sizes are checked before they are used.
 *
 * Threading: none of its own; reading an imatrix from several threads is fine.
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

/* Errors: ST_IO, ST_INPUT (what is wrong with the file), ST_NO_MEMORY. */
enum status imatrix_read(struct imatrix **im, const char *path, struct err *err);

/* As GGUF, complete or not at all (outfile.h). Errors: ST_IO, ST_NO_MEMORY. */
enum status imatrix_write(const struct imatrix *im, const char *path, struct err *err);

/* The entry of a matrix; NULL: there is none. */
const struct imatrix_entry *imatrix_find(const struct imatrix *im, const char *name);

/* The same, made if it is missing. Errors: ST_NO_MEMORY; ST_INPUT (it is there with
 * another shape: the imatrix is of another model). */
enum status imatrix_entry(struct imatrix *im, struct imatrix_entry **entry,
                          const char *name, uint64_t n_cols, uint64_t n_slices,
                          struct err *err);

/* Whether the entry is for rows of n_cols in n_slices. One of an older file does not
 * know its slices: only the product of the two counts there. */
bool imatrix_fits(const struct imatrix_entry *entry, uint64_t n_cols,
                  uint64_t n_slices);

/* One slice's mean squares to w[n_cols], scaled to a mean of 1 and not below 1e-6: a
 * column that was never in use is not free to be anything. All 1 where there were no
 * inputs. */
void imatrix_weights(const struct imatrix_entry *entry, uint64_t n_cols, uint64_t slice,
                     float *w);

/* Texts that went in. add also counts chunks of them. Error: ST_NO_MEMORY. */
enum status imatrix_add_dataset(struct imatrix *im, const char *name, struct err *err);
void imatrix_add_chunks(struct imatrix *im, uint32_t n);

size_t imatrix_n_entries(const struct imatrix *im);
const struct imatrix_entry *imatrix_entry_at(const struct imatrix *im, size_t i);
size_t imatrix_n_datasets(const struct imatrix *im);
const char *imatrix_dataset(const struct imatrix *im, size_t i);
uint32_t imatrix_n_chunks(const struct imatrix *im);
uint32_t imatrix_chunk_size(const struct imatrix *im); /* 0: the file does not say */

#endif
