/* SPDX-License-Identifier: MIT
 *
 * gguf_read.c - rows of a tensor of a mapped file, an image or an assembled gguf
 */
#include "engine/gguf/gguf_impl.h"

#include <string.h>

#include "engine/base/pagecache.h"
#include "engine/base/readfile.h"

enum status gguf_read_bytes(const struct gguf *g, void *dst, size_t n, uint64_t offset,
                            struct err *err)
{
    return readfile_at(g->fd, g->path, dst, n, offset, err);
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
