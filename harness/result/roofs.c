/* SPDX-License-Identifier: MIT
 *
 * roofs.c - rows that got less memory bandwidth than others
 */
#include "harness/result/roofs.h"

#include <stdio.h>
#include <string.h>

static int64_t probed_bytes(const struct row *r)
{
    return r->file_bytes < ROOF_MOST_BYTES ? r->file_bytes : ROOF_MOST_BYTES;
}

/* Whether b's roof holds for a: read in the same way, by the same threads, from no
 * fewer bytes. A model that pages is probed through a buffer instead of its weights. */
static bool holds_for(const struct row *a, const struct row *b)
{
    return probed_bytes(b) >= probed_bytes(a) && a->n_threads == b->n_threads &&
           !strcmp(a->cpus, b->cpus) && a->placement == b->placement &&
           a->pages == b->pages && a->residency == b->residency && a->isa == b->isa &&
           b->limiter != LIMITER_PAGING;
}

bool roof_is_low(const struct row *r, const struct row *rows, size_t n_rows,
                 double *best)
{
    double highest = r->roof_gbps;

    if (r->kind != POINT_DECODE || r->limiter == LIMITER_PAGING || !(r->roof_gbps > 0))
        return false;
    for (size_t i = 0; i < n_rows; i++) {
        if (holds_for(r, &rows[i]) && rows[i].roof_gbps > highest)
            highest = rows[i].roof_gbps;
    }
    if (best)
        *best = highest;
    return r->roof_gbps < ROOF_LOW_SHARE * highest;
}

void roof_mark(struct row *r, const struct row *rows, size_t n_rows)
{
    double best;

    if (strncmp(r->validity, "valid", 5) || !roof_is_low(r, rows, n_rows, &best))
        return;
    snprintf(r->validity, sizeof r->validity,
             "disturbed: memory gave %.1f GB/s, at other points %.1f", r->roof_gbps,
             best);
    r->limiter = LIMITER_NOISE;
}

void roof_mark_all(struct row *rows, size_t n_rows)
{
    for (size_t i = 0; i < n_rows; i++)
        roof_mark(&rows[i], rows, n_rows);
}
