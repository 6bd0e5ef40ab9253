/* SPDX-License-Identifier: MIT
 *
 * hf_rows.c - read rows of the gguf's tensors from those of a folder
 */
#include "engine/hf/hf_tensors_impl.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- order of rows --------------------------------------------------------------- */

/* Neighbouring pairs of the gguf are in the folder row i and row i + n/2 of a head. */
static uint64_t unpaired(const struct hf_entry *e, uint64_t rows, uint64_t r)
{
    const uint64_t head = rows / e->n_heads, in_head = r % head;

    return r - in_head + in_head % 2 * (head / 2) + in_head / 2;
}

/* Heads of values that share a head of keys are adjacent in the folder; in GGUF files
 * head h has the keys of h % n_groups. */
static uint64_t grouped(const struct hf_entry *e, uint64_t rows, uint64_t r)
{
    const uint64_t head = (rows - e->fixed) / e->n_heads;
    const uint64_t h = r < e->fixed ? 0 : (r - e->fixed) / head;

    if (r < e->fixed)
        return r;
    return e->fixed + (r - e->fixed) % head +
           (h % e->n_groups * (e->n_heads / e->n_groups) + h / e->n_groups) * head;
}

/* Halves of the rows of each slice. */
static uint64_t halved(const struct hf_entry *e, uint64_t r)
{
    const uint64_t n = e->ne[1];

    return (2 * (r / n) + (e->how == HF_SECOND_HALF)) * n + r % n;
}

/* Row r of a part, in the folder. */
static uint64_t row_in_folder(const struct hf_entry *e, uint64_t rows, uint64_t r)
{
    switch (e->how) {
    case HF_ROPE_Q:
    case HF_ROPE_K:
        return unpaired(e, rows, r);
    case HF_VALUES:
    case HF_DECAY:
        return grouped(e, rows, r);
    case HF_FIRST_HALF:
    case HF_SECOND_HALF:
        return halved(e, r);
    case HF_LATENT_VALUES: /* behind the rows of the head's key */
        return r + (r / e->ne[1] + 1) * e->fixed;
    case HF_GROUP_Q:
    case HF_GROUP_K:
        return hf_field_row(&e->fields, unpaired(e, rows, r));
    default:
        return e->fields.n ? hf_field_row(&e->fields, r) : r;
    }
}

/* ---- reading --------------------------------------------------------------------- */

/* Vectors and what else is F32 in GGUF files: n_rows rows of all, or a whole vector. */
static enum status read_flat(const struct hf_tensors *h, const struct hf_entry *e,
                             uint64_t row, uint64_t n_rows, float *dst, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const bool decays =
        e->how == HF_DECAY || e->how == HF_COLUMN_DECAY || e->how == HF_LOG_DECAY;
    const uint64_t all = e->ne[0] * e->ne[1], first = row * e->ne[0];
    void *raw = malloc((size_t)t->bytes);
    float *v = malloc((size_t)t->n_elems * sizeof *v);
    enum status st = raw && v ? safetensors_read(h->s, t, 0, (size_t)t->bytes, raw, err)
                              : err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);

    if (!st) {
        h->to_floats[t->fmt](raw, v, (size_t)t->n_elems);
        for (uint64_t i = 0; i < n_rows * e->ne[0]; i++) {
            const float x = v[row_in_folder(e, all, first + i)];

            dst[i] = e->how == HF_PLUS_1 ? x + 1.0F : decays ? -expf(x) : x;
        }
    }
    free(v);
    free(raw);
    return st;
}

/* Reorder heads of columns in rows of the folder's type, in place. */
static enum status move_columns(const struct hf_entry *e, size_t row_bytes, char *rows,
                                uint64_t n_rows, struct err *err)
{
    const size_t head = row_bytes / (size_t)e->n_heads;
    char *row = malloc(row_bytes);

    if (!row)
        return err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);
    for (uint64_t i = 0; i < n_rows; i++, rows += row_bytes) {
        memcpy(row, rows, row_bytes);
        for (uint64_t h = 0; h < e->n_heads; h++)
            memcpy(rows + h * head, row + grouped(e, e->n_heads, h) * head, head);
    }
    free(row);
    return ST_OK;
}

/* Rows of one part, in the folder's type, to dst: each read takes adjacent rows. */
static enum status read_part(const struct hf_tensors *h, const struct hf_entry *e,
                             const struct safetensor *t, uint64_t row, uint64_t n_rows,
                             bool drop, char *dst, struct err *err)
{
    const size_t row_bytes = kern_format_bytes(t->fmt, (size_t)e->ne[0]);
    enum status st = ST_OK;

    if (hf_is_transposed(e))
        return hf_read_transposed(h, e, row, n_rows, dst, err);
    for (uint64_t done = 0, n; done < n_rows && !st; done += n) {
        const uint64_t from = row_in_folder(e, e->part_rows, row + done);

        for (n = 1; done + n < n_rows &&
                    row_in_folder(e, e->part_rows, row + done + n) == from + n;)
            n++;
        st = safetensors_read(h->s, t, from * row_bytes, (size_t)n * row_bytes,
                              dst + done * row_bytes, err);
        /* Rows that are not adjacent share pages: drop them when the whole is read. */
        if (!st && drop && n == n_rows)
            safetensors_drop(h->s, t, from * row_bytes, n * row_bytes);
    }
    if (!st && e->how == HF_VALUE_COLUMNS)
        st = move_columns(e, row_bytes, dst, n_rows, err);
    return st;
}

/* Rows of transposed keys: row k of a head has element k of each row of its key. */
static enum status read_transposed(const struct hf_tensors *h, const struct hf_entry *e,
                                   uint64_t row, uint64_t n_rows, char *dst,
                                   struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const size_t elem = kern_format_bytes(t->fmt, 1), n = (size_t)e->ne[0];
    const size_t rank = (size_t)e->ne[1], head_bytes = n * rank * elem;
    const uint64_t apart = t->shape[0] / e->n_heads; /* rows of a head */
    char *keys = malloc(head_bytes);
    enum status st =
        keys ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);

    for (uint64_t at = row; at < row + n_rows && !st; at++, dst += n * elem) {
        if (at == row || at % rank == 0)
            st = safetensors_read(h->s, t, at / rank * apart * rank * elem, head_bytes,
                                  keys, err);
        for (size_t i = 0; i < n && !st; i++)
            memcpy(dst + i * elem, keys + (i * rank + at % rank) * elem, elem);
    }
    free(keys);
    return st;
}

/* Factors of ranges of rows. */
static void scale(const struct hf_entry *e, uint64_t row, uint64_t n_rows, float *v)
{
    const struct hf_scaling *s = e->scaling;

    for (uint64_t r = row; r < row + n_rows; r++, v += e->ne[0]) {
        int range = 0;

        while (range + 1 < s->n && r >= s->end[range])
            range++;
        for (uint64_t i = 0; i < e->ne[0]; i++)
            v[i] *= s->by[range];
    }
}

/* The same in the type of the entry. */
static enum status read_typed(const struct hf_tensors *h, const struct hf_entry *e,
                              const struct safetensor *t, uint64_t row, uint64_t n_rows,
                              bool drop, void *dst, struct err *err)
{
    const size_t n = (size_t)(n_rows * e->ne[0]);

    if (e->fmt == t->fmt) {
        const enum status st = read_part(h, e, t, row, n_rows, drop, dst, err);

        if (!st && e->scaling)
            scale(e, row, n_rows, dst);
        return st;
    }
    char *raw = malloc(kern_format_bytes(t->fmt, n));

    if (!raw)
        return err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);
    assert(e->fmt == KERN_FMT_f32);
    const enum status st = read_part(h, e, t, row, n_rows, drop, raw, err);

    if (!st)
        h->to_floats[t->fmt](raw, dst, n);
    if (!st && e->scaling)
        scale(e, row, n_rows, dst);
    free(raw);
    return st;
}

enum status hf_tensors_read(void *arg, const struct gguf_tensor *what, uint64_t row,
                            uint64_t n_rows, bool drop, void *dst, struct err *err)
{
    struct hf_tensors *h = arg;
    struct hf_entry *e =
        &h->entries[strtab_find(&h->index, what->name, strlen(what->name))];
    const size_t row_bytes = kern_format_bytes(e->fmt, (size_t)e->ne[0]);
    const uint64_t all = e->ne[1] * e->ne[2];
    enum status st = ST_OK;

    if (e->made) {
        memcpy(dst, e->made, row_bytes);
        return ST_OK;
    }
    if (e->flat)
        return read_flat(h, e, row, n_rows, dst, err);
    if (e->how == HF_LATENT_KEYS)
        return read_transposed(h, e, row, n_rows, dst, err);
    if (hf_is_mx(e))
        st = hf_read_mx(h, e, row, n_rows, dst, err);
    for (uint64_t done = 0; done < n_rows && !st && !hf_is_mx(e);) {
        const uint64_t at = (row + done) % e->part_rows, left = n_rows - done;
        const uint64_t n = left < e->part_rows - at ? left : e->part_rows - at;
        const bool one = e->n_parts == 1;

        st = read_typed(h, e, e->parts[one ? 0 : (row + done) / e->part_rows],
                        one ? row + done : at, n, drop, (char *)dst + done * row_bytes,
                        err);
        done += n;
    }
    if (!st && e->how == HF_TERNARY)
        st = hf_round_ternary(h, e, n_rows, dst, err);
    /* Pages that straddle two pieces are still cached. */
    if (!st && drop && atomic_fetch_add(&e->n_read, n_rows) + n_rows >= all)
        for (size_t i = 0; i < e->n_parts; i++)
            safetensors_drop(h->s, e->parts[i], 0, e->parts[i]->bytes);
    return st;
}
