/* SPDX-License-Identifier: MIT
 *
 * test_token_time.c - the longer of computing and reading
 */
#include "tests/support/test.h"

#include <math.h>

#include "harness/result/token_time.h"

/* 6 GB of weights, of 40 layers; 40 GB/s from memory, 1 GB/s from disk. */
static const struct token_roofs roofs = {.read_gbps = 40, .disk_gbps = 1};

static struct token_work work_of(double streamed_gb, int n_streamed, int n_slots)
{
    return (struct token_work){.memory_bytes = 6e9,
                               .streamed_bytes = streamed_gb * 1e9,
                               .n_layers = 40,
                               .n_streamed = n_streamed,
                               .n_slots = n_slots};
}

static void memory_alone_is_its_roof(void **state)
{
    const struct token_work w = work_of(0, 0, 0);
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
    const struct token_work little = work_of(0.1, 1, 2), much = work_of(1.2, 8, 2);

    (void)state;
    assert_float_equal(token_time_at(&little, &roofs, 1).token_s, 0.15, 1e-12);
    assert_float_equal(token_time_at(&little, &roofs, 1).disk_s, 0.1, 1e-12);
    assert_float_equal(token_time_at(&much, &roofs, 1).token_s, 1.2, 1e-12);
    assert_float_equal(token_time_predict(&much, &roofs).token_s, 1.2, 1e-12);
}

/* With one slot nothing is read while its layer is computed with: 8 layers of 40. */
static void a_single_slot_does_not_overlap(void **state)
{
    const struct token_work one = work_of(1.2, 8, 1);
    const struct token_time t = token_time_predict(&one, &roofs);

    (void)state;
    assert_float_equal(t.alone_s, t.compute_s / 5, 1e-12);
    assert_float_equal(t.token_s, 1.2 + t.compute_s / 5, 1e-12);
    assert_float_equal(token_time_at(&one, &roofs, 1).token_s, 1.2, 1e-12);
}

static void an_unknown_roof_is_no_time(void **state)
{
    const struct token_work w = work_of(1, 8, 2);
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
        cmocka_unit_test(a_single_slot_does_not_overlap),
        cmocka_unit_test(an_unknown_roof_is_no_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
