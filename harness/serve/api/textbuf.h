/* SPDX-License-Identifier: MIT
 *
 * textbuf.h - bytes that are written at one end and taken off at the other
 *
 * What is put in after memory has run out is dropped, and `failed` is set: writers need
 * not check each call.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_SERVE_API_TEXTBUF_H
#define SLM_HARNESS_SERVE_API_TEXTBUF_H

#include <stdbool.h>
#include <stddef.h>

struct textbuf {
    char *text; /* [cap]; text[taken .. len) is in it; zero-terminated, NULL at first */
    size_t taken, len, cap;
    bool failed;
};

void textbuf_put(struct textbuf *b, const char *bytes, size_t n);
void textbuf_puts(struct textbuf *b, const char *text);

/* Up to 500 bytes. */
void textbuf_printf(struct textbuf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* bytes[n] as a JSON string with its quotes; malformed UTF-8 becomes U+FFFD. */
void textbuf_put_json(struct textbuf *b, const char *bytes, size_t n);

/* What is in another one, as it is and as a JSON string; failed, if that has. */
void textbuf_add(struct textbuf *b, const struct textbuf *other);
void textbuf_add_json(struct textbuf *b, const struct textbuf *other);

/* v as a JSON number. What is not finite becomes -9999, which readers of logarithms
 * expect. */
void textbuf_put_number(struct textbuf *b, double v);

/* Bytes that are in it. */
size_t textbuf_left(const struct textbuf *b);

/* Takes up to cap bytes off its beginning; how many. Much memory is given up with the
 * last of them. */
size_t textbuf_take(struct textbuf *b, char *out, size_t cap);

/* Empties it, and keeps the memory. */
void textbuf_clear(struct textbuf *b);

void textbuf_free(struct textbuf *b);

#endif
