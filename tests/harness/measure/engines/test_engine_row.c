/* SPDX-License-Identifier: MIT
 *
 * test_engine_row.c - units that a program may not use, in the row of it
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/engines/engine_row.h"
#include "kernels/isa.h"
#include "kernels/units.h"

#define TILES (1u << KERN_ISA_amx_int8)

/* What the row has of a program of that speed. */
static const char *units(double gops, double roof_gops, double vectors_gops,
                         uint32_t isa_mask, uint32_t unused)
{
    static struct row row;

    row_init(&row);
    row.gops = gops;
    row.roof_gops = roof_gops;
    row.roof_vectors_gops = vectors_gops;
    engine_row_units(&row, isa_mask, unused);
    return row.unused_units;
}

static void tiles_show_above_the_peak_of_vectors(void **state)
{
    (void)state;
    assert_string_equal(units(300, 5000, 800, TILES, 0), "AMX-INT8");
    assert_string_equal(units(801, 5000, 800, TILES, 0), "");
    /* a short prompt: the roof is that of vectors alone */
    assert_string_equal(units(300, 800, NAN, TILES, 0), "AMX-INT8");
    assert_string_equal(units(900, 800, NAN, TILES, 0), "");
    /* nothing is known of its operations */
    assert_string_equal(units(NAN, NAN, NAN, TILES, 0), "AMX-INT8");
}

static void other_units_are_named(void **state)
{
    char name[64];

    (void)state;
    assert_string_equal(units(300, 800, NAN, 1u << KERN_ISA_avx512vnni, 0), "");
    assert_string_equal(units(300, 800, NAN, 1u << KERN_ISA_avx512vnni, 1),
                        unit_name(0));
    snprintf(name, sizeof name, "AMX-INT8 %s", unit_name(0));
    assert_string_equal(units(300, 5000, 800, TILES, 1), name);
    assert_string_equal(units(900, 5000, 800, TILES, 1), unit_name(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_show_above_the_peak_of_vectors),
        cmocka_unit_test(other_units_are_named),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
