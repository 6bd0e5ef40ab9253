/* SPDX-License-Identifier: MIT
 *
 * imatrix_file.c - importance matrices in files
 *
 * The older binary form, all little-endian: the number of entries (i32); for each the
 * length of its name (i32), the name, the number of calls (i32), the number of values
 * (i32) and the values as f32: means times calls, slices one after another. Data after
 * that (the last chunk, the data set's name) is ignored.
 */
#include "engine/quantize/imatrix_impl.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/infile.h"
#include "engine/base/outfile.h"
#include "engine/gguf/gguf.h"
#include "engine/gguf/gguf_put.h"

#define SUM_SUFFIX   ".in_sum2"
#define COUNT_SUFFIX ".counts"
#define MAX_NAME     1024
#define MAX_BYTES    (UINT64_C(1) << 32) /* those of models of 30B have 25 MB */

static enum status damaged(const char *path, const char *what, struct err *err)
{
    return err_set(err, ST_INPUT, "%s is no sound importance matrix: %s", path, what);
}

/* ---- GGUF, reading --------------------------------------------------------------- */

static float float_at(const struct gguf *g, const struct gguf_tensor *t, uint64_t i)
{
    float v;

    memcpy(&v, (const char *)gguf_tensor_data(g, t) + i * sizeof v, sizeof v);
    return v;
}

static enum status read_tensor(struct imatrix *im, const struct gguf *g,
                               const struct gguf_tensor *t, const char *path,
                               struct err *err)
{
    const size_t n = strlen(t->name) - strlen(SUM_SUFFIX);
    const uint64_t n_slices = t->n_elems / t->ne[0];
    const struct gguf_tensor *counts;
    struct imatrix_entry *e = NULL;
    char name[MAX_NAME];
    enum status st;

    if (n > MAX_NAME - sizeof COUNT_SUFFIX)
        return damaged(path, "a name is too long", err);
    snprintf(name, sizeof name, "%.*s%s", (int)n, t->name, COUNT_SUFFIX);
    counts = gguf_tensor_find(g, name);
    if (t->fmt != KERN_FMT_f32 || !counts || counts->fmt != KERN_FMT_f32 ||
        counts->n_elems != n_slices)
        return damaged(path, "sums and counts do not match", err);
    name[n] = '\0';
    st = imatrix_entry(im, &e, name, t->ne[0], n_slices, err);
    for (uint64_t s = 0; s < n_slices && !st; s++) {
        e->counts[s] = (double)float_at(g, counts, s);
        if (!(e->counts[s] >= 0 && isfinite(e->counts[s])))
            st = damaged(path, "a count is no number", err);
    }
    for (uint64_t i = 0; i < t->n_elems && !st; i++) {
        e->sum2[i] = (double)float_at(g, t, i);
        if (!(e->sum2[i] >= 0 && isfinite(e->sum2[i])))
            st = damaged(path, "a sum of squares is negative or no number", err);
    }
    return st;
}

static enum status read_metadata(struct imatrix *im, const struct gguf *g,
                                 struct err *err)
{
    const struct gguf_kv *datasets = gguf_kv_find(g, "imatrix.datasets");
    uint64_t n = 0;
    enum status st = ST_OK;

    if (gguf_get_u64(g, "imatrix.chunk_count", &n))
        im->n_chunks = (uint32_t)n;
    if (gguf_get_u64(g, "imatrix.chunk_size", &n))
        im->chunk_size = (uint32_t)n;
    for (uint64_t i = 0; datasets && i < datasets->n && !st; i++) {
        struct gguf_str s;
        char name[MAX_NAME];

        if (!gguf_elem_str(g, datasets, i, &s))
            continue;
        snprintf(name, sizeof name, "%.*s", (int)(s.len < 1000 ? s.len : 1000), s.data);
        st = imatrix_add_dataset(im, name, err);
    }
    return st;
}

static enum status read_gguf(struct imatrix *im, const char *path, struct err *err)
{
    struct gguf *g;
    struct gguf_str type = {.len = 0};
    enum status st = gguf_open(&g, path, err);

    if (st)
        return st;
    gguf_get_str(g, "general.type", &type);
    if (type.len != 7 || memcmp(type.data, "imatrix", 7))
        st = err_set(
            err, ST_INPUT,
            "%s is a GGUF file, but no importance matrix (`bench imatrix` makes one)",
            path);
    for (size_t i = 0; i < gguf_n_tensors(g) && !st; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const size_t n = strlen(t->name), end = strlen(SUM_SUFFIX);

        if (n > end && !strcmp(t->name + n - end, SUM_SUFFIX))
            st = read_tensor(im, g, t, path, err);
    }
    if (!st)
        st = read_metadata(im, g, err);
    gguf_close(g);
    return st;
}

/* ---- the older form -------------------------------------------------------------- */

/* A whole number lo..hi. */
static bool read_int(FILE *f, int32_t lo, int32_t hi, int32_t *out)
{
    return fread(out, sizeof *out, 1, f) == 1 && *out >= lo && *out <= hi;
}

/* The number of slices is unknown; n_slices 1 stands for all. */
static enum status read_old_entry(struct imatrix *im, FILE *f, const char *path,
                                  int32_t max_values, struct err *err)
{
    int32_t len, n_calls, n_values;
    struct imatrix_entry *e;
    char name[MAX_NAME];
    enum status st;

    if (!read_int(f, 1, MAX_NAME - 1, &len) ||
        fread(name, 1, (size_t)len, f) != (size_t)len ||
        !read_int(f, 0, INT32_MAX, &n_calls) || !read_int(f, 1, max_values, &n_values))
        return damaged(path, "an entry is cut short, or larger than the file", err);
    name[len] = '\0';
    if (strlen(name) != (size_t)len)
        return damaged(path, "a name has a zero in it", err);
    if (imatrix_find(im, name))
        return damaged(path, "two entries have one name", err);
    st = imatrix_entry(im, &e, name, (uint64_t)n_values, 1, err);
    if (st)
        return st;
    e->counts[0] = n_calls;
    for (int32_t i = 0; i < n_values; i++) {
        float v;

        if (fread(&v, sizeof v, 1, f) != 1 || !(v >= 0 && isfinite(v)))
            return damaged(path, "a value is missing, negative or no number", err);
        e->sum2[i] = (double)v;
    }
    return ST_OK;
}

static enum status read_old(struct imatrix *im, FILE *f, const char *path,
                            struct err *err)
{
    struct stat file;
    int32_t n_entries;
    enum status st = ST_OK;

    if (fstat(fileno(f), &file))
        return err_set_errno(err, ST_IO, "cannot read %s", path);
    const off_t values = file.st_size / (off_t)sizeof(float);

    if (!read_int(f, 1, 1 << 20, &n_entries))
        return damaged(path, "it is neither GGUF nor the older binary form", err);
    for (int32_t i = 0; i < n_entries && !st; i++)
        st = read_old_entry(im, f, path,
                            values < INT32_MAX ? (int32_t)values : INT32_MAX, err);
    return st;
}

enum status imatrix_read(struct imatrix **out, const char *path, struct err *err)
{
    struct imatrix *im = NULL;
    FILE *f = NULL;
    uint64_t bytes;
    char magic[4] = "";
    enum status st = infile_open(&f, &bytes, path, MAX_BYTES, err);

    if (st)
        return st;
    st = imatrix_new(&im, 0, err);
    if (!st && fread(magic, 1, 4, f) == 4 && !memcmp(magic, "GGUF", 4)) {
        st = read_gguf(im, path, err);
    } else if (!st) {
        rewind(f);
        st = read_old(im, f, path, err);
    }
    fclose(f);
    if (!st && !im->n_entries)
        st = damaged(path, "it has no entries", err);
    if (st)
        imatrix_free(im);
    else
        *out = im;
    return st;
}

/* ---- GGUF, writing --------------------------------------------------------------- */

static void put_floats(struct gguf_bytes *b, const double *v, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        gguf_put_f32(b, (float)v[i]);
    gguf_put_padding(b);
}

static void put_descriptions(struct gguf_bytes *b, const struct imatrix *im)
{
    const uint32_t f32 = kern_format_info(KERN_FMT_f32)->ggml_id;
    uint64_t offset = 0;

    for (size_t i = 0; i < im->n_entries; i++) {
        const struct imatrix_entry *e = im->entries[i];
        const uint64_t sums[2] = {e->n_cols, e->n_slices}, counts[2] = {1, e->n_slices};
        char name[MAX_NAME + sizeof SUM_SUFFIX];

        snprintf(name, sizeof name, "%s%s", e->name, SUM_SUFFIX);
        gguf_put_tensor(b, name, 2, sums, f32, offset);
        offset = gguf_put_aligned(offset + e->n_cols * e->n_slices * sizeof(float));
        snprintf(name, sizeof name, "%s%s", e->name, COUNT_SUFFIX);
        gguf_put_tensor(b, name, 2, counts, f32, offset);
        offset = gguf_put_aligned(offset + e->n_slices * sizeof(float));
    }
}

enum status imatrix_write(const struct imatrix *im, const char *path, struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    struct gguf_bytes b = {.n = 0};
    struct outfile *f = NULL;
    enum status st = ST_OK;

    gguf_kv_str(&kvs, "general.type", "imatrix");
    gguf_kv_array(&kvs, "imatrix.datasets", GGUF_STRING, im->n_datasets);
    for (size_t i = 0; i < im->n_datasets; i++)
        gguf_put_str(&kvs.bytes, im->datasets[i]);
    gguf_kv_u32(&kvs, "imatrix.chunk_count", im->n_chunks);
    gguf_kv_u32(&kvs, "imatrix.chunk_size", im->chunk_size);
    gguf_put_head(&b, 2 * im->n_entries, &kvs);
    put_descriptions(&b, im);
    gguf_put_padding(&b);
    for (size_t i = 0; i < im->n_entries; i++) {
        const struct imatrix_entry *e = im->entries[i];

        put_floats(&b, e->sum2, e->n_cols * e->n_slices);
        put_floats(&b, e->counts, e->n_slices);
    }
    free(kvs.bytes.data);
    if (b.failed)
        st = err_set(err, ST_NO_MEMORY, "no memory for the importance matrix");
    if (!st)
        st = outfile_open(&f, path, b.n, false, "choose another directory", err);
    if (!st)
        st = outfile_write(f, b.data, b.n, 0, err);
    free(b.data);
    if (!st)
        return outfile_commit(f, b.n, err);
    outfile_abort(f);
    return st;
}
