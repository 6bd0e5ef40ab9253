/* SPDX-License-Identifier: MIT
 *
 * recommend_speed.c - distributions of speeds, estimates between depths, comparison
 */
#include "harness/judge/recommend/recommend_speed.h"

#include <math.h>
#include <stdlib.h>

#include "engine/base/random.h"
#include "harness/stats/stats.h"

/* Standard deviations from the median of a normal distribution to the ends of a
 * 95 % interval. */
#define Z_95 1.96

/* A probability of one half is off by 0.5 % (standard error), and a regret by 1 % of
 * the spread. */
#define N_DRAWS 10000

/* ---- one row --------------------------------------------------------------------- */

static double spread(double nearer, double farther)
{
    if (!(nearer > 0 && farther > 0))
        return SPEED_UNKNOWN_SPREAD;
    return fmax(0, log(farther / nearer)) / Z_95;
}

struct speed speed_measured(const struct row *r)
{
    return (struct speed){.median = r->tok_per_s,
                          .sigma_lo = spread(r->tok_per_s_lo, r->tok_per_s),
                          .sigma_hi = spread(r->tok_per_s, r->tok_per_s_hi),
                          .from_ctx = -1};
}

double speed_lo(const struct speed *s)
{
    return fmax(s->least, s->median * exp(-Z_95 * s->sigma_lo));
}

double speed_hi(const struct speed *s)
{
    return s->median * exp(Z_95 * s->sigma_hi);
}

double speed_reaches(const struct speed *s, double tok_per_s)
{
    const double d = log(tok_per_s / s->median);
    const double sigma = d < 0 ? s->sigma_lo : s->sigma_hi;

    if (tok_per_s <= s->least || tok_per_s <= 0)
        return 1;
    return sigma > 0 ? erfc(d / sigma * M_SQRT1_2) / 2 : d <= 0;
}

/* ---- from one depth to another --------------------------------------------------- */

/* Paging, streaming and a quota are limits of the setting itself: it does not fit at
 * that depth, and other depths do not show what that costs. */
static bool limits_itself(const struct row *r)
{
    return r->limiter == LIMITER_PAGING || r->limiter == LIMITER_DISK ||
           r->limiter == LIMITER_QUOTA;
}

static bool is_quiet(const struct row *r)
{
    return row_trust(r) == ROW_GOOD && !limits_itself(r);
}

/* The undisturbed row at that depth of the setting and thread count of v[i]. Rows are
 * ordered by depth within them. */
static const struct row *undisturbed_at(const struct report_rows *p, size_t i,
                                        int64_t ctx)
{
    size_t k = i;

    while (k > 0 && report_same_line(p->v[k - 1], p->v[i]))
        k--;
    for (; k < p->n && report_same_line(p->v[k], p->v[i]); k++)
        if (p->v[k]->ctx == ctx && is_quiet(p->v[k]))
            return p->v[k];
    return NULL;
}

/* Whether it is a row of the model and kind of r at that depth, without a limit of its
 * own. */
static bool is_like(const struct row *at, const struct row *r, int64_t ctx)
{
    return at->ctx == ctx && at->kind == r->kind && !limits_itself(at) &&
           !report_compare_models(at, r);
}

/* Median, over settings like that of r, of the speed at depth `to` over the speed at
 * depth `from`; 0: no setting was undisturbed at both. same_kind: only settings that
 * compute the same. */
static double median_share(const struct report_rows *p, const struct row *r,
                           int64_t from, int64_t to, bool same_kind, double *scratch)
{
    size_t n = 0;

    for (size_t k = 0; k < p->n; k++) {
        const struct row *at = p->v[k], *before;

        if (!is_like(at, r, to) || !is_quiet(at) ||
            (same_kind && row_compare(at, r, FIELD_SETTING | FIELD_COMPUTED)))
            continue;
        before = undisturbed_at(p, k, from);
        if (before)
            scratch[n++] = at->tok_per_s / before->tok_per_s;
    }
    return stats_median(scratch, n, scratch);
}

/* For a depth `to` at which all settings were disturbed: the largest such ratio of any
 * other setting, a lower bound; 0: unknown. */
static double min_share(const struct report_rows *p, const struct row *r, int64_t from,
                        int64_t to)
{
    double most = 0;

    for (size_t k = 0; k < p->n; k++) {
        const struct row *at = p->v[k], *before;

        if (!is_like(at, r, to) || row_trust(at) != ROW_DISTURBED ||
            row_above_roof(at) || report_same_line(at, r))
            continue;
        before = undisturbed_at(p, k, from);
        if (before)
            most = fmax(most, at->tok_per_s / before->tok_per_s);
    }
    return most;
}

/* Evidence behind a share; more is better. */
enum grounds { DEPTH_SLOWS, OTHERS_DISTURBED, OTHERS_QUIET };

/* Estimate of the speed of r from its undisturbed row at another depth, and what the
 * estimate is based on; median 0: no estimate. */
static struct speed carry_over(const struct report_rows *p, const struct row *r,
                               const struct row *from, double *scratch,
                               enum grounds *grounds)
{
    struct speed s = speed_measured(from);
    double share = median_share(p, r, from->ctx, r->ctx, true, scratch);

    if (!share)
        share = median_share(p, r, from->ctx, r->ctx, false, scratch);
    *grounds = share ? OTHERS_QUIET : OTHERS_DISTURBED;
    if (!share)
        share = min_share(p, r, from->ctx, r->ctx);
    if (!share)
        *grounds = DEPTH_SLOWS;
    if (*grounds != OTHERS_QUIET && from->ctx > r->ctx)
        share = fmax(share, 1);
    s.median *= share;
    s.sigma_lo = hypot(s.sigma_lo, SPEED_ESTIMATE_SPREAD);
    s.sigma_hi = hypot(s.sigma_hi, SPEED_ESTIMATE_SPREAD);
    s.from_ctx = from->ctx;
    return s;
}

bool speed_estimate(struct speed *speed, const struct report_rows *rows, size_t i,
                    double *scratch)
{
    const struct row *r = rows->v[i];
    struct speed best = {0};
    enum grounds best_grounds = DEPTH_SLOWS, grounds;
    size_t k = i;

    if (limits_itself(r))
        return false;
    while (k > 0 && report_same_line(rows->v[k - 1], r))
        k--;
    for (; k < rows->n && report_same_line(rows->v[k], r); k++) {
        const struct row *from = rows->v[k];

        if (from->ctx == r->ctx || !is_quiet(from))
            continue;
        const struct speed s = carry_over(rows, r, from, scratch, &grounds);
        if (s.median > 0 &&
            (!best.median || grounds > best_grounds ||
             (grounds == best_grounds &&
              llabs(s.from_ctx - r->ctx) < llabs(best.from_ctx - r->ctx)))) {
            best = s;
            best_grounds = grounds;
        }
    }
    if (!best.median)
        return false;
    *speed = best.median > r->tok_per_s ? best : speed_measured(r);
    speed->least = r->tok_per_s_lo > 0 ? r->tok_per_s_lo : r->tok_per_s;
    return true;
}

/* ---- comparison ------------------------------------------------------------------ */

/* Box and Muller 1958, "A note on the generation of random normal deviates". */
static double draw_normal(uint64_t *state)
{
    const double u = ((double)(random_bits(state) >> 11) + 0.5) * 0x1p-53;
    const double v = (double)(random_bits(state) >> 11) * 0x1p-53;

    return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double draw(const struct speed *s, uint64_t *state)
{
    const double z = draw_normal(state);

    return fmax(s->least, s->median * exp(z * (z < 0 ? s->sigma_lo : s->sigma_hi)));
}

static bool takes_part(const struct speed *s)
{
    return s->median > 0 && !s->out;
}

/* One draw of each speed into x[n]; equally fast ones share the credit. Returns the
 * highest speed. */
static double play(struct speed *v, size_t n, double *x, uint64_t *state)
{
    double most = 0;
    int n_max = 0;

    for (size_t i = 0; i < n; i++) {
        x[i] = takes_part(&v[i]) ? draw(&v[i], state) : 0;
        most = fmax(most, x[i]);
    }
    for (size_t i = 0; i < n; i++)
        n_max += x[i] == most;
    for (size_t i = 0; i < n; i++) {
        if (!takes_part(&v[i]))
            continue;
        v[i].p_best += x[i] == most ? 1.0 / n_max : 0;
        v[i].regret += most - x[i];
    }
    return most;
}

enum status speed_compare(struct speed *v, size_t n, struct err *err)
{
    double *x = malloc((n ? n : 1) * sizeof *x), sum = 0;
    uint64_t state = 1;

    if (!x)
        return err_set(err, ST_NO_MEMORY, "no memory to compare %zu settings", n);
    for (size_t i = 0; i < n; i++)
        if (takes_part(&v[i]))
            v[i].p_best = v[i].regret = 0;
    for (int k = 0; k < N_DRAWS; k++)
        sum += play(v, n, x, &state);
    for (size_t i = 0; i < n && sum > 0; i++)
        if (takes_part(&v[i])) {
            v[i].p_best /= N_DRAWS;
            v[i].regret /= sum;
        }
    free(x);
    return ST_OK;
}
