/* SPDX-License-Identifier: MIT
 *
 * test_token_time.c - the longer of computing and reading
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/result/token_time.h"

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
    assert_float_equal(token_time_at(&little, &roofs, 1).token_s, 0.15, 1e-12);
    assert_float_equal(token_time_at(&little, &roofs, 1).disk_s, 0.1, 1e-12);
    assert_float_equal(token_time_at(&much, &roofs, 1).token_s, 1.2, 1e-12);
    assert_float_equal(token_time_predict(&much, &roofs).token_s, 1.2, 1e-12);
}

/* 3 of 40 layers: one of the distances is longer, 14 layers of 52.5 ms; 50 ms of
 * reading are longer than the others, 13 layers of 48.75 ms. */
static void layers_are_read_one_by_one(void **state)
{
    const struct token_work uneven = work_of(0.15, 3);
    struct token_work w = work_of(0.15, 4);
    struct token_time t = token_time_at(&uneven, &roofs, 1);

    (void)state;
    assert_float_equal(t.token_s, 0.05 + 0.05 + 14 * 0.15 / 40, 1e-12);
    assert_float_equal(t.alone_s, t.token_s - 0.15, 1e-8);
    assert_float_equal(token_time_least(&uneven, &roofs).token_s, 0.15, 1e-12);
    assert_float_equal(token_time_least(&uneven, &roofs).alone_s, 0, 0);

    /* 10 layers each; after the last one a sixth of all is output */
    w.output_bytes = 1e9;
    t = token_time_at(&w, &roofs, 1);
    assert_float_equal(t.token_s, 3 * 0.0375 + (0.125 / 4 + 0.025), 1e-12);
}

/* Nobody knows which experts a token takes before it takes them. */
static void experts_overlap_with_nothing(void **state)
{
    struct token_work w = work_of(0.1, 0);

    (void)state;
    w.on_demand = true;
    assert_float_equal(token_time_at(&w, &roofs, 1).token_s, 0.25, 1e-8);
    assert_float_equal(token_time_least(&w, &roofs).token_s, 0.15, 1e-8);
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
        cmocka_unit_test(layers_are_read_one_by_one),
        cmocka_unit_test(experts_overlap_with_nothing),
        cmocka_unit_test(an_unknown_roof_is_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
