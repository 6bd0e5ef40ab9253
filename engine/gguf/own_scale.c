/* SPDX-License-Identifier: MIT
 *
 * own_scale.c - find and read X.scale of X.weight
 */
#include "engine/gguf/own_scale.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/isa.h"

#define MATRIX_END ".weight"
#define SCALE_END  ".scale"
#define INPUT_END  ".input_scale"

/* The tensor whose name has `to` for its end `from`; NULL: it has another end, or there
 * is no such tensor. */
static const struct gguf_tensor *with_end(const struct gguf *g,
                                          const struct gguf_tensor *t, const char *from,
                                          const char *to)
{
    const size_t n = strlen(t->name), n_from = strlen(from);
    char name[256];

    if (n < n_from || strcmp(t->name + n - n_from, from) != 0 ||
        n - n_from + strlen(to) >= sizeof name)
        return NULL;
    snprintf(name, sizeof name, "%.*s%s", (int)(n - n_from), t->name, to);
    return gguf_tensor_find(g, name);
}

/* Factors of a router's inputs (Gemma 4), and not the one of its weights. */
static bool is_of_inputs(const struct gguf_tensor *scale)
{
    static const char end[] = ".ffn_gate_inp" SCALE_END;
    const size_t n = strlen(scale->name), n_end = sizeof end - 1;

    return scale->n_elems > 1 && n > n_end && strcmp(scale->name + n - n_end, end) == 0;
}

const struct gguf_tensor *gguf_own_scale(const struct gguf *g,
                                         const struct gguf_tensor *t)
{
    const struct gguf_tensor *scale = with_end(g, t, MATRIX_END, SCALE_END);

    return scale && !is_of_inputs(scale) ? scale : NULL;
}

const struct gguf_tensor *gguf_input_scale(const struct gguf *g,
                                           const struct gguf_tensor *t)
{
    return with_end(g, t, MATRIX_END, INPUT_END);
}

const struct gguf_tensor *gguf_scaled_by(const struct gguf *g,
                                         const struct gguf_tensor *scale)
{
    const struct gguf_tensor *t = with_end(g, scale, INPUT_END, MATRIX_END);

    return t || is_of_inputs(scale) ? t : with_end(g, scale, SCALE_END, MATRIX_END);
}

enum status gguf_read_own_scale(const struct gguf *g, const struct gguf_tensor *t,
                                float *out, struct err *err)
{
    const struct gguf_tensor *scale = gguf_own_scale(g, t);
    const uint64_t n = t->ne[2] * t->ne[3];

    for (uint64_t i = 0; i < n; i++)
        out[i] = 1;
    if (!scale)
        return ST_OK;
    if (scale->n_elems != 1 && scale->n_elems != n)
        return err_set(err, ST_INPUT,
                       "%s: tensor %s has %llu scales, and the matrix has %llu slices",
                       gguf_path(g), scale->name, (unsigned long long)scale->n_elems,
                       (unsigned long long)n);
    if (scale->fmt == KERN_N_FMT || kern_format_info(scale->fmt)->block_elems != 1)
        return err_set(
            err, ST_UNSUPPORTED,
            "%s: tensor %s has a type that scales may not have; f32, f16 and "
            "bf16 are supported",
            gguf_path(g), scale->name);
    void *raw = malloc((size_t)scale->bytes);
    float first;
    enum status st =
        raw ? gguf_read_rows(g, scale, 0, scale->n_elems / scale->ne[0], false, raw,
                             err)
            : err_set(err, ST_NO_MEMORY, "no memory for the tensor %s", scale->name);

    if (!st)
        kern_best(KERN_OP_dequantize, (int)scale->fmt, 1u << KERN_ISA_scalar)
            ->fn.dequantize(raw, out, (size_t)scale->n_elems);
    first = out[0];
    for (uint64_t i = scale->n_elems; i < n; i++)
        out[i] = first;
    free(raw);
    return st;
}
