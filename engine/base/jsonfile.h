/* SPDX-License-Identifier: MIT
 *
 * jsonfile.h - untrusted JSON files, read with limits
 *
 * json_read.h says what is read, and how. Every message begins with the name of the
 * file.
 *
 * Threading: no shared state.
 */
#ifndef SLM_ENGINE_BASE_JSONFILE_H
#define SLM_ENGINE_BASE_JSONFILE_H

#include "engine/base/json_read.h"

struct jsonfile {
    char path[512]; /* cut to fit, for messages */
    json_t *root;   /* an object, owned here; NULL: no such file */
};

/* Load dir/name, one object within the limit. Errors: ST_IO (missing or unreadable),
 * ST_INPUT (too large, too many values, no JSON, no object), ST_NO_MEMORY. */
enum status jsonfile_load(struct jsonfile *f, const char *dir, const char *name,
                          struct json_limit limit, struct err *err);

/* Reads a file named by its path. */
enum status jsonfile_read(struct jsonfile *f, const char *path, struct json_limit limit,
                          struct err *err);

/* The same from memory; path is its name in messages, flags are json_read()'s. */
enum status jsonfile_parse(struct jsonfile *f, const char *path, const char *text,
                           size_t len, struct json_limit limit, unsigned flags,
                           struct err *err);
void jsonfile_free(struct jsonfile *f);

/* The text of dir/name, at most max bytes, malloc'ed and zero-terminated. Errors:
 * ST_IO, ST_INPUT (too large, no regular file, a zero byte), ST_NO_MEMORY. */
enum status jsonfile_read_text(char **text, const char *dir, const char *name,
                               size_t max, struct err *err);

/* Whether dir/name exists. Error: that of infile_exists(). */
enum status jsonfile_find(bool *exists, const char *dir, const char *name,
                          struct err *err);

/* For an advice: false also where that cannot be found out. */
bool jsonfile_exists(const char *dir, const char *name);

/* Member `key` of an object; NULL where it is missing or null. */
json_t *json_member(const json_t *object, const char *key);

/* Member `key` of object as a number in a range. A missing member leaves *out as it is.
 * Error: ST_INPUT (another type, or out of range; the message has the value). */
enum status json_get_int(const struct jsonfile *f, const json_t *object,
                         const char *key, int64_t min, int64_t max, int64_t *out,
                         struct err *err);
enum status json_get_real(const struct jsonfile *f, const json_t *object,
                          const char *key, double min, double max, double *out,
                          struct err *err);
enum status json_get_bool(const struct jsonfile *f, const json_t *object,
                          const char *key, bool *out, struct err *err);

#endif
