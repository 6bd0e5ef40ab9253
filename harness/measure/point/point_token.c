/* SPDX-License-Identifier: MIT
 *
 * point_token.c - what a token took of the disk and of energy
 *
 * Between samples there are steps that are no samples (point_probe_beside()), of as
 * many tokens as one.
 */
#include <stdio.h>

#include "engine/base/clock.h"
#include "harness/base/format.h"
#include "harness/measure/point/point_worker_impl.h"

double point_tokens_read(const struct point_worker *c)
{
    return (double)(c->n_samples + c->n_woken) * c->facts.tokens_per_sample;
}

void point_note_stream(struct point_worker *c)
{
    const double n = point_tokens_read(c);
    const double ms = c->p->kind == POINT_SPECULATE
                          ? (double)(clock_ns() - c->measure_begin_ns) * 1e-6
                          : c->sum_ms + c->woken_ms;
    struct slm_stream s;
    char size[24];

    if (!slm_stream_read(c->model, &s))
        return;
    c->facts.stream_request_bytes = (double)s.request_bytes;
    c->facts.stream_depth = s.depth;
    format_bytes(size, sizeof size, s.request_bytes);
    snprintf(c->row.disk_way, sizeof c->row.disk_way, "%s, %s, %d of %s", s.backend,
             s.direct ? "direct" : "page cache", s.depth, size);
    if (!(n > 0))
        return;
    c->row.disk_wait_pct =
        100 * (double)(s.wait_ns - c->stream_begin.wait_ns) * 1e-6 / ms;
    if (s.expert_uses > c->stream_begin.expert_uses)
        c->row.expert_hit_rate = (double)(s.expert_hits - c->stream_begin.expert_hits) /
                                 (double)(s.expert_uses - c->stream_begin.expert_uses);
    if (c->p->kind != POINT_SPECULATE)
        c->row.disk_bytes_per_token =
            (int64_t)((double)(s.bytes_read - c->stream_begin.bytes_read) / n);
}

void point_note_energy(struct point_worker *c)
{
    const double n = (double)c->n_samples * c->facts.tokens_per_sample;

    if (n > 0 && c->p->kind != POINT_SPECULATE && !c->p->n_chunk)
        c->row.joules_per_token = energy_joules(&c->energy) / n;
}
