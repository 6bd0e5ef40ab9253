/* SPDX-License-Identifier: MIT
 *
 * test_tile_rule.c - whether tiles are taken
 */
#include "tests/support/test.h"

#include "engine/forward/tile_rule.h"
#include "engine/forward/tuning.h"
#include "kernels/isa.h"

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
        assert_true(from == TILE_COLUMNS || from == TILES_NEVER);
        assert_int_equal(tile_columns(fmt, all), from);
        assert_int_equal(tile_columns(fmt, all & ~TUNING_TILE_LEVELS), TILES_NEVER);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_are_measured_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
