/* SPDX-License-Identifier: MIT
 *
 * hf_reorder.c - rows of a gguf's tensor that are columns in the folder, or in another
 * spelling of their format
 *
 * GPT-2's matrices, and gpt-oss' in floats, have a row for each input. gpt-oss' MXFP4
 * has the nibbles of a block's neighbours in one byte, and scales in a tensor of their
 * own; GGUF has elements i and i + 16 in byte i, behind the scale:
 *
 *     folder  [rows][blocks][16] nibbles 0|1 2|3 ...   [rows][blocks] scales
 *     gguf    [rows][blocks] { scale, 16 x nibbles 0|16 1|17 ... }
 *
 * Sources: OCP Microscaling Formats 1.0; the published code of both.
 */
#include "engine/hf/hf_tensors_impl.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

#define MX_NIBBLES 16 /* bytes of a block */
#define MX_BLOCK   17

static enum status no_shape(const struct hf_entry *e, const char *dir, const char *what,
                            struct err *err)
{
    const char *name = e->parts[0]->name;
    char shown[80];

    return err_set(err, ST_INPUT, "%s: the tensor '%s' is no %s", dir,
                   utf8_printable(shown, sizeof shown, name, strlen(name)), what);
}

/* ---- columns --------------------------------------------------------------------- */

bool hf_is_transposed(const struct hf_entry *e)
{
    return e->how == HF_TRANSPOSE || e->how == HF_TRANSPOSE_EVEN ||
           e->how == HF_TRANSPOSE_ODD;
}

static uint64_t step_of(const struct hf_entry *e)
{
    return e->how == HF_TRANSPOSE ? 1 : 2;
}

enum status hf_set_transposed(struct hf_entry *e, const char *dir, struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const int at = t->n_dims - 2;

    if (at < 0 || at > 1 || t->n_elems == 0 || t->shape[at + 1] % step_of(e))
        return no_shape(e, dir, "matrix that can be transposed", err);
    e->ne[0] = t->shape[at];
    e->ne[1] = t->shape[at + 1] / step_of(e);
    e->ne[2] = at ? t->shape[0] : 1;
    e->ne[3] = 1;
    e->n_dims = t->n_dims;
    e->part_rows = e->ne[1]; /* of a slice: reads do not go across */
    e->fmt = t->fmt;
    return ST_OK;
}

enum status hf_read_transposed(const struct hf_tensors *h, const struct hf_entry *e,
                               uint64_t row, uint64_t n_rows, char *dst,
                               struct err *err)
{
    const struct safetensor *t = e->parts[0];
    const size_t size = kern_format_bytes(t->fmt, 1);
    const uint64_t step = step_of(e), columns = e->ne[1] * step;
    const uint64_t slice = row / e->ne[1] * e->ne[0] * columns;
    const uint64_t first = row % e->ne[1] * step;
    const uint64_t n = (n_rows - 1) * step + 1, odd = e->how == HF_TRANSPOSE_ODD;
    char *raw = malloc((size_t)n * size);
    enum status st =
        raw ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);

    for (uint64_t k = 0; !st && k < e->ne[0]; k++) {
        st = safetensors_read(h->s, t, (slice + k * columns + first + odd) * size,
                              (size_t)n * size, raw, err);
        for (uint64_t r = 0; !st && r < n_rows; r++)
            memcpy(dst + (r * e->ne[0] + k) * size, raw + r * step * size, size);
    }
    free(raw);
    return st;
}

/* ---- MXFP4 ----------------------------------------------------------------------- */

bool hf_is_mx(const struct hf_entry *e)
{
    return e->how == HF_MX || e->how == HF_MX_EVEN || e->how == HF_MX_ODD;
}

enum status hf_set_mx(struct hf_entry *e, const char *dir, struct err *err)
{
    const struct safetensor *t = e->parts[0],
                            *scales = e->n_parts > 1 ? e->parts[1] : t;

    if (e->n_parts != 2 || t->n_dims != 4 || scales->n_dims != 3 || t->n_elems == 0 ||
        strcmp(t->dtype, "U8") || strcmp(scales->dtype, "U8") ||
        t->shape[3] != MX_NIBBLES ||
        memcmp(t->shape, scales->shape, 3 * sizeof t->shape[0]))
        return no_shape(e, dir, "stack of MXFP4 blocks with a scale for each", err);
    e->ne[0] = t->shape[2] * 2 * MX_NIBBLES;
    e->ne[1] = t->shape[1];
    e->ne[2] = t->shape[0];
    e->ne[3] = 1;
    e->n_dims = 3;
    e->part_rows = e->ne[1] * e->ne[2];
    e->fmt = KERN_FMT_mxfp4;
    return ST_OK;
}

static unsigned nibble(const unsigned char *bytes, int i)
{
    return i % 2 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15;
}

static void repack(unsigned char *dst, const unsigned char *nibbles,
                   const unsigned char *scales, uint64_t n_blocks)
{
    for (uint64_t b = 0; b < n_blocks; b++, dst += MX_BLOCK, nibbles += MX_NIBBLES) {
        dst[0] = scales[b];
        for (int i = 0; i < MX_NIBBLES; i++)
            dst[1 + i] = (unsigned char)(nibble(nibbles, i) |
                                         nibble(nibbles, i + MX_NIBBLES) << 4);
    }
}

enum status hf_read_mx(const struct hf_tensors *h, const struct hf_entry *e,
                       uint64_t row, uint64_t n_rows, unsigned char *dst,
                       struct err *err)
{
    const uint64_t blocks = e->ne[0] / (2 * MX_NIBBLES);
    unsigned char *raw = malloc((size_t)blocks * MX_BLOCK);
    enum status st =
        raw ? ST_OK : err_set(err, ST_NO_MEMORY, "no memory for %s", e->name);

    for (uint64_t i = 0; !st && i < n_rows; i++) {
        const uint64_t from = hf_field_row(&e->fields, row + i);

        st = safetensors_read(h->s, e->parts[0], from * blocks * MX_NIBBLES,
                              (size_t)blocks * MX_NIBBLES, raw, err);
        if (!st)
            st = safetensors_read(h->s, e->parts[1], from * blocks, (size_t)blocks,
                                  raw + blocks * MX_NIBBLES, err);
        if (!st)
            repack(dst + i * blocks * MX_BLOCK, raw, raw + blocks * MX_NIBBLES, blocks);
    }
    free(raw);
    return st;
}
