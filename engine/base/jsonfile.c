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

enum status jsonfile_parse(struct jsonfile *f, const char *path, const char *text,
                           size_t len, struct err *err)
{
    json_error_t why = {.line = 0};

    static const char lfs[] = "version https://git-lfs";

    snprintf(f->path, sizeof f->path, "%s", path);
    if (len >= strlen(lfs) && !memcmp(text, lfs, strlen(lfs)))
        return err_set(
            err, ST_INPUT,
            "%s is a Git LFS pointer; fetch the file itself with `git lfs pull`", path);
    f->root = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    return check_object(f, &why, err);
}

/* The text of one regular file of at most max bytes, malloc'ed. */
static enum status read_whole(char **text, size_t *len, const char *path, size_t max,
                              struct err *err)
{
    struct stat st;
    FILE *f = stat(path, &st) ? NULL : fopen(path, "rb");
    enum status status = ST_OK;

    if (!f)
        return err_set_errno(err, ST_IO, "cannot open %s", path);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max)
        status = err_set(err, ST_INPUT, "%s is not a regular file of at most %zu bytes",
                         path, max);
    *len = (size_t)st.st_size;
    *text = status ? NULL : malloc(*len + 1);
    if (!status && !*text)
        status =
            err_set(err, ST_NO_MEMORY, "no memory for the %zu bytes of %s", *len, path);
    if (!status && fread(*text, 1, *len, f) != *len)
        status = err_set(err, ST_IO, "%s cannot be read to its end", path);
    fclose(f);
    if (status)
        free(*text);
    return status;
}

static bool make_path(char *out, size_t cap, const char *dir, const char *name)
{
    return snprintf(out, cap, "%s/%s", dir, name) < (int)cap;
}

/* dir/name into text, and its path into path[cap]. */
static enum status read_named(char **text, size_t *len, char *path, size_t cap,
                              const char *dir, const char *name, size_t max,
                              struct err *err)
{
    if (!make_path(path, cap, dir, name))
        return err_set(err, ST_USAGE, "the path of %s is longer than %zu bytes", name,
                       cap - 1);
    return read_whole(text, len, path, max, err);
}

enum status jsonfile_load(struct jsonfile *f, const char *dir, const char *name,
                          size_t max, struct err *err)
{
    char path[sizeof f->path], *text = NULL;
    size_t len = 0;
    enum status st = read_named(&text, &len, path, sizeof path, dir, name, max, err);

    if (st)
        return st;
    st = jsonfile_parse(f, path, text, len, err);
    free(text);
    return st;
}

enum status jsonfile_read_text(char **text, const char *dir, const char *name,
                               size_t max, struct err *err)
{
    char path[sizeof((struct jsonfile *)0)->path];
    size_t len = 0;
    const enum status st =
        read_named(text, &len, path, sizeof path, dir, name, max, err);

    if (!st)
        (*text)[len] = '\0';
    return st;
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
