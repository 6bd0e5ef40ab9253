/* SPDX-License-Identifier: MIT
 *
 * arch.c - the table of architectures, and the checked look-ups they load with
 */
#include "engine/arch.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/utf8.h"

static const struct arch *const ARCHS[] = {&arch_llama};

#define N_ARCHS (sizeof ARCHS / sizeof ARCHS[0])

struct loader {
    const struct gguf *g;
    struct weights *w; /* NULL: plan */
    struct model *m;
    struct err *err;
    size_t n_vector_floats; /* used of m->vectors */
    size_t cap_floats;      /* allocated for it */
    unsigned char *used;    /* [gguf_n_tensors()] was asked for */
};

const struct gguf *loader_gguf(const struct loader *l)
{
    return l->g;
}

enum status loader_fail(struct loader *l, enum status code, const char *fmt, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(l->err, code, "%s: %s", gguf_path(l->g), text);
}

/* ---- hyperparameters ------------------------------------------------------ */

static const struct gguf_kv *find_key(const struct loader *l, const char *key,
                                      char *full, size_t cap)
{
    snprintf(full, cap, "%s.%s", l->m->arch->name, key);
    return gguf_kv_find(l->g, full);
}

/* An array stands for its value when there is only one. */
static enum status one_value(struct loader *l, const struct gguf_kv *kv,
                             const char *full, uint64_t *value)
{
    uint64_t other;

    if (kv->n == 0 || !gguf_elem_u64(kv, 0, value))
        return loader_fail(l, ST_INPUT, "%s is not a whole number", full);
    for (uint64_t i = 1; i < kv->n; i++)
        if (!gguf_elem_u64(kv, i, &other) || other != *value)
            return loader_fail(l, ST_UNSUPPORTED,
                               "%s differs between layers, which is not supported",
                               full);
    return ST_OK;
}

enum status loader_int_or(struct loader *l, const char *key, int min, int max,
                          int missing, int *out)
{
    char full[96];
    const struct gguf_kv *kv = find_key(l, key, full, sizeof full);
    uint64_t value;
    enum status st;

    if (!kv) {
        *out = missing;
        return ST_OK;
    }
    st = one_value(l, kv, full, &value);
    if (st)
        return st;
    if (value > (uint64_t)max || (int)value < min)
        return loader_fail(l, ST_INPUT, "%s is %llu, and %d to %d is possible", full,
                           (unsigned long long)value, min, max);
    *out = (int)value;
    return ST_OK;
}

enum status loader_int(struct loader *l, const char *key, int min, int max, int *out)
{
    char full[96];

    if (!find_key(l, key, full, sizeof full))
        return loader_fail(l, ST_INPUT, "the metadata lack %s", full);
    return loader_int_or(l, key, min, max, 0, out);
}

enum status loader_real_or(struct loader *l, const char *key, double min, double max,
                           double missing, double *out)
{
    char full[96];
    double value;

    if (!find_key(l, key, full, sizeof full)) {
        *out = missing;
        return ST_OK;
    }
    if (!gguf_get_f64(l->g, full, &value))
        return loader_fail(l, ST_INPUT, "%s is not a number", full);
    if (!(value >= min && value <= max))
        return loader_fail(l, ST_INPUT, "%s is %g, and %g to %g is possible", full,
                           value, min, max);
    *out = value;
    return ST_OK;
}

bool loader_str(const struct loader *l, const char *key, struct gguf_str *out)
{
    char full[96];

    return find_key(l, key, full, sizeof full) && gguf_get_str(l->g, full, out);
}

/* ---- tensors --------------------------------------------------------------- */

static void tensor_name(char *full, size_t cap, int layer, const char *name)
{
    if (layer < 0)
        snprintf(full, cap, "%s", name);
    else
        snprintf(full, cap, "blk.%d.%s", layer, name);
}

bool loader_has(const struct loader *l, int layer, const char *name)
{
    char full[96];

    tensor_name(full, sizeof full, layer, name);
    return gguf_tensor_find(l->g, full) != NULL;
}

static const char *known_formats(char *buf, size_t cap)
{
    size_t used = 0;

    buf[0] = '\0';
    for (int fmt = 0; fmt < KERN_N_FMT && used < cap; fmt++)
        used += (size_t)snprintf(buf + used, cap - used, "%s%s", fmt ? " " : "",
                                 kern_format_info((enum kern_format)fmt)->name);
    return buf;
}

/* THE look-up: name, shape ne[3] (unused dimensions 1) and type. */
static enum status find_tensor(struct loader *l, const struct gguf_tensor **out,
                               int layer, const char *name, const uint64_t *ne)
{
    char full[96], formats[128], type[32];
    const struct gguf_tensor *t = NULL;

    tensor_name(full, sizeof full, layer, name);
    t = gguf_tensor_find(l->g, full);
    if (!t)
        return loader_fail(l, ST_INPUT, "tensor %s is missing", full);
    if (t->ne[0] != ne[0] || t->ne[1] != ne[1] || t->ne[2] != ne[2] || t->ne[3] != 1)
        return loader_fail(
            l, ST_INPUT,
            "tensor %s is %llu x %llu x %llu x %llu, the metadata ask for "
            "%llu x %llu x %llu x 1",
            full, (unsigned long long)t->ne[0], (unsigned long long)t->ne[1],
            (unsigned long long)t->ne[2], (unsigned long long)t->ne[3],
            (unsigned long long)ne[0], (unsigned long long)ne[1],
            (unsigned long long)ne[2]);
    if (t->fmt == KERN_N_FMT) {
        const char *known = gguf_ggml_name(t->ggml_id);

        snprintf(type, sizeof type, "number %u", (unsigned)t->ggml_id);
        return loader_fail(l, ST_UNSUPPORTED,
                           "tensor %s has type %s, which is not supported; supported "
                           "are %s",
                           full, known ? known : type,
                           known_formats(formats, sizeof formats));
    }
    const size_t index = (size_t)(t - gguf_tensor_at(l->g, 0));

    assert(gguf_tensor_at(l->g, index) == t);
    l->used[index] = 1;
    *out = t;
    return ST_OK;
}

static enum status fetch_matrix(struct loader *l, struct matrix *out, int layer,
                                const char *name, size_t k, size_t n_rows,
                                size_t n_slices, bool panels)
{
    const uint64_t ne[3] = {k, n_rows, n_slices};
    const struct gguf_tensor *t = NULL;
    const enum status st = find_tensor(l, &t, layer, name, ne);

    if (st)
        return st;
    *out = (struct matrix){
        .name = t->name,
        .data = l->w ? weights_data(l->w, t) : NULL,
        .fmt = t->fmt,
        .act = kern_format_info(t->fmt)->act,
        .n_rows = n_rows,
        .k = k,
        .n_slices = n_slices,
        .row_bytes = kern_format_bytes(t->fmt, k),
        .panel_rows = l->w && panels ? weights_panel_rows(l->w, t) : 0,
    };
    return ST_OK;
}

enum status loader_matrix(struct loader *l, struct matrix *out, int layer,
                          const char *name, size_t k, size_t n_rows, size_t n_slices)
{
    return fetch_matrix(l, out, layer, name, k, n_rows, n_slices, true);
}

enum status loader_table(struct loader *l, struct matrix *out, int layer,
                         const char *name, size_t k, size_t n_rows)
{
    return fetch_matrix(l, out, layer, name, k, n_rows, 1, false);
}

/* From the file: the weights may be read in only later. */
static enum status read_vector(struct loader *l, const struct gguf_tensor *t,
                               float *dst)
{
    kern_dequantize_fn *const to_floats =
        kern_best(KERN_OP_dequantize, (int)t->fmt, 1u << KERN_ISA_scalar)
            ->fn.dequantize;
    enum status st;

    if (!gguf_is_assembled(l->g)) {
        to_floats(gguf_tensor_data(l->g, t), dst, t->n_elems);
        return ST_OK;
    }
    void *raw = malloc((size_t)t->bytes);

    if (!raw)
        return loader_fail(l, ST_NO_MEMORY, "no memory for the tensor %s", t->name);
    st = gguf_read_rows(l->g, t, 0, 1, false, raw, l->err);
    if (!st)
        to_floats(raw, dst, t->n_elems);
    free(raw);
    return st;
}

enum status loader_vector(struct loader *l, const float **out, int layer,
                          const char *name, size_t n)
{
    const uint64_t ne[3] = {n, 1, 1};
    const struct gguf_tensor *t = NULL;
    enum status st = find_tensor(l, &t, layer, name, ne);
    float *dst;

    if (st)
        return st;
    if (t->fmt != KERN_FMT_f32 && t->fmt != KERN_FMT_f16 && t->fmt != KERN_FMT_bf16)
        return loader_fail(
            l, ST_UNSUPPORTED,
            "tensor %s has type %s, and a vector must be f32, f16 or bf16", t->name,
            kern_format_info(t->fmt)->name);
    loader_count_token_bytes(l, t->bytes);
    l->m->vector_bytes += n * sizeof(float);
    if (!l->w) {
        *out = NULL;
        return ST_OK;
    }
    if (n > l->cap_floats - l->n_vector_floats)
        return loader_fail(l, ST_INPUT, "tensor %s is asked for twice", t->name);
    dst = l->m->vectors + l->n_vector_floats;
    l->n_vector_floats += n;
    st = read_vector(l, t, dst);
    if (!st)
        *out = dst;
    return st;
}

void loader_count_token_bytes(struct loader *l, uint64_t bytes)
{
    l->m->weight_token_bytes += bytes;
}

/* ---- loading --------------------------------------------------------------- */

static enum status find_arch(struct loader *l, const struct arch **arch)
{
    struct gguf_str name;
    char known[200] = "", shown[64];
    size_t used = 0;

    if (!gguf_get_str(l->g, "general.architecture", &name))
        return loader_fail(l, ST_INPUT, "the metadata lack general.architecture");
    for (size_t i = 0; i < N_ARCHS; i++) {
        if (strlen(ARCHS[i]->name) == name.len &&
            memcmp(ARCHS[i]->name, name.data, name.len) == 0) {
            *arch = ARCHS[i];
            return ST_OK;
        }
        if (used < sizeof known)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s",
                                     i ? ", " : "", ARCHS[i]->name);
    }
    return loader_fail(l, ST_UNSUPPORTED,
                       "architecture \"%s\" is not supported; supported are: %s",
                       utf8_printable(shown, sizeof shown, name.data, name.len), known);
}

/* Room for every one-dimensional tensor of the file as floats. */
static enum status make_room(struct loader *l)
{
    const size_t n = gguf_n_tensors(l->g);

    l->used = calloc(n + 1, 1);
    if (!l->used)
        return loader_fail(l, ST_NO_MEMORY, "no memory to load %zu tensors", n);
    if (!l->w)
        return ST_OK;
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(l->g, i);

        if (t->fmt != KERN_N_FMT && t->ne[1] == 1 && t->ne[2] == 1 && t->ne[3] == 1)
            l->cap_floats += (size_t)t->n_elems;
    }
    l->m->vectors = malloc((l->cap_floats + 1) * sizeof(float));
    if (!l->m->vectors)
        return loader_fail(l, ST_NO_MEMORY, "no memory for %zu norm weights",
                           l->cap_floats);
    return ST_OK;
}

static enum status check_all_used(struct loader *l)
{
    for (size_t i = 0, n = gguf_n_tensors(l->g); i < n; i++) {
        const char *name = gguf_tensor_at(l->g, i)->name;
        char shown[96];

        if (!l->used[i])
            return loader_fail(
                l, ST_UNSUPPORTED,
                "tensor %s is no part of the %s architecture as supported "
                "here, and without it the model would be another one",
                utf8_printable(shown, sizeof shown, name, strlen(name)),
                l->m->arch->name);
    }
    return ST_OK;
}

enum status model_load(struct model **m, const struct gguf *g, struct weights *w,
                       struct err *err)
{
    struct model *new = calloc(1, sizeof *new);
    struct loader l = {.g = g, .w = w, .m = new, .err = err};
    enum status st;

    if (!new)
        return err_set(err, ST_NO_MEMORY, "no memory for a model's description");
    st = find_arch(&l, &new->arch);
    if (!st)
        st = make_room(&l);
    if (!st)
        st = new->arch->load(&l, new);
    if (!st)
        st = check_all_used(&l);
    free(l.used);
    if (st)
        model_free(new);
    else
        *m = new;
    return st;
}

void model_free(struct model *m)
{
    if (!m)
        return;
    free(m->vectors);
    for (int i = 0; i < MODEL_MAX_ROPES; i++)
        rope_free(&m->ropes[i]);
    free(m->layers);
    free(m);
}
