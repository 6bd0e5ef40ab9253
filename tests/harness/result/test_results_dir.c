/* SPDX-License-Identifier: MIT
 *
 * test_results_dir.c - names and files of directories of results
 */
#include "tests/support/test.h"

#include "harness/result/results_dir.h"

static void names_are_the_last_part(void **state)
{
    static const char *const cases[][2] = {{"epyc", "epyc"},
                                           {"results/epyc", "epyc"},
                                           {"results/epyc//", "epyc"},
                                           {"/results/epyc", "epyc"},
                                           {"/", "/"},
                                           {"///", "/"},
                                           {"..", ".."},
                                           {"a/b\nc\033[1m", "b\\x0ac\\x1b[1m"}};
    char name[64], cut[8];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        results_dir_name(name, sizeof name, cases[i][0]);
        assert_string_equal(name, cases[i][1]);
    }
    results_dir_name(cut, sizeof cut, "results/granite-rapids");
    assert_string_equal(cut, "gran...");
}

static void files_are_all_that_is_read(void **state)
{
    static const char *const files[] = {"d/sweep.csv", "d/quality.csv", "d/samples.csv",
                                        "d/machine.json"};
    struct path_list list = {0};
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(results_dir_files(&list, "d", &err), ST_OK);
    assert_int_equal(list.n, 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(list.path[i], files[i]);
    path_list_free(&list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_the_last_part),
        cmocka_unit_test(files_are_all_that_is_read),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
