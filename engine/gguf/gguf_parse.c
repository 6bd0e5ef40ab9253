/* SPDX-License-Identifier: MIT
 *
 * gguf_parse.c - from untrusted bytes to a struct gguf
 *
 *     magic u32 | version u32 | n_tensors u64 | n_kvs u64
 *     n_kvs     x  key string | type u32 | value
 *     n_tensors x  name string | n_dims u32 | ne u64 [n_dims] | type u32 | offset u64
 *     padding to a multiple of general.alignment | tensor data
 *
 * A string is a u64 length and that many bytes; an array is an element type u32,
 * a count u64 and the elements.
 *
 * Lists grow as their entries are read, so that memory follows the bytes of the file
 * and not the counts in its header.
 */
#include "engine/gguf/gguf_cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ALIGNMENT 32
#define MIN_ALIGNMENT     8
#define MAX_ALIGNMENT     (1u << 20)
#define MIN_KV_BYTES      14 /* key of one byte, type, value of one byte */
#define MIN_TENSOR_BYTES  33 /* name of one byte, one dimension */

/* ---- header ---------------------------------------------------------------------- */

/* Other files that users pass as GGUF files, by their first bytes. */
static const struct {
    const char *magic;
    const char *what;
} lookalikes[] = {
    {"version https://git-lfs",
     "a Git LFS pointer; fetch the file itself with `git lfs pull`"},
    {"ggjt", "an old ggjt file; convert the model to GGUF"},
    {"tjgg", "an old ggjt file; convert the model to GGUF"},
    {"fmgg", "an old ggmf file; convert the model to GGUF"},
    {"lmgg", "an old ggml file; convert the model to GGUF"},
    {"FUGG", "a GGUF file with its bytes swapped; convert it to little-endian"},
    {"PK\x03\x04",
     "a zip archive (a PyTorch model, perhaps); convert the model to GGUF"},
    {"<!DOCTYPE", "a web page, so the download failed"},
    {"<html", "a web page, so the download failed"},
};

static enum status read_magic(struct gguf_cursor *c)
{
    const unsigned char *image = c->g->image;
    unsigned char m[4] = {0};

    if (c->g->head_bytes >= 4 && !memcmp(image, "GGUF", 4)) {
        c->at = 4;
        return ST_OK;
    }
    for (size_t i = 0; i < sizeof lookalikes / sizeof lookalikes[0]; i++) {
        const size_t n = strlen(lookalikes[i].magic);

        if (c->g->head_bytes >= n && !memcmp(image, lookalikes[i].magic, n))
            return gguf_fail(c, "not a GGUF file but %s", lookalikes[i].what);
    }
    memcpy(m, image, c->g->head_bytes < 4 ? c->g->head_bytes : 4);
    return gguf_fail(
        c, "not a GGUF file: it begins with the bytes %02x %02x %02x %02x, not 'GGUF'",
        m[0], m[1], m[2], m[3]);
}

static enum status read_header(struct gguf_cursor *c, uint64_t *n_tensors,
                               uint64_t *n_kvs)
{
    uint32_t version;
    enum status st = read_magic(c);

    if (st)
        return st;
    c->where = "the header";
    if (!cursor_u32(c, &version))
        return c->err->code;
    if (version == 1)
        return gguf_fail(c, "GGUF version 1, which is obsolete; versions 2 and 3 can "
                            "be read, so convert the model again");
    if (version != 2 && version != 3) {
        const uint32_t swapped = __builtin_bswap32(version);

        if (swapped >= 1 && swapped <= 0xffff)
            return gguf_fail(c,
                             "a big-endian GGUF file (version %" PRIu32
                             " with its bytes swapped); convert it to little-endian",
                             swapped);
        return gguf_fail(c, "GGUF version %" PRIu32 "; versions 2 and 3 can be read",
                         version);
    }
    c->g->version = version;
    if (!cursor_u64(c, n_tensors) || !cursor_u64(c, n_kvs))
        return c->err->code;

    const size_t left = c->g->head_bytes - c->at;

    if (*n_kvs > left / MIN_KV_BYTES || *n_kvs >= STRTAB_NONE)
        return gguf_fail(
            c,
            "the header promises %" PRIu64
            " metadata entries, more than the remaining %zu bytes can hold",
            *n_kvs, left);
    if (*n_tensors > left / MIN_TENSOR_BYTES || *n_tensors >= STRTAB_NONE)
        return gguf_fail(c,
                         "the header promises %" PRIu64
                         " tensors, more than the remaining %zu bytes can hold",
                         *n_tensors, left);
    return ST_OK;
}

/* ---- metadata -------------------------------------------------------------------- */

static enum status check_bools(struct gguf_cursor *c, const struct gguf_kv *kv)
{
    const unsigned char *b = kv->data;

    for (uint64_t i = 0; i < kv->n; i++) {
        if (b[i] > 1)
            return gguf_fail(c,
                             "key '%s' has the boolean value %u; 0 and 1 are allowed",
                             gguf_show(kv->key).text, b[i]);
    }
    return ST_OK;
}

/* Record where each string of an array begins. */
static enum status index_strings(struct gguf_cursor *c, const struct gguf_kv *kv,
                                 uint64_t **offsets)
{
    uint64_t *at = NULL;
    size_t cap = 0;
    struct gguf_str s;

    for (uint64_t i = 0; i < kv->n; i++) {
        uint64_t *bigger = cursor_grow(c, at, i, &cap, sizeof *at);
        const size_t begin = c->at;

        if (!bigger)
            goto fail;
        at = bigger;
        if (!cursor_str(c, &s))
            goto fail;
        at[i] = begin - (size_t)((const unsigned char *)kv->data - c->g->image);
    }
    *offsets = at;
    return ST_OK;
fail:
    free(at);
    return c->err->code;
}

static enum status read_array(struct gguf_cursor *c, struct gguf_kv *kv,
                              uint64_t **strings)
{
    uint32_t elem_type;
    uint64_t total;

    if (!cursor_u32(c, &elem_type) || !cursor_u64(c, &kv->n))
        return c->err->code;
    if (elem_type == GGUF_ARRAY)
        return gguf_fail(c, "key '%s' is an array of arrays, which is not supported",
                         gguf_show(kv->key).text);
    if (elem_type > GGUF_F64)
        return gguf_fail(c, "key '%s' is an array of the unknown type %" PRIu32,
                         gguf_show(kv->key).text, elem_type);
    kv->elem_type = elem_type;
    kv->data = c->g->image + c->at;

    /* A string takes at least the 8 bytes of its length, so this bounds those too. */
    const size_t size = elem_type == GGUF_STRING ? 8 : gguf_scalar_bytes(elem_type);

    if (__builtin_mul_overflow(kv->n, size, &total) || total > c->g->head_bytes - c->at)
        return gguf_fail(
            c,
            "key '%s' promises %" PRIu64
            " elements of type %s, more than the remaining %zu bytes can hold",
            gguf_show(kv->key).text, kv->n, gguf_type_name(elem_type),
            c->g->head_bytes - c->at);
    if (elem_type == GGUF_STRING)
        return index_strings(c, kv, strings);
    c->at += (size_t)total;
    return elem_type == GGUF_BOOL ? check_bools(c, kv) : ST_OK;
}

static enum status read_value(struct gguf_cursor *c, struct gguf_kv *kv,
                              uint64_t **strings)
{
    uint32_t type;
    struct gguf_str s;

    if (!cursor_u32(c, &type))
        return c->err->code;
    if (type > GGUF_F64)
        return gguf_fail(c, "key '%s' has the unknown type %" PRIu32,
                         gguf_show(kv->key).text, type);
    kv->type = type;
    kv->elem_type = type;
    kv->n = 1;
    kv->data = c->g->image + c->at;
    if (type == GGUF_ARRAY)
        return read_array(c, kv, strings);
    if (type == GGUF_STRING)
        return cursor_str(c, &s) ? ST_OK : c->err->code;
    if (!cursor_take(c, gguf_scalar_bytes(type)))
        return c->err->code;
    return type == GGUF_BOOL ? check_bools(c, kv) : ST_OK;
}

static enum status read_metadata(struct gguf_cursor *c, size_t n_kvs)
{
    struct gguf *g = c->g;
    size_t cap_kvs = 0, cap_strings = 0;

    c->where = "the metadata";
    for (size_t i = 0; i < n_kvs; i++) {
        struct gguf_kv kv = {0};
        uint64_t *strings = NULL;
        void *bigger;

        if (!(bigger = cursor_grow(c, g->kvs, i, &cap_kvs, sizeof *g->kvs)))
            return c->err->code;
        g->kvs = bigger;
        if (!(bigger = cursor_grow(c, g->strings, i, &cap_strings, sizeof *g->strings)))
            return c->err->code;
        g->strings = bigger;
        if (!cursor_name(c, "metadata entry", i, &kv.key))
            return c->err->code;
        const enum status st = read_value(c, &kv, &strings);

        if (st)
            return st;
        g->kvs[i] = kv;
        g->strings[i] = strings;
        g->n_kvs = i + 1;
    }
    const enum status st = strtab_init(&g->kv_index, n_kvs, c->err);

    if (st)
        return st;
    for (size_t i = 0; i < n_kvs; i++) {
        const struct gguf_str key = g->kvs[i].key;

        if (strtab_put(&g->kv_index, key.data, (uint32_t)key.len, (uint32_t)i) !=
            STRTAB_NONE)
            return gguf_fail(c, "the key '%s' occurs twice", gguf_show(key).text);
    }
    return ST_OK;
}

static enum status read_alignment(struct gguf_cursor *c)
{
    uint64_t a = DEFAULT_ALIGNMENT;

    if (gguf_kv_find(c->g, "general.alignment") &&
        !gguf_get_u64(c->g, "general.alignment", &a))
        return gguf_fail(c, "general.alignment is not a whole number");
    if (a < MIN_ALIGNMENT || a > MAX_ALIGNMENT || (a & (a - 1)))
        return gguf_fail(c,
                         "general.alignment is %" PRIu64
                         "; powers of two from %d to %u are allowed",
                         a, MIN_ALIGNMENT, MAX_ALIGNMENT);
    c->g->alignment = (uint32_t)a;
    return ST_OK;
}

enum status gguf_parse_image(struct gguf *g, struct err *err)
{
    struct err unwanted = ERR_INIT;
    struct gguf_cursor c = {.g = g, .err = err ? err : &unwanted};
    uint64_t n_tensors = 0, n_kvs = 0;
    enum status st;

    if ((st = read_header(&c, &n_tensors, &n_kvs)) ||
        (st = read_metadata(&c, (size_t)n_kvs)) || (st = read_alignment(&c)) ||
        (st = gguf_read_layout(&c, n_tensors)))
        return st;
    return gguf_read_tensors(&c, (size_t)n_tensors);
}
