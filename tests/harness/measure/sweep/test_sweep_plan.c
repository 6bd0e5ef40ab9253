/* SPDX-License-Identifier: MIT
 *
 * test_sweep_plan.c - which points a sweep measures, in which order, and how often
 */
#include "tests/support/sweep_fixture.h"

#include "harness/measure/sweep/sweep.h"

/* ---- plan ------------------------------------------------------------------------ */

static void plan_ids(const char *yaml, char ids[][96], size_t *n, uint64_t seed)
{
    struct sweep_settings s;
    struct sweep_plan plan;
    struct err err = ERR_INIT;

    assert_int_equal(load(&s, yaml, &err), ST_OK);
    s.base.setup.seed = seed;
    if (sweep_plan_make(&plan, &s, &err))
        fail_msg("%s", err.msg);
    assert_true(plan.n_points <= 64);
    assert_int_equal(plan.first[plan.n_models], plan.n_points);
    for (size_t i = 0; i < plan.n_points; i++)
        point_id(&plan.points[i], ids[i], 96);
    *n = plan.n_points;
    sweep_plan_free(&plan);
    sweep_settings_free(&s);
}

static int compare(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Prefill points have thread counts of their own where they are given. */
static void prefill_has_its_own_threads(void **state)
{
    static const char yaml[] = "models: [nano:Q4_0]\nthreads: [1, 2]\nctx: [0]\n"
                               "prefill: [8]\nthreads_prefill: [2, 4, 6]\n";
    static char ids[64][96];
    size_t n;

    (void)state;
    plan_ids(yaml, ids, &n, 5);
    qsort(ids, n, sizeof ids[0], compare);
    assert_int_equal(n, 5);
    assert_string_equal(ids[0], "nano:Q4_0/decode/t1/spread/ctx0");
    assert_string_equal(ids[2], "nano:Q4_0/prefill8/t2/spread");
    assert_string_equal(ids[4], "nano:Q4_0/prefill8/t6/spread");
}

static void order_is_random_but_repeatable(void **state)
{
    static const char yaml[] = "models: [nano:Q4_0, nano:Q8_0]\nthreads: [1-4]\n"
                               "ctx: [0, 16, 16]\nprefill: [8]\n";
    static char a[64][96], b[64][96], c[64][96];
    size_t n, n_b, n_c;

    (void)state;
    plan_ids(yaml, a, &n, 5);
    plan_ids(yaml, b, &n_b, 5);
    plan_ids(yaml, c, &n_c, 6);
    assert_int_equal(n, 2 * 4 * 3); /* the second depth of 16 is left out */
    assert_int_equal(n_b, n);
    assert_int_equal(n_c, n);
    assert_memory_equal(a, b, n * sizeof a[0]);
    assert_memory_not_equal(a, c, n * sizeof a[0]);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(strncmp(a[i], i < n / 2 ? "nano:Q4_0" : "nano:Q8_0", 9), 0);
    qsort(a, n, sizeof a[0], compare);
    qsort(c, n, sizeof c[0], compare);
    assert_memory_equal(a, c, n * sizeof a[0]);
    for (size_t i = 1; i < n; i++)
        assert_string_not_equal(a[i], a[i - 1]);
}

static void each_residency_is_a_point(void **state)
{
    static char ids[64][96];
    size_t n;

    (void)state;
    plan_ids("models: [nano:Q4_0]\nthreads: [1, 2]\nctx: [0]\nprefill: [8]\n"
             "weights: [mmap, packed, stream]\n",
             ids, &n, 1);
    assert_int_equal(n, 12);
    size_t n_packed = 0;
    for (size_t i = 0; i < n; i++)
        n_packed += !strncmp(ids[i], "nano:Q4_0/packed/", 17);
    assert_int_equal(n_packed, 4);
    size_t n_stream = 0;
    for (size_t i = 0; i < n; i++)
        n_stream += !strncmp(ids[i], "nano:Q4_0/stream/", 17);
    assert_int_equal(n_stream, 4);
}

static void each_kv_type_is_a_point(void **state)
{
    static char ids[64][96];
    size_t n, n_q8 = 0;

    (void)state;
    plan_ids("models: [nano:Q4_0]\nthreads: [1]\nctx: [0, 8]\nprefill: [8]\n"
             "kv_type: [f16, q8_0]\n",
             ids, &n, 1);
    assert_int_equal(n, 6);
    for (size_t i = 0; i < n; i++)
        n_q8 += strstr(ids[i], "/kv-q8_0") != NULL;
    assert_int_equal(n_q8, 3);
}

/* Every point is measured with each limit, which survives machine.json. */
static void each_memory_limit_is_a_point(void **state)
{
    static const char yaml[] = "models: [nano:Q4_0]\nthreads: [1]\nctx: [0]\n"
                               "prefill: [none]\nweights: [mmap, auto]\n"
                               "mem: [4G, 4608M, none, 4096M]\n";
    static char ids[64][96];
    struct sweep_settings s, back;
    struct err err = ERR_INIT;
    size_t n;

    (void)state;
    plan_ids(yaml, ids, &n, 5);
    qsort(ids, n, sizeof ids[0], compare);
    assert_int_equal(n, 6);
    assert_string_equal(ids[0], "nano:Q4_0/decode/t1/spread/ctx0");
    assert_string_equal(ids[1], "nano:Q4_0/decode/t1/spread/ctx0/4608M");
    assert_string_equal(ids[2], "nano:Q4_0/decode/t1/spread/ctx0/4G");
    assert_string_equal(ids[5], "nano:Q4_0/mmap/decode/t1/spread/ctx0/4G");

    assert_int_equal(load(&s, yaml, &err), ST_OK);
    assert_int_equal(s.n_mem_limits, 3); /* the second 4 GiB is left out */
    assert_true(sweep_max_memory(&s) == UINT64_C(4608) << 20);
    json_t *stored = sweep_settings_json(&s);
    assert_int_equal(sweep_settings_from_json(&back, stored, &err), ST_OK);
    assert_int_equal(back.n_mem_limits, 3);
    assert_memory_equal(back.mem_limits, s.mem_limits, 3 * sizeof s.mem_limits[0]);
    sweep_settings_free(&back);
    json_object_set_new(stored, "mem_limit", json_pack("[i, i]", 1, -1));
    assert_int_equal(sweep_settings_from_json(&back, stored, &err), ST_INPUT);
    assert_non_null(strstr(err.msg, "mem_limit"));
    err_clear(&err);
    json_object_set_new(stored, "mem_limit", json_array());
    assert_int_equal(sweep_settings_from_json(&back, stored, &err), ST_INPUT);
    json_decref(stored);

    err_clear(&err);
    assert_int_equal(sweep_set(&s, SETTING_mem, "4G,much", topo, "--mem", &err),
                     ST_USAGE);
    assert_non_null(strstr(err.msg, "--mem: 'much' is not a size"));
    err_clear(&err);
    assert_int_equal(sweep_set(&s, SETTING_mem, ",", topo, "--mem", &err), ST_USAGE);
    sweep_settings_free(&s);
}

/* One sequence shares nothing, and no more is shared than there is. */
static void sequences_share_what_they_have(void **state)
{
    static const char yaml[] = "models: [nano:Q4_0]\nthreads: [1]\nctx: [0, 512]\n"
                               "prefill: [none]\nsequences: [1, 2]\n"
                               "shared: [0, 256, 600]\nchunk: [0, 64]\n";
    static const char *const wanted[] = {
        "nano:Q4_0/decode/t1/spread/ctx0",
        "nano:Q4_0/decode/t1/spread/ctx0/chunk64",
        "nano:Q4_0/decode/t1/spread/ctx0/seq2",
        "nano:Q4_0/decode/t1/spread/ctx0/seq2/chunk64",
        "nano:Q4_0/decode/t1/spread/ctx512",
        "nano:Q4_0/decode/t1/spread/ctx512/chunk64",
        "nano:Q4_0/decode/t1/spread/ctx512/seq2",
        "nano:Q4_0/decode/t1/spread/ctx512/seq2/chunk64",
        "nano:Q4_0/decode/t1/spread/ctx512/seq2/shared256",
        "nano:Q4_0/decode/t1/spread/ctx512/seq2/shared256/chunk64"};
    static const char *const refused[][2] = {
        {"sequences: [2]\nshared: [600]\n", "600 tokens"},
        {"sequences: [4, 1024]\nchunk: [0, 8]\n", "at most 1023"}};
    static char ids[64][96];
    struct err err = ERR_INIT;
    size_t n;

    (void)state;
    plan_ids(yaml, ids, &n, 5);
    qsort(ids, n, sizeof ids[0], compare);
    assert_int_equal(n, sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(ids[i], wanted[i]);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct sweep_settings s;
        struct sweep_plan plan;
        char text[256];

        snprintf(text, sizeof text,
                 "models: [nano:Q4_0]\nthreads: [1]\nctx: [0, 512]\n"
                 "prefill: [none]\n%s",
                 refused[i][0]);
        err_clear(&err);
        assert_int_equal(load(&s, text, &err), ST_OK);
        assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_USAGE);
        if (!strstr(err.msg, refused[i][1]))
            fail_msg("%s does not say %s", err.msg, refused[i][1]);
        sweep_settings_free(&s);
    }
}

static void empty_plan_is_an_error(void **state)
{
    struct sweep_settings s;
    struct sweep_plan plan;
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(
        load(&s, "models: [nano:Q4_0]\nctx: [none]\nprefill: [none]\n", &err), ST_OK);
    assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_USAGE);
    sweep_settings_free(&s);
    err_clear(&err);
    assert_int_equal(load(&s, "models: [nowhere:Q4_0]\n", &err), ST_OK);
    assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_USAGE);
    sweep_settings_free(&s);
}

/* The launch that is due of a point. */
static int due(const struct row *rows, size_t n, const char *id,
               const struct sweep_settings *s, double half_width)
{
    struct sweep_tally t = {.half_width = half_width};

    for (size_t i = 0; i < n; i++)
        if (!strcmp(rows[i].point, id))
            sweep_tally_add(&t, &rows[i]);
    return sweep_tally_due(&t, s);
}

static void attempts(void **state)
{
    const struct sweep_settings none = {.n_launches = 1, .ci_pct = 2};
    const struct sweep_settings one = {.n_launches = 1, .ci_pct = 2, .n_repeats = 1};
    struct row rows[4];

    (void)state;
    assert_int_equal(due(NULL, 0, "a", &one, 0), 1);
    make_row(&rows[0], "a", "ok", "disturbed: steal 9 %");
    make_row(&rows[1], "b", "ok", "valid");
    make_row(&rows[2], "c", "error", "");
    make_row(&rows[3], "d", "oom", "");
    assert_int_equal(due(rows, 4, "a", &none, 0), 0);
    assert_int_equal(due(rows, 4, "a", &one, 0), 2);
    assert_int_equal(due(rows, 4, "b", &one, 0), 0);
    assert_int_equal(due(rows, 4, "c", &one, 0), 2); /* no two rows of one number */
    assert_int_equal(due(rows, 4, "d", &one, 0), 0);
    assert_int_equal(due(rows, 4, "e", &one, 0), 1);
    rows[3].status = ROW_STATUS_NO_FIT;
    assert_int_equal(due(rows, 4, "d", &one, 0), 0); /* planned: no worker has run */
    rows[3].mem_peak_bytes = 1 << 20;
    assert_int_equal(due(rows, 4, "d", &one, 0), 2);
    rows[0].limiter = LIMITER_PAGING;
    assert_int_equal(due(rows, 4, "a", &one, 0), 0);
    rows[0].limiter = LIMITER_QUOTA;
    assert_int_equal(due(rows, 4, "a", &one, 0), 0);
}

static void every_point_is_launched_often_enough(void **state)
{
    const struct sweep_settings s = {
        .n_launches = 3, .max_launches = 5, .ci_pct = 2, .n_repeats = 1};
    struct row rows[6];

    (void)state;
    for (int i = 0; i < 6; i++)
        make_row(&rows[i], "p", "ok", "valid");
    for (size_t n = 0; n < 3; n++)
        assert_int_equal(due(rows, n, "p", &s, 0.001), n + 1);
    assert_int_equal(due(rows, 3, "p", &s, 0.001), 0);
    assert_int_equal(due(rows, 3, "p", &s, 0.05), 4); /* too wide */
    assert_int_equal(due(rows, 5, "p", &s, 0.05), 0);

    strcpy(rows[1].validity, "disturbed: others 30 %");
    assert_int_equal(due(rows, 3, "p", &s, 0.001), 4); /* replaced */
    assert_int_equal(due(rows, 4, "p", &s, 0.001), 0);
    strcpy(rows[2].validity, "disturbed: others 30 %");
    assert_int_equal(due(rows, 4, "p", &s, 0.001), 0); /* once */
    for (int i = 0; i < 4; i++)
        make_row(&rows[i], "p", "ok", "disturbed: others 100 %");
    rows[0].limiter = LIMITER_PAGING;
    assert_int_equal(due(rows, 1, "p", &s, 0.001), 2); /* by chance? */
    assert_int_equal(due(rows, 2, "p", &s, 0.001), 3); /* it was */
    rows[1].limiter = LIMITER_PAGING;
    assert_int_equal(due(rows, 2, "p", &s, 0.5), 0); /* it was not */
    for (int i = 0; i < 4; i++)
        make_row(&rows[i], "p", "ok", "valid");

    rows[0].status = ROW_STATUS_PARTIAL; /* ended before its first sample */
    rows[0].n_samples = 0;
    strcpy(rows[1].validity, "valid");
    strcpy(rows[2].validity, "valid");
    assert_int_equal(due(rows, 3, "p", &s, 0.001), 4);
    assert_int_equal(due(rows, 4, "p", &s, 0.001), 0);
    rows[0].status = ROW_STATUS_NO_FIT;
    assert_int_equal(due(rows, 1, "p", &s, 0.001), 0);
}

static void a_plan_counts_its_own_rows(void **state)
{
    struct sweep_settings s;
    struct sweep_plan plan;
    struct sweep_tally tally[2];
    struct row rows[5];
    struct err err = ERR_INIT;

    (void)state;
    assert_int_equal(load(&s,
                          "models: [nano:Q4_0]\nthreads: [1]\nctx: [0, 8]\n"
                          "prefill: [none]\nseed: 1\n",
                          &err),
                     ST_OK);
    assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_OK);
    assert_int_equal(plan.n_points, 2);
    for (int i = 0; i < 5; i++) {
        char id[96] = "of another sweep";

        if (i < 4)
            point_id(&plan.points[i % 2], id, sizeof id);
        make_row(&rows[i], id, i == 2 ? "error" : "ok", "valid");
        rows[i].kind = POINT_DECODE;
        rows[i].ctx = i % 2;
        rows[i].tok_per_s = i == 3 ? 8 : 10;
        rows[i].tok_per_s_lo = 0.99 * rows[i].tok_per_s;
        rows[i].tok_per_s_hi = 1.01 * rows[i].tok_per_s;
    }
    assert_int_equal(sweep_tally_all(tally, &plan, rows, 5, &err), ST_OK);
    assert_int_equal(tally[0].n_good, 1);
    assert_int_equal(tally[0].n_rows, 2);
    assert_float_equal(tally[0].half_width, 0.01, 1e-9);
    assert_int_equal(tally[1].n_good, 2);
    assert_true(tally[1].half_width > 0.2); /* 10 and 8 */
    sweep_plan_free(&plan);
    sweep_settings_free(&s);
}

/* Every round has every point once, models beside each other, in another order. */
static void rounds_have_orders_of_their_own(void **state)
{
    struct sweep_settings s;
    struct sweep_plan plan;
    struct err err = ERR_INIT;
    size_t order[4][24], again[24];
    bool differ_models = false;

    (void)state;
    assert_int_equal(load(&s,
                          "models: [nano:Q4_0, nano:Q8_0, nano:Q6_K]\n"
                          "threads: [1-4]\nctx: [0, 8]\nprefill: [none]\n",
                          &err),
                     ST_OK);
    assert_int_equal(sweep_plan_make(&plan, &s, &err), ST_OK);
    assert_int_equal(plan.n_points, 24);
    for (int round = 1; round <= 4; round++) {
        size_t *v = order[round - 1];
        bool seen[24] = {false};

        sweep_round_order(&plan, 7, round, v);
        sweep_round_order(&plan, 7, round, again);
        assert_memory_equal(v, again, sizeof again);
        for (int i = 0; i < 24; i++) {
            assert_true(v[i] < 24 && !seen[v[i]]);
            seen[v[i]] = true;
            assert_int_equal(v[i] / 8, v[i - i % 8] / 8);
        }
        if (round > 1) {
            assert_memory_not_equal(v, order[round - 2], sizeof again);
            differ_models |= v[0] / 8 != order[0][0] / 8 || v[8] / 8 != order[0][8] / 8;
        }
    }
    assert_true(differ_models);
    for (int i = 0; i < 24; i++) /* the first one as the plan has it */
        assert_int_equal(order[0][i] % 8, i % 8);
    sweep_plan_free(&plan);
    sweep_settings_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prefill_has_its_own_threads),
        cmocka_unit_test(order_is_random_but_repeatable),
        cmocka_unit_test(each_residency_is_a_point),
        cmocka_unit_test(each_kv_type_is_a_point),
        cmocka_unit_test(each_memory_limit_is_a_point),
        cmocka_unit_test(sequences_share_what_they_have),
        cmocka_unit_test(empty_plan_is_an_error),
        cmocka_unit_test(attempts),
        cmocka_unit_test(every_point_is_launched_often_enough),
        cmocka_unit_test(a_plan_counts_its_own_rows),
        cmocka_unit_test(rounds_have_orders_of_their_own),
    };

    return cmocka_run_group_tests(tests, sweep_begin, sweep_end);
}
