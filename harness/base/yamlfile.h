/* SPDX-License-Identifier: MIT
 *
 * yamlfile.h - a YAML file into a struct through a libcyaml schema
 *
 * What libcyaml logs over several lines becomes one sentence with the file,
 * the line and the key. Aliases are refused and files are small, so that a
 * hostile file cannot make us allocate much.
 *
 * libcyaml converts leniently ("12abc" is 12, "maybe" is true). Where that
 * matters, let the schema keep the text and convert it with harness/base/parse.h.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_BASE_YAMLFILE_H
#define SLM_HARNESS_BASE_YAMLFILE_H

#include <stdbool.h>
#include <cyaml/cyaml.h>

#include "engine/base/status.h"

#define YAMLFILE_MAX_BYTES (256u << 10)

/* schema: a mapping behind a pointer (CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER,
 * ...)). *data is freed with yaml_free_data(). Errors: ST_IO (not readable),
 * ST_INPUT (too large, no YAML, an unknown, missing, repeated or wrong key). */
enum status yaml_load_file(const char *path, const cyaml_schema_value_t *schema,
                           void **data, struct err *err);
void yaml_free_data(const cyaml_schema_value_t *schema, void *data);

/* ---- a list of entries ----------------------------------------------------------- */

/* A file with one key, whose value is a list of mappings of texts. */
struct yaml_list {
    const char *key;                    /* "prices" */
    const char *entry;                  /* one of them, for messages: "price" */
    unsigned most;                      /* entries */
    const cyaml_schema_field_t *fields; /* of an entry: texts within a struct */
    size_t text_bytes;                  /* of that struct */
    size_t bytes;                       /* of what an entry becomes */
    /* what is "FILE: price 2", for messages; *to is zeroed */
    enum status (*convert)(void *to, const void *text, const char *what,
                           struct err *err);
};

/* *v is malloc'ed [*n]. Errors: those of yaml_load_file(); ST_INPUT for those of
 * convert; ST_NO_MEMORY. */
enum status yaml_load_list(void **v, size_t *n, const char *path,
                           const struct yaml_list *list, struct err *err);

/* ---- keys of texts --------------------------------------------------------------- */

/* A key that a file may have: a text, or a list of texts; with or_text a text is a list
 * of one, too, in a file in which all such keys are. */
struct yaml_key {
    const char *name;
    bool is_list, or_text;
};

/* Called for a key of the file: words are the items of its list, or its one text, and
 * text is all of them with commas between. what is "FILE: KEY". */
typedef enum status yaml_take_fn(void *arg, const char *key, const char *text,
                                 const char *const *words, size_t n, const char *what,
                                 struct err *err);

#define YAML_MAX_KEYS 64

/* Reads a file of nothing but such keys, and takes those that it has, in the order of
 * keys, of which there are at most YAML_MAX_KEYS. An empty list is refused: it would
 * look like an absent one; an empty list is written "[none]". Errors: those
 * of yaml_load_file(), ST_NO_MEMORY, and those of take. */
enum status yaml_load_keys(const char *path, const struct yaml_key *keys, size_t n,
                           yaml_take_fn *take, void *arg, struct err *err);

#endif
