/* SPDX-License-Identifier: MIT
 *
 * point_columns.c - the columns of a row that a worker fills in: FIELD_WORKER
 *
 * Between samples there are steps that are no samples (point_probe_beside()), of as
 * many tokens as one.
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/clock.h"
#include "engine/base/nodes.h"
#include "harness/base/format.h"
#include "harness/measure/worker/worker.h"
#include "harness/measure/worker/point/point_worker.h"
#include "kernels/units.h"

void point_note_plan(struct point_worker *c, const struct slm_info *info)
{
    c->row.model_ctx = info->n_ctx_train;
    c->row.kv_bytes_per_token = (int64_t)info->kv_more_bytes;
    if (c->p->kind == POINT_DECODE)
        c->row.bytes_per_token =
            (int64_t)(point_step_bytes(c->p, info) / c->p->n_sequences);
}

/* The parent knows how many nodes there are: a process behind the fence has no hwloc.
 */
static void note_nodes(struct row *row, const void *memory, size_t bytes)
{
    size_t n_on[NODES_MAX];
    const size_t n = bytes ? nodes_of_memory(memory, bytes, n_on) : 0;

    for (int i = 0; n && i < NODES_MAX; i++)
        if (n_on[i])
            text_append(row->mem_nodes, sizeof row->mem_nodes, "%s%d:%.0f",
                        row->mem_nodes[0] ? " " : "", i,
                        100 * (double)n_on[i] / (double)n);
}

void point_note_model(struct point_worker *c)
{
    const struct slm_info *info = slm_info(c->model);
    struct row *row = &c->row;

    point_note_plan(c, info);
    row->n_params = (int64_t)info->n_params;
    row->kv_bytes = (int64_t)info->kv_bytes;
    snprintf(row->quant, sizeof row->quant, "%s", info->quant);
    point_fill_columns(c->p, FIELD_COMPUTED, row);
    row->pages = MEM_PAGES_4K;
    if (c->p->setup.residency == WEIGHTS_MEMORY) {
        row->file_bytes = (int64_t)c->image_bytes;
        row->mem_planned_bytes =
            (int64_t)(c->image_bytes + info->kv_bytes + info->scratch_bytes);
    }
    size_t bytes;
    const void *memory = weights_memory(slm_weights(c->model), &bytes);

    if (c->p->setup.residency != WEIGHTS_MMAP && bytes &&
        mem_huge_bytes(memory, bytes) >= bytes / 2)
        row->pages = MEM_PAGES_2M;
    note_nodes(row, memory, bytes);
    row->isa = row_enum_value(
        &choices_isa,
        measured_isa(isa_usable(), slm_takes_tiles(c->model, (size_t)info->n_batch)));
    units_text(c->topo.unused_units, row->unused_units, sizeof row->unused_units);
    row->load_s = c->load_s;
}

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

    if (!slm_stream_read(c->model, &s))
        return;
    c->facts.stream_request_bytes = (double)s.request_bytes;
    c->facts.stream_depth = s.depth;
    snprintf(c->row.disk_way, sizeof c->row.disk_way, "%s, %s, %d of %s", s.backend,
             s.direct ? "direct" : "page cache", s.depth,
             bytes_text(s.request_bytes).text);
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

static void note_speculation(struct point_worker *c)
{
    const struct point_speculation *s = c->speculation;
    const double n_tokens = (double)s->sum.n_tokens, n_passes = (double)s->sum.n_passes;
    struct row *row = &c->row;

    row->spec_mode = c->p->mtp ? SPEC_MTP : SPEC_LOOKUP;
    if (c->p->accept_hundredths)
        row->spec_accept_set = c->p->accept_hundredths / 100.0;
    row->spec_answer = s->prompt.n_answer ? SPEC_ANSWER_GIVEN : SPEC_ANSWER_OWN;
    if (!s->n_runs || !(n_passes > 0))
        return;
    row->spec_tokens = (int64_t)(s->sum.n_tokens / s->n_runs);
    row->spec_guessed = (int64_t)(s->sum.n_drafted / s->n_runs);
    if (s->sum.n_drafted)
        row->spec_accept = (double)s->sum.n_accepted / (double)s->sum.n_drafted;
    for (int i = 0; i < SPECULATE_MAX && s->sum.drafted_at[i]; i++)
        text_append(row->spec_accept_at, sizeof row->spec_accept_at, "%s%.2f",
                    i ? " " : "",
                    (double)s->sum.accepted_at[i] / (double)s->sum.drafted_at[i]);
    row->spec_tokens_per_pass = n_tokens / n_passes;
    row->spec_plain_tok_per_s = n_tokens * 1e9 / s->plain_ns;
    row->spec_speedup = s->plain_ns / s->drafting_ns;
    stats_ratio_interval(s->parts, s->n_parts, c->p->setup.seed, &row->spec_speedup_lo,
                         &row->spec_speedup_hi);
}

void point_note_unused(struct row *row, const char *unit)
{
    char others[sizeof row->unused_units];

    snprintf(others, sizeof others, "%s", row->unused_units);
    if (strstr(others, unit))
        return;
    snprintf(row->unused_units, sizeof row->unused_units, "%s%s%.80s", unit,
             *others ? " " : "", others);
}

/* Tiles that do not multiply in this step: vectors are faster, they are switched off,
 * or attention is of a kind that leaves them idle. */
static void note_unused_tiles(struct point_worker *c)
{
    const uint32_t levels = isa_detected();

    if (levels >> KERN_ISA_amx_bf16 & 1 && !slm_attends_by_tiles(c->model))
        point_note_unused(&c->row, "AMX-BF16");
    if (levels >> KERN_ISA_amx_int8 & 1 && !(c->vectors_gops > 0))
        point_note_unused(&c->row, "AMX-INT8");
}

/* Medians of passes before, between and after the samples so far. */
static void note_roofs(struct point_worker *c)
{
    struct row *row = &c->row;

    if (c->n_roof_gbps) {
        row->roof_gbps = c->roof.median;
        row->roof_gbps_lo = c->roof.lo;
        row->roof_gbps_hi = c->roof.hi;
    }
    if (c->n_roof_gops) {
        row->roof_gops = c->peak.median;
        row->roof_gops_lo = c->peak.lo;
        row->roof_gops_hi = c->peak.hi;
    }
    if (c->vectors_gops > 0)
        row->roof_vectors_gops = c->vectors_gops;
    if (c->n_roof_gops && c->model)
        note_unused_tiles(c);
}

void point_report(struct point_worker *c)
{
    note_roofs(c);
    if (c->speculation)
        note_speculation(c);
    if (c->model && c->p->kind != POINT_PREFILL)
        prefetch_of_model(c->model, c->row.prefetch, sizeof c->row.prefetch);
    if (c->resident_bytes)
        c->row.mem_resident_bytes = (int64_t)c->resident_bytes;
    if (c->relief.bytes)
        c->row.reclaimed_bytes = (int64_t)c->relief.bytes;
    if (c->step_plain_ms > 0)
        c->row.step_plain_ms = c->step_plain_ms;
    worker_send(message_columns(&c->row));
    worker_send(json_pack("{s:o}", "facts", point_facts_json(&c->facts)));
}
