/* SPDX-License-Identifier: MIT
 *
 * hf_tensors.c - the tensors of a folder as those of a GGUF file
 *
 * Each tensor of the result is one or several of the folder: parts, of which a row
 * number selects one and a row in it. Parts stay on disk; rows are read when they
 * are asked for.
 */
#include "engine/hf_impl.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/quantmix.h"
#include "engine/strtab.h"
#include "engine/utf8.h"

#define NAME_BYTES 72

struct entry {
    char name[NAME_BYTES];
    enum hf_how how;
    const struct safetensor **parts; /* [n_parts], into hf_tensors.parts */
    size_t n_parts;
    const float *made; /* values from config.json instead of parts */
    int n_dims;
    uint64_t ne[4], part_rows; /* rows of one part */
    uint64_t n_heads;          /* HF_ROPE_*: that share the rows */
    enum kern_format fmt;
    atomic_uint_least64_t n_read; /* rows, however often each */
};

struct hf_tensors {
    struct safetensors *s;
    const struct safetensor **parts;
    struct entry *entries;
    size_t n;
    struct strtab index;
    float *made[HF_MAX_VECTORS];
    kern_dequantize_fn *to_floats[KERN_N_FMT];
};

/* ---- from names to entries ---------------------------------------------------------
 */

struct item {
    char name[NAME_BYTES];
    unsigned part;
    enum hf_how how;
    const struct safetensor *t;
};

static int by_name_and_part(const void *a, const void *b)
{
    const struct item *s = a, *t = b;
    const int order = strcmp(s->name, t->name);

    return order ? order : (s->part > t->part) - (s->part < t->part);
}

/* In the order of the folder's data, so that the disk is read from front to back. */
static int by_place(const void *a, const void *b)
{
    const struct entry *s = a, *t = b;

    return s->parts[0] < t->parts[0] ? -1 : s->parts[0] > t->parts[0];
}

/* What a message calls the tensor `name` of the folder. */
static const char *show(char *buf, size_t cap, const char *name)
{
    return utf8_printable(buf, cap, name, strlen(name));
}

/* The tensors that are used, sorted; *n of them. */
static enum status list_items(struct item **out, size_t *n, const struct hf_config *c,
                              const struct safetensors *s, const char *dir,
                              struct err *err)
{
    const size_t count = safetensors_count(s);
    struct item *items = calloc(count + 1, sizeof *items);
    char shown[80];

    *n = 0;
    if (!items)
        return err_set(err, ST_NO_MEMORY, "no memory for the %zu tensors of %s", count,
                       dir);
    for (size_t i = 0; i < count; i++) {
        const struct safetensor *t = safetensors_at(s, i);
        struct item *item = &items[*n];
        const struct hf_name *name = hf_name_find(c->arch->names, t->name, item->name,
                                                  sizeof item->name, &item->part);

        if (!name) {
            free(items);
            return err_set(
                err, ST_UNSUPPORTED,
                "%s: the tensor '%s' is no part of a %s model as known here, "
                "and without it the model would be another one",
                dir, show(shown, sizeof shown, t->name), c->arch->model_type);
        }
        item->how = name->how;
        item->t = t;
        /* A copy of the embedding, which some writers keep. */
        if (name->how != HF_SKIP && !(c->tied && !strcmp(item->name, "output.weight")))
            ++*n;
    }
    qsort(items, *n, sizeof *items, by_name_and_part);
    *out = items;
    return ST_OK;
}

/* Parts of one name, numbered 0, 1, ... and alike. */
static enum status check_parts(const struct item *items, size_t n, const char *dir,
                               struct err *err)
{
    char a[80], b[80];

    for (size_t i = 1; i < n; i++) {
        const struct safetensor *s = items[0].t, *t = items[i].t;

        show(a, sizeof a, items[i - 1].t->name);
        show(b, sizeof b, t->name);
        if (items[i].part == items[i - 1].part)
            return err_set(err, ST_INPUT, "%s: '%s' and '%s' are the same tensor twice",
                           dir, a, b);
        if (s->fmt != t->fmt || s->n_dims != t->n_dims ||
            memcmp(s->shape, t->shape, sizeof s->shape))
            return err_set(err, ST_INPUT,
                           "%s: '%s' has another type or shape than those beside it",
                           dir, b);
    }
    if (items[n - 1].part != n - 1)
        return err_set(err, ST_INPUT,
                       "%s: '%s' is number %u of a list of %zu; one is missing", dir,
                       show(a, sizeof a, items[n - 1].t->name), items[n - 1].part, n);
    return ST_OK;
}

/* ---- shapes -------------------------------------------------------------------------
 */

static enum status set_shape(struct entry *e, const char *dir, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const bool flat = e->how == HF_FLAT && t->n_dims == 2 && t->shape[0] == 1;
    const int n_dims = flat ? 1 : t->n_dims;
    char shown[80];

    show(shown, sizeof shown, t->name);
    if (t->fmt == KERN_N_FMT)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: the tensor '%s' has the type %s; F32, F16 and BF16 can be "
                       "read",
                       dir, shown, t->dtype);
    if (n_dims < 1 || n_dims > 2 || t->n_elems == 0)
        return err_set(err, ST_INPUT,
                       "%s: the tensor '%s' is neither a vector nor a matrix", dir,
                       shown);
    e->ne[0] = t->shape[t->n_dims - 1];
    e->ne[1] = n_dims == 2 ? t->shape[0] : 1;
    e->ne[2] = e->ne[3] = 1;
    e->part_rows = e->ne[1];
    e->n_dims = n_dims;
    if (e->how == HF_STACK) {
        e->ne[n_dims] = e->n_parts;
        e->n_dims++;
    }
    /* As in GGUF files: what is added or scaled with, and what chooses experts. */
    e->fmt = n_dims == 1 || strstr(e->name, ".ffn_gate_inp.") ? KERN_FMT_f32 : t->fmt;
    return ST_OK;
}

static enum status set_heads(struct entry *e, const struct hf_config *c,
                             const char *dir, struct err *err)
{
    const uint64_t rows = e->n_dims == 1 ? e->ne[0] : e->ne[1];

    if (e->how != HF_ROPE_Q && e->how != HF_ROPE_K)
        return ST_OK;
    e->n_heads = (uint64_t)(e->how == HF_ROPE_Q ? c->n_heads : c->n_kv_heads);
    if (rows % (2 * e->n_heads))
        return err_set(err, ST_INPUT,
                       "%s: %s has %llu rows, which %llu heads cannot share in pairs",
                       dir, e->name, (unsigned long long)rows,
                       (unsigned long long)e->n_heads);
    if (c->n_rot != c->head_dim)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: %s models with partly rotated heads are not supported", dir,
                       c->arch->model_type);
    return ST_OK;
}

/* ---- making them -------------------------------------------------------------------
 */

static enum status make_entries(struct hf_tensors *h, const struct hf_config *c,
                                const struct item *items, size_t n, const char *dir,
                                struct err *err)
{
    for (size_t i = 0, end; i < n; i = end) {
        struct entry *e = &h->entries[h->n++];
        enum status st;

        for (end = i + 1; end < n && !strcmp(items[end].name, items[i].name);)
            end++;
        st = check_parts(items + i, end - i, dir, err);
        if (st)
            return st;
        for (size_t k = i; k < end; k++)
            h->parts[k] = items[k].t;
        memcpy(e->name, items[i].name, sizeof e->name);
        e->how = items[i].how;
        e->parts = h->parts + i;
        e->n_parts = end - i;
        if ((st = set_shape(e, dir, err)) || (st = set_heads(e, c, dir, err)))
            return st;
    }
    if (h->n)
        qsort(h->entries, h->n, sizeof *h->entries, by_place);
    return ST_OK;
}

/* What config.json holds goes to the end. */
static enum status add_vectors(struct hf_tensors *h, const struct hf_config *c,
                               struct err *err)
{
    for (int i = 0; i < HF_MAX_VECTORS; i++) {
        const struct hf_vector *v = &c->vectors[i];

        if (!v->v)
            continue;
        h->made[i] = malloc(v->n * sizeof *v->v + 1);
        if (!h->made[i])
            return err_set(err, ST_NO_MEMORY, "no memory for %s", v->name);
        memcpy(h->made[i], v->v, v->n * sizeof *v->v);
        struct entry *e = &h->entries[h->n++];

        snprintf(e->name, sizeof e->name, "%s", v->name);
        e->made = h->made[i];
        e->n_dims = 1;
        e->ne[0] = v->n;
        e->ne[1] = e->ne[2] = e->ne[3] = e->part_rows = 1;
        e->fmt = KERN_FMT_f32;
    }
    return ST_OK;
}

static enum status make_index(struct hf_tensors *h, const struct hf_config *c,
                              const char *dir, struct err *err)
{
    const enum status st = strtab_init(&h->index, h->n, err);
    bool untied = false;

    for (size_t i = 0; i < h->n && !st; i++)
        strtab_put(&h->index, h->entries[i].name, (uint32_t)strlen(h->entries[i].name),
                   (uint32_t)i);
    if (st)
        return st;
    untied = json_is_false(json_member(c->o, "tie_word_embeddings"));
    if (untied && strtab_find(&h->index, "output.weight", 13) == STRTAB_NONE)
        return err_set(
            err, ST_INPUT,
            "%s: config.json says that the output has weights of its own, and "
            "there are none",
            dir);
    return ST_OK;
}

enum status hf_tensors_make(struct hf_tensors **out, const struct hf_config *c,
                            struct safetensors *s, const char *dir, struct err *err)
{
    struct hf_tensors *h = calloc(1, sizeof *h);
    struct item *items = NULL;
    size_t n = 0;
    enum status st;

    if (!h) {
        safetensors_close(s);
        return err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", dir);
    }
    h->s = s;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        h->to_floats[fmt] =
            kern_best(KERN_OP_dequantize, fmt, isa_usable())->fn.dequantize;
    st = list_items(&items, &n, c, s, dir, err);
    if (!st) {
        h->parts = calloc(n + 1, sizeof *h->parts);
        h->entries = calloc(n + HF_MAX_VECTORS, sizeof *h->entries);
        if (!h->parts || !h->entries)
            st = err_set(err, ST_NO_MEMORY, "no memory for the tensors of %s", dir);
    }
    if (!st)
        st = make_entries(h, c, items, n, dir, err);
    if (!st)
        st = add_vectors(h, c, err);
    if (!st)
        st = make_index(h, c, dir, err);
    free(items);
    if (st)
        hf_tensors_free(h);
    else
        *out = h;
    return st;
}

void hf_tensors_free(void *arg)
{
    struct hf_tensors *h = arg;

    if (!h)
        return;
    safetensors_close(h->s);
    strtab_free(&h->index);
    for (int i = 0; i < HF_MAX_VECTORS; i++)
        free(h->made[i]);
    free(h->parts);
    free(h->entries);
    free(h);
}

size_t hf_tensors_count(const struct hf_tensors *h)
{
    return h->n;
}

uint32_t hf_tensors_file_type(const struct hf_tensors *h)
{
    uint64_t n[KERN_N_FMT] = {0};

    for (size_t i = 0; i < h->n; i++)
        n[h->entries[i].fmt] += h->entries[i].ne[0] * h->entries[i].ne[1];
    if (n[KERN_FMT_bf16] > n[KERN_FMT_f16] && n[KERN_FMT_bf16] > n[KERN_FMT_f32])
        return quantmix_file_type(QUANTMIX_BF16);
    return quantmix_file_type(n[KERN_FMT_f16] > n[KERN_FMT_f32] ? QUANTMIX_F16
                                                                : QUANTMIX_F32);
}

int64_t hf_tensors_n_vocab(const struct hf_tensors *h)
{
    const uint32_t i = strtab_find(&h->index, "token_embd.weight", 17);

    return i == STRTAB_NONE || h->entries[i].ne[1] > INT32_MAX
               ? 0
               : (int64_t)h->entries[i].ne[1];
}

void hf_tensors_put(const struct hf_tensors *h, struct gguf_bytes *head)
{
    uint64_t offset = 0;

    for (size_t i = 0; i < h->n; i++) {
        const struct entry *e = &h->entries[i];

        gguf_put_tensor(head, e->name, e->n_dims, e->ne,
                        kern_format_info(e->fmt)->ggml_id, offset);
        offset = gguf_put_aligned(
            offset + e->ne[1] * e->ne[2] * kern_format_bytes(e->fmt, (size_t)e->ne[0]));
    }
}

/* ---- rows ---------------------------------------------------------------------------
 */

/* Row r of a head-sharing matrix, in the folder: pairs of neighbours there are pairs of
 * a first and a second half. */
static uint64_t unpaired(const struct entry *e, uint64_t rows, uint64_t r)
{
    const uint64_t head = rows / e->n_heads, in_head = r % head;

    return r - in_head + in_head % 2 * (head / 2) + in_head / 2;
}

/* A vector, which GGUF files keep as floats. */
static enum status read_vector(const struct hf_tensors *h, const struct entry *e,
                               float *dst, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const size_t n = (size_t)e->ne[0];
    void *raw = malloc((size_t)t->bytes);
    float *v = malloc(n * sizeof *v);
    enum status st = raw && v ? safetensors_read(h->s, t, 0, (size_t)t->bytes, raw, err)
                              : err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);

    if (!st) {
        h->to_floats[t->fmt](raw, v, n);
        for (size_t i = 0; i < n; i++)
            dst[i] = v[e->n_heads ? unpaired(e, n, i) : i] +
                     (e->how == HF_PLUS_1 ? 1.0F : 0.0F);
    }
    free(v);
    free(raw);
    return st;
}

/* Rows of one part, in the folder's type, to dst. */
static enum status read_part(const struct hf_tensors *h, const struct entry *e,
                             const struct safetensor *t, uint64_t row, uint64_t n_rows,
                             bool drop, char *dst, struct err *err)
{
    const size_t row_bytes = kern_format_bytes(t->fmt, (size_t)e->ne[0]);
    enum status st = ST_OK;

    if (!e->n_heads) {
        st = safetensors_read(h->s, t, row * row_bytes, (size_t)n_rows * row_bytes, dst,
                              err);
        if (!st && drop)
            safetensors_drop(h->s, t, row * row_bytes, n_rows * row_bytes);
        return st;
    }
    /* Half a head apart: dropped when the whole has been read. */
    for (uint64_t i = 0; i < n_rows && !st; i++)
        st = safetensors_read(h->s, t, unpaired(e, e->part_rows, row + i) * row_bytes,
                              row_bytes, dst + i * row_bytes, err);
    return st;
}

/* The same in the type of the entry. */
static enum status read_typed(const struct hf_tensors *h, const struct entry *e,
                              const struct safetensor *t, uint64_t row, uint64_t n_rows,
                              bool drop, void *dst, struct err *err)
{
    const size_t n = (size_t)(n_rows * e->ne[0]);

    if (e->fmt == t->fmt)
        return read_part(h, e, t, row, n_rows, drop, dst, err);
    char *raw = malloc(kern_format_bytes(t->fmt, n));

    if (!raw)
        return err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);
    assert(e->fmt == KERN_FMT_f32);
    const enum status st = read_part(h, e, t, row, n_rows, drop, raw, err);

    if (!st)
        h->to_floats[t->fmt](raw, dst, n);
    free(raw);
    return st;
}

enum status hf_tensors_read(void *arg, const struct gguf_tensor *what, uint64_t row,
                            uint64_t n_rows, bool drop, void *dst, struct err *err)
{
    struct hf_tensors *h = arg;
    struct entry *e =
        &h->entries[strtab_find(&h->index, what->name, strlen(what->name))];
    const size_t row_bytes = kern_format_bytes(e->fmt, (size_t)e->ne[0]);
    const uint64_t all = e->ne[1] * e->ne[2];
    enum status st = ST_OK;

    if (e->made) {
        memcpy(dst, e->made, row_bytes);
        return ST_OK;
    }
    if (e->n_dims == 1)
        return read_vector(h, e, dst, err);
    for (uint64_t done = 0; done < n_rows && !st;) {
        const uint64_t at = (row + done) % e->part_rows, left = n_rows - done;
        const uint64_t n = left < e->part_rows - at ? left : e->part_rows - at;

        st = read_typed(h, e, e->parts[(row + done) / e->part_rows], at, n, drop,
                        (char *)dst + done * row_bytes, err);
        done += n;
    }
    /* Pages that straddle two pieces are still there. */
    if (!st && drop && atomic_fetch_add(&e->n_read, n_rows) + n_rows >= all)
        for (size_t i = 0; i < e->n_parts; i++)
            safetensors_drop(h->s, e->parts[i], 0, e->parts[i]->bytes);
    return st;
}
