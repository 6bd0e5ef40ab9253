/* SPDX-License-Identifier: MIT
 *
 * weights_packed_fill.c - weights read into memory, their matrices packed into panels
 *
 * From a file: memory is filled in pieces of about PACKED_PIECE bytes: a piece of a
 * matrix in panels is read into the thread's buffer and packed from there into its
 * place; everything else is read directly into place. Threads of the pool take groups
 * of pieces that cover EXTENT bytes of memory, a huge page: where two threads write to
 * a new page at once, the kernel clears one for each and discards one. Readahead of
 * AHEAD bytes runs before the pieces. Where memory does not hold a second copy of the
 * weights, loaded bytes are dropped from the page cache. Both go in steps of STEP
 * bytes, because long reads are faster and dropping can make the kernel wait for every
 * CPU. The file is read by read() and not through its mapping, because a file that
 * shrinks is then an error and not a signal.
 *
 * Where layers are streamed, memory has the other tensors alone.
 *
 * From an assembled gguf: the same, but a piece is whole rows, which the gguf computes
 * (and may quantise) directly into place, and a group of its own; the gguf handles its
 * source files.
 *
 * From a packed file (gguf_panels.h): memory has the file's pages, which are copied in
 * long stretches (weights_copy.h). Where the kernels have no panels the file is read
 * like any other, its rows like those of an assembled gguf.
 *
 * From an image in memory: tensors stay in place, and a piece of a matrix goes through
 * the thread's buffer and back.
 */
#include "engine/weights/weights_packed.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/fileread.h"
#include "engine/base/nodes.h"
#include "engine/gguf/gguf_panels.h"
#include "engine/weights/weights_copy.h"

#define EXTENT      ((size_t)2 << 20)
#define STEP        ((off_t)16 << 20)
#define AHEAD       (2 * STEP)
#define MAX_WORKERS 16 /* each with a buffer of a few MiB; more do not read faster */

/* ---- pieces ---------------------------------------------------------------------- */

/* Types without kernels are read as one row; no kernel uses it. */
static size_t row_bytes(const struct gguf_tensor *t)
{
    return t->fmt == KERN_N_FMT ? (size_t)t->bytes
                                : kern_format_bytes(t->fmt, (size_t)t->ne[0]);
}

/* The bytes of t are read row by row: they are computed, or unpacked from panels. */
static bool is_read_as_rows(const struct packed *p, const struct gguf_tensor *t)
{
    return gguf_is_assembled(p->g) ||
           (t->panel_rows && !packed_place(p, t)->panel_rows);
}

/* Bytes of a piece of any other tensor; what is read as rows is whole rows. */
static size_t piece_bytes_plain(const struct packed *p, const struct gguf_tensor *t)
{
    if (!is_read_as_rows(p, t))
        return PACKED_PIECE;
    const size_t row = row_bytes(t);

    return row < PACKED_PIECE ? PACKED_PIECE / row * row : row;
}

/* Iterator over the pieces of the file: its position and the piece there. */
struct piece {
    size_t tensor, offset; /* in the tensor */
    size_t bytes;
    size_t group;  /* index of the group that the piece is in */
    size_t extent; /* index of the extent that the piece ends in */
    bool astride;  /* the piece begins in another extent */
    bool in_panels;
};

/* Advance to the next piece; false: none left. Start with all zero. */
static bool next_piece(const struct packed *p, struct piece *piece)
{
    piece->offset += piece->bytes;
    while (piece->tensor < gguf_n_tensors(p->g) &&
           (p->places[piece->tensor].elsewhere ||
            piece->offset >= gguf_tensor_at(p->g, piece->tensor)->bytes)) {
        piece->tensor++;
        piece->offset = 0;
    }
    if (piece->tensor == gguf_n_tensors(p->g))
        return false;

    const struct gguf_tensor *t = gguf_tensor_at(p->g, piece->tensor);
    const size_t panel_rows = packed_rows_to_pack(p, t);
    size_t most = piece_bytes_plain(p, t), left = (size_t)t->bytes - piece->offset;

    piece->in_panels = false;
    if (panel_rows) {
        const size_t row = row_bytes(t);
        const size_t slice = row * (size_t)t->ne[1], panels = row * panel_rows;
        const size_t at = piece->offset % slice;

        piece->in_panels = at < panels;
        left = (piece->in_panels ? panels : slice) - at;
        if (piece->in_panels)
            most = packed_piece_bytes(row * KERN_PANEL_ROWS);
    }
    piece->bytes = left < most ? left : most;

    const size_t first = p->places[piece->tensor].at + piece->offset;
    const size_t extent = (first + piece->bytes - 1) / EXTENT;

    piece->astride = first / EXTENT != extent;
    piece->group += extent != piece->extent || gguf_is_assembled(p->g);
    piece->extent = extent;
    return true;
}

/* ---- filling --------------------------------------------------------------------- */

struct fill {
    struct packed *p;
    unsigned char *buffers; /* [n_workers][buffer_bytes] */
    int n_workers;
    int (*progress)(void *arg, size_t done, size_t total);
    void *arg;
    size_t reported; /* bytes, in the last call of progress */
    off_t advised;   /* readahead has been advised up to this offset */
    off_t dropped;   /* dropped from the page cache up to this offset */
    atomic_size_t next, done;
    atomic_bool failed; /* the thread that sets it writes err */
    struct err why;
};

/* Read a piece, in the layout of the file, to dst. */
static enum status read_piece(const struct packed *p, const struct piece *piece,
                              unsigned char *dst, struct err *err)
{
    const struct gguf_tensor *t = gguf_tensor_at(p->g, piece->tensor);

    if (is_read_as_rows(p, t)) {
        const size_t row = row_bytes(t);

        return gguf_read_rows(p->g, t, piece->offset / row, piece->bytes / row,
                              p->drop_cached, dst, err);
    }
    return gguf_read_bytes(p->g, dst, piece->bytes, t->offset + piece->offset, err);
}

static enum status fill_piece(const struct packed *p, const struct piece *piece,
                              unsigned char *buffer, struct err *err)
{
    const struct gguf_tensor *t = gguf_tensor_at(p->g, piece->tensor);
    unsigned char *dst = p->base + p->places[piece->tensor].at + piece->offset;
    enum status st = ST_OK;

    if (p->mem.base)
        st = read_piece(p, piece, piece->in_panels ? buffer : dst, err);
    else if (piece->in_panels)
        memcpy(buffer, dst, piece->bytes);
    if (st)
        return st;
    if (piece->in_panels) {
        const size_t k = (size_t)t->ne[0], row = kern_format_bytes(t->fmt, k);

        for (size_t at = 0; at < piece->bytes; at += row * KERN_PANEL_ROWS)
            p->kern.pack[t->fmt](k, buffer + at, row, dst + at);
    }
    return ST_OK;
}

static void give_up(struct fill *f, const struct err *why)
{
    if (!atomic_exchange(&f->failed, true))
        f->why = *why;
}

static void report_progress(struct fill *f, size_t done)
{
    struct err err = ERR_INIT;

    f->reported = done;
    if (f->progress && f->progress(f->arg, done, f->p->total)) {
        err_set(&err, ST_INTERRUPTED, "interrupted");
        give_up(f, &err);
    }
}

/* Read ahead what has a place here of bytes begin to end of the file. */
static void read_ahead(const struct packed *p, off_t begin, off_t end)
{
    for (size_t i = 0; i < gguf_n_tensors(p->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(p->g, i);
        const off_t first = (off_t)t->offset, last = (off_t)(t->offset + t->bytes);
        const off_t from = first > begin ? first : begin;
        const off_t to = last < end ? last : end;

        if (from < to && !p->places[i].elsewhere)
            (void)posix_fadvise(gguf_fd(p->g), from, to - from, POSIX_FADV_WILLNEED);
    }
}

/* The caller's thread has reached this offset of the file; other threads may be one
 * group behind it each. */
static void steer_page_cache(struct fill *f, off_t at)
{
    const int fd = gguf_fd(f->p->g);
    const off_t behind = (off_t)f->n_workers * (off_t)EXTENT;

    if (!gguf_is_mapped(f->p->g))
        return;
    if (at + AHEAD >= f->advised + STEP) {
        const off_t begin = f->advised > at ? f->advised : at;

        if (f->p->all)
            (void)posix_fadvise(fd, begin, at + AHEAD - begin, POSIX_FADV_WILLNEED);
        else
            read_ahead(f->p, begin, at + AHEAD);
        f->advised = at + AHEAD;
    }
    if (f->p->drop_cached && at >= f->dropped + behind + STEP) {
        pagecache_drop(fd, (uint64_t)f->dropped, (uint64_t)(at - behind));
        f->dropped = at - behind;
    }
}

/* False: a piece has failed, so all threads stop. */
static bool take(struct fill *f, int thread, const struct piece *piece)
{
    const uint64_t at = gguf_tensor_at(f->p->g, piece->tensor)->offset + piece->offset;
    struct err err = ERR_INIT;

    if (atomic_load(&f->failed))
        return false;
    if (fill_piece(f->p, piece, f->buffers + (size_t)thread * f->p->buffer_bytes,
                   &err)) {
        give_up(f, &err);
        return false;
    }
    const size_t done = atomic_fetch_add(&f->done, piece->bytes) + piece->bytes;

    if (thread == 0) {
        steer_page_cache(f, (off_t)at);
        report_progress(f, done);
    }
    return true;
}

/* Every thread iterates over all pieces and takes those of its groups; in a group it
 * takes the piece that begins in the previous extent last, when that extent's pages
 * exist. */
static void work(void *arg, int thread, int n_threads)
{
    struct fill *f = arg;
    struct piece piece = {0}, last = {0};
    size_t mine;

    (void)n_threads;
    if (thread >= f->n_workers)
        return;
    mine = atomic_fetch_add(&f->next, 1);
    while (next_piece(f->p, &piece)) {
        /* Group numbers have no gaps: the number drawn here is at least this one's. */
        if (piece.group > mine) {
            if (last.bytes && !take(f, thread, &last))
                return;
            last.bytes = 0;
            mine = atomic_fetch_add(&f->next, 1);
        }
        if (piece.group != mine)
            continue;
        if (piece.astride)
            last = piece;
        else if (!take(f, thread, &piece))
            return;
    }
    if (last.bytes)
        (void)take(f, thread, &last);
}

/* The file and its mapped pages are not needed any more: vectors were read through the
 * mapping. */
static void let_go_of_file(const struct weights *w)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), first = w->begin / page * page;

    (void)madvise((char *)(uintptr_t)gguf_image(w->g) + first, w->end - first,
                  MADV_DONTNEED);
    if (w->packed->drop_cached)
        pagecache_drop(gguf_fd(w->g), w->begin, w->end);
}

/* Every tensor of a packed file that has a place here is there as in the file. */
static bool is_copy(const struct packed *p)
{
    if (!gguf_is_packed(p->g) || !p->mem.base)
        return false;
    for (size_t i = 0; i < gguf_n_tensors(p->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(p->g, i);

        if (!p->places[i].elsewhere &&
            (is_read_as_rows(p, t) || packed_rows_to_pack(p, t)))
            return false;
    }
    return true;
}

/* In as few runs as the tensors' places make. */
static enum status copy_file(const struct packed *p, struct thread_pool *pool,
                             int (*progress)(void *arg, size_t done, size_t total),
                             void *arg, struct err *err)
{
    struct copy_run *runs = calloc(gguf_n_tensors(p->g) + 1, sizeof *runs);
    struct copy_job job = {.g = p->g,
                           .memory = p->base,
                           .runs = runs,
                           .drop_cached = p->drop_cached,
                           .progress = progress,
                           .arg = arg};
    enum status st;

    if (!runs)
        return err_set(err, ST_NO_MEMORY, "no memory for the list of weights");
    for (size_t i = 0; i < gguf_n_tensors(p->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(p->g, i);
        struct copy_run *last = &runs[job.n_runs - (job.n_runs > 0)];

        if (p->places[i].elsewhere)
            continue;
        if (!job.n_runs || last->offset + last->bytes != t->offset ||
            last->at + last->bytes != p->places[i].at) {
            last = &runs[job.n_runs++];
            last->offset = t->offset;
            last->at = p->places[i].at;
        }
        last->bytes += (size_t)residency_kept_bytes(p->g, t);
    }
    st = weights_copy(&job, pool, err);
    free(runs);
    return st;
}

static enum status preload(struct weights *w, struct thread_pool *pool,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err)
{
    struct packed *p = w->packed;
    const int n_threads = pool ? thread_pool_size(pool) : 1;
    struct fill f = {
        .p = p,
        .n_workers = n_threads < MAX_WORKERS ? n_threads : MAX_WORKERS,
        .progress = progress,
        .arg = arg,
    };

    if (p->ready || p->half_done)
        return p->ready ? ST_OK
                        : err_set(err, ST_USAGE,
                                  "%s was left half rewritten when its loading was "
                                  "interrupted; make the image again",
                                  gguf_path(p->g));
    if (p->mem.map_base)
        nodes_spread_memory(p->mem.map_base, p->mem.mapped, nodes_of_threads(pool));
    if (is_copy(p)) {
        const enum status st = copy_file(p, pool, progress, arg, err);

        if (!st)
            let_go_of_file(w);
        p->ready = !st;
        return st;
    }
    f.advised = f.dropped = (off_t)w->begin;
    steer_page_cache(&f, (off_t)w->begin);
    f.buffers = malloc((size_t)f.n_workers * p->buffer_bytes + 1);
    if (!f.buffers)
        return err_set(err, ST_NO_MEMORY, "no memory for buffers to pack weights in");
    if (pool)
        thread_pool_run(pool, work, &f);
    else
        work(&f, 0, 1);
    free(f.buffers);
    if (!f.failed && f.reported < p->total)
        report_progress(&f, p->total);
    p->half_done = f.failed && !p->mem.base;
    if (f.failed)
        return err_set(err, f.why.code, "%s", f.why.msg);
    if (gguf_is_mapped(p->g))
        let_go_of_file(w);
    p->ready = true;
    return ST_OK;
}

const struct weights_policy weights_policy_packed = {
    .preload = preload,
};
