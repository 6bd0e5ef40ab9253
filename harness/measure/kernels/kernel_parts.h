/* SPDX-License-Identifier: MIT
 *
 * kernel_parts.h - parts of kernel_work.c: columns, products, other calls
 *
 * Not for other modules. Threading: as kernel_work.h.
 */
#ifndef SLM_HARNESS_MEASURE_KERNELS_KERNEL_PARTS_H
#define SLM_HARNESS_MEASURE_KERNELS_KERNEL_PARTS_H

#include <stdint.h>

#include "harness/measure/kernels/kernel_work.h"
#include "engine/base/thread_pool.h"
#include "harness/machine/probe.h"

/* Zeroed, on a 64-byte boundary; release with free(). NULL: no memory. */
void *parts_alloc(size_t bytes);

/* n values, roughly normal, of that standard deviation; the same every time. */
void parts_fill_random(float *v, size_t n, float deviation);

/* n values of a format, quantised from random numbers; malloc'ed. */
void *parts_weights(enum kern_format format, size_t n);

/* n_rows rows of k elements, as parts_weights() made them, in panels, by a pack row of
 * isa_mask; malloc'ed. NULL: no memory. */
void *parts_panels(enum kern_format format, uint32_t isa_mask, const void *rows,
                   size_t n_rows, size_t k);

/* Columns of activations, k values each, stride bytes apart. */
struct columns {
    size_t stride;
    uint8_t *data;
};

/* False: no memory. Release with free(x->data). */
bool parts_columns(struct columns *x, enum kern_act act, size_t k, size_t n);

/* Rows [begin, end) of a product: w is row 0 of the matrix, y the first column of
 * results, y_stride floats apart. */
struct product_call {
    const struct kern_row *row;
    size_t k, w_stride, n_x, y_stride;
    struct kern_prefetch prefetch; /* where the row takes it */
    const struct columns *x;
    float *y;
};
void parts_product(const struct product_call *p, const void *w, size_t begin,
                   size_t end);

/* Whether a small product with n_x columns is right; *weight_ns (may be NULL) is about
 * how long a weight took. Errors: ST_CHECK, ST_NO_MEMORY. */
enum status parts_check_product(const struct kern_row *row, size_t n_x,
                                double *weight_ns, struct err *err);

/* Any other operation, on n elements of buffers of its own. */
struct operation_call {
    const struct kern_row *row;
    size_t n;
    void *out, *blocks;
    float *a, *b;
    size_t out_bytes;
    bool out_is_floats;
    struct kernel_cost cost;
};

/* False: no memory, and nothing to release. */
bool parts_other_open(struct operation_call *o, const struct kern_row *row, size_t n);
void parts_other_run(const struct operation_call *o);
void parts_other_close(struct operation_call *o);

/* Whether one call gives the result of the scalar row. Errors as above. */
enum status parts_check_other(const struct kern_row *row, struct err *err);

/* ---- the inside of a fixture: cold weights, patterns, threads, roofs ------------- */

/* Rows of KERNEL_COLS weights that are quantised; larger matrices repeat them. */
#define FIXTURE_PATTERN_ROWS 64

/* A pool of the case's size, pinned as in the fixture. */
enum status fixture_pool(struct thread_pool **pool,
                         const struct kernel_fixture *fixture, int n_threads,
                         struct err *err);

/* FIXTURE_PATTERN_ROWS rows of a format, kept; packed: in panels. NULL: no memory. */
const void *fixture_pattern(struct kernel_fixture *fixture, enum kern_format format,
                            bool packed);

/* The cold buffer, filled with a format's pattern; format KERN_N_FMT: with any
 * pattern. */
enum status fixture_cold(struct kernel_fixture *fixture, enum kern_format format,
                         bool packed, const uint8_t **base, struct err *err);

/* As parts_check_*(), once per row and number of columns; *weight_ns of a product. */
enum status fixture_check(struct kernel_fixture *fixture, const struct kern_row *row,
                          size_t n_x, double *weight_ns, struct err *err);

#endif
