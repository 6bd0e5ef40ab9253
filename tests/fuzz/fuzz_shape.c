/* SPDX-License-Identifier: MIT
 *
 * fuzz_shape.c - shapes of models, as YAML
 */
#include "harness/model/modelref.h"
#include "tests/fuzz/support/mutate.h"
#include "tests/fuzz/support/oracle.h"

static void read_shape(const uint8_t *data, size_t size)
{
    const char *path = fuzz_file("shape.yaml", data, size);
    struct synth_shape shape;
    struct err err = ERR_INIT;

    fuzz_accepted(shape_load(&shape, path, &err), &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_run(read_shape, data, size, FUZZ_BOUND);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed)
{
    static const char *const words[] = {
        "arch",     "llama", "gemma2", "qwen35", "layers",  "embd", "heads",
        "kv_heads", "ff",    "vocab",  "ctx",    "experts", NULL};

    return mutate_text(data, size, max_size, seed, words);
}
