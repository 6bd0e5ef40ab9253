/* SPDX-License-Identifier: MIT
 *
 * stream_reader.c - the sequence of parts, and their states
 *
 * A state belongs to the reader while a part is empty or being read, and to the users
 * while it is full.
 */
#include "engine/weights/stream_reader.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

enum state { EMPTY, BEING_READ, FULL };

struct stream_reader {
    const struct stream_part *parts;
    int n_parts;
    atomic_int *states; /* [n_parts] */
    int *left;          /* [n_parts] extents that are still to be read */
    int *last;          /* [n_places] the part that was there last; -1: none */
    int part, extent;   /* the next one; the part has begun if extent is not 0 */
    struct extent_reader *reader;
};

/* ---- the source, in the reader's thread ------------------------------------------ */

/* The part that had this one's place before has been given back. */
static bool place_is_empty(struct stream_reader *r, int part)
{
    const int last = r->last[r->parts[part].place];

    return last < 0 || atomic_load(&r->states[last]) == EMPTY;
}

static bool next_extent(void *arg, struct read_extent *extent, int *part)
{
    struct stream_reader *r = arg;
    const struct stream_part *p = &r->parts[r->part];

    if (r->extent == 0) {
        if (!place_is_empty(r, r->part))
            return false;
        r->left[r->part] = p->n_extents;
        r->last[p->place] = r->part;
        atomic_store(&r->states[r->part], BEING_READ);
    }
    *extent = p->extents[r->extent];
    *part = r->part;
    if (++r->extent == p->n_extents) {
        r->extent = 0;
        r->part = (r->part + 1) % r->n_parts;
    }
    return true;
}

static void has_read(void *arg, int part)
{
    struct stream_reader *r = arg;

    if (--r->left[part])
        return;
    atomic_store(&r->states[part], FULL);
    extent_reader_announce(r->reader);
}

/* ---- opening and closing --------------------------------------------------------- */

enum status stream_reader_open(struct stream_reader **out,
                               const struct extent_reader_params *params,
                               const struct stream_part *parts, int n_parts,
                               int n_places, struct stream_io *io, struct err *err)
{
    struct extent_reader_params p = *params;
    struct stream_reader *r = calloc(1, sizeof *r);
    enum status st;

    assert(n_parts > 0 && n_places > 0);
    if (r) {
        r->states = calloc((size_t)n_parts, sizeof *r->states);
        r->left = calloc((size_t)n_parts, sizeof *r->left);
        r->last = malloc((size_t)n_places * sizeof *r->last);
    }
    if (!r || !r->states || !r->left || !r->last) {
        stream_io_close(io);
        stream_reader_close(r);
        return err_set(err, ST_NO_MEMORY, "no memory to stream weights");
    }
    for (int i = 0; i < n_places; i++)
        r->last[i] = -1;
    r->parts = parts;
    r->n_parts = n_parts;
    p.source =
        (struct extent_source){.next = next_extent, .has_read = has_read, .arg = r};
    st = extent_reader_open(&r->reader, &p, io, err);
    if (st)
        stream_reader_close(r);
    else
        *out = r;
    return st;
}

void stream_reader_start(struct stream_reader *r)
{
    extent_reader_start(r->reader);
}

void stream_reader_close(struct stream_reader *r)
{
    if (!r)
        return;
    extent_reader_close(r->reader);
    free(r->states);
    free(r->left);
    free(r->last);
    free(r);
}

/* ---- for users ------------------------------------------------------------------- */

static bool is_full(void *arg, int i)
{
    struct stream_reader *r = arg;

    return atomic_load(&r->states[i]) == FULL;
}

uint64_t stream_reader_wait(struct stream_reader *r, int i)
{
    return extent_reader_wait(r->reader, is_full, r, i);
}

void stream_reader_done(struct stream_reader *r, int i)
{
    int full = FULL;

    /* After a failure users continue with parts that are not full. */
    if (atomic_compare_exchange_strong(&r->states[i], &full, EMPTY))
        extent_reader_wake(r->reader);
}

enum status stream_reader_check(const struct stream_reader *r, struct err *err)
{
    return extent_reader_check(r->reader, err);
}

void stream_reader_stats(const struct stream_reader *r, struct extent_reader_stats *out)
{
    extent_reader_stats(r->reader, out);
}
