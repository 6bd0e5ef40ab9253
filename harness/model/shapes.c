/* SPDX-License-Identifier: MIT
 *
 * shapes.c - model shapes from configs/models/<name>.yaml
 *
 * The list of keys below is the schema, the struct that libcyaml fills with
 * text, and the conversion into a synth_shape.
 */
#include "harness/model/modelref.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "harness/base/program.h"
#include "harness/base/format.h"
#include "harness/base/parse.h"
#include "harness/base/suggest.h"
#include "harness/base/yamlfile.h"

#define SUFFIX ".yaml"

/* KEY(name, converter, optional) */
#define SHAPE_KEYS(KEY)                     \
    KEY(arch, word, 0)                      \
    KEY(n_layers, count, 0)                 \
    KEY(n_embd, count, 0)                   \
    KEY(n_ff, count, 0)                     \
    KEY(n_heads, count, 0)                  \
    KEY(n_kv_heads, count, 0)               \
    KEY(head_dim, count, 0)                 \
    KEY(n_vocab, count, 0)                  \
    KEY(n_ctx_train, count, 0)              \
    KEY(rope_base, number, 0)               \
    KEY(norm_eps, number, 0)                \
    KEY(tied_output, flag, 1)               \
    KEY(rope_freqs, flag, 1)                \
    KEY(n_rot, amount, 1)                   \
    KEY(q_rank, amount, 1)                  \
    KEY(kv_rank, amount, 1)                 \
    KEY(value_dim, amount, 1)               \
    KEY(window, amount, 1)                  \
    KEY(n_experts, amount, 1)               \
    KEY(n_experts_used, amount, 1)          \
    KEY(n_ff_shared, amount, 1)             \
    KEY(n_nextn, amount, 1)                 \
    KEY(n_dense, amount, 1)                 \
    KEY(n_ff_dense, amount, 1)              \
    KEY(full_attention_interval, amount, 1) \
    KEY(n_delta_k_heads, amount, 1)         \
    KEY(n_delta_v_heads, amount, 1)         \
    KEY(delta_head_dim, amount, 1)          \
    KEY(n_delta_conv, amount, 1)            \
    KEY(attention_layers, list, 1)          \
    KEY(n_ssm_groups, amount, 1)            \
    KEY(n_ssm_heads, amount, 1)             \
    KEY(ssm_head_dim, amount, 1)            \
    KEY(ssm_state_dim, amount, 1)           \
    KEY(n_conv, amount, 1)                  \
    KEY(window_interval, amount, 1)         \
    KEY(n_window_kv_heads, amount, 1)       \
    KEY(window_head_dim, amount, 1)         \
    KEY(n_kv_shared, amount, 1)             \
    KEY(n_ff_kv_shared, amount, 1)          \
    KEY(n_rope_turning, amount, 1)          \
    KEY(keys_as_values, flag, 1)            \
    KEY(n_per_layer, amount, 1)             \
    KEY(n_streams, amount, 1)               \
    KEY(n_low, amount, 1)                   \
    KEY(n_sparse, amount, 1)                \
    KEY(unrotated, flag, 1)                 \
    KEY(router_skew, skew, 1)               \
    KEY(pooling, name, 1)                   \
    KEY(n_pool_ff, amount, 1)               \
    KEY(qkv_bias, flag, 1)                  \
    KEY(all_bias, flag, 1)

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

/* ---- from text to values --------------------------------------------------------- */

static enum status to_word(const char *text, const char *what, char (*out)[TEXT_BYTES],
                           struct err *err)
{
    if (!text[0])
        return err_set(err, ST_INPUT, "%s is empty", what);
    memcpy(*out, text, TEXT_BYTES);
    return ST_OK;
}

/* The same, which may be absent. */
static enum status to_name(const char *text, const char *what, char (*out)[TEXT_BYTES],
                           struct err *err)
{
    (void)what;
    (void)err;
    memcpy(*out, text, TEXT_BYTES);
    return ST_OK;
}

/* Numbers with blanks between them, or nothing. */
static enum status to_list(const char *text, const char *what, char (*out)[TEXT_BYTES],
                           struct err *err)
{
    if (text[strspn(text, "0123456789 ")])
        return err_set(err, ST_INPUT, "%s: '%s' is no list of numbers", what, text);
    memcpy(*out, text, TEXT_BYTES);
    return ST_OK;
}

static enum status to_count(const char *text, const char *what, uint32_t *out,
                            struct err *err)
{
    long long v;

    if (parse_count(text, what, "", 1, UINT32_MAX, &v, err))
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

/* Where it is absent, it depends on the rest of the shape. */
static enum status to_skew(const char *text, const char *what, float *out,
                           struct err *err)
{
    *out = -1;
    return text[0] ? to_number(text, what, out, err) : ST_OK;
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

_Static_assert(sizeof(((struct synth_shape *)0)->arch) == TEXT_BYTES &&
                   sizeof(((struct synth_shape *)0)->pooling) == TEXT_BYTES &&
                   sizeof(((struct synth_shape *)0)->attention_layers) == TEXT_BYTES,
               "to_word, to_name and to_list copy all");

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
    const char *file = basename(path);
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
    if (s.router_skew < 0)
        s.router_skew = synth_can_skew(&s) ? SYNTH_ROUTER_SKEW : 0;
    if (!st)
        *shape = s;
    return st;
}

/* ---- where shapes are ------------------------------------------------------------ */

static bool has_suffix(const char *name)
{
    const size_t len = strlen(name), suffix = strlen(SUFFIX);

    return len > suffix && !strcmp(name + len - suffix, SUFFIX);
}

enum status shape_list(char ***names, int *n, struct err *err)
{
    struct path_list list;

    if (data_names(&list, "models", SUFFIX, err))
        return ST_NO_MEMORY;
    *names = list.path;
    *n = (int)list.n;
    return ST_OK;
}

/* ---- names that people type ------------------------------------------------------ */

#define MAX_PLAIN   64
#define MIN_COMMON  3 /* characters that names of one family begin with */
#define SIZE_WEIGHT 4 /* characters that a name's size counts as */
#define MAX_NEAR    3

/* meta-llama/Llama-3.1-8B-Instruct -> llama318binstruct and 8b */
struct plain_name {
    char text[MAX_PLAIN], size[8]; /* size: may be "" */
};

static bool is_size(const char *word, size_t n)
{
    return n >= 2 && n < sizeof((struct plain_name *)0)->size &&
           strspn(word, "0123456789.") == n - 1 &&
           (word[n - 1] == 'b' || word[n - 1] == 'm');
}

static void make_plain(struct plain_name *out, const char *name)
{
    char lower[MAX_PLAIN];
    size_t n = 0;

    snprintf(lower, sizeof lower, "%s", basename(name));
    *out = (struct plain_name){.text = ""};
    for (char *c = lower; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
        if (isalnum((unsigned char)*c))
            out->text[n++] = *c;
    }
    for (const char *word = lower; *word;) {
        const size_t len = strcspn(word, "-_: ");

        if (is_size(word, len))
            snprintf(out->size, sizeof out->size, "%.*s", (int)len, word);
        word += len + (word[len] != '\0');
    }
}

static int likeness(const struct plain_name *a, const char *name)
{
    struct plain_name b;
    int n = 0;

    make_plain(&b, name);
    while (a->text[n] && a->text[n] == b.text[n])
        n++;
    if (n < MIN_COMMON)
        return 0;
    return n + (*a->size && !strcmp(a->size, b.size) ? SIZE_WEIGHT : 0);
}

int shape_near(const char *name, char *near, size_t cap)
{
    struct path_list names;
    struct plain_name plain;
    int best = 1, n = 0;

    *near = '\0';
    if (data_names(&names, "models", SUFFIX, NULL))
        return 0;
    make_plain(&plain, name);
    for (size_t i = 0; i < names.n; i++) {
        const int like = likeness(&plain, names.path[i]);

        best = like > best ? like : best;
    }
    for (size_t i = 0; i < names.n && n < MAX_NEAR; i++)
        if (likeness(&plain, names.path[i]) == best)
            text_append(near, cap, "%s%s", n++ ? ", " : "", names.path[i]);
    path_list_free(&names);
    return n;
}

static enum status unknown_shape(const char *name, struct err *err)
{
    struct path_list names;
    char list[200] = "";

    if (data_names(&names, "models", SUFFIX, err))
        return ST_NO_MEMORY;
    const char *near = suggest(name, (const char *const *)names.path, (int)names.n);

    const int n_near = near ? 0 : shape_near(name, list, sizeof list);

    if (near || n_near == 1)
        err_set(err, ST_USAGE, "there is no shape '%.80s'; did you mean '%s'?", name,
                near ? near : list);
    else if (n_near)
        err_set(err, ST_USAGE,
                "there is no shape '%.80s'; near it: %s (`bench synth --list` has all)",
                name, list);
    else if (names.n)
        err_set(err, ST_USAGE,
                "there is no shape '%.80s'; `bench synth --list` lists them", name);
    else
        err_set(err, ST_USAGE,
                "there is no shape '%.80s': the folder that SLMBENCH_SHAPES names has "
                "no .yaml files; name another one, or none",
                name);
    path_list_free(&names);
    return ST_USAGE;
}

enum status shape_load(struct synth_shape *shape, const char *name, struct err *err)
{
    char path[PATH_MAX], file[sizeof shape->name + sizeof SUFFIX];

    if (has_suffix(name))
        return load_file(name, shape, err);
    if (name[0] && !strchr(name, '/') && strlen(name) < sizeof shape->name) {
        snprintf(file, sizeof file, "%s" SUFFIX, name);
        if (data_file_find(path, sizeof path, "models", file))
            return load_file(path, shape, err);
    }
    return unknown_shape(name, err);
}
