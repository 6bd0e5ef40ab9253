/* SPDX-License-Identifier: MIT
 *
 * test_sweep_print.c - the line of a launch that is done: one line in a file, as wide
 * as the terminal on a terminal
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/sweep/sweep.h"

static char *text;

static void print(const struct row *r, int columns)
{
    size_t len = 0;
    FILE *f;

    free(text);
    f = open_memstream(&text, &len);
    assert_non_null(f);
    sweep_print_row(f, r, 3, 12, columns);
    fclose(f);
}

static void make_row(struct row *r)
{
    row_init(r);
    strcpy(r->point, "tinyllama-1.1b:Q4_K_M/decode/t2/spread/ctx1024/2G");
    r->status = ROW_STATUS_OK;
    r->tok_per_s = 16871.23;
    r->tok_per_s_lo = 16789.4;
    r->tok_per_s_hi = 16999.9;
    r->mbu = 0.5615;
    r->limiter = LIMITER_NOISE;
    r->mem_peak_bytes = INT64_C(751619277);
    strcpy(r->validity, "disturbed: others 55 %");
}

static void a_file_has_one_line(void **state)
{
    struct row r;

    (void)state;
    make_row(&r);
    print(&r, 0);
    assert_string_equal(
        text, "[3/12] tinyllama-1.1b:Q4_K_M/decode/t2/spread/ctx1024/2G    "
              "ok 16870 tok/s [16790, 17000], 56 % of roof, limited by noise, "
              "memory 717 MiB, disturbed: others 55 %\n");
    print(&r, 400);
    assert_null(strstr(text, "\n "));
}

static void a_terminal_has_lines_that_fit(void **state)
{
    struct row r;

    (void)state;
    make_row(&r);
    print(&r, 80);
    assert_string_equal(text,
                        "[3/12] tinyllama-1.1b:Q4_K_M/decode/t2/spread/ctx1024/2G\n"
                        "    ok 16870 tok/s [16790, 17000], 56 % of roof, limited by "
                        "noise, memory 717\n"
                        "    MiB, disturbed: others 55 %\n");
    strcpy(r.detail,
           "a sentence that says more than there is room for on one line, and "
           "so goes on");
    for (int columns = 60; columns < 200; columns += 7) {
        print(&r, columns);
        for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
            assert_true((int)strcspn(at, "\n") < columns);
    }
}

/* One sample has no interval: three digits, not those of the division. */
static void digits_are_those_that_are_known(void **state)
{
    struct row r;

    (void)state;
    make_row(&r);
    r.tok_per_s_lo = r.tok_per_s_hi = NAN;
    print(&r, 0);
    assert_non_null(strstr(text, " ok 16900 tok/s, 56 %"));
    r.tok_per_s = 0.123456;
    print(&r, 0);
    assert_non_null(strstr(text, " ok 0.123 tok/s, 56 %"));
    row_init(&r);
    r.status = ROW_STATUS_ERROR;
    strcpy(r.detail, "no model");
    print(&r, 0);
    assert_non_null(strstr(text, " error; no model\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_one_line),
        cmocka_unit_test(a_terminal_has_lines_that_fit),
        cmocka_unit_test(digits_are_those_that_are_known),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    free(text);
    return failed;
}
