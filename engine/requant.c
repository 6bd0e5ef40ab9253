/* SPDX-License-Identifier: MIT
 *
 * requant.c - a mix put over a gguf: other types, rows quantised as they are read
 */
#include "engine/requant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf_put.h"
#include "kernels/isa.h"

#define PIECE 65536 /* values in work at once, where a row has no more */

struct requant {
    struct gguf *from;
    struct kern_set kern;
    kern_quantize_fn *quantize[KERN_N_FMT];
};

/* ---- rows ---------------------------------------------------------------------- */

/* Rows of `from` as floats in v, then in t's type at dst. */
static enum status convert(const struct requant *q, const struct gguf_tensor *from,
                           const struct gguf_tensor *t, uint64_t row, uint64_t n_rows,
                           void *raw, float *v, void *dst, struct err *err)
{
    const size_t n = (size_t)(n_rows * t->ne[0]);
    const enum status st = gguf_read_rows(q->from, from, row, n_rows, true, raw, err);

    if (st)
        return st;
    if (from->fmt == KERN_FMT_f32) {
        q->quantize[t->fmt](raw, NULL, dst, n);
    } else {
        q->kern.dequantize[from->fmt](raw, v, n);
        q->quantize[t->fmt](v, NULL, dst, n);
    }
    return ST_OK;
}

static enum status read_rows(void *arg, const struct gguf_tensor *t, uint64_t row,
                             uint64_t n_rows, bool drop, void *dst, struct err *err)
{
    const struct requant *q = arg;
    const struct gguf_tensor *from = gguf_tensor_find(q->from, t->name);
    const uint64_t most = t->ne[0] < PIECE ? PIECE / t->ne[0] : 1;
    const size_t n = (size_t)((most < n_rows ? most : n_rows) * t->ne[0]);
    enum status st = ST_OK;

    if (from->fmt == t->fmt)
        return gguf_read_rows(q->from, from, row, n_rows, drop, dst, err);
    float *v = malloc(n * sizeof *v);
    void *raw = malloc(kern_format_bytes(from->fmt, n));

    if (!v || !raw)
        st = err_set(err, ST_NO_MEMORY, "cannot allocate memory to quantise %s",
                     t->name);
    for (uint64_t done = 0; done < n_rows && !st; done += most) {
        const uint64_t part = n_rows - done < most ? n_rows - done : most;

        st = convert(q, from, t, row + done, part, raw, v,
                     (char *)dst + done * kern_format_bytes(t->fmt, (size_t)t->ne[0]),
                     err);
    }
    free(raw);
    free(v);
    return st;
}

static void close_source(void *arg)
{
    struct requant *q = arg;

    gguf_close(q->from);
    free(q);
}

/* ---- the head ------------------------------------------------------------------ */

/* "<arch>.<key>", where it is one number or begins with one. */
static int hyper(const struct gguf *g, const char *key, int missing)
{
    struct gguf_str arch;
    const struct gguf_kv *kv = NULL;
    uint64_t v = 0;
    char full[128];

    if (gguf_get_str(g, "general.architecture", &arch) && arch.len < 64) {
        snprintf(full, sizeof full, "%.*s.%s", (int)arch.len, arch.data, key);
        kv = gguf_kv_find(g, full);
    }
    return kv && kv->n && gguf_elem_u64(kv, 0, &v) && v < 1u << 20 ? (int)v : missing;
}

void requant_describe(struct quantmix_tensor *out, const struct gguf *g,
                      const struct gguf_tensor *t)
{
    int layer = -1;

    if (sscanf(t->name, "blk.%d.", &layer) != 1)
        layer = -1;
    *out = (struct quantmix_tensor){
        .name = t->name,
        .layer = layer,
        .n_layers = hyper(g, "block_count", 1),
        .n_heads = hyper(g, "attention.head_count", 1),
        .n_dims = t->n_dims,
        .row_elems = t->ne[0],
        .tied_output = !gguf_tensor_find(g, "output.weight"),
    };
    out->n_kv_heads = hyper(g, "attention.head_count_kv", out->n_heads);
}

static bool is_float(enum kern_format fmt)
{
    return fmt == KERN_FMT_f32 || fmt == KERN_FMT_f16 || fmt == KERN_FMT_bf16;
}

static enum status put_tensor(struct gguf_bytes *b, const struct gguf *g,
                              const struct gguf_tensor *t, enum quantmix mix,
                              uint64_t *offset, struct err *err)
{
    struct quantmix_tensor what;

    requant_describe(&what, g, t);
    const enum kern_format fmt = quantmix_format(mix, &what);

    if (t->fmt == KERN_N_FMT || (t->fmt != fmt && !is_float(t->fmt)))
        return err_set(err, ST_USAGE,
                       "%s cannot be quantised to %s: its tensor %s is %s already; "
                       "quantise the F32, F16 or BF16 model it was made from",
                       gguf_path(g), quantmix_name(mix), t->name,
                       gguf_ggml_name(t->ggml_id) ? gguf_ggml_name(t->ggml_id)
                                                  : "of an unknown type");
    gguf_put_tensor(b, t->name, t->n_dims, t->ne, kern_format_info(fmt)->ggml_id,
                    *offset);
    *offset = gguf_put_aligned(*offset + t->n_elems / t->ne[0] *
                                             kern_format_bytes(fmt, (size_t)t->ne[0]));
    return ST_OK;
}

static bool says(const struct gguf_kv *kv, const char *key)
{
    return kv->key.len == strlen(key) && !memcmp(kv->key.data, key, kv->key.len);
}

static enum status put_head(struct gguf_bytes *head, const struct gguf *g,
                            enum quantmix mix, struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    uint64_t offset = 0;
    enum status st = ST_OK;

    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);

        if (!says(kv, "general.file_type") && !says(kv, "general.alignment") &&
            !says(kv, "general.quantization_version"))
            gguf_kv_copy(&kvs, g, kv);
    }
    gguf_kv_u32(&kvs, "general.file_type", quantmix_file_type(mix));
    gguf_kv_u32(&kvs, "general.quantization_version", 2);
    gguf_put_head(head, gguf_n_tensors(g), &kvs);
    for (size_t i = 0; i < gguf_n_tensors(g) && !st; i++)
        st = put_tensor(head, g, gguf_tensor_at(g, i), mix, &offset, err);
    gguf_put_padding(head);
    if (!st && head->failed)
        st = err_set(err, ST_NO_MEMORY, "no memory for the metadata of %s",
                     gguf_path(g));
    free(kvs.bytes.data);
    return st;
}

enum status requant_open(struct gguf **out, struct gguf *g, enum quantmix mix,
                         struct err *err)
{
    struct requant *q = calloc(1, sizeof *q);
    struct gguf_bytes head = {.n = 0};
    enum status st =
        q ? put_head(&head, g, mix, err)
          : err_set(err, ST_NO_MEMORY, "no memory to quantise %s", gguf_path(g));

    if (st) {
        free(head.data);
        free(q);
        gguf_close(g);
        return st;
    }
    q->from = g;
    kern_select(&q->kern, isa_usable());
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        q->quantize[fmt] = kern_best(KERN_OP_quantize, fmt, isa_usable())->fn.quantize;
    return gguf_assemble(
        out, head.data, head.n, gguf_path(g),
        &(struct gguf_source){.read = read_rows, .close = close_source, .arg = q}, err);
}
