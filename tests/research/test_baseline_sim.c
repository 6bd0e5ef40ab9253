/* SPDX-License-Identifier: MIT
 *
 * test_baseline_sim.c - comparisons with invented histories: false positives, and what
 * is found
 */
#include "tests/support/test.h"

#include "research/baseline_sim.h"

/* 400 gates each; bounds that an honest repetition with another seed stays within. */
static void few_fail_falsely_and_slow_ones_are_found(void **state)
{
    struct err err = ERR_INIT;

    (void)state;
    for (int k = 0; k <= HISTORY_N_NOISES; k++) {
        struct sim_baseline b = {.noise = (enum history_noise)(k % HISTORY_N_NOISES),
                                 .sessions = k == HISTORY_N_NOISES,
                                 .sigma = 0.01,
                                 .n_past = 20};
        struct sim_verdicts v;

        assert_int_equal(sim_baseline_run(&v, &b, 400, 11, &err), ST_OK);
        assert_int_equal(v.n, 400);
        assert_true(v.n_fail <= 8);
        b.slowdown = 0.02;
        assert_int_equal(sim_baseline_run(&v, &b, 400, 12, &err), ST_OK);
        assert_true(v.n_fail <= 10 && v.n_pass <= 30);
        b.slowdown = 0.05;
        assert_int_equal(sim_baseline_run(&v, &b, 400, 12, &err), ST_OK);
        const size_t one_session = v.n_fail;
        b.apart = true;
        assert_int_equal(sim_baseline_run(&v, &b, 400, 12, &err), ST_OK);
        assert_true(v.n_fail > one_session && v.n_pass <= 2);
        b.slowdown = 0.1;
        assert_int_equal(sim_baseline_run(&v, &b, 400, 13, &err), ST_OK);
        assert_true(v.n_fail >= 360 && v.n_pass <= 1);
    }
}

/* Machines that were recorded under load: it may find nothing there, but has few false
 * positives. */
static void few_fail_falsely_on_recorded_machines(void **state)
{
    static const char *const names[] = {"xeon-building", "xeon-hog", "xeon-memory"};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < 3; i++)
        for (int apart = 0; apart < 2; apart++) {
            struct gate_trace trace;
            struct sim_baseline b = {
                .trace = &trace, .n_past = 20, .apart = apart != 0};
            struct sim_verdicts v;
            char path[512];

            snprintf(path, sizeof path, SLM_SOURCE_DIR "/research/traces/%s.txt",
                     names[i]);
            assert_int_equal(gate_trace_read(&trace, path, &err), ST_OK);
            assert_int_equal(sim_baseline_run(&v, &b, 400, 21, &err), ST_OK);
            assert_int_equal(v.n, 400);
            assert_true(v.n_fail <= 8);
            b.slowdown = 0.5; /* even so much is hard to see, but never passes */
            assert_int_equal(sim_baseline_run(&v, &b, 400, 22, &err), ST_OK);
            assert_true(v.n_pass <= 8);
            gate_trace_free(&trace);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_fail_falsely_and_slow_ones_are_found),
        cmocka_unit_test(few_fail_falsely_on_recorded_machines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
