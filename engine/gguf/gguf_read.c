/* SPDX-License-Identifier: MIT
 *
 * gguf_read.c - rows of a tensor, whatever the gguf is made of
 */
#include "engine/gguf/gguf_impl.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "engine/base/pagecache.h"

enum status gguf_read_bytes(const struct gguf *g, void *dst, size_t n, uint64_t offset,
                            struct err *err)
{
    char *to = dst;

    while (n) {
        const ssize_t got = pread(g->fd, to, n, (off_t)offset);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return err_set_errno(err, ST_IO, "cannot read the weights of %s", g->path);
        if (got == 0)
            return err_set(err, ST_IO,
                           "cannot read the weights of %s: the file ends at byte %llu "
                           "(did it shrink?)",
                           g->path, (unsigned long long)offset);
        to += got;
        n -= (size_t)got;
        offset += (uint64_t)got;
    }
    return ST_OK;
}

enum status gguf_read_rows(const struct gguf *g, const struct gguf_tensor *t,
                           uint64_t row, uint64_t n_rows, bool drop, void *dst,
                           struct err *err)
{
    const uint64_t row_bytes = t->bytes / (t->n_elems / t->ne[0]);
    const uint64_t offset = t->offset + row * row_bytes;
    const size_t n = (size_t)(n_rows * row_bytes);
    enum status st;

    if (g->source.read)
        return g->source.read(g->source.arg, t, row, n_rows, drop, dst, err);
    if (!g->mapped) {
        memcpy(dst, g->image + offset, n);
        return ST_OK;
    }
    st = gguf_read_bytes(g, dst, n, offset, err);
    if (!st && drop)
        pagecache_drop(g->fd, offset, offset + n);
    return st;
}
