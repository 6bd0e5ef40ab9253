/* SPDX-License-Identifier: MIT
 *
 * json_read.h - the one door for JSON that others have written
 *
 * JSON is read as it is found. What nobody asks for refuses no text, and what is asked
 * for is looked at by its reader, which names the member:
 *
 *     18446744073709551616, 1e400,   become what json_no_number() knows: neither an
 *     NaN, Infinity                  integer of 64 bits nor a double holds them
 *     half of a surrogate pair       becomes U+FFFD
 *     a key that occurs twice        the last one counts, as in other readers
 *     a byte order mark              is skipped
 *
 * A text may hold U+0000 (jansson.h: json_string_length()): json_text() gives none of
 * those, since a reader that takes it for a C string would drop its end.
 *
 * The caller bounds bytes and values, jansson the depth (2048). A value takes up to a
 * hundred bytes of memory, whatever it is: "[0,0,0]" becomes forty times as large.
 *
 * Threading: no shared state.
 */
#ifndef SLM_ENGINE_BASE_JSON_READ_H
#define SLM_ENGINE_BASE_JSON_READ_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

struct json_limit {
    size_t bytes;  /* of the text */
    size_t values; /* members, elements and what they are in */
};

/* Malformed UTF-8 in texts becomes U+FFFD: a stream may cut a character in two. */
#define JSON_LOSSY 1u

/* A key that occurs twice is an error: where a format forbids that, or others look at
 * the same text. */
#define JSON_UNIQUE 2u

/* An object or a list, owned by the caller; name is that of the text, for messages.
 * Errors: ST_INPUT (beyond the limit, no JSON), ST_NO_MEMORY. */
enum status json_read(json_t **value, const char *name, const char *text, size_t len,
                      struct json_limit limit, unsigned flags, struct err *err);

/* As json_read(); NULL for text that is not valid JSON. */
json_t *json_try(const char *text, size_t len, struct json_limit limit, unsigned flags);

/* What stands for a number that was not read, as it was written; else NULL. */
const char *json_no_number(const json_t *value);

/* json_dumps() in which those numbers are as they were read; malloc'ed. NULL: no
 * memory.
 */
char *json_write(const json_t *value, size_t flags);

/* A whole number of 64 bits, written as 8 or as 8.0. */
bool json_whole(const json_t *value, int64_t *n);

/* The bits of a whole number from -2^63 to 2^64 - 1: for a seed, which is no quantity.
 */
bool json_bits(const json_t *value, uint64_t *bits);

/* A finite number; an integer beyond 64 bits is one. */
bool json_finite(const json_t *value, double *n);

/* Text of a string; NULL for anything else, and where it holds U+0000. */
const char *json_text(const json_t *value);

/* A value in a few words, for messages: a number as it was written or as near, a text
 * in quotes, or what it is. Returns buf. */
const char *json_shown(char *buf, size_t cap, const json_t *value);

#endif
