/* SPDX-License-Identifier: MIT
 *
 * synth_file.c - write a synthetic model to memory, or to a file at disk speed
 *
 * The caller's thread fills two buffers alternately and a writer thread writes them, so
 * that making weights and writing them overlap.
 */
#include "engine/synth/synth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/mem.h"
#include "engine/base/outfile.h"
#include "engine/synth/synth_parts.h"

#define N_BUFFERS 2

enum status synth_write_memory(const struct synth_plan *plan, void *image,
                               synth_progress_fn *progress, void *arg, struct err *err)
{
    const uint64_t total = synth_plan_bytes(plan);
    struct synth_stream *s = NULL;
    uint8_t *out = image;

    if (synth_stream_open(&s, plan, err))
        return ST_NO_MEMORY;
    for (uint64_t done = 0; done < total;) {
        const size_t n = total - done < SYNTH_CHUNK_BYTES ? (size_t)(total - done)
                                                          : SYNTH_CHUNK_BYTES;

        synth_stream_read(s, out + done, n);
        done += n;
        if (progress && progress(arg, done, total)) {
            synth_stream_close(s);
            return err_set(err, ST_INTERRUPTED, "making %s was interrupted",
                           plan->shape.name);
        }
    }
    synth_stream_close(s);
    return ST_OK;
}

/* ---- the writer thread ----------------------------------------------------------- */

struct writer {
    struct outfile *file;
    struct mem mem;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under lock: */
    size_t fill[N_BUFFERS]; /* bytes waiting in each buffer, 0: free */
    bool no_more;
    struct err err; /* the first write that failed */
};

static void *writer_main(void *arg)
{
    struct writer *w = arg;
    uint64_t at = 0;

    for (int i = 0;; i = (i + 1) % N_BUFFERS) {
        pthread_mutex_lock(&w->lock);
        while (!w->fill[i] && !w->no_more)
            pthread_cond_wait(&w->changed, &w->lock);
        const size_t n = w->fill[i];
        pthread_mutex_unlock(&w->lock);
        if (!n)
            return NULL;

        struct err err = ERR_INIT;
        const enum status st = outfile_write(
            w->file, (uint8_t *)w->mem.base + (size_t)i * SYNTH_CHUNK_BYTES, n, at,
            &err);

        at += n;

        pthread_mutex_lock(&w->lock);
        w->fill[i] = 0;
        if (st)
            w->err = err;
        pthread_cond_broadcast(&w->changed);
        pthread_mutex_unlock(&w->lock);
        if (st)
            return NULL;
    }
}

/* Wait until buffer i is free; false: a write has failed. */
static bool writer_wait(struct writer *w, int i)
{
    pthread_mutex_lock(&w->lock);
    while (w->fill[i] && !w->err.code)
        pthread_cond_wait(&w->changed, &w->lock);
    const bool ok = !w->err.code;
    pthread_mutex_unlock(&w->lock);
    return ok;
}

static void writer_give(struct writer *w, int i, size_t n)
{
    pthread_mutex_lock(&w->lock);
    w->fill[i] = n;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

static void writer_finish(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    w->no_more = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}

static enum status pump(const struct synth_plan *plan, struct synth_stream *s,
                        struct writer *w, const char *part, synth_progress_fn *progress,
                        void *arg, struct err *err)
{
    const uint64_t total = synth_plan_bytes(plan);
    uint64_t done = 0;

    for (int i = 0; done < total; i = (i + 1) % N_BUFFERS) {
        uint8_t *buf = (uint8_t *)w->mem.base + (size_t)i * SYNTH_CHUNK_BYTES;
        const size_t n = total - done < SYNTH_CHUNK_BYTES ? (size_t)(total - done)
                                                          : SYNTH_CHUNK_BYTES;

        if (!writer_wait(w, i))
            return ST_OK; /* the writer returns the error */
        synth_stream_read(s, buf, n);
        /* Pad the end for O_DIRECT; outfile_commit() cuts it. */
        writer_give(w, i,
                    (n + OUTFILE_DIRECT_UNIT - 1) / OUTFILE_DIRECT_UNIT *
                        OUTFILE_DIRECT_UNIT);
        done += n;
        if (progress && progress(arg, done, total))
            return err_set(err, ST_INTERRUPTED, "making %s was interrupted", part);
    }
    return ST_OK;
}

/* The whole image into the file. */
static enum status write_image(const struct synth_plan *plan, struct outfile *file,
                               synth_progress_fn *progress, void *arg, struct err *err)
{
    const char *part = outfile_part(file);
    struct writer w = {.file = file,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .changed = PTHREAD_COND_INITIALIZER,
                       .err = ERR_INIT};
    struct synth_stream *s = NULL;
    enum status st = mem_alloc(&w.mem, N_BUFFERS * SYNTH_CHUNK_BYTES, MEM_PAGES_4K,
                               "write buffers", err);
    int failed;

    if (!st)
        st = synth_stream_open(&s, plan, err);
    if (st)
        goto out;
    failed = pthread_create(&w.thread, NULL, writer_main, &w);
    if (failed) {
        st = err_set(err, ST_NO_MEMORY, "cannot start a thread that writes %s: %s",
                     part, strerror(failed));
        goto out;
    }
    st = pump(plan, s, &w, part, progress, arg, err);
    writer_finish(&w);
    if (!st && w.err.code)
        st = err_set(err, w.err.code, "%s", w.err.msg);
out:
    synth_stream_close(s);
    mem_free(&w.mem);
    return st;
}

/* ---- the file -------------------------------------------------------------------- */

enum status synth_write_file(const struct synth_plan *plan, const char *path,
                             synth_progress_fn *progress, void *arg, struct err *err)
{
    const uint64_t bytes = synth_plan_bytes(plan);
    struct outfile *file;
    enum status st = outfile_open(&file, path, bytes, true,
                                  "choose a smaller shape or quantisation", err);

    if (st)
        return st;
    st = write_image(plan, file, progress, arg, err);
    if (!st)
        return outfile_commit(file, bytes, err);
    outfile_abort(file);
    return st;
}

bool synth_file_is(const struct synth_plan *plan, const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat there;
    uint8_t buf[4096];
    bool same;

    if (fd < 0)
        return false;
    same = !fstat(fd, &there) && S_ISREG(there.st_mode) &&
           (uint64_t)there.st_size == synth_plan_bytes(plan);
    for (size_t at = 0; same && at < plan->header.n;) {
        const size_t left = plan->header.n - at;
        const ssize_t n =
            pread(fd, buf, left < sizeof buf ? left : sizeof buf, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        same = n > 0 && !memcmp(buf, plan->header.data + at, (size_t)n);
        at += same ? (size_t)n : 0;
    }
    close(fd);
    return same;
}
