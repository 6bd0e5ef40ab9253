/* SPDX-License-Identifier: MIT
 *
 * safetensors_head.c - from an untrusted header to tensors inside the file
 */
#include "engine/hf/safetensors_impl.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/jsonfile.h"
#include "engine/base/utf8.h"

#define MAX_HEAD    100000000u /* the format's own limit */
#define MAX_TENSORS 100000u    /* of one file; about ten values each */

static const struct json_limit max_head = {MAX_HEAD, (size_t)1 << 20};

static const struct dtype {
    const char *name;
    unsigned bytes;
    enum kern_format fmt;
} dtypes[] = {
    {"F32", 4, KERN_FMT_f32}, {"F16", 2, KERN_FMT_f16},   {"BF16", 2, KERN_FMT_bf16},
    {"F64", 8, KERN_N_FMT},   {"F8_E4M3", 1, KERN_N_FMT}, {"F8_E5M2", 1, KERN_N_FMT},
    {"I8", 1, KERN_N_FMT},    {"U8", 1, KERN_N_FMT},      {"I16", 2, KERN_N_FMT},
    {"U16", 2, KERN_N_FMT},   {"I32", 4, KERN_N_FMT},     {"U32", 4, KERN_N_FMT},
    {"I64", 8, KERN_N_FMT},   {"U64", 8, KERN_N_FMT},     {"BOOL", 1, KERN_N_FMT},
};
#define N_DTYPES (sizeof dtypes / sizeof dtypes[0])

/* A name as messages show it. */
struct shown {
    char text[72];
};

static struct shown show(const char *name)
{
    struct shown out;

    utf8_printable(out.text, sizeof out.text, name, strlen(name));
    return out;
}

/* A tensor being read: its file, and its name in messages. */
struct reading {
    const struct shard *f;
    struct shown name;
    struct err *err;
};

enum status safetensors_too_short(const struct shard *f, struct err *err)
{
    return err_set(err, ST_INPUT,
                   "%s has %" PRIu64
                   " bytes, too few for a safetensors file; the download is not whole",
                   f->path, f->bytes);
}

enum status safetensors_head_length(uint64_t *n, const struct shard *f,
                                    const uint8_t *bytes, struct err *err)
{
    uint64_t length = 0;

    for (int i = 7; i >= 0; i--)
        length = length << 8 | bytes[i];
    if (!memcmp(bytes, "version ", 8))
        return err_set(
            err, ST_INPUT,
            "%s is a Git LFS pointer; fetch the file itself with `git lfs pull`",
            f->path);
    if (length < 2 || length > MAX_HEAD || length > f->bytes - 8)
        return err_set(
            err, ST_INPUT,
            "%s promises a header of %" PRIu64 " bytes, and the file has %" PRIu64
            " (at most %u are allowed); it is no safetensors file, or not whole",
            f->path, length, f->bytes, MAX_HEAD);
    *n = length;
    return ST_OK;
}

/* A whole number >= 0; jansson's integers are signed 64 bits wide. */
static bool whole(const json_t *v, uint64_t *out)
{
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static enum status read_dtype(struct reading *r, const json_t *entry,
                              struct safetensor *t, unsigned *elem_bytes)
{
    const char *name = json_text(json_member(entry, "dtype"));
    char shown[24];

    for (size_t i = 0; name && i < N_DTYPES; i++) {
        if (!strcmp(name, dtypes[i].name)) {
            t->dtype = dtypes[i].name;
            t->fmt = dtypes[i].fmt;
            *elem_bytes = dtypes[i].bytes;
            return ST_OK;
        }
    }
    return err_set(r->err, ST_INPUT, "%s: the tensor '%s' has the unknown type '%s'",
                   r->f->path, r->name.text,
                   name ? utf8_printable(shown, sizeof shown, name, strlen(name))
                        : "(none)");
}

static enum status read_shape(struct reading *r, const json_t *entry,
                              struct safetensor *t)
{
    const json_t *shape = json_member(entry, "shape");
    const size_t n = json_array_size(shape);

    if (!json_is_array(shape) || n > SAFETENSORS_MAX_DIMS)
        return err_set(r->err, ST_INPUT,
                       "%s: the tensor '%s' has no shape of at most %d dimensions",
                       r->f->path, r->name.text, SAFETENSORS_MAX_DIMS);
    t->n_dims = (int)n;
    t->n_elems = 1;
    for (size_t i = 0; i < n; i++) {
        if (!whole(json_array_get(shape, i), &t->shape[i]))
            return err_set(r->err, ST_INPUT,
                           "%s: dimension %zu of the tensor '%s' is not a count",
                           r->f->path, i, r->name.text);
        if (__builtin_mul_overflow(t->n_elems, t->shape[i], &t->n_elems) ||
            t->n_elems > INT64_MAX)
            return err_set(r->err, ST_INPUT,
                           "%s: the tensor '%s' has more elements than 63 bits count",
                           r->f->path, r->name.text);
    }
    return ST_OK;
}

/* data: offset of the data in the file. */
static enum status read_place(struct reading *r, const json_t *entry, uint64_t data,
                              unsigned elem_bytes, struct safetensor *t)
{
    const json_t *offsets = json_member(entry, "data_offsets");
    uint64_t begin, end, want;

    if (json_array_size(offsets) != 2 || !whole(json_array_get(offsets, 0), &begin) ||
        !whole(json_array_get(offsets, 1), &end) || begin > end)
        return err_set(r->err, ST_INPUT,
                       "%s: the tensor '%s' has no data_offsets [begin, end]",
                       r->f->path, r->name.text);
    if (end > r->f->bytes - data)
        return err_set(r->err, ST_INPUT,
                       "%s: the tensor '%s' ends at byte %" PRIu64
                       " of the data, which has %" PRIu64 "; the file is not whole",
                       r->f->path, r->name.text, end, r->f->bytes - data);
    if (__builtin_mul_overflow(t->n_elems, (uint64_t)elem_bytes, &want) ||
        want != end - begin)
        return err_set(r->err, ST_INPUT,
                       "%s: the tensor '%s' has %" PRIu64
                       " bytes, and its shape asks for %" PRIu64 " elements of %s",
                       r->f->path, r->name.text, end - begin, t->n_elems, t->dtype);
    t->offset = data + begin;
    t->bytes = want;
    return ST_OK;
}

static enum status add_tensor(struct safetensors *s, const struct safetensor *t,
                              const char *name, struct err *err)
{
    if (s->n_tensors == s->cap) {
        const size_t cap = s->cap ? 2 * s->cap : 256;
        struct safetensor *more = realloc(s->tensors, cap * sizeof *more);

        if (!more)
            return err_set(err, ST_NO_MEMORY, "no memory for %zu tensors", cap);
        s->tensors = more;
        s->cap = cap;
    }
    s->tensors[s->n_tensors] = *t;
    s->tensors[s->n_tensors].name = strdup(name);
    if (!s->tensors[s->n_tensors].name)
        return err_set(err, ST_NO_MEMORY, "no memory for the name of a tensor");
    s->n_tensors++;
    return ST_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct safetensor *s = a, *t = b;

    if (s->offset != t->offset)
        return s->offset < t->offset ? -1 : 1;
    return s->bytes < t->bytes ? -1 : s->bytes > t->bytes;
}

/* Sort the tensors of one file by offset, and refuse overlaps. */
static enum status check_overlap(struct safetensors *s, size_t first,
                                 const struct shard *f, struct err *err)
{
    const size_t n = s->n_tensors - first;
    struct safetensor *t = n ? s->tensors + first : NULL;

    if (n)
        qsort(t, n, sizeof *t, by_offset);
    for (size_t i = 1; i < n; i++) {
        if (t[i - 1].offset + t[i - 1].bytes > t[i].offset)
            return err_set(err, ST_INPUT, "%s: the tensors '%s' and '%s' overlap",
                           f->path, show(t[i - 1].name).text, show(t[i].name).text);
    }
    return ST_OK;
}

static enum status read_tensor(struct safetensors *s, uint32_t file, uint64_t data,
                               const char *name, const json_t *entry, struct err *err)
{
    struct reading r = {.f = &s->shards[file], .err = err};
    struct safetensor t = {.file = file};
    unsigned elem_bytes = 0;
    enum status st;

    r.name = show(name);
    if (!json_is_object(entry))
        return err_set(err, ST_INPUT, "%s: the entry of the tensor '%s' is no object",
                       r.f->path, r.name.text);
    if ((st = read_dtype(&r, entry, &t, &elem_bytes)) ||
        (st = read_shape(&r, entry, &t)) ||
        (st = read_place(&r, entry, data, elem_bytes, &t)))
        return st;
    return add_tensor(s, &t, name, err);
}

enum status safetensors_head_parse(struct safetensors *s, uint32_t file,
                                   const char *text, size_t len, struct err *err)
{
    const struct shard *f = &s->shards[file];
    struct jsonfile head = {.root = NULL};
    const size_t first = s->n_tensors;
    const char *name;
    json_t *entry;
    enum status st;

    /* Blanks after the object are allowed, as padding. */
    st = jsonfile_parse(&head, f->path, text, len, max_head, JSON_UNIQUE, err);
    if (st)
        return st;
    if (json_object_size(head.root) > MAX_TENSORS)
        st = err_set(err, ST_INPUT, "%s lists more than %u tensors", f->path,
                     MAX_TENSORS);
    json_object_foreach(head.root, name, entry)
    {
        if (st)
            break;
        if (strcmp(name, "__metadata__"))
            st = read_tensor(s, file, 8 + len, name, entry, err);
    }
    jsonfile_free(&head);
    return st ? st : check_overlap(s, first, f, err);
}

enum status safetensors_index(struct safetensors *s, struct err *err)
{
    const enum status st = strtab_init(&s->index, s->n_tensors, err);

    for (size_t i = 0; i < s->n_tensors && !st; i++) {
        const char *name = s->tensors[i].name;
        const uint32_t other =
            strtab_put(&s->index, name, (uint32_t)strlen(name), (uint32_t)i);

        if (other != STRTAB_NONE)
            return err_set(err, ST_INPUT, "the tensor '%s' is in %s and again in %s",
                           show(name).text, s->shards[s->tensors[other].file].path,
                           s->shards[s->tensors[i].file].path);
    }
    return st;
}

enum status safetensors_parse(struct safetensors **out, const void *image, size_t bytes,
                              const char *name, struct err *err)
{
    struct safetensors *s = calloc(1, sizeof *s);
    uint64_t n = 0;
    enum status st = ST_OK;

    if (s)
        s->shards = calloc(1, sizeof *s->shards);
    if (s && s->shards) {
        s->shards[0] = (struct shard){.path = strdup(name), .fd = -1, .bytes = bytes};
        s->n_shards = 1;
    }
    if (!s || !s->shards || !s->shards[0].path)
        st = err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", name);
    else if (bytes < 8)
        st = safetensors_too_short(&s->shards[0], err);
    if (!st)
        st = safetensors_head_length(&n, &s->shards[0], image, err);
    if (!st)
        st = safetensors_head_parse(s, 0, (const char *)image + 8, (size_t)n, err);
    if (!st)
        st = safetensors_index(s, err);
    if (st)
        safetensors_close(s);
    else
        *out = s;
    return st;
}
