/* SPDX-License-Identifier: MIT
 *
 * pack_write.c - the tensors of a packed file, read, packed and written
 *
 * A tensor is cut into units, as the file has them: the 16 rows of a panel, or those
 * behind the last panel of a slice. All threads make a chunk of units together, each
 * reading and packing a piece at a time, while one of them first writes the chunk that
 * was made before and adds it to the checksum.
 */
#include "engine/pack/pack_impl.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "engine/base/mem.h"
#include "engine/base/outfile.h"
#include "kernels/isa.h"

#define CHUNK_BYTES ((size_t)8 << 20)   /* or a piece, if that is longer */
#define PIECE_BYTES ((size_t)512 << 10) /* or a unit */

/* Units begin, .. of one tensor, and their bytes in the file. */
struct chunk {
    unsigned char *data;
    const struct pack_tensor *t; /* NULL: none */
    uint64_t begin, n;
    size_t bytes;
};

struct job {
    const struct gguf *g;
    const struct pack_plan *plan;
    struct kern_set kern;
    struct thread_pool *pool;
    struct outfile *file;
    struct mem mem;
    size_t chunk_bytes, piece_bytes; /* of the buffers */
    unsigned char *pieces;           /* [threads][piece_bytes]: rows to be packed */
    struct chunk making, writing;
    XXH3_state_t *sum; /* of the tensor that is being written */
    uint64_t *sums;    /* [plan->n] */
    pthread_mutex_t lock;
    struct err err; /* the first, under lock */
};

/* ---- units ----------------------------------------------------------------------- */

static uint64_t units_of_slice(const struct gguf_tensor *t)
{
    return (t->ne[1] + KERN_PANEL_ROWS - 1) / KERN_PANEL_ROWS;
}

static uint64_t n_units(const struct gguf_tensor *t)
{
    return units_of_slice(t) * t->ne[2] * t->ne[3];
}

/* The first row of a unit, counted through all slices; that of the unit behind the last
 * one is the number of rows. */
static uint64_t first_row(const struct gguf_tensor *t, uint64_t unit)
{
    const uint64_t n = units_of_slice(t);

    return unit / n * t->ne[1] + unit % n * KERN_PANEL_ROWS;
}

/* Also for types without kernels, which an unused layer may have. */
static size_t row_bytes(const struct gguf_tensor *t)
{
    return (size_t)(t->bytes / (t->n_elems / t->ne[0]));
}

static size_t unit_bytes(const struct gguf_tensor *t)
{
    return row_bytes(t) *
           (t->ne[1] < KERN_PANEL_ROWS ? (size_t)t->ne[1] : KERN_PANEL_ROWS);
}

/* Units that fit in a buffer, at least one. */
static uint64_t units_in(const struct gguf_tensor *t, size_t bytes)
{
    const size_t n = bytes / unit_bytes(t);

    return n ? n : 1;
}

/* ---- making ---------------------------------------------------------------------- */

static void keep_error(struct job *j, const struct err *err)
{
    pthread_mutex_lock(&j->lock);
    if (err->code)
        err_set(&j->err, err->code, "%s", err->msg);
    pthread_mutex_unlock(&j->lock);
}

/* Units begin .. end of a tensor, as the file has them, to dst. */
static enum status make_piece(const struct job *j, const struct pack_tensor *t,
                              uint64_t begin, uint64_t end, unsigned char *rows,
                              unsigned char *dst, struct err *err)
{
    const struct gguf_tensor *from = t->from;
    const size_t bytes = row_bytes(from);
    const uint64_t first = first_row(from, begin);
    enum status st = gguf_read_rows(j->g, from, first, first_row(from, end) - first,
                                    true, t->in_panels ? rows : dst, err);

    for (uint64_t u = begin; !st && t->in_panels && u < end; u++) {
        const uint64_t row = first_row(from, u), n = first_row(from, u + 1) - row;
        const size_t at = (size_t)(row - first) * bytes;

        if (n == KERN_PANEL_ROWS)
            j->kern.pack[from->fmt]((size_t)from->ne[0], rows + at, bytes, dst + at);
        else
            memcpy(dst + at, rows + at, (size_t)n * bytes);
    }
    return st;
}

static void write_chunk(struct job *j)
{
    const struct chunk *c = &j->writing;
    const uint64_t at = first_row(c->t->from, c->begin) * row_bytes(c->t->from);
    struct err err = ERR_INIT;

    if (c->begin == 0)
        XXH3_64bits_reset(j->sum);
    XXH3_64bits_update(j->sum, c->data, c->bytes);
    j->sums[c->t - j->plan->tensors] = XXH3_64bits_digest(j->sum);
    if (outfile_write(j->file, c->data, c->bytes,
                      j->plan->head_bytes + c->t->offset + at, &err))
        keep_error(j, &err);
}

/* All threads make one chunk; thread 0 writes the previous one. */
static void make_chunk(void *arg, int thread, int n_threads)
{
    struct job *j = arg;
    const struct chunk *c = &j->making;
    struct err err = ERR_INIT;

    (void)n_threads;
    if (thread == 0 && j->writing.t)
        write_chunk(j);
    if (!c->t)
        return;

    const struct gguf_tensor *from = c->t->from;
    const size_t piece = (size_t)units_in(from, PIECE_BYTES);

    for (size_t u; !err.code && (u = thread_pool_next(j->pool, piece)) < c->n;) {
        const uint64_t begin = c->begin + u;
        const uint64_t end = c->n - u < piece ? c->begin + c->n : begin + piece;
        const uint64_t rows = first_row(from, begin) - first_row(from, c->begin);

        make_piece(j, c->t, begin, end, j->pieces + (size_t)thread * j->piece_bytes,
                   c->data + (size_t)rows * row_bytes(from), &err);
    }
    keep_error(j, &err);
}

/* ---- the file -------------------------------------------------------------------- */

/* The next chunk is made, and the one before written. */
static enum status step(struct job *j, const struct chunk *next, struct err *err)
{
    j->making = *next;
    thread_pool_run(j->pool, make_chunk, j);
    j->writing = j->making;
    return j->err.code ? err_set(err, j->err.code, "%s", j->err.msg) : ST_OK;
}

static enum status write_tensors(struct job *j, gguf_save_progress_fn *progress,
                                 void *arg, const char *path, struct err *err)
{
    unsigned char *buffers[2] = {j->mem.base, j->mem.base};
    int at = 0;

    buffers[1] += j->chunk_bytes;
    for (size_t i = 0; i < j->plan->n; i++) {
        const struct pack_tensor *t = &j->plan->tensors[i];
        const uint64_t total = n_units(t->from), most = units_in(t->from, CHUNK_BYTES);

        for (uint64_t unit = 0, n; unit < total; unit += n, at = !at) {
            n = total - unit < most ? total - unit : most;
            const uint64_t rows =
                first_row(t->from, unit + n) - first_row(t->from, unit);
            const struct chunk next = {buffers[at], t, unit, n,
                                       (size_t)rows * row_bytes(t->from)};
            const enum status st = step(j, &next, err);

            if (st)
                return st;
            if (progress && progress(arg, t->offset + next.bytes, j->plan->data_bytes))
                return err_set(err, ST_INTERRUPTED, "packing %s was interrupted", path);
        }
    }
    return step(j, &(struct chunk){.t = NULL}, err);
}

static enum status write_head(const struct job *j, struct err *err)
{
    unsigned char *head = NULL;
    size_t bytes = 0;
    enum status st;

    for (size_t i = 0; i < j->plan->n; i++)
        j->plan->tensors[i].checksum = j->sums[i];
    st = pack_head(&head, &bytes, j->plan, j->g, err);
    if (!st)
        st = outfile_write(j->file, head, bytes, 0, err);
    free(head);
    return st;
}

static enum status make_buffers(struct job *j, struct err *err)
{
    const size_t n_threads = (size_t)thread_pool_size(j->pool);

    j->chunk_bytes = CHUNK_BYTES;
    j->piece_bytes = PIECE_BYTES;
    for (size_t i = 0; i < j->plan->n; i++) {
        const size_t unit = unit_bytes(j->plan->tensors[i].from);

        j->chunk_bytes = unit > j->chunk_bytes ? unit : j->chunk_bytes;
        j->piece_bytes = unit > j->piece_bytes ? unit : j->piece_bytes;
    }
    j->piece_bytes = (j->piece_bytes + 63) / 64 * 64;
    j->chunk_bytes = (j->chunk_bytes + 63) / 64 * 64;
    j->sums = calloc(j->plan->n + 1, sizeof *j->sums);
    j->sum = XXH3_createState();
    if (!j->sums || !j->sum)
        return err_set(err, ST_NO_MEMORY, "no memory for checksums");
    const enum status st =
        mem_alloc(&j->mem, 2 * j->chunk_bytes + n_threads * j->piece_bytes,
                  MEM_PAGES_4K, "buffers to pack weights in", err);

    if (!st)
        j->pieces = (unsigned char *)j->mem.base + 2 * j->chunk_bytes;
    return st;
}

static void describe(struct pack_result *r, const struct pack_plan *plan)
{
    *r = (struct pack_result){.bytes = plan->head_bytes + plan->data_bytes,
                              .n_tensors = plan->n};
    for (size_t i = 0; i < plan->n; i++) {
        const struct pack_tensor *t = &plan->tensors[i];

        r->n_in_panels += t->in_panels;
        r->panel_bytes += t->in_panels ? t->from->bytes : 0;
    }
}

enum status pack_write(struct pack_result *result, const struct gguf *g,
                       const char *path, struct thread_pool *pool,
                       gguf_save_progress_fn *progress, void *arg, struct err *err)
{
    struct pack_plan plan;
    struct job j = {.g = g, .plan = &plan, .pool = pool, .err = ERR_INIT};
    enum status st;

    kern_select(&j.kern, isa_usable());
    st = pack_plan_make(&plan, g, &j.kern, err);
    if (st)
        return st;
    const uint64_t bytes = plan.head_bytes + plan.data_bytes;

    pthread_mutex_init(&j.lock, NULL);
    st = make_buffers(&j, err);
    if (!st)
        st = outfile_open(&j.file, path, bytes, false, "choose a smaller quantisation",
                          err);
    if (!st)
        st = write_tensors(&j, progress, arg, path, err);
    if (!st)
        st = write_head(&j, err);
    if (st)
        outfile_abort(j.file);
    else
        st = outfile_commit(j.file, bytes, err);
    if (!st)
        describe(result, &plan);
    mem_free(&j.mem);
    XXH3_freeState(j.sum);
    free(j.sums);
    pthread_mutex_destroy(&j.lock);
    pack_plan_free(&plan);
    return st;
}
