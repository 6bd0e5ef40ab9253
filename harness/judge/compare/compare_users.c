/* SPDX-License-Identifier: MIT
 *
 * compare_users.c - what the servers of several machines carry, by rows of bench load
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/judge/compare/compare.h"
#include "harness/judge/users/users.h"
#include "harness/rows/report_rows.h"

/* The most users that all were measured with; 0: no such number. */
static int common_users(const struct users *u)
{
    int most = 0;

    for (size_t i = 0; i < u->v[0].n; i++) {
        const int n = u->v[0].level[i].n_users;
        bool all = n > most;

        for (size_t k = 0; k < u->n; k++)
            all &= users_level_at(&u->v[k], n) != NULL;
        most = all ? n : most;
    }
    return most;
}

/* "slm on a, 4 users: 112 tok/s [108, 117] (p90 TTFT 1.1 s, 52 ms a token)". */
static void describe(char *buf, size_t cap, const struct users *u, size_t i,
                     int n_users)
{
    const struct users_series *s = &u->v[i];
    const struct row *r = s->first;
    const struct users_level *t = users_level_at(s, n_users);
    bool is_alike = true;

    if (!t)
        t = &s->level[s->n - 1];
    for (size_t k = 0; k < u->n; k++)
        is_alike &= users_same_requests(r, u->v[k].first);
    buf[0] = '\0';
    text_append(buf, cap, "%s", s->name);
    if (!is_alike)
        text_append(buf, cap, ", prompts %s, answers %s tokens, %s%slimits %s",
                    r->prompt_lengths, r->output_lengths, r->sessions,
                    *r->sessions ? ", " : "", r->slo);
    text_append(buf, cap, ", %d user%s: %.3g tok/s", t->n_users,
                plural(t->n_users, "s"), t->tok_per_s.v);
    if (isfinite(t->tok_per_s.lo) && isfinite(t->tok_per_s.hi))
        text_append(buf, cap, " [%.3g, %.3g]", t->tok_per_s.lo, t->tok_per_s.hi);
    if (users_append_times(t, " (", ", ", buf, cap))
        text_append(buf, cap, ")");
    text_append(buf, cap, t->is_doubtful ? ", disturbed." : ".");
}

static bool is_wanted(const struct row *r, const struct compare_params *p)
{
    return r->kind == ROW_LOAD && (!p->engine || !strcmp(r->engine, p->engine)) &&
           (!p->wishes.model || !strcmp(report_model_name(r).text, p->wishes.model) ||
            !strcmp(r->model, p->wishes.model));
}

enum status compare_users(struct comparison *c, const struct result_part *parts,
                          size_t n, const struct compare_params *p, struct err *err)
{
    size_t n_rows = 0;
    struct row *rows;
    struct users u;
    enum status st;

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < parts[i].n; k++)
            n_rows += is_wanted(&parts[i].rows[k], p);
    rows = malloc((n_rows + 1) * sizeof *rows);
    if (!rows)
        return err_set(err, ST_NO_MEMORY, "no memory for %zu rows", n_rows);
    n_rows = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < parts[i].n; k++)
            if (is_wanted(&parts[i].rows[k], p)) {
                rows[n_rows] = parts[i].rows[k];
                if (n > 1)
                    users_name_machine(&rows[n_rows], parts[i].name);
                n_rows++;
            }
    st = users_find(&u, rows, n_rows, err);
    if (st == ST_OK && u.n) {
        users_answer(&u, c->users, sizeof c->users);
        for (size_t i = 0; i < u.n && c->n_serves < COMPARE_MAX_NOTES; i++)
            describe(c->serves[c->n_serves++], sizeof *c->serves, &u, i,
                     common_users(&u));
    }
    users_free(&u);
    free(rows);
    return st;
}
