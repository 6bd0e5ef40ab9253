/* SPDX-License-Identifier: MIT
 *
 * gate_fixture.h - results of gates that never were
 */
#ifndef SLM_TESTS_GATE_FIXTURE_H
#define SLM_TESTS_GATE_FIXTURE_H

#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/gate/gate_result.h"

/* A name that ends or begins something in each form that it is written in. */
#define FIXTURE_HOSTILE "a]]>b::%0A\"<&|`'\n::error::x,y:*_\x01\x1b[31m\xff@me<b>"

/* n_launches of two rounds, around a ratio. */
static inline void fixture_series(struct gate_metric *m, double ratio, double sigma,
                                  size_t n_launches, uint64_t seed)
{
    m->series.n_launches = n_launches;
    for (size_t l = 0; l < n_launches; l++) {
        const double offset = sigma * (double)test_random_float(&seed);

        m->series.n_rounds[l] = l % 7 == 6 ? 1 : 2;
        for (size_t k = 0; k < m->series.n_rounds[l]; k++)
            m->series.v[l][k] =
                log(ratio) + offset + sigma * (double)test_random_float(&seed);
        m->n_rounds += m->series.n_rounds[l];
    }
    m->n_launches = n_launches;
}

/* One more metric, of tok/s; its verdict follows from the figures. */
static inline struct gate_metric *fixture_metric(struct gate_result *r,
                                                 const char *name, double ratio,
                                                 double sigma, size_t n_launches)
{
    struct gate_metric *m = &r->metric[r->n_metrics++];
    struct err err = ERR_INIT;

    memset(m, 0, sizeof *m);
    snprintf(m->name, sizeof m->name, "%s", name);
    snprintf(m->unit, sizeof m->unit, "tok/s");
    m->margin = r->rule.margin;
    m->a = 12.5;
    m->b = 12.5 * ratio;
    fixture_series(m, ratio, sigma, n_launches, r->n_metrics);
    assert_int_equal(gate_effect(&m->effect, &m->series, &r->rule, &err),
                     ST_OK);
    m->verdict = m->effect.p_fail < 0.001  ? GATE_FAIL
                 : m->effect.p_pass < 0.01 ? GATE_PASS
                                           : GATE_UNCLEAR;
    return m;
}

/* A gate without metrics yet. */
static inline struct gate_result *fixture_result(void)
{
    struct gate_result *r = calloc(1, sizeof *r);

    assert_non_null(r);
    r->rule = gate_rule_default();
    r->verdict = GATE_PASS;
    snprintf(r->side[0].name, sizeof r->side[0].name, "old/bench");
    snprintf(r->side[1].name, sizeof r->side[1].name, "new/bench");
    snprintf(r->side[0].commit, sizeof r->side[0].commit, "0123456");
    snprintf(r->side[1].commit, sizeof r->side[1].commit, "89abcde");
    snprintf(r->side[0].compiler, sizeof r->side[0].compiler, "GNU 12.2.0");
    snprintf(r->cpu, sizeof r->cpu, "Some CPU of 2 cores");
    snprintf(r->model, sizeof r->model, "tinyllama-1.1b:Q4_K_M");
    snprintf(r->when, sizeof r->when, "2026-01-15T10:15:00Z");
    r->n_launches = 14;
    r->n_rounds = 28;
    r->n_interim = 2;
    r->seconds = 61.5;
    r->budget_s = 600;
    return r;
}

static inline void fixture_free(struct gate_result *r)
{
    free(r);
}

#endif
