/* SPDX-License-Identifier: MIT
 *
 * test_gate_rule.c - the gate's decision, by hand where that is possible
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/gate/gate_rule.h"
#include "harness/stats/ranktest.h"

static void interim_analyses_ascend_and_the_first_can_fail(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    const size_t n = rule.n_interim;
    const double share = rule.alpha_fail / (double)n;

    (void)state;
    assert_true(ldexp(1, -(int)gate_interim_at(0, n)) <= share);
    for (size_t i = 1; i < n; i++)
        assert_true(gate_interim_at(i, n) > gate_interim_at(i - 1, n));
    assert_int_equal(gate_interim_at(n - 1, n), GATE_MAX_LAUNCHES);
    assert_int_equal(gate_interim_at(n, n), 0);
    /* a gate of few launches has fewer interim analyses, the last of them its end */
    assert_int_equal(gate_n_interim(GATE_MAX_LAUNCHES), n);
    assert_int_equal(gate_n_interim(1), 1);
    assert_int_equal(gate_n_interim(10), 1);
    assert_int_equal(gate_n_interim(11), 2);
    assert_int_equal(gate_n_interim(22), 4);
    assert_int_equal(gate_interim_at(2, 4), 20);
    assert_int_equal(gate_interim_at(3, 4), GATE_MAX_LAUNCHES);
}

/* The figures of docs/gate.md. */
static void the_default_rule_is_the_published_one(void **state)
{
    static const size_t at[] = {10, 14, 20, 28, 40, 56, 80};
    const struct gate_rule rule = gate_rule_default();

    (void)state;
    assert_true(rule.margin == 0.02);
    assert_true(rule.alpha_fail == 0.01);
    assert_true(rule.alpha_pass == 0.05);
    assert_int_equal(rule.n_interim, 7);
    for (size_t i = 0; i < 7; i++) {
        assert_int_equal(gate_interim_at(i, 7), at[i]);
        assert_int_equal(gate_n_interim(at[i]), i + 1);
        assert_int_equal(gate_n_interim(at[i] + 1), i < 6 ? i + 2 : 7);
    }
    assert_int_equal(gate_interim_at(0, 1), GATE_MAX_LAUNCHES);
}

/* n launches of two rounds each, of which one is a hair faster. */
static void fill(struct gate_series *s, size_t n, double log_ratio)
{
    s->n_launches = n;
    for (size_t i = 0; i < n; i++) {
        s->n_rounds[i] = 2;
        s->v[i][0] = log_ratio + 1e-5 * (double)i;
        s->v[i][1] = log_ratio - 1e-5 * (double)i + 1e-6 * (double)i;
    }
}

static void one_sign_gives_the_least_probability(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    struct gate_series s;
    double p_fail, p_pass;

    (void)state;
    fill(&s, 10, log(0.95));
    gate_test(&s, &rule, &p_fail, &p_pass);
    assert_true(fabs(p_fail - 0x1p-10) < 1e-12);
    assert_true(fabs(p_pass - 1) < 1e-12);
    fill(&s, 10, log(0.99)); /* slower, but within the margin */
    gate_test(&s, &rule, &p_fail, &p_pass);
    assert_true(fabs(p_fail - 1) < 1e-12);
    assert_true(fabs(p_pass - 0x1p-10) < 1e-12);
    s.n_rounds[3] = 0; /* all of a launch was disturbed */
    gate_test(&s, &rule, &p_fail, &p_pass);
    assert_true(fabs(p_pass - 0x1p-9) < 1e-12);
}

static void a_disturbed_round_does_not_spoil_its_launch(void **state)
{
    const double v[8] = {3, -900, 4, 5, 6, 1000, 7, 1};

    (void)state;
    assert_true(gate_middle(v, 1) == 3);
    assert_true(gate_middle(v + 2, 2) == 4.5);
    assert_true(fabs(gate_middle(v + 2, 3) - 5) < 1e-12);
    assert_true(gate_middle(v + 3, 4) == 6.5); /* of 5 6 7 1000 */
    assert_true(gate_middle(v, 8) == 4.5);     /* of 3 4 5 6 */
}

static void an_effect_has_its_interval(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    struct gate_series s;
    struct gate_effect e;
    struct err err = ERR_INIT;
    uint64_t seed = 5;
    int n_inside = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        s.n_launches = 20;
        for (size_t l = 0; l < 20; l++) {
            const double offset = 0.02 * (double)test_random_float(&seed);

            s.n_rounds[l] = 3;
            for (int r = 0; r < 3; r++)
                s.v[l][r] =
                    log(0.97) + offset + 0.01 * (double)test_random_float(&seed);
        }
        assert_int_equal(gate_effect(&e, &s, &rule, &err), ST_OK);
        assert_true(e.lo <= e.ratio && e.ratio <= e.hi);
        assert_true(fabs(e.ratio - 0.97) < 0.02);
        n_inside += e.lo <= 0.97 && 0.97 <= e.hi;
    }
    assert_in_range(n_inside, 178, 199);
}

/* What passed has its margin outside its interval, however its rounds scatter. */
static void verdict_and_interval_agree(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    struct gate_series s;
    struct gate_effect e;
    struct err err = ERR_INIT;
    uint64_t seed = 7;
    int n_passed = 0;

    (void)state;
    for (int i = 0; i < 200; i++) {
        s.n_launches = 10;
        for (size_t l = 0; l < 10; l++) {
            const double middle = 0.05 + 0.06 * (double)test_random_float(&seed);

            s.n_rounds[l] = 4;
            for (int r = 0; r < 4; r++)
                s.v[l][r] = middle + 0.3 * (double)test_random_float(&seed);
        }
        assert_int_equal(gate_effect(&e, &s, &rule, &err), ST_OK);
        if (e.p_pass > rule.alpha_pass / (double)rule.n_interim)
            continue;
        n_passed++;
        assert_true(e.lo > 1 - rule.margin);
    }
    assert_in_range(n_passed, 5, 195);
}

static void few_launches_have_no_interval(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    struct gate_series s = {.n_launches = 0};
    struct gate_effect e;
    struct err err = ERR_INIT;

    (void)state;
    while (s.n_launches < RANK_MIN_INTERVAL) {
        s.n_rounds[s.n_launches] = 4;
        for (int r = 0; r < 4; r++)
            s.v[s.n_launches][r] = 0.01 * r;
        s.n_launches++;
        assert_int_equal(gate_effect(&e, &s, &rule, &err), ST_OK);
        assert_true(isfinite(e.ratio));
        assert_int_equal(isfinite(e.lo) != 0, s.n_launches == RANK_MIN_INTERVAL);
        assert_int_equal(isfinite(e.hi) != 0, s.n_launches == RANK_MIN_INTERVAL);
    }
}

static void metrics_share_an_interim_analysis(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    const double least = rule.alpha_fail / (double)rule.n_interim;
    const double pass = rule.alpha_pass / (double)rule.n_interim / 2;
    const double fail[3] = {0.9, least / 2, 1}, all[3] = {pass, pass, pass};
    const double two[3] = {pass, 0.5, pass};
    enum gate_verdict verdict;
    struct err err = ERR_INIT;
    bool failed[3];

    (void)state;
    assert_int_equal(gate_decide(&verdict, &rule, fail + 1, all, 1, failed, &err),
                     ST_OK);
    assert_int_equal(verdict, GATE_FAIL);
    assert_true(failed[0]);
    /* A third of the level is not enough for a half of it. */
    gate_decide(&verdict, &rule, fail, two, 3, failed, &err);
    assert_int_equal(verdict, GATE_OPEN);
    assert_false(failed[1]);
    gate_decide(&verdict, &rule, fail, all, 3, failed, &err);
    assert_int_equal(verdict, GATE_PASS);
}

/* A probability that is just the level counts, on both sides. */
static void the_level_itself_is_enough(void **state)
{
    const struct gate_rule rule = {
        .margin = 0.02, .alpha_fail = 0x1p-6, .alpha_pass = 0x1p-4, .n_interim = 4};
    const double at[] = {0x1p-8, 0x1p-6}, above[] = {0x1.1p-8, 0x1.1p-6}, one = 1;
    enum gate_verdict verdict = GATE_UNCLEAR;
    struct err err = ERR_INIT;

    (void)state;
    gate_decide(&verdict, &rule, &at[0], &one, 1, NULL, &err);
    assert_int_equal(verdict, GATE_FAIL);
    gate_decide(&verdict, &rule, &above[0], &one, 1, NULL, &err);
    assert_int_equal(verdict, GATE_OPEN);
    gate_decide(&verdict, &rule, &one, &at[1], 1, NULL, &err);
    assert_int_equal(verdict, GATE_PASS);
    gate_decide(&verdict, &rule, &one, &above[1], 1, NULL, &err);
    assert_int_equal(verdict, GATE_OPEN);
}

/* One metric of three is enough to fail, and it is the one that is marked. */
static void the_metric_that_failed_is_marked(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    const double p_fail[3] = {1, 1e-6, 0.5}, p_pass[3] = {1e-6, 1, 1e-6};
    enum gate_verdict verdict = GATE_UNCLEAR;
    struct err err = ERR_INIT;
    bool failed[3] = {true, false, true};

    (void)state;
    assert_int_equal(gate_decide(&verdict, &rule, p_fail, p_pass, 3, failed, &err),
                     ST_OK);
    assert_int_equal(verdict, GATE_FAIL);
    assert_true(!failed[0] && failed[1] && !failed[2]);
}

static void each_series_has_its_margin(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    static struct gate_series slower, equal;
    const struct gate_series *const s[] = {&equal, &slower};
    const double wide[] = {0.02, 0.1}, swapped[] = {0.1, 0.02};
    enum gate_verdict verdict = GATE_UNCLEAR;
    struct err err = ERR_INIT;
    bool failed[2];

    (void)state;
    fill(&slower, 20, log(0.95));
    fill(&equal, 20, 0);
    assert_int_equal(gate_judge(&verdict, &rule, NULL, s, 2, failed, &err), ST_OK);
    assert_int_equal(verdict, GATE_FAIL);
    assert_true(!failed[0] && failed[1]);
    assert_int_equal(gate_judge(&verdict, &rule, wide, s, 2, failed, &err), ST_OK);
    assert_int_equal(verdict, GATE_PASS);
    assert_true(!failed[0] && !failed[1]);
    assert_int_equal(gate_judge(&verdict, &rule, swapped, s, 2, failed, &err), ST_OK);
    assert_int_equal(verdict, GATE_FAIL);
    assert_true(!failed[0] && failed[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(interim_analyses_ascend_and_the_first_can_fail),
        cmocka_unit_test(the_default_rule_is_the_published_one),
        cmocka_unit_test(one_sign_gives_the_least_probability),
        cmocka_unit_test(a_disturbed_round_does_not_spoil_its_launch),
        cmocka_unit_test(an_effect_has_its_interval),
        cmocka_unit_test(verdict_and_interval_agree),
        cmocka_unit_test(few_launches_have_no_interval),
        cmocka_unit_test(metrics_share_an_interim_analysis),
        cmocka_unit_test(the_level_itself_is_enough),
        cmocka_unit_test(the_metric_that_failed_is_marked),
        cmocka_unit_test(each_series_has_its_margin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
