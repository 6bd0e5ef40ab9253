/* SPDX-License-Identifier: MIT
 *
 * shapes.c - model shapes from configs/models/<name>.yaml
 *
 * The list of keys below is the schema, the struct that libcyaml fills with
 * text, and the conversion into a synth_shape.
 */
#include "harness/model/modelref.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "harness/base/parse.h"
#include "harness/base/program.h"
#include "harness/base/suggest.h"
#include "harness/base/yamlfile.h"

#define SUFFIX   ".yaml"
#define MAX_DIRS 3

/* KEY(name, converter, optional) */
#define SHAPE_KEYS(KEY)            \
    KEY(arch, word, 0)             \
    KEY(n_layers, count, 0)        \
    KEY(n_embd, count, 0)          \
    KEY(n_ff, count, 0)            \
    KEY(n_heads, count, 0)         \
    KEY(n_kv_heads, count, 0)      \
    KEY(head_dim, count, 0)        \
    KEY(n_vocab, count, 0)         \
    KEY(n_ctx_train, count, 0)     \
    KEY(rope_base, number, 0)      \
    KEY(norm_eps, number, 0)       \
    KEY(tied_output, flag, 1)      \
    KEY(rope_freqs, flag, 1)       \
    KEY(n_rot, amount, 1)          \
    KEY(window, amount, 1)         \
    KEY(n_experts, amount, 1)      \
    KEY(n_experts_used, amount, 1) \
    KEY(n_ff_shared, amount, 1)    \
    KEY(qkv_bias, flag, 1)

#define TEXT_BYTES 32

struct shape_text {
#define KEY(name, kind, optional) char name[TEXT_BYTES];
    SHAPE_KEYS(KEY)
#undef KEY
};

static const cyaml_schema_field_t fields[] = {
#define KEY(name, kind, optional)                                                    \
    CYAML_FIELD_STRING(#name, (optional) ? CYAML_FLAG_OPTIONAL : CYAML_FLAG_DEFAULT, \
                       struct shape_text, name, 0),
    SHAPE_KEYS(KEY)
#undef KEY
        CYAML_FIELD_END};

static const cyaml_schema_value_t schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct shape_text, fields)};

/* ---- from text to values --------------------------------------------------- */

static enum status to_word(const char *text, const char *what, char (*out)[TEXT_BYTES],
                           struct err *err)
{
    if (!text[0])
        return err_set(err, ST_INPUT, "%s is empty", what);
    memcpy(*out, text, TEXT_BYTES);
    return ST_OK;
}

static enum status to_count(const char *text, const char *what, uint32_t *out,
                            struct err *err)
{
    long long v;

    if (parse_integer(text, what, 1, UINT32_MAX, &v, err))
        return ST_INPUT;
    *out = (uint32_t)v;
    return ST_OK;
}

/* A count that may be absent, which is 0. */
static enum status to_amount(const char *text, const char *what, uint32_t *out,
                             struct err *err)
{
    *out = 0;
    return text[0] ? to_count(text, what, out, err) : ST_OK;
}

static enum status to_number(const char *text, const char *what, float *out,
                             struct err *err)
{
    double v;

    if (parse_double(text, what, 0, 1e30, &v, err))
        return ST_INPUT;
    *out = (float)v;
    return ST_OK;
}

/* An absent optional key leaves the text empty. */
static enum status to_flag(const char *text, const char *what, int *out,
                           struct err *err)
{
    if (!strcasecmp(text, "yes") || !strcasecmp(text, "true"))
        *out = 1;
    else if (!text[0] || !strcasecmp(text, "no") || !strcasecmp(text, "false"))
        *out = 0;
    else
        return err_set(err, ST_INPUT, "%s: '%s' is neither yes nor no", what, text);
    return ST_OK;
}

_Static_assert(sizeof(((struct synth_shape *)0)->arch) == TEXT_BYTES,
               "to_word copies all");

static enum status convert(const char *path, const struct shape_text *text,
                           struct synth_shape *s, struct err *err)
{
    struct err why = ERR_INIT;
    char what[PATH_MAX + 32];

#define KEY(name, kind, optional)                       \
    snprintf(what, sizeof what, "%s: %s", path, #name); \
    if (to_##kind(text->name, what, &s->name, &why))    \
        return err_set(err, ST_INPUT, "%s", why.msg);
    SHAPE_KEYS(KEY)
#undef KEY
    return ST_OK;
}

/* "dir/yi-1.5-9b.yaml" -> "yi-1.5-9b" */
static enum status name_from_path(const char *path, char *out, size_t cap,
                                  struct err *err)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    const size_t len = strlen(file) - strlen(SUFFIX);

    if (len == 0 || len >= cap)
        return err_set(err, ST_USAGE,
                       "%s: a shape's file name has 1..%zu characters before " SUFFIX,
                       path, cap - 1);
    memcpy(out, file, len);
    out[len] = '\0';
    return ST_OK;
}

static enum status load_file(const char *path, struct synth_shape *shape,
                             struct err *err)
{
    struct synth_shape s = {.n_layers = 0};
    void *text = NULL;
    enum status st = name_from_path(path, s.name, sizeof s.name, err);

    if (!st)
        st = yaml_load_file(path, &schema, &text, err);
    if (st)
        return st;
    st = convert(path, text, &s, err);
    yaml_free_data(&schema, text);
    if (!st)
        *shape = s;
    return st;
}

/* ---- where shapes are ------------------------------------------------------ */

/* $SLMBENCH_SHAPES alone if it is set, else the source tree and what is
 * installed beside the executable. */
static int shape_dirs(char dirs[MAX_DIRS][PATH_MAX])
{
    const char *env = getenv("SLMBENCH_SHAPES");
    const char *self = self_path(), *slash = strrchr(self, '/');
    int n = 0;

    if (env && env[0]) {
        snprintf(dirs[n++], PATH_MAX, "%s", env);
        return n;
    }
    snprintf(dirs[n++], PATH_MAX, "%s/configs/models", SLM_SOURCE_DIR);
    if (slash)
        snprintf(dirs[n++], PATH_MAX, "%.*s/../share/slmbench/models",
                 (int)(slash - self), self);
    return n;
}

static bool has_suffix(const char *name)
{
    const size_t len = strlen(name), suffix = strlen(SUFFIX);

    return len > suffix && !strcmp(name + len - suffix, SUFFIX);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_listed(char *const *names, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (!strcmp(names[i], name))
            return true;
    }
    return false;
}

static void free_names(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

/* Adds the shapes of one directory that are not in the list yet. */
static enum status list_dir(const char *path, char ***names, int *n, struct err *err)
{
    DIR *dir = opendir(path);
    enum status st = ST_OK;
    struct dirent *e;

    while (dir && !st && (e = readdir(dir)) != NULL) {
        if (!has_suffix(e->d_name))
            continue;
        char *name = strdup(e->d_name);
        char **grown = realloc(*names, (size_t)(*n + 1) * sizeof *grown);

        if (grown)
            *names = grown;
        if (!name || !grown) {
            free(name);
            st = err_set(err, ST_NO_MEMORY, "no memory for the list of shapes");
            break;
        }
        name[strlen(name) - strlen(SUFFIX)] = '\0';
        if (is_listed(*names, *n, name))
            free(name);
        else
            (*names)[(*n)++] = name;
    }
    if (dir)
        closedir(dir);
    return st;
}

enum status shape_list(char ***names, int *n, struct err *err)
{
    char dirs[MAX_DIRS][PATH_MAX];
    const int n_dirs = shape_dirs(dirs);
    char **found = NULL;
    int n_found = 0;

    for (int i = 0; i < n_dirs; i++) {
        const enum status st = list_dir(dirs[i], &found, &n_found, err);

        if (st) {
            free_names(found, n_found);
            return st;
        }
    }
    if (n_found)
        qsort(found, (size_t)n_found, sizeof *found, compare_names);
    *names = found;
    *n = n_found;
    return ST_OK;
}

static enum status unknown_shape(const char *name, struct err *err)
{
    char list[320] = "", **names;
    int n = 0;

    if (shape_list(&names, &n, err))
        return ST_NO_MEMORY;
    for (int i = 0; i < n; i++) {
        const size_t used = strlen(list);

        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *near = suggest(name, (const char *const *)names, n);

    if (near)
        err_set(err, ST_USAGE, "there is no shape '%.80s'; did you mean '%s'?", name,
                near);
    else if (n)
        err_set(err, ST_USAGE, "there is no shape '%.80s'; there are: %s", name, list);
    else
        err_set(err, ST_USAGE,
                "there is no shape '%.80s': no shapes were found at all; set "
                "$SLMBENCH_SHAPES to the directory of their .yaml files",
                name);
    free_names(names, n);
    return ST_USAGE;
}

enum status shape_load(struct synth_shape *shape, const char *name, struct err *err)
{
    char dirs[MAX_DIRS][PATH_MAX], path[PATH_MAX + 80];

    if (has_suffix(name))
        return load_file(name, shape, err);
    if (name[0] && !strchr(name, '/') && strlen(name) < sizeof shape->name) {
        const int n_dirs = shape_dirs(dirs);

        for (int i = 0; i < n_dirs; i++) {
            const int len = snprintf(path, sizeof path, "%s/%s" SUFFIX, dirs[i], name);

            if (len < (int)sizeof path && !access(path, F_OK))
                return load_file(path, shape, err);
        }
    }
    return unknown_shape(name, err);
}
