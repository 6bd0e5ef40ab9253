/* SPDX-License-Identifier: MIT
 *
 * yamlfile.h - a YAML file into a struct through a libcyaml schema
 *
 * What libcyaml says over several log lines becomes one sentence with the file,
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

#include <cyaml/cyaml.h>

#include "engine/base/status.h"

#define YAMLFILE_MAX_BYTES (256u << 10)

/* schema: a mapping behind a pointer (CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER,
 * ...)). *data is freed with yaml_free_data(). Errors: ST_IO (not readable),
 * ST_INPUT (too large, no YAML, an unknown, missing, repeated or wrong key). */
enum status yaml_load_file(const char *path, const cyaml_schema_value_t *schema,
                           void **data, struct err *err);
/* The items of a list of texts as one, "1,2,4-8", malloc'ed; NULL: no memory. An empty
 * list was refused: it would look like an absent one. "[none]" is how a list says that
 * it is empty. */
char *yaml_list_text(char *const *items, unsigned n);

void yaml_free_data(const cyaml_schema_value_t *schema, void *data);

#endif
