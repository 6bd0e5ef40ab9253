/* SPDX-License-Identifier: MIT
 *
 * test_gate_resample.c - gates drawn from recorded launches: equal builds do not fail,
 * and the smallest slowdown that is seen follows the noise
 */
#include "tests/support/test.h"

#include <math.h>
#include <stdlib.h>

#include "harness/decide/gate/gate_rule.h"

#define N_GATES 400

/* Sum of twelve: close to a normal one of deviation 1. */
static double bell(uint64_t *seed)
{
    double sum = 0;

    for (int i = 0; i < 12; i++)
        sum += (double)(test_random(seed) >> 11) * 0x1p-53;
    return sum - 6;
}

/* Two metrics of 40 launches of 4 rounds; what is common to a launch is sigma. */
static struct gate_record *some_record(double sigma, double offset)
{
    struct gate_record *record = calloc(1, sizeof *record);
    uint64_t seed = 11;

    assert_non_null(record);
    record->rule = gate_rule_default();
    record->n_metrics = 2;
    for (size_t m = 0; m < 2; m++) {
        record->margin[m] = m ? 0.1 : 0.02;
        record->series[m].n_launches = 40;
        for (size_t l = 0; l < 40; l++) {
            const double own = offset + sigma * bell(&seed);

            record->series[m].n_rounds[l] = 4;
            for (size_t r = 0; r < 4; r++)
                record->series[m].v[l][r] = own + sigma / 4 * bell(&seed);
        }
    }
    return record;
}

static void equal_builds_do_not_fail(void **state)
{
    struct gate_chances c;
    struct err err = ERR_INIT;

    (void)state;
    for (int i = 0; i < 3; i++) {
        /* a record that happens to lie off 0 is no slowdown */
        struct gate_record *record = some_record(0.01 * (i + 1), i == 2 ? 0.03 : 0);

        assert_int_equal(
            gate_resample(&c, record, N_GATES, 40, GATE_NO_METRIC, 0, 3, &err), ST_OK);
        assert_in_range(c.n_failed, 0, N_GATES / 100);
        assert_int_equal(c.n_gates, N_GATES);
        assert_true(c.launches >= 10 && c.launches <= 40);
        if (i == 0)
            assert_in_range(c.n_passed, N_GATES * 95 / 100, N_GATES);
        free(record);
    }
}

static void large_slowdowns_fail_and_small_ones_pass(void **state)
{
    struct gate_record *record = some_record(0.005, 0);
    struct gate_chances c;
    struct err err = ERR_INIT;

    (void)state;
    gate_resample(&c, record, N_GATES, 40, 0, 0.05, 3, &err);
    assert_in_range(c.n_failed, N_GATES * 99 / 100, N_GATES);
    gate_resample(&c, record, N_GATES, 40, 0, 0.005, 3, &err);
    assert_in_range(c.n_passed, N_GATES * 95 / 100, N_GATES);
    /* the other metric has a margin of its own */
    gate_resample(&c, record, N_GATES, 40, 1, 0.05, 3, &err);
    assert_int_equal(c.n_failed, 0);
    gate_resample(&c, record, N_GATES, 40, 1, 0.15, 3, &err);
    assert_in_range(c.n_failed, N_GATES * 99 / 100, N_GATES);
    free(record);
}

static double least(const struct gate_record *record, size_t most, size_t metric)
{
    struct err err = ERR_INIT;
    double slowdown = -1;

    assert_int_equal(gate_resample_min_slowdown(&slowdown, record, N_GATES, most,
                                                metric, 0.95, 3, &err),
                     ST_OK);
    return slowdown;
}

static void what_is_seen_follows_noise_and_launches(void **state)
{
    struct gate_record *quiet = some_record(0.005, 0), *loud = some_record(0.02, 0);
    struct gate_chances c;
    struct err err = ERR_INIT;
    double seen;

    (void)state;
    seen = least(quiet, 40, 0);
    assert_true(seen > 0.02 && seen < 0.03);
    assert_true(least(quiet, 14, 0) >= seen);
    assert_true(least(loud, 40, 0) > seen);
    assert_true(least(quiet, 40, 1) > 0.1);
    /* it is seen so often as was asked for, and a little less is not */
    gate_resample(&c, quiet, N_GATES, 40, 0, seen, 3, &err);
    assert_true(c.n_failed >= N_GATES * 95 / 100);
    gate_resample(&c, quiet, N_GATES, 40, 0, seen - 0.002, 3, &err);
    assert_true(c.n_failed < N_GATES * 95 / 100);
    /* seven launches cannot fail with two metrics, 2^-7 being above the level of their
       one interim analysis; eight can */
    assert_true(isnan(least(quiet, 7, 0)));
    assert_true(least(quiet, 8, 0) > 0.02);
    free(quiet);
    free(loud);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_builds_do_not_fail),
        cmocka_unit_test(large_slowdowns_fail_and_small_ones_pass),
        cmocka_unit_test(what_is_seen_follows_noise_and_launches),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
