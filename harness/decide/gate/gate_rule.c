/* SPDX-License-Identifier: MIT
 *
 * gate_rule.c - sign flips about the margin, interim analyses, Holm
 */
#include "harness/decide/gate/gate_rule.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "harness/stats/ranktest.h"
#include "harness/stats/stats.h"

/* So that the first interim analysis can reach its share of alpha: 2^-10 < 0.01 / 7.
 * Numbers grow by 1.4, so a gate that could have ended continues for two fifths of
 * its length at most. */
static const size_t interim[] = {10, 14, 20, 28, 40, 56, GATE_MAX_LAUNCHES};

#define N_INTERIM (sizeof interim / sizeof interim[0])

struct gate_rule gate_rule_default(void)
{
    return (struct gate_rule){
        .margin = 0.02, .alpha_fail = 0.01, .alpha_pass = 0.05, .n_interim = N_INTERIM};
}

size_t gate_n_interim(size_t max_launches)
{
    size_t n = 1;

    while (n < N_INTERIM && interim[n - 1] < max_launches)
        n++;
    return n;
}

size_t gate_interim_at(size_t i, size_t n_interim)
{
    return i + 1 < n_interim ? interim[i] : i + 1 == n_interim ? GATE_MAX_LAUNCHES : 0;
}

double gate_middle(const double *v, size_t n)
{
    double sorted[GATE_MAX_ROUNDS], sum = 0;
    const size_t cut = n / 4;

    assert(n >= 1 && n <= GATE_MAX_ROUNDS);
    memcpy(sorted, v, n * sizeof *v);
    stats_sort(sorted, n);
    for (size_t i = cut; i < n - cut; i++)
        sum += sorted[i];
    return sum / (double)(n - 2 * cut);
}

/* Into v[], how many. */
static size_t launch_values(const struct gate_series *s, double *v)
{
    size_t n = 0;

    for (size_t i = 0; i < s->n_launches; i++)
        if (s->n_rounds[i])
            v[n++] = gate_middle(s->v[i], s->n_rounds[i]);
    return n;
}

void gate_test(const struct gate_series *s, const struct gate_rule *rule,
               double *p_fail, double *p_pass)
{
    const double lost = log1p(-rule->margin);
    double v[GATE_MAX_LAUNCHES];
    const size_t n = launch_values(s, v);

    for (size_t i = 0; i < n; i++)
        v[i] -= lost;
    rank_signs(v, n, p_pass, p_fail);
}

/* ---- the effect ------------------------------------------------------------------ */

enum status gate_effect(struct gate_effect *e, const struct gate_series *s,
                        const struct gate_rule *rule, struct err *err)
{
    double v[GATE_MAX_LAUNCHES];
    const size_t n = launch_values(s, v);
    struct rank_middle middle;

    assert(n > 0);
    const enum status st = rank_middle(&middle, v, n, err);
    if (st)
        return st;
    e->ratio = exp(middle.middle);
    e->lo = exp(middle.lo);
    e->hi = exp(middle.hi);
    gate_test(s, rule, &e->p_fail, &e->p_pass);
    return ST_OK;
}

/* ---- the verdict ----------------------------------------------------------------- */

enum status gate_decide(enum gate_verdict *verdict, const struct gate_rule *rule,
                        const double *p_fail, const double *p_pass, size_t n,
                        bool *failed, struct err *err)
{
    double p[GATE_MAX_METRICS];
    bool fails = false, passes = true;

    assert(n >= 1 && n <= GATE_MAX_METRICS);
    memcpy(p, p_fail, n * sizeof *p);
    const enum status st = rank_holm(p, n, err);
    if (st)
        return st;
    for (size_t i = 0; i < n; i++) {
        const bool this_fails = p[i] <= rule->alpha_fail / (double)rule->n_interim;

        fails = fails || this_fails;
        passes = passes && p_pass[i] <= rule->alpha_pass / (double)rule->n_interim;
        if (failed)
            failed[i] = this_fails;
    }
    *verdict = fails ? GATE_FAIL : passes ? GATE_PASS : GATE_OPEN;
    return ST_OK;
}

enum status gate_judge(enum gate_verdict *verdict, const struct gate_rule *rule,
                       const double *margin, const struct gate_series *const *s,
                       size_t n, bool *failed, struct err *err)
{
    double p_fail[GATE_MAX_METRICS], p_pass[GATE_MAX_METRICS];

    for (size_t i = 0; i < n; i++) {
        struct gate_rule own = *rule;

        if (margin)
            own.margin = margin[i];
        gate_test(s[i], &own, &p_fail[i], &p_pass[i]);
    }
    return gate_decide(verdict, rule, p_fail, p_pass, n, failed, err);
}
