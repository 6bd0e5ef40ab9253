/* SPDX-License-Identifier: MIT
 *
 * stream_model.h - a deep little model in a file, the limits between which some of its
 * layers are streamed, and the logits of a sequence of steps
 */
#ifndef SLM_TESTS_STREAM_MODEL_H
#define SLM_TESTS_STREAM_MODEL_H

#include "tests/support/synth_file.h"

#include "engine/base/random.h"
#include "engine/engine.h"

#define N_CTX   48
#define N_STEPS 12

static const struct synth_shape deep_shape = {.name = "deep",
                                              .arch = "llama",
                                              .n_layers = 12,
                                              .n_embd = 256,
                                              .n_ff = 512,
                                              .n_heads = 4,
                                              .n_kv_heads = 1,
                                              .head_dim = 40,
                                              .n_vocab = 513,
                                              .n_ctx_train = 64,
                                              .rope_base = 10000,
                                              .norm_eps = 1e-5f};

static inline struct slm_params
params_of(const char *path, enum weights_residency residency, uint32_t isa_mask)
{
    struct slm_params p = slm_params_default();

    p.path = path;
    p.residency = residency;
    p.isa_mask = isa_mask;
    p.n_threads = 2;
    p.n_threads_prefill = 3;
    p.n_ctx = N_CTX;
    p.n_batch = 8;
    return p;
}

/* Without layers in panels each product is the same, whoever holds the weights. */
static inline uint32_t without_panels(void)
{
    const uint32_t mask = 1u << KERN_ISA_scalar;
    struct kern_set kern;

    kern_select(&kern, mask);
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        assert_null(kern.pack[fmt]);
    return mask;
}

/* The same, or as a mixture of experts. */
static inline struct synth_shape deep_shape_of(bool experts)
{
    struct synth_shape shape = deep_shape;

    if (experts) {
        snprintf(shape.arch, sizeof shape.arch, "qwen3moe");
        shape.n_experts = 9;
        shape.n_experts_used = 2;
    }
    return shape;
}

/* What is planned of a file. */
static inline void info_of(const struct slm_params *params, struct slm_info *info)
{
    struct gguf *g;
    struct err err = ERR_INIT;
    struct slm_params p = *params;

    p.memory_bytes = 0;
    if (gguf_open(&g, params->path, &err) || slm_plan(info, g, &p, &err))
        fail_msg("%s", err.msg);
    gguf_close(g);
}

/* The limits between which some layers are streamed. */
static inline void limits_of(const struct slm_params *params, uint64_t *least,
                             uint64_t *all)
{
    struct slm_info info;

    info_of(params, &info);
    assert_true(info.stream_min_bytes > 0);
    *least = info.kv_bytes + info.scratch_bytes + info.stream_min_bytes;
    *all = info.kv_bytes + info.scratch_bytes + info.weight_bytes;
    assert_true(*least < *all);
}

static inline struct slm *open_model(const struct slm_params *p)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (slm_open(&m, p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Within a limit in which some layers, or experts, are read from the file. */
static inline struct slm *open_streamed(struct slm_params p, bool experts)
{
    uint64_t least, all;
    struct slm *m;

    limits_of(&p, &least, &all);
    p.residency = WEIGHTS_STREAM;
    p.memory_bytes = least + (all - least) / 2;
    m = open_model(&p);
    assert_int_equal(slm_info(m)->n_streamed > 0, !experts);
    assert_int_equal(slm_info(m)->cache_bytes > 0, experts);
    return m;
}

/* A prompt, tokens one by one and several at a time, going back, other thread counts:
 * the last logits of each step, [N_STEPS][n_vocab]. */
static inline float *logits_of(struct slm *m, uint64_t seed)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    float *out = malloc(N_STEPS * n_vocab * sizeof *out);
    struct err err = ERR_INIT;
    struct slm_tuning tuning;
    int32_t tokens[N_CTX];

    assert_non_null(out);
    slm_get_tuning(m, &tuning);
    for (int i = 0; i < N_STEPS; i++) {
        const size_t n = i == 0 ? 19 : i % 3 ? 1 : 1 + random_below(&seed, 4);

        if (i == 5)
            slm_truncate(m, 7);
        if (i == 7)
            assert_int_equal(slm_tune(m, 3, 1, &tuning, &err), ST_OK);
        for (size_t k = 0; k < n; k++)
            tokens[k] = (int32_t)random_below(&seed, n_vocab);
        if (slm_eval(m, tokens, n, SLM_LOGITS_LAST, &err))
            fail_msg("%s", err.msg);
        memcpy(out + (size_t)i * n_vocab, slm_logits(m, 0), n_vocab * sizeof *out);
    }
    return out;
}

static inline size_t logits_bytes(const struct slm *m)
{
    return N_STEPS * (size_t)slm_info(m)->n_vocab * sizeof(float);
}

static inline float *mapped_logits(const char *path, uint32_t isa_mask)
{
    const struct slm_params p = params_of(path, WEIGHTS_MMAP, isa_mask);
    struct slm *m = open_model(&p);
    float *out = logits_of(m, 1);

    slm_close(m);
    return out;
}

#endif
