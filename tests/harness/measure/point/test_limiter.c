/* SPDX-License-Identifier: MIT
 *
 * test_limiter.c - each verdict needs evidence, and the row has it
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/point/point_measure.h"
#include "harness/measure/worker/point_profile.h"

/* Samples of 200 ms that read 5 GB of a roof of 30 GB/s, and compute for 24 ms. */
static void make(struct row *row, struct point_facts *facts)
{
    row_init(row);
    row->n_samples = 48;
    row->lat_p50_ms = 200;
    row->roof_gbps = 30;
    row->major_faults_per_token = row->refaults_per_token = 0;
    row->throttled_pct = 0;
    strcpy(row->validity, "valid");
    *facts = (struct point_facts){.tokens_per_sample = 1,
                                  .bytes_per_sample = 5e9,
                                  .llc_bytes = 3e7,
                                  .profile_ms = 210,
                                  .wait_ms = 6.3,
                                  .arith_ms = 24};
}

static void check(struct row *row, const struct point_facts *facts, int limiter,
                  const char *why)
{
    point_limit(row, facts);
    assert_int_equal(row->limiter, limiter);
    assert_string_equal(row->limiter_why, why);
}

static void roofs(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    check(&row, &facts, LIMITER_MEMORY,
          "83 % of the bandwidth ceiling, 12 % of the arithmetic peak, 3 % waiting");
    facts.arith_ms = 160; /* that is nearer */
    check(&row, &facts, LIMITER_COMPUTE,
          "83 % of the bandwidth ceiling, 80 % of the arithmetic peak, 3 % waiting");

    make(&row, &facts);
    row.roof_gbps = 60;
    facts.arith_ms = 120;
    check(&row, &facts, LIMITER_COMPUTE,
          "42 % of the bandwidth ceiling, 60 % of the arithmetic peak, 3 % waiting");
}

/* A pass over many tokens that multiplies and unpacks for most of its time computes,
 * below every peak; a token's own products may wait for loads. */
static void a_pass_that_multiplies_computes(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    row.roof_gbps = 300;
    facts.product_ms = 147;
    facts.tokens_per_sample = 15;
    check(&row, &facts, LIMITER_LATENCY,
          "8 % of the bandwidth ceiling, 12 % of the arithmetic peak, 3 % waiting");
    facts.tokens_per_sample = 512;
    check(&row, &facts, LIMITER_COMPUTE,
          "8 % of the bandwidth ceiling, 12 % of the arithmetic peak, 70 % "
          "multiplying and unpacking, 3 % waiting");
    facts.wait_ms = 60;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_SYNC);
    facts.wait_ms = 6.3;
    facts.product_ms = 84;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_LATENCY);
}

/* What vectors unpack for tiles takes longer than the tiles' products. */
static void tiles_have_a_peak_of_their_own(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    row.roof_gbps = 60;
    row.roof_gops = 5400;
    row.gops = 648;
    check(&row, &facts, LIMITER_LATENCY,
          "42 % of the bandwidth ceiling, 12 % of the arithmetic peak, 3 % waiting");
    row.roof_vectors_gops = 864;
    check(&row, &facts, LIMITER_COMPUTE,
          "42 % of the bandwidth ceiling, 12 % of the AMX-INT8 peak, 75 % of that of "
          "vectors, 3 % waiting");
    row.roof_vectors_gops = 2000;
    check(&row, &facts, LIMITER_LATENCY,
          "42 % of the bandwidth ceiling, 12 % of the AMX-INT8 peak, 32 % of that of "
          "vectors, 3 % waiting");
}

/* Where neither roof is near, it is not arithmetic that takes the time. */
static void no_roof_is_near(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    row.roof_gbps = 60;
    check(&row, &facts, LIMITER_LATENCY,
          "42 % of the bandwidth ceiling, 12 % of the arithmetic peak, 3 % waiting");
    facts.wait_ms = 63;
    check(&row, &facts, LIMITER_SYNC,
          "42 % of the bandwidth ceiling, 12 % of the arithmetic peak, 30 % waiting");

    make(&row, &facts);
    facts.bytes_per_sample = 2e7; /* a cache's bandwidth is no ceiling of memory */
    row.roof_gbps = 0.11;
    check(&row, &facts, LIMITER_CACHE,
          "91 % of memory's bandwidth ceiling (the cache holds it), 12 % of the "
          "arithmetic peak, 3 "
          "% waiting");
    row.roof_gbps = 0.22;
    check(&row, &facts, LIMITER_LATENCY,
          "45 % of memory's bandwidth ceiling (the cache holds it), 12 % of the "
          "arithmetic peak, 3 "
          "% waiting");
    facts.bytes_per_sample = 5e7; /* the cache serves a part */
    facts.llc_hi_bytes = 4e7;
    row.roof_gbps = 0.3;
    check(&row, &facts, LIMITER_MEMORY,
          "83 % of the bandwidth ceiling (the cache holds part of it), 12 % of the "
          "arithmetic peak, 3 % waiting");
}

static void nothing_is_guessed(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    row.roof_gbps = 60;
    facts.arith_ms = facts.wait_ms = facts.profile_ms = 0;
    check(&row, &facts, FIELD_NO_ENUM, ""); /* no evidence for what has no name */
    facts.bytes_per_sample = 2e7;
    check(&row, &facts, FIELD_NO_ENUM, "");
    row.roof_gbps = 0.11; /* another program's ceiling is that of memory */
    facts.stand_in_bytes = 1e9;
    check(&row, &facts, FIELD_NO_ENUM, "");
    facts.stand_in_bytes = 0;
    check(&row, &facts, LIMITER_CACHE,
          "91 % of memory's bandwidth ceiling (the cache holds it)");
    row.roof_gbps = NAN;
    check(&row, &facts, FIELD_NO_ENUM, "");
    row.roof_gops = 100;
    row.gops = 65;
    check(&row, &facts, LIMITER_COMPUTE, "65 % of the arithmetic peak");
}

static void what_is_outside_comes_first(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    row.refaults_per_token = 100000;
    check(&row, &facts, LIMITER_PAGING, "2 GB/s read from disk");
    row.roof_disk_gbps = 2.5;
    check(&row, &facts, LIMITER_PAGING,
          "2 GB/s read from disk, 82 % of what the disk gives");

    /* Others read from disk while a model in memory has a quota. */
    make(&row, &facts);
    row.refaults_per_token = 100000;
    row.throttled_pct = 89;
    row.residency = WEIGHTS_MEMORY;
    check(&row, &facts, LIMITER_QUOTA, "89 % of the time stopped by the CPU quota");
    row.mem_enforced_bytes = 1 << 30; /* with a limit they are its own group's */
    check(&row, &facts, LIMITER_PAGING, "2 GB/s read from disk");

    /* One page in a sample of a tiny model takes no time that counts. */
    make(&row, &facts);
    facts.bytes_per_sample = 1e6;
    row.lat_p50_ms = 0.07;
    row.roof_gbps = 60;
    row.roof_disk_gbps = 0; /* not known */
    row.major_faults_per_token = 1;
    point_limit(&row, &facts);
    assert_int_not_equal(row.limiter, LIMITER_PAGING);
    row.roof_disk_gbps = 0.2; /* of a slow disk it does */
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);
    row.roof_disk_gbps = 0;
    row.major_faults_per_token = 200;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);

    make(&row, &facts);
    row.throttled_pct = 34;
    check(&row, &facts, LIMITER_QUOTA, "34 % of the time stopped by the CPU quota");

    make(&row, &facts);
    strcpy(row.validity, "disturbed: steal 4 %, others 9 %");
    check(&row, &facts, LIMITER_NOISE, "steal 4 %, others 9 %");
}

/* Every threshold, at its value and just below or above it. */
static void thresholds_are_where_they_are_described(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    facts.bytes_per_sample = 6e9; /* 30 GB/s */
    row.roof_gbps = 50;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_MEMORY);
    row.roof_gbps = 50.1;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_LATENCY);
    facts.arith_ms = 100; /* half of a sample */
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_COMPUTE);
    row.roof_gbps = 50; /* as near as memory */
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_MEMORY);
    row.roof_gbps = 60;
    facts.arith_ms = 99;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_LATENCY);
    facts.wait_ms = 42; /* a fifth */
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_SYNC);
    facts.wait_ms = 41.9;
    facts.product_ms = 105;
    facts.tokens_per_sample = 16;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_COMPUTE);
    facts.product_ms = 104.9;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_LATENCY);

    row.throttled_pct = 2;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_LATENCY);
    row.throttled_pct = 2.01;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_QUOTA);
    row.disk_wait_pct = 19.9;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_QUOTA);
    row.disk_wait_pct = 20;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_DISK);
}

/* Pages of a sample: as many as touched bytes make likely, one at least, and they take
 * a twentieth of the time. */
static void paging_needs_pages_and_time(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    row.roof_disk_gbps = 0.001; /* 4.1 ms for a page; a twentieth is 10 ms */
    row.roof_gbps = 60;
    facts.bytes_per_sample = 4096 / 2e-5 * 3;
    row.major_faults_per_token = 2.99;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_LATENCY);
    row.major_faults_per_token = 3.01;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);
    row.lat_p50_ms = 300; /* they take less than a twentieth */
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_LATENCY);
    row.lat_p50_ms = 200;
    facts.bytes_per_sample = 4096; /* few bytes: one page at least */
    row.roof_disk_gbps = 0.0001;
    row.major_faults_per_token = 0.99;
    point_limit(&row, &facts);
    assert_int_not_equal(row.limiter, LIMITER_PAGING);
    row.major_faults_per_token = 1;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);
    facts.tokens_per_sample = 2; /* a sample's are those of its tokens */
    row.major_faults_per_token = 0.5;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);
    row.major_faults_per_token = 0; /* the larger of both counts */
    row.refaults_per_token = 0.5;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);

    /* from 64 pages on each has the usual wait of 0.1 ms */
    make(&row, &facts);
    row.roof_gbps = 60;
    facts.bytes_per_sample = 1e6;
    row.roof_disk_gbps = 100;
    row.lat_p50_ms = 128;
    row.major_faults_per_token = 63.9;
    point_limit(&row, &facts);
    assert_int_not_equal(row.limiter, LIMITER_PAGING);
    row.major_faults_per_token = 64;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);
    row.lat_p50_ms = 129;
    point_limit(&row, &facts);
    assert_int_not_equal(row.limiter, LIMITER_PAGING);
    row.major_faults_per_token = 200; /* of a packed model without a limit, too */
    row.residency = WEIGHTS_PACKED;
    point_limit(&row, &facts);
    assert_int_equal(row.limiter, LIMITER_PAGING);
    row.major_faults_per_token = 0;
    row.refaults_per_token = 200; /* those are somebody else's */
    point_limit(&row, &facts);
    assert_int_not_equal(row.limiter, LIMITER_PAGING);
}

static void the_disk_is_described(void **state)
{
    struct point_facts facts;
    struct row row;

    (void)state;
    make(&row, &facts);
    row.disk_wait_pct = 45;
    check(&row, &facts, LIMITER_DISK, "45 % waiting for the disk");
    row.disk_bytes_per_token = 500000000;
    row.tok_per_s = 5;
    row.disk_share = 0.9;
    check(&row, &facts, LIMITER_DISK,
          "45 % waiting for the disk, which gave 2.5 GB/s, 90 % of what it gives");
    row.lat_p50_ms = NAN; /* nothing was measured */
    check(&row, &facts, FIELD_NO_ENUM, "");
    row.lat_p50_ms = 0;
    check(&row, &facts, FIELD_NO_ENUM, "");
}

/* Products of quantised weights at the int8 peak, others at that of f32. */
static void a_profile_is_evidence(void **state)
{
    static const struct point_profile p = {
        .n_samples = 8,
        .n_rows = 3,
        .sample_ms = 10,
        .int8_gops = 1000,
        .f32_gops = 100,
        .rows = {{.work_ms = 6, .wait_ms = 1, .macs = 1e9, .is_int8 = true},
                 {.work_ms = 2, .wait_ms = 0.5, .macs = 1e8},
                 {.work_ms = 0.5}}};

    struct point_facts facts;

    (void)state;
    point_profile_facts(&p, &facts);
    assert_true(facts.profile_ms == 10);
    assert_true(fabs(facts.wait_ms - 1.5) < 1e-12);
    assert_true(fabs(facts.product_ms - 8) < 1e-12);
    assert_true(fabs(facts.arith_ms - 4) < 1e-12);
}

/* The texts of the column, of older rows, too. */
static void texts(void **state)
{
    static const char *const names[] = {
        [LIMITER_MEMORY] = "memory",        [LIMITER_COMPUTE] = "compute",
        [LIMITER_PAGING] = "paging",        [LIMITER_QUOTA] = "quota",
        [LIMITER_NOISE] = "noise",          [LIMITER_LATENCY] = "latency",
        [LIMITER_SYNC] = "synchronisation", [LIMITER_DISK] = "disk",
        [LIMITER_CACHE] = "cache"};

    (void)state;
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        assert_int_equal(row_enum_value(&choices_limiter, names[i]), i);
        assert_string_equal(row_enum_text(&choices_limiter, i), names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(roofs),
        cmocka_unit_test(a_pass_that_multiplies_computes),
        cmocka_unit_test(tiles_have_a_peak_of_their_own),
        cmocka_unit_test(no_roof_is_near),
        cmocka_unit_test(nothing_is_guessed),
        cmocka_unit_test(what_is_outside_comes_first),
        cmocka_unit_test(thresholds_are_where_they_are_described),
        cmocka_unit_test(paging_needs_pages_and_time),
        cmocka_unit_test(the_disk_is_described),
        cmocka_unit_test(a_profile_is_evidence),
        cmocka_unit_test(texts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
