/* SPDX-License-Identifier: MIT
 *
 * mem.c - anonymous mappings with a chosen page size and a guard on both sides
 *
 * A mapping is reserved without access, and the requested part is then made accessible:
 *
 *     map_base                base                          map_base + mapped
 *     | no access, >= 1 page  | bytes, rounded up to pages  | no access |
 *
 * The guards catch overruns, and they keep the kernel from merging neighbouring
 * mappings, so that smaps counts huge pages for this memory alone.
 */
#include "engine/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES ((size_t)2 << 20)

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static enum status no_memory(size_t bytes, const char *tag, struct err *err)
{
    return err_set_errno(err, ST_NO_MEMORY, "cannot allocate %.1f MiB for the %s",
                         (double)bytes / 0x1p20, tag);
}

enum status mem_alloc(struct mem *m, size_t bytes, enum mem_pages pages,
                      const char *tag, struct err *err)
{
    const size_t page = page_bytes();
    const size_t unit = pages == MEM_PAGES_2M ? HUGE_BYTES : page;
    size_t whole, mapped;

    /* Whole units, so that the tail can be a huge page as well. */
    if (__builtin_add_overflow(bytes ? bytes : 1, unit - 1, &whole) ||
        __builtin_add_overflow(whole / unit * unit, unit + 2 * page, &mapped))
        return err_set(
            err, ST_NO_MEMORY,
            "cannot allocate %zu bytes for the %s: more than an address space holds",
            bytes, tag);
    whole = whole / unit * unit;

    char *map = mmap(NULL, mapped, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED)
        return no_memory(bytes, tag, err);
    const uintptr_t first = ((uintptr_t)map + page + unit - 1) / unit * unit;
    char *base = map + (first - (uintptr_t)map);

    if (mprotect(base, whole, PROT_READ | PROT_WRITE)) {
        const enum status st = no_memory(bytes, tag, err);

        munmap(map, mapped);
        return st;
    }
    /* Only advice: a kernel without transparent huge pages rejects both. */
    (void)madvise(base, whole, pages == MEM_PAGES_2M ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    *m = (struct mem){.base = base,
                      .bytes = bytes,
                      .mapped = mapped,
                      .map_base = map,
                      .pages = pages};
    return ST_OK;
}

void mem_free(struct mem *m)
{
    if (m->map_base)
        munmap(m->map_base, m->mapped);
    *m = (struct mem){0};
}

static uint64_t overlap(uint64_t a_begin, uint64_t a_end, uint64_t b_begin,
                        uint64_t b_end)
{
    const uint64_t begin = a_begin > b_begin ? a_begin : b_begin;
    const uint64_t end = a_end < b_end ? a_end : b_end;

    return end > begin ? end - begin : 0;
}

/* smaps prints a line "begin-end perms ..." per mapping and then its counters,
 * "AnonHugePages:   2048 kB" among them. */
size_t mem_huge_bytes(const void *addr, size_t bytes)
{
    static const char *const counters[] = {
        "AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"};
    const uint64_t begin = (uintptr_t)addr;
    FILE *f = fopen("/proc/self/smaps", "re");
    char line[512];
    uint64_t inside = 0; /* bytes of the current mapping inside the range */
    uint64_t total = 0;

    if (!f)
        return 0;
    while (fgets(line, sizeof line, f)) {
        uint64_t from, to, kib;
        int end = 0;

        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %n", &from, &to, &end) == 2 &&
            end > 0) {
            inside = overlap(begin, begin + bytes, from, to);
            continue;
        }
        for (size_t i = 0; inside && i < sizeof counters / sizeof counters[0]; i++) {
            const size_t n = strlen(counters[i]);

            if (!strncmp(line, counters[i], n) &&
                sscanf(line + n, "%" SCNu64, &kib) == 1)
                total += kib * 1024 < inside ? kib * 1024 : inside;
        }
    }
    fclose(f);
    return total < bytes ? total : bytes;
}

const char *mem_pages_name(enum mem_pages pages)
{
    return pages == MEM_PAGES_2M ? "2m" : "4k";
}
