/* SPDX-License-Identifier: MIT
 *
 * roofs.c - rows that got less memory bandwidth or arithmetic than others
 *
 * The roofs that hold for a row are a prefix of the rows that are read in the same way,
 * those with the most bytes first. So one pass over them adds roof by roof to a binary
 * indexed tree (Fenwick 1994), which has the roof of any rank in log n.
 */
#include "harness/rows/roofs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/order.h"
#include "harness/stats/stats.h"

enum roof { ROOF_NONE, ROOF_MEMORY, ROOF_ARITHMETIC };

static enum roof roof_of(const struct row *r)
{
    return r->kind == POINT_DECODE || r->kind == ROW_LOAD ? ROOF_MEMORY
           : r->kind == POINT_PREFILL                     ? ROOF_ARITHMETIC
                                                          : ROOF_NONE;
}

/* 0: none of this kind that could be compared. A model that pages is probed through a
 * buffer instead of its weights. */
static double roof_value(const struct row *r, enum roof roof)
{
    const double value = roof == ROOF_ARITHMETIC        ? row_vectors_gops(r)
                         : r->limiter == LIMITER_PAGING ? 0
                                                        : r->roof_gbps;

    return roof != ROOF_NONE && roof_of(r) == roof && value > 0 ? value : 0;
}

/* The peak of arithmetic is that of registers: it has no bytes. For a server a buffer
 * is read, whatever its model. */
static int64_t probed_bytes(const struct row *r, enum roof roof)
{
    return roof != ROOF_MEMORY || r->kind == ROW_LOAD ? 0
           : r->file_bytes < ROOF_MAX_BYTES           ? r->file_bytes
                                                      : ROOF_MAX_BYTES;
}

static bool is_valid(const struct row *r)
{
    return !strncmp(r->validity, "valid", 5);
}

/* Those of samples, which a chunk of a prompt makes those of prefill. */
static int64_t threads_of(const struct row *r)
{
    return r->n_chunk > 0 && r->n_threads_prefill > 0 ? r->n_threads_prefill
                                                      : r->n_threads;
}

/* 0: read in the same way, by the same threads. */
static int compare_reading(const struct row *a, const struct row *b)
{
    ORDER_BY(order_ints(a->kind == ROW_LOAD, b->kind == ROW_LOAD));
    ORDER_BY(order_ints(threads_of(a), threads_of(b)));
    ORDER_BY(strcmp(a->cpus, b->cpus));
    ORDER_BY(order_ints(a->placement, b->placement));
    ORDER_BY(order_ints(a->pages, b->pages));
    ORDER_BY(order_ints(a->residency, b->residency));
    return order_ints(a->isa, b->isa);
}

/* Whether b's roof holds for a: read in the same way, from no fewer bytes. */
static bool holds_for(const struct row *a, const struct row *b, enum roof roof)
{
    return probed_bytes(b, roof) >= probed_bytes(a, roof) && !compare_reading(a, b) &&
           roof_value(b, roof) > 0;
}

/* Rank (from 0, ascending) of the reference among n roofs: the upper quartile; with
 * three and more not the highest. */
static size_t reference_rank(size_t n)
{
    const size_t quartile = (3 * n + 3) / 4;

    return (n >= 3 && quartile == n ? n - 1 : quartile) - 1;
}

/* ---- one row --------------------------------------------------------------------- */

/* The reference for r among rows[n_rows]; 0: no memory. */
static double reference_for(const struct row *r, const struct row *rows, size_t n_rows)
{
    const enum roof roof = roof_of(r);
    double *v = malloc((n_rows + 1) * sizeof *v), reference = 0;
    size_t n = 0;

    if (!v)
        return 0;
    if (r < rows || r >= rows + n_rows)
        v[n++] = roof_value(r, roof);
    for (size_t i = 0; i < n_rows; i++)
        if (holds_for(r, &rows[i], roof))
            v[n++] = roof_value(&rows[i], roof);
    qsort(v, n, sizeof *v, stats_compare);
    reference = v[reference_rank(n)];
    free(v);
    return reference;
}

bool roof_is_low(const struct row *r, const struct row *rows, size_t n_rows,
                 double *reference)
{
    const double own = roof_value(r, roof_of(r));
    double usual;

    if (!(own > 0))
        return false;
    usual = reference_for(r, rows, n_rows);
    if (reference)
        *reference = usual;
    return own < ROOF_LOW_SHARE * usual;
}

/* The best of v[n > 0], ascending: the highest compared with which the reference
 * is not low. */
static double best_of(const double *v, size_t n)
{
    const double reference = v[reference_rank(n)];
    size_t i = n - 1;

    while (ROOF_LOW_SHARE * v[i] > reference)
        i--;
    return v[i];
}

double roof_best(const struct row *r, const struct row *const *rows, size_t n,
                 bool *doubtful)
{
    const enum roof roof = roof_of(r);
    double *v = malloc((n + 1) * sizeof *v), best = NAN;

    *doubtful = false;
    for (int valid = 1; valid >= 0 && v && isnan(best); valid--) {
        size_t n_values = 0;

        for (size_t i = 0; i < n; i++)
            if (roof_value(r, roof) > 0 && holds_for(r, rows[i], roof) &&
                is_valid(rows[i]) == valid)
                v[n_values++] = roof_value(rows[i], roof);
        qsort(v, n_values, sizeof *v, stats_compare);
        if (n_values) /* a disturbance makes none higher */
            best = valid ? best_of(v, n_values) : v[n_values - 1];
        *doubtful = !valid;
    }
    free(v);
    return best;
}

static void mark(struct row *r, double reference)
{
    if (roof_of(r) == ROOF_MEMORY)
        snprintf(r->validity, sizeof r->validity,
                 "disturbed: memory gave %.1f GB/s, at other points %.1f", r->roof_gbps,
                 reference);
    else
        snprintf(r->validity, sizeof r->validity,
                 "disturbed: the arithmetic peak was %.0f GOPS, at other points %.0f",
                 row_vectors_gops(r), reference);
    if (r->kind == ROW_LOAD)
        return; /* what limits a server is not known */
    r->limiter = LIMITER_NOISE;
    snprintf(r->limiter_why, sizeof r->limiter_why, "%s",
             r->validity + strlen("disturbed: "));
}

void roof_mark(struct row *r, const struct row *rows, size_t n_rows)
{
    double reference;

    if (is_valid(r) && roof_is_low(r, rows, n_rows, &reference))
        mark(r, reference);
}

/* ---- all rows -------------------------------------------------------------------- */

/* Rows that are read in the same way are together, those with the most bytes first. */
static int by_reading(const void *x, const void *y)
{
    const struct row *a = *(struct row *const *)x, *b = *(struct row *const *)y;

    ORDER_BY(compare_reading(a, b));
    return order_ints(probed_bytes(b, ROOF_MEMORY), probed_bytes(a, ROOF_MEMORY));
}

/* Roofs counted by their place in the order of all of them. */
struct counted {
    double *value; /* [n], ascending */
    size_t *tree;  /* [n + 1], of Fenwick's kind */
    size_t n, n_added;
};

static void count_begin(struct counted *c, struct row **rows, size_t n, enum roof roof)
{
    for (size_t i = 0; i < n; i++)
        c->value[i] = roof_value(rows[i], roof);
    qsort(c->value, n, sizeof *c->value, stats_compare);
    memset(c->tree, 0, (n + 1) * sizeof *c->tree);
    c->n = n;
    c->n_added = 0;
}

static void count_add(struct counted *c, double value)
{
    const double *at = bsearch(&value, c->value, c->n, sizeof value, stats_compare);

    for (size_t i = (size_t)(at - c->value) + 1; i <= c->n; i += i & -i)
        c->tree[i]++;
    c->n_added++;
}

static double count_reference(const struct counted *c)
{
    size_t left = reference_rank(c->n_added), at = 0, step = 1;

    while (step * 2 <= c->n)
        step *= 2;
    for (; step; step /= 2)
        if (at + step <= c->n && c->tree[at + step] <= left) {
            at += step;
            left -= c->tree[at];
        }
    return c->value[at];
}

/* Marks of rows[n], all read in the same way, that have this roof. As holds_for() has
 * it, the roofs of all rows before one, and of those with as many bytes, hold for it.
 */
static void mark_alike(struct row **rows, size_t n, enum roof roof, struct counted *c)
{
    count_begin(c, rows, n, roof);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i;
             end < n && probed_bytes(rows[end], roof) == probed_bytes(rows[i], roof);
             end++)
            if (roof_value(rows[end], roof) > 0)
                count_add(c, roof_value(rows[end], roof));
        if (!c->n_added)
            continue;
        const double reference = count_reference(c);
        for (size_t k = i; k < end; k++)
            if (is_valid(rows[k]) && roof_value(rows[k], roof) > 0 &&
                roof_value(rows[k], roof) < ROOF_LOW_SHARE * reference)
                mark(rows[k], reference);
    }
}

enum status roof_mark_all(struct row *rows, size_t n_rows, struct err *err)
{
    struct row **sorted = malloc((n_rows + 1) * sizeof *sorted);
    struct counted c = {.value = malloc((n_rows + 1) * sizeof *c.value),
                        .tree = malloc((n_rows + 1) * sizeof *c.tree)};
    enum status st = ST_OK;

    if (!sorted || !c.value || !c.tree) {
        st = err_set(err, ST_NO_MEMORY, "no memory to sort %zu rows", n_rows);
        goto out;
    }
    for (size_t i = 0; i < n_rows; i++)
        sorted[i] = &rows[i];
    qsort(sorted, n_rows, sizeof *sorted, by_reading);
    for (size_t i = 0, end; i < n_rows; i = end) {
        for (end = i + 1; end < n_rows && !compare_reading(sorted[i], sorted[end]);
             end++) {
        }
        mark_alike(sorted + i, end - i, ROOF_MEMORY, &c);
        mark_alike(sorted + i, end - i, ROOF_ARITHMETIC, &c);
    }
out:
    free(c.tree);
    free(c.value);
    free(sorted);
    return st;
}
