/* SPDX-License-Identifier: MIT
 *
 * allocations.h - allocations of this program that fail
 *
 * The linker puts them in place of malloc() and its kind (--wrap in CMakeLists.txt).
 * Those of libraries do not fail: jansson's parser has assertions instead.
 *
 * Threading: one input at a time; allocations of all threads count.
 */
#ifndef SLM_TESTS_FUZZ_ALLOCATIONS_H
#define SLM_TESTS_FUZZ_ALLOCATIONS_H

#include <stddef.h>

/* From now on allocation number `which` fails, counted from 1; 0: none does. Returns
 * how many there have been since the last call. */
size_t allocations_fail_at(size_t which);

#endif
