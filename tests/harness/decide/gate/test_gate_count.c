/* SPDX-License-Identifier: MIT
 *
 * test_gate_count.c - what is counted of a model, and that it can be run by its name
 */
#include "tests/support/test.h"

#include "harness/decide/gate/gate_count.h"
#include "harness/measure/worker/count_work.h"

static bool has(char name[GATE_MAX_COUNTS][128], size_t n, const char *begin)
{
    for (size_t i = 0; i < n; i++)
        if (!strncmp(name[i], begin, strlen(begin)))
            return true;
    return false;
}

/* Every name that may be asked for, on all levels of this machine and on the least. */
static void names_can_be_run(void **state)
{
    const uint32_t masks[] = {isa_usable(), 1u << KERN_ISA_scalar};
    char name[GATE_MAX_COUNTS][128];

    (void)state;
    for (int m = 0; m < 2; m++) {
        const size_t n = gate_count_names(name, NULL, masks[m]);

        assert_in_range(n, 7, GATE_MAX_COUNTS);
        assert_true(has(name, n, "gemv/q4_K/scalar/"));
        assert_true(has(name, n, "gemm/q6_K/"));
        assert_true(has(name, n, "attn_dot/f16/"));
        assert_true(has(name, n, "decode/nano:Q4_K_M"));
        for (size_t i = 0; i < n; i++) {
            struct count_work *w;
            struct err err = ERR_INIT;

            if (count_work_open(&w, name[i], &err))
                fail_msg("%s", err.msg);
            assert_int_equal(count_work_run(w, 3, &err), ST_OK);
            count_work_close(w);
        }
    }
}

static void names_follow_the_model(void **state)
{
    struct modelref model;
    struct err err = ERR_INIT;
    char name[GATE_MAX_COUNTS][128];
    size_t n;

    (void)state;
    assert_int_equal(
        modelref_parse(&model, TEST_DATA "models/stories260K-f32.gguf", NULL, &err),
        ST_OK);
    n = gate_count_names(name, &model, isa_usable());
    assert_true(has(name, n, "gemv/f32/"));
    assert_false(has(name, n, "gemv/q4_K/"));
    assert_true(has(name, n, "decode/nano:"));
}

static void refused(const char *name, enum status status, const char *text)
{
    struct count_work *w = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(count_work_open(&w, name, &err), status);
    assert_null(w);
    if (!strstr(err.msg, text))
        fail_msg("\"%s\" does not say \"%s\"", err.msg, text);
}

static void other_names_are_refused(void **state)
{
    (void)state;
    refused("", ST_USAGE, "is no kernel with its sizes");
    refused("roof/read/scalar", ST_USAGE, "is no kernel with its sizes");
    refused("gemv/q4_K/scalar", ST_USAGE, "add the size");
    refused("gemv/q4_K/scalar/rows:16/cols:100", ST_USAGE, "add the size");
    refused("gemv/q4_K/scalar/rows:16/cols:256/n_x:2", ST_USAGE, "add the size");
    refused("gemm/q4_K/scalar/rows:16/cols:256/n_x:513", ST_USAGE, "add the size");
    refused("gemv/q4_K/scalar/rows:1048576/cols:1048576", ST_USAGE, "up to 4096");
    refused("rmsnorm/scalar/n:1000000000", ST_USAGE, "up to 65536");
    refused("gemv/q9_K/scalar/rows:16/cols:256", ST_UNSUPPORTED, "has no kernel");
    refused("decode/nano", ST_USAGE, "nano");
    refused("decode/nano:Q9", ST_USAGE, "Q9");
}

/* Where the CPU counts, twice the calls are about twice the instructions. */
static void the_cpu_counts_or_says_why_not(void **state)
{
    struct count_work *w;
    struct err err = ERR_INIT;
    uint64_t few, many;

    (void)state;
    assert_int_equal(count_work_open(&w, "gemv/q4_K/scalar/rows:16/cols:256", &err),
                     ST_OK);
    if (count_work_pmu(w, 20, &few, &err)) {
        assert_int_equal(err.code, ST_UNSUPPORTED);
        assert_non_null(strstr(err.msg, "counter of instructions"));
        print_message("not counted: %s\n", err.msg);
    } else {
        assert_int_equal(count_work_pmu(w, 40, &many, &err), ST_OK);
        assert_in_range(many, few * 19 / 10, few * 21 / 10);
    }
    count_work_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_can_be_run),
        cmocka_unit_test(names_follow_the_model),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(the_cpu_counts_or_says_why_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
