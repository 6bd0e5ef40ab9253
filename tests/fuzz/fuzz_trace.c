/* SPDX-License-Identifier: MIT
 *
 * fuzz_trace.c - recorded times of `bench-research`: traces, and rounds.csv of a gate
 *
 * Short traces are refused, so the lines of the input stand there often enough.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "research/gate_trace.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void use_trace(const char *path)
{
    struct err err = ERR_INIT;
    struct gate_trace t = {.n = 0};

    if (!fuzz_accepted(gate_trace_read(&t, path, &err), &err))
        return;
    for (size_t i = 0; i < t.n; i++)
        if (!isfinite(t.log_time[i]))
            fuzz_fail("turn %zu of a trace is no number", i);
    gate_trace_noise(&t);
    gate_trace_free(&t);
}

static void read_trace(const uint8_t *data, size_t size)
{
    const size_t times = size < 4096 ? 8 : 1;
    char *many = malloc(size * times + 1);

    if (!many)
        fuzz_fail("no memory for a trace");
    for (size_t i = 0; i < times; i++)
        memcpy(many + i * size, data, size);
    fuzz_input_grows(2 * size * times);
    use_trace(fuzz_file("a.trace", many, size * times));
    use_trace(fuzz_file("rounds.csv", many, size * times));
    free(many);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_trace, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {"12.5", "1e-6",       "1e9",         "ABBA",
                                        "BAAB", "\"decode\"", "# a machine", NULL};

    return mutate_text(data, size, max_size, seed, words);
}
