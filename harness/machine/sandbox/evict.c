/* SPDX-License-Identifier: MIT
 *
 * evict.c - drop a file's pages from the page cache
 */
#include "harness/machine/sandbox/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Linux 6.5: counts cached pages without a mapping. The number is the same on every
 * architecture; older kernel headers do not have it. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

struct cachestat_range {
    uint64_t off, len; /* len 0: to the end */
};

struct cachestat_result {
    uint64_t cache, dirty, writeback, evicted, recently_evicted; /* pages */
};

/* Pages counted through mappings of 1 GiB at a time: mapping does not read. */
#define WINDOW ((size_t)1 << 30)

static bool count_window(int fd, uint64_t offset, size_t bytes, unsigned char *vec,
                         uint64_t *n_pages)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, (off_t)offset);

    if (map == MAP_FAILED)
        return false;
    const bool ok = !mincore(map, bytes, vec);
    for (size_t i = 0; ok && i < (bytes + page - 1) / page; i++)
        *n_pages += vec[i] & 1u;
    munmap(map, bytes);
    return ok;
}

/* Bytes of the file in the page cache. */
static bool cached_bytes(int fd, uint64_t file_bytes, uint64_t *bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct cachestat_range range = {0, 0};
    struct cachestat_result result;
    uint64_t n_pages = 0;
    bool ok = true;

    if (!syscall(SYS_cachestat, fd, &range, &result, 0)) {
        n_pages = result.cache;
    } else {
        unsigned char *vec = malloc(WINDOW / page);

        ok = vec != NULL;
        for (uint64_t at = 0; ok && at < file_bytes; at += WINDOW)
            ok = count_window(fd, at,
                              file_bytes - at < WINDOW ? file_bytes - at : WINDOW, vec,
                              &n_pages);
        free(vec);
    }
    *bytes = n_pages * page < file_bytes ? n_pages * page : file_bytes;
    return ok;
}

enum status file_evict(const char *path, uint64_t *stayed_bytes, struct err *err)
{
    const struct timespec wait = {0, 10000000}; /* 10 ms */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    uint64_t stayed = 0;
    struct stat st;
    enum status status = ST_OK;

    if (fd < 0)
        return err_set_errno(err, ST_IO, "cannot open %.300s", path);
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        status = err_set(err, ST_INPUT, "%.300s is not a regular file", path);
        goto out;
    }
    /* Dirty pages cannot be dropped; pages just read ahead sit in per-CPU lists for a
     * moment, hence the retries. */
    for (int attempt = 0; attempt < 5; attempt++) {
        if (attempt)
            nanosleep(&wait, NULL);
        fdatasync(fd); /* refused on a read-only file system, where nothing is dirty */
        const int rc = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        if (rc) {
            errno = rc;
            status = err_set_errno(err, ST_IO, "cannot drop %.300s from the page cache",
                                   path);
            goto out;
        }
        if (!cached_bytes(fd, (uint64_t)st.st_size, &stayed)) {
            status = err_set_errno(
                err, ST_IO, "cannot determine how much of %.300s is cached", path);
            goto out;
        }
        if (!stayed)
            break;
    }
    *stayed_bytes = stayed;
out:
    close(fd);
    return status;
}
