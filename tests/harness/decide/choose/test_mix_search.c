/* SPDX-License-Identifier: MIT
 *
 * test_mix_search.c - mixes of least loss within a budget, against all mixes there are
 */
#include "tests/support/test.h"

#include "engine/base/random.h"
#include "harness/decide/choose/mix_search.h"

#define GROUPS 6
#define TYPES  4

/* Types from fine to coarse, of groups whose sizes and prices differ. */
static void fill(struct mix_option *o, uint64_t unit, uint64_t seed)
{
    uint64_t state = seed;

    for (size_t g = 0; g < GROUPS; g++) {
        const uint64_t size = 1 + random_bits(&state) % 9;
        const double price = (double)(1 + random_bits(&state) % 1000);

        for (size_t k = 0; k < TYPES; k++)
            o[g * TYPES + k] = (struct mix_option){
                .bytes = size * (8 - k) * unit + random_bits(&state) % unit,
                .loss = price * (double)(k * k) * (k == 2 ? 0.4 : 1)};
    }
}

/* The least loss of all mixes that fit; < 0: none does. */
static double min_loss(const struct mix_table *t, uint64_t budget)
{
    double least = -1;

    for (size_t mix = 0; mix < 4096; mix++) { /* TYPES ^ GROUPS */
        uint64_t bytes = 0;
        double loss = 0;

        for (size_t g = 0, rest = mix; g < GROUPS; g++, rest /= TYPES) {
            bytes += t->option[g * TYPES + rest % TYPES].bytes;
            loss += t->option[g * TYPES + rest % TYPES].loss;
        }
        if (bytes <= budget && (least < 0 || loss < least))
            least = loss;
    }
    return least;
}

static void check_sums(const struct mix_table *t, const uint8_t *type,
                       const struct mix_option *sum, uint64_t budget)
{
    struct mix_option own = {.bytes = 0};

    for (size_t g = 0; g < t->n_groups; g++) {
        assert_true(type[g] < t->n_types);
        own.bytes += t->option[g * t->n_types + type[g]].bytes;
        own.loss += t->option[g * t->n_types + type[g]].loss;
    }
    assert_int_equal(own.bytes, sum->bytes);
    assert_true(own.loss <= sum->loss + 1e-9 && own.loss >= sum->loss - 1e-9);
    assert_true(sum->bytes <= budget);
}

/* Few bytes to spend: the optimum, for every budget, and never worse with more. */
static void test_optimum(void **state)
{
    struct mix_option o[GROUPS * TYPES], sum;
    const struct mix_table t = {GROUPS, TYPES, o};
    uint8_t type[GROUPS];

    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        double before = 1e300;

        fill(o, 1, seed);
        for (uint64_t budget = mix_min_bytes(&t); budget < 500; budget += 3) {
            struct err err = ERR_INIT;

            assert_int_equal(mix_search(type, &sum, &t, budget, &err), ST_OK);
            check_sums(&t, type, &sum, budget);
            assert_true(sum.loss <= min_loss(&t, budget) + 1e-9);
            assert_true(sum.loss <= before);
            before = sum.loss;
        }
        assert_true(before < 1e-9);
    }
}

/* Gigabytes: more to spend than there are slots. */
static void test_many_bytes(void **state)
{
    struct mix_option o[GROUPS * TYPES], sum;
    const struct mix_table t = {GROUPS, TYPES, o};
    uint8_t type[GROUPS];

    (void)state;
    fill(o, UINT64_C(300000000), 7);
    for (uint64_t budget = mix_min_bytes(&t); budget < UINT64_C(90000000000);
         budget += UINT64_C(1700000001)) {
        struct err err = ERR_INIT;

        assert_int_equal(mix_search(type, &sum, &t, budget, &err), ST_OK);
        check_sums(&t, type, &sum, budget);
        assert_true(sum.loss <= 1.01 * min_loss(&t, budget) + 1e-9);
    }
}

/* Types that lose as much: the lighter one. */
static void test_ties(void **state)
{
    const struct mix_option o[] = {{40, 1}, {30, 1}, {20, 2}, {10, 0}, {9, 0}, {8, 5}};
    const struct mix_table t = {2, 3, o};
    struct mix_option sum;
    struct err err = ERR_INIT;
    uint8_t type[2];

    (void)state;
    assert_int_equal(mix_search(type, &sum, &t, 1000, &err), ST_OK);
    assert_int_equal(type[0], 1);
    assert_int_equal(type[1], 1);
    assert_int_equal(sum.bytes, 39);
}

static void test_budget_not_met(void **state)
{
    const struct mix_option o[] = {{40, 1}, {30, 3}, {11, 1}, {10, 2}};
    const struct mix_table t = {2, 2, o};
    struct mix_option sum = {.bytes = 7};
    struct err err = ERR_INIT;
    uint8_t type[2] = {9, 9};

    (void)state;
    assert_int_equal(mix_min_bytes(&t), 40);
    assert_int_equal(mix_search(type, &sum, &t, 39, &err), ST_CHECK);
    assert_non_null(strstr(err.msg, "40 bytes, more than 39"));
    assert_int_equal(type[0], 9);
    assert_int_equal(sum.bytes, 7);
    err = (struct err)ERR_INIT;
    assert_int_equal(mix_search(type, &sum, &t, 40, &err), ST_OK);
    assert_int_equal(type[0] + type[1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimum),
        cmocka_unit_test(test_many_bytes),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_budget_not_met),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
