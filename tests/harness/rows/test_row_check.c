/* SPDX-License-Identifier: MIT
 *
 * test_row_check.c - rows that cannot be, and rows that are there twice
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/rows/report_rows.h"
#include "harness/rows/row_check.h"

static struct row row(int n)
{
    struct row r;

    row_init(&r);
    r.kind = POINT_DECODE;
    r.status = ROW_STATUS_OK;
    r.n_threads = 2;
    r.ctx = 4096;
    r.tok_per_s = 7;
    r.roof_tok_per_s = 8;
    r.mbu = 7.0 / 8;
    r.attempt = n;
    snprintf(r.point, sizeof r.point, "p");
    snprintf(r.utc, sizeof r.utc, "2026-01-01T00:00:00Z");
    snprintf(r.validity, sizeof r.validity, "valid");
    return r;
}

static void check(const struct row *r, const char *why)
{
    struct row one = *r;
    struct row_check c;
    struct err err = ERR_INIT;
    size_t n = 1;

    assert_int_equal(row_check_all(&c, &one, &n, &err), ST_OK);
    assert_int_equal(n, 1);
    if (c.n_impossible != (why != NULL) || !strstr(c.first, why ? why : ""))
        fail_msg("%s: %s", why ? why : "possible", c.first);
    assert_int_equal(row_trust(&one), why ? ROW_FAILED : ROW_GOOD);
    assert_true(!why || strstr(one.detail, why));
}

static void impossible_rows_have_failed(void **state)
{
    struct row r = row(1);

    (void)state;
    check(&r, NULL);
    r.n_threads = -3;
    check(&r, "n_threads is -3, which cannot be: it is 1 to 1024");
    r.n_threads = 0;
    check(&r, "n_threads is 0");
    r.n_threads = FIELD_NO_INT;
    check(&r, NULL);
    r = row(1);
    r.ctx = INT64_C(2147483648);
    check(&r, "ctx is 2147483648");
    r.ctx = -1;
    check(&r, "ctx is -1");
    r = row(1);
    r.n_sequences = -1;
    check(&r, "is -1");
    r = row(1);
    r.cpus_quota = -2;
    check(&r, "cpus_quota is -2");
    r = row(1);
    r.tok_per_s = 7000; /* mbu is of another figure */
    check(&r, "times its roof of 8 tok/s");
    r.mbu = 7000.0 / 8;
    check(&r, "times its roof of 8 tok/s");
    r = row(1);
    r.tok_per_s = 0.007;
    check(&r, "and mbu is 0.875");
    r = row(1);
    r.tok_per_s = 40; /* of a cache */
    r.mbu = 5;
    check(&r, NULL);
}

static void a_launch_counts_once(void **state)
{
    struct row rows[] = {row(1), row(2), row(1), row(3), row(2), row(4), row(4)};
    struct row_check c;
    struct err err = ERR_INIT;
    size_t n = 7;

    (void)state;
    rows[2].tok_per_s = 7.1;                /* changed, but the same launch */
    rows[5].utc[0] = rows[6].utc[0] = '\0'; /* of no launch that is known */
    assert_int_equal(row_check_all(&c, rows, &n, &err), ST_OK);
    assert_int_equal(c.n_copies, 2);
    assert_int_equal(n, 5);
    for (int i = 0; i < 3; i++)
        assert_int_equal(rows[i].attempt, i + 1);
    assert_true(rows[0].tok_per_s == 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(impossible_rows_have_failed),
                                       cmocka_unit_test(a_launch_counts_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
