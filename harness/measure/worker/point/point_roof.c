/* SPDX-License-Identifier: MIT
 *
 * point_roof.c - the bandwidth ceiling of a point, probed during its measurement
 */
#include <math.h>

#include "engine/base/clock.h"
#include "engine/base/mem.h"
#include "engine/base/thread_pool.h"
#include "harness/measure/worker/point/point_worker.h"
#include "kernels/isa.h"

#define PLACE_UNIT       4096
#define BESIDE_S         0.5 /* of samples for one pass, at least */
#define BESIDE_MAX_SHARE 0.1 /* of the time, for passes */
#define TILES_OF_OTHERS  64  /* tokens of a step of other programs that may use them */
#define MIN_PLACE        ((size_t)16 << 20) /* less is read faster than can be timed */

/* Median of all passes, if there are any; the spread is their difference, and that
 * between the passes before and after the measurement. */
static void evaluate_roof(struct point_worker *c)
{
    double scratch[sizeof c->roof_gbps / sizeof c->roof_gbps[0]];
    const int n = c->n_roof_gbps;

    if (!n)
        return;
    stats_summary(&c->roof, c->roof_gbps, (size_t)n, scratch);
    if (!(c->roof.median > 0))
        return;
    c->facts.roof_spread = 2 * c->roof.mad / c->roof.median;
    if (n >= 2 * N_ROOF_PASSES) {
        const double *last = c->roof_gbps + n - N_ROOF_PASSES;
        const double before = stats_median(c->roof_gbps, N_ROOF_PASSES, scratch);
        const double after = stats_median(last, N_ROOF_PASSES, scratch);
        const double apart = fabs(after - before) / c->roof.median;

        if (apart > c->facts.roof_spread)
            c->facts.roof_spread = apart;
    }
}

/* One pass. Nothing without a buffer. */
static void read_pass(struct point_worker *c, const struct probe_buffer *buffer,
                      struct thread_pool *pool)
{
    if (!buffer)
        return;
    const struct probe_read_way way = probe_way_find(buffer, pool, isa_usable());

    c->roof_gbps[c->n_roof_gbps++] = probe_read_pass(buffer, pool, &way);
}

static enum mem_pages pages_of(const struct point_worker *c)
{
    return c->p->setup.residency == WEIGHTS_MMAP ? MEM_PAGES_4K : MEM_PAGES_2M;
}

/* Places of the weights, spread evenly over them, so that passes see more of the memory
 * than one of its pages in each bank or node. None where memory was given back and what
 * is left in one stretch is too little. */
static void choose_places(struct point_worker *c, struct thread_pool *pool)
{
    size_t bytes;
    const char *memory = weights_memory(slm_weights(c->model), &bytes);
    const size_t pass = (size_t)probe_pass_bytes(thread_pool_size(pool));
    const size_t n = bytes / pass;

    c->n_reclaimed = c->relief.n;
    c->n_places = 0;
    if (c->n_reclaimed && bytes < MIN_PLACE)
        return;
    c->n_places = n < 1 ? 1 : n > N_ROOF_PLACES ? N_ROOF_PLACES : (int)n;
    const size_t apart = bytes / (size_t)c->n_places / PLACE_UNIT * PLACE_UNIT;

    for (int i = 0; i < c->n_places; i++)
        probe_buffer_borrow(&c->place[i], pool, memory + (size_t)i * apart,
                            bytes < pass ? bytes : pass, pages_of(c));
}

/* What has been given back since places were chosen may have been theirs. NULL: no
 * place is left. */
static const struct probe_buffer *next_place(struct point_worker *c,
                                             struct thread_pool *pool)
{
    if (!c->n_places || c->n_reclaimed != c->relief.n)
        choose_places(c, pool);
    return c->n_places ? &c->place[c->n_place_reads++ % c->n_places] : NULL;
}

/* The peak of the unit that multiplies the tokens of a step: whether tiles do was
 * measured when the model was opened. */
static enum probe_peak int8_peak(struct point_worker *c)
{
    const struct point *p = c->p;
    int n = p->kind == POINT_PREFILL ? p->n_prompt : p->n_sequences + p->n_chunk;

    if (c->model) {
        n = n < slm_info(c->model)->n_batch ? n : slm_info(c->model)->n_batch;
        c->step_peak =
            slm_takes_tiles(c->model, (size_t)n) ? PROBE_PEAK_INT8 : PROBE_PEAK_VECTORS;
        c->has_step_peak = true;
    }
    return c->has_step_peak       ? c->step_peak
           : n >= TILES_OF_OTHERS ? PROBE_PEAK_INT8
                                  : PROBE_PEAK_VECTORS;
}

static double probe_peak(enum probe_peak which, struct thread_pool *pool)
{
    double gops[N_PEAK_PASSES], scratch[N_PEAK_PASSES];

    probe_compute(which, isa_usable(), pool, N_PEAK_PASSES, gops);
    return stats_median(gops, N_PEAK_PASSES, scratch);
}

static void add_peak_passes(struct point_worker *c, int n, struct thread_pool *pool)
{
    double scratch[sizeof c->roof_gops / sizeof c->roof_gops[0]];

    probe_compute(int8_peak(c), isa_usable(), pool, n, c->roof_gops + c->n_roof_gops);
    c->n_roof_gops += n;
    stats_summary(&c->peak, c->roof_gops, (size_t)c->n_roof_gops, scratch);
}

/* Size of the buffer that is read instead of weights. While the model is open, its KV
 * cache and scratch memory leave that much less of the room. Afterwards the size stays.
 */
static uint64_t stand_in_bytes(struct point_worker *c)
{
    if (c->model) {
        const struct slm_info *info = slm_info(c->model);
        const uint64_t anon = info->kv_bytes + info->scratch_bytes;
        const uint64_t left = c->room > anon ? c->room - anon : 1;

        c->stand_in_bytes =
            point_probe_bytes(point_step_threads(c->p), left, c->image_bytes);
        c->facts.stand_in_bytes = (double)c->stand_in_bytes;
    }
    return c->stand_in_bytes;
}

static enum status read_passes(struct point_worker *c, struct thread_pool *pool,
                               bool weights, struct err *err)
{
    struct probe_buffer own = {.base = NULL};

    if (!weights) {
        const uint64_t bytes = stand_in_bytes(c);
        enum status status = ST_OK;

        if (bytes)
            status = probe_buffer_open(&own, pool, bytes, pages_of(c), &c->topo, err);
        if (status || !bytes)
            return status;
    }
    for (int i = 0; i < N_ROOF_PASSES; i++) {
        worker_report_progress(&c->reports, "probe", c->n_samples > 0);
        read_pass(c, weights ? next_place(c, pool) : &own, pool);
    }
    evaluate_roof(c);
    probe_buffer_close(&own);
    return ST_OK;
}

/* Peaks are evidence for the limiter. With more threads than CPUs they would be the
 * scheduler's, and a pass of a thousand threads takes half a minute. */
static bool needs_peaks(const struct point_worker *c, bool weights)
{
    return c->p->profile || (weights && c->p->kind != POINT_SPECULATE &&
                             point_step_threads(c->p) <= c->topo.n_allowed);
}

/* Points whose weights are read for several tokens. */
static bool has_arithmetic_roof(const struct point *p)
{
    return p->kind == POINT_PREFILL ||
           (p->kind == POINT_DECODE && (p->n_chunk || p->n_sequences > 1));
}

/* weights: read the model's own, else a buffer of the same page size. */
static enum status probe_with(struct point_worker *c, struct thread_pool *pool,
                              bool weights, struct err *err)
{
    if (read_passes(c, pool, weights, err))
        return err->code;
    if (has_arithmetic_roof(c->p))
        add_peak_passes(c, N_PEAK_PASSES, pool);
    if (has_arithmetic_roof(c->p) && int8_peak(c) == PROBE_PEAK_INT8 &&
        isa_usable() >> KERN_ISA_amx_int8 & 1)
        c->vectors_gops = probe_peak(PROBE_PEAK_VECTORS, pool);
    if (needs_peaks(c, weights) && !(c->int8_gops > 0)) {
        c->int8_gops = c->n_roof_gops ? c->peak.median : probe_peak(int8_peak(c), pool);
        c->f32_gops = probe_peak(PROBE_PEAK_F32, pool);
    }
    return ST_OK;
}

bool point_beside_due(double since_s, double budget_s, double cost_s)
{
    const double wanted = fmax(BESIDE_S, budget_s / N_ROOF_BESIDE);

    return since_s >= fmax(wanted, cost_s * (1 / BESIDE_MAX_SHARE - 1));
}

/* A token that is no sample. Its error, if any, is the next sample's, too. */
static void wake_after_pass(struct point_worker *c)
{
    uint64_t ns = 0;

    if (measured_wake(&c->measured, &ns, NULL))
        return;
    c->n_woken++;
    c->woken_ms += (double)ns * 1e-6;
}

void point_probe_beside(struct point_worker *c)
{
    const uint64_t begin = clock_ns();
    const uint64_t last =
        c->beside_ns > c->measure_begin_ns ? c->beside_ns : c->measure_begin_ns;

    if (!c->n_places || c->n_beside >= N_ROOF_BESIDE || c->p->kind == POINT_SPECULATE ||
        !point_beside_due((double)(begin - last) * 1e-9, c->p->budget_s,
                          c->beside_cost_s))
        return;
    thread_pool_use(slm_thread_pool(c->model), point_step_threads(c->p));
    if (c->p->kind == POINT_PREFILL) {
        add_peak_passes(c, 1, slm_thread_pool(c->model)); /* reads no memory */
    } else {
        read_pass(c, next_place(c, slm_thread_pool(c->model)),
                  slm_thread_pool(c->model));
        wake_after_pass(c);
    }
    c->n_beside++;
    c->beside_ns = clock_ns();
    c->beside_cost_s = (double)(c->beside_ns - begin) * 1e-9;
}

enum status point_probe_roof(struct point_worker *c, bool weights, struct err *err)
{
    struct thread_pool *pool = NULL;
    enum status status;

    if (c->model) {
        thread_pool_use(slm_thread_pool(c->model), point_step_threads(c->p));
        return probe_with(c, slm_thread_pool(c->model), weights, err);
    }
    status = thread_pool_start(&pool, point_step_threads(c->p), c->cpus, err);
    if (status == ST_OK)
        status = probe_with(c, pool, weights, err);
    thread_pool_stop(pool);
    return status;
}
