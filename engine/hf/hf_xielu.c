/* SPDX-License-Identifier: MIT
 *
 * hf_xielu.c - the numbers of xIELU, which folders have in a tensor for each layer and
 * GGUF files in their metadata
 */
#include "engine/hf/hf_impl.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRED (-1e9F)

static const struct {
    const char *hf, *gguf;
    float missing; /* a buffer that some writers leave out; REQUIRED: none does */
} numbers[] = {
    {"alpha_p", "xielu.alpha_p", REQUIRED},
    {"alpha_n", "xielu.alpha_n", REQUIRED},
    {"beta", "xielu.beta", 0.5F},
    {"eps", "xielu.eps", -1e-6F},
};
#define N_NUMBERS (sizeof numbers / sizeof numbers[0])

/* Which number of which layer a tensor is; -1: none. */
static int number_of(const char *name, unsigned *layer)
{
    int end = 0;

    if (sscanf(name, "model.layers.%5u.mlp.act_fn.%n", layer, &end) != 1 || !end)
        return -1;
    for (size_t i = 0; i < N_NUMBERS; i++)
        if (!strcmp(name + end, numbers[i].hf))
            return (int)i;
    return -1;
}

static enum status read_one(const struct safetensors *s, const struct safetensor *t,
                            const char *path, float *out, struct err *err)
{
    unsigned char raw[4];

    if (t->fmt == KERN_N_FMT || t->n_elems != 1)
        return err_set(err, ST_INPUT,
                       "%s: a tensor of mlp.act_fn is no single number in F32, F16 or "
                       "BF16",
                       path);
    const enum status st = safetensors_read(s, t, 0, (size_t)t->bytes, raw, err);

    if (!st)
        kern_best(KERN_OP_dequantize, (int)t->fmt, 1u << KERN_ISA_scalar)
            ->fn.dequantize(raw, out, 1);
    return st;
}

static enum status put(struct hf_config *c, const float *v, size_t which,
                       struct err *err)
{
    gguf_kv_array(c->kvs, numbers[which].gguf, GGUF_F32, (uint64_t)c->n_layers);
    for (int64_t i = 0; i < c->n_layers; i++) {
        uint32_t bits;

        if (v[i] == REQUIRED) /* exact: what it was set to */
            return err_set(err, ST_INPUT, "%s: layer %d has no mlp.act_fn.%s",
                           c->file.path, (int)i, numbers[which].hf);
        memcpy(&bits, &v[i], sizeof bits);
        gguf_put_u32(&c->kvs->bytes, bits);
    }
    return ST_OK;
}

enum status hf_put_xielu(struct hf_config *c, const struct safetensors *s,
                         struct err *err)
{
    const size_t n = (size_t)c->n_layers;
    unsigned layer;
    enum status st = ST_OK;

    if (strcmp(c->arch->gguf, "apertus") != 0)
        return ST_OK;
    float *v = malloc(N_NUMBERS * n * sizeof *v + 1);

    if (!v)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu layers", n);
    for (size_t i = 0; i < N_NUMBERS * n; i++)
        v[i] = numbers[i / n].missing;
    for (size_t i = 0; !st && i < safetensors_count(s); i++) {
        const struct safetensor *t = safetensors_at(s, i);
        const int which = number_of(t->name, &layer);

        if (which >= 0 && layer < n)
            st = read_one(s, t, c->file.path, &v[(size_t)which * n + layer], err);
    }
    for (size_t i = 0; !st && i < N_NUMBERS; i++)
        st = put(c, v + i * n, i, err);
    free(v);
    return st;
}
