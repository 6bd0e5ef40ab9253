/* SPDX-License-Identifier: MIT
 *
 * test_disturbances.c - what disturbed rounds, as counts and as a sentence
 */
#include "tests/support/test.h"

#include "harness/stats/stats.h"

static void they_are_counted_by_name(void **state)
{
    struct disturbances d = {0};
    char text[256];

    (void)state;
    assert_string_equal(disturbances_text(&d, text, sizeof text), "");
    disturbances_add(&d, "steal 5 %, waiting 12 %", false);
    disturbances_add(&d, "waiting 7 %", false);
    disturbances_add(&d, "memory pressure 7 %", false);
    assert_string_equal(disturbances_text(&d, text, sizeof text),
                        "steal in 1, waiting in 2, memory pressure in 1");
    disturbances_add(&d, "steal 6 %", true);
    assert_non_null(
        strstr(disturbances_text(&d, text, sizeof text),
               "steal in 2, waiting in 2, memory pressure in 1; 1 of these"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_counted_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
