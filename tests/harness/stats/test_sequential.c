/* SPDX-License-Identifier: MIT
 *
 * test_sequential.c - sequential comparisons of invented settings: the best is found,
 * equals stay a tie
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/stats/sequential.h"

#define N_COMPARISONS 400

/* A time of about 1, spread by 3 %, one in ten of them interrupted. */
static double noisy(uint64_t *seed, double speed)
{
    const double spread = 1 + 0.03 * (double)test_random_float(seed);
    const double late =
        test_random(seed) % 10 ? 1 : 1.3 + 0.2 * test_random_float(seed);

    return spread * late / speed;
}

/* Until it is over; how many samples that took. */
static size_t run(struct sequential *comparison, const double *speed, uint64_t *seed)
{
    struct err err = ERR_INIT;
    size_t order[16], n, n_samples = 0;

    while ((n = sequential_round(comparison, order)) > 0) {
        const double drift = 1 + 0.2 * sin((double)n_samples / 30);

        for (size_t i = 0; i < n; i++)
            sequential_record(comparison, order[i],
                              drift * noisy(seed, speed[order[i]]));
        assert_int_equal(sequential_round_end(comparison, &err), ST_OK);
        n_samples += n;
    }
    return n_samples;
}

/* Of n settings, of which the last is gain faster: how often it, another one, and the
 * default is chosen. */
static void many_comparisons(size_t n, double gain, int chosen[3])
{
    struct err err = ERR_INIT;
    uint64_t seed = 77 + n;
    double speed[16];

    chosen[0] = chosen[1] = chosen[2] = 0;
    for (int i = 0; i < N_COMPARISONS; i++) {
        struct sequential comparison;

        for (size_t k = 0; k < n; k++)
            speed[k] = 1;
        speed[n - 1] = gain;
        assert_int_equal(sequential_open(&comparison, n, (uint64_t)i, &err), ST_OK);
        run(&comparison, speed, &seed);
        assert_true(comparison.state == SEQUENTIAL_WON ||
                    comparison.state == SEQUENTIAL_TIE);
        chosen[sequential_choice(&comparison) == n - 1 ? 0
               : sequential_choice(&comparison)        ? 1
                                                       : 2]++;
        sequential_close(&comparison);
    }
}

/* At most one in twenty, and 2 of 400 more for luck. */
static void equals_stay_a_tie(void **state)
{
    int chosen[3];

    (void)state;
    for (size_t n = 2; n <= 8; n += 3) {
        many_comparisons(n, 1, chosen);
        assert_true(chosen[0] + chosen[1] <= N_COMPARISONS / 20 + 2);
    }
}

/* Two interruptions among four rounds lose the screening. */
static void the_best_is_found(void **state)
{
    int chosen[3];

    (void)state;
    for (size_t n = 2; n <= 8; n += 3) {
        many_comparisons(n, 1.06, chosen);
        assert_true(chosen[0] >= N_COMPARISONS * (n == 2 ? 93 : 85) / 100);
        assert_true(chosen[1] <= N_COMPARISONS / 100);
    }
    many_comparisons(8, 1.5, chosen);
    assert_true(chosen[0] >= N_COMPARISONS * 99 / 100);
}

static void what_is_slower_loses(void **state)
{
    int chosen[3];

    (void)state;
    many_comparisons(2, 0.95, chosen);
    assert_true(chosen[0] == 0);
}

/* One that is much slower is not run to the end of screening. */
static void hopeless_ones_go_early(void **state)
{
    const double speed[3] = {1, 0.5, 0.6};
    struct err err = ERR_INIT;
    struct sequential comparison;
    struct rank_ratio r;
    uint64_t seed = 5;

    (void)state;
    assert_int_equal(sequential_open(&comparison, 3, 1, &err), ST_OK);
    assert_true(run(&comparison, speed, &seed) <= 12);
    assert_int_equal(comparison.state, SEQUENTIAL_TIE);
    assert_int_equal(sequential_choice(&comparison), 0);
    assert_true(comparison.c[1].n < 4 && comparison.c[2].n <= 4);
    assert_int_equal(sequential_ratio(&comparison, 1, &r, &err), ST_OK);
    assert_true(r.ratio > 0.3 && r.ratio < 0.8);
    sequential_close(&comparison);
}

static void cut_and_alone(void **state)
{
    struct err err = ERR_INIT;
    struct sequential comparison;
    size_t order[4];

    (void)state;
    assert_int_equal(sequential_open(&comparison, 1, 1, &err), ST_OK);
    assert_int_equal(sequential_round(&comparison, order), 0);
    assert_int_equal(comparison.state, SEQUENTIAL_ALONE);
    sequential_close(&comparison);
    /* Nine clear rounds: the look after eight was enough, or the cut looks. */
    for (int n_rounds = 3; n_rounds <= 9; n_rounds += 6) {
        assert_int_equal(sequential_open(&comparison, 2, 1, &err), ST_OK);
        for (int i = 0; i < n_rounds && sequential_round(&comparison, order); i++) {
            sequential_record(&comparison, 0, 1.0);
            sequential_record(&comparison, 1, 0.8 + 0.001 * i);
            assert_int_equal(sequential_round_end(&comparison, &err), ST_OK);
        }
        assert_int_equal(sequential_cut(&comparison, &err), ST_OK);
        assert_int_equal(comparison.state,
                         n_rounds > 8 ? SEQUENTIAL_WON : SEQUENTIAL_CUT);
        assert_int_equal(sequential_choice(&comparison), n_rounds > 8);
        sequential_close(&comparison);
    }
}

/* Fresh rounds even for one who was no faster. */
static void a_duel_can_be_demanded(void **state)
{
    const double speed[4] = {1, 0.97, 0.97, 0.97};
    struct err err = ERR_INIT;
    struct sequential comparison;
    uint64_t seed = 9;

    (void)state;
    assert_int_equal(sequential_open(&comparison, 4, 1, &err), ST_OK);
    comparison.always_duel = true;
    run(&comparison, speed, &seed);
    assert_int_equal(comparison.state, SEQUENTIAL_TIE);
    assert_true(comparison.best > 0);
    assert_true(comparison.c[comparison.best].n -
                    comparison.c[comparison.best].n_screen >=
                SEQUENTIAL_MIN_DUEL);
    sequential_close(&comparison);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_stay_a_tie),
        cmocka_unit_test(the_best_is_found),
        cmocka_unit_test(what_is_slower_loses),
        cmocka_unit_test(hopeless_ones_go_early),
        cmocka_unit_test(cut_and_alone),
        cmocka_unit_test(a_duel_can_be_demanded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
