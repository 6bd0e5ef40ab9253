/* SPDX-License-Identifier: MIT
 *
 * gate_fixture.h - results of gates that never were
 */
#ifndef SLM_TESTS_GATE_FIXTURE_H
#define SLM_TESTS_GATE_FIXTURE_H

#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/gate/gate_result.h"
#include "harness/decide/gate/gate_report.h"

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
    assert_int_equal(gate_effect(&m->effect, &m->series, &r->rule, &err), ST_OK);
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

/* What write() writes, as a string. */
static inline const char *text_of(void (*write)(FILE *, const struct gate_result *),
                                  const struct gate_result *r)
{
    static char text[65536];
    FILE *f = fmemopen(text, sizeof text, "w");

    assert_non_null(f);
    write(f, r);
    fclose(f);
    return text;
}

/* Every member set to something, among it what is hard to write. */
static inline struct gate_result *hostile_result(void)
{
    struct gate_result *r = fixture_result();
    struct gate_metric *m;

    r->verdict = GATE_FAIL;
    r->end = GATE_END_INTERIM;
    r->mode = GATE_MODE_AB;
    m = fixture_metric(r, FIXTURE_HOSTILE, 0.93, 0.01, 14);
    m->less_is_better = true;
    assert_int_equal(m->verdict, GATE_FAIL);
    fixture_metric(r, "decode", 1.0 / 3 + 0.67, 0.01, 20);
    m = fixture_metric(r, "load time", 0.98, 0.3, 10);
    assert_int_equal(m->verdict, GATE_UNCLEAR);
    m = fixture_metric(r, "nothing", 0.98, 0.01, 2);
    m->verdict = GATE_OPEN;
    m->a = m->b = m->effect.ratio = m->effect.lo = m->effect.hi = NAN;
    m->series.n_rounds[1] = 0;
    snprintf(r->model, sizeof r->model, "%s", "m|o<d>el\xff\n");
    snprintf(r->settings, sizeof r->settings, "%s", "]]>&amp;");
    snprintf(r->cpu, sizeof r->cpu, "CPU \"x\" @ 2 GHz");
    snprintf(r->side[1].name, sizeof r->side[1].name, "b'; rm -rf $HOME; '");
    r->n_disturbed = 3;
    r->n_again = 7;
    snprintf(r->disturbed, sizeof r->disturbed, "steal 2, throttling 1");
    r->injected = 0.05;
    snprintf(r->given.prefill, sizeof r->given.prefill, "128,512");
    snprintf(r->given.ctx, sizeof r->given.ctx, "none; ls");
    snprintf(r->given.weights, sizeof r->given.weights, "packed");
    return r;
}

/* The result is refused, with a message that has the text, and leaves no trace. */
static inline void fixture_refused(const json_t *object, const char *text)
{
    struct gate_result *r = calloc(1, sizeof *r), zero;
    struct err err = ERR_INIT;

    memset(&zero, 0, sizeof zero);
    assert_int_equal(gate_json_parse(r, object, "that.json", &err), ST_INPUT);
    if (!strstr(err.msg, text) || !strstr(err.msg, "that.json"))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, text);
    assert_memory_equal(r, &zero, sizeof zero);
    free(r);
}

#endif
