/* SPDX-License-Identifier: MIT
 *
 * apikeys.h - API keys from a file, one a line
 *
 * A key is 16 to 255 printable characters without blanks. Lines that are empty or begin
 * with # are ignored.
 *
 * Threading: immutable after apikeys_read().
 */
#ifndef SLM_HARNESS_SERVE_HTTP_APIKEYS_H
#define SLM_HARNESS_SERVE_HTTP_APIKEYS_H

#include "engine/base/status.h"

#define APIKEYS_MAX      1024
#define APIKEYS_MIN_CHAR 16
#define APIKEYS_MAX_CHAR 255

struct apikeys;

/* Errors: ST_IO (cannot be read), ST_INPUT (no key, too many, too long or too short;
 * the message has the line's number and never the key), ST_NO_MEMORY. */
enum status apikeys_read(struct apikeys **k, const char *path, struct err *err);
void apikeys_free(struct apikeys *k); /* may be NULL */

/* The number of the key (>= 0) in "Bearer KEY"; -1: none of them, or header is NULL.
 * The time it takes does not depend on how much of a key is right. */
int apikeys_find(const struct apikeys *k, const char *header);

/* As apikeys_find(), for a key without a scheme. */
int apikeys_find_bare(const struct apikeys *k, const char *key);

#endif
