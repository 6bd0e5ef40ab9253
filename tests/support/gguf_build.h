/* SPDX-License-Identifier: MIT
 *
 * gguf_build.h - write small GGUF images in memory, right or wrong on purpose
 *
 * Only for tests: capacity is fixed and overflowing it aborts.
 */
#ifndef SLM_TESTS_GGUF_BUILD_H
#define SLM_TESTS_GGUF_BUILD_H

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct build {
    unsigned char *data; /* 64-byte aligned */
    size_t n;
};

#define BUILD_CAP ((size_t)1 << 16)

static inline struct build build_new(void)
{
    struct build b = {.data = aligned_alloc(64, BUILD_CAP)};

    assert(b.data);
    memset(b.data, 0, BUILD_CAP);
    return b;
}

static inline void build_free(struct build *b)
{
    free(b->data);
    b->data = NULL;
}

static inline void put(struct build *b, const void *p, size_t n)
{
    assert(b->n + n <= BUILD_CAP);
    memcpy(b->data + b->n, p, n);
    b->n += n;
}

static inline void put_u8(struct build *b, uint8_t v)
{
    put(b, &v, 1);
}

static inline void put_u32(struct build *b, uint32_t v)
{
    put(b, &v, 4);
}

static inline void put_u64(struct build *b, uint64_t v)
{
    put(b, &v, 8);
}

static inline void put_f32(struct build *b, float v)
{
    put(b, &v, 4);
}

static inline void put_str(struct build *b, const char *s)
{
    put_u64(b, strlen(s));
    put(b, s, strlen(s));
}

static inline void put_header(struct build *b, uint32_t version, uint64_t n_tensors,
                              uint64_t n_kvs)
{
    put(b, "GGUF", 4);
    put_u32(b, version);
    put_u64(b, n_tensors);
    put_u64(b, n_kvs);
}

/* A key and its type; the value follows. */
static inline void put_key(struct build *b, const char *key, uint32_t type)
{
    put_str(b, key);
    put_u32(b, type);
}

static inline void put_kv_u32(struct build *b, const char *key, uint32_t v)
{
    put_key(b, key, 4);
    put_u32(b, v);
}

static inline void put_kv_str(struct build *b, const char *key, const char *v)
{
    put_key(b, key, 8);
    put_str(b, v);
}

static inline void put_tensor(struct build *b, const char *name, uint32_t type,
                              uint32_t n_dims, const uint64_t *ne, uint64_t offset)
{
    put_str(b, name);
    put_u32(b, n_dims);
    for (uint32_t d = 0; d < n_dims; d++)
        put_u64(b, ne[d]);
    put_u32(b, type);
    put_u64(b, offset);
}

static inline void put_padding(struct build *b, size_t alignment)
{
    while (b->n % alignment)
        put_u8(b, 0);
}

static inline void put_zeros(struct build *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        put_u8(b, 0);
}

#endif
