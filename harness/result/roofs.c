/* SPDX-License-Identifier: MIT
 *
 * roofs.c - rows that got less memory bandwidth than others
 */
#include "harness/result/roofs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/result/order.h"

static int64_t probed_bytes(const struct row *r)
{
    return r->file_bytes < ROOF_MOST_BYTES ? r->file_bytes : ROOF_MOST_BYTES;
}

/* 0: read in the same way, by the same threads. */
static int compare_reading(const struct row *a, const struct row *b)
{
    ORDER_BY(order_ints(a->n_threads, b->n_threads));
    ORDER_BY(strcmp(a->cpus, b->cpus));
    ORDER_BY(order_ints(a->placement, b->placement));
    ORDER_BY(order_ints(a->pages, b->pages));
    ORDER_BY(order_ints(a->residency, b->residency));
    return order_ints(a->isa, b->isa);
}

/* Whether b's roof holds for a: read in the same way, from no fewer bytes. A model that
 * pages is probed through a buffer instead of its weights. */
static bool holds_for(const struct row *a, const struct row *b)
{
    return probed_bytes(b) >= probed_bytes(a) && !compare_reading(a, b) &&
           b->limiter != LIMITER_PAGING;
}

/* Whether r has a roof to be held against others. */
static bool has_roof(const struct row *r)
{
    return r->kind == POINT_DECODE && r->limiter != LIMITER_PAGING && r->roof_gbps > 0;
}

bool roof_is_low(const struct row *r, const struct row *rows, size_t n_rows,
                 double *best)
{
    double highest = r->roof_gbps;

    if (!has_roof(r))
        return false;
    for (size_t i = 0; i < n_rows; i++) {
        if (holds_for(r, &rows[i]) && rows[i].roof_gbps > highest)
            highest = rows[i].roof_gbps;
    }
    if (best)
        *best = highest;
    return r->roof_gbps < ROOF_LOW_SHARE * highest;
}

static void mark(struct row *r, double best)
{
    snprintf(r->validity, sizeof r->validity,
             "disturbed: memory gave %.1f GB/s, at other points %.1f", r->roof_gbps,
             best);
    r->limiter = LIMITER_NOISE;
}

static bool is_valid(const struct row *r)
{
    return !strncmp(r->validity, "valid", 5);
}

void roof_mark(struct row *r, const struct row *rows, size_t n_rows)
{
    double best;

    if (is_valid(r) && roof_is_low(r, rows, n_rows, &best))
        mark(r, best);
}

/* Rows that are read in the same way are together, those with the most bytes first. */
static int by_reading(const void *x, const void *y)
{
    const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;

    ORDER_BY(compare_reading(a, b));
    return order_ints(probed_bytes(b), probed_bytes(a));
}

/* Marks of sorted[n], all read in the same way. As holds_for() has it, the roofs of all
 * rows before one, and of those with as many bytes, hold for it. */
static void mark_alike(struct row **sorted, size_t n)
{
    double best = 0;

    for (size_t i = 0, end; i < n; i = end) {
        for (end = i; end < n && probed_bytes(sorted[end]) == probed_bytes(sorted[i]);
             end++)
            if (sorted[end]->limiter != LIMITER_PAGING && sorted[end]->roof_gbps > best)
                best = sorted[end]->roof_gbps;
        for (size_t k = i; k < end; k++)
            if (is_valid(sorted[k]) && has_roof(sorted[k]) &&
                sorted[k]->roof_gbps < ROOF_LOW_SHARE * best)
                mark(sorted[k], best);
    }
}

enum status roof_mark_all(struct row *rows, size_t n_rows, struct err *err)
{
    struct row **sorted = malloc((n_rows + 1) * sizeof *sorted);

    if (!sorted)
        return err_set(err, ST_NO_MEMORY, "no memory to sort %zu rows", n_rows);
    for (size_t i = 0; i < n_rows; i++)
        sorted[i] = &rows[i];
    qsort(sorted, n_rows, sizeof *sorted, by_reading);
    for (size_t i = 0, end; i < n_rows; i = end) {
        for (end = i + 1; end < n_rows && !compare_reading(sorted[i], sorted[end]);
             end++) {
        }
        mark_alike(sorted + i, end - i);
    }
    free(sorted);
    return ST_OK;
}
