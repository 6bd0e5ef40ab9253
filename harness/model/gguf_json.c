/* SPDX-License-Identifier: MIT
 *
 * gguf_json.c - a GGUF file described for programs
 *
 * JSON holds neither bytes that are not UTF-8 (they become \xNN), nor numbers
 * beyond 63 bits (strings then), nor infinities (null).
 */
#include "harness/model/gguf_report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/gguf/census.h"
#include "engine/gguf/gguf_panels.h"
#include "harness/base/textfile.h"

#define SHOWN_ELEMS 16

static json_t *json_bytes(const char *s, size_t len)
{
    const size_t cap = len * 4 + 8;
    json_t *j = json_stringn(s, len);
    char *text;

    if (j || !(text = malloc(cap)))
        return j;
    j = json_string(utf8_printable(text, cap, s, len));
    free(text);
    return j;
}

static json_t *json_u64(uint64_t v)
{
    char text[24];

    if (v <= INT64_MAX)
        return json_integer((json_int_t)v);
    snprintf(text, sizeof text, "%" PRIu64, v);
    return json_string(text);
}

static json_t *json_elem(const struct gguf *g, const struct gguf_kv *kv, uint64_t i)
{
    struct gguf_str s;
    uint64_t u;
    int64_t n;
    double d = 0;

    if (gguf_elem_str(g, kv, i, &s))
        return json_bytes(s.data, s.len);
    if (kv->elem_type == GGUF_BOOL)
        return json_boolean(((const unsigned char *)kv->data)[i]);
    if (gguf_elem_u64(kv, i, &u))
        return json_u64(u);
    if (gguf_elem_i64(kv, i, &n))
        return json_integer(n);
    gguf_elem_f64(kv, i, &d);
    json_t *real = json_real(d);

    return real ? real : json_null();
}

/* Arrays are cut: {"type": "string", "n": 32000, "first": [...]}. */
static json_t *json_value(const struct gguf *g, const struct gguf_kv *kv)
{
    if (kv->type != GGUF_ARRAY)
        return json_elem(g, kv, 0);
    json_t *first = json_array();

    for (uint64_t i = 0; i < kv->n && i < SHOWN_ELEMS; i++)
        json_array_append_new(first, json_elem(g, kv, i));
    return json_pack("{s:s, s:o, s:o}", "type", gguf_type_name(kv->elem_type), "n",
                     json_u64(kv->n), "first", first);
}

static json_t *json_metadata(const struct gguf *g)
{
    json_t *all = json_object();

    for (size_t i = 0; i < gguf_n_kvs(g); i++) {
        const struct gguf_kv *kv = gguf_kv_at(g, i);
        const size_t cap = kv->key.len * 4 + 8;
        char *key = malloc(cap);

        if (key)
            json_object_set_new(all,
                                utf8_printable(key, cap, kv->key.data, kv->key.len),
                                json_value(g, kv));
        free(key);
    }
    return all;
}

/* The type's name, or its number where it has none here. */
static json_t *json_type_name(uint32_t ggml_id)
{
    const char *name = gguf_ggml_name(ggml_id);

    if (ggml_id == CENSUS_UNKNOWN_TYPES)
        return json_null();
    return name ? json_string(name) : json_u64(ggml_id);
}

static json_t *json_tensors(const struct gguf *g)
{
    json_t *all = json_array();

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        json_t *shape = json_array();

        for (int d = 0; d < t->n_dims; d++)
            json_array_append_new(shape, json_u64(t->ne[d]));
        json_array_append_new(all,
                              json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "name",
                                        json_bytes(t->name, strlen(t->name)), "type",
                                        json_type_name(t->ggml_id), "shape", shape,
                                        "offset", json_u64(t->offset), "bytes",
                                        t->bytes ? json_u64(t->bytes) : json_null(),
                                        "in_panels", t->panel_rows > 0));
    }
    return all;
}

static json_t *json_types(const struct census *c)
{
    json_t *all = json_array();

    for (int i = 0; i < c->n_types; i++) {
        const struct census_type *t = &c->types[i];

        json_array_append_new(
            all, json_pack("{s:o, s:o, s:o, s:o}", "type", json_type_name(t->ggml_id),
                           "n_tensors", json_u64(t->n_tensors), "n_weights",
                           json_u64(t->n_elems), "bytes", json_u64(t->bytes)));
    }
    return all;
}

static json_t *json_key(const struct gguf *g, const char *key)
{
    struct gguf_str s;

    return gguf_get_str(g, key, &s) ? json_bytes(s.data, s.len) : json_null();
}

enum status gguf_report_json(const struct gguf *g, struct gguf_report_parts parts,
                             struct err *err)
{
    struct census c;

    census_take(&c, g);
    json_t *all = json_pack(
        "{s:o, s:o, s:i, s:i, s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}",
        "file", json_bytes(gguf_path(g), strlen(gguf_path(g))), "file_bytes",
        json_u64(gguf_image_bytes(g)), "version", (int)gguf_version(g), "alignment",
        (int)gguf_alignment(g), "packed", gguf_is_packed(g), "architecture",
        json_key(g, "general.architecture"), "name", json_key(g, "general.name"),
        "n_metadata", json_u64(gguf_n_kvs(g)), "n_tensors", json_u64(gguf_n_tensors(g)),
        "n_weights", json_u64(c.n_params), "weight_bytes", json_u64(c.bytes),
        "bytes_per_token", json_u64(c.token_bytes), "tied_output", c.tied_output,
        "types", json_types(&c));

    if (all && parts.metadata)
        json_object_set_new(all, "metadata", json_metadata(g));
    if (all && parts.tensors)
        json_object_set_new(all, "tensors", json_tensors(g));
    if (all && gguf_nearest_json(all, g, err)) {
        json_decref(all);
        return err->code;
    }
    return textfile_write_json("-", all, JSON_INDENT(2), err);
}
