/* SPDX-License-Identifier: MIT
 *
 * recommend_memory.c - what a setting leaves of the memory limit, and for how much
 * context
 */
#include "harness/report/recommend_choice.h"

#include <limits.h>

#include "harness/machine/memory_reserve.h"

/* What the plan said of two depths of one setting gives what a position needs, in rows
 * without the column. 0: not known. */
static int64_t position_bytes(const struct chooser *c, size_t i)
{
    const struct row *r = c->rows.v[i];
    size_t k = i;

    if (r->kv_bytes_per_token > 0)
        return r->kv_bytes_per_token;
    while (k > 0 && report_same_line(c->rows.v[k - 1], r))
        k--;
    for (; k < c->rows.n && report_same_line(c->rows.v[k], r); k++) {
        const struct row *o = c->rows.v[k];

        if (o->ctx >= 0 && r->ctx >= 0 && o->ctx != r->ctx &&
            o->mem_planned_bytes > 0 && r->mem_planned_bytes > 0)
            return (o->mem_planned_bytes - r->mem_planned_bytes) / (o->ctx - r->ctx);
    }
    return 0;
}

/* What is left of the limit by the larger of what was charged and, as a point needs it
 * to be tried, what was planned. */
static int64_t room(const struct row *r, int64_t limit)
{
    const int64_t own = (int64_t)RESERVE_OWN_BYTES;
    int64_t left = limit;

    if (r->mem_peak_bytes > 0)
        left = r->mem_peak_bytes < limit ? limit - r->mem_peak_bytes : 0;
    if (r->mem_planned_bytes > 0 && r->mem_planned_bytes > limit - own)
        return 0;
    if (r->mem_planned_bytes > 0 && limit - own - r->mem_planned_bytes < left)
        left = limit - own - r->mem_planned_bytes;
    return left;
}

void memory_of(struct recommend_memory *m, const struct chooser *c, size_t i)
{
    const struct row *r = c->rows.v[i];
    const int64_t limit = (int64_t)recommend_limit(c, r), per = position_bytes(c, i);

    *m = (struct recommend_memory){
        .limit_bytes = limit, .left_bytes = -1, .max_ctx = -1};
    if (limit <= 0)
        return;
    if (r->mem_peak_bytes > 0 && r->mem_peak_bytes <= limit)
        m->left_bytes = limit - r->mem_peak_bytes;
    if (per > 0 && r->ctx >= 0 && r->ctx <= INT_MAX &&
        (r->mem_peak_bytes > 0 || r->mem_planned_bytes > 0)) {
        const int64_t more = room(r, limit) / per;

        m->max_ctx = r->ctx + (more < INT_MAX ? more : INT_MAX);
    }
    if (r->model_ctx > 0 && m->max_ctx > r->model_ctx && r->ctx <= r->model_ctx) {
        m->max_ctx = r->model_ctx;
        m->by_model = true;
    }
}
