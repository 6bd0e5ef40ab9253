/* SPDX-License-Identifier: MIT
 *
 * weights_mmap.c - weights in the page cache, through a mapping of the file
 *
 * Preloading starts readahead of AHEAD bytes after the piece that is being mapped, so
 * that reading and mapping overlap. One thread reads for all: the pages are spread over
 * the NUMA nodes of all threads. It leaves out what tokens need a row of each
 * (residency_is_rows()).
 */
#include "engine/weights/weights_impl.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/nodes.h"

#define PIECE ((size_t)4 << 20)
#define AHEAD ((size_t)32 << 20)

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

/* Map a piece, reading missing pages. Where madvise() cannot (no MADV_POPULATE_READ on
 * older kernels; a page that cannot be read) every page is touched: gguf_check() then
 * says what is wrong with one. */
static enum status populate(const struct weights *w, char *p, size_t bytes, size_t page,
                            struct err *err)
{
    while (madvise(p, bytes, MADV_POPULATE_READ)) {
        if (errno == EINTR || errno == EAGAIN)
            continue;
        if (errno == ENOMEM)
            return err_set_errno(err, ST_IO, "cannot read the weights of %s",
                                 gguf_path(w->g));
        for (size_t i = 0; i < bytes; i += page)
            (void)*(volatile char *)(p + i);
        break;
    }
    return gguf_check(w->g, err);
}

/* The first whole pages from `at` on of which tokens need a row each; *end: behind
 * them. At the weights' end: there are none. */
static size_t next_rows(const struct weights *w, size_t at, size_t page, size_t *end)
{
    size_t first = w->end;

    *end = w->end;
    for (size_t i = 0; i < gguf_n_tensors(w->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(w->g, i);
        const size_t from = ((size_t)t->offset + page - 1) / page * page;
        const size_t to = (size_t)(t->offset + t->bytes) / page * page;

        if (residency_is_rows(t) && from < to && to > at && from < first) {
            first = from < at ? at : from;
            *end = to;
        }
    }
    return first;
}

/* Pages from `at` to end. */
static enum status load_run(struct weights *w, size_t at, size_t end, size_t page,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err)
{
    char *image = (char *)(uintptr_t)gguf_image(w->g);
    size_t advised = at;

    while (at < end) {
        const size_t n = end - at < PIECE ? end - at : PIECE;
        const size_t want = end - at < AHEAD ? end : at + AHEAD;

        if (want > advised) {
            (void)madvise(image + advised, want - advised, MADV_WILLNEED);
            advised = want - want % page;
        }
        const enum status st = populate(w, image + at, n, page, err);

        if (st)
            return st;
        at += n;
        if (progress &&
            progress(arg, at > w->begin ? at - w->begin : 0, weights_bytes(w)))
            return err_set(err, ST_INTERRUPTED, "interrupted");
    }
    return ST_OK;
}

static enum status preload(struct weights *w, struct thread_pool *pool,
                           int (*progress)(void *arg, size_t done, size_t total),
                           void *arg, struct err *err)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *image = (char *)(uintptr_t)gguf_image(w->g);
    const bool spread = nodes_spread_begin(nodes_of_threads(pool));
    enum status st = ST_OK;

    for (size_t at = w->begin / page * page, end; !st && at < w->end; at = end) {
        const size_t rows = next_rows(w, at, page, &end);

        if (rows < w->end)
            (void)madvise(image + rows, end - rows, MADV_RANDOM);
        st = load_run(w, at, rows, page, progress, arg, err);
    }
    if (spread)
        nodes_spread_end();
    return st;
}

const void *mmap_longest_run(const struct weights *w, size_t *bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t longest = 0;

    *bytes = 0;
    for (size_t at = 0, end; at < w->end; at = end) {
        const size_t rows = next_rows(w, at, page, &end);

        if (rows - at > *bytes) {
            longest = at;
            *bytes = rows - at;
        }
    }
    return (const char *)gguf_image(w->g) + longest;
}

const struct weights_policy weights_policy_mmap = {
    .preload = preload,
};
