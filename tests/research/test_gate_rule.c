/* SPDX-License-Identifier: MIT
 *
 * test_gate_rule.c - the gate's decision: by hand where that is possible, and how often
 * it errs on invented machines, beside the rules of other tools
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/base/stats.h"
#include "harness/gate/gate_rule.h"
#include "research/gate_sim.h"
#include "research/gate_trace.h"

#define N_GATES 300
#define SIGMA   0.02

static void looks_ascend_and_the_first_can_fail(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    const size_t n = rule.n_looks;
    const double share = rule.alpha_fail / (double)n;

    (void)state;
    assert_true(ldexp(1, -(int)gate_look(0, n)) <= share);
    for (size_t i = 1; i < n; i++)
        assert_true(gate_look(i, n) > gate_look(i - 1, n));
    assert_int_equal(gate_look(n - 1, n), GATE_MAX_LAUNCHES);
    assert_int_equal(gate_look(n, n), 0);
    /* a gate of few launches has fewer looks, the last of them its end */
    assert_int_equal(gate_n_looks(GATE_MAX_LAUNCHES), n);
    assert_int_equal(gate_n_looks(1), 1);
    assert_int_equal(gate_n_looks(10), 1);
    assert_int_equal(gate_n_looks(11), 2);
    assert_int_equal(gate_n_looks(22), 4);
    assert_int_equal(gate_look(2, 4), 20);
    assert_int_equal(gate_look(3, 4), GATE_MAX_LAUNCHES);
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
        assert_int_equal(gate_effect(&e, &s, &rule, 400, (uint64_t)i, &err), ST_OK);
        assert_true(e.lo <= e.ratio && e.ratio <= e.hi);
        assert_true(fabs(e.ratio - 0.97) < 0.02);
        n_inside += e.lo <= 0.97 && 0.97 <= e.hi;
    }
    assert_in_range(n_inside, 178, 199);
}

static void metrics_share_a_look(void **state)
{
    const struct gate_rule rule = gate_rule_default();
    const double least = rule.alpha_fail / (double)rule.n_looks;
    const double pass = rule.alpha_pass / (double)rule.n_looks / 2;
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

/* Of N_GATES: verdicts[], and the mean length. */
static double play(const struct sim_gate *g, enum sim_noise noise,
                   const struct sim_trace *trace, size_t verdicts[4])
{
    size_t total = 0;

    memset(verdicts, 0, 4 * sizeof *verdicts);
    for (uint64_t i = 0; i < N_GATES; i++) {
        struct err err = ERR_INIT;
        enum gate_verdict verdict;
        size_t n;

        assert_int_equal(
            sim_gate_play(&verdict, &n, g, noise, SIGMA, trace, 1000 * i + 7, &err),
            ST_OK);
        verdicts[verdict]++;
        total += n;
    }
    return (double)total / N_GATES;
}

/* Turns that wander, with a few long ones. */
static void make_trace(double *log_time, size_t n)
{
    uint64_t seed = 99;

    for (size_t i = 0; i < n; i++) {
        log_time[i] = 0.03 * sin((double)i / 9) + 0.01 * test_random_float(&seed);
        if (test_random(&seed) % 30 == 0)
            log_time[i] += 0.5;
    }
}

static void equal_builds_do_not_fail(void **state)
{
    double log_time[200];
    const struct sim_trace trace = {log_time, 200};
    struct sim_gate g = {gate_rule_default(), 3, 2, GATE_MAX_LAUNCHES, 0};
    size_t verdicts[4];

    (void)state;
    make_trace(log_time, 200);
    for (int noise = 0; noise < SIM_N_NOISES; noise++) {
        const double length = play(&g, (enum sim_noise)noise, &trace, verdicts);

        assert_int_equal(verdicts[GATE_OPEN], 0);
        assert_int_equal(verdicts[GATE_FAIL], 0);
        assert_true(verdicts[GATE_PASS] >= N_GATES * 9 / 10);
        assert_true(length < 50);
    }
}

/* Machines with several programs running; that they decide less often is no error. */
static void recorded_machines_do_not_fail_equal_builds(void **state)
{
    static const char *const names[] = {"building", "hog", "memory"};
    const struct sim_gate equal = {gate_rule_default(), 1, 4, GATE_MAX_LAUNCHES, 0};
    const struct sim_gate slow = {gate_rule_default(), 1, 4, GATE_MAX_LAUNCHES, 0.1};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct err err = ERR_INIT;
        struct gate_trace t;
        size_t verdicts[4];
        char path[512];

        snprintf(path, sizeof path, SLM_SOURCE_DIR "/configs/traces/xeon-%s.txt",
                 names[i]);
        assert_int_equal(gate_trace_read(&t, path, &err), ST_OK);
        const struct sim_trace trace = {t.log_time, t.n};
        play(&equal, SIM_TRACE, &trace, verdicts);
        assert_true(verdicts[GATE_FAIL] <= N_GATES / 100);
        assert_true(verdicts[GATE_PASS] >= N_GATES / 2);
        play(&slow, SIM_TRACE, &trace, verdicts);
        assert_true(verdicts[GATE_FAIL] >= N_GATES * 95 / 100);
        gate_trace_free(&t);
    }
}

/* The hardest case: a B that loses just the margin may fail once in a hundred. */
static void at_the_margin_few_fail(void **state)
{
    struct sim_gate g = {gate_rule_default(), 1, 2, GATE_MAX_LAUNCHES, 0.02};
    size_t verdicts[4];

    (void)state;
    play(&g, SIM_GAUSSIAN, NULL, verdicts);
    assert_true(verdicts[GATE_FAIL] <= 9); /* more: p < 0.003 if the rate were 1 % */
    assert_true(verdicts[GATE_PASS] <= 30);
}

static void five_percent_are_seen(void **state)
{
    struct sim_gate g = {gate_rule_default(), 2, 2, GATE_MAX_LAUNCHES, 0.05};
    size_t verdicts[4];

    (void)state;
    for (int noise = 0; noise < SIM_TRACE; noise++) {
        play(&g, (enum sim_noise)noise, NULL, verdicts);
        assert_true(verdicts[GATE_FAIL] >= N_GATES * 95 / 100);
        assert_int_equal(verdicts[GATE_PASS], 0);
    }
}

static void a_small_budget_stays_unclear(void **state)
{
    struct sim_gate g = {gate_rule_default(), 1, 1, 10, 0.02};
    size_t verdicts[4];

    (void)state;
    play(&g, SIM_BURSTS, NULL, verdicts);
    assert_true(verdicts[GATE_UNCLEAR] >= N_GATES * 9 / 10);
    g.most_launches = 9; /* not even one look */
    play(&g, SIM_GAUSSIAN, NULL, verdicts);
    assert_int_equal(verdicts[GATE_UNCLEAR], N_GATES);
}

static int alarms(enum rival rival, enum sim_noise noise, double slowdown)
{
    int n = 0;

    for (uint64_t i = 0; i < N_GATES; i++)
        n += sim_rival_play(rival, 28, slowdown, noise, SIGMA, NULL, 1000 * i + 7);
    return n;
}

/* Each of them does what its documentation says: on independent turns it errs as often
 * as it means to, and what it knows nothing of misleads it. */
static void other_rules_are_what_they_claim(void **state)
{
    (void)state;
    assert_int_equal(alarms(RIVAL_ACTION, SIM_BURSTS, 0.1), 0);
    for (int r = RIVAL_T_TEST; r < RIVAL_N; r++) {
        assert_true(alarms((enum rival)r, SIM_GAUSSIAN, 0) <= N_GATES * 5 / 100);
        assert_true(alarms((enum rival)r, SIM_GAUSSIAN, 0.05) >= N_GATES * 98 / 100);
        assert_true(alarms((enum rival)r, SIM_DRIFT, 0) >= N_GATES / 4);
    }
    assert_true(alarms(RIVAL_ACTION, SIM_GAUSSIAN, 0.6) == N_GATES);
    /* 2 % apart is 4.5 deviations of the difference of means of 28 and of 28. */
    assert_int_equal(alarms(RIVAL_PLAIN, SIM_GAUSSIAN, 0), 0);
    assert_true(alarms(RIVAL_PLAIN, SIM_AR1, 0) >= N_GATES / 10);
    assert_int_equal(alarms(RIVAL_PLAIN, SIM_GAUSSIAN, 0.05), N_GATES);
}

static void bounds_are_clopper_and_pearsons(void **state)
{
    (void)state;
    assert_true(fabs(stats_binomial_upper(0, 300) - (1 - pow(0.05, 1.0 / 300))) < 1e-9);
    assert_true(fabs(stats_binomial_upper(1, 10) - 0.394163) < 1e-5);
    assert_true(stats_binomial_upper(10, 10) == 1);
    assert_true(fabs(stats_binomial_upper(5000, 10000) - 0.508273) < 1e-5);
    assert_true(fabs(stats_binomial_upper(9999, 10000) - 0.9999948707) < 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looks_ascend_and_the_first_can_fail),
        cmocka_unit_test(one_sign_gives_the_least_probability),
        cmocka_unit_test(a_disturbed_round_does_not_spoil_its_launch),
        cmocka_unit_test(an_effect_has_its_interval),
        cmocka_unit_test(metrics_share_a_look),
        cmocka_unit_test(equal_builds_do_not_fail),
        cmocka_unit_test(recorded_machines_do_not_fail_equal_builds),
        cmocka_unit_test(at_the_margin_few_fail),
        cmocka_unit_test(five_percent_are_seen),
        cmocka_unit_test(a_small_budget_stays_unclear),
        cmocka_unit_test(other_rules_are_what_they_claim),
        cmocka_unit_test(bounds_are_clopper_and_pearsons),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
