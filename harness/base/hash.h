/* SPDX-License-Identifier: MIT
 *
 * hash.h - FNV-1a, to distinguish data that are not adversarial
 *
 * Threading: pure functions.
 */
#ifndef SLM_HARNESS_BASE_HASH_H
#define SLM_HARNESS_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HASH_BEGIN 0xcbf29ce484222325u

/* Adds n bytes to the hash h, which begins as HASH_BEGIN. */
static inline uint64_t hash_add(uint64_t h, const void *data, size_t n)
{
    const unsigned char *p = data;

    for (size_t i = 0; i < n; i++)
        h = (h ^ p[i]) * 0x100000001b3u;
    return h;
}

#endif
