/* SPDX-License-Identifier: MIT
 *
 * test_recommend_answer.c - prompts, memory, steps of quality and several models in a
 * recommendation
 */
#include "tests/support/test.h"

#include "tests/support/recommend_rows.h"

/* A good prefill row of the setting of point(). */
static struct row prefill(const char *quant, int64_t file_bytes, int threads, int n,
                          double tps)
{
    struct row r = point(quant, file_bytes, threads, 0, tps);

    r.kind = POINT_PREFILL;
    r.ctx = FIELD_NO_INT;
    r.n_prompt = n;
    r.load_s = 3;
    r.ttft_warm_s = n / tps;
    r.ttft_s = r.load_s + r.ttft_warm_s;
    return r;
}

static void a_prompt_has_threads_and_times_of_its_own(void **state)
{
    struct row rows[] = {
        point("Q4_0", 50, 2, 0, 8),      point("Q4_0", 50, 1, 0, 6),
        prefill("Q4_0", 50, 2, 512, 30), prefill("Q4_0", 50, 4, 512, 50),
        prefill("Q4_0", 50, 2, 128, 40), prefill("Q8_0", 90, 8, 512, 99)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_int_equal(rec.best.n_threads, 2);
    assert_int_equal(rec.prompt.n_prompt, 512); /* the longest */
    assert_int_equal(rec.prompt.n_threads, 4);
    assert_float_equal(rec.prompt.tok_per_s, 50, 0);
    assert_float_equal(rec.prompt.warm_s, 10.24, 1e-9);
    assert_float_equal(rec.prompt.cold_s, 13.24, 1e-9);
    assert_float_equal(rec.prompt.warm_max_s, 512 / 49.0, 1e-6);
    assert_non_null(strstr(rec.answer,
                           "A prompt of 512 tokens takes 10.2 s until the first token, "
                           "13.2 s with loading the model"));
    assert_non_null(strstr(rec.answer, "prefill with 4 threads: 50.0 tok/s)"));

    /* another model's prompts are not this one's */
    strcpy(rows[5].model, "other");
    rows[5].n_prompt = 2048;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.model = "m"}),
                     ST_OK);
    assert_int_equal(rec.prompt.n_prompt, 512);

    rows[5] = prefill("Q8_0", 90, 8, 512, 99);

    /* a longer one than was measured */
    assert_int_equal(
        choose(rows, COUNT(rows), (struct recommend_params){.n_prompt = 1000}), ST_OK);
    assert_float_equal(rec.prompt.warm_s, 20, 1e-9);
    assert_int_equal(rec.prompt.n_measured, 512);
    assert_non_null(strstr(rec.answer, "extrapolated from a prompt of 512"));
    /* one in between: the speed of the next longer one */
    assert_int_equal(
        choose(rows, COUNT(rows), (struct recommend_params){.n_prompt = 200}), ST_OK);
    assert_float_equal(rec.prompt.warm_s, 4, 1e-9);
    assert_non_null(strstr(rec.answer, "estimated from a prompt of 512"));
    assert_int_equal(
        choose(rows, COUNT(rows), (struct recommend_params){.n_prompt = 128}), ST_OK);
    assert_float_equal(rec.prompt.warm_s, 3.2, 1e-9);
    assert_null(strstr(rec.answer, "from a prompt of"));

    /* fewer threads where they are as fast; no more than there are */
    rows[2] = prefill("Q4_0", 50, 2, 512, 49);
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_int_equal(rec.prompt.n_threads, 2);
    rows[2] = prefill("Q4_0", 50, 2, 512, 30);
    assert_int_equal(
        choose(rows, COUNT(rows), (struct recommend_params){.max_threads = 2}), ST_OK);
    assert_int_equal(rec.prompt.n_threads, 2);

    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.prompt.n_prompt, 0);
    assert_null(strstr(rec.answer, "prompt"));
}

/* Tables of older versions have the time with loading only. */
static void an_old_table_gives_the_warm_time(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 8), prefill("Q4_0", 50, 2, 512, 50)};

    (void)state;
    rows[1].ttft_s = 13.5;
    rows[1].ttft_warm_s = NAN;
    assert_float_equal(row_ttft_warm_s(&rows[1]), 10.5, 1e-9);
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_float_equal(rec.prompt.warm_s, 10.5, 1e-9);
    assert_float_equal(rec.prompt.cold_s, 13.5, 1e-9);
    rows[1].ttft_s = rows[1].load_s = NAN;
    assert_true(isnan(row_ttft_warm_s(&rows[1])));
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_float_equal(rec.prompt.warm_s, 10.24, 1e-9);
    assert_true(isnan(rec.prompt.cold_s));
    assert_null(strstr(rec.answer, "with loading"));
}

/* The next longer prompt counts, though it was slower than a shorter one; and one of
 * few passes where there is no other. */
static void the_nearest_length_counts(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 8), prefill("Q4_0", 50, 1, 128, 40),
                         prefill("Q4_0", 50, 2, 512, 30)};

    (void)state;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.n_prompt = 200}),
                     ST_OK);
    assert_int_equal(rec.prompt.n_measured, 512);
    assert_float_equal(rec.prompt.warm_s, 200 / 30., 1e-9);
    rows[2].status = ROW_STATUS_PARTIAL;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.n_prompt = 200}),
                     ST_OK);
    assert_int_equal(rec.prompt.n_measured, 512);
    assert_float_equal(rec.prompt.warm_max_s, 200 / (30 * exp(-1.96 * 0.1)), 1e-9);
}

/* Another length than 512 where that is requested or longer, or the model has less. */
static void the_usual_prompt_has_512_tokens(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 9), prefill("Q4_0", 50, 2, 64, 50)};

    (void)state;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.prompt.n_prompt, 512);
    assert_float_equal(rec.prompt.warm_s, 512.0 / 50, 1e-9);
    assert_non_null(strstr(rec.answer, "extrapolated from a prompt of 64"));
    rows[0].model_ctx = rows[1].model_ctx = 256;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.prompt.n_prompt, 256);
    rows[1].n_prompt = 1024;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.prompt.n_prompt, 1024);
    assert_int_equal(choose(rows, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_int_equal(rec.prompt.n_prompt, 0);
}

/* Whose speed it is, and what another program gave. */
static void the_program_is_named(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 9), point("Q4_0", 50, 2, 0, 7)};

    (void)state;
    assert_int_equal(choose(rows, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.answer, "the speed of slmbench's engine; `bench sweep "
                                       "--engine` measures"));
    strcpy(rows[1].engine, "llama.cpp");
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.answer,
                           "the speed of slmbench's engine; llama.cpp decodes "
                           "7.00 tok/s with 2 threads."));
    rows[1].tok_per_s = rows[1].tok_per_s_lo = rows[1].tok_per_s_hi = 12;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.answer, "That is the speed of llama.cpp."));
}

static void a_floor_of_latency_needs_evidence(void **state)
{
    struct row rows[] = {
        point("Q4_0", 50, 2, 0, 9), prefill("Q4_0", 50, 2, 100, 50),
        point("Q6_K", 72, 2, 0, 6), prefill("Q6_K", 72, 2, 100, 40),
        point("Q8_0", 94, 2, 0, 5), prefill("Q8_0", 94, 2, 100, 30),
        point("F16", 160, 2, 0, 3),
    };
    const struct recommend_params three = {.max_ttft_s = 3, .n_prompt = 100};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), three), ST_OK);
    assert_string_equal(rec.best.quant, "Q6_K");
    assert_string_equal(rec.excluded,
                        "2 whose prompt takes too long or was not measured");
    assert_non_null(strstr(rec.answer, "a prompt of 100 tokens within 3 s"));
    assert_true(rec.p_floor > 0.999);

    /* one pass is little evidence: 20 % to either side */
    rows[3].status = ROW_STATUS_PARTIAL;
    assert_int_equal(choose(rows, COUNT(rows), three), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_true(rec.p_floor > 0.999);

    /* threads whose speed is less, but certain */
    rows[1] = with_interval(rows[1], 20, 60);
    rows[6] = prefill("Q4_0", 50, 1, 100, 40);
    assert_int_equal(choose(rows, COUNT(rows), three), ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_int_equal(rec.prompt.n_threads, 1);
    rows[1] = prefill("Q4_0", 50, 2, 100, 50);
    rows[6] = point("F16", 160, 2, 0, 3);

    assert_int_equal(
        choose(rows, COUNT(rows),
               (struct recommend_params){.max_ttft_s = 1, .n_prompt = 100}),
        ST_CHECK);
    assert_non_null(
        strstr(err.msg, "closest is Q4_0: a prompt of 100 tokens takes 2.00 s with 2 "
                        "threads (shown: at most 2.04), more than 1"));
    assert_int_equal(choose(rows + 6, 1, three), ST_CHECK);
    assert_non_null(strstr(err.msg, "no prefill of it was measured"));
}

static void the_probability_of_reaching_a_floor_is_given(void **state)
{
    const struct row row = with_interval(point("Q4_0", 50, 2, 0, 10), 5, 20);

    (void)state;
    /* the floor is the lower end of the interval */
    assert_int_equal(choose(&row, 1, (struct recommend_params){.min_tps = 5.0}), ST_OK);
    assert_float_equal(rec.p_floor, 0.975, 0.0001);
    assert_non_null(strstr(rec.answer, "It does so with a probability of 98 %"));
    assert_int_equal(choose(&row, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_true(isnan(rec.p_floor));
}

static void memory_is_left_for_more_context(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 8), point("Q4_0", 50, 2, 1024, 7)};
    const int64_t pos = 100000, mib = 1 << 20;

    (void)state;
    rows[1].mem_planned_bytes = rows[1].mem_peak_bytes = 5 * GIB;
    rows[1].kv_bytes_per_token = pos;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.left_bytes, GIB);
    assert_int_equal(rec.memory.max_ctx, 1024 + (GIB - 24 * mib) / pos);
    assert_false(rec.memory.by_model);
    assert_non_null(
        strstr(rec.answer, "at least 1.00 GiB of 6.00 GiB of memory are left"));
    assert_non_null(strstr(rec.answer, "The largest context is 11509 tokens, the most "
                                       "that fits the memory limit"));

    /* with room for page cache more was charged than is needed */
    rows[1].mem_peak_bytes = 6 * GIB;
    rows[1].mem_resident_bytes = 5 * GIB;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.left_bytes, GIB);
    assert_int_equal(rec.memory.max_ctx, 11509);
    assert_non_null(strstr(rec.answer, " 1.00 GiB of 6.00 GiB of memory are left"));
    assert_null(strstr(rec.answer, "at least"));
    rows[1].mem_peak_bytes = 5 * GIB;
    rows[1].mem_resident_bytes = FIELD_NO_INT;

    rows[1].model_ctx = 4096;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.max_ctx, 4096);
    assert_non_null(
        strstr(rec.answer, "4096 tokens, the most that the model was made"));

    /* layers that all hold their sliding window already */
    rows[1].kv_bytes_per_token = 0;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.max_ctx, 4096);
    assert_true(rec.memory.by_model);
    rows[1].kv_bytes_per_token = pos;

    /* a prompt that no context holds */
    rows[0] = prefill("Q4_0", 50, 2, 512, 50);
    assert_int_equal(
        choose(rows, 2, (struct recommend_params){.ctx = -1, .n_prompt = 5000}), ST_OK);
    assert_non_null(strstr(rec.answer, "A prompt of 5000 tokens does not fit."));
    rows[0] = point("Q4_0", 50, 2, 0, 8);

    /* a table without the column: from what was planned for two depths */
    rows[1].kv_bytes_per_token = rows[1].model_ctx = FIELD_NO_INT;
    rows[0].mem_planned_bytes = 5 * GIB - 1024 * pos;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.max_ctx, 11509);
    assert_int_equal(
        choose(rows, 2, (struct recommend_params){.ctx = -1, .mem_limit = 8ull << 30}),
        ST_OK);
    assert_int_equal(rec.memory.left_bytes, 3 * GIB);

    /* nothing to say */
    assert_int_equal(choose(rows + 1, 1, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.max_ctx, -1);
    rows[1].mem_limit_bytes = FIELD_NO_INT;
    assert_int_equal(choose(rows + 1, 1, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.left_bytes, -1);
    assert_null(strstr(rec.answer, "memory"));

    /* figures that nobody measured */
    rows[1] = rows[0];
    rows[0].mem_planned_bytes = rows[0].mem_peak_bytes = 1;
    rows[0].kv_bytes_per_token = 1;
    rows[0].mem_limit_bytes = rows[0].ctx = INT64_MAX;
    rows[1].ctx = 0;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.max_ctx, -1);
    rows[0].ctx = 4;
    rows[0].mem_planned_bytes = INT64_MAX;
    assert_int_equal(choose(rows, 2, (struct recommend_params){.ctx = -1}), ST_OK);
    assert_int_equal(rec.memory.max_ctx, 4);
}

static void steps_are_on_the_frontier(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 10), point("Q4_K_M", 53, 2, 0, 9),
                         point("Q5_0", 58, 2, 0, 6),  point("Q5_K_M", 60, 2, 0, 8),
                         point("Q6_K", 72, 2, 0, 7),  point("Q8_0", 94, 2, 0, 5),
                         point("Q8_0", 94, 1, 0, 3)};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        strcpy(rows[i].reference, "m-f16");
        rows[i].kl_mean = NAN;
    }
    rows[0].kl_mean = 0.0061;
    rows[4].kl_mean = 0.0009;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_int_equal(rec.n_steps, 3); /* the nearest; Q5_0 is beaten by Q5_K_M */
    assert_string_equal(rec.steps[0].text, "Q4_K_M with 2 threads: 9.00 tok/s, 10 % "
                                           "slower, better quality by type (not "
                                           "measured)");
    assert_string_equal(rec.steps[1].row.quant, "Q5_K_M");
    assert_string_equal(rec.steps[2].text, "Q6_K with 2 threads: 7.00 tok/s, 30 % "
                                           "slower, KL 0.0009 instead of 0.0061");

    /* above a floor what is faster is shown, too */
    assert_int_equal(
        choose(rows, COUNT(rows), (struct recommend_params){.min_tps = 6.5}), ST_OK);
    assert_string_equal(rec.best.quant, "Q6_K");
    assert_int_equal(rec.n_steps, 3);
    assert_string_equal(rec.steps[0].row.quant, "Q4_0");
    assert_non_null(
        strstr(rec.steps[0].text, "43 % faster, KL 0.0061 instead of 0.0009"));
    assert_string_equal(rec.steps[2].row.quant, "Q5_K_M");
}

static void assert_steps(const char *first, const char *second, const char *third)
{
    assert_int_equal(rec.n_steps, 3);
    assert_string_equal(rec.steps[0].row.quant, first);
    assert_string_equal(rec.steps[1].row.quant, second);
    assert_string_equal(rec.steps[2].row.quant, third);
}

/* Steps are in order of speed, whatever the order of the rows. */
static void steps_are_in_order(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 10), point("Q8_0", 94, 2, 0, 5),
                         point("Q5_K_M", 60, 2, 0, 7), point("Q6_K", 72, 2, 0, 6)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_steps("Q5_K_M", "Q6_K", "Q8_0");

    /* where the better type diverges more, too */
    for (size_t i = 0; i < COUNT(rows); i++)
        strcpy(rows[i].reference, "m-f16");
    rows[0].kl_mean = 0.006;
    rows[1].kl_mean = 0.004;
    rows[2].kl_mean = 0.003;
    rows[3].kl_mean = 0.005;
    rows[2].tok_per_s = 5.5;
    rows[1].tok_per_s = 7;
    rows[3].tok_per_s = 8;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.ctx = 0}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q4_0");
    assert_steps("Q6_K", "Q8_0", "Q5_K_M");
}

/* Those nearest to the choice, and none that another one beats. */
static void the_nearest_steps_are_taken(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 10),  point("Q4_K_M", 53, 2, 0, 9),
                         point("Q5_0", 58, 2, 0, 6.2), point("Q5_K_M", 60, 2, 0, 8),
                         point("Q6_K", 72, 2, 0, 7),   point("Q8_0", 94, 2, 0, 6)};

    (void)state;
    assert_int_equal(choose(rows, COUNT(rows), (struct recommend_params){.min_tps = 5}),
                     ST_OK);
    assert_string_equal(rec.best.quant, "Q8_0");
    assert_steps("Q4_K_M", "Q5_K_M", "Q6_K");
}

/* What was not measured is said, and where to measure it. */
static void unknown_quality_is_said(void **state)
{
    struct row row = point("Q4_0", 50, 2, 0, 10);

    (void)state;
    assert_int_equal(choose(&row, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_non_null(strstr(rec.answer, "The quality of Q4_0 was not measured; `bench "
                                       "quality -o DIR` does that"));
    strcpy(row.reference, "m-f16");
    row.kl_mean = 0.01;
    assert_int_equal(choose(&row, 1, (struct recommend_params){.ctx = 0}), ST_OK);
    assert_null(strstr(rec.answer, "not measured"));
}

static void each_model_has_its_answer(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_0", 5, 2, 0, 40.0),
                         point("Q4_0", 9, 2, 0, 9.0)};
    const struct recommend_params any = {.ctx = 0}, small = {.model = "small"},
                                  five = {.min_tps = 5}, never = {.min_tps = 99};
    struct recommend_answers a;
    json_t *json;

    (void)state;
    err_clear(&err);
    strcpy(rows[1].model, "small-Q4_0");
    strcpy(rows[2].model, "big");
    assert_int_equal(recommend_each(&a, rows, 3, &any, &err), ST_OK);
    assert_int_equal(a.n, 3);
    assert_string_equal(a.v[0].model, "big");
    assert_string_equal(a.v[1].model, "m");
    assert_string_equal(a.v[2].model, "small");
    assert_string_equal(a.v[2].rec.best.model, "small-Q4_0");
    assert_false(a.v[2].rec.has_runner_up);
    recommend_answers_free(&a);

    assert_int_equal(recommend_each(&a, rows, 3, &five, &err), ST_OK);
    assert_int_equal(a.v[1].none.code, ST_CHECK);
    json = recommend_json_each(&a);
    assert_int_equal(json_array_size(json_object_get(json, "models")), 3);
    json_decref(json);
    recommend_answers_free(&a);

    assert_int_equal(recommend_each(&a, rows, 3, &small, &err), ST_OK);
    assert_int_equal(a.n, 1);
    assert_string_equal(a.v[0].model, "small");
    json = recommend_json_each(&a);
    assert_non_null(json_object_get(json, "best"));
    json_decref(json);
    recommend_answers_free(&a);

    assert_int_equal(recommend_each(&a, rows, 3, &never, &err), ST_CHECK);
    assert_non_null(strstr(err.msg, "of 3 models: big: "));
    recommend_answers_free(&a);
    err_clear(&err);
    assert_int_equal(recommend_each(&a, rows, 1, &never, &err), ST_CHECK);
    assert_non_null(strstr(err.msg, "4.00 tok/s"));
    recommend_answers_free(&a);
    err_clear(&err);
    assert_int_equal(recommend_each(&a, rows, 0, &any, &err), ST_CHECK);
    assert_non_null(strstr(err.msg, "no decode point was measured"));
    recommend_answers_free(&a);
}

/* Rows of one model are one answer, wherever they are. */
static void a_model_is_answered_once(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 2, 0, 4.0), point("Q4_0", 9, 2, 0, 9.0),
                         point("Q8_0", 90, 2, 0, 2.0)};
    const struct recommend_params any = {.ctx = 0};
    struct recommend_answers a;

    (void)state;
    err_clear(&err);
    strcpy(rows[1].model, "big");
    assert_int_equal(recommend_each(&a, rows, 3, &any, &err), ST_OK);
    assert_int_equal(a.n, 2);
    assert_string_equal(a.v[1].rec.runner_up.quant, "Q8_0");
    recommend_answers_free(&a);
}

static void too_many_models_are_refused(void **state)
{
    const struct recommend_params any = {.ctx = 0};
    struct row rows[RECOMMEND_MAX_MODELS + 1];
    struct recommend_answers a;

    (void)state;
    err_clear(&err);
    for (int i = 0; i <= RECOMMEND_MAX_MODELS; i++) {
        rows[i] = point("Q4_0", 50, 2, 0, 4);
        snprintf(rows[i].model, sizeof rows[i].model, "m%d", i);
    }
    assert_int_equal(recommend_each(&a, rows, COUNT(rows), &any, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "--model"));
    recommend_answers_free(&a);
}

/* The members that docs/recommend.md lists. */
static void json_carries_all_of_it(void **state)
{
    const struct row rows[] = {point("Q4_0", 50, 2, 0, 8), point("Q8_0", 94, 2, 0, 6),
                               prefill("Q4_0", 50, 2, 512, 50)};
    json_t *json, *part;

    (void)state;
    assert_int_equal(choose(rows, 3, (struct recommend_params){.ctx = 0}), ST_OK);
    json = recommend_json(&rec);
    assert_non_null(json);
    assert_true(json_is_null(json_object_get(json, "p_floor")));
    assert_true(json_is_false(json_object_get(json, "by_quality")));
    assert_string_equal(json_string_value(json_object_get(json, "answer")), rec.answer);
    part = json_object_get(json, "prefill");
    assert_int_equal(json_integer_value(json_object_get(part, "n_threads")), 2);
    assert_float_equal(json_real_value(json_object_get(part, "ttft_warm_s")), 10.24,
                       1e-9);
    assert_float_equal(json_real_value(json_object_get(part, "ttft_cold_s")), 13.24,
                       1e-9);
    part = json_object_get(json, "memory");
    assert_int_equal(json_integer_value(json_object_get(part, "left_bytes")), GIB);
    assert_true(json_is_null(json_object_get(part, "max_ctx")));
    part = json_object_get(json, "steps");
    assert_int_equal(json_array_size(part), 1);
    part = json_array_get(part, 0);
    assert_string_equal(json_string_value(json_object_get(part, "quant")), "Q8_0");
    assert_float_equal(json_real_value(json_object_get(part, "tok_per_s")), 6, 0);
    json_decref(json);
}

/* Rows with different quotas are of different machines. */
static void a_quota_is_a_machine(void **state)
{
    struct row rows[] = {point("Q4_0", 50, 1, 0, 5), point("Q4_0", 50, 2, 0, 8),
                         point("Q4_0", 50, 2, 0, 6), point("Q4_0", 50, 1, 0, 3)};
    struct recommend_params params = {.ctx = 0};
    struct recommend_answers a;

    (void)state;
    err_clear(&err);
    rows[0].cpus_quota = rows[2].cpus_quota = 1.5;
    rows[3].cpus_quota = 0.5;
    assert_int_equal(recommend_each(&a, rows, 4, &params, &err), ST_OK);
    assert_float_equal(a.v[0].rec.best_tok_per_s, 8, 1e-9); /* without one */
    recommend_answers_free(&a);
    params.quota_cpus = 1.5;
    assert_int_equal(recommend_each(&a, rows, 4, &params, &err), ST_OK);
    assert_float_equal(a.v[0].rec.best_tok_per_s, 6, 1e-9);
    recommend_answers_free(&a);
    params.quota_cpus = 0.7;
    assert_int_equal(recommend_each(&a, rows, 4, &params, &err), ST_CHECK);
    assert_non_null(strstr(err.msg, "a quota of 0.7 CPUs"));
    recommend_answers_free(&a);
    err_clear(&err);
    params.quota_cpus = 0;
    rows[1].cpus_quota = 1; /* all have one: the largest */
    assert_int_equal(recommend_each(&a, rows, 4, &params, &err), ST_OK);
    assert_float_equal(a.v[0].rec.best_tok_per_s, 6, 1e-9);
    recommend_answers_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_prompt_has_threads_and_times_of_its_own),
        cmocka_unit_test(an_old_table_gives_the_warm_time),
        cmocka_unit_test(the_nearest_length_counts),
        cmocka_unit_test(the_usual_prompt_has_512_tokens),
        cmocka_unit_test(the_program_is_named),
        cmocka_unit_test(a_floor_of_latency_needs_evidence),
        cmocka_unit_test(the_probability_of_reaching_a_floor_is_given),
        cmocka_unit_test(memory_is_left_for_more_context),
        cmocka_unit_test(steps_are_on_the_frontier),
        cmocka_unit_test(steps_are_in_order),
        cmocka_unit_test(the_nearest_steps_are_taken),
        cmocka_unit_test(unknown_quality_is_said),
        cmocka_unit_test(each_model_has_its_answer),
        cmocka_unit_test(a_model_is_answered_once),
        cmocka_unit_test(too_many_models_are_refused),
        cmocka_unit_test(json_carries_all_of_it),
        cmocka_unit_test(a_quota_is_a_machine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
