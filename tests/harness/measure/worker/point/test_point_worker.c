/* SPDX-License-Identifier: MIT
 *
 * test_point_worker.c - passes of a point's probes, and what a token takes
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/measure/worker/point/point_worker.h"

static void probe_size(void **state)
{
    const uint64_t mib = UINT64_C(1) << 20;

    (void)state;
    assert_int_equal(point_probe_bytes(2, 0, 5000 * mib), 256 * mib);
    assert_int_equal(point_probe_bytes(96, 0, 5000 * mib), 1536 * mib);
    assert_int_equal(point_probe_bytes(2, 1024 * mib, 5000 * mib), 128 * mib);
    assert_int_equal(point_probe_bytes(2, 0, 100 * mib), 100 * mib);
    assert_int_equal(point_probe_bytes(2, 0, 5 * mib), 64 * mib);

    /* 16 MiB up to half of the limit, or no figure */
    assert_int_equal(point_probe_bytes(2, 64 * mib, 5000 * mib), 16 * mib);
    assert_int_equal(point_probe_bytes(2, 32 * mib, 5 * mib), 16 * mib);
    assert_int_equal(point_probe_bytes(2, 31 * mib, 5000 * mib), 0);
}

/* Samples for budget_s seconds, with passes that take cost_s between them. Returns the
 * share of time that the passes take; *n: their number. */
static double share_beside(double sample_s, double cost_s, double budget_s, int *n)
{
    double now = 0, last = 0, spent = 0, cost = 0;

    for (*n = 0; now < budget_s;) {
        now += sample_s;
        if (!point_beside_due(now - last, budget_s, cost))
            continue;
        cost = cost_s;
        now += cost;
        spent += cost;
        last = now;
        ++*n;
    }
    return spent / now;
}

/* Passes between samples are spread over the whole measurement, and take a tenth of it
 * at most. */
static void passes_beside_samples(void **state)
{
    int n;

    (void)state;
    assert_true(share_beside(0.001, 0.001, 20, &n) < 0.01 && n >= 35 && n <= 40);
    assert_true(share_beside(0.2, 0.25, 20, &n) < 0.11 && n >= 7);
    assert_true(share_beside(1, 1.05, 60, &n) < 0.11 && n >= 5);
    share_beside(0.01, 0.001, 600, &n); /* as many as there is memory for */
    assert_true(n <= N_ROOF_BESIDE && n > N_ROOF_BESIDE / 2);
    assert_false(point_beside_due(0.4, 20, 0));
    assert_true(point_beside_due(0.5, 20, 0));
}

/* Steps between samples are of as many tokens; their energy is not measured. */
static void what_a_token_takes(void **state)
{
    struct point_worker *c = calloc(1, sizeof *c);
    struct point p;

    (void)state;
    assert_non_null(c);
    point_init(&p);
    p.n_sequences = 4;
    c->p = &p;
    c->n_samples = 10;
    c->n_woken = 5;
    c->facts.tokens_per_sample = 4;
    assert_float_equal(point_tokens_read(c), 60, 1e-9);
    c->energy.n = 1;
    c->energy.domain[0].is_package = true;
    c->energy.domain[0].used_uj = 20000000;
    row_init(&c->row);
    point_note_energy(c);
    assert_float_equal(c->row.joules_per_token, 0.5, 1e-9);
    row_init(&c->row);
    p.n_chunk = 8;
    point_note_energy(c);
    assert_true(isnan(c->row.joules_per_token));
    free(c);
}

/* A pass that takes 25 ms at the peak, if its model does not page. */
static void long_passes_have_a_profile(void **state)
{
    struct point_worker *c = calloc(1, sizeof *c);
    struct point p;

    (void)state;
    assert_non_null(c);
    point_init(&p);
    p.kind = POINT_PREFILL;
    c->p = &p;
    c->fits = true;
    c->peak.median = 1000;
    c->facts.ops_per_sample = 25e9;
    assert_true(point_profiles_samples(c));
    c->facts.ops_per_sample = 24.9e9;
    assert_false(point_profiles_samples(c));
    p.profile = true;
    assert_true(point_profiles_samples(c));
    p.profile = false;
    c->facts.ops_per_sample = 1e15;
    c->fits = false;
    assert_false(point_profiles_samples(c));
    c->fits = true;
    p.kind = POINT_SPECULATE;
    assert_false(point_profiles_samples(c));
    p.kind = POINT_DECODE;
    assert_true(point_profiles_samples(c));
    p.n_chunk = 32;
    assert_false(point_profiles_samples(c));
    p.n_chunk = 0;
    c->peak.median = 0; /* of one sequence it is not probed */
    assert_false(point_profiles_samples(c));
    free(c);
}

static void idle_units_are_named_once(void **state)
{
    static const char all[] = "AMX-INT8 AMX-BF16 AMX-FP16 AVX512-FP16 AVX-VNNI-INT8 "
                              "AVX-VNNI-INT16 AVX10.2";
    struct row r = {.unused_units = ""};

    (void)state;
    point_note_unused(&r, "AMX-BF16");
    assert_string_equal(r.unused_units, "AMX-BF16");
    for (int i = 0; i < 2; i++) {
        point_note_unused(&r, "AMX-INT8");
        point_note_unused(&r, "AMX-BF16");
        assert_string_equal(r.unused_units, "AMX-INT8 AMX-BF16");
    }
    strcpy(r.unused_units, strstr(all, "AMX-FP16"));
    point_note_unused(&r, "AMX-BF16");
    point_note_unused(&r, "AMX-INT8");
    assert_string_equal(r.unused_units, all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_units_are_named_once),
        cmocka_unit_test(long_passes_have_a_profile),
        cmocka_unit_test(probe_size),
        cmocka_unit_test(passes_beside_samples),
        cmocka_unit_test(what_a_token_takes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
