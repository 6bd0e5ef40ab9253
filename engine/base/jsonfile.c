/* SPDX-License-Identifier: MIT
 *
 * jsonfile.c - JSON objects by their path, and members with types and ranges
 */
#include "engine/base/jsonfile.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "engine/base/infile.h"

enum status jsonfile_parse(struct jsonfile *f, const char *path, const char *text,
                           size_t len, struct json_limit limit, unsigned flags,
                           struct err *err)
{
    static const char lfs[] = "version https://git-lfs";
    enum status st;

    snprintf(f->path, sizeof f->path, "%s", path);
    f->root = NULL;
    if (len >= strlen(lfs) && !memcmp(text, lfs, strlen(lfs)))
        return err_set(
            err, ST_INPUT,
            "%s is a Git LFS pointer; fetch the file itself with `git lfs pull`", path);
    st = json_read(&f->root, f->path, text, len, limit, flags, err);
    if (st == ST_OK && !json_is_object(f->root)) {
        jsonfile_free(f);
        st = err_set(err, ST_INPUT, "%s holds no JSON object", f->path);
    }
    return st;
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
    st = jsonfile_parse(f, path, text, len, limit, 0, err);
    free(text);
    return st;
}

enum status jsonfile_load(struct jsonfile *f, const char *dir, const char *name,
                          struct json_limit limit, struct err *err)
{
    char path[PATH_MAX];

    if (!make_path(path, sizeof path, dir, name))
        return path_too_long(name, sizeof path, err);
    return jsonfile_read(f, path, limit, err);
}

enum status jsonfile_read_text(char **text, const char *dir, const char *name,
                               size_t max, struct err *err)
{
    char path[PATH_MAX];
    size_t len = 0;

    if (!make_path(path, sizeof path, dir, name))
        return path_too_long(name, sizeof path, err);
    const enum status st = infile_read(text, &len, path, max, err);

    if (st == ST_OK && strlen(*text) < len) {
        free(*text);
        return err_set(err, ST_INPUT, "%s has a zero byte, and is no text", path);
    }
    return st;
}

void jsonfile_free(struct jsonfile *f)
{
    json_decref(f->root);
    f->root = NULL;
}

enum status jsonfile_find(bool *exists, const char *dir, const char *name,
                          struct err *err)
{
    char path[PATH_MAX];

    if (!make_path(path, sizeof path, dir, name))
        return path_too_long(name, sizeof path, err);
    return infile_exists(exists, path, err);
}

bool jsonfile_exists(const char *dir, const char *name)
{
    struct err ignored = ERR_INIT;
    bool exists;

    return !jsonfile_find(&exists, dir, name, &ignored) && exists;
}

json_t *json_member(const json_t *object, const char *key)
{
    json_t *v = json_object_get(object, key);

    return json_is_null(v) ? NULL : v;
}

enum status json_get_int(const struct jsonfile *f, const json_t *object,
                         const char *key, int64_t min, int64_t max, int64_t *out,
                         struct err *err)
{
    const json_t *v = json_member(object, key);

    if (!v)
        return ST_OK;
    char shown[80];
    int64_t n;

    if (!json_whole(v, &n) || n < min || n > max)
        return err_set(err, ST_INPUT,
                       "%s: %s is %s, and whole numbers from %" PRId64 " to %" PRId64
                       " are possible",
                       f->path, key, json_shown(shown, sizeof shown, v), min, max);
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
    char shown[80];
    double n;

    if (!json_finite(v, &n) || !(n >= min && n <= max))
        return err_set(err, ST_INPUT,
                       "%s: %s is %s, and numbers from %g to %g are possible", f->path,
                       key, json_shown(shown, sizeof shown, v), min, max);
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
