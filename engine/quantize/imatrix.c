/* SPDX-License-Identifier: MIT
 *
 * imatrix.c - importance matrices in memory
 */
#include "engine/quantize/imatrix_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_WEIGHT 1e-6 /* in units of the mean */

enum status imatrix_new(struct imatrix **out, uint32_t chunk_size, struct err *err)
{
    struct imatrix *im = calloc(1, sizeof *im);

    if (!im)
        return err_set(err, ST_NO_MEMORY, "no memory for an importance matrix");
    im->chunk_size = chunk_size;
    *out = im;
    return ST_OK;
}

void imatrix_free(struct imatrix *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->n_entries; i++) {
        free(im->entries[i]->name);
        free(im->entries[i]->sum2);
        free(im->entries[i]->counts);
        free(im->entries[i]);
    }
    for (size_t i = 0; i < im->n_datasets; i++)
        free(im->datasets[i]);
    free(im->entries);
    free(im->datasets);
    free(im);
}

const struct imatrix_entry *imatrix_find(const struct imatrix *im, const char *name)
{
    for (size_t i = 0; i < im->n_entries; i++)
        if (!strcmp(im->entries[i]->name, name))
            return im->entries[i];
    return NULL;
}

/* Grow an array of n pointers by one. */
static bool grow(void ***array, size_t n)
{
    void **grown = realloc(*array, (n + 1) * sizeof **array);

    if (grown)
        *array = grown;
    return grown;
}

static enum status add_entry(struct imatrix *im, struct imatrix_entry **out,
                             const char *name, uint64_t n_cols, uint64_t n_slices,
                             struct err *err)
{
    struct imatrix_entry *e = calloc(1, sizeof *e);
    uint64_t n = 0;

    if (e && !__builtin_mul_overflow(n_cols, n_slices, &n)) {
        e->name = strdup(name);
        e->sum2 = calloc((size_t)n, sizeof *e->sum2);
        e->counts = calloc((size_t)n_slices, sizeof *e->counts);
    }
    if (!e || !e->name || !e->sum2 || !e->counts ||
        !grow((void ***)&im->entries, im->n_entries)) {
        if (e) {
            free(e->name);
            free(e->sum2);
            free(e->counts);
        }
        free(e);
        return err_set(err, ST_NO_MEMORY, "no memory for the importances of %s", name);
    }
    e->n_cols = n_cols;
    e->n_slices = n_slices;
    im->entries[im->n_entries++] = e;
    *out = e;
    return ST_OK;
}

enum status imatrix_entry(struct imatrix *im, struct imatrix_entry **entry,
                          const char *name, uint64_t n_cols, uint64_t n_slices,
                          struct err *err)
{
    for (size_t i = 0; i < im->n_entries; i++) {
        struct imatrix_entry *e = im->entries[i];

        if (strcmp(e->name, name))
            continue;
        if (e->n_cols != n_cols || e->n_slices != n_slices)
            return err_set(err, ST_INPUT,
                           "the importance matrix has %llu columns and %llu slices for "
                           "%s, the model %llu and %llu: it is of another model",
                           (unsigned long long)e->n_cols,
                           (unsigned long long)e->n_slices, name,
                           (unsigned long long)n_cols, (unsigned long long)n_slices);
        *entry = e;
        return ST_OK;
    }
    return add_entry(im, entry, name, n_cols, n_slices, err);
}

bool imatrix_fits(const struct imatrix_entry *e, uint64_t n_cols, uint64_t n_slices)
{
    return e->n_slices == 1 ? e->n_cols == n_cols * n_slices
                            : e->n_cols == n_cols && e->n_slices == n_slices;
}

void imatrix_weights(const struct imatrix_entry *e, uint64_t n_cols, uint64_t slice,
                     float *w)
{
    const double *sum2 = e->sum2 + slice * n_cols;
    double sum = 0;

    for (uint64_t i = 0; i < n_cols; i++)
        sum += sum2[i];
    for (uint64_t i = 0; i < n_cols; i++) {
        const double share = sum > 0 ? sum2[i] / sum * (double)n_cols : 1;

        w[i] = (float)fmax(share, LEAST_WEIGHT);
    }
}

enum status imatrix_add_dataset(struct imatrix *im, const char *name, struct err *err)
{
    char *copy;

    for (size_t i = 0; i < im->n_datasets; i++)
        if (!strcmp(im->datasets[i], name))
            return ST_OK;
    copy = strdup(name);
    if (!copy || !grow((void ***)&im->datasets, im->n_datasets)) {
        free(copy);
        return err_set(err, ST_NO_MEMORY, "no memory for a file name");
    }
    im->datasets[im->n_datasets++] = copy;
    return ST_OK;
}

void imatrix_add_chunks(struct imatrix *im, uint32_t n)
{
    im->n_chunks += n;
}

size_t imatrix_n_entries(const struct imatrix *im)
{
    return im->n_entries;
}

const struct imatrix_entry *imatrix_entry_at(const struct imatrix *im, size_t i)
{
    return im->entries[i];
}

size_t imatrix_n_datasets(const struct imatrix *im)
{
    return im->n_datasets;
}

const char *imatrix_dataset(const struct imatrix *im, size_t i)
{
    return im->datasets[i];
}

uint32_t imatrix_n_chunks(const struct imatrix *im)
{
    return im->n_chunks;
}
