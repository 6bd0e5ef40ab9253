/* SPDX-License-Identifier: MIT
 *
 * gguf_panels.c - the keys and types of packed files, and rows out of panels
 */
#include "engine/gguf/gguf_panels.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/fileread.h"
#include "engine/gguf/gguf_cursor.h"
#include "kernels/isa.h"

bool gguf_is_packed(const struct gguf *g)
{
    return g->layout != 0;
}

bool gguf_is_layout_key(const struct gguf_kv *kv)
{
    static const char *const keys[] = {GGUF_KEY_LAYOUT, GGUF_KEY_CHECKSUMS,
                                       GGUF_KEY_HEAD};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (kv->key.len == strlen(keys[i]) &&
            !memcmp(kv->key.data, keys[i], kv->key.len))
            return true;
    return false;
}

bool gguf_has_panels(enum kern_format fmt)
{
    size_t n;
    const struct kern_entry *entries = kern_entries(&n);

    for (size_t i = 0; i < n; i++)
        if (entries[i].op == KERN_OP_pack && entries[i].what == (int)fmt)
            return true;
    return false;
}

/* ---- parsing --------------------------------------------------------------------- */

enum status gguf_read_layout(struct gguf_cursor *c, uint64_t n_tensors)
{
    struct gguf *g = c->g;
    const struct gguf_kv *sums = gguf_kv_find(g, GGUF_KEY_CHECKSUMS);
    const struct gguf_kv *head = gguf_kv_find(g, GGUF_KEY_HEAD);
    uint64_t version = 0;

    if (!gguf_kv_find(g, GGUF_KEY_LAYOUT))
        return ST_OK;
    if (!gguf_get_u64(g, GGUF_KEY_LAYOUT, &version) || version == 0)
        return gguf_fail(c, GGUF_KEY_LAYOUT " is not a number from 1 on");
    if (version != GGUF_LAYOUT_VERSION)
        return gguf_fail(c,
                         "a packed file with layout version %" PRIu64
                         ", and this program reads %u; run `bench pack` again, on the "
                         "model that it was made from",
                         version, GGUF_LAYOUT_VERSION);
    if (g->alignment % GGUF_PANEL_ALIGN)
        return gguf_fail(c,
                         "a packed file whose general.alignment is %" PRIu32
                         ", not a multiple of %u",
                         g->alignment, GGUF_PANEL_ALIGN);
    if (!head || head->type != GGUF_U64)
        return gguf_fail(c, "a packed file without its " GGUF_KEY_HEAD);
    if (!sums || sums->type != GGUF_ARRAY || sums->elem_type != GGUF_U64 ||
        sums->n != n_tensors)
        return gguf_fail(
            c, "a packed file whose " GGUF_KEY_CHECKSUMS " are not %" PRIu64 " of u64",
            n_tensors);
    g->layout = (uint32_t)version;
    return ST_OK;
}

enum status gguf_read_panel_type(struct gguf_cursor *c, struct gguf_tensor *t,
                                 struct gguf_str name)
{
    const uint32_t id = t->ggml_id - GGUF_PANEL_TYPE;

    if (t->ggml_id < GGUF_PANEL_TYPE || id > UINT16_MAX)
        return ST_OK;
    if (!gguf_is_packed(c->g))
        return gguf_fail(c,
                         "tensor '%s' is in panels, in a file without " GGUF_KEY_LAYOUT,
                         gguf_show(name).text);
    const enum kern_format fmt = kern_format_by_ggml_id(id);

    if (fmt == KERN_N_FMT || !gguf_has_panels(fmt))
        return gguf_fail(c,
                         "tensor '%s' is in panels of type %s (number %" PRIu32
                         "), which has none",
                         gguf_show(name).text,
                         gguf_ggml_name(id) ? gguf_ggml_name(id) : "unknown", id);
    if (!gguf_panel_rows(t->ne))
        return gguf_fail(c,
                         "tensor '%s' is in panels, and its %" PRIu64
                         " rows are less than the %d of a panel",
                         gguf_show(name).text, t->ne[1], KERN_PANEL_ROWS);
    t->ggml_id = id;
    t->panel_rows = gguf_panel_rows(t->ne);
    return ST_OK;
}

enum status gguf_check_layout(struct gguf_cursor *c)
{
    const struct gguf *g = c->g;
    uint64_t at = g->data_offset;

    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *t = &g->tensors[i];
        const struct gguf_str name = {t->name, strlen(t->name)};

        if (!t->bytes)
            return gguf_fail(c, "tensor '%s' of a packed file has an unknown type",
                             gguf_show(name).text);
        if (t->offset != at)
            return gguf_fail(c,
                             "tensor '%s' of a packed file is at byte %" PRIu64
                             ", and not at %" PRIu64 ", behind the one before",
                             gguf_show(name).text, t->offset, at);
        at = (at + t->bytes + g->alignment - 1) / g->alignment * g->alignment;
    }
    if (at > g->bytes)
        return gguf_fail(c,
                         "a packed file of %zu bytes that needs %" PRIu64
                         "; it is cut short, get it again",
                         g->bytes, at);
    return ST_OK;
}

/* ---- rows ------------------------------------------------------------------------ */

static enum status read_at(const struct gguf *g, void *dst, size_t n, uint64_t offset,
                           struct err *err)
{
    if (g->mapped)
        return gguf_read_bytes(g, dst, n, offset, err);
    memcpy(dst, g->image + offset, n);
    return ST_OK;
}

/* Rows of one panel, or of the rest of a slice: *n of n_rows from `row` on, which is
 * counted through all slices. */
static enum status read_part(const struct gguf *g, const struct gguf_tensor *t,
                             kern_unpack_fn *unpack, uint64_t row, uint64_t n_rows,
                             void *panel, unsigned char *dst, uint64_t *n,
                             struct err *err)
{
    const size_t row_bytes = kern_format_bytes(t->fmt, (size_t)t->ne[0]);
    const uint64_t in_slice = row % t->ne[1];
    const bool in_panel = in_slice < t->panel_rows;
    const uint64_t first = in_panel ? row - in_slice % KERN_PANEL_ROWS : row;
    const uint64_t end = in_panel ? first + KERN_PANEL_ROWS : row - in_slice + t->ne[1];

    *n = end - row < n_rows ? end - row : n_rows;
    if (!in_panel)
        return read_at(g, dst, (size_t)*n * row_bytes, t->offset + row * row_bytes,
                       err);
    const enum status st = read_at(g, panel, KERN_PANEL_ROWS * row_bytes,
                                   t->offset + first * row_bytes, err);

    for (uint64_t i = 0; !st && i < *n; i++)
        unpack((size_t)t->ne[0], panel, (size_t)(row - first + i), dst + i * row_bytes);
    return st;
}

enum status gguf_read_panels(const struct gguf *g, const struct gguf_tensor *t,
                             uint64_t row, uint64_t n_rows, bool drop, void *dst,
                             struct err *err)
{
    const struct kern_row *kernel =
        kern_best(KERN_OP_unpack, (int)t->fmt, isa_usable());
    const size_t row_bytes = kern_format_bytes(t->fmt, (size_t)t->ne[0]);
    void *panel;
    enum status st = ST_OK;

    if (!kernel)
        return err_set(
            err, ST_UNSUPPORTED,
            "%s is a packed file, and there are no kernels for panels of %s at "
            "the ISA levels in use; use the model that it was made from",
            g->path, kern_format_info(t->fmt)->name);
    panel = aligned_alloc(64, (KERN_PANEL_ROWS * row_bytes + 63) / 64 * 64);
    if (!panel)
        return err_set(err, ST_NO_MEMORY, "no memory to unpack %s", t->name);
    for (uint64_t done = 0, n; !st && done < n_rows; done += n)
        st = read_part(g, t, kernel->fn.unpack, row + done, n_rows - done, panel,
                       (unsigned char *)dst + done * row_bytes, &n, err);
    free(panel);
    if (!st && drop && g->mapped)
        pagecache_drop(g->fd, t->offset + row * row_bytes,
                       t->offset + (row + n_rows) * row_bytes);
    return st;
}
