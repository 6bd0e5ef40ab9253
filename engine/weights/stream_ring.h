/* SPDX-License-Identifier: MIT
 *
 * stream_ring.h - an io_uring that can do nothing but read
 *
 * A process that is going to read a file nobody has vouched for forbids itself system
 * calls, and with them making an io_uring, which could open files and sockets behind
 * the filter's back. So it makes this one before: the kernel takes no request of it but
 * IORING_OP_READ, without flags, and that cannot be changed once the ring is in use.
 * What it reads it reads through a descriptor that the process has, with the rights
 * that the process has by then: as pread() does. The filter then needs to let through
 * io_uring_enter() on this one descriptor, and neither io_uring_setup() nor
 * io_uring_register().
 *
 * Threading: one user at a time (stream_io.h), of any thread; closed when it has none.
 */
#ifndef SLM_ENGINE_WEIGHTS_STREAM_RING_H
#define SLM_ENGINE_WEIGHTS_STREAM_RING_H

#include "engine/base/status.h"

/* Most reads in flight: as many as streaming has. */
#define STREAM_RING_DEPTH 8

struct stream_ring;
struct io_uring;

/* Errors: ST_UNSUPPORTED (a kernel before 5.10, or this process may not), ST_NO_MEMORY.
 */
enum status stream_ring_make(struct stream_ring **ring, struct err *err);
void stream_ring_close(struct stream_ring *ring); /* NULL is fine */

/* Its descriptor. */
int stream_ring_fd(const struct stream_ring *ring);

/* As liburing has it, for stream_io.h and tests. */
struct io_uring *stream_ring_uring(struct stream_ring *ring);

#endif
