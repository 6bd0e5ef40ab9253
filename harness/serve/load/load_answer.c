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

/* A number of users may have a level in each of several rounds: then all its requests
 * decide. */
static enum row_slo_verdict verdict_of(const struct load_answer *a, int n_users)
{
    enum row_slo_verdict only = SLO_UNDECIDED;
    size_t n_levels = 0, n = 0, n_ttft_met = 0, n_tpot_met = 0;

    for (size_t i = 0; i < a->n_levels; i++) {
        const struct load_level *level = &a->level[i];

        if (level->n_users != n_users)
            continue;
        only = level->verdict;
        n_levels++;
        n += level->n;
        n_ttft_met += level->n_ttft_met;
        n_tpot_met += level->n_tpot_met;
    }
    return n_levels == 1 ? only : slo_judge_both(n_ttft_met, n_tpot_met, n);
}

/* The most users that meet the SLO with none below them that does not, the fewest that
 * miss it. */
static void find_ends(struct load_answer *a)
{
    a->carries = a->misses = 0;
    for (size_t i = 0; i < a->n_levels; i++) {
        const int n = a->level[i].n_users;

        if (n && (!a->misses || n < a->misses) && verdict_of(a, n) == SLO_MISSES)
            a->misses = n;
    }
    for (size_t i = 0; i < a->n_levels; i++) {
        const int n = a->level[i].n_users;

        if (n > a->carries && (!a->misses || n < a->misses) &&
            verdict_of(a, n) == SLO_MEETS)
            a->carries = n;
    }
}

void load_answer_find(struct load_answer *a)
{
    a->undecided = false;
    a->rate = 0;
    a->best = -1;
    find_ends(a);
    for (size_t i = 0; i < a->n_levels; i++) {
        const struct load_level *level = &a->level[i];
        const int n = level->n_users;

        if (!n)
            continue;
        a->undecided |= n > a->carries && (!a->misses || n < a->misses) &&
                        verdict_of(a, n) == SLO_UNDECIDED;
        if (n == a->carries)
            a->rate = level->row.req_per_s;
        if (isfinite(level->row.tok_per_s) &&
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
