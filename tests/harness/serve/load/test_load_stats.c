/* SPDX-License-Identifier: MIT
 *
 * test_load_stats.c - warm-up, quantiles and arrivals of known distributions
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/stats/stats.h"
#include "harness/serve/load/load_stats.h"
#include "harness/serve/load/prompts.h"
#include "harness/serve/load/server_counts.h"

static uint64_t seed = 7;

static double uniform(void)
{
    return (double)(test_random(&seed) >> 11) * 0x1p-53;
}

/* ---- warm-up --------------------------------------------------------------------- */

static void a_constant_series_has_no_warm_up(void **state)
{
    double v[60];
    bool settled;

    (void)state;
    for (size_t i = 0; i < 60; i++)
        v[i] = 1.5e9;
    assert_int_equal(load_mser5(v, 60, &settled), 0);
    assert_true(settled);
    assert_int_equal(load_mser5(v, LOAD_MSER_MIN - 1, &settled), 0);
    assert_int_equal(load_mser5(v, 0, &settled), 0);
}

/* The first 40 of 200 are slower by ten standard deviations: about they are cut. */
static void a_slow_beginning_is_cut(void **state)
{
    int n_unsettled = 0; /* by chance */

    (void)state;
    for (int k = 0; k < 50; k++) {
        double v[200];
        bool settled;

        for (size_t i = 0; i < 200; i++)
            v[i] = 10 + uniform() + (i < 40 ? 3 : 0);
        const size_t cut = load_mser5(v, 200, &settled);

        n_unsettled += !settled;
        assert_in_range(cut, 40, 100); /* and what noise adds */
        assert_int_equal(cut % 5, 0);
    }
    assert_in_range(n_unsettled, 0, 5);
}

/* Of noise without a trend little is cut. */
static void noise_is_kept(void **state)
{
    size_t n_cut = 0;

    (void)state;
    for (int k = 0; k < 200; k++) {
        double v[60];
        bool settled;

        for (size_t i = 0; i < 60; i++)
            v[i] = uniform();
        n_cut += load_mser5(v, 60, &settled);
    }
    assert_in_range(n_cut, 0, 200 * 60 / 5);
}

/* Nor because of moments in which everything took longer. */
static void disturbances_are_no_warm_up(void **state)
{
    (void)state;
    for (size_t at = 5; at < 200; at += 5) {
        double v[200];
        bool settled;

        for (size_t i = 0; i < 200; i++)
            v[i] = 1 + 0.001 * uniform() + (i >= at && i < at + 4 ? 0.1 : 0);
        assert_true(load_mser5(v, 200, &settled) <= 15);
        assert_true(settled);
    }
}

static void a_trend_does_not_settle(void **state)
{
    double v[200];
    bool settled;

    (void)state;
    for (size_t i = 0; i < 200; i++)
        v[i] = i < 180 ? (double)i : 180;
    assert_int_equal(load_mser5(v, 200, &settled), 100);
    assert_false(settled);
}

/* ---- quantiles ------------------------------------------------------------------- */

static void quantiles_need_enough_values(void **state)
{
    double v[300];

    (void)state;
    assert_int_equal(load_quantile_min(0.5), 5);
    assert_int_equal(load_quantile_min(0.9), 29);
    assert_int_equal(load_quantile_min(0.99), 299);
    for (size_t i = 0; i < 300; i++)
        v[i] = (double)i;
    assert_true(isnan(load_quantile(v, 28, 0.9).value));
    assert_true(isfinite(load_quantile(v, 29, 0.9).value));
    assert_true(
        isnan(load_quantile(v, 29, 0.9).hi)); /* the largest is not surely above */
    assert_true(isnan(load_quantile(v, 298, 0.99).value));
    assert_true(isfinite(load_quantile(v, 299, 0.99).value));
    assert_true(isnan(load_quantile(v, 0, 0.5).value));
}

/* Of 1,000 series of a uniform distribution the interval misses its quantile in 5 %, or
 * less as ranks are whole. */
static void intervals_hold_the_quantile(void **state)
{
    static const double q[] = {0.5, 0.9, 0.99};
    static const size_t sizes[] = {60, 200, 1000};

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        int n_missed = 0;

        for (int i = 0; i < 1000; i++) {
            double v[1000];

            for (size_t j = 0; j < sizes[k]; j++)
                v[j] = uniform();
            stats_sort(v, sizes[k]);
            const struct load_quantile x = load_quantile(v, sizes[k], q[k]);

            n_missed += x.lo > q[k] || x.hi < q[k];
        }
        assert_in_range(n_missed, 1, 70);
    }
}

static void failures_are_infinite(void **state)
{
    double v[100];

    (void)state;
    for (size_t i = 0; i < 100; i++)
        v[i] = i < 88 ? 1 : INFINITY;
    assert_true(load_quantile(v, 100, 0.5).value == 1);
    assert_true(isnan(load_quantile(v, 100, 0.9).value));
    assert_true(isnan(load_quantile(v, 100, 0.9).hi));
}

static void many_values_take_no_time(void **state)
{
    const size_t n = 2000000;
    double *v = malloc(n * sizeof *v);

    (void)state;
    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = (double)i / (double)n;
    const struct load_quantile x = load_quantile(v, n, 0.9);

    assert_true(fabs(x.value - 0.9) < 1e-5);
    /* the normal distribution's 1.96 standard errors */
    assert_true(fabs(x.hi - 0.9 - 1.96 * sqrt(0.09 / (double)n)) < 1e-5);
    assert_true(fabs(0.9 - x.lo - 1.96 * sqrt(0.09 / (double)n)) < 1e-5);
    free(v);
}

/* ---- arrivals -------------------------------------------------------------------- */

static void arrivals_are_poisson(void **state)
{
    enum { N = 20000 };
    static double at[N];
    double sum = 0, squares = 0;

    (void)state;
    load_poisson(at, N, 4, 11);
    for (int i = 1; i < N; i++) {
        const double gap = at[i] - at[i - 1];

        assert_true(gap > 0);
        sum += gap;
        squares += gap * gap;
    }
    const double mean = sum / (N - 1);

    assert_true(fabs(mean - 0.25) < 0.25 * 0.03);
    assert_true(fabs(sqrt(squares / (N - 1) - mean * mean) - 0.25) < 0.25 * 0.05);
}

/* ---- lengths and prompts --------------------------------------------------------- */

static void lengths_are_as_asked(void **state)
{
    static const struct {
        const char *text;
        double mean, tolerance;
    } good[] = {{"512", 512, 0}, {"100-300", 200, 3}, {"lognormal:400:0.5", 453.3, 10}};
    static const char *const wrong[] = {"",       "0",           "-5",           "x",
                                        "5x",     "300-100",     "1-",           "1e99",
                                        "131073", "lognormal:4", "lognormal:4:9"};
    struct err err = ERR_INIT;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct load_dist d;
        char text[40];
        double sum = 0;

        assert_int_equal(load_dist_parse(&d, good[i].text, "x", &err), ST_OK);
        assert_string_equal(load_dist_text(&d, text, sizeof text), good[i].text);
        for (int k = 0; k < 20000; k++)
            sum += load_dist_draw(&d, &seed);
        assert_true(fabs(sum / 20000 - good[i].mean) <= good[i].tolerance);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct load_dist d;

        err = (struct err)ERR_INIT;
        assert_int_equal(load_dist_parse(&d, wrong[i], "x", &err), ST_USAGE);
    }
}

static int words_in(const char *body)
{
    const char *at = strstr(body, "\"content\":\"");
    int n = 1;

    assert_non_null(at);
    for (at += 11; *at != '"'; at++)
        n += *at == ' ';
    return n;
}

static enum status body_of(struct load_prompts *p, size_t index, char **body,
                           int *n_requested)
{
    struct load_record r = {.index = index};
    struct err err = ERR_INIT;
    const enum status st = load_prompts_body(p, 0, &r, body, &err);

    *n_requested = r.n_requested;
    return st;
}

static void prompts_differ_and_share_their_prefix(void **state)
{
    struct load_prompts p = {.prompt = {LOAD_FIXED, 100, 100},
                             .output = {LOAD_UNIFORM, 5, 9},
                             .n_prefix = 40,
                             .api = LOAD_CHAT,
                             .model = "m",
                             .seed = 3,
                             .tokens_per_word = 1};
    char *body[50], *again;
    int n_requested;

    (void)state;
    for (size_t i = 0; i < 50; i++) {
        const char *text;
        size_t n = 0;

        assert_int_equal(body_of(&p, i, &body[i], &n_requested), ST_OK);
        assert_in_range(n_requested, 5, 9);
        assert_int_equal(words_in(body[i]), 100);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(body[i], body[k]);
        text = strstr(body[i], "\"content\":\"");
        for (int words = 0; words < 40; n++)
            words += text[n] == ' ';
        assert_memory_equal(text, strstr(body[0], "\"content\":\""), n);
    }
    assert_int_equal(body_of(&p, 7, &again, &n_requested), ST_OK);
    assert_string_equal(again, body[7]);
    free(again);
    for (size_t i = 0; i < 50; i++)
        free(body[i]);

    /* Two tokens a word, and 20 for the server's template. */
    p.n_prefix = 0;
    assert_true(load_prompts_calibrate(&p, 19, 58, 211, 442));
    assert_int_equal(body_of(&p, 0, &again, &n_requested), ST_OK);
    assert_int_equal(words_in(again), 40);
    free(again);
    /* Chance may give the short prompt fewer tokens than its words have on average. */
    assert_true(load_prompts_calibrate(&p, 20, 30, 200, 410));
    assert_true(fabs(p.tokens_per_word - 2) < 1e-9 && p.n_overhead == 0);
    assert_false(load_prompts_calibrate(&p, 19, -1, 211, -1));
    assert_false(load_prompts_calibrate(&p, 19, 50, 211, 50));
}

/* Two runs with the same seed ask for the same lengths, and for nothing that a server
 * may have kept of the other: with no word in common at the beginning. */
static void runs_share_no_prompt(void **state)
{
    struct load_prompts p = {.prompt = {LOAD_UNIFORM, 60, 100},
                             .output = {LOAD_UNIFORM, 5, 9},
                             .api = LOAD_CHAT,
                             .model = "m",
                             .seed = 3,
                             .tokens_per_word = 1};

    (void)state;
    for (p.n_prefix = 0; p.n_prefix <= 30; p.n_prefix += 30)
        for (size_t i = 0; i < 20; i++) {
            char *body[2];
            int n_requested[2];

            for (int k = 0; k < 2; k++) {
                p.salt = k ? UINT64_C(0x123456789abcdef) : 0;
                assert_int_equal(body_of(&p, i, &body[k], &n_requested[k]), ST_OK);
            }
            assert_int_equal(n_requested[0], n_requested[1]);
            assert_int_equal(words_in(body[0]), words_in(body[1]));
            /* eleven words or the prefix: 20 bytes are six words at most */
            assert_true(strncmp(strstr(body[0], "\"content\":\""),
                                strstr(body[1], "\"content\":\""), 11 + 20) != 0);
            free(body[0]);
            free(body[1]);
        }
}

/* What a server may call cached of a prompt that it cannot know. */
static void cold_prompts(void **state)
{
    struct load_prompts p = {.tokens_per_word = 2, .n_overhead = 20, .n_known = 25};

    (void)state;
    assert_true(load_prompts_cold(&p) == 25 + 2 * LOAD_UNIQUE_WORDS);
    p.n_prefix = 300;
    assert_true(load_prompts_cold(&p) == 25 + 150);
}

/* Counters of all kinds of servers; labels are added up, and other lines are nothing.
 */
static void counters_of_servers(void **state)
{
    static const char *const texts[] = {
        "# HELP x\nslm_prompt_tokens_total 10\nslm_cached_tokens_total 4\n"
        "slm_generated_tokens_total 7\nslm_time_to_first_token_seconds_sum 3\n"
        "slm_time_to_first_token_seconds_count 2\n",
        "vllm:prompt_tokens_total{m=\"a}\\\" \"} 4.0 1700000000\n"
        "vllm:prompt_tokens_total{m=\"b\"} 6.0\nvllm:prefix_cache_hits_total{m=\"b\"} "
        "4\n"
        "vllm:prefix_cache_queries_total 9\nvllm:generation_tokens_total 7\n"
        "vllm:time_to_first_token_seconds_sum 3\n"
        "vllm:time_to_first_token_seconds_count 2",
    };
    static const char large[] = "slm_prompt_tokens_total 9e14\n";
    enum { N_LINES = 20000 };
    struct server_counts zero, c;
    struct row row;
    char *text;

    (void)state;
    server_counts_read(&zero, "");
    assert_true(isnan(zero.v[COUNT_PROMPT]));
    for (int i = 0; i < N_COUNTS; i++)
        zero.v[i] = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        server_counts_read(&c, texts[i]);
        row_init(&row);
        server_counts_fill(&row, &zero, &c);
        assert_int_equal(row.server_prompt_tokens, 10);
        assert_int_equal(row.server_cached_tokens, 4);
        assert_int_equal(row.server_output_tokens, 7);
        assert_int_equal(row.server_preemptions, FIELD_NO_INT);
        assert_true(row.server_ttft_s == 1.5);
    }
    server_counts_fill(&row, &c, &zero); /* it was started again */
    assert_int_equal(row.server_prompt_tokens, FIELD_NO_INT);
    server_counts_read(&c,
                       "llamacpp:prompt_tokens_total 5e300\nslm_prompt_tokens_total{"
                       "\nslm_generated_tokens_total -1\nx 1\nslm_prompt_tokens_");
    assert_true(isnan(c.v[COUNT_PROMPT]) && isnan(c.v[COUNT_OUTPUT]));
    /* many of them, which no integer holds together */
    text = malloc(N_LINES * sizeof large);
    for (size_t i = 0; i < N_LINES; i++)
        memcpy(text + i * (sizeof large - 1), large, sizeof large);
    server_counts_read(&c, text);
    server_counts_fill(&row, &zero, &c);
    assert_int_equal(row.server_prompt_tokens, FIELD_NO_INT);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_constant_series_has_no_warm_up),
        cmocka_unit_test(a_slow_beginning_is_cut),
        cmocka_unit_test(noise_is_kept),
        cmocka_unit_test(disturbances_are_no_warm_up),
        cmocka_unit_test(a_trend_does_not_settle),
        cmocka_unit_test(quantiles_need_enough_values),
        cmocka_unit_test(intervals_hold_the_quantile),
        cmocka_unit_test(failures_are_infinite),
        cmocka_unit_test(many_values_take_no_time),
        cmocka_unit_test(arrivals_are_poisson),
        cmocka_unit_test(lengths_are_as_asked),
        cmocka_unit_test(prompts_differ_and_share_their_prefix),
        cmocka_unit_test(runs_share_no_prompt),
        cmocka_unit_test(cold_prompts),
        cmocka_unit_test(counters_of_servers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
