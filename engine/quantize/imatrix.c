/* SPDX-License-Identifier: MIT
 *
 * imatrix.c - importance matrices in memory
 */
#include "engine/quantize/imatrix_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MIN_WEIGHT 1e-6 /* in units of the mean */

enum status imatrix_new(struct imatrix **out, uint32_t chunk_size, struct err *err)
{
    struct imatrix *im = calloc(1, sizeof *im);

    if (!im)
        return err_set(err, ST_NO_MEMORY, "no memory for an importance matrix");
    im->chunk_size = chunk_size;
    *out = im;
    return ST_OK;
}

static void free_entry(struct imatrix_entry *e)
{
    if (!e)
        return;
    free(e->name);
    free(e->sum2);
    free(e->counts);
    free(e);
}

void imatrix_free(struct imatrix *im)
{
    if (!im)
        return;
    for (size_t i = 0; i < im->n_entries; i++)
        free_entry(im->entries[i]);
    for (size_t i = 0; i < im->n_datasets; i++)
        free(im->datasets[i]);
    strtab_free(&im->entry_names.index);
    strtab_free(&im->dataset_names.index);
    free(im->entries);
    free(im->datasets);
    free(im);
}

const struct imatrix_entry *imatrix_find(const struct imatrix *im, const char *name)
{
    const uint32_t i = strtab_find(&im->entry_names.index, name, strlen(name));

    return i == STRTAB_NONE ? NULL : im->entries[i];
}

/* Room for one more of n pointers, and for its name in their index, which is rebuilt
 * when it is full: name() is that of pointer i. Files are too small for STRTAB_NONE
 * names. */
static enum status grow(void ***array, struct imatrix_names *names, size_t n,
                        const char *(*name)(void *const *array, size_t i),
                        struct err *err)
{
    const size_t cap = names->cap ? 2 * names->cap : 64;
    struct strtab index = {0};
    enum status st;
    void **grown;

    if (n < names->cap)
        return ST_OK;
    grown = realloc(*array, cap * sizeof **array);
    if (!grown)
        return err_set(err, ST_NO_MEMORY, "no memory for an importance matrix");
    *array = grown;
    st = strtab_init(&index, cap, err);
    if (st)
        return st;
    for (size_t i = 0; i < n; i++)
        strtab_put(&index, name(grown, i), (uint32_t)strlen(name(grown, i)),
                   (uint32_t)i);
    strtab_free(&names->index);
    names->index = index;
    names->cap = cap;
    return ST_OK;
}

static const char *entry_name(void *const *array, size_t i)
{
    return ((const struct imatrix_entry *)array[i])->name;
}

static const char *dataset_name(void *const *array, size_t i)
{
    return array[i];
}

static enum status add_entry(struct imatrix *im, struct imatrix_entry **out,
                             const char *name, uint64_t n_cols, uint64_t n_slices,
                             struct err *err)
{
    struct imatrix_entry *e = calloc(1, sizeof *e);
    uint64_t n = 0;
    enum status st;

    if (e && !__builtin_mul_overflow(n_cols, n_slices, &n)) {
        e->name = strdup(name);
        e->sum2 = calloc((size_t)n, sizeof *e->sum2);
        e->counts = calloc((size_t)n_slices, sizeof *e->counts);
    }
    if (!e || !e->name || !e->sum2 || !e->counts) {
        free_entry(e);
        return err_set(err, ST_NO_MEMORY, "no memory for the importances of %s", name);
    }
    st = grow((void ***)&im->entries, &im->entry_names, im->n_entries, entry_name, err);
    if (st) {
        free_entry(e);
        return st;
    }
    e->n_cols = n_cols;
    e->n_slices = n_slices;
    strtab_put(&im->entry_names.index, e->name, (uint32_t)strlen(e->name),
               (uint32_t)im->n_entries);
    im->entries[im->n_entries++] = e;
    *out = e;
    return ST_OK;
}

enum status imatrix_entry(struct imatrix *im, struct imatrix_entry **entry,
                          const char *name, uint64_t n_cols, uint64_t n_slices,
                          struct err *err)
{
    const uint32_t i = strtab_find(&im->entry_names.index, name, strlen(name));
    struct imatrix_entry *e = i == STRTAB_NONE ? NULL : im->entries[i];

    if (!e)
        return add_entry(im, entry, name, n_cols, n_slices, err);
    if (e->n_cols != n_cols || e->n_slices != n_slices)
        return err_set(err, ST_INPUT,
                       "the importance matrix has %llu columns and %llu slices for "
                       "%s, the model %llu and %llu: it is of another model",
                       (unsigned long long)e->n_cols, (unsigned long long)e->n_slices,
                       name, (unsigned long long)n_cols, (unsigned long long)n_slices);
    *entry = e;
    return ST_OK;
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

        w[i] = (float)fmax(share, MIN_WEIGHT);
    }
}

enum status imatrix_add_dataset(struct imatrix *im, const char *name, struct err *err)
{
    char *copy;
    enum status st;

    if (strtab_find(&im->dataset_names.index, name, strlen(name)) != STRTAB_NONE)
        return ST_OK;
    st = grow((void ***)&im->datasets, &im->dataset_names, im->n_datasets, dataset_name,
              err);
    if (st)
        return st;
    copy = strdup(name);
    if (!copy)
        return err_set(err, ST_NO_MEMORY, "no memory for a file name");
    strtab_put(&im->dataset_names.index, copy, (uint32_t)strlen(copy),
               (uint32_t)im->n_datasets);
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
