/* SPDX-License-Identifier: MIT
 *
 * users_pairs.c - two servers in the same rounds
 */
#include <math.h>

#include "harness/stats/stats.h"
#include "harness/judge/users/users.h"

static bool has_figure(const struct row *r, bool undisturbed)
{
    return undisturbed ? row_trust(r) == ROW_GOOD : row_trust(r) != ROW_FAILED;
}

/* Rows of older versions have no round: each of their launches is one. */
static int64_t round_of(const struct row *r)
{
    return r->round == FIELD_NO_INT ? r->attempt : r->round;
}

/* The last row of that series, number of users and round: the second of two tries. */
static const struct row *find_row(const struct users *u, const struct users_series *s,
                                  int n_users, int64_t round)
{
    for (size_t i = u->n_rows; i > 0; i--) {
        const struct row *r = &u->rows[i - 1];

        if (r->n_users == n_users && round_of(r) == round && users_is_of(s, r))
            return r;
    }
    return NULL;
}

/* Logarithms of the ratio, one for each round. */
static size_t ratios(double *out, const struct users *u, const struct users_series *a,
                     const struct users_series *b, int n_users, bool undisturbed)
{
    size_t n = 0;

    for (int64_t round = 1; round <= USERS_MAX_ROUNDS; round++) {
        const struct row *x = find_row(u, a, n_users, round);
        const struct row *y = x ? find_row(u, b, n_users, round) : NULL;

        if (y && has_figure(x, undisturbed) && has_figure(y, undisturbed))
            out[n++] = log(x->tok_per_s / y->tok_per_s);
    }
    return n;
}

void users_compare(struct users_pair *p, const struct users *u,
                   const struct users_series *a, const struct users_series *b,
                   int n_users)
{
    double v[USERS_MAX_ROUNDS], mean = 0, squares = 0;
    size_t n = ratios(v, u, a, b, n_users, true);

    *p = (struct users_pair){.n_users = n_users, .ratio = NAN, .lo = NAN, .hi = NAN};
    if (n < 2) {
        const size_t n_good = n;

        n = ratios(v, u, a, b, n_users, false);
        p->is_doubtful = n > n_good;
    }
    p->n = n;
    if (!n)
        return;
    for (size_t i = 0; i < n; i++)
        mean += v[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - mean) * (v[i] - mean);
    p->ratio = exp(mean);
    if (n < 2)
        return;
    const double half =
        stats_t_quantile((double)n - 1) * sqrt(squares / (double)(n - 1) / (double)n);

    p->lo = exp(mean - half);
    p->hi = exp(mean + half);
}

int users_compare_at(const struct users_series *a, const struct users_series *b)
{
    int carried = 0, any = 0;

    for (size_t i = 0; i < a->n; i++) {
        const int n = a->level[i].n_users;

        if (!users_level_at(b, n))
            continue;
        any = n > any ? n : any;
        if (n > carried && (n <= a->carries || n <= b->carries))
            carried = n;
    }
    return carried ? carried : any;
}
