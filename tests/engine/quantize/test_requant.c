/* SPDX-License-Identifier: MIT
 *
 * test_requant.c - quantising at load gives the bytes that quantising before gives
 */
#include "tests/support/synth_file.h"

#include <math.h>

#include "engine/engine.h"
#include "engine/modelfile.h"
#include "engine/quantize/requant.h"

#define STORIES  TEST_DATA "models/stories260K-f32.gguf"
#define N_TOKENS 12

/* 3 KV heads, rows of 320 and 96 that no super-block divides, 1013 words. */
static const struct synth_shape uneven = {.name = "uneven",
                                          .arch = "llama",
                                          .n_layers = 2,
                                          .n_embd = 320,
                                          .n_ff = 544,
                                          .n_heads = 6,
                                          .n_kv_heads = 3,
                                          .head_dim = 32,
                                          .n_vocab = 1013,
                                          .n_ctx_train = 64,
                                          .rope_base = 10000,
                                          .norm_eps = 1e-5f};
/* Super-blocks divide its rows, panels its matrices but the output. */
static const struct synth_shape even = {.name = "even",
                                        .arch = "llama",
                                        .n_layers = 2,
                                        .n_embd = 256,
                                        .n_ff = 512,
                                        .n_heads = 4,
                                        .n_kv_heads = 1,
                                        .head_dim = 64,
                                        .n_vocab = 515,
                                        .n_ctx_train = 64,
                                        .tied_output = true,
                                        .rope_base = 10000,
                                        .norm_eps = 1e-5f};

static struct gguf *open_gguf(const char *path, const char *quant)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;

    if (modelfile_open(&g, path, quant, &err))
        fail_msg("%s", err.msg);
    return g;
}

/* The file that g would be. */
static void *image_of(const struct gguf *g, size_t *bytes)
{
    unsigned char *image = aligned_alloc(64, (gguf_image_bytes(g) + 63) / 64 * 64);
    struct err err = ERR_INIT;

    assert_non_null(image);
    memset(image, 0, gguf_image_bytes(g));
    memcpy(image, gguf_image(g), gguf_data_offset(g));
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        if (gguf_read_rows(g, t, 0, t->n_elems / t->ne[0], false, image + t->offset,
                           &err))
            fail_msg("%s", err.msg);
    }
    *bytes = gguf_image_bytes(g);
    return image;
}

static void logits_of(struct slm_params *p, float **logits, size_t *n)
{
    static const int32_t tokens[N_TOKENS] = {1, 71, 294, 35, 133, 63, 256, 3, 9, 4};
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p->n_ctx = N_TOKENS;
    p->n_threads = 2;
    if (slm_open(&m, p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err) ||
        slm_eval(m, tokens, N_TOKENS, SLM_LOGITS_ALL, &err))
        fail_msg("%s", err.msg);
    *n = (size_t)slm_info(m)->n_vocab * N_TOKENS;
    *logits = malloc(*n * sizeof **logits);
    assert_non_null(*logits);
    for (size_t i = 0; i < N_TOKENS; i++)
        memcpy(*logits + i * (size_t)slm_info(m)->n_vocab, slm_logits(m, i),
               (size_t)slm_info(m)->n_vocab * sizeof **logits);
    slm_close(m);
}

/* Quantised at load, and loaded from an image of the quantised file. */
static void check_same_model(const char *path, const char *quant)
{
    struct slm_params at_load = slm_params_default(), before = slm_params_default();
    struct gguf *g = open_gguf(path, quant);
    float *a, *b;
    size_t n, m;

    before.image = image_of(g, &before.image_bytes);
    before.image_rewrite = true;
    at_load.path = path;
    at_load.quant = quant;
    at_load.residency = WEIGHTS_AUTO;
    logits_of(&at_load, &a, &n);
    logits_of(&before, &b, &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n * sizeof *a);
    free(a);
    free(b);
    free((void *)(uintptr_t)before.image);
    gguf_close(g);
}

static void same_model_as_a_quantised_file(void **state)
{
    static const char *const quants[] = {"Q8_0",  "q4_K_M", "IQ4_XS", "F16",
                                         "TQ2_0", "NVFP4",  "Q1_0",   "Q2_0"};
    const struct synth_shape *const shapes[] = {&uneven, &even};

    (void)state;
    for (size_t s = 0; s < 2; s++) {
        char path[] = "/tmp/test_requant.XXXXXX";

        make_file(path, shapes[s], s ? QUANTMIX_F16 : QUANTMIX_BF16);
        for (size_t i = 0; i < sizeof quants / sizeof quants[0]; i++)
            check_same_model(path, quants[i]);
        unlink(path);
    }
}

/* Every tensor has the type that a file of the mix has, and the values that the
 * format's own quantiser gives. */
static void types_and_values_of_the_mix(void **state)
{
    struct gguf *from = open_gguf(STORIES, NULL), *g = open_gguf(STORIES, "Q4_0");
    struct err err = ERR_INIT;
    uint64_t file_type;

    (void)state;
    assert_true(gguf_is_assembled(g));
    assert_true(gguf_get_u64(g, "general.file_type", &file_type));
    assert_int_equal(file_type, quantmix_file_type(QUANTMIX_Q4_0));
    assert_int_equal(gguf_n_tensors(g), gguf_n_tensors(from));
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const struct gguf_tensor *f = gguf_tensor_find(from, t->name);
        unsigned char *have = malloc(t->bytes), *want = malloc(t->bytes);
        const struct quantmix_tensor what = {
            .name = f->name,
            .layer = strncmp(f->name, "blk.", 4) ? -1 : 0,
            .n_layers = 1,
            .n_heads = 1,
            .n_kv_heads = 1,
            .n_dims = f->n_dims,
            .row_elems = f->ne[0],
            .tied_output = !gguf_tensor_find(from, "output.weight"),
        };

        assert_int_equal(t->fmt, quantmix_format(QUANTMIX_Q4_0, &what));
        if (gguf_read_rows(g, t, 0, t->n_elems / t->ne[0], false, have, &err))
            fail_msg("%s", err.msg);
        kern_best(KERN_OP_quantize, (int)t->fmt, isa_usable())
            ->fn.quantize(gguf_tensor_data(from, f), NULL, want, t->n_elems);
        assert_memory_equal(have, want, t->bytes);
        free(have);
        free(want);
    }
    gguf_close(g);
    gguf_close(from);
}

static void refuses_what_is_quantised_already(void **state)
{
    struct err err = ERR_INIT;
    struct gguf *g;

    (void)state;
    assert_int_equal(modelfile_open(&g, TEST_DATA "models/Q4_K_M.gguf", "Q8_0", &err),
                     ST_USAGE);
    assert_non_null(strstr(err.msg, "already"));
    err = (struct err)ERR_INIT;
    assert_int_equal(modelfile_open(&g, STORIES, "Q9_Z", &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "Q9_Z"));
}

static void refuses_to_be_mapped(void **state)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;

    (void)state;
    p.path = STORIES;
    p.quant = "Q8_0";
    p.residency = WEIGHTS_MMAP;
    assert_int_equal(slm_open(&m, &p, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "packed"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_model_as_a_quantised_file),
        cmocka_unit_test(types_and_values_of_the_mix),
        cmocka_unit_test(refuses_what_is_quantised_already),
        cmocka_unit_test(refuses_to_be_mapped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
