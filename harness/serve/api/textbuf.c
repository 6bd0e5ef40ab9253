/* SPDX-License-Identifier: MIT
 *
 * textbuf.c - a growing text, JSON strings and numbers in it
 */
#include "harness/serve/api/textbuf.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"

/* What an empty one may keep. */
#define KEPT ((size_t)64 << 10)

/* Room for n more bytes and a zero: what has been taken off is given up first. */
static bool reserve(struct textbuf *b, size_t n)
{
    char *text;
    size_t cap;

    if (b->failed)
        return false;
    if (b->cap - b->len > n)
        return true;
    if (b->taken) {
        memmove(b->text, b->text + b->taken, b->len - b->taken);
        b->len -= b->taken;
        b->taken = 0;
    }
    if (b->cap - b->len > n)
        return true;
    cap = (b->len + n) * 2 + 256;
    text = realloc(b->text, cap);
    if (!text) {
        b->failed = true;
        return false;
    }
    b->text = text;
    b->cap = cap;
    return true;
}

void textbuf_put(struct textbuf *b, const char *bytes, size_t n)
{
    if (!reserve(b, n))
        return;
    if (n)
        memcpy(b->text + b->len, bytes, n);
    b->len += n;
    b->text[b->len] = '\0';
}

void textbuf_puts(struct textbuf *b, const char *text)
{
    textbuf_put(b, text, strlen(text));
}

void textbuf_printf(struct textbuf *b, const char *fmt, ...)
{
    char text[512];
    va_list args;
    int n;

    va_start(args, fmt);
    n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof text)
        b->failed = true;
    else
        textbuf_put(b, text, (size_t)n);
}

/* The escape of a character that cannot stand for itself, or NULL. */
static const char *escape(unsigned char c, char buf[8])
{
    switch (c) {
    case '"':
        return "\\\"";
    case '\\':
        return "\\\\";
    case '\n':
        return "\\n";
    case '\r':
        return "\\r";
    case '\t':
        return "\\t";
    default:
        if (c >= 0x20)
            return NULL;
        snprintf(buf, 8, "\\u%04x", c);
        return buf;
    }
}

void textbuf_put_json(struct textbuf *b, const char *bytes, size_t n)
{
    size_t plain = 0, i = 0; /* bytes[plain .. i) are put as they are */
    char buf[8];

    textbuf_put(b, "\"", 1);
    while (i < n) {
        const int len = utf8_char_len(bytes + i, n - i);
        const char *instead =
            len > 0 ? escape((unsigned char)bytes[i], buf) : "\xef\xbf\xbd";

        if (!instead) {
            i += (size_t)len;
            continue;
        }
        textbuf_put(b, bytes + plain, i - plain);
        textbuf_puts(b, instead);
        plain = ++i;
    }
    textbuf_put(b, bytes + plain, n - plain);
    textbuf_put(b, "\"", 1);
}

void textbuf_add(struct textbuf *b, const struct textbuf *other)
{
    b->failed |= other->failed;
    if (textbuf_left(other))
        textbuf_put(b, other->text + other->taken, textbuf_left(other));
}

void textbuf_add_json(struct textbuf *b, const struct textbuf *other)
{
    b->failed |= other->failed;
    textbuf_put_json(b, other->text ? other->text + other->taken : "",
                     textbuf_left(other));
}

void textbuf_put_number(struct textbuf *b, double v)
{
    textbuf_printf(b, "%.9g", isfinite(v) ? v + 0.0 : -9999.0); /* 0, not -0 */
}

size_t textbuf_left(const struct textbuf *b)
{
    return b->len - b->taken;
}

size_t textbuf_take(struct textbuf *b, char *out, size_t cap)
{
    const size_t left = textbuf_left(b), n = left < cap ? left : cap;

    if (n)
        memcpy(out, b->text + b->taken, n);
    b->taken += n;
    if (b->taken == b->len)
        b->taken = b->len = 0;
    if (!b->len && b->cap > KEPT) {
        free(b->text);
        b->text = NULL;
        b->cap = 0;
    }
    return n;
}

void textbuf_clear(struct textbuf *b)
{
    b->taken = b->len = 0;
}

void textbuf_free(struct textbuf *b)
{
    free(b->text);
    *b = (struct textbuf){0};
}
