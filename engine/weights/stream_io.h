/* SPDX-License-Identifier: MIT
 *
 * stream_io.h - several reads of one file in flight at a time
 *
 *   io_uring   requests are queued in a ring that the kernel works on
 *   pread      a thread for each request in flight, where io_uring is forbidden (in
 *              containers) or missing
 *
 * Requests complete in any order. A result is that of one read: it may be short, and
 * the caller asks again for the rest.
 *
 * Threading: one thread uses a struct stream_io; any may close it when nothing is in
 * flight.
 */
#ifndef SLM_ENGINE_WEIGHTS_STREAM_IO_H
#define SLM_ENGINE_WEIGHTS_STREAM_IO_H

#include <stdint.h>

#include "engine/base/status.h"
#include "engine/weights/stream_ring.h"

struct stream_read {
    void *dst;
    uint64_t offset;
    uint32_t bytes;
    uint32_t tag; /* of the caller */
};

struct stream_result {
    uint32_t tag;
    int result; /* bytes read, 0 at the file's end; or -errno */
};

/* A way to read; the functions that have a state are those of struct stream_io. */
struct stream_io_class {
    const char *name; /* "io_uring" */

    /* Queue a read; at most depth are in flight. 0, or -errno. */
    int (*submit)(void *state, const struct stream_read *read);

    /* Wait for at least one result; the number of results, at most `most`; or
     * -errno. */
    int (*wait)(void *state, struct stream_result *results, int most);

    void (*close)(void *state);
};

struct stream_io {
    const struct stream_io_class *class; /* NULL: closed */
    void *state;
};

/* By io_uring, else by pread. fd must stay open as long; so must ring (NULL: none),
 * which is used where nobody else does and it is as deep, else one is made. Errors:
 * ST_NO_MEMORY. */
enum status stream_io_open(struct stream_io *io, int fd, int depth,
                           struct stream_ring *ring, struct err *err);

/* Only that way. Errors: ST_UNSUPPORTED (io_uring: this kernel or this process may
 * not), ST_NO_MEMORY. */
enum status stream_io_open_uring(struct stream_io *io, int fd, int depth,
                                 struct stream_ring *ring, struct err *err);
enum status stream_io_open_pread(struct stream_io *io, int fd, int depth,
                                 struct err *err);

void stream_io_close(struct stream_io *io);

#endif
