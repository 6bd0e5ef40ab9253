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
    assert_int_equal(shares_measure(&measured, dirs, 6, &err), ST_OK);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_is_that_of_the_examples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
