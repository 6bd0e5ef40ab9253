/* SPDX-License-Identifier: MIT
 *
 * jsonfile.c - jansson with limits, and members with types and ranges
 */
#include "engine/base/jsonfile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/infile.h"
#include "engine/base/utf8.h"

static enum status check_object(struct jsonfile *f, const json_error_t *why,
                                struct err *err)
{
    char text[JSON_ERROR_TEXT_LENGTH];

    if (!f->root)
        return err_set(err, ST_INPUT,
                       "%s is no JSON this program can read: line %d, column %d: %s",
                       f->path, why->line, why->column,
                       utf8_printable(text, sizeof text, why->text, strlen(why->text)));
    if (!json_is_object(f->root)) {
        jsonfile_free(f);
        return err_set(err, ST_INPUT, "%s holds no JSON object", f->path);
    }
    return ST_OK;
}

/* At most how many values a text has: each begins with a bracket or follows one, a
 * comma or a colon. */
static size_t count_values(const char *text, size_t len)
{
    size_t n = 1;

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '"') {
            for (i++; i < len && text[i] != '"'; i++)
                i += text[i] == '\\';
        } else {
            n += text[i] == ',' || text[i] == '[' || text[i] == '{';
        }
    }
    return n;
}

enum status jsonfile_parse(struct jsonfile *f, const char *path, const char *text,
                           size_t len, struct json_limit limit, struct err *err)
{
    static const char lfs[] = "version https://git-lfs";
    json_error_t why = {.line = 0};
    size_t n_values;

    snprintf(f->path, sizeof f->path, "%s", path);
    if (len >= strlen(lfs) && !memcmp(text, lfs, strlen(lfs)))
        return err_set(
            err, ST_INPUT,
            "%s is a Git LFS pointer; fetch the file itself with `git lfs pull`", path);
    n_values = count_values(text, len);
    if (len > limit.bytes || n_values > limit.values)
        return err_set(err, ST_INPUT,
                       "%s has %zu values in %zu bytes; at most %zu in %zu are read of "
                       "such a file",
                       path, n_values, len, limit.values, limit.bytes);
    f->root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    return check_object(f, &why, err);
}

static bool make_path(char *out, size_t cap, const char *dir, const char *name)
{
    return snprintf(out, cap, "%s/%s", dir, name) < (int)cap;
}

static enum status path_too_long(const char *name, size_t cap, struct err *err)
{
    return err_set(err, ST_USAGE, "the path of %s is longer than %zu bytes", name,
                   cap - 1);
}

enum status jsonfile_read(struct jsonfile *f, const char *path, struct json_limit limit,
                          struct err *err)
{
    char *text = NULL;
    size_t len = 0;
    enum status st = infile_read(&text, &len, path, limit.bytes, err);

    if (st)
        return st;
    st = jsonfile_parse(f, path, text, len, limit, err);
    free(text);
    return st;
}

enum status jsonfile_load(struct jsonfile *f, const char *dir, const char *name,
                          struct json_limit limit, struct err *err)
{
    char path[sizeof f->path];

    if (!make_path(path, sizeof path, dir, name))
        return path_too_long(name, sizeof path, err);
    return jsonfile_read(f, path, limit, err);
}

enum status jsonfile_read_text(char **text, const char *dir, const char *name,
                               size_t max, struct err *err)
{
    char path[sizeof((struct jsonfile *)0)->path];
    size_t len = 0;

    if (!make_path(path, sizeof path, dir, name))
        return path_too_long(name, sizeof path, err);
    return infile_read(text, &len, path, max, err);
}

void jsonfile_free(struct jsonfile *f)
{
    json_decref(f->root);
    f->root = NULL;
}

bool jsonfile_exists(const char *dir, const char *name)
{
    struct stat st;
    char path[512];

    return make_path(path, sizeof path, dir, name) && !stat(path, &st);
}

json_t *json_member(const json_t *object, const char *key)
{
    json_t *v = json_object_get(object, key);

    return json_is_null(v) ? NULL : v;
}

const char *json_text(const json_t *value)
{
    return json_string_value(value);
}

enum status json_get_int(const struct jsonfile *f, const json_t *object,
                         const char *key, int64_t min, int64_t max, int64_t *out,
                         struct err *err)
{
    const json_t *v = json_member(object, key);

    if (!v)
        return ST_OK;
    if (!json_is_integer(v))
        return err_set(err, ST_INPUT, "%s: %s is not a whole number", f->path, key);
    const int64_t n = json_integer_value(v);

    if (n < min || n > max)
        return err_set(err, ST_INPUT,
                       "%s: %s is %" PRId64 ", and %" PRId64 " to %" PRId64
                       " is possible",
                       f->path, key, n, min, max);
    *out = n;
    return ST_OK;
}

enum status json_get_real(const struct jsonfile *f, const json_t *object,
                          const char *key, double min, double max, double *out,
                          struct err *err)
{
    const json_t *v = json_member(object, key);

    if (!v)
        return ST_OK;
    if (!json_is_number(v))
        return err_set(err, ST_INPUT, "%s: %s is not a number", f->path, key);
    const double n = json_number_value(v);

    if (!(n >= min && n <= max))
        return err_set(err, ST_INPUT, "%s: %s is %g, and %g to %g is possible", f->path,
                       key, n, min, max);
    *out = n;
    return ST_OK;
}

enum status json_get_bool(const struct jsonfile *f, const json_t *object,
                          const char *key, bool *out, struct err *err)
{
    const json_t *v = json_member(object, key);

    if (!v)
        return ST_OK;
    if (!json_is_boolean(v))
        return err_set(err, ST_INPUT, "%s: %s is neither true nor false", f->path, key);
    *out = json_is_true(v);
    return ST_OK;
}
