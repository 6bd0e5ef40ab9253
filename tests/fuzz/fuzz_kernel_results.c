/* SPDX-License-Identifier: MIT
 *
 * fuzz_kernel_results.c - results of google-benchmark, as `bench kernels` reads them
 *
 * A name that is a case's is that case again after it was written.
 */
#include <string.h>

#include "harness/measure/kernels/kernel_case.h"
#include "harness/measure/kernels/kernel_result.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void check_case(const char *name)
{
    struct kernel_case c, again;
    struct kernel_name written;

    if (!kernel_case_parse(&c, name))
        return;
    written = kernel_case_name(&c);
    if (!kernel_case_parse(&again, written.text) ||
        strcmp(kernel_case_name(&again).text, written.text) != 0)
        fuzz_fail("the case %s is written as %s", name, written.text);
}

static void read_results(const uint8_t *data, size_t size)
{
    struct kernel_results r;
    struct err err = ERR_INIT;

    if (!fuzz_accepted(kernel_results_read(&r, fuzz_file("k.json", data, size), &err),
                       &err))
        return;
    for (size_t i = 0; i < r.n; i++) {
        const struct kernel_result *found = kernel_results_find(&r, r.v[i].name);

        if (!found || !r.v[i].name)
            fuzz_fail("a result is not found by its name");
        check_case(r.v[i].name);
    }
    kernel_results_free(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_results, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"benchmarks",
                                        "context",
                                        "name",
                                        "run_name",
                                        "run_type",
                                        "aggregate",
                                        "iteration",
                                        "real_time",
                                        "time_unit",
                                        "ns",
                                        "us",
                                        "ms",
                                        "s",
                                        "GB/s",
                                        "error_occurred",
                                        "error_message",
                                        "cpu_model",
                                        "gemv/q4_0/avx2",
                                        NULL};

    return mutate_json(data, size, max_size, seed, words);
}
