/* SPDX-License-Identifier: MIT
 *
 * test_recommend.c - the choice among rows, rule by rule
 */
#include "tests/support/test.h"

#include <math.h>

#include "tests/support/recommend_rows.h"

static void the_fastest_wins(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_K_M", 53, 2, 0, 3.0),
                         point("Q4_0", 50, 1, 0, 2.0)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_int_equal(rec.best.n_threads, 2);
    assert_false(rec.tie);
    assert_true(rec.has_runner_up);
    assert_string_equal(rec.runner_up.quant, "Q4_K_M");
    assert_int_equal(rec.n_excluded, 0);
    assert_string_equal(rec.excluded, "");
    assert_non_null(strstr(rec.why, "4.00 tok/s"));
    assert_non_null(strstr(rec.why, "3.92 to 4.08"));
    assert_non_null(strstr(rec.why, "within the limit of 6.00 GiB"));
    assert_non_null(strstr(rec.why, "25 % slower"));

    /* a higher median with a wide interval is neither faster nor equal */
    rows[1] = point("MXFP4", 53, 2, 0, 4.5);
    rows[1].tok_per_s_lo = 2;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_false(rec.tie);
    assert_true(rec.p_best > 0.3 && rec.p_best < 0.5 && rec.regret > 0.03);
    assert_non_null(strstr(rec.answer, "so measure longer to be sure"));
    assert_non_null(strstr(rec.why, "has a median 12 % higher, but may be slower"));
}

static void a_tie_prefers_the_larger_quantisation(void **state)
{
    const struct row rows[] = {point("Q4_0", 50, 2, 0, 4.00),
                               point("Q4_K_M", 53, 2, 0, 3.95),
                               point("Q6_K", 72, 2, 0, 2.00)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_true(rec.tie);
    assert_string_equal(rec.runner_up.quant, "Q4_0");
    assert_non_null(
        strstr(rec.why, "Tie: Q4_0 with 2 threads (4.00 tok/s) is within 3 %"));
    assert_non_null(strstr(rec.why, "larger quantisation was preferred, which costs "));
    assert_non_null(strstr(rec.why, "on average (the limit is 3 %)"));
    assert_non_null(
        strstr(rec.answer, "The probability that this setting is the fastest is "));
}

static void a_tie_prefers_fewer_threads(void **state)
{
    const struct row rows[] = {point("Q4_0", 50, 4, 0, 4.00),
                               point("Q4_0", 50, 2, 0, 3.95),
                               point("Q4_0", 50, 3, 0, 3.99)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_true(rec.tie);
    assert_non_null(strstr(rec.why, "fewer threads were preferred"));
}

/* The same, with a known divergence. */
static struct row known(const char *quant, int64_t file_bytes, double tps, double kl)
{
    struct row r = point(quant, file_bytes, 2, 0, tps);

    strcpy(r.reference, "m-f16");
    r.kv_type = KERN_KV_f16;
    r.kl_mean = kl;
    r.top1_pct = 100 - 100 * kl;
    return r;
}

static void what_diverges_too_much_is_left_out(void **state)
{
    struct row rows[] = {known("Q2_K", 30, 8.0, 0.2), known("Q4_K_M", 53, 4.0, 0.02),
                         known("Q6_K", 72, 3.0, 0.001)};
    const struct recommend_params any = {.ctx = 0}, strict = {.ctx = 0, .max_kl = 0.01},
                                  lax = {.ctx = 0, .max_kl = 1},
                                  perfect = {.ctx = 0, .max_kl = 1e-6};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_non_null(
        strstr(rec.why, "KL 0.0200 from m-f16, the same top token in 98.0"));
    assert_non_null(strstr(rec.why, "25 % slower (KL 0.0010)"));
    assert_string_equal(rec.excluded, "1 diverging too much");
    assert_int_equal(choose(rows, COUNT(rows), strict), ST_OK);
    assert_string_equal(rec.best.quant, "Q6_K");
    assert_int_equal(choose(rows, COUNT(rows), lax), ST_OK);
    assert_string_equal(rec.best.quant, "Q2_K");
    assert_int_equal(choose(rows, COUNT(rows), perfect), ST_CHECK);
    assert_non_null(strstr(err.msg, "closest is Q6_K with 2 threads: it diverges by "
                                    "0.0010, the maximum is 1e-06"));

    /* where nothing else qualifies it is used, and said */
    assert_int_equal(choose(rows, 1, any), ST_OK);
    assert_string_equal(rec.best.quant, "Q2_K");
    assert_non_null(strstr(rec.why, "Careful: it diverges by more than 0.05"));

    /* what is not known is no reason, unless the user gave a limit */
    rows[0].kl_mean = NAN;
    strcpy(rows[0].quant, "Q4_0");
    assert_int_equal(choose(rows, COUNT(rows), any), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_null(strstr(rec.why, "KL 0.2"));
    assert_int_equal(choose(rows, COUNT(rows), lax), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_K_M");
    assert_string_equal(rec.excluded, "1 without a known divergence");
}

static void a_tie_prefers_less_divergence(void **state)
{
    struct row rows[] = {known("Q4_0", 50, 4.00, 0.02), known("Q5_0", 60, 3.98, 0.03)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");

    /* a KV cache of fewer bits is a quantisation like another */
    rows[1] = rows[0];
    rows[1].kv_type = KERN_KV_q4_0;
    rows[1].kl_mean = 0.04;
    rows[1].tok_per_s = 4.05;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_true(rec.tie);
    assert_int_equal(rec.best.kv_type, KERN_KV_f16);
    /* divergences from different references say nothing: the larger file */
    rows[1] = known("Q5_0", 60, 3.98, 0.03);
    strcpy(rows[1].reference, "other-f16");
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q5_0");
}

static void the_nearest_depth_at_or_above_counts(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 5.0), point("Q4_0", 50, 2, 1024, 4.0),
                         point("Q4_0", 50, 2, 4096, 3.0)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 1000}),
                     ST_OK);
    assert_int_equal(rec.best.ctx, 1024);
    assert_false(rec.has_runner_up); /* 4096 is the same setting */
    assert_string_equal(rec.excluded, "1 at less context");

    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = -1}),
                     ST_OK);
    assert_int_equal(rec.best.ctx, 4096);

    /* the depth itself is deep enough, even where a deeper one was faster */
    rows[2] = point("Q4_0", 50, 2, 4096, 6.0);
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 1024}),
                     ST_OK);
    assert_int_equal(rec.best.ctx, 1024);

    /* where the nearer depth did not finish, the deeper one serves */
    rows[1].status = ROW_STATUS_INTERRUPTED;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 1000}),
                     ST_OK);
    assert_int_equal(rec.best.ctx, 4096);

    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 5000}),
                     ST_CHECK);
    assert_non_null(strstr(err.msg, "measured at depth 4096 and not at 5000"));
}

static void unfinished_points_are_left_out(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 9), point("Q4_K_M", 53, 2, 0, 8),
                         point("Q5_K", 60, 2, 0, NAN), point("Q6_K", 72, 2, 0, 1)};

    (void)state;
    rows[0].status = ROW_STATUS_PARTIAL;
    rows[1].status = ROW_STATUS_ERROR;
    rows[2].status = ROW_STATUS_OOM;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q6_K");
    assert_int_equal(rec.n_excluded, 3);
    assert_string_equal(rec.excluded, "1 failed, 1 that did not fit the memory, 1 "
                                      "not finished in time");

    assert_int_equal(choose(rows + 2, 1, (struct recommend_params){.ctx = 0}),
                     ST_CHECK);
    assert_non_null(strstr(err.msg, "Q5_K with 2 threads: it ended as oom"));
    assert_int_equal(err.code, ST_CHECK);
}

static void memory_is_a_limit(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4), point("Q8_0", 94, 2, 0, 5)};

    (void)state;
    rows[1].mem_limit_bytes = FIELD_NO_INT; /* measured without a sandbox */
    rows[1].mem_peak_bytes = 9 * GIB;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.quant, "Q8_0");

    const struct recommend_params six = {.ctx = 0, .mem_limit = 6 * (uint64_t)GIB};
    assert_int_equal(choose(rows, 2, six), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_string_equal(rec.excluded, "1 over the memory limit");

    const struct recommend_params one = {.ctx = 0, .mem_limit = (uint64_t)GIB};
    assert_int_equal(choose(rows, 2, one), ST_CHECK);
    assert_non_null(strstr(err.msg,
                           "needs up to 5.00 GiB of 1.00 GiB (as charged, page "
                           "cache included)"));
}

/* What was charged has page cache in it, which a smaller limit does not have. */
static void memory_needed_is_not_memory_charged(void **state)
{
    const struct recommend_params three = {.ctx = 0, .mem_limit = 3 * (uint64_t)GIB};
    struct row r = point("Q4_0", 50, 2, 0, 4);

    (void)state;
    r.mem_resident_bytes = 2 * GIB;
    r.mem_planned_bytes = 2 * GIB - ((int64_t)20 << 20);
    assert_int_equal(choose(&r, 1, three), ST_OK);
    assert_non_null(
        strstr(rec.why, "it needs 2.00 GiB of memory, within the limit of 3.00 GiB."));
    assert_int_equal(rec.memory.left_bytes, GIB);
    assert_false(rec.memory.is_lower_bound);

    const struct recommend_params two = {.ctx = 0, .mem_limit = 2 * (uint64_t)GIB};
    assert_int_equal(choose(&r, 1, two), ST_CHECK); /* bench would not try it */
    assert_non_null(strstr(err.msg, "it needs 2.00 GiB of 2.00 GiB"));
    r.mem_planned_bytes = FIELD_NO_INT;
    assert_int_equal(choose(&r, 1, two), ST_OK);

    /* Within its own limit it did run, from disk. */
    r.mem_resident_bytes = 7 * GIB;
    r.mem_planned_bytes = 7 * GIB;
    r.limiter = LIMITER_PAGING;
    assert_int_equal(choose(&r, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.why,
                           "it needs 7.00 GiB of memory, more than the limit of "
                           "6.00 GiB, so it pages from disk."));
    assert_int_equal(rec.memory.left_bytes, 0);
    assert_int_equal(choose(&r, 1, three), ST_CHECK);
}

static void threads_stay_within_the_machine(void **state)
{
    const struct row rows[] = {point("Q4_0", 50, 4, 0, 8), point("Q4_0", 50, 2, 0, 4)};

    (void)state;
    assert_int_equal(
        choose(rows, 2, (struct recommend_params){.ctx = 0, .max_threads = 2}), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_string_equal(rec.excluded, "1 with more threads than CPUs");
    assert_int_equal(
        choose(rows, 1, (struct recommend_params){.ctx = 0, .max_threads = 2}),
        ST_CHECK);
    assert_non_null(strstr(err.msg, "more than the 2"));
}

static void too_slow_is_judged_by_the_lower_bound(void **state)
{
    const struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0),
                               point("Q4_0", 50, 1, 0, 2.0)};

    (void)state;
    assert_int_equal(
        choose(rows, 2, (struct recommend_params){.ctx = 0, .min_tps = 3.9}), ST_OK);
    assert_string_equal(rec.excluded, "1 too slow");
    /* 4.0 is the median, but only 3.92 was shown */
    assert_int_equal(
        choose(rows, 2, (struct recommend_params){.ctx = 0, .min_tps = 3.95}),
        ST_CHECK);
    assert_non_null(strstr(err.msg, "4.00 tok/s at depth 0 (shown: at least 3.92)"));
}

static void models_and_kinds_are_kept_apart(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_0", 5, 2, 0, 40.0),
                         point("Q4_0", 50, 2, 0, 99.0)};

    (void)state;
    strcpy(rows[1].model, "small");
    rows[2].kind = POINT_PREFILL;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0, .model = "m"}),
                     ST_OK);
    assert_float_equal(rec.best.tok_per_s, 4.0, 0);
    assert_int_equal(rec.n_excluded, 0);
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.model, "small");

    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0, .model = "x"}),
                     ST_CHECK);
    assert_non_null(strstr(err.msg, "no decode point of x"));
    assert_int_equal(choose(rows, 0, (struct recommend_params){.ctx = -1, .model = ""}),
                     ST_CHECK);
    assert_non_null(strstr(err.msg, "no decode point was measured"));
}

/* Among several models the one with the fastest setting, whatever its place. */
static void the_fastest_model_is_taken(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 9), point("Q4_0", 50, 2, 0, 5)};

    (void)state;
    strcpy(rows[0].model, "a");
    strcpy(rows[1].model, "b");
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.model, "a");
    rows[1] = point("Q4_0", 50, 2, 0, 12);
    strcpy(rows[1].model, "b");
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.best.model, "b");
}

static void several_sequences_are_no_user(void **state)
{
    struct row rows[] = {point("Q4_0", 4 * GIB, 2, 0, 10),
                         point("Q4_0", 4 * GIB, 2, 0, 30)};

    (void)state;
    rows[1].n_sequences = 8;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){0}), ST_OK);
    assert_float_equal(rec.best.tok_per_s, 10.0, 0);
    assert_int_not_equal(choose(rows + 1, 1, (struct recommend_params){0}), ST_OK);
    assert_non_null(strstr(err.msg, "is of one sequence alone"));
    assert_non_null(strstr(err.msg, "--sequences 1"));
}

/* Nor are steps that read another user's prompt. */
static void chunks_are_no_user(void **state)
{
    struct row rows[] = {point("Q4_0", 4 * GIB, 2, 0, 10),
                         point("Q4_0", 4 * GIB, 2, 0, 30)};

    (void)state;
    rows[1].n_chunk = 8;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){0}), ST_OK);
    assert_float_equal(rec.best.tok_per_s, 10.0, 0);
    assert_false(row_is_plain(&rows[1]));
}

/* Without an interval a speed is known to 20 %. */
static void rows_without_an_interval_count(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_0", 50, 1, 0, 2.0)};

    (void)state;
    rows[0].tok_per_s_lo = rows[0].tok_per_s_hi = NAN;
    rows[0].mem_peak_bytes = FIELD_NO_INT;
    rows[0].mbu = NAN;
    assert_int_equal(
        choose(rows, 2, (struct recommend_params){.ctx = 0, .min_tps = 3.2}), ST_OK);
    assert_float_equal(rec.best.tok_per_s, 4.0, 0);
    assert_null(strstr(rec.why, "memory"));
    /* a median alone does not show that a floor is reached */
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0, .min_tps = 4}),
                     ST_CHECK);
    assert_non_null(strstr(err.msg, "4.00 tok/s at depth 0 (shown: at least 3.29)"));
}

/* Intervals that touch are no evidence that two speeds are equal. */
static void a_preference_has_a_price_limit(void **state)
{
    const struct recommend_params any = {.ctx = 0};
    struct row rows[] = {with_interval(point("Q4_0", 50, 2, 0, 10.0), 9.95, 10.05),
                         with_interval(point("Q4_0", 50, 1, 0, 6.0), 4.0, 9.96)};

    (void)state;
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_false(rec.tie);
    assert_true(rec.p_best > 0.95 && rec.p_best < 1 && rec.regret < 0.01);

    rows[1] = with_interval(point("Q4_0", 50, 1, 0, 9.6), 9.2, 10.1); /* 4 % slower */
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    rows[1] = with_interval(point("Q4_0", 50, 1, 0, 9.8), 9.75, 9.85); /* 2 % slower */
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_int_equal(rec.best.n_threads, 1);
    assert_true(rec.tie);
    rows[1] = with_interval(point("Q4_0", 50, 1, 0, 9.75), 7, 13.6); /* unsure */
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_false(rec.tie);
    rows[1] = with_interval(rows[1], NAN, NAN); /* of unknown spread */
    assert_int_equal(choose(rows, 2, any), ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
}

static void the_runner_up_is_another_quantisation(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 4, 0, 10), point("Q4_0", 50, 2, 0, 8),
                         point("Q6_K", 72, 4, 0, 6), point("Q4_0", 50, 4, 0, 5)};

    (void)state;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_string_equal(rec.runner_up.quant, "Q6_K");
    assert_float_equal(rec.runner_up_tok_per_s, 6, 0);
    assert_int_equal(rec.runner_up_from_ctx, -1);
    rows[3].kv_type = KERN_KV_q4_0;
    rows[2] = rows[3];
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.runner_up.kv_type, KERN_KV_q4_0);
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.runner_up.n_threads, 2);
}

static void nothing_overflows(void **state)
{
    struct row rows[3] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_0", 51, 1, 0, 4.0),
                          point("Q4_0", 52, 1, 0, 3.0)};
    json_t *json;

    (void)state;
    for (int i = 0; i < 3; i++) {
        memset(rows[i].model, i == 2 ? 'b' : 'a', sizeof rows[i].model - 1);
        memset(rows[i].quant, 'x', sizeof rows[i].quant - 1);
        memset(rows[i].validity, '!', sizeof rows[i].validity - 1);
    }
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_true(strlen(rec.why) < sizeof rec.why);
    json = recommend_json(&rec);
    assert_non_null(json);
    assert_true(json_is_true(json_object_get(json, "tie")));
    assert_true(isnan(rec.p_best)); /* all are disturbed */
    assert_true(json_is_null(json_object_get(json, "p_best")));
    assert_float_equal(json_real_value(json_object_get(json, "regret")), rec.regret, 0);
    assert_true(json_is_null(json_object_get(json, "best_from_ctx")));
    json_decref(json);
    assert_int_equal(
        choose(rows, 3, (struct recommend_params){.ctx = 0, .min_tps = 100}), ST_CHECK);
}

/* A depth beyond what the model was made for is as fast, and worth nothing. */
static void no_context_is_beyond_the_model(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 5.0), point("Q4_0", 50, 2, 4096, 4.0)};

    (void)state;
    rows[0].model_ctx = rows[1].model_ctx = 2048;
    rows[0].kv_bytes_per_token = rows[1].kv_bytes_per_token = 1024;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.best.ctx, 4096);
    assert_int_equal(row_context(&rec.best), 2048);
    assert_int_equal(rec.memory.max_ctx, 2048);
    assert_true(rec.memory.by_model);

    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 2048}), ST_OK);
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 2049}), ST_CHECK);
    assert_non_null(
        strstr(err.msg, "made for contexts of 2048 tokens, and not of 2049"));

    /* its own depth comes before one beyond it */
    rows[0].ctx = 2048;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.best.ctx, 2048);

    /* a window of the KV cache has no end */
    rows[1].kv_window = 1024;
    assert_int_equal(choose(rows + 1, 1, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(row_context(&rec.best), 4096);
    assert_int_equal(choose(rows + 1, 1, (struct recommend_params){.ctx = 4000}),
                     ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_fastest_wins),
        cmocka_unit_test(a_tie_prefers_the_larger_quantisation),
        cmocka_unit_test(a_tie_prefers_fewer_threads),
        cmocka_unit_test(the_nearest_depth_at_or_above_counts),
        cmocka_unit_test(unfinished_points_are_left_out),
        cmocka_unit_test(memory_is_a_limit),
        cmocka_unit_test(memory_needed_is_not_memory_charged),
        cmocka_unit_test(threads_stay_within_the_machine),
        cmocka_unit_test(too_slow_is_judged_by_the_lower_bound),
        cmocka_unit_test(models_and_kinds_are_kept_apart),
        cmocka_unit_test(the_fastest_model_is_taken),
        cmocka_unit_test(several_sequences_are_no_user),
        cmocka_unit_test(chunks_are_no_user),
        cmocka_unit_test(rows_without_an_interval_count),
        cmocka_unit_test(what_diverges_too_much_is_left_out),
        cmocka_unit_test(a_tie_prefers_less_divergence),
        cmocka_unit_test(a_preference_has_a_price_limit),
        cmocka_unit_test(the_runner_up_is_another_quantisation),
        cmocka_unit_test(nothing_overflows),
        cmocka_unit_test(no_context_is_beyond_the_model),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
