/* SPDX-License-Identifier: MIT
 *
 * synth_file.h - a small synthetic model as a file
 */
#ifndef SLM_TESTS_SYNTH_FILE_H
#define SLM_TESTS_SYNTH_FILE_H

#include "tests/support/test.h"

#include "engine/synth/synth.h"

/* Rows that do not fill panels: 40 of k and v, 1013 of the output. */
static const struct synth_shape uneven_shape = {.name = "uneven",
                                                .arch = "llama",
                                                .n_layers = 2,
                                                .n_embd = 256,
                                                .n_ff = 512,
                                                .n_heads = 4,
                                                .n_kv_heads = 1,
                                                .head_dim = 40,
                                                .n_vocab = 1013,
                                                .n_ctx_train = 64,
                                                .rope_base = 10000,
                                                .norm_eps = 1e-5f};

/* Writes the file at path, over what was there. */
static inline void write_synth_file(const char *path, const struct synth_shape *shape,
                                    enum quantmix mix)
{
    struct err err = ERR_INIT;
    struct synth_plan *plan;

    if (synth_plan_make(&plan, shape, mix, 3, &err) ||
        synth_write_file(plan, path, NULL, NULL, &err))
        fail_msg("%s", err.msg);
    synth_plan_free(plan);
}

/* A file of the shape at path, a template for mkstemp(). */
static inline void make_file(char *path, const struct synth_shape *shape,
                             enum quantmix mix)
{
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    write_synth_file(path, shape, mix);
}

#endif
