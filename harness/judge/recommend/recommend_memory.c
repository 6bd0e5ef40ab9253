/* SPDX-License-Identifier: MIT
 *
 * recommend_memory.c - what a setting leaves of the memory limit, and for how much
 * context
 */
#include "harness/judge/recommend/recommend_choice.h"

#include <limits.h>

#include "harness/machine/memory_reserve.h"

/* The planned memory of two depths of one setting gives what a position needs, in rows
 * without the column. Negative: not known. */
static int64_t position_bytes(const struct chooser *c, size_t i)
{
    const struct row *r = c->rows.v[i];
    size_t k = i;

    if (r->kv_bytes_per_token >= 0)
        return r->kv_bytes_per_token;
    while (k > 0 && report_same_line(c->rows.v[k - 1], r))
        k--;
    for (; k < c->rows.n && report_same_line(c->rows.v[k], r); k++) {
        const struct row *o = c->rows.v[k];

        if (o->ctx >= 0 && r->ctx >= 0 && o->ctx != r->ctx &&
            o->mem_planned_bytes > 0 && r->mem_planned_bytes > 0 &&
            o->mem_planned_bytes != r->mem_planned_bytes)
            return (o->mem_planned_bytes - r->mem_planned_bytes) / (o->ctx - r->ctx);
    }
    return -1;
}

int64_t memory_min_limit(const struct row *r)
{
    const int64_t own = (int64_t)RESERVE_OWN_BYTES, needed = row_needed_bytes(r);
    int64_t planned = 0;

    if (r->mem_planned_bytes > 0)
        planned = r->mem_planned_bytes < INT64_MAX - own ? r->mem_planned_bytes + own
                                                         : INT64_MAX;
    return planned > needed ? planned : needed;
}

static bool is_within(int64_t bytes, int64_t limit)
{
    return bytes > 0 && bytes <= limit;
}

bool memory_fits(const struct row *r, int64_t limit)
{
    return limit <= 0 || is_within(r->mem_limit_bytes, limit) ||
           is_within(r->mem_enforced_bytes, limit) || memory_min_limit(r) <= limit;
}

/* What is left of the limit, as a point needs it to be tried. */
static int64_t room(const struct row *r, int64_t limit)
{
    const int64_t least = memory_min_limit(r);

    return least < limit ? limit - least : 0;
}

void memory_of(struct recommend_memory *m, const struct chooser *c, size_t i)
{
    const struct row *r = c->rows.v[i];
    const int64_t limit = (int64_t)recommend_limit(c, r), per = position_bytes(c, i);
    const int64_t needed = row_needed_bytes(r);

    *m = (struct recommend_memory){
        .limit_bytes = limit, .left_bytes = -1, .max_ctx = -1};
    if (limit <= 0)
        return;
    m->is_lower_bound = needed > 0 && !(r->mem_resident_bytes > 0);
    if (needed > 0)
        m->left_bytes = needed < limit ? limit - needed : 0;
    if (r->residency == WEIGHTS_STREAM)
        return; /* a longer context takes memory from weights, which are then streamed
                 */
    if (per >= 0 && r->ctx >= 0 && r->ctx <= INT_MAX && memory_min_limit(r) > 0) {
        /* 0: every layer has a sliding window, and holds it already */
        const int64_t more = per ? room(r, limit) / per : INT_MAX;

        m->max_ctx = r->ctx + (more < INT_MAX ? more : INT_MAX);
    }
    if (r->model_ctx > 0 && m->max_ctx > r->model_ctx && !(r->kv_window > 0)) {
        m->max_ctx = r->model_ctx;
        m->by_model = true;
    }
}

enum status recommend_take_mem(void *dst, int id, const char *text, const char *what,
                               struct err *err)
{
    return setting_parse((enum setting_id)id, text, what, dst, sizeof(uint64_t), err);
}
