/* SPDX-License-Identifier: MIT
 *
 * loader_vectors.c - norms, biases and small matrices, which a model keeps as floats
 */
#include <assert.h>
#include <stdlib.h>

#include "engine/arch/loader_impl.h"

/* Read from the file, not through its mapping: the weights may be loaded only later,
 * and a page that is gone would be a signal. */
static enum status read_vector(struct loader *l, const struct gguf_tensor *t,
                               float *dst)
{
    kern_dequantize_fn *const to_floats =
        kern_best(KERN_OP_dequantize, (int)t->fmt, 1u << KERN_ISA_scalar)
            ->fn.dequantize;
    void *raw = malloc((size_t)t->bytes);
    enum status st;

    if (!raw)
        return loader_fail(l, ST_NO_MEMORY, "no memory for the tensor %s", t->name);
    st = gguf_read_rows(l->g, t, 0, t->n_elems / t->ne[0], false, raw, l->err);
    if (!st)
        to_floats(raw, dst, t->n_elems);
    free(raw);
    return st;
}

enum status loader_fetch(struct loader *l, const float **out,
                         const struct gguf_tensor *t, size_t n)
{
    float *dst;
    enum status st;

    if (t->fmt != KERN_FMT_f32 && t->fmt != KERN_FMT_f16 && t->fmt != KERN_FMT_bf16)
        return loader_fail(
            l, ST_UNSUPPORTED,
            "tensor %s has type %s, and a vector must be f32, f16 or bf16", t->name,
            kern_format_info(t->fmt)->name);
    l->m->weight_token_bytes += t->bytes;
    l->m->vector_bytes += n * sizeof(float);
    if (!l->w) {
        *out = NULL;
        return ST_OK;
    }
    /* The plan has counted the same vectors. */
    assert(n <= l->cap_floats - l->n_vector_floats);
    dst = l->m->vectors + l->n_vector_floats;
    l->n_vector_floats += n;
    st = read_vector(l, t, dst);
    if (!st)
        *out = dst;
    return st;
}

void loader_constant(struct loader *l, const float **out, size_t n, float value)
{
    float *dst;

    l->m->vector_bytes += n * sizeof(float);
    *out = NULL;
    if (!l->w)
        return;
    assert(n <= l->cap_floats - l->n_vector_floats);
    dst = l->m->vectors + l->n_vector_floats;
    l->n_vector_floats += n;
    for (size_t i = 0; i < n; i++)
        dst[i] = value;
    *out = dst;
}
