/* SPDX-License-Identifier: MIT
 *
 * gguf_kv.c - typed, lossless access to metadata values
 *
 * Values lie unaligned in the file, little-endian; the parser has checked that their
 * bytes are in the file.
 */
#include "engine/gguf/gguf_impl.h"

#include <assert.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values are read in the byte order of the file, little-endian");

size_t gguf_scalar_bytes(uint32_t type)
{
    switch (type) {
    case GGUF_U8:
    case GGUF_I8:
    case GGUF_BOOL:
        return 1;
    case GGUF_U16:
    case GGUF_I16:
        return 2;
    case GGUF_U32:
    case GGUF_I32:
    case GGUF_F32:
        return 4;
    case GGUF_U64:
    case GGUF_I64:
    case GGUF_F64:
        return 8;
    default:
        return 0;
    }
}

const char *gguf_type_name(enum gguf_type type)
{
    static const char *const names[] = {"u8",  "i8",  "u16",  "i16",    "u32",
                                        "i32", "f32", "bool", "string", "array",
                                        "u64", "i64", "f64"};

    return (unsigned)type < sizeof names / sizeof names[0] ? names[type] : "unknown";
}

/* An integer is |value| and a sign, so that both u64 and i64 fit. */
struct integer {
    uint64_t magnitude;
    bool negative;
};

static bool read_integer(const struct gguf_kv *kv, uint64_t i, struct integer *out)
{
    const size_t size = gguf_scalar_bytes(kv->elem_type);
    uint64_t bits = 0;

    assert(i < kv->n);
    switch (kv->elem_type) {
    case GGUF_U8:
    case GGUF_U16:
    case GGUF_U32:
    case GGUF_U64:
    case GGUF_I8:
    case GGUF_I16:
    case GGUF_I32:
    case GGUF_I64:
        break;
    default:
        return false;
    }
    memcpy(&bits, (const char *)kv->data + i * size, size);

    const bool is_signed = kv->elem_type == GGUF_I8 || kv->elem_type == GGUF_I16 ||
                           kv->elem_type == GGUF_I32 || kv->elem_type == GGUF_I64;
    const bool negative = is_signed && bits >> (8 * size - 1);

    if (negative && size < 8)
        bits |= ~(uint64_t)0 << (8 * size); /* extend the sign */
    *out =
        (struct integer){.magnitude = negative ? 0 - bits : bits, .negative = negative};
    return true;
}

bool gguf_elem_u64(const struct gguf_kv *kv, uint64_t i, uint64_t *out)
{
    struct integer v;

    if (!read_integer(kv, i, &v) || v.negative)
        return false;
    *out = v.magnitude;
    return true;
}

bool gguf_elem_i64(const struct gguf_kv *kv, uint64_t i, int64_t *out)
{
    struct integer v;

    if (!read_integer(kv, i, &v))
        return false;
    if (v.negative) {
        *out = (int64_t)(0 - v.magnitude);
        return true;
    }
    if (v.magnitude > INT64_MAX)
        return false;
    *out = (int64_t)v.magnitude;
    return true;
}

bool gguf_elem_f64(const struct gguf_kv *kv, uint64_t i, double *out)
{
    const char *data = kv->data;
    struct integer v;

    assert(i < kv->n);
    if (kv->elem_type == GGUF_F32) {
        float f;

        memcpy(&f, data + i * 4, 4);
        *out = (double)f;
        return true;
    }
    if (kv->elem_type == GGUF_F64) {
        memcpy(out, data + i * 8, 8);
        return true;
    }
    if (!read_integer(kv, i, &v))
        return false;
    /* Exact when at most 53 bits lie between the highest and the lowest one. */
    if (v.magnitude && v.magnitude >> __builtin_ctzll(v.magnitude) >= (uint64_t)1 << 53)
        return false;
    *out = v.negative ? -(double)v.magnitude : (double)v.magnitude;
    return true;
}

bool gguf_elem_bool(const struct gguf_kv *kv, uint64_t i, bool *out)
{
    assert(i < kv->n);
    if (kv->elem_type != GGUF_BOOL)
        return false;
    *out = ((const unsigned char *)kv->data)[i] != 0;
    return true;
}

/* Length and bytes of the string that begins at p; checked by the parser. */
static struct gguf_str string_at(const char *p)
{
    uint64_t len;

    memcpy(&len, p, 8);
    return (struct gguf_str){.data = p + 8, .len = (size_t)len};
}

bool gguf_elem_str(const struct gguf *g, const struct gguf_kv *kv, uint64_t i,
                   struct gguf_str *out)
{
    assert(i < kv->n);
    assert(kv >= g->kvs && kv < g->kvs + g->n_kvs);
    if (kv->elem_type != GGUF_STRING)
        return false;
    const uint64_t *offsets = g->strings[kv - g->kvs];

    *out = string_at((const char *)kv->data + (offsets ? offsets[i] : 0));
    return true;
}

/* The value of a key that holds one value, not an array; NULL otherwise. */
static const struct gguf_kv *scalar(const struct gguf *g, const char *key)
{
    const struct gguf_kv *kv = gguf_kv_find(g, key);

    return kv && kv->type != GGUF_ARRAY ? kv : NULL;
}

bool gguf_get_u64(const struct gguf *g, const char *key, uint64_t *out)
{
    const struct gguf_kv *kv = scalar(g, key);

    return kv && gguf_elem_u64(kv, 0, out);
}

bool gguf_get_f64(const struct gguf *g, const char *key, double *out)
{
    const struct gguf_kv *kv = scalar(g, key);

    return kv && gguf_elem_f64(kv, 0, out);
}

bool gguf_get_bool(const struct gguf *g, const char *key, bool *out)
{
    const struct gguf_kv *kv = scalar(g, key);

    return kv && gguf_elem_bool(kv, 0, out);
}

bool gguf_get_str(const struct gguf *g, const char *key, struct gguf_str *out)
{
    const struct gguf_kv *kv = scalar(g, key);

    return kv && gguf_elem_str(g, kv, 0, out);
}
