/* SPDX-License-Identifier: MIT
 *
 * test_prefetch_rule.c - the choice of a prefetch from invented times
 */
#include "tests/support/test.h"

#include <math.h>
#include <string.h>

#include "engine/base/random.h"
#include "engine/forward/prefetch_rule.h"

enum { N = 5 };

typedef double times[PREFETCH_MAX_ROUNDS][PREFETCH_MAX_CANDIDATES];

/* About normal, of standard deviation 1: twelve uniform values. */
static double noise(uint64_t *random)
{
    double sum = -6;

    for (int i = 0; i < 12; i++)
        sum += (double)(random_bits(random) >> 11) * 0x1p-53;
    return sum;
}

static void invent(times t, size_t n_rounds, const double *speed, double deviation,
                   uint64_t seed)
{
    for (size_t i = 0; i < n_rounds; i++)
        for (int c = 0; c < N; c++)
            t[i][c] = exp(deviation * noise(&seed)) / speed[c];
}

static void equals_stay(void **state)
{
    static const double speed[N] = {1, 1, 1, 1, 1};
    int n_changed = 0;
    times t;

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        invent(t, 24, speed, 0.05, seed);
        n_changed += prefetch_choose(24, N, t) != 0;
    }
    assert_true(n_changed <= 10);
    invent(t, PREFETCH_MAX_ROUNDS, speed, 0, 1); /* to the last bit */
    assert_int_equal(prefetch_choose(PREFETCH_MAX_ROUNDS, N, t), 0);
}

static void a_clear_winner_is_taken(void **state)
{
    static const double speed[N] = {1, 0.8, 1.1, 1.5, 1.2};
    times t;

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        invent(t, PREFETCH_MIN_ROUNDS, speed, 0.05, seed);
        assert_int_equal(prefetch_choose(PREFETCH_MIN_ROUNDS, N, t), 3);
    }
}

static void less_than_the_margin_stays(void **state)
{
    static const double speed[N] = {1, 1.02, 0.98, 1.02, 1.025};
    times t;

    (void)state;
    invent(t, PREFETCH_MAX_ROUNDS, speed, 0.001, 1);
    assert_int_equal(prefetch_choose(PREFETCH_MAX_ROUNDS, N, t), 0);
}

/* A round that flatters a challenger, or a few that spoil the one in force, or a median
 * that is better by half of the rounds alone. */
static void lucky_rounds_change_nothing(void **state)
{
    static const double speed[N] = {1, 0.95, 0.9, 0.99, 0.97};
    const size_t n = 16;
    times t;

    (void)state;
    invent(t, n, speed, 0.001, 1);
    t[3][1] = 1e-6;
    assert_int_equal(prefetch_choose(n, N, t), 0);
    t[5][0] = t[7][0] = t[9][0] = t[11][0] = 1e6;
    assert_int_equal(prefetch_choose(n, N, t), 0);
    for (size_t i = 0; i < n / 2 + 1; i++)
        t[i][2] = 0.5;
    assert_int_equal(prefetch_choose(n, N, t), 0);
}

static void few_rounds_change_nothing(void **state)
{
    static const double speed[N] = {1, 2, 3, 4, 5};
    times t;

    (void)state;
    invent(t, PREFETCH_MIN_ROUNDS, speed, 0, 1);
    assert_int_equal(prefetch_choose(PREFETCH_MIN_ROUNDS - 1, N, t), 0);
    assert_int_equal(prefetch_choose(0, N, t), 0);
    assert_int_equal(prefetch_choose(PREFETCH_MIN_ROUNDS, 1, t), 0);
    assert_int_equal(prefetch_choose(PREFETCH_MIN_ROUNDS, N, t), 4);
}

static void the_fastest_come_first(void **state)
{
    static const double speed[N] = {1, 0.8, 1.1, 1.5, 1.2};
    int order[N - 1] = {0};
    times t;

    (void)state;
    invent(t, PREFETCH_MAX_ROUNDS, speed, 0.05, 1);
    for (size_t i = 0; i < PREFETCH_MAX_ROUNDS; i += 2)
        for (int c = 0; c < N; c++)
            t[i][c] *= 3; /* of rounds, which all have in common */
    prefetch_rank(PREFETCH_MAX_ROUNDS, N, t, order);
    assert_int_equal(order[0], 3);
    assert_int_equal(order[1], 4);
    assert_int_equal(order[2], 2);
    assert_int_equal(order[3], 1);
    prefetch_rank(0, 2, t, order);
    assert_int_equal(order[0], 1);
}

/* A tenth faster, where runs differ by a tenth: the rounds of all settings are too few
 * to say so, those of two are not. */
static void a_winner_under_noise_is_found_in_two_steps(void **state)
{
    static const double speed[N] = {1, 0.8, 1.0, 1.12, 0.9};
    const size_t n_few = 13, n_many = 60;
    int n_at_once = 0, n_found = 0, n_lost = 0;
    times t;

    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        int order[N - 1] = {0};

        invent(t, n_few, speed, 0.1, seed);
        n_at_once += prefetch_choose(n_few, N, t) == 3;
        prefetch_rank(n_few, N, t, order);
        const double two[N] = {1, speed[order[0]], 1, 1, 1};

        invent(t, n_many, two, 0.1, seed + 1000);
        const int best = prefetch_choose(n_many, 2, t) ? order[0] : 0;

        n_found += best == 3;
        n_lost += speed[best] < 1;
    }
    assert_true(n_at_once < 60);
    assert_true(n_found > 180);
    assert_int_equal(n_lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_stay),
        cmocka_unit_test(a_clear_winner_is_taken),
        cmocka_unit_test(less_than_the_margin_stays),
        cmocka_unit_test(lucky_rounds_change_nothing),
        cmocka_unit_test(few_rounds_change_nothing),
        cmocka_unit_test(the_fastest_come_first),
        cmocka_unit_test(a_winner_under_noise_is_found_in_two_steps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
