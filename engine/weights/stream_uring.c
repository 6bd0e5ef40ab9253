/* SPDX-License-Identifier: MIT
 *
 * stream_uring.c - reads by io_uring, through a ring that is made for one file or one
 * that was made before (stream_ring.h)
 */
#include "engine/weights/stream_io.h"

#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct stream_ring {
    struct io_uring ring;
    bool in_use;
};

struct uring {
    struct io_uring *ring;
    struct stream_ring *of; /* whose ring it is; NULL: .own */
    struct io_uring own;
    int fd, n_in_flight;
};

/* ---- reading --------------------------------------------------------------------- */

static int uring_submit(void *state, const struct stream_read *r)
{
    struct uring *u = state;
    struct io_uring_sqe *sqe = io_uring_get_sqe(u->ring);
    int n;

    if (!sqe)
        return -EBUSY;
    io_uring_prep_read(sqe, u->fd, r->dst, r->bytes, r->offset);
    io_uring_sqe_set_data(sqe, (void *)(uintptr_t)r->tag);
    do
        n = io_uring_submit(u->ring);
    while (n == -EINTR || n == -EAGAIN);
    u->n_in_flight++;
    return n < 0 ? n : 0;
}

static int uring_wait(void *state, struct stream_result *results, int most)
{
    struct uring *u = state;
    struct io_uring_cqe *cqe;
    int rc, n = 0;

    do
        rc = io_uring_wait_cqe(u->ring, &cqe);
    while (rc == -EINTR || rc == -EAGAIN);
    if (rc < 0)
        return rc;
    do {
        results[n++] = (struct stream_result){
            .tag = (uint32_t)(uintptr_t)io_uring_cqe_get_data(cqe), .result = cqe->res};
        io_uring_cqe_seen(u->ring, cqe);
    } while (n < most && !io_uring_peek_cqe(u->ring, &cqe));
    u->n_in_flight -= n;
    return n;
}

/* A ring with a request that has failed to go or to come back stays in use: its next
 * user would be given the result. */
static void uring_close(void *state)
{
    struct uring *u = state;

    if (!u->of)
        io_uring_queue_exit(&u->own);
    else if (u->n_in_flight == 0)
        u->of->in_use = false;
    free(u);
}

static const struct stream_io_class class_uring = {
    .name = "io_uring",
    .submit = uring_submit,
    .wait = uring_wait,
    .close = uring_close,
};

static enum status is_unavailable(int rc, struct err *err)
{
    return err_set(err, ST_UNSUPPORTED, "io_uring is not available here: %s",
                   strerror(-rc));
}

enum status stream_io_open_uring(struct stream_io *io, int fd, int depth,
                                 struct stream_ring *ring, struct err *err)
{
    struct uring *u = calloc(1, sizeof *u);
    int rc;

    if (!u)
        return err_set(err, ST_NO_MEMORY, "no memory to read weights with io_uring");
    u->fd = fd;
    if (ring && !ring->in_use && depth <= STREAM_RING_DEPTH) {
        ring->in_use = true;
        u->of = ring;
        u->ring = &ring->ring;
    } else {
        u->ring = &u->own;
        rc = io_uring_queue_init((unsigned)depth, &u->own, 0);
        if (rc < 0) {
            free(u);
            return is_unavailable(rc, err);
        }
    }
    *io = (struct stream_io){&class_uring, u};
    return ST_OK;
}

/* ---- a ring that only reads ------------------------------------------------------ */

/* Some versions of liburing have no symbol for these two. */
static int change_ring(const struct io_uring *ring, unsigned op, void *arg, unsigned n)
{
    return syscall(SYS_io_uring_register, ring->ring_fd, op, arg, n) ? -errno : 0;
}

/* What is not named here is forbidden once the ring is enabled. */
static int restrict_ring(struct io_uring *ring)
{
    struct io_uring_restriction reads = {.opcode = IORING_RESTRICTION_SQE_OP,
                                         .sqe_op = IORING_OP_READ};
    const int rc = change_ring(ring, IORING_REGISTER_RESTRICTIONS, &reads, 1);

    return rc ? rc : change_ring(ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

enum status stream_ring_make(struct stream_ring **out, struct err *err)
{
    struct stream_ring *r = calloc(1, sizeof *r);
    int rc;

    if (!r)
        return err_set(err, ST_NO_MEMORY, "no memory to read weights with io_uring");
    rc = io_uring_queue_init(STREAM_RING_DEPTH, &r->ring, IORING_SETUP_R_DISABLED);
    if (rc < 0) {
        free(r);
        return is_unavailable(rc, err);
    }
    rc = restrict_ring(&r->ring);
    if (rc >= 0) /* a filter around this process may forbid this alone */
        rc =
            syscall(SYS_io_uring_enter, r->ring.ring_fd, 0, 0, 0, NULL, 0) ? -errno : 0;
    if (rc < 0) {
        stream_ring_close(r);
        return is_unavailable(rc, err);
    }
    *out = r;
    return ST_OK;
}

void stream_ring_close(struct stream_ring *r)
{
    if (!r)
        return;
    io_uring_queue_exit(&r->ring);
    free(r);
}

int stream_ring_fd(const struct stream_ring *r)
{
    return r->ring.ring_fd;
}

struct io_uring *stream_ring_uring(struct stream_ring *r)
{
    return &r->ring;
}
