/* SPDX-License-Identifier: MIT
 *
 * pool_plan.c - the largest pool of pages that memory holds, by bisection
 */
#include "harness/http/pool_plan.h"

#include "harness/base/format.h"

struct search {
    const struct gguf *g;
    struct slm_params params;
    uint64_t kv_limit;
    struct slm_info least; /* of the smallest pool */
};

/* Of weights; opening packed ones asks for as much as the file has. */
static uint64_t held_bytes(const struct slm_info *info)
{
    const bool whole = info->residency == WEIGHTS_MMAP ||
                       (info->residency == WEIGHTS_PACKED &&
                        info->weight_bytes > info->weights_memory_bytes);

    return whole ? info->weight_bytes : info->weights_memory_bytes;
}

static enum status plan_pages(struct slm_info *info, struct search *s, size_t n_pages,
                              struct err *err)
{
    s->params.n_pool = n_pages * SLM_PAGE;
    return slm_plan(info, s->g, &s->params, err);
}

/* Streamed layers take what the KV cache leaves, so that their number is what tells. */
static bool fits(const struct search *s, const struct slm_info *info)
{
    if (s->kv_limit && info->kv_bytes > s->kv_limit)
        return false;
    return info->residency == s->least.residency &&
           info->n_streamed == s->least.n_streamed &&
           info->cache_bytes == s->least.cache_bytes &&
           held_bytes(info) + info->kv_bytes + info->scratch_bytes <=
               s->params.memory_bytes;
}

/* Pages that a sequence takes at most. Models with windows alone have none, and any
 * number of them does. */
static enum status find_each(size_t *each, const struct search *s, struct err *err)
{
    struct slm_params params = s->params;
    struct slm_info info;
    enum status st;

    params.residency = WEIGHTS_MMAP; /* always fits */
    params.n_pool = 0;
    st = slm_plan(&info, s->g, &params, err);
    if (!st)
        *each = info.n_seq_pages > 0 ? (size_t)info.n_seq_pages : 1;
    return st;
}

/* Of pages: `least` is taken, whether it fits or not. */
static enum status find_most(size_t *found, struct search *s, size_t least, size_t most,
                             struct err *err)
{
    struct slm_info info;
    enum status st = plan_pages(&info, s, most, err);

    if (!st && fits(s, &info))
        least = most;
    while (!st && most - least > 1) {
        const size_t middle = least + (most - least) / 2;

        st = plan_pages(&info, s, middle, err);
        if (fits(s, &info))
            least = middle;
        else
            most = middle;
    }
    *found = least;
    return st;
}

enum status pool_plan_make(struct pool_plan *plan, const struct gguf *g,
                           const struct slm_params *params, uint64_t kv_bytes,
                           struct err *err)
{
    const size_t n = params->n_sequences > 1 ? (size_t)params->n_sequences : 1;
    struct search s = {.g = g, .params = *params, .kv_limit = kv_bytes};
    char needs[24], has[24];
    struct slm_info most, info;
    size_t n_pages = 0, of_one = 1;
    enum status st = find_each(&of_one, &s, err);

    if (!st)
        st = plan_pages(&s.least, &s, of_one + n - 1, err);
    if (!st && kv_bytes && s.least.kv_bytes > kv_bytes)
        return err_set(err, ST_NO_MEMORY,
                       "a KV cache for one sequence of %d positions and a page of each "
                       "other takes %s, more than %s; choose a smaller --ctx",
                       params->n_ctx,
                       format_bytes(needs, sizeof needs, s.least.kv_bytes),
                       format_bytes(has, sizeof has, kv_bytes));
    if (!st)
        st = find_most(&n_pages, &s, of_one + n - 1, n * of_one, err);
    if (!st)
        st = plan_pages(&most, &s, n * of_one, err);
    if (!st)
        st = plan_pages(&info, &s, n_pages, err);
    if (st)
        return st;
    *plan = (struct pool_plan){.n_pool = n_pages * SLM_PAGE,
                               .n_most = n * of_one * SLM_PAGE,
                               .kv_bytes = info.kv_bytes,
                               .most_bytes = most.kv_bytes,
                               .weights_bytes = held_bytes(&info),
                               .scratch_bytes = info.scratch_bytes,
                               .memory_bytes = s.params.memory_bytes};
    return ST_OK;
}
