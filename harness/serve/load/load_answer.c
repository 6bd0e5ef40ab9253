/* SPDX-License-Identifier: MIT
 *
 * load_answer.c - all levels together: how many users meet the limits
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/array.h"
#include "harness/serve/load/load.h"

void load_answer_free(struct load_answer *a)
{
    free(a->level);
    a->level = NULL;
    a->n_levels = a->cap = 0;
}

struct load_level *load_answer_add(struct load_answer *a)
{
    struct load_level *more = array_grow(a->level, a->n_levels, &a->cap, sizeof *more);

    if (!more)
        return NULL;
    a->level = more;
    memset(&a->level[a->n_levels], 0, sizeof a->level[0]);
    return &a->level[a->n_levels++];
}

void load_answer_series(const struct load_answer *a, struct users_series *out)
{
    *out = (struct users_series){.n = 0};
    for (size_t i = 0; i < a->n_levels; i++) {
        const struct load_level *level = &a->level[i];
        struct users_level *u =
            level->n_users ? users_level_make(out, level->n_users) : NULL;

        if (!u)
            continue;
        u->row = &level->row;
        u->n_requests += level->n;
        u->n_ttft_met += level->n_ttft_met;
        u->n_tpot_met += level->n_tpot_met;
        u->verdict = u->n_rows++
                         ? slo_judge_both(u->n_ttft_met, u->n_tpot_met, u->n_requests)
                         : level->verdict;
    }
    users_find_ends(out);
}

void load_answer_find(struct load_answer *a)
{
    struct users_series series;

    load_answer_series(a, &series);
    a->carries = series.carries;
    a->misses = series.misses;
    a->undecided = series.undecided;
    a->rate = 0;
    a->best = -1;
    for (size_t i = 0; i < a->n_levels; i++) {
        const struct load_level *level = &a->level[i];

        if (level->n_users && level->n_users == a->carries)
            a->rate = level->row.req_per_s;
        if (level->n_users && isfinite(level->row.tok_per_s) &&
            (a->best < 0 || level->row.tok_per_s > a->level[a->best].row.tok_per_s))
            a->best = (int)i;
    }
}

enum status load_answer_join(struct load_answer *a, const struct load_answer *b,
                             struct err *err)
{
    enum status st = ST_OK;

    for (size_t i = 0; i < b->n_levels && st == ST_OK; i++) {
        struct load_level *level = load_answer_add(a);

        if (level)
            *level = b->level[i];
        else
            st = err_set(err, ST_NO_MEMORY, "no memory for a load level");
    }
    a->by_ladder |= b->by_ladder;
    load_answer_find(a);
    return st;
}

static bool is_tried(const struct load_answer *a, int n_users)
{
    for (size_t i = 0; i < a->n_levels; i++)
        if (a->level[i].n_users == n_users)
            return true;
    return false;
}

int load_answer_next(const struct load_answer *a)
{
    int begin = 0, longest = 0, at = 0;

    for (int n = a->carries + 1; n <= a->misses; n++) {
        if (n < a->misses && !is_tried(a, n)) {
            begin = begin ? begin : n;
            if (n - begin + 1 > longest) {
                longest = n - begin + 1;
                at = (begin + n) / 2;
            }
        } else {
            begin = 0;
        }
    }
    return at;
}
