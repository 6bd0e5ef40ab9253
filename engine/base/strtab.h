/* SPDX-License-Identifier: MIT
 *
 * strtab.h - map from byte strings to numbers, for names in untrusted files
 *
 * Open addressing with a fixed capacity. The hash is SipHash-1-3 with a random
 * key, so no file can be made whose names all collide. Strings are not copied: they
 * must outlive the table.
 *
 * Threading: immutable once filled; then any thread.
 * Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.
 */
#ifndef SLM_ENGINE_BASE_STRTAB_H
#define SLM_ENGINE_BASE_STRTAB_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define STRTAB_NONE UINT32_MAX

struct strtab {
    struct strtab_slot *slots; /* NULL: empty table, lookups find nothing */
    size_t mask;               /* number of slots - 1, a power of two - 1 */
    uint64_t key[2];
};

/* An empty table for n_max strings. Error: ST_NO_MEMORY. */
enum status strtab_init(struct strtab *t, size_t n_max, struct err *err);
void strtab_free(struct strtab *t);

/* Add data[len] -> id and return STRTAB_NONE; if the string is in the table, change
 * nothing and return its id. */
uint32_t strtab_put(struct strtab *t, const char *data, uint32_t len, uint32_t id);

/* The id, or STRTAB_NONE. */
uint32_t strtab_find(const struct strtab *t, const char *data, size_t len);

#endif
