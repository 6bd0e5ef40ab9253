/* SPDX-License-Identifier: MIT
 *
 * weights_copy.h - stretches of a packed file copied to memory as they are
 *
 * What is in the page cache is copied from there. The rest is read past it (O_DIRECT),
 * several requests at a time, at the disk's bandwidth. A disk that turns out to give
 * less than 1 GB/s is read through the page cache, which then has the file at the next
 * start; but not where memory has no room for a second copy: there, what was cached is
 * dropped. File systems that cannot read past their cache, or do not say what is in it,
 * are read through it.
 *
 * Threading: as thread_pool_run().
 */
#ifndef SLM_ENGINE_WEIGHTS_WEIGHTS_COPY_H
#define SLM_ENGINE_WEIGHTS_WEIGHTS_COPY_H

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/gguf/gguf.h"

/* bytes from offset of the file to memory + at; all of them multiples of
 * GGUF_PANEL_ALIGN. */
struct copy_run {
    uint64_t offset;
    size_t at, bytes;
};

struct copy_job {
    const struct gguf *g;        /* a mapped one */
    unsigned char *memory;       /* begins with a page */
    const struct copy_run *runs; /* in ascending order, in the file and in memory */
    size_t n_runs;
    bool drop_cached;
    int (*progress)(void *arg, size_t done, size_t total); /* NULL: none */
    void *arg;
};

/* The threads of pool (NULL: the caller alone) copy all runs; the caller's thread calls
 * progress, as in weights_preload(). Errors: ST_IO, ST_INTERRUPTED. */
enum status weights_copy(const struct copy_job *job, struct thread_pool *pool,
                         struct err *err);

#endif
