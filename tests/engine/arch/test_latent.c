/* SPDX-License-Identifier: MIT
 *
 * test_latent.c - latent attention: files that have keys and values of all heads in one
 * matrix are the same models as those that have them apart, in every type; what the
 * cache holds; sizes that are refused
 */
#include "engine/engine.h"
#include "engine/synth/synth.h"
#include "tests/support/nmse.h"
#include "tests/support/test.h"
#include "tests/support/tiny_model.h"

#include <math.h>

enum {
    N_TOKENS = 300,
    N_VOCAB = 96,
    N_LAYERS = 2,
    N_EMBD = 96,
    N_FF = 64,
    N_HEADS = 3
};

/* value_dim and key_dim, which is without the n_rot that are rotated, need not be
 * whole panels. */
struct sizes {
    int q_rank, kv_rank, key_dim, n_rot, value_dim;
};

static const struct sizes SIZES[] = {
    {0, 256, 32, 16, 32}, {64, 256, 24, 8, 40}, {32, 256, 64, 32, 16}};

static void put_keys(struct tiny *t, const struct sizes *s, bool joint)
{
    tiny_key_u32(t, ".block_count", N_LAYERS);
    tiny_key_u32(t, ".embedding_length", N_EMBD);
    tiny_key_u32(t, ".feed_forward_length", N_FF);
    tiny_key_u32(t, ".context_length", 4096);
    tiny_key_u32(t, ".attention.head_count", N_HEADS);
    tiny_key_u32(t, ".attention.head_count_kv", joint ? N_HEADS : 1);
    tiny_key_u32(t, ".attention.kv_lora_rank", (uint32_t)s->kv_rank);
    if (s->q_rank)
        tiny_key_u32(t, ".attention.q_lora_rank", (uint32_t)s->q_rank);
    tiny_key_u32(t, ".attention.key_length",
                 (uint32_t)(joint ? s->key_dim + s->n_rot : s->kv_rank + s->n_rot));
    tiny_key_u32(t, ".attention.value_length",
                 (uint32_t)(joint ? s->value_dim : s->kv_rank));
    if (!joint) {
        tiny_key_u32(t, ".attention.key_length_mla", (uint32_t)(s->key_dim + s->n_rot));
        tiny_key_u32(t, ".attention.value_length_mla", (uint32_t)s->value_dim);
    }
    tiny_key_u32(t, ".rope.dimension_count", (uint32_t)s->n_rot);
    tiny_key_f32(t, ".attention.layer_norm_rms_epsilon", 1e-5F);
}

/* Keys and values of all heads as one matrix in fmt, or apart: rows of values in fmt,
 * too, and those of keys transposed, as floats of what fmt has made of them. */
static void put_kv_b(struct tiny *t, const struct sizes *s, int layer, bool joint,
                     enum kern_format fmt)
{
    const size_t rank = (size_t)s->kv_rank, n_key = (size_t)s->key_dim;
    const size_t n_value = (size_t)s->value_dim, n = N_HEADS * (n_key + n_value) * rank;
    float *all = malloc(n * sizeof *all), *keys = malloc(n * sizeof *all);
    float *values = malloc(n * sizeof *all), row[256];
    unsigned char block[256 * sizeof(float)];
    uint64_t rng = 77 + (uint64_t)layer;
    char name[64];

    assert_true(all && keys && values && rank <= 256);
    for (size_t i = 0; i < n; i++)
        all[i] = 0.1F * test_random_float(&rng);
    for (size_t h = 0; h < N_HEADS; h++) {
        const float *head = all + h * (n_key + n_value) * rank;

        for (size_t i = 0; i < n_key; i++) {
            kern_best(KERN_OP_quantize, (int)fmt, 1)
                ->fn.quantize(head + i * rank, NULL, block, rank);
            kern_best(KERN_OP_dequantize, (int)fmt, 1)->fn.dequantize(block, row, rank);
            for (size_t k = 0; k < rank; k++)
                keys[(h * rank + k) * n_key + i] = row[k];
        }
        memcpy(values + h * n_value * rank, head + n_key * rank,
               n_value * rank * sizeof *all);
    }
    snprintf(name, sizeof name, "blk.%d.attn_%s.weight", layer, joint ? "kv_b" : "v_b");
    if (joint) {
        tiny_put(t, name, fmt, rank, N_HEADS * (n_key + n_value), 0, all);
    } else {
        tiny_put(t, name, fmt, rank, n_value, N_HEADS, values);
        snprintf(name, sizeof name, "blk.%d.attn_k_b.weight", layer);
        tiny_put(t, name, KERN_FMT_f32, n_key, rank, N_HEADS, keys);
    }
    free(all);
    free(keys);
    free(values);
}

static void put_layer(struct tiny *t, const struct sizes *s, int i, bool joint,
                      enum kern_format fmt)
{
    const enum kern_format f32 = KERN_FMT_f32;
    const uint64_t n_q = (uint64_t)(N_HEADS * (s->key_dim + s->n_rot));
    const uint64_t q_rank = (uint64_t)s->q_rank, kv_rank = (uint64_t)s->kv_rank;

    tiny_layer(t, i, "attn_norm.weight", f32, N_EMBD, 0, 0, 1, 0.1F);
    if (q_rank) {
        tiny_layer(t, i, "attn_q_a.weight", f32, N_EMBD, q_rank, 0, 0, 0.2F);
        tiny_layer(t, i, "attn_q_a_norm.weight", f32, q_rank, 0, 0, 1, 0.1F);
        tiny_layer(t, i, "attn_q_b.weight", f32, q_rank, n_q, 0, 0, 0.3F);
    } else {
        tiny_layer(t, i, "attn_q.weight", f32, N_EMBD, n_q, 0, 0, 0.3F);
    }
    tiny_layer(t, i, "attn_kv_a_mqa.weight", f32, N_EMBD, kv_rank + (uint64_t)s->n_rot,
               0, 0, 0.2F);
    tiny_layer(t, i, "attn_kv_a_norm.weight", f32, kv_rank, 0, 0, 1, 0.1F);
    put_kv_b(t, s, i, joint, fmt);
    tiny_layer(t, i, "attn_output.weight", f32, (uint64_t)(N_HEADS * s->value_dim),
               N_EMBD, 0, 0, 0.2F);
    tiny_layer(t, i, "ffn_norm.weight", f32, N_EMBD, 0, 0, 1, 0.1F);
    tiny_layer(t, i, "ffn_gate.weight", f32, N_EMBD, N_FF, 0, 0, 0.2F);
    tiny_layer(t, i, "ffn_up.weight", f32, N_EMBD, N_FF, 0, 0, 0.2F);
    tiny_layer(t, i, "ffn_down.weight", f32, N_FF, N_EMBD, 0, 0, 0.2F);
}

static void *make_model(const struct sizes *s, bool joint, enum kern_format fmt,
                        size_t *bytes)
{
    struct tiny t;

    tiny_new(&t, "deepseek2");
    put_keys(&t, s, joint);
    tiny_random(&t, "token_embd.weight", KERN_FMT_f32, N_EMBD, N_VOCAB, 0, 0, 1);
    tiny_random(&t, "output_norm.weight", KERN_FMT_f32, N_EMBD, 0, 0, 1, 0.1F);
    for (int i = 0; i < N_LAYERS; i++)
        put_layer(&t, s, i, joint, fmt);
    return tiny_image(&t, bytes);
}

struct way {
    int n_threads;
    size_t step;
    bool rewrite; /* into panels */
    enum kern_kv kv_type;
    int kv_window;
};

/* The last N_LOGITS tokens' logits; image is rewritten. */
enum { N_LOGITS = 40 };

static void run(void *image, size_t bytes, const struct way *way, size_t n_vocab,
                float *out)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    int32_t tokens[N_TOKENS];

    p.image = image;
    p.image_bytes = bytes;
    p.image_rewrite = way->rewrite;
    p.name = "latent";
    p.n_threads = way->n_threads;
    p.kv_type = way->kv_type;
    p.kv_window = way->kv_window;
    p.n_ctx = N_TOKENS;
    if (slm_open(&m, &p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = i * 37 % (int32_t)n_vocab;
    for (size_t done = 0; done < N_TOKENS; done += way->step) {
        const size_t n = N_TOKENS - done < way->step ? N_TOKENS - done : way->step;

        if (slm_eval(m, tokens + done, n, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (size_t i = 0; i < n; i++)
            if (done + i >= N_TOKENS - N_LOGITS)
                memcpy(out + (done + i - (N_TOKENS - N_LOGITS)) * n_vocab,
                       slm_logits(m, i), n_vocab * sizeof *out);
    }
    slm_close(m);
}

/* ---- the tests ------------------------------------------------------------------- */

static void check_forms(const struct sizes *s, enum kern_format fmt, double bound)
{
    static const struct way ways[] = {{1, 300, true, KERN_KV_f16, 0},
                                      {3, 1, true, KERN_KV_f16, 0},
                                      {2, 7, false, KERN_KV_f16, 0}};
    static float want[N_LOGITS * N_VOCAB], have[N_LOGITS * N_VOCAB];

    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (int joint = 0; joint < 2; joint++) {
            size_t bytes;
            void *image = make_model(s, joint, fmt, &bytes);

            run(image, bytes, &ways[w], N_VOCAB, w || joint ? have : want);
            free(image);
            const double off = nmse(w || joint ? have : want, want, N_LOGITS * N_VOCAB);

            if (!(off <= bound))
                fail_msg("rank %d, keys of %d, %s, %s, way %zu: NMSE %g > %g",
                         s->kv_rank, s->key_dim, kern_format_info(fmt)->name,
                         joint ? "joint" : "apart", w, off, bound);
        }
}

/* Joint matrices of every type; only the halves that transposed keys become differ, and
 * with quantised values what their columns become. */
static void both_forms_are_one_model(void **state)
{
    static const enum kern_format fmts[] = {
        KERN_FMT_f32,  KERN_FMT_f16,  KERN_FMT_bf16, KERN_FMT_q8_0,  KERN_FMT_q4_0,
        KERN_FMT_q5_1, KERN_FMT_q4_K, KERN_FMT_q6_K, KERN_FMT_iq4_xs};

    (void)state;
    for (size_t i = 0; i < sizeof fmts / sizeof *fmts; i++)
        for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++)
            if (test_thin() == 1 || (i + k) % 3 == 0)
                check_forms(&SIZES[k], fmts[i],
                            kern_format_info(fmts[i])->act == KERN_ACT_f32 ? 2e-6
                                                                           : 2e-4);
}

/* Types of the cache, and one of a few positions, against whole precision. */
static void caches(void **state)
{
    static const struct {
        struct way way;
        double bound;
    } rows[] = {{{2, 1, true, KERN_KV_bf16, 0}, 1e-4},
                {{1, 300, true, KERN_KV_q8_0, 0}, 2e-4},
                {{3, 50, true, KERN_KV_q8_0, 0}, 2e-4},
                {{1, 9, true, KERN_KV_q4_0, 0}, 6e-2},
                {{2, 25, true, KERN_KV_f16, 296}, 1e-5}};
    static const struct way whole = {1, 64, false, KERN_KV_f16, 0};
    static float want[N_LOGITS * N_VOCAB], have[N_LOGITS * N_VOCAB];

    (void)state;
    for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++) {
        size_t bytes;
        void *image = make_model(&SIZES[k], k % 2, KERN_FMT_f32, &bytes);

        run(image, bytes, &whole, N_VOCAB, want);
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            run(image, bytes, &rows[i].way, N_VOCAB, have);
            const double off = nmse(have, want, N_LOGITS * N_VOCAB);

            if (!(off <= rows[i].bound))
                fail_msg("cache %zu, sizes %zu: NMSE %g > %g", i, k, off,
                         rows[i].bound);
        }
        free(image);
    }
}

/* A position takes the bytes of a latent and the rotated part of a key, once. */
static void bytes_of_a_position(void **state)
{
    static const struct {
        enum kern_kv type;
        uint64_t bytes;
    } rows[] = {{KERN_KV_f16, 2 * (256 + 16)},
                {KERN_KV_bf16, 2 * (256 + 16)},
                {KERN_KV_q8_0, (256 + 32) / 32 * 34}, /* whole blocks */
                {KERN_KV_q4_0, (256 + 32) / 32 * 18}};
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    size_t bytes;
    void *image = make_model(&SIZES[0], false, KERN_FMT_f32, &bytes);

    (void)state;
    assert_int_equal(gguf_parse(&g, image, bytes, "latent", &err), ST_OK);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slm_info info;

        p.kv_type = rows[i].type;
        p.n_ctx = 32;
        p.residency = WEIGHTS_MEMORY;
        if (slm_plan(&info, g, &p, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(info.kv_pos_bytes, N_LAYERS * rows[i].bytes);
        assert_int_equal(info.kv_bytes, 32 * N_LAYERS * rows[i].bytes);
    }
    gguf_close(g);
    free(image);
}

/* What a file cannot have. */
static void sizes_are_checked(void **state)
{
    static const struct {
        struct sizes s;
        const char *said;
    } rows[] = {{{0, 40, 32, 16, 32}, "kv_lora_rank is 40, and only multiples of 16"},
                {{0, 4096, 32, 16, 32}, "latents of 4096 and rotated keys of 16"},
                {{0, 32, 0, 16, 32}, "rope.dimension_count is 16, and an even number"}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct slm_params p = slm_params_default();
        struct err err = ERR_INIT;
        struct slm_info info;
        struct gguf *g = NULL;
        struct tiny t;
        size_t bytes;

        tiny_new(&t, "deepseek2");
        put_keys(&t, &rows[i].s, true);
        tiny_random(&t, "token_embd.weight", KERN_FMT_f32, N_EMBD, N_VOCAB, 0, 0, 1);
        void *image = tiny_image(&t, &bytes);

        assert_int_equal(gguf_parse(&g, image, bytes, "latent", &err), ST_OK);
        assert_true(slm_plan(&info, g, &p, &err) != ST_OK);
        if (!strstr(err.msg, rows[i].said))
            fail_msg("'%s' lacks '%s'", err.msg, rows[i].said);
        gguf_close(g);
        free(image);
    }
}

/* Synthetic models of both architectures load, with logits of the usual size. */
static void synthetic_models(void **state)
{
    struct synth_shape shape = {.name = "tiny",
                                .n_layers = 2,
                                .n_embd = N_EMBD,
                                .n_ff = N_FF,
                                .n_heads = N_HEADS,
                                .n_kv_heads = N_HEADS,
                                .head_dim = 48,
                                .n_rot = 16,
                                .kv_rank = 256,
                                .value_dim = 32,
                                .n_vocab = 512,
                                .n_ctx_train = 4096,
                                .rope_base = 10000,
                                .norm_eps = 1e-5F};
    const struct way way = {2, 30, true, KERN_KV_f16, 0};
    static float out[N_LOGITS * 512];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct synth_plan *plan = NULL;
        struct err err = ERR_INIT;

        strcpy(shape.arch, i ? "minicpm3" : "deepseek2");
        shape.q_rank = i ? 64 : 0;
        shape.n_experts = i ? 0 : 4;
        shape.n_experts_used = i ? 0 : 2;
        shape.n_ff_shared = i ? 0 : 2 * N_FF;
        if (synth_plan_make(&plan, &shape, QUANTMIX_Q4_K_M, 7, &err))
            fail_msg("%s", err.msg);
        const size_t bytes = (size_t)synth_plan_bytes(plan);
        void *image = aligned_alloc(64, (bytes + 63) / 64 * 64);
        double squares = 0;

        assert_non_null(image);
        assert_int_equal(synth_write_memory(plan, image, NULL, NULL, &err), ST_OK);
        run(image, bytes, &way, 512, out);
        for (int k = 0; k < N_LOGITS * 512; k++)
            squares += (double)out[k] * (double)out[k];
        const double spread = sqrt(squares / (N_LOGITS * 512));

        if (!(spread > 0.2 && spread < 40))
            fail_msg("%s: logits spread by %g", shape.arch, spread);
        free(image);
        synth_plan_free(plan);
    }
    shape.kv_rank = 0;
    struct synth_plan *plan = NULL;
    struct err err = ERR_INIT;

    assert_int_equal(synth_plan_make(&plan, &shape, QUANTMIX_Q8_0, 7, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "kv_rank is 0"));
    strcpy(shape.arch, "llama");
    err = (struct err)ERR_INIT;
    assert_int_equal(synth_plan_make(&plan, &shape, QUANTMIX_Q8_0, 7, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "'llama' has no latent attention"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_forms_are_one_model), cmocka_unit_test(caches),
        cmocka_unit_test(bytes_of_a_position),      cmocka_unit_test(sizes_are_checked),
        cmocka_unit_test(synthetic_models),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
