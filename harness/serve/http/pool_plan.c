/* SPDX-License-Identifier: MIT
 *
 * pool_plan.c - the largest pool of pages that memory holds, and the most checkpoints,
 * by bisection
 */
#include "harness/serve/http/pool_plan.h"

#include "harness/base/format.h"

uint64_t pool_plan_memory(uint64_t bytes, uint64_t request_bytes)
{
    return bytes - (request_bytes < bytes / 8 ? request_bytes : bytes / 8);
}

struct search {
    const struct gguf *g;
    struct slm_params params;
    uint64_t kv_limit;
    uint64_t memory_bytes;    /* params have what a draft model leaves of it */
    struct pool_draft *draft; /* NULL: none */
    uint64_t draft_kv_bytes;  /* 0: none */
    struct slm_info least;    /* of the smallest pool */
};

/* Memory for the weights; opening packed ones takes as much as the file has. */
static uint64_t held_bytes(const struct slm_info *info)
{
    const bool whole = info->residency == WEIGHTS_MMAP ||
                       (info->residency == WEIGHTS_PACKED &&
                        info->weight_bytes > info->weights_memory_bytes);

    return whole ? info->weight_bytes : info->weights_memory_bytes;
}

/* What a draft model with that many pages takes is no memory for the model. */
static enum status plan_draft(struct search *s, size_t n_pages, struct err *err)
{
    struct pool_draft *d = s->draft;
    struct slm_info info;
    uint64_t taken;
    enum status st;

    d->params.n_pool = n_pages * SLM_PAGE;
    d->params.memory_bytes = s->memory_bytes;
    st = slm_plan(&info, d->g, &d->params, err);
    if (st)
        return st;
    d->weights_bytes = held_bytes(&info);
    d->other_bytes = info.kv_bytes + info.scratch_bytes;
    s->draft_kv_bytes = info.kv_bytes;
    taken = d->weights_bytes + d->other_bytes;
    s->params.memory_bytes = s->memory_bytes > taken ? s->memory_bytes - taken : 1;
    return ST_OK;
}

static enum status plan_pages(struct slm_info *info, struct search *s, size_t n_pages,
                              struct err *err)
{
    const enum status st = s->draft ? plan_draft(s, n_pages, err) : ST_OK;

    s->params.n_pool = n_pages * SLM_PAGE;
    return st ? st : slm_plan(info, s->g, &s->params, err);
}

/* Streamed layers take what the KV cache leaves, so their number must not change. */
static bool fits(const struct search *s, const struct slm_info *info)
{
    if (s->kv_limit && info->kv_bytes + s->draft_kv_bytes > s->kv_limit)
        return false;
    return info->residency == s->least.residency &&
           info->n_streamed == s->least.n_streamed &&
           info->cache_bytes == s->least.cache_bytes &&
           held_bytes(info) + info->kv_bytes + info->scratch_bytes <=
               s->params.memory_bytes;
}

/* All positions that sequences may have, with weights that always fit. */
static enum status plan_all(struct slm_info *info, const struct search *s,
                            struct err *err)
{
    struct slm_params params = s->params;

    params.residency = WEIGHTS_MMAP;
    params.n_pool = 0;
    return slm_plan(info, s->g, &params, err);
}

/* A pool that leaves no memory even for streamed weights does not fit either. */
static bool is_possible(struct search *s, size_t n_pages)
{
    struct err ignored = ERR_INIT;
    struct slm_info info;

    return !plan_pages(&info, s, n_pages, &ignored) && fits(s, &info);
}

/* The largest number of pages that fits; `least`, even if it does not fit. */
static size_t find_max(struct search *s, size_t least, size_t most)
{
    if (is_possible(s, most))
        return most;
    while (most - least > 1) {
        const size_t middle = least + (most - least) / 2;

        if (is_possible(s, middle))
            least = middle;
        else
            most = middle;
    }
    return least;
}

/* Checkpoints that are worth their memory, next to as many pages as sequences may have.
 */
static int wanted_checkpoints(const struct search *s, size_t n_pages)
{
    struct err ignored = ERR_INIT;
    struct slm_params params = s->params;
    struct slm_info info;
    size_t n;

    params.residency = WEIGHTS_MMAP;
    params.n_pool = n_pages * SLM_PAGE;
    params.n_checkpoints = 1;
    if (slm_plan(&info, s->g, &params, &ignored) || info.n_checkpoints == 0)
        return 0;
    n = (size_t)(info.kv_bytes / info.checkpoint_bytes) - 1;
    if (info.n_seq_pages)
        n = n < n_pages ? n : n_pages;
    return n > POOL_MIN_CHECKPOINTS ? (int)n : POOL_MIN_CHECKPOINTS;
}

/* The most of them that fit next to that many pages. */
static int find_checkpoints(struct search *s, size_t n_pages, int most)
{
    int fewest = 0;

    for (int n = most; n > fewest; n = fewest + (most - fewest + 1) / 2) {
        s->params.n_checkpoints = n;
        if (is_possible(s, n_pages))
            fewest = n;
        else
            most = n - 1;
    }
    return fewest;
}

/* Sets the search's checkpoints; the pages that there are then, of n_pages. */
static size_t add_checkpoints(struct search *s, size_t least, size_t n_pages,
                              size_t n_all)
{
    const int most = wanted_checkpoints(s, n_all);
    const size_t rest = n_pages - n_pages / 4;
    int n = find_checkpoints(s, n_pages, most);

    if (n < POOL_MIN_CHECKPOINTS && n < most) {
        n_pages = rest > least ? rest : least;
        n = find_checkpoints(s, n_pages, POOL_MIN_CHECKPOINTS);
    }
    s->params.n_checkpoints = n;
    return find_max(s, n_pages, n_all);
}

enum status pool_plan_make(struct pool_plan *plan, const struct gguf *g,
                           const struct slm_params *params, uint64_t kv_bytes,
                           struct pool_draft *draft, struct err *err)
{
    const size_t n = params->n_sequences > 1 ? (size_t)params->n_sequences : 1;
    struct search s = {.g = g,
                       .params = *params,
                       .kv_limit = kv_bytes,
                       .memory_bytes = params->memory_bytes,
                       .draft = draft};
    size_t of_one, n_pages;
    struct slm_info all, info;
    enum status st;

    s.params.n_checkpoints = 0;
    st = plan_all(&all, &s, err);
    if (st)
        return st;
    /* Models with windows alone have no pages, and any number of them does. */
    of_one = all.n_seq_pages > 0 ? (size_t)all.n_seq_pages : 1;
    st = plan_pages(&s.least, &s, of_one + n - 1, err);
    if (!st && kv_bytes && s.least.kv_bytes + s.draft_kv_bytes > kv_bytes)
        return err_set(err, ST_NO_MEMORY,
                       "a KV cache for one sequence of %d positions and a page of each "
                       "other takes %s, more than %s; choose a smaller --ctx",
                       params->n_ctx,
                       bytes_text(s.least.kv_bytes + s.draft_kv_bytes).text,
                       bytes_text(kv_bytes).text);
    if (st)
        return st;
    n_pages = find_max(&s, of_one + n - 1, n * of_one);
    if (params->n_checkpoints)
        n_pages = add_checkpoints(&s, of_one + n - 1, n_pages, n * of_one);
    st = plan_pages(&info, &s, n_pages, err);
    if (st)
        return st;
    *plan = (struct pool_plan){.n_pool = n_pages * SLM_PAGE,
                               .n_max = n * of_one * SLM_PAGE,
                               .n_checkpoints = info.n_checkpoints,
                               .kv_bytes = info.kv_bytes,
                               .max_bytes = all.kv_bytes,
                               .weights_bytes = held_bytes(&info),
                               .scratch_bytes = info.scratch_bytes,
                               .memory_bytes = s.memory_bytes};
    return ST_OK;
}
