/* SPDX-License-Identifier: MIT
 *
 * weights_stream.c - weights of which some layers are read again for every pass
 *
 * The rest is packed (weights_packed.c). The parts of all streamed layers lie in the
 * places of one slot; the extents of a part lie in its place in the order of the file.
 */
#include "engine/weights/weights_impl.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/weights/stream_reader.h"
#include "engine/weights/weights_file.h"

struct stream {
    const struct gguf *g;
    const struct residency_plan *plan;
    struct residency_map map;
    struct mem slot;
    struct read_extent *extents; /* of all streamed layers */
    struct stream_part *parts;   /* [n_parts] of all streamed layers, in their order */
    int n_parts;
    int *number; /* [n_streamed * RESIDENCY_PARTS] into parts; -1: the layer has no
                    tensors of that part */
    struct weights_file file;
    const char *backend;
    struct stream_reader *reader;
    atomic_uint_least64_t wait_ns;
};

/* ---- opening and closing --------------------------------------------------------- */

/* Extents of part k of the map, to `extents`; their number. */
static int place_extents(const struct stream *s, size_t k, enum residency_part part,
                         struct read_extent *extents)
{
    unsigned char *const place =
        (unsigned char *)s->slot.base + residency_place(s->plan, part);
    int n = 0;

    assert(s->map.bytes[k] <= s->plan->part_bytes[part]);
    for (size_t i = s->map.first[k]; i < s->map.first[k + 1]; i++) {
        const struct residency_extent *e = &s->map.extents[i];

        extents[n++] = (struct read_extent){e->begin, e->end, place + e->at};
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
        struct read_extent *extents = &s->extents[n_extents];
        const int n =
            place_extents(s, (size_t)layer * RESIDENCY_PARTS + part, part, extents);

        s->number[i] = n ? s->n_parts : -1;
        if (n)
            s->parts[s->n_parts++] = (struct stream_part){extents, n, (int)part};
        n_extents += (size_t)n;
    }
    return ST_OK;
}

static enum status open_reader(struct stream *s, struct stream_ring *ring,
                               struct err *err)
{
    const struct extent_reader_params params = weights_file_params(&s->file);
    struct stream_io io;
    enum status st = stream_io_open(&io, params.fd, params.depth, ring, err);

    if (st)
        return st;
    s->backend = io.class->name;
    return stream_reader_open(&s->reader, &params, s->parts, s->n_parts,
                              RESIDENCY_PARTS, &io, err);
}

enum status stream_open(struct stream **out, const struct gguf *g,
                        const struct residency_plan *plan, enum mem_pages pages,
                        struct stream_ring *ring, struct err *err)
{
    struct stream *s = calloc(1, sizeof *s);
    enum status st;

    if (!s)
        return err_set(err, ST_NO_MEMORY, "no memory to stream weights");
    s->g = g;
    s->plan = plan;
    s->file.own = -1;
    st = residency_map_make(&s->map, g, plan->n_layers, err);
    if (!st)
        st = mem_alloc(&s->slot, (size_t)plan->slot_bytes, pages, "streamed weights",
                       err);
    if (!st)
        st = make_parts(s, err);
    if (!st) {
        weights_file_open(&s->file, g, s->slot.base);
        st = open_reader(s, ring, err);
    }
    if (st)
        stream_close(s);
    else
        *out = s;
    return st;
}

void stream_start(struct stream *s)
{
    stream_reader_start(s->reader);
}

void stream_close(struct stream *s)
{
    if (!s)
        return;
    stream_reader_close(s->reader);
    weights_file_close(&s->file);
    mem_free(&s->slot);
    residency_map_free(&s->map);
    free(s->number);
    free(s->parts);
    free(s->extents);
    free(s);
}

/* ---- in use ---------------------------------------------------------------------- */

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
    struct extent_reader_stats stats;

    stream_reader_stats(s->reader, &stats);
    *out = (struct slm_stream){
        .bytes_read = stats.bytes_read,
        .n_reads = stats.n_reads,
        .wait_ns = atomic_load_explicit(&s->wait_ns, memory_order_relaxed),
        .backend = s->backend,
        .direct = s->file.direct,
        .depth = WEIGHTS_FILE_DEPTH,
        .request_bytes = WEIGHTS_FILE_REQUEST_BYTES,
    };
}

/* ---- preloading ------------------------------------------------------------------ */

/* Embeddings are looked up in the mapping: a page or two for a token, and no others. */
void stream_advise_lookups(const struct weights *w)
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

/* Loading of what is kept, as the first part of loading. */
struct first_part {
    int (*progress)(void *arg, size_t done, size_t total);
    void *arg;
    size_t rest; /* bytes that follow */
};

static int report_first(void *arg, size_t done, size_t total)
{
    const struct first_part *f = arg;

    return f->progress ? f->progress(f->arg, done, total + f->rest) : 0;
}

/* What is kept; then the reader may fill its slot, or those of experts. */
static enum status preload(struct weights *w, struct thread_pool *pool,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err)
{
    const size_t kept = (size_t)w->plan.kept_bytes;
    struct first_part first = {progress, arg, (size_t)w->plan.cache_bytes};
    const bool again = packed_ready(w->packed);
    enum status st = weights_policy_packed.preload(w, pool, report_first, &first, err);

    if (st || again)
        return st;
    stream_advise_lookups(w);
    if (w->stream)
        stream_start(w->stream);
    if (w->experts)
        st = experts_preload(w->experts, kept, kept + first.rest, progress, arg, err);
    return st;
}

const struct weights_policy weights_policy_stream = {
    .preload = preload,
};
