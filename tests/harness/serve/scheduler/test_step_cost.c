/* SPDX-License-Identifier: MIT
 *
 * test_step_cost.c - predictions of steps whose times are known
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/serve/scheduler/step_cost.h"

/* Weights are read once, until arithmetic takes longer. */
static double true_s(double work)
{
    const double memory = 0.05, arithmetic = 0.004 * work;

    return 0.002 + (memory > arithmetic ? memory : arithmetic);
}

static double random_work(uint64_t *random)
{
    return exp(log(700) * (0.5 + 0.5 * (double)test_random_float(random)));
}

static void nothing_is_known(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    assert_true(!(step_cost_s(&c, 10) > 0));
    assert_true(step_cost_within(&c, 0.1, 512) >= 512);
}

static void one_step_is_known(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    step_cost_add(&c, 8, 0.1);
    /* less work: as long at most; more: in proportion at most */
    assert_float_equal(step_cost_s(&c, 2), 0.1, 1e-9);
    assert_float_equal(step_cost_s(&c, 80), 1.0, 1e-9);
    assert_float_equal(step_cost_within(&c, 0.2, 512), 16, 0.6);
    assert_true(!(step_cost_within(&c, 0.05, 512) > 0));
}

/* One of ten steps is delayed a lot: the rest is predicted nevertheless. */
static void delays_do_not_matter(void **state)
{
    struct step_cost c = {.n_steps = 0};
    uint64_t random = 5;

    (void)state;
    for (int i = 0; i < 2000; i++) {
        const double work = random_work(&random);
        const double noise = 1 + 0.03 * (double)test_random_float(&random);
        const double delay = test_random(&random) % 10 ? 0 : 3.0;

        step_cost_add(&c, work, true_s(work) * noise + delay);
    }
    for (double work = 2; work < 600; work *= 1.3) {
        const double off = step_cost_s(&c, work) / true_s(work);

        if (!(off > 0.75 && off < 1.35))
            fail_msg("%g tokens: predicted %g times the truth", work, off);
    }
    for (double limit = 0.1; limit < 2; limit *= 1.5) {
        const double took = true_s(step_cost_within(&c, limit, 2000));

        if (!(took > 0.7 * limit && took < 1.3 * limit))
            fail_msg("a step within %g s takes %g", limit, took);
    }
}

/* From single tokens on, chunks grow until they take what they may. */
static void chunks_grow_to_the_limit(void **state)
{
    struct step_cost c = {.n_steps = 0};
    double chunk = 1;

    (void)state;
    for (int i = 0; i < 40; i++) {
        step_cost_add(&c, chunk, true_s(chunk));
        chunk = step_cost_within(&c, 0.8, 512);
        assert_true(true_s(chunk) < 1.1 * 0.8);
    }
    assert_true(true_s(chunk) > 0.75 * 0.8);
}

/* What was slow for a while is tried again. */
static void a_slow_time_passes(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    for (int i = 0; i < 20; i++) {
        step_cost_add(&c, 4, true_s(4));
        step_cost_add(&c, 100, 10 * true_s(100));
    }
    assert_true(step_cost_within(&c, 0.5, 512) < 20);
    for (int i = 0; i < 2000; i++) {
        const double chunk = step_cost_within(&c, 0.5, 512);

        step_cost_add(&c, chunk, true_s(chunk));
    }
    assert_true(step_cost_within(&c, 0.5, 512) > 80);
}

/* Steps that take up to twice as long as others of the same work, so that a median is
 * exceeded by half of them: nevertheless most keep the limit, and chunks are not much
 * smaller than they must be. */
static void most_steps_keep_the_limit(void **state)
{
    const double spreads[] = {0, 0.02, 0.1, 0.25};
    const double limits[] = {0.1, 0.2, 0.4, 0.8};
    uint64_t random = 7;

    (void)state;
    for (size_t k = 0; k < 16; k++) {
        const double spread = spreads[k / 4], limit = limits[k % 4];
        struct step_cost c = {.n_steps = 0};
        double chunk = 1, sum = 0;
        int n_over = 0;

        for (int i = 0; i < 2000; i++) {
            double noise = 0, took;

            for (int j = 0; j < 12; j++) /* as good as a normal distribution */
                noise += (double)test_random_float(&random) / 2;
            took = true_s(chunk) * exp(spread * noise);
            step_cost_add_limited(&c, chunk, took);
            n_over += i >= 200 && took > limit;
            sum += i >= 200 ? chunk : 0;
            chunk = step_cost_within(&c, step_cost_aim_s(&c, limit), 2000);
            chunk = chunk > 1 ? chunk : 1;
        }
        if (n_over > 1800 / 10)
            fail_msg("spread %g, limit %g: %d of 1800 steps took longer", spread, limit,
                     n_over);
        /* twice the margin that 19 of 20 steps need */
        if (!(true_s(sum / 1800) > 0.85 * limit * exp(-2 * 1.65 * spread)))
            fail_msg("spread %g, limit %g: chunks of %g on average", spread, limit,
                     sum / 1800);
    }
}

/* What disturbs a while is not remembered for ever; nor do prompts stand still. */
static void a_disturbed_time_passes(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    assert_float_equal(step_cost_aim_s(&c, 1), 0.9, 1e-9);
    for (int i = 0; i < 200; i++)
        step_cost_add_limited(&c, 20, i % 4 ? true_s(20) : 9 * true_s(20));
    assert_float_equal(step_cost_aim_s(&c, 1), 0.5, 1e-9);
    for (int i = 0; i < STEP_COST_RATIOS; i++)
        step_cost_add_limited(&c, 20, true_s(20));
    assert_float_equal(step_cost_aim_s(&c, 1), 1, 1e-9);
    /* steps without a limit say nothing of those with one */
    for (int i = 0; i < 200; i++)
        step_cost_add(&c, 20, i % 4 ? true_s(20) : 9 * true_s(20));
    assert_float_equal(step_cost_aim_s(&c, 1), 1, 1e-9);
}

/* Tokens take more the deeper they are; as many fit as their work says. */
static void deep_tokens_cost_more(void **state)
{
    const double costs[] = {0, 1e-5, 1e-3, 0.1};

    (void)state;
    for (int i = 0; i < 4; i++)
        for (int depth = 0; depth < 5000; depth += 700)
            for (int n = 1; n < 3000; n = n * 2 + 1) {
                const double work = step_cost_work(costs[i], n, depth);
                double sum = 0;

                for (int k = 0; k < n; k++)
                    sum += 1 + costs[i] * (depth + k + 0.5);
                assert_true(fabs(work - sum) < 1e-9 * sum);
                assert_int_equal(step_cost_tokens(costs[i], work * (1 + 1e-9), depth),
                                 n);
                assert_int_equal(step_cost_tokens(costs[i], work * (1 - 1e-6), depth),
                                 n - 1);
            }
    assert_int_equal(step_cost_tokens(0.1, 0, 50), 0);
    assert_int_equal(step_cost_tokens(0.1, -1e9, 50), 0);
}

/* An even number of times has the median between the two in the middle, but for two,
 * which have the shorter; an odd one has the middle one. The last seven count. */
static void medians(void **state)
{
    const double times[] = {0.1, 0.3, 0.7, 0.5, 9, 9, 9, 9, 0.2};
    const double expected[] = {0.1, 0.1, 0.3, 0.4, 0.5, 0.6, 0.7, 9, 9};
    struct step_cost c = {.n_steps = 0};

    (void)state;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        step_cost_add(&c, 8, times[i]);
        if (fabs(step_cost_s(&c, 8) - expected[i]) > 1e-9)
            fail_msg("of %zu times the median is not %g: %g", i + 1, expected[i],
                     step_cost_s(&c, 8));
    }
}

/* A class is known until as many steps have been taken without it. */
static void forgotten_in_time(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    step_cost_add(&c, 100, 1);
    for (int i = 0; i < STEP_COST_EXPIRES - 1; i++)
        step_cost_add(&c, 4, 0.01);
    assert_true(fabs(step_cost_s(&c, 100) - 1) < 1e-9);
    step_cost_add(&c, 4, 0.01);
    assert_true(fabs(step_cost_s(&c, 100) - 0.25) < 1e-9); /* in proportion */

    /* what was timed on purpose stays */
    step_cost_add_timed(&c, 2, 0.004);
    for (int i = 0; i < 2 * STEP_COST_EXPIRES; i++)
        step_cost_add(&c, 4, 0.01);
    assert_float_equal(step_cost_s(&c, 2), 0.004, 1e-9);
}

/* A single time that was delayed does not decide, nor do old ones. */
static void fresh_times(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    step_cost_add_timed(&c, 4, 0.01);
    step_cost_add(&c, 4, 3);
    assert_float_equal(step_cost_s(&c, 4), 0.01, 1e-9);
    assert_false(step_cost_is_fresh(&c, 4));
    step_cost_add(&c, 4, 0.01);
    assert_true(step_cost_is_fresh(&c, 4));
    assert_false(step_cost_is_fresh(&c, 5));
    for (int i = 0; i < STEP_COST_FRESH; i++)
        step_cost_add(&c, 5, 0.02);
    assert_false(step_cost_is_fresh(&c, 4));
    assert_true(step_cost_is_fresh(&c, 5));
}

/* Where a few steps are thrice as long, the usual time hardly differs from that of the
 * others; each small number of tokens is a class of its own. */
static void usual_times(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    for (int i = 0; i < 3000; i++) {
        const int n = 1 + i % STEP_COST_SINGLE;
        const double s = 1 + (n - 1) / 4 * 1.0;

        step_cost_add(&c, n, i % 50 == 7 ? 3 * s : s);
    }
    for (int n = 1; n < STEP_COST_SINGLE; n++) {
        const double s = 1 + (n - 1) / 4 * 1.0;

        assert_float_equal(step_cost_s(&c, n), s, 1e-9);
        if (!(step_cost_usual_s(&c, n) > 0.999 * s &&
              step_cost_usual_s(&c, n) < 1.04 * s))
            fail_msg("%d tokens: usually %g", n, step_cost_usual_s(&c, n));
    }
}

/* Works beyond all classes are of the first and of the last one. */
static void no_work_is_outside(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    step_cost_add(&c, 0.25, 0.1);
    step_cost_add(&c, 1e12, 5);
    assert_int_equal(c.classes[0].n, 1);
    assert_int_equal(c.classes[STEP_COST_CLASSES - 1].n, 1);
    assert_true(fabs(step_cost_s(&c, 1e12) - 5) < 1e-9);
}

/* A first step has no prediction to be compared with; and steps that are faster than
 * predicted do not raise the limit. */
static void faster_than_predicted(void **state)
{
    struct step_cost c = {.n_steps = 0};

    (void)state;
    step_cost_add_limited(&c, 10, 1);
    assert_int_equal(c.n_ratios, 0);
    for (int i = 0; i < 40; i++)
        step_cost_add_limited(&c, 10, pow(0.9, i));
    assert_int_equal(c.n_ratios, 40);
    assert_true(fabs(step_cost_aim_s(&c, 1) - 1) < 1e-9);
}

/* More work is never predicted to take less, whatever was measured. */
static void more_takes_longer(void **state)
{
    uint64_t random = 9;

    (void)state;
    for (int round = 0; round < 200; round++) {
        struct step_cost c = {.n_steps = 0};
        double before = 0;

        for (int i = 0; i < 30; i++)
            step_cost_add(&c, random_work(&random),
                          0.5 + 0.5 * (double)test_random_float(&random));
        for (double work = 1; work < 2000; work *= 1.1) {
            const double s = step_cost_s(&c, work);

            assert_true(s >= before * (1 - 1e-9));
            before = s;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_known),
        cmocka_unit_test(one_step_is_known),
        cmocka_unit_test(delays_do_not_matter),
        cmocka_unit_test(chunks_grow_to_the_limit),
        cmocka_unit_test(a_slow_time_passes),
        cmocka_unit_test(medians),
        cmocka_unit_test(forgotten_in_time),
        cmocka_unit_test(no_work_is_outside),
        cmocka_unit_test(fresh_times),
        cmocka_unit_test(usual_times),
        cmocka_unit_test(faster_than_predicted),
        cmocka_unit_test(more_takes_longer),
        cmocka_unit_test(deep_tokens_cost_more),
        cmocka_unit_test(most_steps_keep_the_limit),
        cmocka_unit_test(a_disturbed_time_passes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
