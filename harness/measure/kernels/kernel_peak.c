/* SPDX-License-Identifier: MIT
 *
 * kernel_peak.c - products timed in turns with the peak of arithmetic
 */
#include "harness/measure/kernels/kernel_work.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"
#include "engine/forward/tile_rule.h"
#include "harness/machine/probe.h"
#include "harness/stats/stats.h"
#include "kernels/isa.h"

#define N_TURNS 3
#define TURN_NS 8000000u /* of products; the peak's passes take about as long */

#define N_COLD_TURNS 7
#define COLD_ROWS    1024

static double product_gops(struct kernel_work *work)
{
    const size_t batch = kernel_work_batch(work);
    const uint64_t begin = clock_ns();
    size_t n = 0;

    do {
        kernel_work_run(work, batch);
        n += batch;
    } while (clock_ns() - begin < TURN_NS);
    return kernel_work_cost(work).ops * (double)n / (double)(clock_ns() - begin);
}

static double share_of(struct kernel_work *work, struct thread_pool *pool)
{
    double share[N_TURNS], scratch[N_TURNS], peak;

    kernel_work_run(work, kernel_work_batch(work)); /* fills the cache */
    for (int i = 0; i < N_TURNS; i++) {
        probe_compute(PROBE_PEAK_VECTORS, isa_usable(), pool, 1, &peak);
        share[i] = product_gops(work) / peak;
    }
    return stats_median(share, N_TURNS, scratch);
}

/* The row that the engine takes for n_x columns; NULL: no such row here. */
static const struct kern_row *row_for(enum kern_op op, enum kern_format format, int n_x)
{
    uint32_t mask = isa_usable();

    if ((size_t)n_x < tile_columns(format, SLM_SUMS_EXACT, mask))
        mask &= ~ISA_TILE_LEVELS;
    return kern_best(op, format, mask);
}

/* Opens the product of the engine's row for c's columns; false: it has none. */
static bool open_product(struct kernel_work **work, struct kernel_fixture *fixture,
                         struct kernel_case c, enum kern_op op, enum kern_format format)
{
    const struct kern_row *row = row_for(op, format, c.n_x);
    struct err ignored = ERR_INIT;

    if (!row)
        return false;
    c.cols = KERNEL_COLS;
    snprintf(c.op, sizeof c.op, "%s", kern_op_name(op));
    snprintf(c.what, sizeof c.what, "%s", kern_format_info(format)->name);
    snprintf(c.isa, sizeof c.isa, "%s", isa_name(row->isa));
    return kernel_work_open(work, fixture, &c, &ignored) == ST_OK;
}

/* NAN: no such product here. */
static double measure(struct kernel_fixture *fixture, enum kern_format format,
                      struct thread_pool *pool)
{
    const struct kernel_case c = {.rows = kernel_hot_rows(format),
                                  .n_x = KERNEL_MANY_COLUMNS,
                                  .cache = KERNEL_HOT,
                                  .n_threads = 1};
    struct kernel_work *work;
    double share;

    if (!open_product(&work, fixture, c, KERN_OP_gemm_x16, format))
        return NAN;
    share = share_of(work, pool);
    kernel_work_close(work);
    return share;
}

enum status kernel_product_shares(double share[KERN_N_FMT],
                                  const bool wanted[KERN_N_FMT],
                                  const struct topology *topo, struct err *err)
{
    struct kernel_fixture *fixture = NULL;
    struct thread_pool *pool = NULL;
    enum status st = placement_pool(&pool, topo, PLACEMENT_SPREAD, 1, err);

    for (int i = 0; i < KERN_N_FMT; i++)
        share[i] = NAN;
    if (st == ST_OK)
        st = kernel_fixture_open(&fixture, topo, PLACEMENT_SPREAD, err);
    for (int i = 0; i < KERN_N_FMT && st == ST_OK; i++)
        if (wanted[i])
            share[i] = measure(fixture, (enum kern_format)i, pool);
    kernel_fixture_close(fixture);
    if (pool)
        thread_pool_stop(pool);
    return st;
}

/* ---- a few columns --------------------------------------------------------------- */

/* Nanoseconds of a call; NAN: no such product here. */
static double cold_ns(struct kernel_fixture *fixture, enum kern_op op,
                      enum kern_format format, int n_x, int n_threads)
{
    const struct kernel_case c = {
        .rows = COLD_ROWS, .n_x = n_x, .cache = KERNEL_COLD, .n_threads = n_threads};
    double ns[N_COLD_TURNS], scratch[N_COLD_TURNS];
    struct kernel_work *work;

    if (!open_product(&work, fixture, c, op, format))
        return NAN;
    for (int i = 0; i < N_COLD_TURNS; i++) {
        const size_t batch = kernel_work_batch(work);
        uint64_t begin_ns;

        kernel_work_cool(work, batch);
        begin_ns = clock_ns();
        kernel_work_run(work, batch);
        ns[i] = (double)(clock_ns() - begin_ns) / (double)batch;
    }
    kernel_work_close(work);
    return stats_median(ns, N_COLD_TURNS, scratch);
}

enum status kernel_column_costs(double *cost, const int *n_x, size_t n,
                                enum kern_format format, bool packed, int n_threads,
                                enum placement placement, const struct topology *topo,
                                struct err *err)
{
    const enum kern_op one = packed ? KERN_OP_gemv_x16 : KERN_OP_gemv;
    const enum kern_op several = packed ? KERN_OP_gemm_x16 : KERN_OP_gemm;
    struct kernel_fixture *fixture = NULL;
    enum status st = kernel_fixture_open(&fixture, topo, placement, err);
    double one_ns;

    if (st)
        return st;
    one_ns = cold_ns(fixture, one, format, 1, n_threads);
    for (size_t i = 0; i < n; i++)
        cost[i] = cold_ns(fixture, several, format, n_x[i], n_threads) / one_ns;
    kernel_fixture_close(fixture);
    return ST_OK;
}
