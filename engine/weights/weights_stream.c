/* SPDX-License-Identifier: MIT
 *
 * weights_stream.c - weights of which some layers are read again for every pass
 *
 * The rest is packed (weights_packed.c). Slots lie one after another in one block of
 * memory; a streamed layer's extents lie in its slot in the order of the file.
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
    struct mem slots;
    struct stream_part *parts;   /* of all streamed layers */
    struct stream_layer *layers; /* [n_streamed] */
    int fd;                      /* of its own; -1: the gguf's */
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
    s->direct = reads_directly(s->fd, s->slots.base);
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

static unsigned char *slot_of(const struct stream *s, int i)
{
    return (unsigned char *)s->slots.base +
           (size_t)(i % s->plan->n_slots) * (size_t)s->plan->slot_bytes;
}

static enum status make_layers(struct stream *s, struct err *err)
{
    const int n = s->plan->n_streamed;
    size_t n_parts = 0;

    s->layers = calloc((size_t)n, sizeof *s->layers);
    s->parts = calloc(s->map.first[s->map.n_layers] + 1, sizeof *s->parts);
    if (!s->layers || !s->parts)
        return err_set(err, ST_NO_MEMORY, "no memory for the places of %d layers", n);
    for (int i = 0; i < n; i++) {
        const int layer = residency_streamed_layer(s->plan, i);

        s->layers[i].parts = &s->parts[n_parts];
        for (size_t k = s->map.first[layer]; k < s->map.first[layer + 1]; k++) {
            const struct residency_extent *e = &s->map.extents[k];

            assert(e->at + (e->end - e->begin) <= s->plan->slot_bytes);
            s->parts[n_parts++] =
                (struct stream_part){e->begin, e->end, slot_of(s, i) + e->at};
            s->layers[i].n_parts++;
        }
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
        .layers = s->layers,
        .n_layers = s->plan->n_streamed,
        .n_slots = s->plan->n_slots,
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
        st = mem_alloc(&s->slots, (size_t)plan->n_slots * (size_t)plan->slot_bytes,
                       pages, "streamed weights", err);
    if (!st)
        st = make_layers(s, err);
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
    mem_free(&s->slots);
    residency_map_free(&s->map);
    free(s->layers);
    free(s->parts);
    free(s);
}

/* ---- in use ------------------------------------------------------------------------
 */

const void *stream_data(const struct stream *s, const struct gguf_tensor *t)
{
    const int layer = residency_layer(t);

    return slot_of(s, residency_streamed_index(s->plan, layer)) +
           residency_slot_offset(&s->map, layer, t->offset);
}

void stream_wait(struct stream *s, int layer, int thread)
{
    const int i = residency_streamed_index(s->plan, layer);
    uint64_t waited_ns;

    if (i < 0)
        return;
    waited_ns = stream_reader_wait(s->reader, i);
    if (thread == 0)
        atomic_fetch_add_explicit(&s->wait_ns, waited_ns, memory_order_relaxed);
}

void stream_done(struct stream *s, int layer)
{
    const int i = residency_streamed_index(s->plan, layer);

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

/* Then the reader may fill its slots. */
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
