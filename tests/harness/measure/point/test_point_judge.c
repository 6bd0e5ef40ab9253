/* SPDX-License-Identifier: MIT
 *
 * test_point_judge.c - what samples, roofs and disturbances say of a point
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/point/point_measure.h"

/* ---- judging --------------------------------------------------------------------- */

/* Ten samples around 200 ms of a 5 GB model: 25 GB/s. */
static double ms[] = {200, 201, 199, 200, 200, 202, 198, 200, 200, 200};

static void judge(struct row *row, const struct noise *noise, double roof_gbps)
{
    const struct point_samples samples = {ms, 10, NULL};
    const struct point_facts facts = {.tokens_per_sample = 1,
                                      .ops_per_sample = 1.8e10,
                                      .bytes_per_sample = 5e9,
                                      .roof_spread = 0.01,
                                      .llc_bytes = 3e7,
                                      .profile_ms = 200,
                                      .wait_ms = 6,
                                      .arith_ms = 24};

    row_init(row);
    row->bytes_per_token = 5000000000;
    row->roof_gbps = roof_gbps;
    point_judge(row, &samples, &facts, noise);
}

static struct noise calm(void)
{
    struct noise n;

    memset(&n, 0, sizeof n);
    n.wall_ns = 2000000000;
    n.self_ns = 4000000000;
    n.busy_ns = 4000000000;
    n.n_cpus = 2;
    return n;
}

static void figures(void **state)
{
    struct noise noise = calm();
    struct row row;

    (void)state;
    judge(&row, &noise, 30);
    assert_int_equal(row.n_samples, 10);
    assert_true(fabs(row.tok_per_s - 5) < 1e-9);
    assert_true(row.tok_per_s_lo <= 5 && row.tok_per_s_hi >= 5);
    assert_true(row.tok_per_s_lo < row.tok_per_s_hi);
    assert_true(fabs(row.roof_tok_per_s - 6) < 1e-9);
    assert_true(fabs(row.mbu - 5.0 / 6) < 1e-9);
    assert_true(fabs(row.gops - 90) < 1e-9);
    assert_true(fabs(row.lat_p50_ms - 200) < 1e-9);
    assert_true(isnan(row.lat_p95_ms) && isnan(row.lat_p99_ms)); /* of ten samples */
    assert_true(row.major_faults_per_token == 0);
    assert_string_equal(row.validity, "valid");
    assert_int_equal(row.limiter, LIMITER_MEMORY);
    assert_string_equal(row.detail, "");

    /* Who sends the machine to sleep is noticed. */
    noise.suspended_ns = 5000000000u;
    judge(&row, &noise, 30);
    assert_string_equal(row.validity, "disturbed: slept 5 s");
}

/* The share of the roof is as uncertain as the speed and the roof together; the time to
 * the first token as the pass over the prompt. */
static void intervals(void **state)
{
    const struct point_samples samples = {ms, 10, NULL};
    const struct point_facts facts = {.tokens_per_sample = 1, .bytes_per_sample = 5e9};
    struct noise noise = calm();
    struct row row;

    (void)state;
    row_init(&row);
    row.bytes_per_token = 5000000000;
    row.roof_gbps = 30;
    point_judge(&row, &samples, &facts, &noise);
    assert_true(isnan(row.mbu_lo) && isnan(row.mbu_hi)); /* of a roof without one */
    row.roof_gbps_lo = 29.7;
    row.roof_gbps_hi = 30.3;
    row.load_s = 1;
    row.kind = POINT_DECODE;
    point_judge(&row, &samples, &facts, &noise);
    assert_true(fabs(row.tok_per_s_lo - 1000 / 201.0) < 1e-9); /* ranks 2 and 9 of 10 */
    assert_true(fabs(row.tok_per_s_hi - 1000 / 199.0) < 1e-9);
    assert_true(fabs(row.mbu_lo / row.mbu - (1 - 0.0111)) < 1e-4); /* 0.5 and 1 % */
    assert_true(fabs(row.mbu_hi / row.mbu - (1 + 0.0113)) < 1e-4);
    assert_true(isnan(row.ttft_s_lo));

    row.kind = POINT_PREFILL;
    point_judge(&row, &samples, &facts, &noise);
    assert_true(fabs(row.ttft_s - 1.2) < 1e-9);
    assert_true(fabs(row.ttft_s_lo - 1.199) < 1e-9);
    assert_true(fabs(row.ttft_s_hi - 1.201) < 1e-9);
}

/* Ten tokens of 200 ms, of 5 GB from memory at 30 GB/s; 180 MB of them are streamed. */
static void streamed(struct row *row, double disk_gbps, double wait_pct)
{
    const struct point_samples samples = {ms, 10, NULL};
    const struct point_facts facts = {
        .tokens_per_sample = 1, .bytes_per_sample = 5e9, .disk_spread = 0.05};
    struct noise noise = calm();

    row_init(row);
    row->kind = POINT_DECODE;
    row->bytes_per_token = 5000000000;
    row->roof_gbps = 30;
    row->roof_gbps_lo = 29.7;
    row->roof_gbps_hi = 30.3;
    row->disk_bytes_per_token = 180000000;
    row->disk_wait_pct = wait_pct;
    row->roof_disk_gbps = disk_gbps;
    point_judge(row, &samples, &facts, &noise);
}

/* The roof of streamed weights is the lower of two. */
static void the_disk_is_a_roof(void **state)
{
    struct row row;

    (void)state;
    streamed(&row, 1, 30);
    assert_float_equal(row.roof_tok_per_s, 1 / 0.18, 1e-9);
    assert_float_equal(row.mbu, 0.9, 1e-9);
    assert_float_equal(row.disk_share, 0.9, 1e-9);
    /* of the speed alone: of the disk there are a few passes */
    assert_true(fabs(row.mbu_lo / row.mbu - (1 - 0.005)) < 1e-4);
    assert_int_equal(row.limiter, LIMITER_DISK);
    assert_string_equal(row.limiter_why,
                        "30 % waiting for the disk, which gave 0.9 GB/s, 90 % of what "
                        "it gives");

    streamed(&row, 2, 1); /* memory is slower */
    assert_float_equal(row.roof_tok_per_s, 6, 1e-9);
    assert_float_equal(row.disk_share, 0.45, 1e-9);
    assert_int_equal(row.limiter, LIMITER_MEMORY);

    streamed(&row, NAN, 30); /* that of memory alone would be none */
    assert_true(isnan(row.roof_tok_per_s) && isnan(row.mbu) && isnan(row.disk_share));
    assert_int_equal(row.limiter, LIMITER_DISK);
    assert_string_equal(row.validity, "valid");

    streamed(&row, 0.87, 30); /* 3 % above it, as far as its passes differ */
    assert_string_equal(row.validity, "valid");
    streamed(&row, 0.8, 30);
    assert_int_equal(strncmp(row.validity, "disturbed", 9), 0);
}

/* Cells that the number of samples does not support are empty. */
static void few_samples(void **state)
{
    const struct point_facts facts = {.tokens_per_sample = 1};
    struct noise noise = calm();
    struct row row;
    double many[300];

    (void)state;
    for (size_t i = 0; i < 300; i++)
        many[i] = 200 + (double)(i * 7 % 10);
    for (size_t n = 1; n <= 300; n++) {
        const struct point_samples samples = {many, n, NULL};

        row_init(&row);
        point_judge(&row, &samples, &facts, &noise);
        assert_true(row.tok_per_s > 0 && row.lat_p50_ms > 0);
        assert_int_equal(isfinite(row.tok_per_s_lo) != 0, n >= 6);
        assert_int_equal(isfinite(row.tok_per_s_hi) != 0, n >= 6);
        assert_int_equal(isfinite(row.lat_p95_ms) != 0, n >= 60);
        assert_int_equal(isfinite(row.lat_p99_ms) != 0, n >= 300);
    }
}

static void limiters(void **state)
{
    struct noise noise = calm();
    struct row row;

    (void)state;
    judge(&row, &noise, 60);
    assert_int_equal(row.limiter, LIMITER_LATENCY);

    noise.n_major_faults = 10000; /* a thousand a token */
    judge(&row, &noise, 30);
    assert_true(row.major_faults_per_token == 1000);
    assert_int_equal(row.limiter, LIMITER_PAGING);

    noise = calm();
    noise.n_major_faults = 20; /* a few, of a million pages */
    judge(&row, &noise, 30);
    assert_int_not_equal(row.limiter, LIMITER_PAGING);

    noise = calm();
    noise.n_refaults = 100000;
    judge(&row, &noise, 30);
    assert_int_equal(row.limiter, LIMITER_PAGING);

    noise = calm();
    noise.throttled_ns = 500000000;
    noise.n_throttled = 5;
    judge(&row, &noise, 30);
    assert_int_equal(row.limiter, LIMITER_QUOTA);
    assert_true(fabs(row.throttled_ms - 500) < 1e-9);

    noise = calm();
    noise.steal_ns = 1000000000; /* a quarter of both CPUs */
    judge(&row, &noise, 30);
    assert_int_equal(row.limiter, LIMITER_NOISE);
    assert_true(fabs(row.steal_pct - 25) < 1);
    assert_int_equal(strncmp(row.validity, "disturbed", 9), 0);

    judge(&row, NULL, 30);
    assert_int_equal(strncmp(row.validity, "disturbed", 9), 0);
}

/* Three of four tokens take 15 ms, the fourth 65 with the stop: that is 4 in 110 ms,
 * and not one in 15. With a quota that was asked for that is no disturbance. */
static void a_quota_stops_few_tokens(void **state)
{
    const struct point_facts facts = {.tokens_per_sample = 1, .bytes_per_sample = 1e6};
    double token_ms[200];
    const struct point_samples samples = {.ms = token_ms, .n = 200};
    struct noise noise = calm();
    struct row row;

    (void)state;
    for (int i = 0; i < 200; i++)
        token_ms[i] = i % 4 == 3 ? 65 : 15;
    noise.wall_ns = 5500000000u;
    noise.n_threads = noise.n_our_cpus = 2;
    noise.throttled_ns = 5000000000u; /* on both CPUs */
    row_init(&row);
    row.n_threads = 2;
    row.cpus_quota = 1;
    point_judge(&row, &samples, &facts, &noise);
    assert_true(fabs(row.tok_per_s / (4 / 0.11) - 1) < 0.06);
    assert_true(row.tok_per_s_lo <= row.tok_per_s && row.tok_per_s <= row.tok_per_s_hi);
    assert_true(row.tok_per_s_hi < 45);
    assert_float_equal(row.lat_p50_ms, 15, 1e-9);
    assert_string_equal(row.validity, "valid");
    assert_int_equal(row.limiter, LIMITER_QUOTA);
    assert_string_equal(row.limiter_why, "45 % of the time stopped by the CPU quota");

    row_init(&row); /* a quota that somebody else has set */
    row.n_threads = 2;
    point_judge(&row, &samples, &facts, &noise);
    assert_string_equal(row.validity, "disturbed: throttled 45 %");
    noise.throttled_ns = 0;
    row_init(&row);
    point_judge(&row, &samples, &facts, &noise);
    assert_float_equal(row.tok_per_s, 1000 / 15., 1e-9);
}

/* Fewer samples than a block has are one block, and the rest behind the last is left
 * out. */
static void a_quota_stops_fewer_tokens_than_a_block(void **state)
{
    static double few[] = {60, 60, 180}, more[] = {100, 300, 200, 900, 60};
    const struct point_facts facts = {.tokens_per_sample = 1, .bytes_per_sample = 1e6};
    struct noise noise = calm();
    struct row row;

    (void)state;
    noise.wall_ns = 2000000000u;
    noise.n_threads = noise.n_our_cpus = 2;
    noise.throttled_ns = 1000000000u;
    row_init(&row);
    row.cpus_quota = 1;
    point_judge(&row, &(struct point_samples){few, 3, NULL}, &facts, &noise);
    assert_float_equal(row.tok_per_s, 10, 1e-9); /* 300 ms for three */
    row_init(&row);
    row.cpus_quota = 1;
    point_judge(&row, &(struct point_samples){more, 5, NULL}, &facts, &noise);
    /* 600 ms for three, 900 for one: of 200 and 900 ms a token the median */
    assert_float_equal(row.tok_per_s, 1000 / 550., 1e-9);
    assert_float_equal(row.lat_p50_ms, 200, 1e-9);
}

/* A drift is a disturbance if it is large and no accident. */
static void drifts(void **state)
{
    const struct point_facts facts = {.tokens_per_sample = 1};
    struct noise noise = calm();
    double drifting[48], noisy[12];
    const struct point_samples by_a_trend = {drifting, 48, NULL},
                               by_chance = {noisy, 12, NULL};
    struct row row;

    (void)state;
    for (int i = 0; i < 48; i++)
        drifting[i] = 200 + i + i * 7 % 10;
    for (int i = 0; i < 12; i++)
        noisy[i] = 200 + 20.0 * (i * 7 % 12) / 12 + i;
    row_init(&row);
    point_judge(&row, &by_a_trend, &facts, &noise);
    assert_true(row.drift_pct > 15);
    assert_int_equal(strncmp(row.validity, "disturbed: drift", 16), 0);
    row_init(&row);
    point_judge(&row, &by_chance, &facts, &noise);
    assert_true(fabs(row.drift_pct) > 5);
    assert_string_equal(row.validity, "valid");
}

/* A result above its roof is wrong and must not pass as valid. */
static void above_the_roof(void **state)
{
    const struct point_samples samples = {ms, 10, NULL};
    struct point_facts facts = {.tokens_per_sample = 1,
                                .bytes_per_sample = 5e6,
                                .llc_bytes = 3e7,
                                .arith_ms = 150};
    struct noise noise = calm();
    struct row row;

    (void)state;
    judge(&row, &noise, 24.8); /* within the tolerance */
    assert_string_equal(row.validity, "valid");
    judge(&row, &noise, 20);
    assert_string_equal(row.validity, "disturbed: 25 % above its roof");
    assert_non_null(strstr(row.detail, "the probed roof"));

    row_init(&row);
    row.bytes_per_token = 5000000;
    row.roof_gbps = 0.02;
    row.roof_gops = 0; /* no roof of computing */
    point_judge(&row, &samples, &facts, &noise);
    assert_string_equal(row.validity, "valid");
    assert_string_equal(row.detail, "above the memory roof: the 5.0 MB of a token fit "
                                    "the last-level cache");
    assert_int_equal(row.limiter, LIMITER_COMPUTE);

    /* a cache may serve a part of what is up to four times as large */
    for (int n = 3; n <= 5; n += 2) {
        row_init(&row);
        row.bytes_per_token = 5000000;
        row.roof_gbps = 0.02;
        facts.llc_bytes = 5e6 / n;
        point_judge(&row, &samples, &facts, &noise);
        assert_int_equal(strstr(row.validity, "above its roof") != NULL, n == 5);
        assert_int_equal(strstr(row.detail, "serves a part") != NULL, n == 3);
    }
}

static void no_samples(void **state)
{
    const struct point_samples none = {NULL, 0, NULL};
    const struct point_facts facts = {.tokens_per_sample = 1};
    struct row row;

    (void)state;
    row_init(&row);
    point_judge(&row, &none, &facts, NULL);
    assert_int_equal(row.n_samples, 0);
    assert_true(isnan(row.tok_per_s));
    assert_int_equal(row.limiter, FIELD_NO_ENUM);
}

/* Prefill: 100 tokens a pass, judged against the int8 peak. */
static void prefill(void **state)
{
    const struct point_samples samples = {ms, 10, NULL};
    const struct point_facts facts = {
        .tokens_per_sample = 100, .ops_per_sample = 6e10, .bytes_per_sample = 1e9};
    struct noise noise = calm();
    struct row row;

    (void)state;
    row_init(&row);
    row.roof_gbps = 30;
    row.roof_gops = 400;
    row.load_s = 3;
    row.kind = POINT_PREFILL;
    noise.n_major_faults = 2000;
    point_judge(&row, &samples, &facts, &noise);
    assert_true(fabs(row.tok_per_s - 500) < 1e-6);
    assert_true(fabs(row.ttft_warm_s - 0.2) < 1e-9);
    assert_true(fabs(row.ttft_s - 3.2) < 1e-9);
    assert_true(fabs(row.gops - 300) < 1e-6);
    assert_true(fabs(row.major_faults_per_token - 2) < 1e-9);
    assert_true(isnan(row.mbu));
    assert_int_equal(row.limiter, LIMITER_PAGING);
    noise = calm();
    point_judge(&row, &samples, &facts, &noise);
    assert_int_equal(row.limiter, LIMITER_COMPUTE);
    row.roof_gops = 200;
    point_judge(&row, &samples, &facts, &noise);
    assert_non_null(strstr(row.detail, "peak"));
}

/* A step with a chunk, or of several sequences, has two roofs, and the lower one
 * counts; that of a token of one sequence is memory's. */
static void chunks(void **state)
{
    const struct point_samples samples = {ms, 10, NULL};
    const struct point_facts facts = {
        .tokens_per_sample = 4, .ops_per_sample = 6e10, .bytes_per_sample = 4e9};
    struct noise noise = calm();
    struct row row;

    (void)state;
    row_init(&row);
    row.kind = POINT_DECODE;
    row.n_chunk = 32;
    row.bytes_per_token = 1000000000;
    row.roof_gbps = 25;
    row.roof_gops = 400;
    row.roof_gops_lo = 380;
    row.roof_gops_hi = 420;
    point_judge(&row, &samples, &facts, &noise);
    assert_true(fabs(row.tok_per_s - 20) < 1e-6);
    assert_true(fabs(row.chunk_tok_per_s - 160) < 1e-6);
    assert_true(fabs(row.roof_tok_per_s - 25) < 1e-6); /* memory's */
    assert_true(fabs(row.mbu - 0.8) < 1e-6);
    row.roof_gbps = 50;
    point_judge(&row, &samples, &facts, &noise);
    assert_true(fabs(row.roof_tok_per_s - 20 * 400.0 / 300) < 1e-6);
    assert_true(fabs(row.mbu - 0.75) < 1e-6);
    assert_true(row.mbu_lo < row.mbu && row.mbu_hi > row.mbu);
    /* above either of them one of the figures is wrong */
    assert_null(strstr(row.validity, "above its roof"));
    row.roof_gbps = 15;
    point_judge(&row, &samples, &facts, &noise);
    assert_non_null(strstr(row.validity, "above its roof"));
    row.roof_gbps = 50;
    row.roof_gops = 200;
    point_judge(&row, &samples, &facts, &noise);
    assert_non_null(strstr(row.validity, "above its roof"));
    for (int n = 1; n <= 4; n += 3) {
        row.n_sequences = n > 1 ? n : FIELD_NO_INT;
        row.n_chunk = FIELD_NO_INT;
        row.roof_gops = 400;
        point_judge(&row, &samples, &facts, &noise);
        assert_true(fabs(row.roof_tok_per_s - (n > 1 ? 20 * 400.0 / 300 : 50)) < 1e-6);
        assert_int_equal(row_arithmetic_is_roof(&row), n > 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures),
        cmocka_unit_test(intervals),
        cmocka_unit_test(the_disk_is_a_roof),
        cmocka_unit_test(few_samples),
        cmocka_unit_test(limiters),
        cmocka_unit_test(a_quota_stops_few_tokens),
        cmocka_unit_test(a_quota_stops_fewer_tokens_than_a_block),
        cmocka_unit_test(drifts),
        cmocka_unit_test(above_the_roof),
        cmocka_unit_test(no_samples),
        cmocka_unit_test(prefill),
        cmocka_unit_test(chunks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
