/* SPDX-License-Identifier: MIT
 *
 * jinja_json.c - `tojson`, as Python's json.dumps() writes it
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/jinja/jinja_impl.h"

struct dump {
    struct builder b;
    int indent; /* < 0: one line */
    const struct jv *item, *key;
    bool sort_keys, ascii;
};

static void put_escaped(struct dump *d, const struct jv *s)
{
    struct builder *b = &d->b;

    jinja_put_cstr(b, "\"", s->input);
    for (size_t i = 0; i < s->s.n;) {
        const bool mark = jinja_string_mark(s, i);
        const unsigned char c = (unsigned char)s->s.p[i];
        static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
        const char *at = c ? strchr(plain, c) : NULL;
        char text[16];
        int len = 1;

        if (at) {
            snprintf(text, sizeof text, "\\%c", letters[at - plain]);
            jinja_put_cstr(b, text, mark);
        } else if (c < 0x20) {
            snprintf(text, sizeof text, "\\u%04x", c);
            jinja_put_cstr(b, text, mark);
        } else if (c >= 0x80 && d->ascii) {
            const unsigned code = jinja_char_code(s->s.p + i, s->s.n - i, &len);

            if (code < 0x10000)
                snprintf(text, sizeof text, "\\u%04x", code);
            else
                snprintf(text, sizeof text, "\\u%04x\\u%04x",
                         0xd800 + ((code - 0x10000) >> 10),
                         0xdc00 + ((code - 0x10000) & 0x3ff));
            jinja_put_cstr(b, text, mark);
        } else {
            jinja_put_bytes(b, s->s.p + i, 1, mark);
        }
        i += (size_t)len;
    }
    jinja_put_cstr(b, "\"", s->input);
}

static void new_line(struct dump *d, int level)
{
    if (d->indent < 0)
        return;
    jinja_put_cstr(&d->b, "\n", false);
    for (int i = 0; i < level * d->indent; i++)
        jinja_put_cstr(&d->b, " ", false);
}

static void dump_value(struct dump *d, const struct jv *v, int level);

static void dump_list(struct dump *d, const struct jv_list *l, int level)
{
    jinja_put_cstr(&d->b, "[", false);
    for (size_t i = 0; i < l->n; i++) {
        if (i)
            jinja_put_string(&d->b, d->item);
        new_line(d, level + 1);
        dump_value(d, &l->v[i], level + 1);
    }
    if (l->n)
        new_line(d, level);
    jinja_put_cstr(&d->b, "]", false);
}

static int by_key(const void *a, const void *b)
{
    const struct jv *x = &((const struct jv_pair *)a)->key;
    const struct jv *y = &((const struct jv_pair *)b)->key;
    const size_t n = x->s.n < y->s.n ? x->s.n : y->s.n;
    const int order = n ? memcmp(x->s.p, y->s.p, n) : 0;

    return order ? order : (x->s.n > y->s.n) - (x->s.n < y->s.n);
}

/* A key as the text that JSON needs. */
static struct jv key_text(struct run *r, const struct jv *key)
{
    switch (key->kind) {
    case JV_STRING:
        return *key;
    case JV_NONE:
        return jv_cstr("null");
    case JV_BOOL:
        return jv_cstr(key->b ? "true" : "false");
    case JV_INT:
    case JV_FLOAT:
        return jv_str(r, key);
    default:
        jinja_run_fail(r, "a %s cannot be a key in JSON", jv_kind_name(key));
    }
}

static void dump_dict(struct dump *d, const struct jv_dict *dict, int level)
{
    struct run *r = d->b.r;
    struct jv_pair *v = jinja_arena_alloc(&r->arena, (dict->n + 1) * sizeof *v);

    for (size_t i = 0; i < dict->n; i++)
        v[i] = (struct jv_pair){key_text(r, &dict->v[i].key), dict->v[i].value};
    if (d->sort_keys && dict->n)
        qsort(v, dict->n, sizeof *v, by_key);
    jinja_put_cstr(&d->b, "{", false);
    for (size_t i = 0; i < dict->n; i++) {
        if (i)
            jinja_put_string(&d->b, d->item);
        new_line(d, level + 1);
        put_escaped(d, &v[i].key);
        jinja_put_string(&d->b, d->key);
        dump_value(d, &v[i].value, level + 1);
    }
    if (dict->n)
        new_line(d, level);
    jinja_put_cstr(&d->b, "}", false);
}

static void dump_value(struct dump *d, const struct jv *v, int level)
{
    struct run *r = d->b.r;

    jinja_run_enter(r);
    jinja_run_work(r, 1);
    switch (v->kind) {
    case JV_NONE:
        jinja_put_cstr(&d->b, "null", false);
        break;
    case JV_BOOL:
        jinja_put_cstr(&d->b, v->b ? "true" : "false", false);
        break;
    case JV_FLOAT:
        if (isfinite(v->f))
            jinja_put_float(&d->b, v->f, false);
        else
            jinja_put_cstr(&d->b,
                           isnan(v->f) ? "NaN"
                           : v->f > 0  ? "Infinity"
                                       : "-Infinity",
                           false);
        break;
    case JV_INT:
        jinja_put_repr(&d->b, v);
        break;
    case JV_STRING:
        put_escaped(d, v);
        break;
    case JV_LIST:
        dump_list(d, v->list, level);
        break;
    case JV_DICT:
        dump_dict(d, v->dict, level);
        break;
    default:
        jinja_run_fail(r, "tojson: %s '%.*s' has no form in JSON", jv_kind_name(v),
                       v->kind == JV_UNDEFINED ? (int)v->s.n : 0,
                       v->kind == JV_UNDEFINED ? v->s.p : "");
    }
    r->depth--;
}

struct jv jinja_json_dump(struct run *r, const struct jv *v, int indent,
                          const struct jv *item_separator,
                          const struct jv *key_separator, bool sort_keys,
                          bool ensure_ascii)
{
    const struct jv item = jv_cstr(indent < 0 ? ", " : ","), key = jv_cstr(": ");
    struct dump d = {{.r = r},
                     indent,
                     item_separator ? item_separator : &item,
                     key_separator ? key_separator : &key,
                     sort_keys,
                     ensure_ascii};

    dump_value(&d, v, 0);
    return jinja_built(&d.b);
}
