/* SPDX-License-Identifier: MIT
 *
 * gguf_put.c - a growing buffer, and the parts of a GGUF head written into it
 */
#include "engine/gguf/gguf_put.h"

#include <stdlib.h>
#include <string.h>

#include "engine/gguf/gguf_impl.h"

#define VERSION 3

void gguf_put(struct gguf_bytes *b, const void *data, size_t n)
{
    if (b->failed || !n)
        return;
    if (n > b->cap - b->n) {
        const size_t cap = (b->n + n) * 2;
        uint8_t *grown = realloc(b->data, cap);

        if (!grown) {
            b->failed = true;
            return;
        }
        b->data = grown;
        b->cap = cap;
    }
    memcpy(b->data + b->n, data, n);
    b->n += n;
}

/* GGUF is little-endian whatever the machine is. */
static void put_le(struct gguf_bytes *b, uint64_t v, int n)
{
    uint8_t le[8];

    for (int i = 0; i < n; i++)
        le[i] = (uint8_t)(v >> 8 * i);
    gguf_put(b, le, (size_t)n);
}

void gguf_put_u32(struct gguf_bytes *b, uint32_t v)
{
    put_le(b, v, 4);
}

static void put_u64(struct gguf_bytes *b, uint64_t v)
{
    put_le(b, v, 8);
}

void gguf_put_f32(struct gguf_bytes *b, float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    put_le(b, bits, 4);
}

static void put_strn(struct gguf_bytes *b, const char *s, size_t n)
{
    put_u64(b, n);
    gguf_put(b, s, n);
}

void gguf_put_str(struct gguf_bytes *b, const char *s)
{
    put_strn(b, s, strlen(s));
}

static void kv_head(struct gguf_kvs *k, const char *key, enum gguf_type type)
{
    gguf_put_str(&k->bytes, key);
    gguf_put_u32(&k->bytes, type);
    k->n++;
}

void gguf_kv_u32(struct gguf_kvs *k, const char *key, uint32_t v)
{
    kv_head(k, key, GGUF_U32);
    gguf_put_u32(&k->bytes, v);
}

void gguf_kv_u64(struct gguf_kvs *k, const char *key, uint64_t v)
{
    kv_head(k, key, GGUF_U64);
    put_u64(&k->bytes, v);
}

void gguf_kv_f32(struct gguf_kvs *k, const char *key, float v)
{
    kv_head(k, key, GGUF_F32);
    gguf_put_f32(&k->bytes, v);
}

void gguf_kv_bool(struct gguf_kvs *k, const char *key, bool v)
{
    kv_head(k, key, GGUF_BOOL);
    put_le(&k->bytes, v, 1);
}

void gguf_kv_str(struct gguf_kvs *k, const char *key, const char *v)
{
    kv_head(k, key, GGUF_STRING);
    gguf_put_str(&k->bytes, v);
}

void gguf_kv_array(struct gguf_kvs *k, const char *key, uint32_t elem_type, uint64_t n)
{
    kv_head(k, key, GGUF_ARRAY);
    gguf_put_u32(&k->bytes, elem_type);
    put_u64(&k->bytes, n);
}

void gguf_kv_copy(struct gguf_kvs *k, const struct gguf *g, const struct gguf_kv *kv)
{
    const size_t size = gguf_scalar_bytes(kv->elem_type);

    put_strn(&k->bytes, kv->key.data, kv->key.len);
    gguf_put_u32(&k->bytes, kv->type);
    if (kv->type == GGUF_ARRAY) {
        gguf_put_u32(&k->bytes, kv->elem_type);
        put_u64(&k->bytes, kv->n);
    }
    if (kv->elem_type != GGUF_STRING)
        gguf_put(&k->bytes, kv->data, size * (size_t)kv->n);
    for (uint64_t i = 0; i < kv->n && kv->elem_type == GGUF_STRING; i++) {
        struct gguf_str s;

        gguf_elem_str(g, kv, i, &s);
        put_strn(&k->bytes, s.data, s.len);
    }
    k->n++;
}

/* ---- the head -------------------------------------------------------------------- */

void gguf_put_head(struct gguf_bytes *b, uint64_t n_tensors, const struct gguf_kvs *k)
{
    gguf_put(b, "GGUF", 4);
    gguf_put_u32(b, VERSION);
    put_u64(b, n_tensors);
    put_u64(b, k->n);
    gguf_put(b, k->bytes.data, k->bytes.n);
    b->failed |= k->bytes.failed;
}

void gguf_put_tensor(struct gguf_bytes *b, const char *name, int n_dims,
                     const uint64_t *ne, uint32_t ggml_id, uint64_t offset)
{
    gguf_put_str(b, name);
    gguf_put_u32(b, (uint32_t)n_dims);
    for (int i = 0; i < n_dims; i++)
        put_u64(b, ne[i]);
    gguf_put_u32(b, ggml_id);
    put_u64(b, offset);
}

void gguf_put_padding(struct gguf_bytes *b)
{
    static const uint8_t zeros[GGUF_PUT_ALIGNMENT];

    gguf_put(b, zeros, (size_t)(gguf_put_aligned(b->n) - b->n));
}
