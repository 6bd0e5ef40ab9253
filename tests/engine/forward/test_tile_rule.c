/* SPDX-License-Identifier: MIT
 *
 * test_tile_rule.c - from how many columns on tiles are taken, by invented times
 */
#include "tests/support/test.h"

#include "engine/base/clock.h"
#include "engine/forward/tile_rule.h"
#include "kernels/isa.h"

/* The choice where tiles take `ratio` of the time of vectors in each of three rounds.
 */
static size_t choice_of(size_t presumed, int first, int end,
                        const double ratio[TILE_N_SIZES])
{
    struct tile_times times[3][TILE_N_SIZES];

    for (int round = 0; round < 3; round++)
        for (int i = first; i < end; i++) {
            const double vectors = (1 + round) * (double)tile_sizes[i];

            times[round][i] = (struct tile_times){vectors, ratio[i] * vectors};
        }
    return tile_choose(presumed, first, end, 3, (const void *)times);
}

static size_t choice(size_t presumed, int first, const double ratio[TILE_N_SIZES])
{
    return choice_of(presumed, first, TILE_LATE, ratio);
}

static void from_the_first_number_that_wins(void **state)
{
    static const double all[TILE_N_SIZES] = {.5, .5, .5, .5, .5, .5};
    static const double none[TILE_N_SIZES] = {2, 2, 2, 2, 2, 2};
    static const double half[TILE_N_SIZES] = {2, 1.5, 1, .8, .6, .4};
    static const double gap[TILE_N_SIZES] = {.5, .5, 1, .5, .5, .5};

    (void)state;
    for (size_t presumed = 64; presumed != 0;
         presumed = presumed == 64 ? TILES_NEVER : 0) {
        assert_int_equal(choice(presumed, 0, all), 2);
        assert_int_equal(choice(presumed, 0, none), TILES_NEVER);
        assert_int_equal(choice(presumed, 0, half), 16);
        assert_int_equal(choice(presumed, 0, gap), 16);
        assert_int_equal(choice(presumed, TILE_LATE - 1, all), 64);
        assert_int_equal(choice(presumed, TILE_LATE - 1, none), TILES_NEVER);
    }
}

/* Near a tie what is presumed stays, so that it is the same in every process. */
static void ties_change_nothing(void **state)
{
    static const double equal[TILE_N_SIZES] = {1, 1, 1, 1, 1, 1};
    static const double slower[TILE_N_SIZES] = {1.08, 1.08, 1.08, 1.08, 1.08, 1.08};
    static const double faster[TILE_N_SIZES] = {.92, .92, .92, .92, .92, .92};

    (void)state;
    assert_int_equal(choice(TILES_NEVER, 0, equal), TILES_NEVER);
    assert_int_equal(choice(TILES_NEVER, 0, faster), TILES_NEVER);
    assert_int_equal(choice(64, 0, equal), 64);
    assert_int_equal(choice(64, 0, slower), 64);
    assert_int_equal(choice(64, 0, faster), 64);
    assert_int_equal(choice(16, 0, slower), 16);
}

static void more_columns_may_win(void **state)
{
    static const double late[TILE_N_SIZES] = {2, 2, 2, 2, 2, 2, 1.2, .8, .6};
    static const double last[TILE_N_SIZES] = {2, 2, 2, 2, 2, 2, .8, 1, .6};
    static const double never[TILE_N_SIZES] = {.5, .5, .5, .5, .5, .5, .8, .8, .95};

    (void)state;
    assert_int_equal(choice_of(TILES_NEVER, TILE_LATE, TILE_N_SIZES, late), 256);
    assert_int_equal(choice_of(TILES_NEVER, TILE_LATE, TILE_N_SIZES, last), 512);
    assert_int_equal(choice_of(TILES_NEVER, TILE_LATE, TILE_N_SIZES, never),
                     TILES_NEVER);
}

/* A round in which somebody else had the core. */
static void one_round_does_not_decide(void **state)
{
    struct tile_times times[4][TILE_N_SIZES];

    (void)state;
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < TILE_N_SIZES; i++)
            times[round][i] = (struct tile_times){100, round == 2 ? 9000 : 60};
    assert_int_equal(tile_choose(64, 0, TILE_LATE, 4, (const void *)times), 2);
    for (int i = 0; i < TILE_N_SIZES; i++)
        times[2][i].vectors = 1e6;
    for (int round = 0; round < 4; round++)
        for (int i = 0; i < TILE_N_SIZES; i++)
            if (round != 2)
                times[round][i].tiles = 200;
    assert_int_equal(tile_choose(64, 0, TILE_LATE, 4, (const void *)times),
                     TILES_NEVER);
}

/* Two kernels that this CPU has, in place of vectors and tiles. */
static void kernels_are_timed(void **state)
{
    const struct kern_row *row =
        kern_best(KERN_OP_gemm_x16, KERN_FMT_q4_K, isa_usable() & ~ISA_TILE_LEVELS);
    size_t from;

    (void)state;
    if (row == NULL)
        skip();
    from = tile_measure(KERN_FMT_q4_K, KERN_ACT_q8_256, row->fn.gemm_x16,
                        row->fn.gemm_x16, 64, 0, true);
    for (int i = 0; i < TILE_N_SIZES; i++)
        from = from == tile_sizes[i] ? TILES_NEVER : from;
    assert_int_equal(from, TILES_NEVER);
}

/* Kernels that take a time of their thread: vectors as their columns, tiles twice that
 * below 200 columns and half of it from there on. */
static void take(double us)
{
    const uint64_t begin = clock_thread_ns();

    while ((double)(clock_thread_ns() - begin) < 1e3 * us) {
    }
}

static void slow_vectors(size_t n_panels, size_t k, const void *w, size_t n_cols,
                         const void *x, size_t x_stride, float *y, size_t y_stride,
                         struct kern_prefetch prefetch)
{
    (void)n_panels, (void)k, (void)w, (void)x, (void)x_stride, (void)y, (void)y_stride;
    (void)prefetch;
    take((double)n_cols);
}

static void late_tiles(size_t n_panels, size_t k, const void *w, size_t n_cols,
                       const void *x, size_t x_stride, float *y, size_t y_stride,
                       struct kern_prefetch prefetch)
{
    (void)n_panels, (void)k, (void)w, (void)x, (void)x_stride, (void)y, (void)y_stride;
    (void)prefetch;
    take((double)n_cols * (n_cols < 200 ? 2 : 0.5));
}

static void tiles_that_win_late_are_found(void **state)
{
    (void)state;
    assert_int_equal(tile_measure(KERN_FMT_q4_0, KERN_ACT_q8_32, slow_vectors,
                                  late_tiles, TILES_NEVER, 0, true),
                     256);
    assert_int_equal(tile_measure(KERN_FMT_q4_K, KERN_ACT_q8_256, slow_vectors,
                                  late_tiles, 64, 0, true),
                     256);
    assert_int_equal(tile_measure(KERN_FMT_q4_K, KERN_ACT_q8_256, slow_vectors,
                                  late_tiles, 64, TILE_LATE - 1, false),
                     TILES_NEVER);
}

/* What was measured stays, and where there are no tiles none are taken. */
static void formats_are_measured_once(void **state)
{
    const uint32_t all = isa_usable();

    (void)state;
    for (int i = 0; i < KERN_N_FMT; i++)
        for (int sums = 0; sums < SLM_N_SUMS; sums++) {
            const enum kern_format fmt = (enum kern_format)i;
            const size_t from = tile_columns(fmt, (enum slm_sums)sums, all);

            if (!(all & ISA_TILE_LEVELS))
                assert_int_equal(from, TILES_NEVER);
            if (sums == SLM_SUMS_INT8)
                assert_true(from >= SUMS_INT8_COLUMNS);
            assert_int_equal(tile_columns(fmt, (enum slm_sums)sums, all), from);
            assert_int_equal(
                tile_columns(fmt, (enum slm_sums)sums, all & ~ISA_TILE_LEVELS),
                TILES_NEVER);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_the_first_number_that_wins),
        cmocka_unit_test(ties_change_nothing),
        cmocka_unit_test(more_columns_may_win),
        cmocka_unit_test(one_round_does_not_decide),
        cmocka_unit_test(tiles_that_win_late_are_found),
        cmocka_unit_test(kernels_are_timed),
        cmocka_unit_test(formats_are_measured_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
