/* SPDX-License-Identifier: MIT
 *
 * test_row_check.c - rows that cannot be, and rows that are there twice
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/rows/report_rows.h"
#include "harness/rows/result_set_impl.h"

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
    r = row(1);
    r.tok_per_s_lo = 900;
    r.tok_per_s_hi = 910;
    check(&r, "their interval is 900 to 910");
    r.tok_per_s_lo = 6.5;
    r.tok_per_s_hi = 6.8;
    check(&r, "their interval is 6.5 to 6.8");
    r.tok_per_s_hi = 7.5;
    r.lat_p50_ms = 1e3 / 7;
    check(&r, NULL);
    r.lat_p50_ms = 1.0 / 7; /* s */
    check(&r, "a token takes 0.000143 s");
    r.n_sequences = 4; /* a step has several */
    check(&r, NULL);
    r = row(1);
    r.roof_tok_per_s = r.mbu = NAN;
    r.tok_per_s = 113.7e3; /* of a tiny model */
    r.lat_p50_ms = 0.009;
    check(&r, NULL);
    r = row(1);
    r.kind = POINT_PREFILL;
    r.n_prompt = 512;
    r.roof_tok_per_s = r.mbu = NAN;
    r.ttft_warm_s = 512.0 / 7;
    check(&r, NULL);
    r.tok_per_s = 512e3;
    r.ttft_warm_s = 0; /* rounded */
    check(&r, NULL);
    r.tok_per_s = 7;
    r.ttft_warm_s = 0.512 / 7;
    check(&r, "a prompt takes 0.0731 s");
    r.ttft_warm_s = 51200.0;
    check(&r, "a prompt takes 5.12e+04 s");
    r.n_prompt = 0; /* of no prompt that is known: a token's time is not of it */
    r.lat_p50_ms = 1e-3;
    check(&r, NULL);
    r = row(1);
    r.kind = POINT_SPECULATE;
    r.lat_p50_ms = 1e-3;
    check(&r, NULL);
    r = row(1);
    r.mbu = 0;
    r.tok_per_s = 0.007;
    check(&r, NULL);
    r.mbu = 0.00001;
    check(&r, "and mbu is 1e-05");
    r = row(1);
    r.roof_tok_per_s = 0;
    check(&r, NULL);
    r = row(1);
    r.cpus_quota = 1e9;
    check(&r, "cpus_quota is 1000000000, which cannot be: it is 0 to 1024");
    r.cpus_quota = NAN;
    check(&r, NULL);
}

/* The first of several reasons is kept. */
static void the_first_reason_is_kept(void **state)
{
    struct row rows[] = {row(1), row(2), row(3)};
    struct row_check c;
    struct err err = ERR_INIT;
    size_t n = 3;

    (void)state;
    rows[0].ctx = -1;
    rows[2].n_threads = 0;
    assert_int_equal(row_check_all(&c, rows, &n, &err), ST_OK);
    assert_int_equal(c.n_impossible, 2);
    assert_non_null(strstr(c.first, "ctx is -1"));
    assert_true(isnan(rows[0].tok_per_s) && isnan(rows[2].tok_per_s));
    assert_true(rows[1].tok_per_s == 7);
}

/* Faster than memory allows, and nothing in the row explains it. */
static void speeds_above_their_roof_are_doubted(void **state)
{
    static const struct {
        double tok_per_s, throttled_pct;
        int64_t bytes;
        const char *detail;
        bool is_doubted;
    } cases[] = {
        {8.5, NAN, INT64_C(5) << 30, "", false}, /* roofs scatter */
        {12, NAN, INT64_C(5) << 30, "", true},
        {24, NAN, INT64_C(5) << 30, "", true},
        {12, 60, INT64_C(5) << 30, "", false}, /* a quota stopped the probe as well */
        {12, NAN, 1 << 20, "", false},
        {12, 1, INT64_C(5) << 30, "", true},
        {12, NAN, INT64_C(1) << 30,
         "above the memory roof: the 1.0 MB of a token fit the last-level cache",
         false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct row r = row(1);
        struct row_check c;
        struct err err = ERR_INIT;
        size_t n = 1;

        r.tok_per_s = cases[i].tok_per_s;
        r.mbu = r.tok_per_s / r.roof_tok_per_s;
        r.throttled_pct = cases[i].throttled_pct;
        r.bytes_per_token = cases[i].bytes;
        snprintf(r.detail, sizeof r.detail, "%s", cases[i].detail);
        assert_int_equal(row_check_all(&c, &r, &n, &err), ST_OK);
        assert_int_equal(c.n_impossible, 0);
        if (row_above_roof(&r) != cases[i].is_doubted)
            fail_msg("case %zu: %s", i, r.validity);
    }

    /* what was found before it is not written over */
    struct row r = row(1);
    struct row_check c;
    struct err err = ERR_INIT;
    size_t n = 1;

    r.tok_per_s = 12;
    r.mbu = r.tok_per_s / r.roof_tok_per_s;
    r.bytes_per_token = INT64_C(5) << 30;
    snprintf(r.validity, sizeof r.validity, "disturbed: steal 7 %%");
    assert_int_equal(row_check_all(&c, &r, &n, &err), ST_OK);
    assert_int_equal(c.n_impossible, 0);
    assert_string_equal(r.validity, "disturbed: steal 7 %");
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible_rows_have_failed),
        cmocka_unit_test(speeds_above_their_roof_are_doubted),
        cmocka_unit_test(the_first_reason_is_kept),
        cmocka_unit_test(a_launch_counts_once)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
