/* SPDX-License-Identifier: MIT
 *
 * gguf_save.c - write any gguf to a file
 */
#include "engine/gguf/gguf_save.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "engine/base/mem.h"
#include "engine/base/outfile.h"
#include "engine/gguf/gguf_panels.h"
#include "engine/gguf/gguf_put.h"

#define CHUNK_BYTES  ((size_t)4 << 20) /* or a row, if that is longer */
#define PIECE_VALUES 16384 /* values in the rows that a thread takes at once, about */

/* Rows of one tensor in a buffer. */
struct chunk {
    unsigned char *data;
    const struct gguf_tensor *t; /* NULL: none */
    uint64_t row, n_rows;
};

struct save {
    const struct gguf *g;
    struct thread_pool *pool;
    struct outfile *file;
    struct mem mem;
    struct chunk making, writing;
    pthread_mutex_t lock;
    struct err err; /* the first, under lock */
};

static uint64_t n_rows_of(const struct gguf_tensor *t)
{
    return t->n_elems / t->ne[0];
}

static uint64_t row_bytes_of(const struct gguf_tensor *t)
{
    return t->bytes / n_rows_of(t);
}

static void keep_error(struct save *s, const struct err *err)
{
    pthread_mutex_lock(&s->lock);
    if (err->code)
        err_set(&s->err, err->code, "%s", err->msg);
    pthread_mutex_unlock(&s->lock);
}

static void write_chunk(struct save *s)
{
    const struct chunk *c = &s->writing;
    const uint64_t row_bytes = row_bytes_of(c->t);
    struct err err = ERR_INIT;

    if (outfile_write(s->file, c->data, (size_t)(c->n_rows * row_bytes),
                      c->t->offset + c->row * row_bytes, &err))
        keep_error(s, &err);
}

/* All threads make one chunk; thread 0 writes the previous one. */
static void make_chunk(void *arg, int thread, int n_threads)
{
    struct save *s = arg;
    const struct chunk *c = &s->making;
    struct err err = ERR_INIT;

    (void)n_threads;
    if (thread == 0 && s->writing.t)
        write_chunk(s);
    if (!c->t)
        return;

    const uint64_t row_bytes = row_bytes_of(c->t);
    const size_t piece =
        c->t->ne[0] < PIECE_VALUES ? (size_t)(PIECE_VALUES / c->t->ne[0]) : 1;

    for (size_t row;
         !err.code && (row = thread_pool_next(s->pool, piece)) < c->n_rows;) {
        const uint64_t n = c->n_rows - row < piece ? c->n_rows - row : piece;

        gguf_read_rows(s->g, c->t, c->row + row, n, true, c->data + row * row_bytes,
                       &err);
    }
    keep_error(s, &err);
}

/* The tensors. */
static enum status save_tensors(struct save *s, size_t buffer_bytes,
                                gguf_save_progress_fn *progress, void *arg,
                                const char *path, struct err *err)
{
    const uint64_t total = gguf_image_bytes(s->g);
    unsigned char *base = s->mem.base;
    int at = 0;

    for (size_t i = 0; i < gguf_n_tensors(s->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(s->g, i);
        const uint64_t row_bytes = row_bytes_of(t), n_rows = n_rows_of(t);

        for (uint64_t row = 0, n; row < n_rows; row += n, at = !at) {
            n = buffer_bytes / row_bytes < n_rows - row ? buffer_bytes / row_bytes
                                                        : n_rows - row;
            s->making = (struct chunk){base + (size_t)at * buffer_bytes, t, row, n};
            thread_pool_run(s->pool, make_chunk, s);
            s->writing = s->making;
            if (s->err.code)
                return err_set(err, s->err.code, "%s", s->err.msg);
            if (progress && progress(arg, t->offset + (row + n) * row_bytes, total))
                return err_set(err, ST_INTERRUPTED, "making %s was interrupted", path);
        }
    }
    s->making.t = NULL;
    thread_pool_run(s->pool, make_chunk, s);
    return s->err.code ? err_set(err, s->err.code, "%s", s->err.msg) : ST_OK;
}

enum status gguf_save(const struct gguf *g, const char *path, struct thread_pool *pool,
                      gguf_save_progress_fn *progress, void *arg, const char *way_out,
                      struct err *err)
{
    const uint64_t total = gguf_image_bytes(g);
    struct save s = {
        .g = g, .pool = pool, .lock = PTHREAD_MUTEX_INITIALIZER, .err = ERR_INIT};
    size_t buffer_bytes = CHUNK_BYTES;
    enum status st = outfile_open(&s.file, path, total, false, way_out, err);

    assert(!gguf_is_packed(g)); /* its rows are not what its head says */
    if (st)
        return st;
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (row_bytes_of(t) > buffer_bytes)
            buffer_bytes = (size_t)row_bytes_of(t);
    }
    st = mem_alloc(&s.mem, 2 * buffer_bytes, MEM_PAGES_4K, "write buffers", err);
    if (!st)
        st = outfile_write(s.file, gguf_image(g), (size_t)gguf_data_offset(g), 0, err);
    if (!st)
        st = save_tensors(&s, buffer_bytes, progress, arg, path, err);
    mem_free(&s.mem);
    if (!st) /* some readers want the last tensor padded like the others */
        return outfile_commit(s.file, gguf_put_aligned(total), err);
    outfile_abort(s.file);
    return st;
}
