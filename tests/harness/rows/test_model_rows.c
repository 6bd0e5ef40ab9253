/* SPDX-License-Identifier: MIT
 *
 * test_model_rows.c - one model under several names, several under one
 */
#include "tests/support/test.h"

#include "harness/rows/model_rows.h"
#include "harness/rows/report_rows.h"

static struct row rows[8];

static void put(size_t i, const char *model, const char *quant, uint64_t identity)
{
    row_init(&rows[i]);
    strcpy(rows[i].model, model);
    strcpy(rows[i].quant, quant);
    row_set_model(&rows[i], identity);
}

static void join(size_t n_first, size_t n_second)
{
    const struct row_span spans[] = {{rows, n_first}, {rows + n_first, n_second}};
    struct err err = ERR_INIT;

    assert_int_equal(model_rows_join(spans, 2, &err), ST_OK);
}

static const char *label(size_t i)
{
    static struct report_name name;

    name = report_model_name(&rows[i]);
    return name.text;
}

static void names_do_not_matter(void **state)
{
    (void)state;
    put(0, "tiny-Q4_K_M", "Q4_K_M", 7);
    put(1, "a-renamed-tiny", "Q8_0", 7);
    put(2, "another", "Q8_0", 9);
    join(1, 2);
    assert_string_equal(label(0), "tiny");
    assert_string_equal(label(1), "tiny");
    assert_string_equal(label(2), "another");
    assert_int_equal(model_rows_compare(&rows[0], &rows[1]), 0);
    assert_int_not_equal(model_rows_compare(&rows[0], &rows[2]), 0);
}

static void one_name_of_two_models(void **state)
{
    (void)state;
    put(0, "tiny", "Q8_0", 0x1f2e3d4c5b6a7988u);
    put(1, "tiny", "Q8_0", 0x2222222200000000u);
    put(2, "tiny", "Q4_0", 0x2222222200000000u);
    put(3, "tiny", "Q4_0", 0); /* of either */
    join(2, 2);
    assert_string_equal(label(0), "tiny~1f2e3d4c");
    assert_string_equal(label(1), "tiny~22222222");
    assert_string_equal(label(2), label(1));
    assert_string_equal(label(3), "tiny");
    assert_int_not_equal(model_rows_compare(&rows[0], &rows[1]), 0);
    assert_int_equal(model_rows_compare(&rows[2], &rows[1]), 0);
    assert_int_not_equal(model_rows_compare(&rows[3], &rows[1]), 0);
}

static void rows_without_the_column_go_by_name(void **state)
{
    (void)state;
    put(0, "tiny-Q4_0", "Q4_0", 0);
    put(1, "tiny-q8_0", "Q8_0", 5);
    put(2, "old", "Q8_0", 0);
    put(3, "old", "Q8_0", 0);
    put(4, "tiny", "", 0); /* failed before it was open */
    join(2, 3);
    assert_int_equal(model_rows_compare(&rows[0], &rows[1]), 0);
    assert_int_equal(model_rows_compare(&rows[2], &rows[3]), 0);
    assert_int_not_equal(model_rows_compare(&rows[1], &rows[2]), 0);
    assert_int_not_equal(model_rows_compare(&rows[1], &rows[4]), 0);
    assert_string_equal(label(1), "tiny");
    assert_string_equal(label(4), "tiny");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_do_not_matter),
        cmocka_unit_test(one_name_of_two_models),
        cmocka_unit_test(rows_without_the_column_go_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
