/* SPDX-License-Identifier: MIT
 *
 * stream_reader.h - a thread that reads parts of layers into memory, ahead of who uses
 * them
 *
 * Parts 0 .. n_parts-1 are read in this order, again and again. Each has a place in
 * memory, which it shares with others: it is read as soon as the part that was there
 * before has been given back. Users take parts in the same order. Up to `depth`
 * requests are in flight, across the borders of parts and of rounds, so that the disk
 * is idle only when all places are full.
 *
 *     reader:  empty --> being read --> full          (waits for an empty place)
 *     user:                     stream_reader_wait() --> in use
 *                               stream_reader_done() --> empty
 *
 * The first failure ends the reading for good: a read that fails, a file that has
 * become shorter or has been written to. Users then never wait again, and find out with
 * stream_reader_check() that what they have computed is void.
 *
 * Threading: stream_reader_wait(), _check() and _stats() by any thread;
 * stream_reader_done() by one of those that waited, when none uses the part any more;
 * the others by the thread that opened it.
 */
#ifndef SLM_ENGINE_WEIGHTS_STREAM_READER_H
#define SLM_ENGINE_WEIGHTS_STREAM_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/weights/stream_io.h"

/* Bytes begin .. end-1 of the file, to dst. end may be beyond the file's end by less
 * than a block: nothing is there to be read. */
struct stream_extent {
    uint64_t begin, end;
    unsigned char *dst;
};

struct stream_part {
    const struct stream_extent *extents; /* in the order in which they are read */
    int n_extents;                       /* >= 1 */
    int place;                           /* the memory that they are in */
};

struct stream_reader_params {
    int fd;
    const char *path;    /* for messages */
    uint64_t file_bytes; /* that the file had when it was understood */
    bool direct;         /* fd reads past the page cache, whole blocks only; else what
                            has been read is dropped from it */
    const struct stream_part *parts;
    int n_parts, n_places;
    int depth;
    uint32_t request_bytes; /* a multiple of a block */
};

struct stream_reader_stats {
    uint64_t bytes_read, n_reads;
};

struct stream_reader;

/* Start the thread, on any CPU that the caller may use now; it reads nothing before
 * stream_reader_start(). What params points to, and fd, must outlive the reader, which
 * takes over *io, also on failure. Errors: ST_IO, ST_NO_MEMORY. */
enum status stream_reader_open(struct stream_reader **r,
                               const struct stream_reader_params *params,
                               struct stream_io *io, struct err *err);
void stream_reader_start(struct stream_reader *r);

/* End the thread, after the requests in flight. NULL is fine. */
void stream_reader_close(struct stream_reader *r);

/* Wait until part i is full, or reading has failed. Returns the time waited, in
 * nanoseconds; 0 where it was there. */
uint64_t stream_reader_wait(struct stream_reader *r, int i);

/* Give part i back: its place is read into. */
void stream_reader_done(struct stream_reader *r, int i);

/* ST_IO: why reading has failed. */
enum status stream_reader_check(const struct stream_reader *r, struct err *err);

void stream_reader_stats(const struct stream_reader *r,
                         struct stream_reader_stats *out);

#endif
