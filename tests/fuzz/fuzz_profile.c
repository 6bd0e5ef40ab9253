/* SPDX-License-Identifier: MIT
 *
 * fuzz_profile.c - profiles of `bench tune`, of a model and of kernels, as YAML
 */
#include "harness/measure/tune/tuned.h"
#include "harness/measure/tune/tuned_kernels.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void read_profile(const uint8_t *data, size_t size)
{
    static struct tuned t, before;
    static struct topology anywhere;
    struct slm_tuning tuning = slm_tuning_default();
    const char *path = fuzz_file("p.yaml", data, size);
    struct err err = ERR_INIT;
    char why[256];

    if (fuzz_accepted(tuned_load(&t, path, &err), &err)) {
        tuned_key_fits(&t.key, &before.key, why, sizeof why);
        before = t;
    }
    err_clear(&err);
    fuzz_accepted(tuned_kernels_load(&tuning, path, &anywhere, why, sizeof why, &err),
                  &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_profile, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"version",
                                        "made",
                                        "key",
                                        "choices",
                                        "formats",
                                        "name",
                                        "level",
                                        "prefetch",
                                        "panels",
                                        "cpu",
                                        "isa",
                                        "topology",
                                        "level_prefill",
                                        "weights",
                                        "packed",
                                        "mmap",
                                        "pages",
                                        "2m",
                                        "threads",
                                        "threads_prefill",
                                        "placement",
                                        "chunks",
                                        "chunks_prefill",
                                        "batch",
                                        "best",
                                        "scalar",
                                        "avx2",
                                        "T0 4096",
                                        "NTA 18446744073709551615",
                                        "off",
                                        "q4_0",
                                        "q4_K",
                                        NULL};

    return mutate_text(data, size, max_size, seed, words);
}
