/* SPDX-License-Identifier: MIT
 *
 * test_dirs.c - default directories of results
 */
#include "tests/support/tree_root.h"

#include <time.h>

#include "harness/base/dirs.h"

/* In place of the C library's: a clock that stands still, as that of a board without a
 * battery at each start. */
time_t time(time_t *out)
{
    if (out)
        *out = 25;
    return 25;
}

static void two_of_one_second_have_two_names(void **state)
{
    char first[300], second[300], third[300];
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(setenv("SLMBENCH_RESULTS", root, 1), 0);
    dirs_results(first, sizeof first, "gate-");
    assert_non_null(strstr(first, "/gate-"));
    assert_non_null(strstr(first, "-19700101T000025Z"));
    assert_int_equal(dirs_make(first, &err), ST_OK);
    dirs_results(second, sizeof second, "gate-");
    assert_int_equal(strncmp(second, first, strlen(first)), 0);
    assert_string_equal(second + strlen(first), "-2");
    assert_int_equal(dirs_make(second, &err), ST_OK);
    dirs_results(third, sizeof third, "gate-");
    assert_string_equal(third + strlen(first), "-3");
    unsetenv("SLMBENCH_RESULTS");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_of_one_second_have_two_names, make_root,
                                        remove_root),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
