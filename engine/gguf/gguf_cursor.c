/* SPDX-License-Identifier: MIT
 *
 * gguf_cursor.c - bounds-checked steps through the bytes of a GGUF file
 */
#include "engine/gguf/gguf_cursor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

enum status gguf_fail(struct gguf_cursor *c, const char *fmt, ...)
{
    char name[128], text[320];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return err_set(c->err, ST_INPUT, "%s: %s",
                   utf8_printable(name, sizeof name, c->g->path, strlen(c->g->path)),
                   text);
}

struct gguf_shown gguf_show(struct gguf_str s)
{
    struct gguf_shown out;

    utf8_printable(out.text, sizeof out.text, s.data, s.len);
    return out;
}

const void *cursor_take(struct gguf_cursor *c, uint64_t n)
{
    const size_t left = c->g->head_bytes - c->at;
    const void *p = c->g->image + c->at;

    if (n > left) {
        gguf_fail(c,
                  "%s needs %" PRIu64 " bytes at offset %zu, but only %zu are left; "
                  "the file is cut short or damaged, get it again",
                  c->where, n, c->at, left);
        return NULL;
    }
    c->at += (size_t)n;
    return p;
}

bool cursor_u32(struct gguf_cursor *c, uint32_t *out)
{
    const void *p = cursor_take(c, 4);

    if (p)
        memcpy(out, p, 4);
    return p != NULL;
}

bool cursor_u64(struct gguf_cursor *c, uint64_t *out)
{
    const void *p = cursor_take(c, 8);

    if (p)
        memcpy(out, p, 8);
    return p != NULL;
}

bool cursor_str(struct gguf_cursor *c, struct gguf_str *out)
{
    uint64_t len;
    const char *p;

    if (!cursor_u64(c, &len) || !(p = cursor_take(c, len)))
        return false;
    *out = (struct gguf_str){.data = p, .len = (size_t)len};
    return true;
}

bool cursor_name(struct gguf_cursor *c, const char *what, size_t i,
                 struct gguf_str *out)
{
    if (!cursor_str(c, out))
        return false;
    if (out->len == 0 || out->len > GGUF_MAX_NAME) {
        gguf_fail(c, "%s %zu has a name of %zu bytes; 1 to %d are allowed", what, i,
                  out->len, GGUF_MAX_NAME);
        return false;
    }
    if (memchr(out->data, '\0', out->len)) {
        gguf_fail(c, "%s %zu has a zero byte in its name '%s'", what, i,
                  gguf_show(*out).text);
        return false;
    }
    return true;
}

void *cursor_grow(struct gguf_cursor *c, void *list, size_t n, size_t *cap,
                  size_t elem_bytes)
{
    if (n < *cap)
        return list;
    /* A file has bytes for each element that it promises: no product is too large. */
    const size_t want = *cap ? *cap * 2 : 16;
    void *bigger = realloc(list, want * elem_bytes);

    if (!bigger)
        err_set(c->err, ST_NO_MEMORY, "cannot allocate a list of %zu entries for %s",
                want, c->where);
    else
        *cap = want;
    return bigger;
}
