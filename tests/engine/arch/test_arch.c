/* SPDX-License-Identifier: MIT
 *
 * test_arch.c - every architecture: recorded logits, and models of awkward shapes
 * against a plain forward pass in double precision
 *
 * The recorded models tell whether an architecture is understood, the others whether
 * it is computed right where dimensions do not divide: by panels, by blocks, by each
 * other.
 */
#include "tests/engine/arch/layouts.h"

#include "engine/synth/synth.h"
#include "tests/support/golden.h"

/* ---- recorded logits ------------------------------------------------------------- */

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

/* ---- the comparison -------------------------------------------------------------- */

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

static int compare_doubles(const void *a, const void *b)
{
    const double p = *(const double *)a, q = *(const double *)b;

    return (p > q) - (p < q);
}

/* The error of all logits; with experts that of a quarter of the tokens: where two of
 * them are all but equally good, rounding may make another choice, which later tokens
 * see. */
static double error_of(const struct layout *y, const float *have, const float *want)
{
    double each[N_TOKENS];

    if (!y->n_experts)
        return nmse(have, want, N_TOKENS * N_VOCAB);
    for (int i = 0; i < N_TOKENS; i++)
        each[i] = nmse(have + i * N_VOCAB, want + i * N_VOCAB, N_VOCAB);
    qsort(each, N_TOKENS, sizeof *each, compare_doubles);
    return each[N_TOKENS / 4];
}

/* bound is that of two layers; each amplifies the errors of those before it, unless its
 * results are normalised, and other experts of an early token cost all later ones a
 * little. */
static double bound_of(const struct layout *y, double bound)
{
    if (!y->post_norms && y->n_layers > 2)
        bound *= y->n_layers * y->n_layers / 4.0;
    return y->n_experts ? 3 * bound : bound;
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
        const double e = error_of(y, have, want);
        if (!(e <= bound_of(y, bound)))
            fail_msg("%s (layout %d), %d wide, %d/%d heads of %d, %s, way %zu: NMSE %g "
                     "> %g",
                     y->t.arch, (int)(y - LAYOUTS), s->n_embd, s->n_heads, s->n_kv,
                     s->head_dim, kern_format_info(fmt)->name, w, e,
                     bound_of(y, bound));
        free(have);
    }
    free(copy);
    free(image);
}

/* The first, second or third of the checks of all layouts and shapes: with sanitizers,
 * and for the layouts after the first few, each meets a third of them, and every pair
 * is met by one. */
static void check_all(int check, enum kern_format fmt, enum kern_kv kv_type,
                      double bound)
{
    for (size_t y = 0; y < sizeof LAYOUTS / sizeof LAYOUTS[0]; y++)
        for (size_t s = 0; s < sizeof SHAPES / sizeof SHAPES[0]; s++)
            if ((test_thin() == 1 && y < N_LAYOUTS_IN_FULL) ||
                (y + s) % 3 == (size_t)check)
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
    check_all(1, KERN_FMT_q8_0, KERN_KV_f16, 2.5e-3);
    check_all(2, KERN_FMT_q4_0, KERN_KV_q8_0, 6e-3);
}

/* ---- synthetic models ------------------------------------------------------------ */

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
        shape.n_experts = (uint32_t)LAYOUTS[i].n_experts;
        shape.n_experts_used = (uint32_t)LAYOUTS[i].t.n_used;
        shape.n_ff_shared = (uint32_t)LAYOUTS[i].n_ff_shared;
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
