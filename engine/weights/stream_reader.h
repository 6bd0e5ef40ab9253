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
 * Failures are those of extent_reader.h.
 *
 * Threading: stream_reader_wait(), _check() and _stats() by any thread;
 * stream_reader_done() by one of those that waited, when none uses the part any more;
 * the others by the thread that opened it.
 */
#ifndef SLM_ENGINE_WEIGHTS_STREAM_READER_H
#define SLM_ENGINE_WEIGHTS_STREAM_READER_H

#include "engine/weights/extent_reader.h"

struct stream_part {
    const struct read_extent *extents; /* in the order in which they are read */
    int n_extents;                     /* >= 1 */
    int place;                         /* the memory that they are in */
};

struct stream_reader;

/* As extent_reader_open(), whose source this is. parts[n_parts], whose places are 0 ..
 * n_places-1, must outlive the reader. */
enum status stream_reader_open(struct stream_reader **r,
                               const struct extent_reader_params *params,
                               const struct stream_part *parts, int n_parts,
                               int n_places, struct stream_io *io, struct err *err);
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
                         struct extent_reader_stats *out);

#endif
