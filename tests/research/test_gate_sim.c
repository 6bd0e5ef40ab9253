/* SPDX-License-Identifier: MIT
 *
 * test_gate_sim.c - how often the gate's decision errs on invented machines, beside the
 * rules of other tools
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/decide/gate/gate_rule.h"
#include "research/gate_sim.h"
#include "research/gate_trace.h"

#define N_GATES 300
#define SIGMA   0.02

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

        snprintf(path, sizeof path, SLM_SOURCE_DIR "/research/traces/xeon-%s.txt",
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
    g.max_launches = 9; /* not even one interim analysis */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_builds_do_not_fail),
        cmocka_unit_test(recorded_machines_do_not_fail_equal_builds),
        cmocka_unit_test(at_the_margin_few_fail),
        cmocka_unit_test(five_percent_are_seen),
        cmocka_unit_test(a_small_budget_stays_unclear),
        cmocka_unit_test(other_rules_are_what_they_claim),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
