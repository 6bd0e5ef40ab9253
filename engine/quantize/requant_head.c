/* SPDX-License-Identifier: MIT
 *
 * requant_head.c - the new type of each tensor, and the head of the new file
 */
#include "engine/quantize/requant_impl.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf_panels.h"
#include "engine/gguf/own_scale.h"

/* The number "<arch>.<key>", or the first of an array. */
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

/* What the rules of a mix depend on, of tensor t of g. name points into t. */
static void describe(struct quantmix_tensor *out, const struct gguf *g,
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
        .n_experts = hyper(g, "expert_count", 0),
    };
    out->n_kv_heads = hyper(g, "attention.head_count_kv", out->n_heads);
}

static bool is_float(enum kern_format fmt)
{
    return fmt == KERN_FMT_f32 || fmt == KERN_FMT_f16 || fmt == KERN_FMT_bf16;
}

static bool matches(const struct requant_rule *rule, const char *name)
{
    return strpbrk(rule->pattern, "*?[") ? !fnmatch(rule->pattern, name, 0)
                                         : strstr(name, rule->pattern) != NULL;
}

enum kern_format requant_format(const struct requant_params *p, const struct gguf *g,
                                const struct gguf_tensor *t)
{
    struct quantmix_tensor what;
    const bool is_output =
        !strcmp(t->name, "output.weight") || (!strcmp(t->name, "token_embd.weight") &&
                                              !gguf_tensor_find(g, "output.weight"));

    describe(&what, g, t);
    what.has_importance = p->imatrix != NULL;
    if (!quantmix_is_matrix(&what))
        return t->fmt == KERN_N_FMT || is_float(t->fmt) ? KERN_FMT_f32
                                                        : quantmix_written(t->fmt);
    for (size_t i = 0; i < p->n_rules; i++)
        if (matches(&p->rules[i], t->name))
            return quantmix_fit_row(p->rules[i].fmt, t->ne[0]);
    if (p->keep_output && is_output)
        return quantmix_written(t->fmt);
    return p->pure ? quantmix_fit_row(quantmix_base(p->mix), t->ne[0])
                   : quantmix_format(p->mix, &what);
}

/* A rule that matches nothing is a mistake: a name misspelt, or a pattern that is none,
 * such as "blk.[". */
static enum status check_rules(const struct gguf *g, const struct requant_params *p,
                               struct err *err)
{
    for (size_t i = 0; i < p->n_rules; i++) {
        size_t k = 0;

        while (k < gguf_n_tensors(g) &&
               !matches(&p->rules[i], gguf_tensor_at(g, k)->name))
            k++;
        if (k == gguf_n_tensors(g))
            return err_set(err, ST_USAGE,
                           "no tensor of %s matches the pattern '%.80s'; `bench gguf "
                           "FILE --tensors` lists them",
                           gguf_path(g), p->rules[i].pattern);
    }
    return ST_OK;
}

static enum status refuse(const struct gguf *g, const struct gguf_tensor *t,
                          const struct requant_params *p, struct err *err)
{
    const char *type = gguf_ggml_name(t->ggml_id);

    if (t->fmt == KERN_N_FMT)
        return err_set(err, ST_UNSUPPORTED,
                       "%s: tensor %s has the type %s, which this program cannot read",
                       gguf_path(g), t->name, type ? type : "of an unknown number");
    return err_set(err, ST_USAGE,
                   "%s cannot be quantised to %s: its tensor %s is %s already; "
                   "quantise the F32, F16 or BF16 model it was made from",
                   gguf_path(g), quantmix_name(p->mix), t->name, type);
}

static enum status check_importance(const struct gguf *g, const struct gguf_tensor *t,
                                    const struct requant_params *p, struct err *err)
{
    const struct imatrix_entry *e =
        p->imatrix ? imatrix_find(p->imatrix, t->name) : NULL;

    if (!e || imatrix_fits(e, t->ne[0], t->ne[2] * t->ne[3]))
        return ST_OK;
    return err_set(err, ST_INPUT,
                   "the importance matrix has %llu values for %s, whose rows have %llu "
                   "in %s: it is of another model",
                   (unsigned long long)(e->n_cols * e->n_slices), t->name,
                   (unsigned long long)t->ne[0], gguf_path(g));
}

static uint64_t aligned(uint64_t bytes, uint64_t alignment)
{
    return (bytes + alignment - 1) / alignment * alignment;
}

bool requant_needs_scale(const struct gguf_tensor *t, enum kern_format fmt)
{
    const size_t n = strlen(t->name);

    return fmt == KERN_FMT_nvfp4 && fmt != t->fmt && n > strlen(REQUANT_MATRIX_END) &&
           n < 250 &&
           !strcmp(t->name + n - strlen(REQUANT_MATRIX_END), REQUANT_MATRIX_END);
}

/* X.scale behind X.weight: one for each slice. */
static void put_scale(struct gguf_bytes *b, const struct gguf *g,
                      const struct gguf_tensor *t, uint64_t *offset)
{
    const uint64_t ne[4] = {t->ne[2] * t->ne[3], 1, 1, 1};
    const int n = (int)(strlen(t->name) - strlen(REQUANT_MATRIX_END));
    char name[256];

    snprintf(name, sizeof name, "%.*s" REQUANT_SCALE_END, n, t->name);
    gguf_put_tensor(b, name, 1, ne, kern_format_info(KERN_FMT_f32)->ggml_id, *offset);
    *offset = aligned(*offset + ne[0] * sizeof(float), gguf_alignment(g));
}

static enum status put_tensor(struct gguf_bytes *b, const struct gguf *g,
                              const struct gguf_tensor *t,
                              const struct requant_params *p, uint64_t *offset,
                              struct err *err)
{
    const enum kern_format fmt = requant_format(p, g, t);

    if (t->fmt == KERN_N_FMT || (t->fmt != fmt && !is_float(t->fmt) && !p->requantise))
        return refuse(g, t, p, err);
    if (check_importance(g, t, p, err))
        return err->code;
    gguf_put_tensor(b, t->name, t->n_dims, t->ne, kern_format_info(fmt)->ggml_id,
                    *offset);
    *offset = aligned(*offset + t->n_elems / t->ne[0] *
                                    kern_format_bytes(fmt, (size_t)t->ne[0]),
                      gguf_alignment(g));
    if (requant_needs_scale(t, fmt))
        put_scale(b, g, t, offset);
    return ST_OK;
}

/* A matrix that takes another format has its scale in the weights, or gets a new one.
 */
static bool is_left_out(const struct gguf *g, const struct gguf_tensor *t,
                        const struct requant_params *p)
{
    const struct gguf_tensor *of = gguf_scaled_by(g, t);

    return of && of->fmt != requant_format(p, g, of);
}

/* Tensors of the result. */
static size_t count_tensors(const struct gguf *g, const struct requant_params *p)
{
    size_t n = 0;

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (!is_left_out(g, t, p))
            n += requant_needs_scale(t, requant_format(p, g, t)) ? 2 : 1;
    }
    return n;
}

static bool is_key(const struct gguf_kv *kv, const char *key)
{
    return kv->key.len == strlen(key) && !memcmp(kv->key.data, key, kv->key.len);
}

static void put_metadata(struct gguf_kvs *kvs, const struct gguf *g,
                         const struct requant_params *p)
{
    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);

        if (!is_key(kv, "general.file_type") &&
            !is_key(kv, "general.quantization_version") && !gguf_is_layout_key(kv))
            gguf_kv_copy(kvs, g, kv);
    }
    if (!p->no_file_type)
        gguf_kv_u32(kvs, "general.file_type", quantmix_file_type(p->mix));
    gguf_kv_u32(kvs, "general.quantization_version", 2);
    if (!p->imatrix)
        return;
    if (p->imatrix_name && !gguf_kv_find(g, "quantize.imatrix.file"))
        gguf_kv_str(kvs, "quantize.imatrix.file", p->imatrix_name);
    if (!gguf_kv_find(g, "quantize.imatrix.entries_count"))
        gguf_kv_u32(kvs, "quantize.imatrix.entries_count",
                    (uint32_t)imatrix_n_entries(p->imatrix));
    if (!gguf_kv_find(g, "quantize.imatrix.chunks_count"))
        gguf_kv_u32(kvs, "quantize.imatrix.chunks_count", imatrix_n_chunks(p->imatrix));
}

enum status requant_head(struct gguf_bytes *head, const struct gguf *g,
                         const struct requant_params *p, struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    uint64_t offset = 0;
    enum status st = check_rules(g, p, err);

    if (st)
        return st;
    put_metadata(&kvs, g, p);
    gguf_put_head(head, count_tensors(g, p), &kvs);
    for (size_t i = 0; i < gguf_n_tensors(g) && !st; i++)
        if (!is_left_out(g, gguf_tensor_at(g, i), p))
            st = put_tensor(head, g, gguf_tensor_at(g, i), p, &offset, err);
    while (!head->failed && head->n % gguf_alignment(g))
        gguf_put(head, "", 1);
    if (!st && head->failed)
        st = err_set(err, ST_NO_MEMORY, "no memory for the metadata of %s",
                     gguf_path(g));
    free(kvs.bytes.data);
    return st;
}
