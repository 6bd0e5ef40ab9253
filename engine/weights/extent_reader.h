/* SPDX-License-Identifier: MIT
 *
 * extent_reader.h - a thread that reads extents of a file, several requests at a time
 *
 * A source says which extent is read next and learns when it has been read: the layers
 * of a model one after another (stream_reader.h), or experts as they are asked for
 * (weights_experts.c). Up to `depth` requests of up to `request_bytes` are in flight,
 * across the borders of extents.
 *
 * The first failure ends the reading for good: a read that fails, a file that has
 * become shorter or has been written to. Waiting then ends at once, and who has waited
 * finds out with extent_reader_check() that what has been computed is void.
 *
 * Threading: the source's functions are called by the reader's thread.
 * extent_reader_wake(), _wait(), _check() and _stats() by any thread; the others by the
 * thread that opened it.
 */
#ifndef SLM_ENGINE_WEIGHTS_EXTENT_READER_H
#define SLM_ENGINE_WEIGHTS_EXTENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/weights/stream_io.h"

/* Bytes begin .. end-1 of the file, to dst; begin < end. end may be beyond the file's
 * end by less than a block: nothing is there to be read. */
struct read_extent {
    uint64_t begin, end;
    unsigned char *dst;
};

struct extent_source {
    /* The next extent, with a number of the source's own; false: there is none for now,
     * and extent_reader_wake() will say when. */
    bool (*next)(void *arg, struct read_extent *extent, int *tag);

    /* The extent with this number has been read. */
    void (*has_read)(void *arg, int tag);

    void *arg;
};

struct extent_reader_params {
    int fd;
    const char *path;    /* for messages */
    uint64_t file_bytes; /* that the file had when it was understood */
    bool direct;         /* fd reads past the page cache, whole blocks only; else what
                            has been read is dropped from it */
    int depth;
    uint32_t request_bytes; /* a multiple of a block */
    struct extent_source source;
};

struct extent_reader_stats {
    uint64_t bytes_read, n_reads;
};

struct extent_reader;

/* Start the thread, on any CPU that the caller may use now; it reads nothing before
 * extent_reader_start(). What params points to, and fd, must outlive the reader, which
 * takes over *io, also on failure. Errors: ST_IO, ST_NO_MEMORY. */
enum status extent_reader_open(struct extent_reader **r,
                               const struct extent_reader_params *params,
                               struct stream_io *io, struct err *err);
void extent_reader_start(struct extent_reader *r);

/* End the thread, after the requests in flight. NULL is fine. */
void extent_reader_close(struct extent_reader *r);

/* The source may have an extent. */
void extent_reader_wake(struct extent_reader *r);

/* What somebody waits for may be there now: for the source, in has_read(). */
void extent_reader_announce(struct extent_reader *r);

/* Wait until is_there(arg, i), or reading has failed. Returns the time waited, in
 * nanoseconds; 0 where it was there. */
uint64_t extent_reader_wait(struct extent_reader *r, bool (*is_there)(void *arg, int i),
                            void *arg, int i);

/* ST_IO: why reading has failed. */
enum status extent_reader_check(const struct extent_reader *r, struct err *err);

void extent_reader_stats(const struct extent_reader *r,
                         struct extent_reader_stats *out);

#endif
