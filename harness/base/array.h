/* SPDX-License-Identifier: MIT
 *
 * array.h - arrays that grow by one element
 *
 * Threading: pure function.
 */
#ifndef SLM_HARNESS_BASE_ARRAY_H
#define SLM_HARNESS_BASE_ARRAY_H

#include <stdlib.h>

#define ARRAY_FIRST 16 /* elements of an array's first memory */

/* Room for an element behind n of `size` bytes: v itself, or where n is *cap its
 * reallocation with twice the room. The caller stores what is returned. NULL: no
 * memory; v and *cap stay. */
static inline void *array_grow(void *v, size_t n, size_t *cap, size_t size)
{
    const size_t want = n < *cap ? *cap : n ? 2 * n : ARRAY_FIRST;

    if (want > *cap && (v = reallocarray(v, want, size)))
        *cap = want;
    return v;
}

#endif
