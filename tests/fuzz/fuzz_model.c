/* SPDX-License-Identifier: MIT
 *
 * fuzz_model.c - small models whose hyperparameters and tensors are changed, opened and
 * run
 *
 * The mutator changes values, dimensions, types and names of a GGUF's head. What is
 * planned for a model that opens is what it takes, and its logits are numbers.
 */
#include <math.h>

#include "engine/engine.h"
#include "tests/fuzz/support/model_file.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/random.h"

#define N_CTX 16

/* Weights are there; a context, activations and logits of what the head has are made.
 */
static const struct fuzz_bound bound = {
    .cpu_s = 5, .cpu_s_per_byte = 4e-6, .bytes = 256u << 20, .bytes_per_byte = 256};

static void run(struct slm *m)
{
    static const int32_t tokens[] = {1, 3, 2, 0};
    const struct slm_info *info = slm_info(m);
    struct err err = ERR_INIT;

    if (info->is_encoder || info->n_vocab < 4)
        return;
    if (!fuzz_accepted(slm_eval(m, tokens, 3, SLM_LOGITS_LAST, &err), &err) ||
        !fuzz_accepted(slm_eval(m, tokens + 3, 1, SLM_LOGITS_LAST, &err), &err))
        return;
    for (int i = 0; i < info->n_vocab; i++)
        if (!isfinite(slm_logits(m, 0)[i]))
            fuzz_fail("logit %d is no number", i);
}

static void use(const void *image, size_t size)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm_info planned;
    struct gguf *g;
    struct slm *m;

    p.image = image;
    p.image_bytes = size;
    p.name = "fuzz";
    p.n_ctx = N_CTX;
    if (!fuzz_accepted(gguf_parse(&g, image, size, "fuzz", &err), &err))
        return;
    const bool plans = fuzz_accepted(slm_plan(&planned, g, &p, &err), &err);

    gguf_close(g);
    if (!fuzz_accepted(slm_open(&m, &p, &err), &err))
        return;
    if (!plans || planned.kv_bytes != slm_info(m)->kv_bytes ||
        planned.scratch_bytes != slm_info(m)->scratch_bytes)
        fuzz_fail("%zu + %zu bytes are planned, %zu + %zu taken",
                  (size_t)planned.kv_bytes, (size_t)planned.scratch_bytes,
                  (size_t)slm_info(m)->kv_bytes, (size_t)slm_info(m)->scratch_bytes);
    run(m);
    slm_close(m);
}

static void read_model(const uint8_t *data, size_t size)
{
    void *image = image_copy(data, size);

    use(image, size);
    free(image);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_model, data, size, &bound);
}

/* ---- a head whose values are others ---------------------------------------------- */

static uint64_t other(struct choice_source *c, uint64_t v)
{
    static const uint64_t edge[] = {
        0, 1, 2, 3, 4, 8, 16, 64, 127, 128, 255, 4096, 65535, 0x7fffffff, 0xffffffff};

    switch (choose(c, 6)) {
    case 0:
        return v + 1;
    case 1:
        return v - 1;
    case 2:
        return v * 2;
    case 3:
        return v / 2;
    default:
        return edge[choose(c, sizeof edge / sizeof *edge)];
    }
}

static void change_number(struct choice_source *c, uint8_t *at, size_t bytes)
{
    uint64_t v = 0;

    memcpy(&v, at, bytes);
    v = other(c, v);
    memcpy(at, &v, bytes);
}

static void change_value(struct choice_source *c, uint8_t *at, enum gguf_type type)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    static const float floats[] = {0,      -0.0f, 1,        -1, 1e-6f,
                                   1e-38f, 1e30f, INFINITY, NAN};

    if (type == GGUF_F32)
        memcpy(at, &floats[choose(c, sizeof floats / sizeof *floats)], 4);
    else if (type == GGUF_BOOL)
        *at ^= 1;
    else if (bytes[type])
        change_number(c, at, bytes[type]);
}

static void change_kv(struct choice_source *c, uint8_t *data, const uint8_t *image,
                      const struct gguf_kv *kv)
{
    static const uint8_t bytes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    const enum gguf_type type = kv->elem_type;
    uint8_t *at = data + ((const uint8_t *)kv->data - image);

    if (type == GGUF_STRING || type == GGUF_ARRAY || !kv->n)
        data[(const uint8_t *)kv->key.data - image + choose(c, kv->key.len)] ^= 1;
    else
        change_value(c, at + choose(c, kv->n) * bytes[type], type);
}

/* Name, number of dimensions, dimensions, type, offset. */
static void change_tensor(struct choice_source *c, uint8_t *data, size_t size,
                          const struct gguf_tensor *t)
{
    const size_t len = strlen(t->name);
    uint8_t *at = memmem(data, size, t->name, len);

    if (!at || (size_t)(data + size - at) < len + 4 + 4 * 8 + 12)
        return;
    switch (choose(c, 6)) {
    case 0:
        at[choose(c, len)] ^= 1;
        break;
    case 1:
        change_number(c, at + len, 4);
        break;
    case 2:
        change_number(c, at + len + 4 + 8 * (size_t)t->n_dims, 4);
        break;
    case 3:
        change_number(c, at + len + 8 + 8 * (size_t)t->n_dims, 8);
        break;
    default:
        change_number(c, at + len + 4 + 8 * choose(c, (size_t)t->n_dims), 8);
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    struct choice_source c = choices_from(seed);
    uint8_t *image = image_copy(data, size);
    struct err err = ERR_INIT;
    struct gguf *g;

    if (gguf_parse(&g, image, size, "fuzz", &err)) {
        free(image);
        return LLVMFuzzerMutate(data, size, max_size);
    }
    for (size_t n = 1 + choose(&c, 4); n; n--) {
        if (choose(&c, 3) && gguf_n_kvs(g))
            change_kv(&c, data, image, gguf_kv_at(g, choose(&c, gguf_n_kvs(g))));
        else if (gguf_n_tensors(g))
            change_tensor(&c, data, size,
                          gguf_tensor_at(g, choose(&c, gguf_n_tensors(g))));
    }
    gguf_close(g);
    free(image);
    return size;
}
