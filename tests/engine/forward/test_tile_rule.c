/* SPDX-License-Identifier: MIT
 *
 * test_tile_rule.c - from how many columns on tiles are taken
 */
#include "tests/support/test.h"

#include "engine/forward/tile_rule.h"
#include "engine/forward/tuning.h"
#include "kernels/isa.h"

static void the_least_number_from_which_on_tiles_win(void **state)
{
    static const double vectors[] = {10, 20, 40, 80, 160};
    static const double never[] = {9, 18, 36, 72, 159}, all[] = {9, 18, 36, 72, 100};
    static const double last[] = {9, 18, 36, 79, 100}, larger[] = {20, 22, 24, 40, 70};

    (void)state;
    assert_int_equal(tile_choose(vectors, never), TILES_NEVER);
    assert_int_equal(tile_choose(vectors, all), 16);
    assert_int_equal(tile_choose(vectors, last), 256);
    assert_int_equal(tile_choose(vectors, larger), 64);
    assert_int_equal(tile_choose(vectors, vectors), TILES_NEVER);
}

/* What was measured is kept, and another choice of levels is measured apart. */
static void formats_are_measured_once(void **state)
{
    const uint32_t all = isa_usable();

    (void)state;
    for (int i = 0; i < KERN_N_FMT; i++) {
        const enum kern_format fmt = (enum kern_format)i;
        const size_t from = tile_columns(fmt, all);

        if (!(all & TUNING_TILE_LEVELS))
            assert_int_equal(from, TILES_NEVER);
        assert_int_equal(tile_columns(fmt, all), from);
        assert_int_equal(tile_columns(fmt, all & ~TUNING_TILE_LEVELS), TILES_NEVER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_number_from_which_on_tiles_win),
        cmocka_unit_test(formats_are_measured_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
