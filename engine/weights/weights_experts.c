/* SPDX-License-Identifier: MIT
 *
 * weights_experts.c - experts in memory as they are used, the others read when a router
 * has chosen them
 *
 * expert_cache.h decides which experts have slots. A slot holds an expert's slices of
 * its layer's tensors one after another, as the file has them, each with room for the
 * whole blocks that it is read in; an address is congruent to its offset in the file.
 *
 *     thread 0:  take: the experts that have no slot are given one, and asked for
 *     reader:    reads them in this order
 *     threads:   wait for an expert right before its products, those in memory first
 *
 * An expert that loses its slot belongs to a layer that no thread computes: those of
 * the present layer are all taken before the first of them is given a slot.
 */
#include "engine/weights/weights_impl.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "engine/weights/expert_cache.h"
#include "engine/weights/weights_file.h"

/* A layer's gate, up and down. */
#define MAX_TENSORS 4

enum state { ABSENT, ASKED_FOR, PRESENT };

/* A layer's tensors with a slice per expert. */
struct layer_experts {
    const struct gguf_tensor *t[MAX_TENSORS];
    uint64_t at[MAX_TENSORS];         /* of its slices in a slot */
    const void **places[MAX_TENSORS]; /* [n_experts] */
    int n;
};

struct experts {
    const struct gguf *g;
    int n_layers, n_experts;
    struct layer_experts *layers; /* [n_layers] */
    struct expert_cache *cache;
    struct mem mem;
    struct weights_file file;
    const char *backend;
    struct extent_reader *reader;

    atomic_int *states; /* [n_layers * n_experts] */
    int *left;          /* the same: extents still to be read */
    atomic_uint_least64_t wait_ns;

    /* What is asked for: entries head .. tail - 1, modulo their number. */
    pthread_mutex_t lock;
    int *queue; /* [n_layers * n_experts] */
    size_t head, tail;
    int tensor; /* of the one at the head that is read next */
};

static int number_of(const struct experts *x, int layer, int expert)
{
    return layer * x->n_experts + expert;
}

/* ---- the source, in the reader's thread ------------------------------------------ */

/* The blocks of an expert's slice of tensor k, and where they go. */
static struct read_extent extent_of(const struct experts *x, int number, int k)
{
    const int layer = number / x->n_experts, expert = number % x->n_experts;
    const struct layer_experts *y = &x->layers[layer];
    const uint64_t begin =
        y->t[k]->offset + (uint64_t)expert * residency_slice_bytes(y->t[k]);
    const uint64_t first = begin / RESIDENCY_ALIGN * RESIDENCY_ALIGN;
    const uint64_t end = begin + residency_slice_bytes(y->t[k]);

    return (struct read_extent){
        .begin = first,
        .end = (end + RESIDENCY_ALIGN - 1) / RESIDENCY_ALIGN * RESIDENCY_ALIGN,
        .dst = (unsigned char *)(uintptr_t)y->places[k][expert] - (begin - first)};
}

static bool next_extent(void *arg, struct read_extent *extent, int *number)
{
    struct experts *x = arg;
    const size_t n = (size_t)x->n_layers * (size_t)x->n_experts;
    bool is_there;

    pthread_mutex_lock(&x->lock);
    is_there = x->head < x->tail;
    if (is_there) {
        *number = x->queue[x->head % n];
        *extent = extent_of(x, *number, x->tensor);
        if (++x->tensor == x->layers[*number / x->n_experts].n) {
            x->tensor = 0;
            x->head++;
        }
    }
    pthread_mutex_unlock(&x->lock);
    return is_there;
}

static void has_read(void *arg, int number)
{
    struct experts *x = arg;

    if (--x->left[number])
        return;
    atomic_store(&x->states[number], PRESENT);
    extent_reader_announce(x->reader);
}

/* ---- opening and closing --------------------------------------------------------- */

/* The layers' tensors, and a table of places for each. */
static enum status find_tensors(struct experts *x, struct err *err)
{
    for (size_t i = 0; i < gguf_n_tensors(x->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(x->g, i);
        struct layer_experts *y;

        if (!residency_is_experts(t, x->n_layers))
            continue;
        y = &x->layers[residency_layer(t->name)];
        if (y->n == MAX_TENSORS || (int)t->ne[2] != x->n_experts)
            return err_set(err, ST_UNSUPPORTED,
                           "the experts of %s cannot be kept one by one: tensor %s is "
                           "not as those of other layers",
                           gguf_path(x->g), t->name);
        y->places[y->n] = calloc((size_t)x->n_experts, sizeof *y->places[0]);
        if (!y->places[y->n])
            return err_set(err, ST_NO_MEMORY, "no memory for the places of experts");
        y->at[y->n] = y->n ? y->at[y->n - 1] + residency_slice_room(y->t[y->n - 1]) : 0;
        y->t[y->n++] = t;
    }
    return ST_OK;
}

static enum status open_cache(struct experts *x, const struct residency_plan *plan,
                              enum mem_pages pages, struct err *err)
{
    uint64_t *bytes = calloc((size_t)x->n_layers, sizeof *bytes);
    enum status st;

    if (!bytes)
        return err_set(err, ST_NO_MEMORY, "no memory for the sizes of experts");
    for (int l = 0; l < x->n_layers; l++)
        for (int k = 0; k < x->layers[l].n; k++)
            bytes[l] += residency_slice_room(x->layers[l].t[k]);
    st = expert_cache_open(&x->cache, x->n_layers, x->n_experts, bytes,
                           plan->cache_bytes, err);
    free(bytes);
    if (!st)
        st = mem_alloc(&x->mem, (size_t)expert_cache_bytes(x->cache), pages, "experts",
                       err);
    return st;
}

static enum status open_reader(struct experts *x, struct stream_ring *ring,
                               struct err *err)
{
    struct extent_reader_params params;
    struct stream_io io;
    enum status st;

    weights_file_open(&x->file, x->g, x->mem.base);
    params = weights_file_params(&x->file);
    params.source =
        (struct extent_source){.next = next_extent, .has_read = has_read, .arg = x};
    st = stream_io_open(&io, params.fd, params.depth, ring, err);
    if (st)
        return st;
    x->backend = io.class->name;
    return extent_reader_open(&x->reader, &params, &io, err);
}

enum status experts_open(struct experts **out, const struct gguf *g,
                         const struct residency_plan *plan, enum mem_pages pages,
                         struct stream_ring *ring, struct err *err)
{
    const size_t n = (size_t)plan->n_layers * (size_t)plan->n_experts;
    struct experts *x = calloc(1, sizeof *x);
    enum status st = ST_OK;

    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory to keep experts");
    pthread_mutex_init(&x->lock, NULL);
    x->g = g;
    x->file.own = -1;
    x->n_layers = plan->n_layers;
    x->n_experts = plan->n_experts;
    x->layers = calloc((size_t)plan->n_layers, sizeof *x->layers);
    x->states = calloc(n, sizeof *x->states);
    x->left = calloc(n, sizeof *x->left);
    x->queue = calloc(n, sizeof *x->queue);
    if (!x->layers || !x->states || !x->left || !x->queue)
        st = err_set(err, ST_NO_MEMORY, "no memory to keep experts");
    if (!st)
        st = find_tensors(x, err);
    if (!st)
        st = open_cache(x, plan, pages, err);
    if (!st)
        st = open_reader(x, ring, err);
    if (st)
        experts_close(x);
    else
        *out = x;
    return st;
}

void experts_start(struct experts *x)
{
    extent_reader_start(x->reader);
}

void experts_close(struct experts *x)
{
    if (!x)
        return;
    extent_reader_close(x->reader);
    weights_file_close(&x->file);
    mem_free(&x->mem);
    expert_cache_close(x->cache);
    for (int l = 0; x->layers && l < x->n_layers; l++)
        for (int k = 0; k < MAX_TENSORS; k++)
            free(x->layers[l].places[k]);
    pthread_mutex_destroy(&x->lock);
    free(x->layers);
    free(x->states);
    free(x->left);
    free(x->queue);
    free(x);
}

/* Whole pages of memory that is no slot any more. */
static void release(void *arg, uint64_t at, uint64_t bytes)
{
    const struct experts *x = arg;

    weights_release((unsigned char *)x->mem.base + at, (size_t)bytes);
}

void experts_reclaim(struct experts *x, uint64_t cache_bytes)
{
    expert_cache_shrink(x->cache, cache_bytes, release, x);
    for (int layer = 0; layer < x->n_layers; layer++)
        for (int e = 0; x->layers[layer].n && e < x->n_experts; e++)
            if (expert_cache_at(x->cache, layer, e) < 0)
                atomic_store(&x->states[number_of(x, layer, e)], ABSENT);
}

const void *const *experts_slices(const struct experts *x, const struct gguf_tensor *t)
{
    const struct layer_experts *y = &x->layers[residency_layer(t->name)];

    for (int k = 0; k < y->n; k++)
        if (y->t[k] == t)
            return y->places[k];
    return NULL;
}

/* ---- asking ---------------------------------------------------------------------- */

/* An expert has been given a slot: where its slices will be. */
static void place(struct experts *x, int number)
{
    const int layer = number / x->n_experts, expert = number % x->n_experts;
    const struct layer_experts *y = &x->layers[layer];
    unsigned char *slot =
        (unsigned char *)x->mem.base + expert_cache_at(x->cache, layer, expert);

    for (int k = 0; k < y->n; k++) {
        const uint64_t begin =
            y->t[k]->offset + (uint64_t)expert * residency_slice_bytes(y->t[k]);

        y->places[k][expert] = slot + y->at[k] + begin % RESIDENCY_ALIGN;
    }
}

static void request(struct experts *x, int number)
{
    const size_t n = (size_t)x->n_layers * (size_t)x->n_experts;

    place(x, number);
    atomic_store(&x->states[number], ASKED_FOR);
    x->left[number] = x->layers[number / x->n_experts].n;
    pthread_mutex_lock(&x->lock);
    assert(x->tail - x->head < n);
    x->queue[x->tail++ % n] = number;
    pthread_mutex_unlock(&x->lock);
}

void experts_begin(struct experts *x, int n_tokens)
{
    expert_cache_begin(x->cache, n_tokens);
}

void experts_take(struct experts *x, int layer, const int *experts, const int *n_uses,
                  int n, int *order)
{
    int n_present = 0, n_requested = 0, evicted;

    /* Those in memory keep their slots. */
    for (int i = 0; i < n; i++)
        if (expert_cache_at(x->cache, layer, experts[i]) >= 0) {
            (void)expert_cache_take(x->cache, layer, experts[i], n_uses[i], &evicted);
            order[n_present++] = experts[i];
        }
    for (int i = 0; i < n; i++) {
        if (expert_cache_at(x->cache, layer, experts[i]) >= 0)
            continue;
        (void)expert_cache_take(x->cache, layer, experts[i], n_uses[i], &evicted);
        if (evicted >= 0)
            atomic_store(&x->states[evicted], ABSENT);
        request(x, number_of(x, layer, experts[i]));
        order[n_present + n_requested++] = experts[i];
    }
    if (n_requested)
        extent_reader_wake(x->reader);
}

static bool is_present(void *arg, int number)
{
    struct experts *x = arg;

    return atomic_load(&x->states[number]) == PRESENT;
}

void experts_wait(struct experts *x, int layer, int expert, int thread)
{
    const uint64_t ns =
        extent_reader_wait(x->reader, is_present, x, number_of(x, layer, expert));

    if (thread == 0)
        atomic_fetch_add_explicit(&x->wait_ns, ns, memory_order_relaxed);
}

void experts_done(struct experts *x, int layer)
{
    if (x->layers[layer].n)
        expert_cache_give_back(x->cache, layer);
}

enum status experts_check(const struct experts *x, struct err *err)
{
    return extent_reader_check(x->reader, err);
}

void experts_stats(const struct experts *x, struct slm_stream *out)
{
    struct extent_reader_stats stats;

    extent_reader_stats(x->reader, &stats);
    *out = (struct slm_stream){
        .bytes_read = stats.bytes_read,
        .n_reads = stats.n_reads,
        .wait_ns = atomic_load_explicit(&x->wait_ns, memory_order_relaxed),
        .backend = x->backend,
        .direct = x->file.direct,
        .depth = WEIGHTS_FILE_DEPTH,
        .request_bytes = WEIGHTS_FILE_REQUEST_BYTES,
    };
    expert_cache_uses(x->cache, &out->expert_hits, &out->expert_uses);
}

/* ---- preloading ------------------------------------------------------------------ */

/* Experts asked for ahead of the one that is waited for: the disk is never idle. */
#define AHEAD 16

enum status experts_preload(struct experts *x, size_t done, size_t total,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err)
{
    int requested[AHEAD];
    size_t n_requested = 0, n_read = 0;
    bool more = true, interrupted = false;

    experts_start(x);
    while (more || n_read < n_requested) {
        while (more && n_requested - n_read < AHEAD) {
            const int number = expert_cache_fill(x->cache);

            more = number >= 0;
            if (more)
                request(x, requested[n_requested++ % AHEAD] = number);
        }
        if (n_read == n_requested)
            break;
        extent_reader_wake(x->reader);
        const int number = requested[n_read++ % AHEAD];
        const struct layer_experts *y = &x->layers[number / x->n_experts];

        (void)extent_reader_wait(x->reader, is_present, x, number);
        if (experts_check(x, err))
            return err->code;
        for (int k = 0; k < y->n; k++)
            done += (size_t)residency_slice_bytes(y->t[k]);
        /* What has been asked for is read, as passes may follow. */
        interrupted = interrupted || (progress && progress(arg, done, total));
        more = more && !interrupted;
    }
    if (!interrupted && progress && progress(arg, total, total))
        interrupted = true;
    return interrupted ? err_set(err, ST_INTERRUPTED, "interrupted") : ST_OK;
}
