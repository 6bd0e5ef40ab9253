/* SPDX-License-Identifier: MIT
 *
 * point_sizes.c - what a point opens its model with, as planned and as measured
 */
#include "engine/speculate/speculate_rule.h"
#include "harness/machine/memory_reserve.h"
#include "harness/measure/worker/point/point_worker.h"

#define MIB (UINT64_C(1) << 20)

/* Less is read faster than can be timed well: minima for a small model and a small
 * limit. */
#define MIN_OF_MODEL (64 * MIB)
#define MIN_OF_LIMIT (16 * MIB)

uint64_t point_probe_bytes(int n_threads, uint64_t mem_limit, uint64_t weight_bytes)
{
    const uint64_t of_model = weight_bytes > MIN_OF_MODEL ? weight_bytes : MIN_OF_MODEL;
    uint64_t bytes = probe_pass_bytes(n_threads);

    if (bytes > of_model)
        bytes = of_model;
    if (mem_limit && bytes > mem_limit / 8)
        bytes = mem_limit / 8;
    if (bytes < MIN_OF_LIMIT)
        bytes = MIN_OF_LIMIT <= mem_limit / 2 ? MIN_OF_LIMIT : 0;
    return bytes / (2 * MIB) * (2 * MIB);
}

/* Memory that the engine may use of the point's room. It decides how many layers are
 * streamed, so it is the amount that the plan has counted with. */
static uint64_t memory_for(const struct point *p, uint64_t room)
{
    const uint64_t bytes = memory_for_model(room);

    if (p->setup.residency != WEIGHTS_STREAM && p->setup.residency != WEIGHTS_AUTO)
        return room;
    return bytes ? bytes : 1; /* 0 is the machine's */
}

/* With settings in their ranges none of this overflows. */
_Static_assert((long long)SETTING_MAX(ctx) + SETTING_MAX(answer) + 1 <= INT_MAX &&
                   (long long)SETTING_MAX(prefill) + SETTING_MAX(answer) + 1 <= INT_MAX,
               "the positions of a point do not fit into an int");

/* Positions of the KV cache. */
static int n_ctx(const struct point *p)
{
    /* Every token of a decode point is measured at the same depth: it is taken
     * off again before the next one. */
    if (p->kind == POINT_SPECULATE)
        return point_depth(p) + p->n_answer + 1;
    if (p->kind == POINT_PREFILL)
        return p->n_prompt;
    return p->ctx < point_chunk_prompt(p) ? point_chunk_prompt(p) : p->ctx + 1;
}

static size_t pages_of(int n)
{
    return ((size_t)n + SLM_PAGE - 1) / SLM_PAGE;
}

/* Positions of a window are in a ring: they may begin and end within pages, and
 * continue at its beginning. */
#define RING_PAGES 2

/* Whole pages are shared; the one in which sequences part is each one's own. */
void point_set_sequences(const struct point *p, struct slm_params *params)
{
    const size_t shared = (size_t)p->n_shared / SLM_PAGE;
    const size_t all = pages_of(p->kind == POINT_DECODE ? p->ctx + 1 : n_ctx(p));
    const size_t own = all - shared + (p->setup.kv_window ? RING_PAGES : 0);
    const size_t prompt = pages_of(point_chunk_prompt(p));
    const int n_batch = p->n_sequences + p->n_chunk;

    params->n_sequences = p->n_sequences + (p->n_chunk > 0);
    params->n_pool = (shared + (size_t)p->n_sequences * own + prompt) * SLM_PAGE;
    if (params->n_logits < params->n_sequences)
        params->n_logits = params->n_sequences;
    if ((params->n_batch ? params->n_batch : SLM_DEFAULT_BATCH) < n_batch)
        params->n_batch = n_batch;
}

struct slm_params point_params(const struct point *p, uint64_t room)
{
    struct slm_params params = model_setup_params(&p->setup, memory_for(p, room));

    params.n_ctx = n_ctx(p);
    params.n_logits = 1;
    if (p->kind == POINT_SPECULATE) {
        params.n_logits = SPECULATE_MAX + 1;
        /* Speculation goes back to where an answer begins; no token may run again while
         * it is timed. */
        if (p->n_answer >= SLM_DEFAULT_BACK)
            params.n_back = p->n_answer + 1;
    }
    params.mtp = p->mtp;
    return params;
}

void point_evaluate_facts(struct point_worker *c, const struct slm_info *info)
{
    const double head = (double)info->output_macs;
    const double body = (double)info->weight_token_macs - head;

    if (c->p->kind == POINT_PREFILL) {
        c->facts.tokens_per_sample = c->p->n_prompt;
        c->facts.ops_per_sample = 2 * (body * c->p->n_prompt + head);
        c->facts.bytes_per_sample =
            slm_bytes_per_prompt(info, c->p->n_prompt, c->p->setup.n_batch);
    } else {
        c->facts.tokens_per_sample = c->p->n_sequences;
        c->facts.ops_per_sample = point_step_ops(c->p, info);
        c->facts.bytes_per_sample = point_step_bytes(c->p, info);
    }
}
