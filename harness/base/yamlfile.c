/* SPDX-License-Identifier: MIT
 *
 * yamlfile.c - libcyaml's log lines as one sentence
 */
#include "harness/base/yamlfile.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/infile.h"
#include "harness/base/format.h"
#include "harness/base/program.h"
#include "harness/base/suggest.h"
#include "harness/base/textfile.h"

#define MAX_KEYS 64

/* The first error message and the line that the first line of its backtrace names. */
struct yaml_problem {
    char text[160];
    int line;
};

/* Gets errors alone, by config_for(). */
static void listen(cyaml_log_t level, void *ctx, const char *fmt, va_list args)
{
    struct yaml_problem *c = ctx;
    char text[256];
    const char *p = text, *at;

    (void)level;
    vsnprintf(text, sizeof text, fmt, args);
    text[strcspn(text, "\n")] = '\0';
    if (!strncmp(p, "Load: ", 6))
        p += 6;
    if (!c->text[0])
        snprintf(c->text, sizeof c->text, "%.*s", (int)sizeof c->text - 1, p);
    else if (!c->line && (at = strstr(p, "(line: ")) != NULL)
        c->line = atoi(at + 7);
}

static cyaml_config_t config_for(struct yaml_problem *c)
{
    const cyaml_config_t config = {.log_fn = listen,
                                   .log_ctx = c,
                                   .log_level = CYAML_LOG_ERROR,
                                   .mem_fn = cyaml_mem,
                                   .flags = CYAML_CFG_NO_ALIAS};

    return config;
}

/* A key of the schema's own mapping that the unknown one may have meant. */
static const char *near_key(const cyaml_schema_value_t *schema, const char *key)
{
    const char *names[MAX_KEYS];
    int n = 0;

    for (const cyaml_schema_field_t *f = schema->mapping.fields; f->key; f++) {
        assert(n < MAX_KEYS);
        names[n++] = f->key;
    }
    return suggest(key, names, n);
}

static const char list_expected[] = "here a list is expected";
static const char text_expected[] = "here a single value is expected";

/* Only for values the line is right: for keys libcyaml reports the one before. */
static enum status explain(const char *path, const cyaml_schema_value_t *schema,
                           cyaml_err_t code, const struct yaml_problem *c,
                           struct err *err)
{
    const char *colon = strrchr(c->text, ':');
    const char *key = colon && colon[1] ? colon + 2 : "";
    char line[40] = "";

    if (code == CYAML_ERR_MAPPING_FIELD_MISSING)
        return err_set(err, ST_INPUT, "%s: the key '%s' is missing", path, key);
    if (code == CYAML_ERR_INVALID_KEY) {
        const char *near = near_key(schema, key);

        return err_set(err, ST_INPUT, "%s: there is no key '%s'%s%s%s", path, key,
                       near ? "; did you mean '" : "", near ? near : "",
                       near ? "'?" : "");
    }
    if (code == CYAML_ERR_LIBYAML_PARSER || code == CYAML_ERR_LIBYAML_EVENT_INIT) {
        if (c->line)
            snprintf(line, sizeof line, ", line %d or below", c->line);
        return err_set(err, ST_INPUT,
                       "%s%s: a bracket or a quotation mark is not closed, or a line "
                       "is not indented like the others",
                       path, line);
    }
    if (strstr(c->text, "already seen"))
        return err_set(err, ST_INPUT, "%s: the key '%s' is there twice", path, key);
    if (strstr(c->text, "Expecting SEQUENCE"))
        return err_set(err, ST_INPUT, "%s, line %d: %s, in brackets: [a, b]", path,
                       c->line, list_expected);
    if (strstr(c->text, "Expecting STRING"))
        return err_set(err, ST_INPUT, "%s, line %d: %s, without brackets", path,
                       c->line, text_expected);
    if (c->line)
        return err_set(err, ST_INPUT, "%s, line %d: %s", path, c->line, c->text);
    return err_set(err, ST_INPUT, "%s: %s", path,
                   c->text[0] ? c->text : cyaml_strerror(code));
}

/* Files inside the program are as any other. */
static enum status read_text(char **text, size_t *len, const char *path,
                             struct err *err)
{
    size_t n;

    return data_inside_text(path, &n)
               ? textfile_read(path, YAMLFILE_MAX_BYTES, text, len, err)
               : infile_read(text, len, path, YAMLFILE_MAX_BYTES, err);
}

enum status yaml_load_file(const char *path, const cyaml_schema_value_t *schema,
                           void **data, struct err *err)
{
    struct yaml_problem yaml_problem = {.line = 0};
    const cyaml_config_t config = config_for(&yaml_problem);
    cyaml_data_t *loaded = NULL;
    char *text = NULL;
    size_t len = 0;

    if (read_text(&text, &len, path, err))
        return err->code;
    const cyaml_err_t code =
        cyaml_load_data((const uint8_t *)text, len, &config, schema, &loaded, NULL);

    free(text);
    if (code != CYAML_OK)
        return explain(path, schema, code, &yaml_problem, err);
    if (!loaded)
        return err_set(err, ST_INPUT, "%s is empty", path);
    *data = loaded;
    return ST_OK;
}

void yaml_free_data(const cyaml_schema_value_t *schema, void *data)
{
    struct yaml_problem yaml_problem = {.line = 0};
    const cyaml_config_t config = config_for(&yaml_problem);

    cyaml_free(&config, schema, data, 0);
}

/* ---- a list of entries ----------------------------------------------------------- */

/* As libcyaml fills it; v is of texts [v_count]. */
struct list_file {
    char *v;
    unsigned v_count;
};

static enum status convert_list(char *v, const struct list_file *file, const char *path,
                                const struct yaml_list *list, struct err *err)
{
    for (unsigned i = 0; i < file->v_count; i++) {
        struct err why = ERR_INIT;
        char what[4200];

        snprintf(what, sizeof what, "%.4000s: %s %u", format_path(path).text,
                 list->entry, i + 1);
        if (list->convert(v + i * list->bytes, file->v + i * list->text_bytes, what,
                          &why))
            return err_set(err, ST_INPUT, "%s", why.msg);
    }
    return ST_OK;
}

enum status yaml_load_list(void **v, size_t *n, const char *path,
                           const struct yaml_list *list, struct err *err)
{
    cyaml_schema_value_t entry = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct list_file, list->fields)};
    cyaml_schema_field_t fields[] = {CYAML_FIELD_SEQUENCE(list->key, CYAML_FLAG_POINTER,
                                                          struct list_file, v, &entry,
                                                          1, list->most),
                                     CYAML_FIELD_END};
    const cyaml_schema_value_t schema = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct list_file, fields)};
    struct list_file *file;
    void *data = NULL;
    char *made;

    entry.data_size = (uint32_t)list->text_bytes;
    fields[0].value.data_size = (uint32_t)list->text_bytes;
    enum status st = yaml_load_file(path, &schema, &data, err);

    if (st)
        return st;
    file = data;
    made = calloc(file->v_count + 1u, list->bytes);
    st = made ? convert_list(made, file, path, list, err)
              : err_set(err, ST_NO_MEMORY, "no memory for the %s of %.300s", list->key,
                        path);
    if (st == ST_OK) {
        *v = made;
        *n = file->v_count;
    } else {
        free(made);
    }
    yaml_free_data(&schema, data);
    return st;
}

/* ---- keys of texts --------------------------------------------------------------- */

#define MAX_LIST 256 /* items */

/* A key as libcyaml fills it; NULL where it is absent. */
struct raw {
    char *text, **items;
    unsigned items_count;
};

static const cyaml_schema_value_t text_value = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, 4096)};

static cyaml_schema_field_t field_of(const struct yaml_key *key, bool as_text,
                                     size_t at)
{
    const bool is_list = key->is_list && !(as_text && key->or_text);
    static const cyaml_schema_field_t one = CYAML_FIELD_STRING_PTR(
        "", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw, text, 0, 4096);
    static const cyaml_schema_field_t list =
        CYAML_FIELD_SEQUENCE("", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, struct raw,
                             items, &text_value, 1, MAX_LIST);
    cyaml_schema_field_t f = is_list ? list : one;

    f.key = key->name;
    f.data_offset += (uint32_t)(at * sizeof(struct raw));
    if (is_list)
        f.count_offset += (uint32_t)(at * sizeof(struct raw));
    return f;
}

/* "1,2,4-8", malloc'ed; NULL: no memory. */
static char *join(char *const *items, unsigned n)
{
    size_t len = 1;
    char *text;

    for (unsigned i = 0; i < n; i++)
        len += strlen(items[i]) + 1;
    text = malloc(len);
    if (!text)
        return NULL;
    *text = '\0';
    for (unsigned i = 0; i < n; i++) {
        strcat(text, i ? "," : "");
        strcat(text, items[i]);
    }
    return text;
}

static enum status take_key(const struct raw *raw, const char *key, const char *path,
                            yaml_take_fn *take, void *arg, struct err *err)
{
    char *const *items = raw->items ? raw->items : (char *const *)&raw->text;
    const unsigned n = raw->items ? raw->items_count : 1;
    char what[512], *text;
    enum status st;

    if (!raw->items && !raw->text)
        return ST_OK;
    text = join(items, n);
    if (!text)
        return err_set(err, ST_NO_MEMORY, "no memory for a list");
    snprintf(what, sizeof what, "%.400s: %.80s", path, key);
    st = take(arg, key, text, (const char *const *)items, n, what, err);
    free(text);
    return st;
}

/* A file, with those keys that may be either as lists, or as texts. */
struct keys_file {
    cyaml_schema_field_t fields[YAML_MAX_KEYS + 1];
    cyaml_schema_value_t schema;
    void *data;
};

static enum status load_keys(struct keys_file *f, const char *path,
                             const struct yaml_key *keys, size_t n, bool as_text,
                             struct err *err)
{
    f->schema = (cyaml_schema_value_t){.type = CYAML_MAPPING,
                                       .flags = CYAML_FLAG_POINTER,
                                       .data_size = sizeof(struct raw[YAML_MAX_KEYS])};
    for (size_t i = 0; i < n; i++)
        f->fields[i] = field_of(&keys[i], as_text, i);
    f->fields[n] = (cyaml_schema_field_t)CYAML_FIELD_END;
    f->schema.mapping.fields = f->fields;
    return yaml_load_file(path, &f->schema, &f->data, err);
}

/* The line that explain() names in a message of another form than is expected. */
static long line_of(const struct err *err, const char *path)
{
    return strtol(err->msg + strlen(path) + strlen(", line "), NULL, 10);
}

/* A schema has no value that is a list or a text. So what is refused as a list is read
 * again as a text; where both are refused, the one that got further was right until
 * then. */
static enum status load_either(struct keys_file *f, const char *path,
                               const struct yaml_key *keys, size_t n, struct err *err)
{
    struct err first = ERR_INIT, second = ERR_INIT;
    const enum status st = load_keys(f, path, keys, n, false, &first);
    const struct err *reported = &first;

    if (st == ST_OK)
        return st;
    if (strstr(first.msg, list_expected)) {
        if (load_keys(f, path, keys, n, true, &second) == ST_OK)
            return ST_OK;
        if (!strstr(second.msg, text_expected) ||
            line_of(&second, path) > line_of(&first, path))
            reported = &second;
    }
    return err_set(err, reported->code, "%s", reported->msg);
}

enum status yaml_load_keys(const char *path, const struct yaml_key *keys, size_t n,
                           yaml_take_fn *take, void *arg, struct err *err)
{
    struct keys_file f = {.data = NULL};
    enum status st;

    assert(n <= YAML_MAX_KEYS);
    st = load_either(&f, path, keys, n, err);
    if (st)
        return st;
    for (size_t i = 0; i < n && st == ST_OK; i++)
        st = take_key((const struct raw *)f.data + i, keys[i].name, path, take, arg,
                      err);
    yaml_free_data(&f.schema, f.data);
    return st;
}
