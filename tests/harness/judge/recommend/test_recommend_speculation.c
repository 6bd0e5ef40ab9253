/* SPDX-License-Identifier: MIT
 *
 * test_recommend_speculation.c - what the recommendation reports of speculative
 * decoding
 */
#include "tests/support/test.h"

#include <math.h>

#include "tests/support/recommend_rows.h"

/* The speed-up of speculative decoding is that of the chosen setting, and none where
 * its interval has 1 in it or no draft was right. */
static void speculation_is_reported(void **state)
{
    struct row rows[5];

    (void)state;
    for (int i = 0; i < 5; i++) {
        rows[i] = point("Q4_0", 50, i == 3 ? 1 : 2, i ? 300 : 0, i ? 8.0 : 4.0);
        snprintf(rows[i].point, sizeof rows[i].point, "%d", i);
        if (i == 0)
            continue;
        rows[i].kind = POINT_SPECULATE;
        strcpy(rows[i].spec_text, i == 1 ? "copy" : i == 2 ? "free" : "other");
        rows[i].spec_speedup = i == 1 ? 2.125 : 0.98;
        rows[i].spec_speedup_lo = i == 1 ? 2.0 : 0.95;
        rows[i].spec_speedup_hi = i == 1 ? 2.25 : 1.0;
        rows[i].spec_guessed = 40;
        rows[i].spec_accept = 0.5;
    }
    strcpy(rows[4].validity, "disturbed: steal");
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_float_equal(rec.best.tok_per_s, 4.0, 0);
    assert_non_null(strstr(rec.why,
                           " Speculative decoding (prompt lookup) makes this setting "
                           "2.12 times as fast on the text copy (95 % interval 2.00 to "
                           "2.25), and shows no difference in speed on the text free "
                           "(95 % interval 0.95 to 1.00)."));
    assert_null(strstr(rec.why, "other"));
    rows[3].n_threads =
        2; /* the number of threads is the choice's, the setting is not */
    rows[3].kv_type = KERN_KV_q8_0;
    rows[2].n_threads = 1;
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why, "on the text copy (95 % interval 2.00 to 2.25)."));
    rows[3].n_threads = 1;
    rows[2].n_threads = 2;
    rows[1].spec_accept = 0;
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why, "has no draft token accepted on the text copy"));
    assert_null(strstr(rec.why, "times as fast"));
    rows[1].spec_accept = NAN;
    rows[1].spec_guessed = 0;
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why, "finds no drafts on the text copy"));
    rows[1].spec_accept = 0.5;
    rows[1].spec_guessed = 40;
    rows[1].spec_speedup_lo = rows[1].spec_speedup_hi = NAN;
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why, "in speed on the text copy (x 2.12, no interval)"));
    assert_int_equal(choose(rows, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_null(strstr(rec.why, "Speculative"));
}

/* Where it was not measured, by the steps of several sequences with the same threads: 2
 * take 1.1 times the time of one, 4 take 1.2 times. */
static void speculation_is_expected(void **state)
{
    static const struct {
        int n, n_threads;
        double tok_per_s;
    } together[] = {{2, 2, 8 / 1.1}, {4, 2, 16 / 1.2}, {4, 1, 1}, {16, 2, 1}};
    struct row rows[5];

    (void)state;
    rows[0] = point("Q4_0", 50, 2, 0, 4.0);
    for (int i = 0; i < 4; i++) {
        rows[i + 1] =
            point("Q4_0", 50, together[i].n_threads, 0, together[i].tok_per_s);
        rows[i + 1].n_sequences = together[i].n;
        snprintf(rows[i + 1].point, sizeof rows[i + 1].point, "%d", i);
    }
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    /* (1 + .5 + .25 + .125) / 1.2, (1 + .8 + .64 + .512) / 1.2 */
    assert_non_null(strstr(rec.why, " Speculative decoding would make it 1.56 times as "
                                    "fast where 50 % of guesses are right, and 2.46 "
                                    "times where 80 % are"));
    /* (1 + .5 + .25) / 1.35, (1 + .8 + .64 + .512) / 1.5 */
    assert_non_null(strstr(rec.why, "by a draft model whose tokens take 10 % of the "
                                    "time 1.30 and 1.97 times."));
    /* 8, the most, take what 4 do: (1 + .5 + ... + .5^7) / 1.2, and with .8 */
    rows[4].n_sequences = 8;
    rows[4].tok_per_s = 32 / 1.2;
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why, "1.66 times as fast where 50 % of guesses are "
                                    "right, and 3.47 times where 80 % are"));
    /* 1.5 / 1.4, (1 + .8 + .64 + .512) / 1.9 */
    rows[1].tok_per_s = 8 / 1.4;
    rows[2].tok_per_s = 16 / 1.9;
    rows[4].tok_per_s = 1;
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why, "1.07 times as fast where 50 % of guesses are "
                                    "right, and 1.55 times where 80 % are"));
    rows[1].tok_per_s = rows[2].tok_per_s = 4;
    assert_int_equal(choose(rows, 5, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why, "would not make it faster"));
    assert_int_equal(choose(rows, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_null(strstr(rec.why, "Speculative"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speculation_is_reported),
        cmocka_unit_test(speculation_is_expected),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
