/* SPDX-License-Identifier: MIT
 *
 * point_wire.c - facts as JSON, and sizes both sides agree on
 */
#include "harness/measure/point/point_worker.h"

#include <stddef.h>

#include "engine/speculate/speculate_rule.h"
#include "harness/machine/memory_reserve.h"
#include "harness/machine/probe.h"
#include "harness/rows/settings/setting.h"

#define MIB (UINT64_C(1) << 20)

/* clang-format off */
static const struct { const char *key; size_t offset; } fact_keys[] = {
    {"tokens_per_sample", offsetof(struct point_facts, tokens_per_sample)},
    {"ops_per_sample", offsetof(struct point_facts, ops_per_sample)},
    {"bytes_per_sample", offsetof(struct point_facts, bytes_per_sample)},
    {"roof_spread", offsetof(struct point_facts, roof_spread)},
    {"stand_in_bytes", offsetof(struct point_facts, stand_in_bytes)},
    {"disk_spread", offsetof(struct point_facts, disk_spread)},
    {"stream_request_bytes", offsetof(struct point_facts, stream_request_bytes)},
    {"stream_depth", offsetof(struct point_facts, stream_depth)},
    {"profile_ms", offsetof(struct point_facts, profile_ms)},
    {"wait_ms", offsetof(struct point_facts, wait_ms)},
    {"arith_ms", offsetof(struct point_facts, arith_ms)},
};
/* clang-format on */

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

json_t *point_facts_json(const struct point_facts *facts)
{
    json_t *object = json_object();

    for (size_t i = 0; i < LENGTH(fact_keys); i++) {
        const void *field = (const char *)facts + fact_keys[i].offset;

        json_object_set_new(object, fact_keys[i].key,
                            json_real(*(const double *)field));
    }
    return object;
}

void point_facts_from_json(struct point_facts *facts, const json_t *object)
{
    for (size_t i = 0; i < LENGTH(fact_keys); i++) {
        const json_t *value = json_object_get(object, fact_keys[i].key);
        void *field = (char *)facts + fact_keys[i].offset;

        if (json_is_number(value))
            *(double *)field = json_number_value(value);
    }
}

/* Less is read faster than can be timed well; of a small model and of a small limit. */
#define LEAST_OF_MODEL (64 * MIB)
#define LEAST_OF_LIMIT (16 * MIB)

uint64_t point_probe_bytes(int n_threads, uint64_t mem_limit, uint64_t weight_bytes)
{
    const uint64_t of_model =
        weight_bytes > LEAST_OF_MODEL ? weight_bytes : LEAST_OF_MODEL;
    uint64_t bytes = probe_pass_bytes(n_threads);

    if (bytes > of_model)
        bytes = of_model;
    if (mem_limit && bytes > mem_limit / 8)
        bytes = mem_limit / 8;
    if (bytes < LEAST_OF_LIMIT)
        bytes = LEAST_OF_LIMIT <= mem_limit / 2 ? LEAST_OF_LIMIT : 0;
    return bytes / (2 * MIB) * (2 * MIB);
}

uint64_t point_memory(const struct point *p, uint64_t room)
{
    const uint64_t bytes = memory_for_model(room);

    if (p->setup.residency != WEIGHTS_STREAM && p->setup.residency != WEIGHTS_AUTO)
        return room;
    return bytes ? bytes : 1; /* 0 is the machine's */
}

int point_n_logits(const struct point *p)
{
    return p->kind == POINT_SPECULATE ? SPECULATE_MAX + 1 : 1;
}

/* With settings in their ranges none of this overflows. */
_Static_assert((long long)SETTING_MAX(ctx) + SETTING_MAX(answer) + 1 <= INT_MAX &&
                   (long long)SETTING_MAX(prefill) + SETTING_MAX(answer) + 1 <= INT_MAX,
               "the positions of a point do not fit into an int");

int point_n_ctx(const struct point *p)
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

/* Positions of a window are in a ring: they may begin and end within pages, and go on
 * at its beginning. */
#define RING_PAGES 2

/* Whole pages are shared; the one in which sequences part is each one's own. */
void point_set_sequences(const struct point *p, struct slm_params *params)
{
    const size_t shared = (size_t)p->n_shared / SLM_PAGE;
    const size_t all = pages_of(p->kind == POINT_DECODE ? p->ctx + 1 : point_n_ctx(p));
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

int point_n_back(const struct point *p)
{
    /* Speculation goes back to where an answer begins; no token may run again while it
     * is timed. */
    return p->kind == POINT_SPECULATE && p->n_answer >= SLM_DEFAULT_BACK
               ? p->n_answer + 1
               : SLM_DEFAULT_BACK;
}
