/* SPDX-License-Identifier: MIT
 *
 * point_roof.c - what the memory gives the point, probed beside its measurement
 */
#include <math.h>

#include "engine/mem.h"
#include "engine/team.h"
#include "harness/point_child_impl.h"
#include "harness/roofs.h"
#include "harness/stats.h"
#include "kernels/isa.h"

#define N_PEAK_PASSES 3

/* Median of all passes; the spread is what they differ by, and what the passes
 * before the measurement differ from those after it. */
static void evaluate_roof(struct point_child *c)
{
    double scratch[2 * N_ROOF_PASSES];
    struct stats all;

    stats_summary(&all, c->roof_gbps, (size_t)c->n_roof_gbps, scratch);
    c->row.roof_gbps = all.median;
    if (!(all.median > 0))
        return;
    c->facts.roof_spread = 2 * all.mad / all.median;
    if (c->n_roof_gbps > N_ROOF_PASSES) {
        const double *second = c->roof_gbps + N_ROOF_PASSES;
        const double before = stats_median(c->roof_gbps, N_ROOF_PASSES, scratch);
        const double after =
            stats_median(second, (size_t)(c->n_roof_gbps - N_ROOF_PASSES), scratch);
        const double apart = fabs(after - before) / all.median;

        if (apart > c->facts.roof_spread)
            c->facts.roof_spread = apart;
    }
}

/* Passes over the buffer; the way to read is chosen once per point. */
static void probe_passes(struct point_child *c, const struct probe_buffer *buffer,
                         struct team *team)
{
    if (!c->way.kernel)
        c->way = probe_read_tune(buffer, team, isa_usable());
    for (int i = 0; i < N_ROOF_PASSES; i++)
        c->roof_gbps[c->n_roof_gbps++] = probe_read_pass(buffer, team, &c->way);
    evaluate_roof(c);
}

static double probe_peak(enum probe_peak which, struct team *team)
{
    double gops[N_PEAK_PASSES], scratch[N_PEAK_PASSES];

    probe_compute(which, isa_usable(), team, N_PEAK_PASSES, gops);
    return stats_median(gops, N_PEAK_PASSES, scratch);
}

/* weights: read the model's own, else a buffer of the same page size. */
static enum status probe_with(struct point_child *c, struct team *team, bool weights,
                              struct err *err)
{
    const enum mem_pages pages =
        c->p->residency == WEIGHTS_MMAP ? MEM_PAGES_4K : MEM_PAGES_2M;
    struct probe_buffer buffer;

    if (weights) {
        size_t most;
        const void *memory = weights_memory(slm_weights(c->model), &most);

        probe_buffer_borrow(&buffer, team, memory,
                            most < (size_t)ROOF_MOST_BYTES ? most
                                                           : (size_t)ROOF_MOST_BYTES);
    } else {
        const uint64_t bytes =
            point_probe_bytes(c->topo.llc_bytes, c->p->mem_limit, c->image_bytes);
        const enum status status =
            probe_buffer_open(&buffer, team, bytes, pages, &c->topo, err);

        if (status)
            return status;
    }
    probe_passes(c, &buffer, team);
    probe_buffer_close(&buffer);
    if (c->p->kind == POINT_PREFILL && !(c->row.roof_gops > 0))
        c->row.roof_gops = probe_peak(PROBE_PEAK_INT8, team);
    if (c->p->profile && !(c->int8_gops > 0)) {
        c->int8_gops = probe_peak(PROBE_PEAK_INT8, team);
        c->f32_gops = probe_peak(PROBE_PEAK_F32, team);
    }
    return ST_OK;
}

enum status point_probe_roof(struct point_child *c, bool weights, struct err *err)
{
    struct team *team = NULL;
    enum status status;

    if (c->model) {
        team_use(slm_team(c->model), c->p->n_threads);
        return probe_with(c, slm_team(c->model), weights, err);
    }
    status = team_start(&team, c->p->n_threads, c->cpus, err);
    if (status == ST_OK)
        status = probe_with(c, team, weights, err);
    team_stop(team);
    return status;
}
