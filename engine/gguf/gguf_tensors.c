/* SPDX-License-Identifier: MIT
 *
 * gguf_tensors.c - tensor descriptions, and checks that their data is in the file
 */
#include "engine/gguf/gguf_cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf_panels.h"

static enum status read_shape(struct gguf_cursor *c, struct gguf_tensor *t,
                              struct gguf_str name)
{
    uint32_t n_dims;

    if (!cursor_u32(c, &n_dims))
        return c->err->code;
    if (n_dims < 1 || n_dims > 4)
        return gguf_fail(c,
                         "tensor '%s' has %" PRIu32 " dimensions; 1 to 4 are allowed",
                         gguf_show(name).text, n_dims);
    t->n_dims = (int)n_dims;
    t->n_elems = 1;
    for (int d = 0; d < 4; d++) {
        t->ne[d] = 1;
        if (d < t->n_dims && !cursor_u64(c, &t->ne[d]))
            return c->err->code;
        if (t->ne[d] == 0)
            return gguf_fail(c, "tensor '%s' has no elements in dimension %d",
                             gguf_show(name).text, d);
        if (__builtin_mul_overflow(t->n_elems, t->ne[d], &t->n_elems) ||
            t->n_elems > INT64_MAX)
            return gguf_fail(c, "tensor '%s' has more elements than 63 bits can count",
                             gguf_show(name).text);
    }
    return ST_OK;
}

/* Read the type and compute the bytes; t->offset is still relative to the data. */
static enum status read_type(struct gguf_cursor *c, struct gguf_tensor *t,
                             struct gguf_str name)
{
    uint32_t elems, bytes;

    if (!cursor_u32(c, &t->ggml_id) || !cursor_u64(c, &t->offset))
        return c->err->code;
    if (gguf_read_panel_type(c, t, name))
        return c->err->code;
    t->fmt = kern_format_by_ggml_id(t->ggml_id);
    if (!gguf_ggml_block(t->ggml_id, &elems, &bytes))
        return ST_OK; /* listed, but not readable */
    if (t->ne[0] % elems)
        return gguf_fail(
            c,
            "tensor '%s' has rows of %" PRIu64
            " elements, not a multiple of the %" PRIu32 " in a block of %s",
            gguf_show(name).text, t->ne[0], elems, gguf_ggml_name(t->ggml_id));
    if (__builtin_mul_overflow(t->n_elems / elems, (uint64_t)bytes, &t->bytes))
        return gguf_fail(c, "tensor '%s' has more bytes than 64 bits can count",
                         gguf_show(name).text);
    return ST_OK;
}

/* Convert the offset in the data to an offset in the file. */
static enum status place_tensor(struct gguf_cursor *c, struct gguf_tensor *t)
{
    const struct gguf_str name = {t->name, strlen(t->name)};
    const struct gguf *g = c->g;
    uint64_t begin, end;

    if (t->offset % g->alignment)
        return gguf_fail(c,
                         "tensor '%s' lies at offset %" PRIu64
                         " of the data, not a multiple of the alignment %" PRIu32,
                         gguf_show(name).text, t->offset, g->alignment);
    if (__builtin_add_overflow(g->data_offset, t->offset, &begin) ||
        __builtin_add_overflow(begin, t->bytes, &end) || end > g->bytes)
        return gguf_fail(c,
                         "tensor '%s' needs %" PRIu64 " bytes at offset %" PRIu64
                         " of the data, beyond the end of the file (%zu bytes); the "
                         "file is cut short or damaged, get it again",
                         gguf_show(name).text, t->bytes, t->offset, g->bytes);
    t->offset = begin;
    return ST_OK;
}

static int by_offset(const void *a, const void *b)
{
    const struct gguf_tensor *s = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *t = *(const struct gguf_tensor *const *)b;

    if (s->offset != t->offset)
        return s->offset < t->offset ? -1 : 1;
    /* Those of unknown type (0 bytes) first, so that they precede one at the same
     * offset. */
    return s->bytes < t->bytes ? -1 : s->bytes > t->bytes;
}

static enum status check_overlap(struct gguf_cursor *c)
{
    const struct gguf *g = c->g;
    const struct gguf_tensor **order = calloc(g->n_tensors + 1, sizeof *order);
    enum status st = ST_OK;

    if (!order)
        return err_set(c->err, ST_NO_MEMORY, "cannot allocate a list of %zu tensors",
                       g->n_tensors);
    for (size_t i = 0; i < g->n_tensors; i++)
        order[i] = &g->tensors[i];
    qsort(order, g->n_tensors, sizeof *order, by_offset);
    for (size_t i = 1; i < g->n_tensors && !st; i++) {
        const struct gguf_tensor *a = order[i - 1], *b = order[i];

        if (a->offset + a->bytes > b->offset)
            st = gguf_fail(c, "the tensors '%s' and '%s' overlap in the file",
                           gguf_show((struct gguf_str){a->name, strlen(a->name)}).text,
                           gguf_show((struct gguf_str){b->name, strlen(b->name)}).text);
    }
    free(order);
    return st;
}

static enum status read_tensor(struct gguf_cursor *c, size_t i)
{
    struct gguf_tensor t = {0};
    struct gguf_str name;
    enum status st;

    if (!cursor_name(c, "tensor", i, &name))
        return c->err->code;
    if ((st = read_shape(c, &t, name)) || (st = read_type(c, &t, name)))
        return st;
    if (!(t.name = strndup(name.data, name.len)))
        return err_set(c->err, ST_NO_MEMORY, "cannot allocate the name of tensor %zu",
                       i);
    c->g->tensors[i] = t;
    c->g->n_tensors = i + 1;
    return ST_OK;
}

static enum status read_list(struct gguf_cursor *c, size_t n_tensors)
{
    struct gguf *g = c->g;
    size_t cap = 0;
    enum status st;

    c->where = "the list of tensors";
    for (size_t i = 0; i < n_tensors; i++) {
        void *bigger = cursor_grow(c, g->tensors, i, &cap, sizeof *g->tensors);

        if (!bigger)
            return c->err->code;
        g->tensors = bigger;
        if ((st = read_tensor(c, i)))
            return st;
    }
    if ((st = strtab_init(&g->tensor_index, n_tensors, c->err)))
        return st;
    for (size_t i = 0; i < n_tensors; i++) {
        const char *name = g->tensors[i].name;
        const size_t len = strlen(name);

        if (strtab_put(&g->tensor_index, name, (uint32_t)len, (uint32_t)i) !=
            STRTAB_NONE)
            return gguf_fail(c, "the tensor '%s' occurs twice",
                             gguf_show((struct gguf_str){name, len}).text);
    }
    return ST_OK;
}

enum status gguf_read_tensors(struct gguf_cursor *c, size_t n_tensors)
{
    struct gguf *g = c->g;
    enum status st = read_list(c, n_tensors);

    if (st)
        return st;
    /* A vocabulary has no data and may end without padding. */
    g->data_offset = (c->at + g->alignment - 1) / g->alignment * g->alignment;
    if (n_tensors == 0 && g->data_offset > g->bytes)
        g->data_offset = g->bytes;
    if ((st = gguf_settle_q2_0(c)))
        return st;
    for (size_t i = 0; i < n_tensors; i++) {
        if ((st = place_tensor(c, &g->tensors[i])))
            return st;
    }
    return gguf_is_packed(g) ? gguf_check_layout(c) : check_overlap(c);
}
