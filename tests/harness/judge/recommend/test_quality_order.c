/* SPDX-License-Identifier: MIT
 *
 * test_quality_order.c - the order of types: total, and as docs/recommend.md has it
 */
#include "tests/support/test.h"

#include "harness/judge/recommend/recommend_choice.h"
#include "tests/support/recommend_rows.h"

static int rank(const char *quant)
{
    const struct row r = point(quant, 50, 2, 0, 1);

    return quality_rank(&r);
}

static void every_type_has_its_rank(void **state)
{
    bool taken[QUANTMIX_N] = {false};

    (void)state;
    for (int i = 0; i < QUANTMIX_N; i++) {
        const int k = rank(quantmix_name((enum quantmix)i));

        assert_in_range(k, 0, QUANTMIX_N - 1);
        assert_false(taken[k]);
        taken[k] = true;
    }
}

static void known_orders_hold(void **state)
{
    static const char *const order[] = {
        "F16",    "Q8_0",   "Q6_K", "Q5_K_M", "Q5_K_S",  "Q5_0", "Q4_K_M",
        "Q4_K_S", "IQ4_XS", "Q4_0", "Q3_K_M", "IQ3_XXS", "Q2_K", "IQ1_S"};

    (void)state;
    for (size_t i = 1; i < COUNT(order); i++)
        assert_true(rank(order[i - 1]) < rank(order[i]));
}

static void types_of_other_programs_rank_by_their_bits(void **state)
{
    struct row r = point("Q4_0_8_8", 0, 2, 0, 1);

    (void)state;
    assert_int_equal(quality_rank(&r), QUANTMIX_N); /* nothing is known */
    assert_false(quality_has_few_bits(&r));
    r.n_params = 8000;
    r.file_bytes = 5000; /* 5 bits */
    assert_true(quality_rank(&r) > rank("Q5_0") && quality_rank(&r) < rank("Q3_K_L"));
    assert_false(quality_has_few_bits(&r));
    r.file_bytes = 2500;
    assert_true(quality_rank(&r) > rank("Q3_K_S"));
    assert_true(quality_has_few_bits(&r));
}

/* Right behind the last type of no fewer bits. */
static void ranks_by_bits_are_exact(void **state)
{
    static const struct {
        double bits;
        const char *behind;
    } cases[] = {{5.0, "Q4_1"},  {5.01, "Q5_0"}, {4.5, "Q4_0"}, {8.5, "Q8_0"},
                 {8.51, "BF16"}, {20, "F32"},    {32, "F32"}};
    struct row r = point("Q4_0_8_8", 0, 2, 0, 1);

    (void)state;
    r.n_params = 80000;
    for (size_t i = 0; i < COUNT(cases); i++) {
        r.file_bytes = (int64_t)(cases[i].bits * 10000);
        if (quality_rank(&r) != rank(cases[i].behind) + 1)
            fail_msg("%g bits: rank %d, not behind %s (%d)", cases[i].bits,
                     quality_rank(&r), cases[i].behind, rank(cases[i].behind));
    }
    r.file_bytes = 33 * 10000; /* more than any */
    assert_int_equal(quality_rank(&r), 0);
    r.file_bytes = 4 * 10000;
    assert_false(quality_has_few_bits(&r));
    r.file_bytes--;
    assert_true(quality_has_few_bits(&r));
}

static void a_kv_cache_of_few_bits_is_a_loss(void **state)
{
    struct row r = point("F16", 160, 2, 0, 1);

    (void)state;
    assert_int_equal(quality_rank(&r), rank("F16"));
    r.kv_type = KERN_KV_bf16;
    assert_int_equal(quality_rank(&r), rank("BF16"));
    r.kv_type = KERN_KV_q8_0;
    assert_int_equal(quality_rank(&r), rank("Q8_0"));
    r.kv_type = KERN_KV_q4_0;
    assert_int_equal(quality_rank(&r), rank("Q5_0"));
    strcpy(r.quant, "Q2_K");
    assert_int_equal(quality_rank(&r), rank("Q2_K"));
}

static void int8_sums_are_a_loss(void **state)
{
    struct row r = point("Q8_0", 85, 2, 0, 1);

    (void)state;
    r.prefill_sums = SLM_SUMS_EXACT;
    assert_int_equal(quality_rank(&r), rank("Q8_0"));
    r.prefill_sums = SLM_SUMS_INT8;
    assert_int_equal(quality_rank(&r), rank("Q6_K"));
    strcpy(r.quant, "Q4_K_M");
    assert_int_equal(quality_rank(&r), rank("Q4_K_M"));
    strcpy(r.quant, "F32");
    r.prefill_sums = SLM_SUMS_EXACT;
    assert_int_equal(quality_rank(&r), 0);
}

/* What another program or version has done loses nobody knows how much. */
static void unknown_sums_and_caches_rank_last(void **state)
{
    struct row r = point("F16", 160, 2, 0, 1);

    (void)state;
    row_set_text(&r, row_field("prefill_sums"), "exact");
    assert_int_equal(r.prefill_sums, FIELD_NO_ENUM);
    assert_int_equal(quality_rank(&r), rank("F16"));
    row_set_text(&r, row_field("prefill_sums"), "int4");
    assert_true(quality_rank(&r) > rank("Q1_0"));
    row_set_text(&r, row_field("prefill_sums"), "");
    row_set_text(&r, row_field("kv_type"), "q2_x");
    assert_true(quality_rank(&r) > rank("Q1_0"));
    row_set_text(&r, row_field("kv_type"), "f32");
    assert_int_equal(quality_rank(&r), rank("F16"));
}

static void types_below_four_bits_are_few_bits(void **state)
{
    static const char *const few[] = {"Q3_K_L", "IQ3_M", "Q2_K", "IQ1_S", "TQ2_0"};
    static const char *const enough[] = {"Q4_0", "IQ4_XS", "MXFP4", "Q4_K_S", "F16"};
    struct row r;

    (void)state;
    for (size_t i = 0; i < COUNT(few); i++) {
        r = point(few[i], 50, 2, 0, 1);
        assert_true(quality_has_few_bits(&r));
        r = point(enough[i], 50, 2, 0, 1);
        assert_false(quality_has_few_bits(&r));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_has_its_rank),
        cmocka_unit_test(known_orders_hold),
        cmocka_unit_test(types_of_other_programs_rank_by_their_bits),
        cmocka_unit_test(ranks_by_bits_are_exact),
        cmocka_unit_test(a_kv_cache_of_few_bits_is_a_loss),
        cmocka_unit_test(int8_sums_are_a_loss),
        cmocka_unit_test(unknown_sums_and_caches_rank_last),
        cmocka_unit_test(types_below_four_bits_are_few_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
