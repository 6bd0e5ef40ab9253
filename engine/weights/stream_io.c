/* SPDX-License-Identifier: MIT
 *
 * stream_io.c - reads by threads that call pread(), and the choice
 */
#include "engine/weights/stream_io.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- threads --------------------------------------------------------------------- */

struct pool {
    int fd, depth, n_started;
    pthread_t *threads;
    pthread_mutex_t lock;
    pthread_cond_t work, ready;
    bool stop;
    /* Rings of depth entries: at most that many are in flight. */
    struct stream_read *queue;
    struct stream_result *results;
    size_t queued, taken, finished, returned; /* counts since the beginning */
};

static void *pool_thread(void *arg)
{
    struct pool *p = arg;
    const size_t depth = (size_t)p->depth;

    pthread_mutex_lock(&p->lock);
    while (!p->stop) {
        struct stream_read r;
        ssize_t got;
        int error;

        if (p->taken == p->queued) {
            pthread_cond_wait(&p->work, &p->lock);
            continue;
        }
        r = p->queue[p->taken++ % depth];
        pthread_mutex_unlock(&p->lock);
        got = pread(p->fd, r.dst, r.bytes, (off_t)r.offset);
        error = errno;
        pthread_mutex_lock(&p->lock);
        p->results[p->finished++ % depth] =
            (struct stream_result){r.tag, got < 0 ? -error : (int)got};
        pthread_cond_signal(&p->ready);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static int pool_submit(void *state, const struct stream_read *r)
{
    struct pool *p = state;

    pthread_mutex_lock(&p->lock);
    p->queue[p->queued++ % (size_t)p->depth] = *r;
    pthread_cond_signal(&p->work);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

static int pool_wait(void *state, struct stream_result *results, int most)
{
    struct pool *p = state;
    int n = 0;

    pthread_mutex_lock(&p->lock);
    while (p->returned == p->finished)
        pthread_cond_wait(&p->ready, &p->lock);
    while (n < most && p->returned != p->finished)
        results[n++] = p->results[p->returned++ % (size_t)p->depth];
    pthread_mutex_unlock(&p->lock);
    return n;
}

static void pool_close(void *state)
{
    struct pool *p = state;

    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_started; i++)
        pthread_join(p->threads[i], NULL);
    pthread_cond_destroy(&p->ready);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->threads);
    free(p->queue);
    free(p->results);
    free(p);
}

static const struct stream_io_class class_pread = {
    .name = "pread",
    .submit = pool_submit,
    .wait = pool_wait,
    .close = pool_close,
};

/* As many threads as the system starts; signals are the program's other threads'. */
static void start_threads(struct pool *p)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (p->n_started < p->depth &&
           !pthread_create(&p->threads[p->n_started], NULL, pool_thread, p))
        pthread_setname_np(p->threads[p->n_started++], "slm-read");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

enum status stream_io_open_pread(struct stream_io *io, int fd, int depth,
                                 struct err *err)
{
    struct pool *p = calloc(1, sizeof *p);

    if (!p)
        return err_set(err, ST_NO_MEMORY, "no memory to read weights with threads");
    p->fd = fd;
    p->depth = depth;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->ready, NULL);
    p->threads = calloc((size_t)depth, sizeof *p->threads);
    p->queue = calloc((size_t)depth, sizeof *p->queue);
    p->results = calloc((size_t)depth, sizeof *p->results);
    if (p->threads && p->queue && p->results)
        start_threads(p);
    if (p->n_started == 0) {
        pool_close(p);
        return err_set(err, ST_NO_MEMORY,
                       "the system starts no threads to read weights with");
    }
    *io = (struct stream_io){&class_pread, p};
    return ST_OK;
}

/* ---- either ---------------------------------------------------------------------- */

enum status stream_io_open(struct stream_io *io, int fd, int depth,
                           struct stream_ring *ring, struct err *err)
{
    struct err why = ERR_INIT;

    if (!stream_io_open_uring(io, fd, depth, ring, &why))
        return ST_OK;
    return stream_io_open_pread(io, fd, depth, err);
}

void stream_io_close(struct stream_io *io)
{
    if (io->class)
        io->class->close(io->state);
    *io = (struct stream_io){NULL, NULL};
}
