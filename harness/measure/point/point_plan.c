/* SPDX-License-Identifier: MIT
 *
 * point_plan.c - a point before it runs: whether it fits, and its row
 */
#include "harness/measure/point/point_run.h"

#include <stdio.h>

#include "harness/base/format.h"
#include "harness/machine/memory_reserve.h"
#include "harness/rows/model_rows.h"

/* ---- plan ------------------------------------------------------------------------ */

uint64_t point_room(const struct point_run *r)
{
    return topology_usable_bytes(r->topo, r->settings.setup.mem_limit);
}

/* In words, for behind a need: "the limit is 6.00 GiB". */
static const char *available_text(const struct point_run *r, char *buf, size_t cap)
{
    const uint64_t room = point_room(r);
    const struct shown_figure have = bytes_text(room);

    if (room == r->settings.setup.mem_limit)
        snprintf(buf, cap, "the limit is %s", have.text);
    else if (topology_is_limited(r->topo))
        snprintf(buf, cap, "the memory limit in force leaves %s (see `bench topo`)",
                 have.text);
    else
        snprintf(buf, cap, "available are %s", have.text);
    return buf;
}

void point_plan(struct point_run *r, const struct point_need *need)
{
    struct point *p = &r->settings;
    uint64_t planned;

    p->setup.residency = (enum weights_residency)need->residency;
    r->weight_bytes = need->weight_bytes;
    r->rows_bytes = need->rows_bytes;
    r->anon_bytes = need->anon_bytes;
    r->n_vocab = need->n_vocab;
    planned =
        r->anon_bytes + (p->setup.residency == WEIGHTS_MMAP ? need->map_bytes : 0);
    r->fits = planned + RESERVE_OWN_BYTES <= point_room(r);
    snprintf(r->row->quant, sizeof r->row->quant, "%s", need->quant);
    if (!p->setup.model.identity)
        row_set_model(r->row, need->identity);
    r->row->n_params = (int64_t)need->n_params;
    r->row->file_bytes = (int64_t)r->weight_bytes;
    r->row->mem_planned_bytes = (int64_t)planned;
    r->row->residency = need->residency;
    if (need->residency == WEIGHTS_STREAM) {
        r->row->n_streamed = need->n_streamed;
        r->row->streamed_bytes = (int64_t)need->streamed_bytes;
    }
    if (p->kind != POINT_SPECULATE)
        return;
    p->n_prompt = need->n_prompt;
    p->n_answer = need->n_answer;
    r->row->ctx = point_depth(p);
    if (need->own_answer)
        r->row->ctx_fill = CTX_FILL_PREFILL;
}

/* A point is not tried where memory that cannot be paged out does not fit: the OOM
 * killer would end it. Returns whether it may be tried. */
bool point_may_try(struct point_run *r)
{
    const struct point *p = &r->settings;
    static const char *const needed[] = {
        [WEIGHTS_MMAP] = "KV cache, scratch and process",
        [WEIGHTS_PACKED] = "weights, KV cache and process",
        [WEIGHTS_STREAM] = "KV cache, process and weights with all layers streamed",
        [WEIGHTS_MEMORY] = "weights, KV cache and process"};
    const uint64_t bytes = r->anon_bytes + point_need_reserve((int)p->setup.residency);
    char have[96];

    if (p->force || bytes <= point_room(r))
        return true;
    r->row->status = ROW_STATUS_NO_FIT;
    snprintf(r->row->detail, sizeof r->row->detail, "does not fit: needs %s for %s, %s",
             bytes_text(bytes).text, needed[p->setup.residency],
             available_text(r, have, sizeof have));
    return false;
}

/* ---- the row before it runs ------------------------------------------------------ */

void point_describe(struct point_run *r, const struct point *p)
{
    struct row *row = r->row;

    row_init(row);
    format_now(row->utc, sizeof row->utc);
    row_name_build(row);
    point_id(p, row->point, sizeof row->point);
    point_command(p, row->command, sizeof row->command);
    row->attempt = 1;
    row->cached_bytes = r->cached_bytes;
    row->kind = (int)p->kind;
    snprintf(row->model, sizeof row->model, "%s", p->setup.model.name);
    snprintf(row->model_label, sizeof row->model_label, "%s", p->setup.model.label);
    row_set_model(row, p->setup.model.identity);
    if (p->setup.model.synthetic)
        snprintf(row->quant, sizeof row->quant, "%s",
                 quantmix_name(p->setup.model.mix));
    row->n_threads = p->setup.n_threads;
    if (p->setup.n_threads_prefill)
        row->n_threads_prefill = p->setup.n_threads_prefill;
    if (p->setup.kv_window)
        row->kv_window = p->setup.kv_window;
    if (p->setup.prefill_sums == SLM_SUMS_INT8)
        row->prefill_sums = SLM_SUMS_INT8;
    if (p->setup.quota_hundredths)
        row->cpus_quota = model_setup_quota(&p->setup);
    row->placement =
        p->setup.explicit_cpus ? ROW_PLACEMENT_LIST : (int)p->setup.placement;
    if (r->settings.setup.explicit_cpus)
        format_cpus(row->cpus, sizeof row->cpus, r->settings.setup.cpus,
                    model_setup_threads(&p->setup));
    if (p->kind == POINT_PREFILL) {
        row->n_prompt = p->n_prompt;
    } else {
        row->ctx = p->ctx;
        if (p->n_sequences > 1)
            row->n_sequences = p->n_sequences;
        if (p->n_shared)
            row->n_shared = p->n_shared;
        if (p->n_chunk)
            row->n_chunk = p->n_chunk;
        row->ctx_fill = p->ctx_prefill;
    }
    if (p->kind == POINT_SPECULATE)
        point_text_name(p, row->spec_text, sizeof row->spec_text);
    row->weights_asked = (int)p->setup.residency;
    row->n_wanted = p->n_tokens;
    row->n_batch = p->setup.n_batch;
    row->budget_s = p->budget_s;
    if (p->setup.mem_limit)
        row->mem_limit_bytes = (int64_t)p->setup.mem_limit;
    row->tuning = TUNED_NOT;
}
