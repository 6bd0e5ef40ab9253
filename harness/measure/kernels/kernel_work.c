/* SPDX-License-Identifier: MIT
 *
 * kernel_work.c - one case, made, checked and run
 */
#include "harness/measure/kernels/kernel_work.h"

#include <stdlib.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/forward/tuning.h"
#include "harness/measure/kernels/kernel_parts.h"
#include "kernels/probe/evict.h"

#define BATCH_NS  2e6 /* of calls between two wakings of the pool, about */
#define MAX_BATCH 4096
#define PEAK_NS   1000000u /* one call of a peak */
#define ROW_SHARE                                                      \
    KERN_PANEL_ROWS /* rows are handed to threads in multiples of this \
                     */

enum work_kind { WORK_PRODUCT, WORK_OTHER, WORK_READ, WORK_PEAK };

struct kernel_work {
    enum work_kind kind;
    struct kernel_fixture *fixture;
    struct thread_pool *pool; /* NULL: WORK_OTHER */
    size_t batch;
    struct kernel_cost cost;
    bool cold; /* what is read comes from memory */

    /* WORK_PRODUCT */
    struct product_call call;
    struct columns x;
    size_t n_rows, matrix_bytes, n_matrices, matrix;
    const uint8_t *w;
    uint8_t *own_w; /* hot weights */
    size_t n_calls; /* of the batch that runs now */

    struct operation_call other; /* WORK_OTHER */

    /* WORK_READ */
    struct probe_buffer buffer;
    struct probe_read_way way;

    /* WORK_PEAK */
    const struct probe_kernel *probe;
    uint64_t n_iters;
    volatile uint64_t sink;
};

static enum status no_memory(const struct kernel_case *c, struct err *err)
{
    return err_set(err, ST_NO_MEMORY, "no memory for %s", kernel_case_name(c).text);
}

/* ---- products -------------------------------------------------------------------- */

/* A hot matrix: the pattern, repeated. */
static uint8_t *hot_matrix(struct kernel_fixture *fixture, enum kern_format format,
                           bool packed, size_t n_rows)
{
    const size_t row_bytes = kern_format_bytes(format, KERNEL_COLS);
    const uint8_t *pattern = fixture_pattern(fixture, format, packed);
    uint8_t *w = pattern ? parts_alloc(n_rows * row_bytes) : NULL;

    for (size_t i = 0; w && i < n_rows; i++)
        memcpy(w + i * row_bytes, pattern + i % FIXTURE_PATTERN_ROWS * row_bytes,
               row_bytes);
    return w;
}

static enum status open_product(struct kernel_work *w, const struct kernel_case *c,
                                const struct kern_row *row, struct err *err)
{
    const enum kern_format format = (enum kern_format)row->what;
    const size_t n_x = (size_t)c->n_x;
    const bool packed = kernel_product(row->op)->packed;
    double weight_ns;
    enum status st = fixture_check(w->fixture, row, n_x, &weight_ns, err);

    if (st)
        return st;
    w->n_rows = (size_t)c->rows;
    w->cold = c->cache == KERNEL_COLD;
    w->call = (struct product_call){
        .row = row,
        .k = KERNEL_COLS,
        .w_stride = kern_format_bytes(format, KERNEL_COLS),
        .n_x = n_x,
        .y_stride = w->n_rows,
        .prefetch = c->prefetch.n_panels ? c->prefetch
                    : w->cold            ? slm_tuning_default().prefetch[format]
                                         : (struct kern_prefetch){0},
        .x = &w->x,
        .y = parts_alloc(w->n_rows * n_x * sizeof(float))};
    w->matrix_bytes = w->n_rows * w->call.w_stride;
    w->n_matrices = 1;
    if (!w->call.y ||
        !parts_columns(&w->x, kernel_product_act(kernel_product(row->op), format),
                       KERNEL_COLS, n_x))
        return no_memory(c, err);
    if (w->cold) {
        if (fixture_cold(w->fixture, format, packed, &w->w, err))
            return err->code;
        w->n_matrices = kernel_fixture_cold_bytes(w->fixture) / w->matrix_bytes;
        if (w->n_matrices < 2)
            return no_memory(c, err);
    } else {
        w->w = w->own_w = hot_matrix(w->fixture, format, packed, w->n_rows);
        if (!w->w)
            return no_memory(c, err);
    }
    const double n_weights = (double)(w->n_rows * KERNEL_COLS);
    w->cost = (struct kernel_cost){(double)w->matrix_bytes, 2 * n_weights * (double)n_x,
                                   n_weights};
    const double calls = BATCH_NS / (weight_ns * n_weights + 1);
    w->batch = calls < 1 ? 1 : calls > MAX_BATCH ? MAX_BATCH : (size_t)calls;
    if (w->cold && w->batch > w->n_matrices)
        w->batch = w->n_matrices; /* each is read once */
    return fixture_pool(&w->pool, w->fixture, c->n_threads, err);
}

static void product_share(void *arg, int thread, int n_threads)
{
    const struct kernel_work *w = arg;
    size_t begin, end, matrix = w->matrix;

    thread_pool_share(w->n_rows, ROW_SHARE, thread, n_threads, &begin, &end);
    if (begin == end)
        return;
    for (size_t i = 0; i < w->n_calls; i++) {
        parts_product(&w->call, w->w + matrix * w->matrix_bytes, begin, end);
        matrix = matrix + 1 == w->n_matrices ? 0 : matrix + 1;
    }
}

/* A thread's rows of the matrices that come next. */
static void cool_share(void *arg, int thread, int n_threads)
{
    const struct kernel_work *w = arg;
    size_t begin, end, matrix = w->matrix;

    thread_pool_share(w->n_rows, ROW_SHARE, thread, n_threads, &begin, &end);
    for (size_t i = 0; i < w->n_calls; i++) {
        evict_from_caches(w->w + matrix * w->matrix_bytes + begin * w->call.w_stride,
                          (end - begin) * w->call.w_stride);
        matrix = matrix + 1 == w->n_matrices ? 0 : matrix + 1;
    }
}

/* After shares that took unequally long, a thread that waited for another has fallen
 * asleep; it takes as long to wake as a good part of a matrix takes to read. */
static void wake(void *arg, int thread, int n_threads)
{
    (void)arg;
    (void)thread;
    (void)n_threads;
}

static void run_product(struct kernel_work *w, size_t n_calls)
{
    w->n_calls = n_calls;
    thread_pool_run(w->pool, product_share, w);
    w->matrix = (w->matrix + n_calls) % w->n_matrices;
}

/* ---- roofs ----------------------------------------------------------------------- */

static void peak_share(void *arg, int thread, int n_threads)
{
    struct kernel_work *w = arg;
    uint64_t sink = 0;

    (void)n_threads;
    for (size_t i = 0; i < w->n_calls; i++) {
        if (w->probe->op == PROBE_OP_peak_int8)
            w->probe->fn.peak_int8(w->n_iters, &sink);
        else
            w->probe->fn.peak_f32(w->n_iters, &sink);
    }
    if (thread == 0)
        w->sink = sink;
}

/* Rounds of about PEAK_NS, and their operations. */
static void calibrate_peak(struct kernel_work *w)
{
    uint64_t ns = 0, n_ops = 0, sink;

    for (w->n_iters = 64; ns < PEAK_NS && w->n_iters < UINT64_MAX / 4;
         w->n_iters *= 2) {
        const uint64_t begin = clock_ns();

        n_ops = w->probe->op == PROBE_OP_peak_int8
                    ? w->probe->fn.peak_int8(w->n_iters, &sink)
                    : w->probe->fn.peak_f32(w->n_iters, &sink);
        ns = clock_ns() - begin;
    }
    w->n_iters /= 2;
    w->cost.ops = (double)n_ops * thread_pool_size(w->pool);
}

static enum status open_read(struct kernel_work *w, const struct kernel_case *c,
                             struct err *err)
{
    const uint8_t *base;

    if (fixture_cold(w->fixture, KERN_N_FMT, false, &base, err) ||
        fixture_pool(&w->pool, w->fixture, c->n_threads, err))
        return err->code;
    w->kind = WORK_READ;
    w->cold = true;
    w->batch = 1;
    w->cost.bytes = (double)kernel_fixture_cold_bytes(w->fixture);
    probe_buffer_borrow(&w->buffer, w->pool, base,
                        kernel_fixture_cold_bytes(w->fixture), MEM_PAGES_2M);
    w->way = probe_way_find(&w->buffer, w->pool, isa_usable());
    return ST_OK;
}

static enum status open_roof(struct kernel_work *w, const struct kernel_case *c,
                             struct err *err)
{
    const enum probe_op op = !strcmp(c->what, "read")   ? PROBE_OP_stream_read
                             : !strcmp(c->what, "int8") ? PROBE_OP_peak_int8
                                                        : PROBE_OP_peak_f32;
    size_t n;
    const struct probe_kernel *rows = probe_kernels(&n);
    enum status st;

    if (op == PROBE_OP_stream_read)
        return open_read(w, c, err);
    for (size_t i = 0; i < n; i++)
        if (rows[i].op == op && !strcmp(isa_name(rows[i].isa), c->isa) &&
            (isa_usable() >> rows[i].isa & 1))
            w->probe = &rows[i];
    if (!w->probe)
        return err_set(err, ST_UNSUPPORTED, "%s is not usable here", c->isa);
    w->kind = WORK_PEAK;
    w->batch = 1;
    st = fixture_pool(&w->pool, w->fixture, c->n_threads, err);
    if (st == ST_OK)
        calibrate_peak(w);
    return st;
}

/* ---- all ------------------------------------------------------------------------- */

static enum status open_row(struct kernel_work *w, const struct kernel_case *c,
                            struct err *err)
{
    const struct kern_entry *e = kernel_case_entry(c);
    const struct kern_row *row =
        e ? kern_best(e->op, e->what, isa_usable() & 1u << e->isa) : NULL;
    double weight_ns;
    enum status st;

    if (!row)
        return err_set(err, ST_UNSUPPORTED, "%s is not usable here", c->isa);
    if (kernel_product(row->op)) {
        w->kind = WORK_PRODUCT;
        return open_product(w, c, row, err);
    }
    w->kind = WORK_OTHER;
    st = fixture_check(w->fixture, row, 1, &weight_ns, err);
    if (st == ST_OK && !parts_other_open(&w->other, row, (size_t)c->n))
        st = no_memory(c, err);
    w->cost = w->other.cost;
    w->batch = 1;
    return st;
}

enum status kernel_work_open(struct kernel_work **work, struct kernel_fixture *fixture,
                             const struct kernel_case *c, struct err *err)
{
    struct kernel_work *w = calloc(1, sizeof *w);
    enum status st;

    if (!w)
        return no_memory(c, err);
    w->fixture = fixture;
    st = kernel_case_is_roof(c) ? open_roof(w, c, err) : open_row(w, c, err);
    if (st)
        kernel_work_close(w);
    else
        *work = w;
    return st;
}

size_t kernel_work_batch(const struct kernel_work *work)
{
    return work->batch;
}

struct kernel_cost kernel_work_cost(const struct kernel_work *work)
{
    return work->cost;
}

bool kernel_work_is_cold(const struct kernel_work *work)
{
    return work->cold;
}

void kernel_work_cool(struct kernel_work *w, size_t n_calls)
{
    w->n_calls = n_calls;
    if (w->cold && w->kind == WORK_READ)
        probe_buffer_evict(&w->buffer, w->pool);
    else if (w->cold)
        thread_pool_run(w->pool, cool_share, w);
    if (w->cold)
        thread_pool_run(w->pool, wake, NULL);
}

void kernel_work_run(struct kernel_work *w, size_t n_calls)
{
    switch (w->kind) {
    case WORK_PRODUCT:
        run_product(w, n_calls);
        break;
    case WORK_OTHER:
        for (size_t i = 0; i < n_calls; i++)
            parts_other_run(&w->other);
        break;
    case WORK_READ:
        for (size_t i = 0; i < n_calls; i++)
            probe_read(&w->buffer, w->pool, &w->way);
        break;
    case WORK_PEAK:
        w->n_calls = n_calls;
        thread_pool_run(w->pool, peak_share, w);
        break;
    }
}

void kernel_work_close(struct kernel_work *w)
{
    if (!w)
        return;
    thread_pool_stop(w->pool);
    free(w->call.y);
    free(w->x.data);
    free(w->own_w);
    parts_other_close(&w->other);
    probe_buffer_close(&w->buffer);
    free(w);
}
