/* SPDX-License-Identifier: MIT
 *
 * test_token_time.c - the longer of computing and reading
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/rows/token_time.h"

/* 6 GB of weights, of 40 layers; 40 GB/s from memory, 1 GB/s from disk. */
static const struct token_roofs roofs = {.read_gbps = 40, .disk_gbps = 1};

static struct token_work work_of(double streamed_gb, int n_streamed)
{
    return (struct token_work){.memory_bytes = 6e9,
                               .streamed_bytes = streamed_gb * 1e9,
                               .n_layers = 40,
                               .n_streamed = n_streamed};
}

static void memory_alone_is_its_roof(void **state)
{
    const struct token_work w = work_of(0, 0);
    const struct token_roofs no_disk = {.read_gbps = 40};

    (void)state;
    assert_float_equal(token_time_at(&w, &roofs, 1).token_s, 0.15, 1e-12);
    assert_float_equal(token_time_at(&w, &no_disk, 1).token_s, 0.15, 1e-12);
    assert_float_equal(token_time_predict(&w, &roofs).token_s,
                       0.15 / TOKEN_TIME_USUAL_SHARE, 1e-12);
    assert_float_equal(token_time_predict(&w, &roofs).disk_s, 0, 0);
}

static void the_longer_one_counts(void **state)
{
    const struct token_work little = work_of(0.1, 1), much = work_of(1.2, 8);

    (void)state;
    assert_float_equal(token_time_at(&little, &roofs, 1).token_s, 0.15 + 0.3 * 0.1,
                       1e-12);
    assert_float_equal(token_time_at(&little, &roofs, 1).disk_s, 0.1, 1e-12);
    assert_float_equal(token_time_at(&much, &roofs, 1).token_s, 1.2 + 0.3 * 0.15,
                       1e-12);
    assert_float_equal(token_time_predict(&much, &roofs).token_s,
                       1.2 + 0.3 * 0.15 / TOKEN_TIME_USUAL_SHARE, 1e-12);
}

/* Shares of small models are lower, though products reach the same share: 24 to 48
 * layers of which two threads meet after each product. */
static void layers_take_their_own_time(void **state)
{
    static const struct {
        double bytes, gbps;
        int n_layers, n_threads;
        double token_ms;
    } described[] = {
        {0.39e9, 32, 28, 2, 13.247 + 1.26}, {0.39e9, 18, 28, 1, 23.551 + 0.56},
        {0.63e9, 32, 22, 2, 21.399 + 0.99}, {0.27e9, 28, 32, 2, 10.481 + 1.44},
        {5.2e9, 40, 48, 2, 141.304 + 2.16}, {5.2e9, 400, 48, 64, 14.130 + 2.16},
    };
    double share[6];

    (void)state;
    for (size_t i = 0; i < sizeof described / sizeof *described; i++) {
        const struct token_work w = {.memory_bytes = described[i].bytes,
                                     .layer_s =
                                         token_time_layer_s(described[i].n_threads),
                                     .n_layers = described[i].n_layers};
        const struct token_roofs r = {.read_gbps = described[i].gbps};
        const struct token_time t = token_time_predict(&w, &r);

        assert_float_equal(t.token_s * 1e3, described[i].token_ms, 2e-3);
        assert_float_equal(t.compute_s, t.token_s, 1e-15);
        assert_true(t.own_s > 0 && t.own_s < 0.15 * t.token_s);
        share[i] = token_time_min(&w, &r).token_s / t.token_s;
    }
    /* a small model, the same with one thread, and a large one */
    assert_true(share[0] < share[1] && share[1] < share[4]);
    assert_true(share[4] < TOKEN_TIME_USUAL_SHARE);
    /* a large one is small where memory is fast */
    assert_true(share[5] < share[4]);
}

/* While a streamed layer is read, the others compute and do all else. */
static void own_time_overlaps_with_the_disk(void **state)
{
    struct token_work w = work_of(0.16, 4);

    (void)state;
    w.layer_s = 0.001; /* 10 layers each: 47.5 ms, in which 40 ms are read */
    assert_float_equal(token_time_at(&w, &roofs, 1).token_s, 0.15 + 0.04 + 0.3 * 0.16,
                       1e-12);
    w.streamed_bytes = 0.4e9; /* 100 ms */
    assert_float_equal(token_time_at(&w, &roofs, 1).token_s, 0.4 + 0.3 * 0.19, 1e-12);
}

/* 3 of 40 layers: one of the distances is longer, 14 layers of 52.5 ms; 50 ms of
 * reading are longer than the others, 13 layers of 48.75 ms. */
static void layers_are_read_one_by_one(void **state)
{
    const struct token_work uneven = work_of(0.15, 3);
    struct token_work w = work_of(0.15, 4);
    struct token_time t = token_time_at(&uneven, &roofs, 1);

    (void)state;
    assert_float_equal(t.token_s, 0.05 + 0.05 + 14 * 0.15 / 40 + 0.3 * 0.15, 1e-12);
    assert_float_equal(t.alone_s, t.token_s - 0.15, 1e-8);
    assert_float_equal(token_time_min(&uneven, &roofs).token_s, 0.15, 1e-12);
    assert_float_equal(token_time_min(&uneven, &roofs).alone_s, 0, 0);

    /* 10 layers each; after the last one a sixth of all is output */
    w.output_bytes = 1e9;
    t = token_time_at(&w, &roofs, 1);
    assert_float_equal(t.token_s, 3 * 0.0375 + (0.125 / 4 + 0.025) + 0.3 * 0.15, 1e-12);
}

/* Nobody knows which experts a token takes before it takes them. */
static void experts_overlap_with_nothing(void **state)
{
    struct token_work w = work_of(0.1, 0);

    (void)state;
    w.on_demand = true;
    assert_float_equal(token_time_at(&w, &roofs, 1).token_s, 0.25, 1e-8);
    assert_float_equal(token_time_min(&w, &roofs).token_s, 0.15, 1e-8);
}

static void a_disk_has_a_range(void **state)
{
    const struct token_roofs probed = {.disk_gbps = 2},
                             known = {.disk_gbps = 2, .disk_lo = 0.5, .disk_hi = 1.5};

    (void)state;
    assert_float_equal(token_roofs_end(&probed, false).disk_gbps,
                       2 * TOKEN_TIME_LATER_LO, 1e-12);
    assert_float_equal(token_roofs_end(&probed, true).disk_gbps,
                       2 * TOKEN_TIME_LATER_HI, 1e-12);
    assert_float_equal(token_roofs_end(&known, false).disk_gbps, 1, 1e-12);
    assert_float_equal(token_roofs_end(&known, true).disk_gbps, 3, 1e-12);
}

static void an_unknown_roof_is_no_time(void **state)
{
    const struct token_work w = work_of(1, 8);
    const struct token_roofs no_disk = {.read_gbps = 40}, none = {.disk_gbps = 1};

    (void)state;
    assert_true(isnan(token_time_predict(&w, &no_disk).token_s));
    assert_true(isnan(token_time_predict(&w, &none).token_s));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_alone_is_its_roof),
        cmocka_unit_test(the_longer_one_counts),
        cmocka_unit_test(layers_take_their_own_time),
        cmocka_unit_test(own_time_overlaps_with_the_disk),
        cmocka_unit_test(layers_are_read_one_by_one),
        cmocka_unit_test(experts_overlap_with_nothing),
        cmocka_unit_test(a_disk_has_a_range),
        cmocka_unit_test(an_unknown_roof_is_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
