/* SPDX-License-Identifier: MIT
 *
 * kernel_peak.c - products timed in turns with the peak of arithmetic
 */
#include "harness/measure/kernels/kernel_work.h"

#include <math.h>
#include <stdio.h>

#include "engine/base/clock.h"
#include "engine/base/thread_pool.h"
#include "harness/machine/probe.h"
#include "harness/stats/stats.h"
#include "kernels/isa.h"

#define N_TURNS 3
#define TURN_NS 8000000u /* of products; the peak's passes take about as long */

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

/* NAN: no such product here. */
static double measure(struct kernel_fixture *fixture, enum kern_format format,
                      struct thread_pool *pool)
{
    const struct kern_row *row = kern_best(KERN_OP_gemm_x16, format, isa_usable());
    struct kernel_case c = {.op = "gemm_x16",
                            .rows = kernel_hot_rows(format),
                            .cols = KERNEL_COLS,
                            .n_x = KERNEL_MANY_COLUMNS,
                            .cache = KERNEL_HOT,
                            .n_threads = 1};
    struct err ignored = ERR_INIT;
    struct kernel_work *work;
    double share;

    if (!row)
        return NAN;
    snprintf(c.what, sizeof c.what, "%s", kern_format_info(format)->name);
    snprintf(c.isa, sizeof c.isa, "%s", isa_name(row->isa));
    if (kernel_work_open(&work, fixture, &c, &ignored))
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
    int cpu;
    enum status st = placement_cpus(topo, PLACEMENT_SPREAD, 1, &cpu, err);

    for (int i = 0; i < KERN_N_FMT; i++)
        share[i] = NAN;
    if (st == ST_OK)
        st = thread_pool_start(&pool, 1, &cpu, err);
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
