/* SPDX-License-Identifier: MIT
 *
 * users_choice.c - the server for a number of users, under limits of one's own
 */
#include <math.h>
#include <string.h>

#include "harness/base/format.h"
#include "harness/judge/users/users.h"

/* ---- other limits ---------------------------------------------------------------- */

/* A failed request has no times; an answer of one token has no time per token. */
static void judge(struct row *r, const struct launch_samples *requests,
                  const struct slo *slo)
{
    size_t n_both = 0;

    r->n_requests = (int64_t)requests->n;
    r->n_ttft_met = r->n_tpot_met = 0;
    for (size_t i = 0; i < requests->n; i++) {
        const double *cells = &requests->ms[i * REQUEST_CELLS];
        const double ttft = cells[REQUEST_TTFT_S], tpot = cells[REQUEST_TPOT_MS];
        const double visible = cells[REQUEST_VISIBLE_S];
        const bool first =
            (isnan(visible) ? ttft : visible) <= slo->ttft_s; /* not of a NaN */
        const bool each = isfinite(tpot) ? tpot <= slo->tpot_ms : isfinite(ttft);

        r->n_ttft_met += first;
        r->n_tpot_met += each;
        n_both += first && each;
    }
    r->slo_met_pct =
        requests->n ? 100.0 * (double)n_both / (double)requests->n : (double)NAN;
    r->slo_verdict =
        (int)slo_judge_both((size_t)r->n_ttft_met, (size_t)r->n_tpot_met, requests->n);
}

void users_set_slo(struct row *rows, size_t *n_rows, const struct samples *requests,
                   const struct slo *slo)
{
    size_t n = 0;

    for (size_t i = 0; i < *n_rows; i++) {
        struct row *r = &rows[i];
        const bool is_other = r->kind == ROW_LOAD && strcmp(r->slo, slo->name) != 0;
        const struct launch_samples *own = is_other ? samples_of(requests, r) : NULL;

        if (is_other && !own)
            continue;
        if (own) {
            judge(r, own, slo);
            snprintf(r->slo, sizeof r->slo, "%s", slo->name);
        }
        if (n != i)
            rows[n] = *r;
        n++;
    }
    *n_rows = n;
}

/* ---- the choice ------------------------------------------------------------------ */

const struct users_level *users_level_at(const struct users_series *s, int n_users)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->level[i].n_users == n_users && s->level[i].tok_per_s.v > 0)
            return &s->level[i];
    return NULL;
}

const struct users_level *users_level_for(const struct users_series *s, int n_users)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->level[i].n_users >= n_users && s->level[i].n_users <= s->carries &&
            s->level[i].verdict == SLO_MEETS)
            return &s->level[i];
    return NULL;
}

const struct users_series *users_choose(const struct users *u, int n_users)
{
    const struct users_series *best = NULL;

    for (size_t i = 0; i < u->n; i++)
        if (users_level_for(&u->v[i], n_users) &&
            (!best || users_is_better(&u->v[i], best)))
            best = &u->v[i];
    return best;
}

static void append_setting(const struct users_series *s, char *buf, size_t cap)
{
    const struct row *r = s->first;

    text_append(buf, cap, "%s", s->name);
    if (r->n_threads > 0)
        text_append(buf, cap, " (%s, %lld thread%s)", r->model, (long long)r->n_threads,
                    plural(r->n_threads, "s"));
    else
        text_append(buf, cap, " (%s)", r->model);
}

static void append_chosen(const struct users_series *s, int n_users, char *buf,
                          size_t cap)
{
    const struct users_level *at = users_level_for(s, n_users);

    text_append(buf, cap, "%d %s: take ", n_users, slo_users(&s->slo, n_users));
    append_setting(s, buf, cap);
    users_append_times(at, ", ", " and ", buf, cap);
    if (at->n_users != n_users)
        text_append(buf, cap, " with %d", at->n_users);
    text_append(buf, cap, "%s.", at->is_doubtful ? ", disturbed" : "");
    if (s->carries > at->n_users)
        text_append(buf, cap, " It serves %d%s.", s->carries,
                    s->misses ? "" : ", the largest number tried");
}

static void append_others(const struct users *u, const struct users_series *chosen,
                          int n_users, char *buf, size_t cap)
{
    const char *begin = " Enough, too: ";

    for (size_t i = 0; i < u->n; i++)
        if (&u->v[i] != chosen && users_level_for(&u->v[i], n_users)) {
            text_append(buf, cap, "%s%s (%d)", begin, u->v[i].name, u->v[i].carries);
            begin = ", ";
        }
    text_append(buf, cap, *begin == ',' ? "." : "");
    begin = " Not: ";
    for (size_t i = 0; i < u->n; i++)
        if (!users_level_for(&u->v[i], n_users)) {
            text_append(buf, cap, "%s%s (%d)", begin, u->v[i].name, u->v[i].carries);
            begin = ", ";
        }
    text_append(buf, cap, *begin == ',' ? "." : "");
}

/* Whether n_users may turn out to be carried. */
static bool is_open(const struct users_series *s, int n_users)
{
    return !s->misses || s->misses > n_users;
}

/* No measured one does: what is not known yet, or what would help. */
static void append_none(const struct users *u, int n_users, char *buf, size_t cap)
{
    const char *begin = ". Undecided for this number: ";

    text_append(buf, cap, "no measured server is sure to serve %d %s: ", n_users,
                slo_users(&u->v[0].slo, n_users));
    for (size_t i = 0; i < u->n; i++)
        text_append(buf, cap, i ? ", %s %d" : "%s serves %d", u->v[i].name,
                    u->v[i].carries);
    for (size_t i = 0; i < u->n; i++)
        if (is_open(&u->v[i], n_users)) {
            text_append(buf, cap, "%s%s", begin, u->v[i].name);
            begin = ", ";
        }
    if (*begin == ',')
        text_append(buf, cap, "; measure with `bench load --users %d`", n_users);
    else
        text_append(buf, cap,
                    "; a smaller model, fewer bits per weight or more CPUs "
                    "may, and `bench load` measures them");
}

void users_append_choice(const struct users *u, int n_users, char *buf, size_t cap)
{
    const struct users_series *chosen = users_choose(u, n_users);

    buf[0] = '\0';
    if (!u->n)
        return;
    if (chosen) {
        append_chosen(chosen, n_users, buf, cap);
        append_others(u, chosen, n_users, buf, cap);
    } else {
        append_none(u, n_users, buf, cap);
    }
}
