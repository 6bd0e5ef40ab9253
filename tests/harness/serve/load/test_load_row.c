/* SPDX-License-Identifier: MIT
 *
 * test_load_row.c - what speaks against a row of a load level
 */
#include "tests/support/test.h"

#include "harness/machine/noise.h"
#include "harness/serve/load/load.h"

static void sleep_and_clocks_are_noticed(void **state)
{
    const struct load_settings s = {.max_late_ms = 5};
    const struct load_figures f = {
        .n = 10, .window_s = 3, .settled = true, .little = 1};
    const struct load_result r = {.wall_s = 3};
    struct noise noise = {.wall_ns = 3000000000, .n_cpus = 2};
    struct row row;

    (void)state;
    row_init(&row);
    load_row_fill(&row, &s, &f, &r, &noise);
    assert_null(strstr(row.validity, "slept"));
    assert_string_equal(row.detail, "");

    noise.suspended_ns = 5000000000;
    noise.clock_set_s = 3600;
    row_init(&row);
    load_row_fill(&row, &s, &f, &r, &noise);
    assert_memory_equal(row.validity, "disturbed: slept 5 s", 20);
    assert_non_null(strstr(row.detail, "clock was set by +3600 s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleep_and_clocks_are_noticed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
