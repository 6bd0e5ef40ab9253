/* SPDX-License-Identifier: MIT
 *
 * probe_compute.c - arithmetic peaks: multiply-adds with nothing in their way
 */
#include "harness/machine/probe.h"

#include <assert.h>

#include "engine/base/clock.h"
#include "harness/base/interrupt.h"

#define PASS_NS                                                                        \
    10000000u /* one pass: long against waking the pool, short against the time that a \
                 thread keeps its CPU where others wait for it */
#define CALIB_NS 2000000u

struct compute_job {
    const struct probe_kernel *kernel;
    uint64_t n_iters;
    uint64_t n_ops[TOPO_MAX_CPUS]; /* [thread] */
    volatile uint64_t sink;
};

static uint64_t run_kernel(const struct probe_kernel *k, uint64_t n_iters,
                           uint64_t *sink)
{
    return k->op == PROBE_OP_peak_int8 ? k->fn.peak_int8(n_iters, sink)
                                       : k->fn.peak_f32(n_iters, sink);
}

static void compute_share(void *arg, int thread, int n_threads)
{
    struct compute_job *job = arg;
    uint64_t sink = 0;

    (void)n_threads;
    job->n_ops[thread] = run_kernel(job->kernel, job->n_iters, &sink);
    if (thread == 0)
        job->sink = sink;
}

/* Rounds that take one thread about PASS_NS. */
static uint64_t calibrate(const struct probe_kernel *k)
{
    const uint64_t shorter = probe_is_rough() ? 10 : 1;
    uint64_t n_iters = 64, ns = 0, sink = 0;

    while (ns < CALIB_NS / shorter && n_iters < UINT64_MAX / 4) {
        n_iters *= 2;
        const uint64_t begin = clock_ns();
        run_kernel(k, n_iters, &sink);
        ns = clock_ns() - begin;
    }
    return (uint64_t)((double)n_iters * PASS_NS / (double)(ns * shorter)) + 1;
}

enum kern_isa probe_compute(enum probe_peak what, uint32_t isa_mask,
                            struct thread_pool *pool, int n_passes, double *gops)
{
    struct compute_job job = {
        .kernel = probe_kernel_best(
            what == PROBE_PEAK_F32 ? PROBE_OP_peak_f32 : PROBE_OP_peak_int8,
            what == PROBE_PEAK_INT8 ? isa_mask : isa_mask & ~ISA_TILE_LEVELS),
    };
    const int n = thread_pool_size(pool);

    assert(n <= TOPO_MAX_CPUS);
    job.n_iters = calibrate(job.kernel);
    for (int pass = 0; pass < n_passes && !interrupted(); pass++) {
        uint64_t n_ops = 0;

        const uint64_t begin = clock_ns();
        thread_pool_run(pool, compute_share, &job);
        const uint64_t ns = clock_ns() - begin;
        for (int i = 0; i < n; i++)
            n_ops += job.n_ops[i];
        gops[pass] = (double)n_ops / (double)(ns ? ns : 1);
    }
    return job.kernel->isa;
}
