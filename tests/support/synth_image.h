/* SPDX-License-Identifier: MIT
 *
 * synth_image.h - small random models as images in memory, and the shapes of some: one
 * whose rows are whole blocks of every format, and less than that with every kind of
 * cache
 */
#ifndef SLM_TESTS_SYNTH_IMAGE_H
#define SLM_TESTS_SYNTH_IMAGE_H

#include "tests/support/test.h"

#include "engine/engine.h"
#include "engine/gguf/gguf.h"
#include "engine/synth/synth.h"

/* ---- shapes ---------------------------------------------------------------------- */

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

enum {
    SMALL_VOCAB = 300,
    SMALL_WINDOW = 40,
    SMALL_WHOLE = 1, /* of Gemma 3's first seven layers, these keep all positions */
    SMALL_WINDOWS = 6,
    SMALL_POS_BYTES = 2 * 2 * 32 * 2, /* a layer's keys and values: two heads of 32
                                         halves */
};

static const struct synth_shape small_plain = {
    .name = "plain",
    .arch = "llama",
    .n_layers = 3,
    .n_embd = 64,
    .n_ff = 96,
    .n_heads = 4,
    .n_kv_heads = 2,
    .head_dim = 32,
    .n_vocab = SMALL_VOCAB,
    .n_ctx_train = 700,
    .rope_base = 10000,
    .norm_eps = 1e-5F,
};

/* small_plain, whose layers but the sixth have a sliding window. */
static inline struct synth_shape small_windows(void)
{
    struct synth_shape s = small_plain;

    snprintf(s.name, sizeof s.name, "windows");
    snprintf(s.arch, sizeof s.arch, "gemma3");
    s.n_layers = SMALL_WHOLE + SMALL_WINDOWS;
    s.window = SMALL_WINDOW;
    s.tied_output = true;
    return s;
}

/* ---- images ---------------------------------------------------------------------- */

struct synth_image {
    struct synth_plan *plan;
    uint8_t *data; /* ends at an unreadable page */
    size_t bytes;
    struct gguf *g;
};

/* To be dropped with synth_image_drop(). */
static inline struct synth_image synth_image_make(const struct synth_shape *shape,
                                                  enum quantmix mix, uint64_t seed)
{
    struct synth_image x = {.plan = NULL};
    struct err err = ERR_INIT;

    if (synth_plan_make(&x.plan, shape, mix, seed, &err))
        fail_msg("%s", err.msg);
    x.bytes = (size_t)synth_plan_bytes(x.plan);
    x.data = guard_alloc(x.bytes);
    assert_int_equal(synth_write_memory(x.plan, x.data, NULL, NULL, &err), ST_OK);
    if (gguf_parse(&x.g, x.data, x.bytes, "synthetic", &err))
        fail_msg("%s", err.msg);
    return x;
}

static inline void synth_image_drop(struct synth_image *x)
{
    gguf_close(x->g);
    guard_free(x->data, x->bytes);
    synth_plan_free(x->plan);
}

/* ---- models ---------------------------------------------------------------------- */

static inline struct slm_params
synth_image_params(const struct synth_image *x, int n_threads, int n_ctx, int n_batch)
{
    struct slm_params p = slm_params_default();

    p.image = x->data;
    p.image_bytes = x->bytes;
    p.n_threads = n_threads;
    p.n_ctx = n_ctx;
    p.n_batch = n_batch;
    return p;
}

static inline struct slm *open_model(const struct slm_params *p)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (slm_open(&m, p, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Passes since the profile was begun. */
static inline size_t n_passes(const struct slm *m)
{
    static struct slm_profile profile;

    slm_profile_read(m, &profile);
    return profile.n_passes;
}

#endif
