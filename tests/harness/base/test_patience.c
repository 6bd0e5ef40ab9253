/* SPDX-License-Identifier: MIT
 *
 * test_patience.c - which time is silence, and which is a wait for a CPU
 */
#include "tests/support/test.h"

#include "harness/base/patience.h"

#define SECOND UINT64_C(1000000000)

/* Seconds of patience after that many looks, gap_s apart; in each gap the process had
 * that CPU time. */
static double after(int n, double gap_s, bool wants_cpu, double cpu_s)
{
    struct patience p = patience_begin(0);
    double waited_s = 0;

    for (int i = 1; i <= n; i++)
        waited_s = patience_look_at(&p, (uint64_t)(gap_s * i * (double)SECOND),
                                    wants_cpu, cpu_s * i);
    return waited_s;
}

static void who_sleeps_or_spins_is_silent(void **state)
{
    (void)state;
    assert_float_equal(after(100, 0.2, false, 0), 20, 1e-6);
    assert_float_equal(after(100, 0.2, true, 0.2), 20, 1e-6);
    assert_float_equal(after(100, 0.2, true, 0.8), 20, 1e-6); /* by four threads */
    /* woken now and then, by a timer */
    assert_float_equal(after(100, 0.2, false, 0.001), 20, 1e-6);
}

/* The first look has nothing to compare with. */
static void who_waits_for_a_cpu_is_not(void **state)
{
    (void)state;
    assert_float_equal(after(101, 0.2, true, 0.02), 0.2 + 100 * 0.02 + 18 / 10.0, 1e-6);
    assert_float_equal(after(101, 0.2, true, 0), 0.2 + 20 / 10.0, 1e-6);
}

/* Charged to what ran when a virtual machine was stopped, or while nobody looked. */
static void a_stop_is_one_gap(void **state)
{
    struct patience p = patience_begin(0);

    (void)state;
    assert_float_equal(patience_look_at(&p, SECOND / 5, true, 0.2), 0.2, 1e-6);
    assert_float_equal(patience_look_at(&p, 500 * SECOND, true, 499), 1.2, 1e-6);
    assert_float_equal(patience_look(&p, 1000 * SECOND), 2.2, 1e-6);
}

/* A reading that is less than the one before it (a thread's time that is no longer
 * counted) takes nothing of the silence back. */
static void time_never_goes_back(void **state)
{
    struct patience p = patience_begin(0);
    double waited_s;

    (void)state;
    patience_look_at(&p, SECOND, true, 900);
    waited_s = patience_look_at(&p, 2 * SECOND, true, 1);
    assert_float_equal(waited_s, 1 + 1 / 10.0, 1e-6);
    assert_float_equal(patience_look_at(&p, 3 * SECOND, true, 2), 2.1, 1e-6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_sleeps_or_spins_is_silent),
        cmocka_unit_test(who_waits_for_a_cpu_is_not),
        cmocka_unit_test(a_stop_is_one_gap),
        cmocka_unit_test(time_never_goes_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
