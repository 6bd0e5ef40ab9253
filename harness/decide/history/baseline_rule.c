/* SPDX-License-Identifier: MIT
 *
 * baseline_rule.c - prediction intervals from past runs
 */
#include "harness/decide/history/baseline_rule.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "harness/stats/ranktest.h"
#include "harness/stats/stats.h"

#define PI         3.14159265358979323846
#define TRIM_FROM  8     /* fewer values are taken as they are */
#define TRIMMED    6     /* one value in 6 is trimmed, on each side */
#define MIN_SPREAD 0.001 /* no figure of a run means more than this */

/* ---- Student's t ----------------------------------------------------------------- */

/* The sums of Abramowitz and Stegun 1964, 26.7.3 and 26.7.4: finite, as df is whole. */
double student_below(double t, size_t df)
{
    const double angle = atan2(t, sqrt((double)df)), c = cos(angle);
    const bool odd = df % 2;
    double term = odd ? c : 1, sum = df > 1 ? term : 0;

    for (size_t k = odd ? 3 : 2; k < df; k += 2) {
        term *= c * c * (double)(k - 1) / (double)k;
        sum += term;
    }
    const double inside = odd ? 2 / PI * (angle + sin(angle) * sum) : sin(angle) * sum;
    return fmin(1, fmax(0, 0.5 + inside / 2));
}

double student_quantile(double p, size_t df)
{
    double lo = -1e6, hi = 1e6;

    for (int i = 0; i < 100; i++) {
        const double mid = (lo + hi) / 2;

        *(student_below(mid, df) < p ? &lo : &hi) = mid;
    }
    return hi;
}

/* ---- the rule -------------------------------------------------------------------- */

struct past {
    double middle, spread;
    size_t df;
    size_t n;
};

/* v[n] is sorted. */
static struct past summarise(double *v, size_t n)
{
    const size_t cut = n < TRIM_FROM ? 0 : n < 2 * TRIMMED ? 1 : n / TRIMMED;
    const size_t kept = n - 2 * cut;
    double sum = 0, all = 0, squares = 0;

    for (size_t i = cut; i < n - cut; i++)
        sum += v[i];
    for (size_t i = 0; i < cut; i++) {
        v[i] = v[cut];
        v[n - 1 - i] = v[n - 1 - cut];
    }
    for (size_t i = 0; i < n; i++)
        all += v[i];
    for (size_t i = 0; i < n; i++)
        squares += (v[i] - all / (double)n) * (v[i] - all / (double)n);
    const double winsorised = sqrt(squares / (double)(n - 1));
    return (struct past){
        .middle = sum / (double)kept,
        .spread = fmax(MIN_SPREAD, winsorised * (double)n / (double)kept),
        .df = kept - 1,
        .n = n,
    };
}

/* Variance of the median of n values, each of variance 1: for normal ones it is at most
 * pi / 2 / n; more is taken, as the tails of runs are heavier. */
static double median_variance(size_t n)
{
    return n < 3 ? 1 : 1.8 / (double)n;
}

void baseline_judge(struct baseline_effect *e, const double *old, size_t n_old,
                    const double *fresh, size_t n_sessions,
                    const struct gate_rule *rule)
{
    const size_t n = n_old < BASELINE_MAX_RUNS ? n_old : BASELINE_MAX_RUNS;
    double v[BASELINE_MAX_RUNS], scratch[BASELINE_MAX_RUNS];

    assert(n >= BASELINE_MIN_RUNS && n_sessions >= 1 &&
           n_sessions <= BASELINE_MAX_RUNS);
    memcpy(v, old + n_old - n, n * sizeof *v);
    stats_sort(v, n);
    const struct past p = summarise(v, n);
    const double off = stats_median(fresh, n_sessions, scratch) - p.middle;
    const double scale = p.spread * sqrt(median_variance(n_sessions) + 1 / (double)p.n);
    const double t = (off - log1p(-rule->margin)) / scale;
    const double reach = scale * student_quantile(0.975, p.df);
    e->effect = (struct gate_effect){
        .ratio = exp(off),
        .lo = exp(off - reach),
        .hi = exp(off + reach),
        .p_fail = student_below(t, p.df),
        .p_pass = student_below(-t, p.df),
    };
    e->spread = p.spread;
    e->min_margin = -expm1(-scale * student_quantile(1 - rule->alpha_pass, p.df));
}

enum status baseline_decide(enum gate_verdict *verdict, enum gate_verdict *verdicts,
                            const struct gate_rule *rule,
                            const struct baseline_effect *e, const size_t *n_fresh,
                            size_t n, struct err *err)
{
    double p[GATE_MAX_METRICS];
    bool fails = false, passes = n > 0;

    assert(n <= GATE_MAX_METRICS);
    for (size_t i = 0; i < n; i++)
        p[i] = e[i].effect.p_fail;
    if (rank_holm(p, n, err))
        return err->code;
    for (size_t i = 0; i < n; i++) {
        verdicts[i] = p[i] <= rule->alpha_fail && n_fresh[i] >= BASELINE_FRESH
                          ? GATE_FAIL
                      : e[i].effect.p_pass <= rule->alpha_pass ? GATE_PASS
                                                               : GATE_UNCLEAR;
        fails = fails || verdicts[i] == GATE_FAIL;
        passes = passes && verdicts[i] == GATE_PASS;
    }
    *verdict = fails ? GATE_FAIL : passes ? GATE_PASS : GATE_UNCLEAR;
    return ST_OK;
}
