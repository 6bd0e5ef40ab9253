/* SPDX-License-Identifier: MIT
 *
 * jsonfile.h - JSON that somebody else wrote, read with limits
 *
 * Sizes are bounded by the caller, depth by jansson (2048); a key that occurs twice
 * is an error. Every message begins with the name of the file.
 *
 * Threading: none of it is shared.
 */
#ifndef SLM_ENGINE_BASE_JSONFILE_H
#define SLM_ENGINE_BASE_JSONFILE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/status.h"

struct jsonfile {
    char path[512];
    json_t *root; /* an object, ours; NULL: not there */
};

/* Load dir/name, at most max bytes, one object. Errors: ST_IO (it is not there, or
 * cannot be read), ST_INPUT (too large, no JSON, no object), ST_NO_MEMORY. */
enum status jsonfile_load(struct jsonfile *f, const char *dir, const char *name,
                          size_t max, struct err *err);

/* The same from memory; path is what messages call it. */
enum status jsonfile_parse(struct jsonfile *f, const char *path, const char *text,
                           size_t len, struct err *err);
void jsonfile_free(struct jsonfile *f);

/* The text of dir/name, at most max bytes, malloc'ed and ended by a 0. Errors: ST_IO,
 * ST_INPUT (too large, no regular file), ST_NO_MEMORY. */
enum status jsonfile_read_text(char **text, const char *dir, const char *name,
                               size_t max, struct err *err);

/* dir/name is there. */
bool jsonfile_exists(const char *dir, const char *name);

/* Member `key` of an object; NULL where it is missing or null. */
json_t *json_member(const json_t *object, const char *key);

/* Text of a string, NULL for anything else. */
const char *json_text(const json_t *value);

/* Bounded numbers out of member `key` of object. With missing members *out stays as
 * it is. Errors: ST_INPUT (another type, or out of range). */
enum status json_get_int(const struct jsonfile *f, const json_t *object,
                         const char *key, int64_t min, int64_t max, int64_t *out,
                         struct err *err);
enum status json_get_real(const struct jsonfile *f, const json_t *object,
                          const char *key, double min, double max, double *out,
                          struct err *err);
enum status json_get_bool(const struct jsonfile *f, const json_t *object,
                          const char *key, bool *out, struct err *err);

#endif
