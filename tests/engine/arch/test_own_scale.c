/* SPDX-License-Identifier: MIT
 *
 * test_own_scale.c - a model whose matrices have scales of their own is the model whose
 * weights are multiplied with them
 *
 * Scales are powers of two and weights floats, so that the two give the same bits.
 */
#include <math.h>

#include "engine/engine.h"
#include "tests/support/tiny_model.h"

enum { N_EMBD = 64, N_FF = 96, N_EXPERTS = 4, N_VOCAB = 80, N_TOKENS = 9 };

/* How a model says its scales. */
enum way { IN_WEIGHTS, BESIDE };

struct kind {
    const char *arch;
    bool experts, each; /* each: experts' tensors are apart */
};

/* A matrix of n_slices slices (0: none) with the scales s[n_slices], or s[0]. */
static void put_scaled(struct tiny *t, const char *stem, enum way way, uint64_t k,
                       uint64_t n_rows, uint64_t n_slices, const float *s)
{
    const size_t n = (size_t)(k * n_rows), slices = n_slices ? n_slices : 1;
    float *values = malloc(n * slices * sizeof *values);
    char name[96];

    assert_non_null(values);
    for (size_t i = 0; i < n * slices; i++)
        values[i] = test_random_float(&t->rng) * sqrtf(3.0F / (float)k) *
                    (way == IN_WEIGHTS ? s[i / n] : 1);
    snprintf(name, sizeof name, "%s.weight", stem);
    tiny_put(t, name, KERN_FMT_f32, k, n_rows, n_slices, values);
    snprintf(name, sizeof name, "%s.scale", stem);
    if (way != IN_WEIGHTS)
        tiny_put(t, name, KERN_FMT_f32, slices, 0, 0, s);
    snprintf(name, sizeof name, "%s.input_scale", stem);
    if (way != IN_WEIGHTS)
        tiny_put(t, name, KERN_FMT_f32, slices, 0, 0, s);
    free(values);
}

static void put_experts(struct tiny *t, const struct kind *kind, enum way way,
                        const char *part, uint64_t k, uint64_t n_rows)
{
    static const float scales[N_EXPERTS] = {0.5F, 4, 1, 0.25F};
    char stem[64];

    if (!kind->each) {
        snprintf(stem, sizeof stem, "blk.0.ffn_%s_exps", part);
        put_scaled(t, stem, way, k, n_rows, N_EXPERTS, scales);
        return;
    }
    for (int e = 0; e < N_EXPERTS; e++) {
        snprintf(stem, sizeof stem, "blk.0.ffn_%s.%d", part, e);
        put_scaled(t, stem, way, k, n_rows, 0, &scales[e]);
    }
}

static void put_norm(struct tiny *t, const char *name)
{
    tiny_random(t, name, KERN_FMT_f32, N_EMBD, 0, 0, 1, 0.1F);
}

static void describe_model(struct tiny *t, const struct kind *kind, enum way way)
{
    static const float half = 0.5F, two = 2, eighth = 0.125F;

    tiny_new(t, kind->arch);
    tiny_key_u32(t, ".block_count", 1);
    tiny_key_u32(t, ".embedding_length", N_EMBD);
    tiny_key_u32(t, ".feed_forward_length", N_FF);
    tiny_key_u32(t, ".context_length", N_TOKENS);
    tiny_key_u32(t, ".attention.head_count", 4);
    tiny_key_u32(t, ".attention.head_count_kv", 2);
    tiny_key_f32(t, ".attention.layer_norm_rms_epsilon", 1e-5F);
    if (kind->experts) {
        tiny_key_u32(t, ".expert_count", N_EXPERTS);
        tiny_key_u32(t, ".expert_used_count", 2);
    }
    put_scaled(t, "token_embd", way, N_EMBD, N_VOCAB, 0, &two); /* tied, too */
    put_norm(t, "output_norm.weight");
    put_norm(t, "blk.0.attn_norm.weight");
    put_norm(t, "blk.0.ffn_norm.weight");
    if (!strcmp(kind->arch, "phi3")) {
        put_scaled(t, "blk.0.attn_qkv", way, N_EMBD, 2 * N_EMBD, 0, &two);
        put_scaled(t, "blk.0.ffn_up", way, N_EMBD, 2 * N_FF, 0, &half);
    } else {
        put_scaled(t, "blk.0.attn_q", way, N_EMBD, N_EMBD, 0, &two);
        put_scaled(t, "blk.0.attn_k", way, N_EMBD, N_EMBD / 2, 0, &half);
        put_scaled(t, "blk.0.attn_v", way, N_EMBD, N_EMBD / 2, 0, &eighth);
    }
    put_scaled(t, "blk.0.attn_output", way, N_EMBD, N_EMBD, 0, &two);
    if (kind->experts) {
        put_scaled(t, "blk.0.ffn_gate_inp", way, N_EMBD, N_EXPERTS, 0, &two);
        put_experts(t, kind, way, "gate", N_EMBD, N_FF);
        put_experts(t, kind, way, "up", N_EMBD, N_FF);
        put_experts(t, kind, way, "down", N_FF, N_EMBD);
        return;
    }
    if (strcmp(kind->arch, "phi3") != 0) {
        put_scaled(t, "blk.0.ffn_gate", way, N_EMBD, N_FF, 0, &half);
        put_scaled(t, "blk.0.ffn_up", way, N_EMBD, N_FF, 0, &two);
    }
    put_scaled(t, "blk.0.ffn_down", way, N_FF, N_EMBD, 0, &eighth);
}

static void *make_model(const struct kind *kind, enum way way, size_t *bytes)
{
    struct tiny t;

    describe_model(&t, kind, way);
    return tiny_image(&t, bytes);
}

static enum status open_model(struct slm **m, void *image, size_t bytes,
                              struct err *err)
{
    struct slm_params p = slm_params_default();

    p.image = image;
    p.image_bytes = bytes;
    p.image_rewrite = true;
    p.name = "tiny";
    p.n_ctx = N_TOKENS;
    p.n_threads = 2;
    if (slm_open(m, &p, err) ||
        weights_preload(slm_weights(*m), slm_thread_pool(*m), NULL, NULL, err))
        return err->code;
    return ST_OK;
}

/* Logits of all tokens, step at a time. */
static void logits_of(const struct kind *kind, enum way way, size_t step,
                      float out[N_TOKENS][N_VOCAB])
{
    static const int32_t tokens[N_TOKENS] = {1, 79, 3, 40, 41, 0, 7, 7, 20};
    struct err err = ERR_INIT;
    size_t bytes;
    void *image = make_model(kind, way, &bytes);
    struct slm *m = NULL;

    if (open_model(&m, image, bytes, &err))
        fail_msg("%s", err.msg);
    for (size_t done = 0; done < N_TOKENS; done += step) {
        if (slm_eval(m, tokens + done, step, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (size_t i = 0; i < step; i++)
            memcpy(out[done + i], slm_logits(m, i), sizeof out[0]);
    }
    slm_close(m);
    free(image);
}

static void scales_beside_are_scales_in_the_weights(void **state)
{
    static const struct kind kinds[] = {
        {.arch = "llama"},
        {.arch = "phi3"},
        {.arch = "llama", .experts = true},
        {.arch = "llama", .experts = true, .each = true}};
    static float want[N_TOKENS][N_VOCAB], have[N_TOKENS][N_VOCAB];

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t step = 1; step <= N_TOKENS; step += 2)
            if (N_TOKENS % step == 0) {
                logits_of(&kinds[i], IN_WEIGHTS, step, want);
                logits_of(&kinds[i], BESIDE, step, have);
                assert_memory_equal(have, want, sizeof want);
            }
}

/* A model with one tensor more. */
static enum status open_with(const char *scale, enum kern_format fmt, uint64_t n,
                             const float *values, struct err *err)
{
    const struct kind kind = {.arch = "llama", .experts = true};
    size_t bytes;
    struct tiny t;
    struct slm *m = NULL;
    void *image;
    enum status st;

    describe_model(&t, &kind, IN_WEIGHTS);
    tiny_put(&t, scale, fmt, n, 0, 0, values);
    image = tiny_image(&t, &bytes);
    st = open_model(&m, image, bytes, err);
    if (!st) {
        const int32_t tokens[2] = {1, 2};

        (void)slm_eval(m, tokens, 2, SLM_LOGITS_ALL, err); /* whatever it says */
        slm_close(m);
    }
    free(image);
    return st;
}

static void refused(const char *scale, enum kern_format fmt, uint64_t n,
                    enum status status, const char *says)
{
    static const float values[32] = {1, 2, 3, 4, 5};
    struct err err = ERR_INIT;

    assert_int_equal(open_with(scale, fmt, n, values, &err), status);
    if (!strstr(err.msg, says))
        fail_msg("'%s' is not in: %s", says, err.msg);
}

static void scales_that_are_none(void **state)
{
    static const float bad[4] = {NAN, INFINITY, -INFINITY, 0};

    (void)state;
    refused("blk.0.attn_q.scale", KERN_FMT_f32, 2, ST_INPUT, "has 2 scales");
    refused("blk.0.ffn_up_exps.scale", KERN_FMT_f32, 3, ST_INPUT, "has 3 scales");
    refused("blk.0.attn_norm.scale", KERN_FMT_f32, 1, ST_UNSUPPORTED,
            "attn_norm.scale");
    refused("blk.0.nothing.scale", KERN_FMT_f32, 1, ST_UNSUPPORTED, "nothing.scale");
    for (int i = 0; i < 4; i++) {
        struct err err = ERR_INIT;

        if (open_with("blk.0.attn_q.scale", KERN_FMT_f32, 1, &bad[i], &err))
            fail_msg("%s", err.msg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scales_beside_are_scales_in_the_weights),
        cmocka_unit_test(scales_that_are_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
