/* SPDX-License-Identifier: MIT
 *
 * synth_image.h - a random model as an image in memory
 */
#ifndef SLM_TESTS_SYNTH_IMAGE_H
#define SLM_TESTS_SYNTH_IMAGE_H

#include "tests/support/test.h"

#include "engine/engine.h"
#include "engine/gguf/gguf.h"
#include "engine/synth/synth_parts.h"

static const struct synth_shape tiny = {
    .name = "tiny",
    .arch = "llama",
    .n_layers = 4,
    .n_embd = 256,
    .n_ff = 512,
    .n_heads = 4,
    .n_kv_heads = 2,
    .head_dim = 64,
    .n_vocab = 512,
    .n_ctx_train = 1024,
    .rope_base = 10000,
    .norm_eps = 1e-5F,
};

struct model {
    struct synth_plan *plan;
    uint8_t *image;
    size_t bytes;
    struct gguf *g;
};

static inline void make(struct model *m, const struct synth_shape *shape,
                        enum quantmix mix, uint64_t seed)
{
    struct err err = ERR_INIT;

    assert_int_equal(synth_plan_make(&m->plan, shape, mix, seed, &err), ST_OK);
    m->bytes = (size_t)synth_plan_bytes(m->plan);
    m->image = guard_alloc(m->bytes);
    assert_int_equal(synth_write_memory(m->plan, m->image, NULL, NULL, &err), ST_OK);
    if (gguf_parse(&m->g, m->image, m->bytes, "synthetic", &err))
        fail_msg("%s", err.msg);
}

static inline void drop(struct model *m)
{
    gguf_close(m->g);
    guard_free(m->image, m->bytes);
    synth_plan_free(m->plan);
}

#endif
