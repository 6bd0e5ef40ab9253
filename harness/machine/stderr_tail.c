/* SPDX-License-Identifier: MIT
 *
 * stderr_tail.c - a pipe, a thread, a ring
 */
#include "harness/machine/child.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "engine/base/utf8.h"

#define PIPE_BYTES (1u << 20) /* more than a pipe holds */

struct stderr_tail {
    int from;    /* our end of the pipe */
    int stop[2]; /* closing the second wakes the thread */
    atomic_bool stops;
    pthread_t thread;
    bool runs;
    bool
        passes_on; /* ring[n] is the beginning of a line that is passed on when whole */
    pthread_mutex_t lock;
    size_t n; /* all that was read; the last of them in ring[] */
    char ring[STDERR_TAIL_BYTES];
};

/* What is there of a line. */
static void pass_on(struct stderr_tail *t)
{
    char text[4 * STDERR_TAIL_BYTES + 1];
    const size_t len = utf8_terminal(text, t->ring, t->n);

    text[len] = '\0';
    utf8_disarm(text);
    for (size_t at = 0; at < len;) {
        const ssize_t n = write(STDERR_FILENO, text + at, len - at);

        if (n < 0 && errno != EINTR)
            break;
        at += n < 0 ? 0 : (size_t)n;
    }
    t->n = 0;
}

static void add_to_line(struct stderr_tail *t, char c)
{
    t->ring[t->n++] = c;
    if (c == '\n' || t->n == STDERR_TAIL_BYTES)
        pass_on(t);
}

static void keep(struct stderr_tail *t, const char *text, size_t n)
{
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < n; i++)
        if (t->passes_on)
            add_to_line(t, text[i]);
        else
            t->ring[t->n++ % STDERR_TAIL_BYTES] = text[i];
    pthread_mutex_unlock(&t->lock);
}

/* One read; 0: nothing more for now, or ever (*ended). */
static size_t read_some(struct stderr_tail *t, bool *ended)
{
    char text[STDERR_TAIL_BYTES];
    const ssize_t n = read(t->from, text, sizeof text);

    *ended = !n || (n < 0 && errno != EAGAIN && errno != EINTR);
    if (n <= 0)
        return 0;
    keep(t, text, (size_t)n);
    return (size_t)n;
}

static void *run(void *arg)
{
    struct stderr_tail *t = arg;
    struct pollfd fd[] = {{.fd = t->from, .events = POLLIN},
                          {.fd = t->stop[0], .events = POLLIN}};
    bool ended = false;
    size_t left = PIPE_BYTES, n;

    while (!ended && !atomic_load(&t->stops)) {
        child_poll(fd, 2, -1);
        if (fd[0].revents)
            read_some(t, &ended);
    }
    /* What the child has written before its end; a process that it leaves behind may
     * write for ever. */
    while (!ended && left && (n = read_some(t, &ended)))
        left -= n < left ? n : left;
    if (t->passes_on)
        pass_on(t);
    return NULL;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static enum status start_thread(struct stderr_tail *t, struct err *err)
{
    sigset_t all, before;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(&t->thread, NULL, run, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    t->runs = !rc;
    errno = rc;
    return rc ? err_set_errno(err, ST_IO,
                              "cannot start a thread that reads the standard error of "
                              "a measuring process")
              : ST_OK;
}

enum status stderr_tail_start(struct stderr_tail **out, int *fd, bool passes_on,
                              struct err *err)
{
    struct stderr_tail *t = calloc(1, sizeof *t);
    int ends[2] = {-1, -1};
    enum status st = ST_OK;

    if (!t)
        return err_set(err, ST_NO_MEMORY,
                       "no memory for the standard error of a process");
    t->from = t->stop[0] = t->stop[1] = -1;
    t->passes_on = passes_on;
    pthread_mutex_init(&t->lock, NULL);
    if (pipe2(ends, O_CLOEXEC) || pipe2(t->stop, O_CLOEXEC))
        st = err_set_errno(err, ST_IO, "cannot start a measuring process");
    t->from = ends[0];
    if (st == ST_OK) {
        fcntl(t->from, F_SETFL, O_NONBLOCK);
        st = start_thread(t, err);
    }
    if (st) {
        close_one(&ends[1]);
        stderr_tail_free(t);
        return st;
    }
    *fd = ends[1];
    *out = t;
    return ST_OK;
}

void stderr_tail_stop(struct stderr_tail *t)
{
    if (!t || !t->runs)
        return;
    atomic_store(&t->stops, true);
    close_one(&t->stop[1]);
    pthread_join(t->thread, NULL);
    t->runs = false;
}

size_t stderr_tail_read(struct stderr_tail *t, char *buf, size_t cap)
{
    size_t n = 0;

    if (t && !t->passes_on) {
        pthread_mutex_lock(&t->lock);
        n = t->n < STDERR_TAIL_BYTES ? t->n : STDERR_TAIL_BYTES;
        n = n < cap - 1 ? n : cap - 1;
        for (size_t i = 0; i < n; i++)
            buf[i] = t->ring[(t->n - n + i) % STDERR_TAIL_BYTES];
        pthread_mutex_unlock(&t->lock);
    }
    buf[n] = '\0';
    return n;
}

void stderr_tail_free(struct stderr_tail *t)
{
    if (!t)
        return;
    stderr_tail_stop(t);
    close_one(&t->from);
    close_one(&t->stop[0]);
    close_one(&t->stop[1]);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
