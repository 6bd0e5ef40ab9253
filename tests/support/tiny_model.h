/* SPDX-License-Identifier: MIT
 *
 * tiny_model.h - whole models as GGUF images, made in memory from a list of keys and
 * tensors with random weights
 *
 * Usage: tiny_new(); keys and tensors in any order; tiny_image() gives the image and
 * ends the list. Equal calls give equal weights.
 */
#ifndef SLM_TESTS_TINY_MODEL_H
#define SLM_TESTS_TINY_MODEL_H

#include "kernels/kernels.h"
#include "tests/support/test.h"

struct tiny {
    FILE *keys, *infos, *data;
    char *keys_at, *infos_at, *data_at;
    size_t keys_n, infos_n, data_n;
    uint64_t n_keys, n_tensors, rng;
    char arch[32];
};

static inline void tiny_u32(FILE *f, uint32_t v)
{
    fwrite(&v, sizeof v, 1, f);
}

static inline void tiny_u64(FILE *f, uint64_t v)
{
    fwrite(&v, sizeof v, 1, f);
}

static inline void tiny_str(FILE *f, const char *s)
{
    tiny_u64(f, strlen(s));
    fwrite(s, 1, strlen(s), f);
}

/* A key and its type; "." in front stands for the architecture's name. */
static inline void tiny_key(struct tiny *t, const char *key, uint32_t type)
{
    char full[96];

    snprintf(full, sizeof full, "%s%s", key[0] == '.' ? t->arch : "", key);
    tiny_str(t->keys, full);
    tiny_u32(t->keys, type);
    t->n_keys++;
}

static inline void tiny_key_u32(struct tiny *t, const char *key, uint32_t v)
{
    tiny_key(t, key, 4);
    tiny_u32(t->keys, v);
}

static inline void tiny_key_f32(struct tiny *t, const char *key, float v)
{
    tiny_key(t, key, 6);
    fwrite(&v, sizeof v, 1, t->keys);
}

static inline void tiny_key_bool(struct tiny *t, const char *key, bool v)
{
    tiny_key(t, key, 7);
    fputc(v, t->keys);
}

static inline void tiny_key_str(struct tiny *t, const char *key, const char *v)
{
    tiny_key(t, key, 8);
    tiny_str(t->keys, v);
}

static inline void tiny_new(struct tiny *t, const char *arch)
{
    *t = (struct tiny){.rng = 1};
    snprintf(t->arch, sizeof t->arch, "%s", arch);
    t->keys = open_memstream(&t->keys_at, &t->keys_n);
    t->infos = open_memstream(&t->infos_at, &t->infos_n);
    t->data = open_memstream(&t->data_at, &t->data_n);
    assert_true(t->keys && t->infos && t->data);
    tiny_key_str(t, "general.architecture", arch);
}

/* Zeros until the stream's length is a multiple of 32. */
static inline void tiny_pad(FILE *f)
{
    while (ftell(f) % 32)
        fputc(0, f);
}

/* Values as they are, in format fmt (k a multiple of its block). Unused dimensions
 * are 0. */
static inline void tiny_put(struct tiny *t, const char *name, enum kern_format fmt,
                            uint64_t k, uint64_t n_rows, uint64_t n_slices,
                            const float *values)
{
    const uint64_t ne[3] = {k, n_rows, n_slices};
    const uint32_t n_dims = n_slices ? 3 : n_rows ? 2 : 1;
    const size_t n = (size_t)(k * (n_rows ? n_rows : 1) * (n_slices ? n_slices : 1));
    void *block = malloc(kern_format_bytes(fmt, n));

    assert_non_null(block);
    tiny_str(t->infos, name);
    tiny_u32(t->infos, n_dims);
    for (uint32_t i = 0; i < n_dims; i++)
        tiny_u64(t->infos, ne[i]);
    tiny_u32(t->infos, kern_format_info(fmt)->ggml_id);
    tiny_pad(t->data);
    tiny_u64(t->infos, (uint64_t)ftell(t->data));
    kern_best(KERN_OP_quantize, (int)fmt, 1u << KERN_ISA_scalar)
        ->fn.quantize(values, NULL, block, n);
    fwrite(block, 1, kern_format_bytes(fmt, n), t->data);
    free(block);
    t->n_tensors++;
}

/* Uniform random weights around mean, within spread of it. */
static inline void tiny_random(struct tiny *t, const char *name, enum kern_format fmt,
                               uint64_t k, uint64_t n_rows, uint64_t n_slices,
                               float mean, float spread)
{
    const size_t n = (size_t)(k * (n_rows ? n_rows : 1) * (n_slices ? n_slices : 1));
    float *values = malloc(n * sizeof *values);

    assert_non_null(values);
    for (size_t i = 0; i < n; i++)
        values[i] = mean + spread * test_random_float(&t->rng);
    tiny_put(t, name, fmt, k, n_rows, n_slices, values);
    free(values);
}

/* The same for a layer's tensor: "blk.<layer>.<name>". */
static inline void tiny_layer(struct tiny *t, int layer, const char *name,
                              enum kern_format fmt, uint64_t k, uint64_t n_rows,
                              uint64_t n_slices, float mean, float spread)
{
    char full[96];

    snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    tiny_random(t, full, fmt, k, n_rows, n_slices, mean, spread);
}

/* The image, 64-byte aligned, to be freed; t is closed. */
static inline void *tiny_image(struct tiny *t, size_t *bytes)
{
    char *all = NULL, *image;
    size_t n = 0;
    FILE *f = open_memstream(&all, &n);

    assert_non_null(f);
    tiny_pad(t->data);
    fclose(t->keys);
    fclose(t->infos);
    fclose(t->data);
    fwrite("GGUF", 1, 4, f);
    tiny_u32(f, 3);
    tiny_u64(f, t->n_tensors);
    tiny_u64(f, t->n_keys);
    fwrite(t->keys_at, 1, t->keys_n, f);
    fwrite(t->infos_at, 1, t->infos_n, f);
    tiny_pad(f);
    fwrite(t->data_at, 1, t->data_n, f);
    fclose(f);
    image = aligned_alloc(64, (n + 63) / 64 * 64);
    assert_non_null(image);
    memcpy(image, all, n);
    *bytes = n;
    free(all);
    free(t->keys_at);
    free(t->infos_at);
    free(t->data_at);
    return image;
}

#endif
