/* SPDX-License-Identifier: MIT
 *
 * gguf_put.h - write the head of a GGUF file into memory
 *
 * A head is everything before the tensor data: gguf_put_head(), one
 * gguf_put_tensor() per tensor, gguf_put_padding(). The buffer
 * grows as it is written; running out of memory sets `failed`, to be checked once, at
 * the end.
 *
 * Threading: no shared state.
 */
#ifndef SLM_ENGINE_GGUF_GGUF_PUT_H
#define SLM_ENGINE_GGUF_GGUF_PUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/gguf/gguf.h"

#define GGUF_PUT_ALIGNMENT 32 /* general.alignment's default */

struct gguf_bytes {
    uint8_t *data; /* malloc'ed */
    size_t n, cap;
    bool failed; /* out of memory; later writes are dropped */
};

void gguf_put(struct gguf_bytes *b, const void *data, size_t n);
void gguf_put_u32(struct gguf_bytes *b, uint32_t v);
void gguf_put_f32(struct gguf_bytes *b, float v);
void gguf_put_str(struct gguf_bytes *b, const char *s); /* length, bytes */

/* GGUF key-value pairs; each counts itself into n. */
struct gguf_kvs {
    struct gguf_bytes bytes;
    uint64_t n;
};

void gguf_kv_u32(struct gguf_kvs *k, const char *key, uint32_t v);
void gguf_kv_u64(struct gguf_kvs *k, const char *key, uint64_t v);
void gguf_kv_f32(struct gguf_kvs *k, const char *key, float v);
void gguf_kv_bool(struct gguf_kvs *k, const char *key, bool v);
void gguf_kv_str(struct gguf_kvs *k, const char *key, const char *v);

/* Key and array head; n elements must follow in k->bytes. */
void gguf_kv_array(struct gguf_kvs *k, const char *key, uint32_t elem_type, uint64_t n);

/* A pair of another file, unchanged. */
void gguf_kv_copy(struct gguf_kvs *k, const struct gguf *g, const struct gguf_kv *kv);

/* Magic, version, counts and all pairs of k. */
void gguf_put_head(struct gguf_bytes *b, uint64_t n_tensors, const struct gguf_kvs *k);

/* One description; offset counts from the start of the data and is a multiple of
 * GGUF_PUT_ALIGNMENT. */
void gguf_put_tensor(struct gguf_bytes *b, const char *name, int n_dims,
                     const uint64_t *ne, uint32_t ggml_id, uint64_t offset);

/* Padding up to the data. */
void gguf_put_padding(struct gguf_bytes *b);

/* bytes rounded up to the alignment: where the next tensor may begin. */
static inline uint64_t gguf_put_aligned(uint64_t bytes)
{
    return (bytes + GGUF_PUT_ALIGNMENT - 1) / GGUF_PUT_ALIGNMENT * GGUF_PUT_ALIGNMENT;
}

#endif
