/* SPDX-License-Identifier: MIT
 *
 * test_arch.c - every architecture: recorded logits, and models of awkward shapes
 * against a plain forward pass in double precision
 *
 * The recorded models tell whether an architecture is understood, the others whether
 * it is computed right where dimensions do not divide: by panels, by blocks, by each
 * other.
 */
#include "tests/support/reference.h"

#include "engine/synth/synth.h"
#include "tests/support/golden.h"
#include "tests/support/tiny_model.h"

/* ---- recorded logits ------------------------------------------------------------ */

static const struct golden GOLDEN[] = {
    {"qwen2", 1.2 * 2.232e-4},        {"qwen3", 1.2 * 2.765e-4},
    {"gemma2", 1.2 * 1.256e-4},       {"gemma3", 1.2 * 3.205e-5},
    {"phi2", 1.2 * 1.173e-4},         {"phi3", 1.2 * 2.239e-4},
    {"stablelm", 1.2 * 2.589e-4},     {"qwen2moe", 2 * 1.2 * 3.006e-4},
    {"qwen3moe", 2 * 1.2 * 3.568e-3}, {"MXFP4", 1.2 * 1.372e-4},
    {"NVFP4_SCALE", 1.2 * 1.234e-4},  {"Q1_0", 1.2 * 8.657e-5},
    {"Q2_0", 1.2 * 2.307e-4},
};

/* Logits of n tokens, step at a time; malloc'ed. */
static float *logits_of(const struct slm_params *p, const int32_t *tokens, size_t n,
                        size_t step)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    float *out = NULL;

    if (slm_open(&m, p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;

    out = malloc(n * n_vocab * sizeof *out);
    assert_non_null(out);
    for (size_t done = 0; done < n; done += step) {
        const size_t batch = n - done < step ? n - done : step;

        if (slm_eval(m, tokens + done, batch, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (size_t i = 0; i < batch; i++)
            memcpy(out + (done + i) * n_vocab, slm_logits(m, i), n_vocab * sizeof *out);
    }
    slm_close(m);
    return out;
}

static void test_recorded_logits(void **state)
{
    static const struct {
        int n_threads;
        size_t step;
        enum weights_residency residency;
    } ways[] = {{1, 64, WEIGHTS_PACKED}, {2, 1, WEIGHTS_PACKED}, {3, 7, WEIGHTS_MMAP}};

    (void)state;
    for (size_t i = 0; i < sizeof GOLDEN / sizeof GOLDEN[0]; i++) {
        const struct golden *g = &GOLDEN[i];
        float *exact = golden_logits(g->name);
        char path[512];

        snprintf(path, sizeof path, TEST_DATA "models/%s.gguf", g->name);
        for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
            struct slm_params p = slm_params_default();

            p.path = path;
            p.residency = ways[w].residency;
            p.n_threads = ways[w].n_threads;
            p.n_ctx = GOLDEN_TOKENS;
            float *have = logits_of(&p, golden_tokens, GOLDEN_TOKENS, ways[w].step);
            const double e = nmse(have, exact, GOLDEN_TOKENS * GOLDEN_VOCAB);
            if (!(e <= g->bound))
                fail_msg("%s, %d threads, %zu at a time: NMSE %g > %g", g->name,
                         ways[w].n_threads, ways[w].step, e, g->bound);
            free(have);
        }
        free(exact);
    }
}

/* ---- models of any architecture and shape --------------------------------------- */

enum { N_TOKENS = 44, N_VOCAB = 77, WINDOW = 9 };

/* What a file of an architecture has besides what all have. */
struct layout {
    struct traits t;
    int n_layers;
    bool fused_qkv, qkv_bias, all_bias, plain_ffn, fused_ffn;
    bool qk_norm, post_norms, no_ffn_norm, tied;
};

struct shape {
    int n_embd, n_heads, n_kv, head_dim, n_rot, n_ff;
};

static const struct layout LAYOUTS[] = {
    {.t = {.arch = "llama", .neighbours = true}, .n_layers = 2},
    {.t = {.arch = "qwen2"}, .n_layers = 2, .qkv_bias = true, .tied = true},
    {.t = {.arch = "qwen3"}, .n_layers = 2, .qk_norm = true},
    {.t = {.arch = "gemma2",
           .gelu = true,
           .scaled = true,
           .attn_cap = 2,
           .logit_cap = 3,
           .window = WINDOW,
           .period = 2},
     .n_layers = 3,
     .post_norms = true,
     .tied = true},
    {.t = {.arch = "gemma3",
           .gelu = true,
           .scaled = true,
           .window = WINDOW,
           .period = 6,
           .window_base = 10000},
     .n_layers = 7,
     .post_norms = true,
     .qk_norm = true,
     .tied = true},
    {.t = {.arch = "phi2", .layernorm = true, .gelu = true, .parallel = true},
     .n_layers = 2,
     .fused_qkv = true,
     .all_bias = true,
     .plain_ffn = true,
     .no_ffn_norm = true},
    {.t = {.arch = "phi2", .layernorm = true, .gelu = true, .parallel = true},
     .n_layers = 2,
     .all_bias = true,
     .plain_ffn = true,
     .no_ffn_norm = true},
    {.t = {.arch = "phi3", .window = WINDOW},
     .n_layers = 2,
     .fused_qkv = true,
     .fused_ffn = true},
    {.t = {.arch = "phi3"}, .n_layers = 2, .fused_ffn = true, .tied = true},
    {.t = {.arch = "stablelm", .layernorm = true}, .n_layers = 2, .qkv_bias = true},
    {.t = {.arch = "stablelm", .layernorm = true, .parallel = true, .head_norms = true},
     .n_layers = 2,
     .qk_norm = true,
     .no_ffn_norm = true},
    {.t = {.arch = "chatglm", .neighbours = true},
     .n_layers = 2,
     .fused_qkv = true,
     .qkv_bias = true,
     .fused_ffn = true},
    {.t = {.arch = "glm4", .neighbours = true},
     .n_layers = 2,
     .qkv_bias = true,
     .fused_ffn = true,
     .post_norms = true},
    {.t = {.arch = "glm4", .neighbours = true},
     .n_layers = 2,
     .fused_qkv = true,
     .fused_ffn = true,
     .post_norms = true},
};

/* Borders of fused tensors inside and outside of panels, rows that no block divides,
 * one to three KV heads. */
static const struct shape SHAPES[] = {
    {96, 4, 2, 40, 20, 128}, {64, 3, 1, 80, 32, 100}, {96, 6, 3, 96, 96, 160},
    {64, 2, 2, 256, 64, 96}, {72, 3, 3, 24, 18, 60},
};

static enum kern_format format_for(enum kern_format fmt, int k)
{
    return (uint32_t)k % kern_format_info(fmt)->block_elems ? KERN_FMT_f16 : fmt;
}

/* "blk.<layer>.<name><end>", or without a layer for -1. */
static void full_name(char full[64], int layer, const char *name, const char *end)
{
    if (layer < 0)
        snprintf(full, 64, "%s%s", name, end);
    else
        snprintf(full, 64, "blk.%d.%s%s", layer, name, end);
}

/* A matrix whose products with vectors of unit variance have about that too. */
static void put_matrix(struct tiny *t, int layer, const char *name,
                       enum kern_format fmt, int k, int n_rows, float gain)
{
    char full[64];

    full_name(full, layer, name, ".weight");
    tiny_random(t, full, format_for(fmt, k), (uint64_t)k, (uint64_t)n_rows, 0, 0,
                gain * sqrtf(3.0F / (float)k));
}

/* n weights around 1, or biases around 0; of several heads where n_heads is not 0. */
static void put_vector(struct tiny *t, int layer, const char *name, int n, int n_heads)
{
    const bool is_bias = strstr(name, ".bias") != NULL;
    char full[64];

    full_name(full, layer, name, "");
    tiny_random(t, full, KERN_FMT_f32, (uint64_t)n, (uint64_t)n_heads, 0,
                is_bias ? 0 : 1, 0.4F);
}

static void put_norm(struct tiny *t, const struct layout *y, int layer,
                     const char *name, int n)
{
    char full[64];

    snprintf(full, sizeof full, "%s.weight", name);
    put_vector(t, layer, full, n, 0);
    snprintf(full, sizeof full, "%s.bias", name);
    if (y->t.layernorm)
        put_vector(t, layer, full, n, 0);
}

static void put_attention(struct tiny *t, const struct layout *y, const struct shape *s,
                          int layer, enum kern_format fmt)
{
    const int n_q = s->n_heads * s->head_dim, n_kv = s->n_kv * s->head_dim;
    const int heads[2] = {s->n_heads, s->n_kv};

    if (y->fused_qkv)
        put_matrix(t, layer, "attn_qkv", fmt, s->n_embd, n_q + 2 * n_kv, 2);
    for (int i = 0; i < 3 && !y->fused_qkv; i++) {
        static const char *const names[] = {"attn_q", "attn_k", "attn_v"};

        put_matrix(t, layer, names[i], fmt, s->n_embd, i ? n_kv : n_q, 2);
    }
    if ((y->qkv_bias || y->all_bias) && y->fused_qkv)
        put_vector(t, layer, "attn_qkv.bias", n_q + 2 * n_kv, 0);
    for (int i = 0; i < 3 && (y->qkv_bias || y->all_bias) && !y->fused_qkv; i++) {
        static const char *const names[] = {"attn_q.bias", "attn_k.bias",
                                            "attn_v.bias"};

        put_vector(t, layer, names[i], i ? n_kv : n_q, 0);
    }
    for (int i = 0; i < 2 && y->qk_norm; i++)
        put_vector(t, layer, i ? "attn_k_norm.weight" : "attn_q_norm.weight",
                   s->head_dim, y->t.head_norms ? heads[i] : 0);
    put_matrix(t, layer, "attn_output", fmt, n_q, s->n_embd, 1);
    if (y->all_bias)
        put_vector(t, layer, "attn_output.bias", s->n_embd, 0);
}

static void put_feed_forward(struct tiny *t, const struct layout *y,
                             const struct shape *s, int layer, enum kern_format fmt)
{
    if (!y->fused_ffn && !y->plain_ffn)
        put_matrix(t, layer, "ffn_gate", fmt, s->n_embd, s->n_ff, 1);
    put_matrix(t, layer, "ffn_up", fmt, s->n_embd, (y->fused_ffn ? 2 : 1) * s->n_ff, 1);
    put_matrix(t, layer, "ffn_down", fmt, s->n_ff, s->n_embd, 1);
    if (y->all_bias) {
        put_vector(t, layer, "ffn_up.bias", s->n_ff, 0);
        put_vector(t, layer, "ffn_down.bias", s->n_embd, 0);
    }
}

static void put_keys(struct tiny *t, const struct layout *y, const struct shape *s)
{
    tiny_key_u32(t, ".block_count", (uint32_t)y->n_layers);
    tiny_key_u32(t, ".embedding_length", (uint32_t)s->n_embd);
    tiny_key_u32(t, ".feed_forward_length", (uint32_t)s->n_ff);
    tiny_key_u32(t, ".context_length", N_TOKENS);
    tiny_key_u32(t, ".attention.head_count", (uint32_t)s->n_heads);
    tiny_key_u32(t, ".attention.head_count_kv", (uint32_t)s->n_kv);
    tiny_key_u32(t, ".attention.key_length", (uint32_t)s->head_dim);
    tiny_key_u32(t, ".attention.value_length", (uint32_t)s->head_dim);
    tiny_key_u32(t, ".rope.dimension_count", (uint32_t)s->n_rot);
    tiny_key_f32(t, ".rope.freq_base", 1000000);
    tiny_key_f32(t,
                 y->t.layernorm ? ".attention.layer_norm_epsilon"
                                : ".attention.layer_norm_rms_epsilon",
                 1e-5F);
    if (y->t.window)
        tiny_key_u32(t, ".attention.sliding_window", (uint32_t)y->t.window);
    if (y->t.attn_cap > 0)
        tiny_key_f32(t, ".attn_logit_softcapping", (float)y->t.attn_cap);
    if (y->t.logit_cap > 0)
        tiny_key_f32(t, ".final_logit_softcapping", (float)y->t.logit_cap);
}

static void *make_model(const struct layout *y, const struct shape *s,
                        enum kern_format fmt, size_t *bytes)
{
    struct tiny t;

    tiny_new(&t, y->t.arch);
    put_keys(&t, y, s);
    put_matrix(&t, -1, "token_embd", fmt, s->n_embd, N_VOCAB, 1);
    if (!y->tied)
        put_matrix(&t, -1, "output", fmt, s->n_embd, N_VOCAB, 2);
    put_norm(&t, y, -1, "output_norm", s->n_embd);
    if (y->all_bias)
        put_vector(&t, -1, "output.bias", N_VOCAB, 0);
    for (int i = 0; i < y->n_layers; i++) {
        put_norm(&t, y, i, "attn_norm", s->n_embd);
        put_attention(&t, y, s, i, fmt);
        if (!y->no_ffn_norm)
            put_norm(&t, y, i, "ffn_norm", s->n_embd);
        put_feed_forward(&t, y, s, i, fmt);
        if (y->post_norms) {
            put_norm(&t, y, i, "post_attention_norm", s->n_embd);
            put_norm(&t, y, i, "post_ffw_norm", s->n_embd);
        }
    }
    return tiny_image(&t, bytes);
}

/* ---- the comparison
 * ------------------------------------------------------------------ */

static void reference_logits(const void *image, size_t bytes, const struct layout *y,
                             const int32_t *tokens, float *out)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;

    if (gguf_parse(&g, image, bytes, y->t.arch, &err))
        fail_msg("%s", err.msg);
    struct reference r = reference_open(g, &y->t, N_TOKENS);

    for (int i = 0; i < N_TOKENS; i++)
        reference_step(&r, tokens[i], out + i * N_VOCAB);
    reference_close(&r);
    gguf_close(g);
    forget_tensors();
}

/* Every way must come within bound of the reference. */
static void check_model(const struct layout *y, const struct shape *s,
                        enum kern_format fmt, enum kern_kv kv_type, double bound)
{
    static const struct {
        int n_threads;
        size_t step;
        bool rewrite; /* into panels */
        uint32_t isa_mask;
    } ways[] = {{1, 64, true, ~0u},
                {3, 1, true, ~0u},
                {2, 7, false, ~0u},
                {2, 19, true, 1u << KERN_ISA_scalar}};
    static float want[N_TOKENS * N_VOCAB];
    int32_t tokens[N_TOKENS];
    uint64_t rng = 5;
    size_t bytes;
    char *image = make_model(y, s, fmt, &bytes);
    char *copy = aligned_alloc(64, (bytes + 63) / 64 * 64);

    assert_non_null(copy);
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)(test_random(&rng) % N_VOCAB);
    reference_logits(image, bytes, y, tokens, want);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct slm_params p = slm_params_default();

        memcpy(copy, image, bytes);
        p.image = copy;
        p.image_bytes = bytes;
        p.image_rewrite = ways[w].rewrite;
        p.name = y->t.arch;
        p.isa_mask &= ways[w].isa_mask;
        p.kv_type = kv_type;
        p.n_threads = ways[w].n_threads;
        p.n_ctx = N_TOKENS;
        float *have = logits_of(&p, tokens, N_TOKENS, ways[w].step);
        const double e = nmse(have, want, N_TOKENS * N_VOCAB);
        if (!(e <= bound))
            fail_msg("%s (layout %d), %d wide, %d/%d heads of %d, %s, way %zu: NMSE %g "
                     "> %g",
                     y->t.arch, (int)(y - LAYOUTS), s->n_embd, s->n_heads, s->n_kv,
                     s->head_dim, kern_format_info(fmt)->name, w, e, bound);
        free(have);
    }
    free(copy);
    free(image);
}

/* The first, second or third of the checks of all layouts and shapes: with sanitizers
 * each meets a third of them, and every pair is met by one. */
static void check_all(int check, enum kern_format fmt, enum kern_kv kv_type,
                      double bound)
{
    for (size_t y = 0; y < sizeof LAYOUTS / sizeof LAYOUTS[0]; y++)
        for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
            if (test_thin() == 1 || (y + s) % 3 == (size_t)check)
                check_model(&LAYOUTS[y], &SHAPES[s], fmt, kv_type, bound);
}

/* Only the cache is rounded. */
static void test_float_weights(void **state)
{
    (void)state;
    check_all(0, KERN_FMT_f32, KERN_KV_f16, 2e-6);
}

/* Activations are rounded to 8 bits, too. A wrong term costs a hundred times that. */
static void test_quantised_weights(void **state)
{
    (void)state;
    check_all(1, KERN_FMT_q8_0, KERN_KV_f16, 2e-3);
    check_all(2, KERN_FMT_q4_0, KERN_KV_q8_0, 6e-3);
}

/* ---- synthetic models
 * ---------------------------------------------------------------- */

/* A synthetic model has the tensors and keys its architecture asks for, and sane
 * activations. */
static void test_synthetic_models(void **state)
{
    struct synth_shape shape = {.name = "tiny",
                                .n_layers = 3,
                                .n_embd = 128,
                                .n_ff = 192,
                                .n_heads = 4,
                                .n_kv_heads = 2,
                                .head_dim = 40,
                                .n_rot = 20,
                                .n_vocab = 512,
                                .n_ctx_train = 64,
                                .window = 16,
                                .rope_base = 10000,
                                .norm_eps = 1e-5F};

    (void)state;
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof LAYOUTS[0]; i++) {
        struct slm_params p = slm_params_default();
        struct synth_plan *plan = NULL;
        struct err err = ERR_INIT;
        int32_t tokens[N_TOKENS];

        snprintf(shape.arch, sizeof shape.arch, "%s", LAYOUTS[i].t.arch);
        shape.qkv_bias = LAYOUTS[i].qkv_bias;
        shape.tied_output = LAYOUTS[i].tied;
        if (synth_plan_make(&plan, &shape, QUANTMIX_Q4_K_M, 7, &err))
            fail_msg("%s", err.msg);
        p.image_bytes = (size_t)synth_plan_bytes(plan);
        void *image = aligned_alloc(64, (p.image_bytes + 63) / 64 * 64);
        assert_non_null(image);
        assert_int_equal(synth_write_memory(plan, image, NULL, NULL, &err), ST_OK);
        p.image = image;
        p.image_rewrite = true;
        p.name = shape.arch;
        p.n_ctx = N_TOKENS;
        for (int t = 0; t < N_TOKENS; t++)
            tokens[t] = (t * 37 + 3) % 512;
        float *logits = logits_of(&p, tokens, N_TOKENS, 13);
        double squares = 0;

        for (int j = 0; j < N_TOKENS * 512; j++)
            squares += (double)logits[j] * (double)logits[j];
        /* Drawn to a deviation of 2; caps and scaled embeddings move that. */
        const double spread = sqrt(squares / (N_TOKENS * 512));
        if (!(spread > 0.2 && spread < 40))
            fail_msg("%s: logits spread by %g", shape.arch, spread);
        free(logits);
        free(image);
        synth_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recorded_logits),
        cmocka_unit_test(test_float_weights),
        cmocka_unit_test(test_quantised_weights),
        cmocka_unit_test(test_synthetic_models),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
