/* SPDX-License-Identifier: MIT
 *
 * mem.h - page-aligned anonymous memory with a chosen page size
 *
 * All large buffers (weights, KV cache, scratch, probe buffers) are allocated here, so
 * that page size and amount are known and can be reported. Small ones use malloc.
 *
 * Threading: mem_alloc/mem_free may be called from any thread.
 */
#ifndef SLM_ENGINE_BASE_MEM_H
#define SLM_ENGINE_BASE_MEM_H

#include <stddef.h>

#include "engine/base/status.h"

enum mem_pages {
    MEM_PAGES_4K, /* MADV_NOHUGEPAGE */
    MEM_PAGES_2M, /* 2 MiB aligned, MADV_HUGEPAGE; falls back to 4K silently:
                     mem_huge_bytes() counts the bytes obtained */
};

struct mem {
    void *base;     /* NULL when empty */
    size_t bytes;   /* as requested */
    size_t mapped;  /* as mapped */
    void *map_base; /* start of the mapping */
    enum mem_pages pages;
};

/* Zeroed memory, not yet touched. tag names it in the error message ("KV cache").
 * Release with mem_free(). Error: ST_NO_MEMORY. */
enum status mem_alloc(struct mem *m, size_t bytes, enum mem_pages pages,
                      const char *tag, struct err *err);

/* Release and zero *m, which may be empty. */
void mem_free(struct mem *m);

/* Bytes of [addr, addr+bytes) that the kernel backs with 2 MiB pages, from
 * /proc/self/smaps; 0 where that cannot be read. */
size_t mem_huge_bytes(const void *addr, size_t bytes);

const char *mem_pages_name(enum mem_pages pages); /* "4k", "2m" */

#endif
