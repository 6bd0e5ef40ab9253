/* SPDX-License-Identifier: MIT
 *
 * fuzz_gate_yaml.c - the settings of a gate, as YAML
 */
#include <string.h>

#include "harness/decide/gate/gate_settings.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"
#include "tests/fuzz/support/small_machine.h"

static void read_settings(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("g.yaml", data, size);
    struct gate_settings s;
    struct err err = ERR_INIT;
    char text[256];

    memset(&s, 0, sizeof s);
    if (fuzz_accepted(
            gate_settings_make_rule(&s, path, NULL, NULL, small_machine(), &err), &err))
        gate_settings_text(&s, text, sizeof text);
    gate_settings_free(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_settings, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "model",     "kernels",     "budget",     "timeout", "rounds",
        "margin",    "alpha_fail",  "alpha_pass", "memory",  "margin_memory",
        "load",      "margin_load", "exit_codes", "threads", "prefill",
        "ctx",       "2 %",         "q4_0",       "yes",     "no",
        "[0, 1, 4]", "90s",         NULL};

    return mutate_text(data, size, max_size, seed, words);
}
