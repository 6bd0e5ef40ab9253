/* SPDX-License-Identifier: MIT
 *
 * evict.h - take a range of memory out of every cache
 *
 * A buffer that was evicted is read from memory, however large the last-level cache is:
 * a bandwidth ceiling needs no buffer of several caches then, and the same buffer read
 * again without eviction shows what the cache serves.
 *
 * Threading: pure; several threads may evict parts of one buffer.
 */
#ifndef SLM_KERNELS_PROBE_EVICT_H
#define SLM_KERNELS_PROBE_EVICT_H

#include <stddef.h>

/* Write back and drop every cache line that holds a byte of p[0..bytes), from the
 * caches of all CPUs; the contents stay. Returns when that is done. Needs no alignment.
 * Not for memory of devices. x86-64: CLFLUSHOPT, or CLFLUSH (Intel SDM vol. 2). 64-bit
 * Arm: DC CIVAC, which Linux lets programs use (Arm ARM, C6). */
void evict_from_caches(const void *p, size_t bytes);

#endif
