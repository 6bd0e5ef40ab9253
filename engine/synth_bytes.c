/* SPDX-License-Identifier: MIT
 *
 * synth_bytes.c - bytes that grow, and GGUF key-value pairs written into them
 */
#include "engine/synth_parts.h"

#include <stdlib.h>
#include <string.h>

#include "engine/gguf.h"

void synth_put(struct synth_bytes *b, const void *data, size_t n)
{
    if (b->failed)
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
static void put_le(struct synth_bytes *b, uint64_t v, int n)
{
    uint8_t le[8];

    for (int i = 0; i < n; i++)
        le[i] = (uint8_t)(v >> 8 * i);
    synth_put(b, le, (size_t)n);
}

void synth_put_u32(struct synth_bytes *b, uint32_t v)
{
    put_le(b, v, 4);
}

void synth_put_u64(struct synth_bytes *b, uint64_t v)
{
    put_le(b, v, 8);
}

void synth_put_f32(struct synth_bytes *b, float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    put_le(b, bits, 4);
}

void synth_put_str(struct synth_bytes *b, const char *s)
{
    const size_t len = strlen(s);

    synth_put_u64(b, len);
    synth_put(b, s, len);
}

static void kv_head(struct synth_kvs *k, const char *key, enum gguf_type type)
{
    synth_put_str(&k->bytes, key);
    synth_put_u32(&k->bytes, type);
    k->n++;
}

void synth_kv_u32(struct synth_kvs *k, const char *key, uint32_t v)
{
    kv_head(k, key, GGUF_U32);
    synth_put_u32(&k->bytes, v);
}

void synth_kv_u64(struct synth_kvs *k, const char *key, uint64_t v)
{
    kv_head(k, key, GGUF_U64);
    synth_put_u64(&k->bytes, v);
}

void synth_kv_f32(struct synth_kvs *k, const char *key, float v)
{
    kv_head(k, key, GGUF_F32);
    synth_put_f32(&k->bytes, v);
}

void synth_kv_bool(struct synth_kvs *k, const char *key, bool v)
{
    kv_head(k, key, GGUF_BOOL);
    put_le(&k->bytes, v, 1);
}

void synth_kv_str(struct synth_kvs *k, const char *key, const char *v)
{
    kv_head(k, key, GGUF_STRING);
    synth_put_str(&k->bytes, v);
}

void synth_kv_array(struct synth_kvs *k, const char *key, uint32_t elem_type,
                    uint64_t n)
{
    kv_head(k, key, GGUF_ARRAY);
    synth_put_u32(&k->bytes, elem_type);
    synth_put_u64(&k->bytes, n);
}
