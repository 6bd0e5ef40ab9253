/* SPDX-License-Identifier: MIT
 *
 * choice.h - enumerations whose values have names, and reading them
 *
 * Model of the world: each enumeration that a person or a file names values of has one
 * table. Its values count from 0 and are stored as int.
 *
 * Threading: tables are constant.
 */
#ifndef SLM_HARNESS_BASE_CHOICE_H
#define SLM_HARNESS_BASE_CHOICE_H

#include <stddef.h>

#include "engine/base/status.h"

struct choices {
    const char *noun; /* a plural, as messages begin: "placements are" */
    const char *(*name)(int value);
    int n;
};

extern const struct choices choices_residency; /* enum weights_residency */
extern const struct choices choices_kv;        /* enum kern_kv */
extern const struct choices choices_pages;     /* enum mem_pages */
extern const struct choices choices_isa;       /* enum kern_isa */

/* The value of that name, or -1. */
int choice_find(const struct choices *c, const char *name);

/* "f16, q8_0 or q4_0", the first n of them, into buf, which is returned. */
const char *choice_list(const struct choices *c, int n, char *buf, size_t cap);

/* *value is an enumeration. what names the option or key in messages. Error: ST_USAGE,
 * with the names there are; *value is untouched then. */
enum status choice_parse(const struct choices *c, const char *text, const char *what,
                         void *value, struct err *err);

#endif
