/* SPDX-License-Identifier: MIT
 *
 * row_chunks.c - rounds of equally long chunks
 */
#include "engine/forward/row_chunks.h"

static size_t round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static size_t step_of(const struct row_chunks *c, size_t n)
{
    return n < ROW_CHUNKS_LONG ? c->unit : ROW_CHUNKS_LONG;
}

/* A part of n_parts of n rows. */
static size_t part(const struct row_chunks *c, size_t n, size_t n_parts)
{
    const size_t rows = (n + n_parts - 1) / n_parts;

    return round_up(rows, step_of(c, rows));
}

/* Rows of each chunk of a round that begins with n rows left. Unless shares are not
 * cut, it leaves a unit for every thread. */
static size_t each_of(const struct row_chunks *c, size_t n)
{
    const size_t wanted = part(c, n, c->n_threads * c->n_parts);
    const size_t kept = c->n_parts > 1 ? c->unit : 0, share = n / c->n_threads;
    const size_t most = share > kept ? share - kept : 0;
    const size_t each =
        wanted <= most ? wanted : most / step_of(c, most) * step_of(c, most);

    return each > c->unit ? each : c->unit;
}

struct row_chunks row_chunks_of(size_t n_rows, int n_threads, int n_parts, size_t unit)
{
    struct row_chunks c = {.n_rows = n_rows,
                           .n_threads = (size_t)n_threads,
                           .n_parts = (size_t)n_parts,
                           .unit = unit};

    if (n_threads == 1) /* one round without end */
        c.unit = n_rows ? part(&c, n_rows, c.n_parts) : unit;
    c.each = n_threads == 1 ? c.unit : each_of(&c, n_rows);
    return c;
}

bool row_chunks_get(struct row_chunks *c, size_t i, size_t *begin, size_t *end)
{
    /* Longer chunks than a unit make complete rounds; units follow without end. */
    while (i - c->first >= c->n_threads && c->each > c->unit) {
        c->first += c->n_threads;
        c->begin += c->n_threads * c->each;
        c->each = each_of(c, c->n_rows - c->begin);
    }
    const size_t at = c->begin + (i - c->first) * c->each;

    if (at >= c->n_rows)
        return false;
    *begin = at;
    *end = at + c->each < c->n_rows ? at + c->each : c->n_rows;
    return true;
}
