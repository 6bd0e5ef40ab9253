/* SPDX-License-Identifier: MIT
 *
 * golden.h - tiny models of tests/data/models with known logits (see README.md there)
 */
#ifndef SLM_TESTS_GOLDEN_H
#define SLM_TESTS_GOLDEN_H

#include "engine/engine.h"
#include "tests/support/test.h"

enum { GOLDEN_TOKENS = 40, GOLDEN_VOCAB = 320 };

/* The text whose logits are known, after each of its tokens. */
static const int32_t golden_tokens[GOLDEN_TOKENS] = {
    1,   71,  294, 35,  133, 63,  256, 233, 244, 197, 110, 51, 252, 17,
    202, 224, 314, 4,   231, 139, 120, 305, 55,  165, 18,  14, 16,  280,
    7,   198, 113, 219, 17,  273, 116, 227, 256, 286, 122, 179};

/* A model, and the largest normalised mean squared error of all its logits: 1.2 times
 * what the reference engine reaches with quantised activations, twice that where a
 * routing decision may flip. */
struct golden {
    const char *name;
    double bound;
};

static const struct golden golden_llamas[] = {
    {"llama", 1.2 * 2.265e-4},
    {"llama-mqa", 1.2 * 2.207e-4},
    {"llama-moe", 2 * 1.2 * 2.912e-3},
    {"Q4_K_M", 1.2 * 3.020e-4},
};

enum { N_GOLDEN_LLAMAS = sizeof golden_llamas / sizeof golden_llamas[0] };

/* Exact logits of the golden text, [GOLDEN_TOKENS][GOLDEN_VOCAB], to be freed. */
static inline float *golden_logits(const char *name)
{
    char path[512];
    size_t bytes;

    snprintf(path, sizeof path, TEST_DATA "models/%s.exact.f32", name);
    float *logits = test_read_file(path, &bytes);
    assert_int_equal(bytes, sizeof *logits * GOLDEN_TOKENS * GOLDEN_VOCAB);
    return logits;
}

/* A model by its name, opened with these parameters. */
static inline struct slm *golden_open(const char *name, struct slm_params p)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    char path[512];

    snprintf(path, sizeof path, TEST_DATA "models/%s.gguf", name);
    p.path = path;
    if (slm_open(&m, &p, &err))
        fail_msg("%s", err.msg);
    return m;
}

#endif
