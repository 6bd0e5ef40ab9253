/* SPDX-License-Identifier: MIT
 *
 * weights_stream.c - weights of which some layers are read again for every pass
 *
 * The rest is packed (weights_packed.c). The parts of all streamed layers lie in the
 * places of one slot; the extents of a part lie in its place in the order of the file.
 *
 * The file is opened once more, to be read past the page cache: as the descriptor that
 * the gguf has, by its name in /proc, so that it is the same file even if another one
 * has its path now. File systems that do not read like that (tmpfs, some network file
 * systems) are read through the page cache.
 */
#include "engine/weights/weights_impl.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/weights/stream_reader.h"

/* Disks of virtual machines need several large requests to reach their bandwidth. */
#define DEPTH         8
#define REQUEST_BYTES ((uint32_t)2 << 20)

struct stream {
    const struct gguf *g;
    const struct residency_plan *plan;
    struct residency_map map;
    struct mem slot;
    struct stream_extent *extents; /* of all streamed layers */
    struct stream_part *parts; /* [n_parts] of all streamed layers, in their order */
    int n_parts;
    int *number; /* [n_streamed * RESIDENCY_PARTS] into parts; -1: the layer has no
                    tensors of that part */
    int fd;      /* of its own; -1: the gguf's */
    bool direct;
    const char *backend;
    struct stream_reader *reader;
    atomic_uint_least64_t wait_ns;
};

/* ---- the file ------------------------------------------------------------------- */

static bool same_file(int a, int b)
{
    struct stat one, other;

    return !fstat(a, &one) && !fstat(b, &other) && one.st_dev == other.st_dev &&
           one.st_ino == other.st_ino;
}

/* A descriptor of the same file, with more flags; -1: there is none. */
static int open_again(const struct gguf *g, int flags)
{
    char name[64];
    int fd;

    snprintf(name, sizeof name, "/proc/self/fd/%d", gguf_fd(g));
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags);
    if (fd >= 0 && !same_file(fd, gguf_fd(g))) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* Opening says too little: some file systems refuse only the read. buffer: a block. */
static bool reads_directly(int fd, void *buffer)
{
    return fd >= 0 && pread(fd, buffer, RESIDENCY_ALIGN, 0) > 0;
}

static void open_file(struct stream *s)
{
    s->fd = open_again(s->g, O_DIRECT);
    s->direct = reads_directly(s->fd, s->slot.base);
    if (s->direct)
        return;
    if (s->fd >= 0)
        close(s->fd);
    /* Requests are longer than any readahead, which would read the same bytes twice
     * where they complete out of order. */
    s->fd = open_again(s->g, 0);
    if (s->fd >= 0)
        (void)posix_fadvise(s->fd, 0, 0, POSIX_FADV_RANDOM);
}

static int file_of(const struct stream *s)
{
    return s->fd >= 0 ? s->fd : gguf_fd(s->g);
}

/* ---- opening and closing ----------------------------------------------------------
 */

/* Extents of part k of the map, to `extents`; their number. */
static int place_extents(const struct stream *s, size_t k, enum residency_part part,
                         struct stream_extent *extents)
{
    unsigned char *const place =
        (unsigned char *)s->slot.base + residency_place(s->plan, part);
    int n = 0;

    assert(s->map.bytes[k] <= s->plan->part_bytes[part]);
    for (size_t i = s->map.first[k]; i < s->map.first[k + 1]; i++) {
        const struct residency_extent *e = &s->map.extents[i];

        extents[n++] = (struct stream_extent){e->begin, e->end, place + e->at};
    }
    return n;
}

static enum status make_parts(struct stream *s, struct err *err)
{
    const size_t most = (size_t)s->plan->n_streamed * RESIDENCY_PARTS;
    const size_t n_layers = (size_t)s->map.n_layers;
    size_t n_extents = 0;

    s->number = calloc(most, sizeof *s->number);
    s->parts = calloc(most, sizeof *s->parts);
    s->extents =
        calloc(s->map.first[n_layers * RESIDENCY_PARTS] + 1, sizeof *s->extents);
    if (!s->number || !s->parts || !s->extents)
        return err_set(err, ST_NO_MEMORY, "no memory for the places of %d layers",
                       s->plan->n_streamed);
    for (size_t i = 0; i < most; i++) {
        const int layer = residency_streamed_layer(s->plan, (int)(i / RESIDENCY_PARTS));
        const enum residency_part part = (enum residency_part)(i % RESIDENCY_PARTS);
        struct stream_extent *extents = &s->extents[n_extents];
        const int n =
            place_extents(s, (size_t)layer * RESIDENCY_PARTS + part, part, extents);

        s->number[i] = n ? s->n_parts : -1;
        if (n)
            s->parts[s->n_parts++] = (struct stream_part){extents, n, (int)part};
        n_extents += (size_t)n;
    }
    return ST_OK;
}

static enum status open_reader(struct stream *s, struct err *err)
{
    const struct stream_reader_params params = {
        .fd = file_of(s),
        .path = gguf_path(s->g),
        .file_bytes = gguf_image_bytes(s->g),
        .direct = s->direct,
        .parts = s->parts,
        .n_parts = s->n_parts,
        .n_places = RESIDENCY_PARTS,
        .depth = DEPTH,
        .request_bytes = REQUEST_BYTES,
    };
    struct stream_io io;
    enum status st = stream_io_open(&io, params.fd, params.depth, err);

    if (st)
        return st;
    s->backend = io.class->name;
    return stream_reader_open(&s->reader, &params, &io, err);
}

enum status stream_open(struct stream **out, const struct gguf *g,
                        const struct residency_plan *plan, enum mem_pages pages,
                        struct err *err)
{
    struct stream *s = calloc(1, sizeof *s);
    enum status st;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory to stream weights");
    s->g = g;
    s->plan = plan;
    s->fd = -1;
    st = residency_map_make(&s->map, g, plan->n_layers, err);
    if (!st)
        st = mem_alloc(&s->slot, (size_t)plan->slot_bytes, pages, "streamed weights",
                       err);
    if (!st)
        st = make_parts(s, err);
    if (!st) {
        open_file(s);
        st = open_reader(s, err);
    }
    if (st)
        stream_close(s);
    else
        *out = s;
    return st;
}

void stream_close(struct stream *s)
{
    if (!s)
        return;
    stream_reader_close(s->reader);
    if (s->fd >= 0)
        close(s->fd);
    mem_free(&s->slot);
    residency_map_free(&s->map);
    free(s->number);
    free(s->parts);
    free(s->extents);
    free(s);
}

/* ---- in use ------------------------------------------------------------------------
 */

const void *stream_data(const struct stream *s, const struct gguf_tensor *t)
{
    return (const unsigned char *)s->slot.base +
           residency_slot_offset(s->plan, &s->map, t);
}

/* Which of the parts; -1: it is not streamed. */
static int number_of(const struct stream *s, int layer, enum residency_part part)
{
    const int i = residency_streamed_index(s->plan, layer);

    return i < 0 ? -1 : s->number[i * RESIDENCY_PARTS + (int)part];
}

void stream_wait(struct stream *s, int layer, enum residency_part part, int thread)
{
    const int i = number_of(s, layer, part);
    uint64_t waited_ns;

    if (i < 0)
        return;
    waited_ns = stream_reader_wait(s->reader, i);
    if (thread == 0)
        atomic_fetch_add_explicit(&s->wait_ns, waited_ns, memory_order_relaxed);
}

void stream_done(struct stream *s, int layer, enum residency_part part)
{
    const int i = number_of(s, layer, part);

    if (i >= 0)
        stream_reader_done(s->reader, i);
}

enum status stream_check(const struct stream *s, struct err *err)
{
    return stream_reader_check(s->reader, err);
}

void stream_stats(const struct stream *s, struct slm_stream *out)
{
    struct stream_reader_stats stats;

    stream_reader_stats(s->reader, &stats);
    *out = (struct slm_stream){
        .bytes_read = stats.bytes_read,
        .n_reads = stats.n_reads,
        .wait_ns = atomic_load_explicit(&s->wait_ns, memory_order_relaxed),
        .backend = s->backend,
        .direct = s->direct,
        .depth = DEPTH,
        .request_bytes = REQUEST_BYTES,
    };
}

/* ---- preloading --------------------------------------------------------------------
 */

/* Embeddings are looked up in the mapping: a page or two for a token, and no others. */
static void advise_lookups(const struct weights *w)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);

    for (size_t i = 0; i < gguf_n_tensors(w->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(w->g, i);
        const size_t first = (size_t)t->offset / page * page;

        if (residency_of(&w->plan, w->g, t) == RESIDENCY_DISK)
            (void)madvise((char *)(uintptr_t)gguf_image(w->g) + first,
                          (size_t)(t->offset + t->bytes) - first, MADV_RANDOM);
    }
}

/* Then the reader may fill its slot. */
static enum status preload(struct weights *w, struct thread_pool *pool,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err)
{
    const bool again = packed_ready(w->packed);
    const enum status st = weights_policy_packed.preload(w, pool, progress, arg, err);

    if (st || again)
        return st;
    advise_lookups(w);
    if (w->stream)
        stream_reader_start(w->stream->reader);
    return ST_OK;
}

const struct weights_policy weights_policy_stream = {
    .preload = preload,
};
