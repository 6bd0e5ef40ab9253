/* SPDX-License-Identifier: MIT
 *
 * test_shares_measure.c - shares of the examples' sweeps
 */
#include "tests/support/test.h"

#include "research/shares_measure.h"

#define EXAMPLES SLM_SOURCE_DIR "/results/examples/"

/* The file that comes with the program is what the examples give, to the letter. */
static void the_file_is_that_of_the_examples(void **state)
{
    static const char *const dirs[] = {
        EXAMPLES "granite-rapids-2vcpu", EXAMPLES "granite-rapids-2vcpu-busy",
        EXAMPLES "xeon-480mib-2vcpu",    EXAMPLES "zen5-2vcpu",
        EXAMPLES "zen5-2vcpu-busy",      EXAMPLES "emerald-rapids-kernels"};
    struct shares measured, stored;
    struct err err = ERR_INIT;
    char *printed = NULL;
    size_t len, bytes;
    char *file = test_read_file(SLM_SOURCE_DIR "/configs/shares.yaml", &bytes);
    FILE *f = open_memstream(&printed, &len);

    (void)state;
    assert_int_equal(shares_measure(&measured, dirs, 6, NULL, &err), ST_OK);
    shares_print(f, &measured);
    fclose(f);
    if (len != bytes || memcmp(printed, file, len) != 0)
        fail_msg("configs/shares.yaml is old; `bench-research shares "
                 "results/examples/*2vcpu* results/examples/*kernels` prints it");
    assert_int_equal(shares_load(&stored, SLM_SOURCE_DIR "/configs/shares.yaml", &err),
                     ST_OK);
    assert_int_equal(stored.n, measured.n);
    for (size_t i = 0; i < stored.n; i++) {
        assert_string_equal(stored.v[i].machine, measured.v[i].machine);
        assert_float_equal(stored.v[i].median, measured.v[i].median, 1e-4);
    }
    shares_free(&stored);
    shares_free(&measured);
    free(printed);
    free(file);
}

static bool has_product(const struct shares *s, enum kern_format format)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->v[i].kind == SHARE_PRODUCT && s->v[i].format == format)
            return true;
    return false;
}

/* The build that timed these kernels had rows of AVX2 alone for some formats, and the
 * CPU has AVX512-VNNI: shares of its peak would mislead. */
static void kernels_below_the_best_level_are_left_out(void **state)
{
    static const char *const dirs[] = {EXAMPLES "emerald-rapids-kernels"};
    static const enum kern_format by_avx2[] = {
        KERN_FMT_tq1_0,    KERN_FMT_tq2_0, KERN_FMT_q1_0, KERN_FMT_q2_0,
        KERN_FMT_q2_0_128, KERN_FMT_iq1_s, KERN_FMT_iq1_m};
    struct shares measured;
    struct err err = ERR_INIT;
    char *notes = NULL;
    size_t len, n = 0;
    FILE *f = open_memstream(&notes, &len);

    (void)state;
    assert_int_equal(shares_measure(&measured, dirs, 1, f, &err), ST_OK);
    fclose(f);
    for (size_t i = 0; i < sizeof by_avx2 / sizeof by_avx2[0]; i++)
        assert_false(has_product(&measured, by_avx2[i]));
    assert_true(has_product(&measured, KERN_FMT_q4_K));  /* avx512vnni */
    assert_true(has_product(&measured, KERN_FMT_mxfp4)); /* avx512vbmi */
    assert_int_equal(measured.n, 19);
    for (const char *at = notes; (at = strchr(at, '\n')) != NULL; at++)
        n++;
    assert_int_equal(n, 7);
    assert_non_null(strstr(notes, "gemm_x16 of tq1_0 is left out, as it is by avx2 and "
                                  "the machine has avx512vnni"));
    shares_free(&measured);
    free(notes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_that_of_the_examples),
        cmocka_unit_test(kernels_below_the_best_level_are_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
