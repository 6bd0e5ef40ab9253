/* SPDX-License-Identifier: MIT
 *
 * gguf.c - open, close and query a GGUF file, and read its rows; gguf_parse.c reads its
 * head
 *
 * The mapping is shared, so another process can truncate the open file: mapguard.c
 * makes that an error of gguf_check(). Everything else is checked at opening.
 */
#include "engine/gguf/gguf_impl.h"

#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/fileread.h"
#include "engine/base/utf8.h"

/* A descriptor of a non-empty regular file; anything else would block or cannot be
 * mapped. */
static enum status open_regular(int *fd, size_t *bytes, const char *path,
                                struct err *err)
{
    /* O_NONBLOCK: opening a FIFO must not wait for a writer. */
    const int f = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    char name[160];
    struct stat st;
    enum status status = ST_OK;

    utf8_printable(name, sizeof name, path, strlen(path));
    if (f < 0)
        return err_set_errno(err, ST_IO, "cannot open %s", name);
    if (fstat(f, &st))
        status = err_set_errno(err, ST_IO, "cannot read the size of %s", name);
    else if (S_ISDIR(st.st_mode))
        status =
            err_set(err, ST_INPUT, "%s is a directory; name a GGUF file in it", name);
    else if (!S_ISREG(st.st_mode))
        status = err_set(
            err, ST_INPUT,
            "%s is not a regular file; copy the model to one, so that it can be mapped",
            name);
    else if (st.st_size == 0)
        status = err_set(err, ST_INPUT, "%s is empty, not a GGUF file", name);
    if (status) {
        close(f);
        return status;
    }
    *fd = f;
    *bytes = (size_t)st.st_size;
    return ST_OK;
}

/* fd -1: the caller owns image; otherwise the gguf owns both from here on. */
static enum status make(struct gguf **out, const void *image, size_t bytes, int fd,
                        const char *name, struct err *err)
{
    struct gguf *g = calloc(1, sizeof *g);
    enum status st = ST_OK;

    if (!g || !(g->path = strdup(name))) {
        if (fd >= 0) {
            munmap((void *)(uintptr_t)image, bytes);
            close(fd);
        }
        free(g);
        return err_set(err, ST_NO_MEMORY,
                       "cannot allocate memory for a file's description");
    }
    g->image = image;
    g->bytes = g->head_bytes = bytes;
    g->mapped = fd >= 0;
    g->fd = fd;
    if (g->mapped)
        st = mapguard_add(&g->guard, image, bytes, fd, name, err);
    if (!st)
        st = gguf_parse_image(g, err);
    /* A file that shrinks while it is read reads as zeros: that is not its real error.
     */
    if (gguf_check(g, NULL)) {
        if (err)
            err_clear(err);
        st = gguf_check(g, err);
    }
    if (st) {
        gguf_close(g);
        return st;
    }
    *out = g;
    return ST_OK;
}

enum status gguf_open(struct gguf **g, const char *path, struct err *err)
{
    size_t bytes = 0;
    int fd = -1;
    enum status st = open_regular(&fd, &bytes, path, err);

    if (st)
        return st;
    void *image = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);

    if (image == MAP_FAILED) {
        char name[160];

        st =
            err_set_errno(err, ST_IO, "cannot map %s (%zu bytes)",
                          utf8_printable(name, sizeof name, path, strlen(path)), bytes);
        close(fd);
        return st;
    }
    return make(g, image, bytes, fd, path, err);
}

enum status gguf_parse(struct gguf **g, const void *image, size_t bytes,
                       const char *name, struct err *err)
{
    if (bytes == 0)
        return err_set(err, ST_INPUT, "%s is empty, not a GGUF file", name);
    return make(g, image, bytes, -1, name, err);
}

enum status gguf_assemble(struct gguf **out, void *head, size_t bytes, const char *name,
                          const struct gguf_source *source, struct err *err)
{
    struct gguf *g = calloc(1, sizeof *g);
    enum status st;

    if (!g || !(g->path = strdup(name))) {
        free(g);
        free(head);
        source->close(source->arg);
        return err_set(err, ST_NO_MEMORY,
                       "cannot allocate memory for a file's description");
    }
    g->image = head;
    g->bytes = PTRDIFF_MAX; /* nothing ends before the last tensor */
    g->head_bytes = bytes;
    g->fd = -1;
    g->source = *source;
    st = gguf_parse_image(g, err);
    if (st) {
        gguf_close(g);
        return st;
    }
    g->bytes = bytes;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const uint64_t end = g->tensors[i].offset + g->tensors[i].bytes;

        if (end > g->bytes)
            g->bytes = (size_t)end;
    }
    *out = g;
    return ST_OK;
}

void gguf_close(struct gguf *g)
{
    if (!g)
        return;
    for (size_t i = 0; g->strings && i < g->n_kvs; i++)
        free(g->strings[i]);
    for (size_t i = 0; i < g->n_tensors; i++)
        free(g->tensors[i].name);
    strtab_free(&g->kv_index);
    strtab_free(&g->tensor_index);
    free(g->strings);
    free(g->kvs);
    free(g->tensors);
    if (g->mapped) {
        mapguard_remove(g->guard);
        munmap((void *)(uintptr_t)g->image, g->bytes);
        close(g->fd);
    }
    if (g->source.read) {
        free((void *)(uintptr_t)g->image);
        g->source.close(g->source.arg);
    }
    free(g->path);
    free(g);
}

enum status gguf_check(const struct gguf *g, struct err *err)
{
    return mapguard_check(g->guard, err);
}

int gguf_fd(const struct gguf *g)
{
    return g->fd;
}

const char *gguf_path(const struct gguf *g)
{
    return g->path;
}

uint32_t gguf_version(const struct gguf *g)
{
    return g->version;
}

uint32_t gguf_alignment(const struct gguf *g)
{
    return g->alignment;
}

const void *gguf_image(const struct gguf *g)
{
    return g->image;
}

size_t gguf_image_bytes(const struct gguf *g)
{
    return g->bytes;
}

bool gguf_is_mapped(const struct gguf *g)
{
    return g->mapped;
}

bool gguf_is_assembled(const struct gguf *g)
{
    return g->source.read != NULL;
}

bool gguf_is_folder(const struct gguf *g)
{
    struct stat about;

    return gguf_is_assembled(g) && !stat(gguf_path(g), &about) &&
           S_ISDIR(about.st_mode);
}

uint64_t gguf_data_offset(const struct gguf *g)
{
    return g->data_offset;
}

size_t gguf_n_tensors(const struct gguf *g)
{
    return g->n_tensors;
}

const struct gguf_tensor *gguf_tensor_at(const struct gguf *g, size_t i)
{
    assert(i < g->n_tensors);
    return &g->tensors[i];
}

const struct gguf_tensor *gguf_tensor_find(const struct gguf *g, const char *name)
{
    const uint32_t i = strtab_find(&g->tensor_index, name, strlen(name));

    return i == STRTAB_NONE ? NULL : &g->tensors[i];
}

const void *gguf_tensor_data(const struct gguf *g, const struct gguf_tensor *t)
{
    assert(!g->source.read);
    return g->image + t->offset;
}

size_t gguf_n_kvs(const struct gguf *g)
{
    return g->n_kvs;
}

const struct gguf_kv *gguf_kv_at(const struct gguf *g, size_t i)
{
    assert(i < g->n_kvs);
    return &g->kvs[i];
}

const struct gguf_kv *gguf_kv_find(const struct gguf *g, const char *key)
{
    const uint32_t i = strtab_find(&g->kv_index, key, strlen(key));

    return i == STRTAB_NONE ? NULL : &g->kvs[i];
}

/* ---- reading --------------------------------------------------------------------- */

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
    if (t->panel_rows)
        return gguf_read_panels(g, t, row, n_rows, drop, dst, err);
    if (!g->mapped) {
        memcpy(dst, g->image + offset, n);
        return ST_OK;
    }
    st = gguf_read_bytes(g, dst, n, offset, err);
    if (!st && drop)
        pagecache_drop(g->fd, offset, offset + n);
    return st;
}
