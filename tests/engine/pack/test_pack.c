/* SPDX-License-Identifier: MIT
 *
 * test_pack.c - a packed file is the model that it was made from, bit for bit
 */
#include "tests/support/packed_file.h"

/* Bit for bit the logits of the original, packed while it is loaded. */
static void assert_same_logits(const char *from, const char *to, const char *what)
{
    static const enum weights_residency ways[] = {WEIGHTS_MMAP, WEIGHTS_PACKED};
    struct slm *original = open_model(from, WEIGHTS_PACKED, 2, isa_usable());
    const size_t n = N_TOKENS * (size_t)slm_info(original)->n_vocab;
    float *want = logits_of(original);

    for (int i = 0; i < 2; i++) {
        struct slm *m = open_model(to, ways[i], 2, isa_usable());
        float *have = logits_of(m);

        if (memcmp(have, want, n * sizeof *want) != 0)
            fail_msg("%s: other logits under %s", what,
                     weights_residency_name(ways[i]));
        free(have);
        slm_close(m);
    }
    free(want);
    slm_close(original);
}

/* The file has the bytes that loading the original makes, and its rows are those of the
 * original. */
static void assert_same_weights(const char *from, const char *to)
{
    struct slm *original = open_model(from, WEIGHTS_PACKED, 2, isa_usable());
    struct err err = ERR_INIT;
    struct gguf *g;

    assert_int_equal(gguf_open(&g, to, &err), ST_OK);
    assert_int_equal(gguf_n_tensors(g), gguf_n_tensors(slm_gguf(original)));
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        const struct gguf_tensor *s = gguf_tensor_find(slm_gguf(original), t->name);
        void *rows = malloc((size_t)t->bytes), *want = malloc((size_t)t->bytes);

        assert_true(s && rows && want && s->bytes == t->bytes);
        assert_int_equal(s->ggml_id, t->ggml_id);
        assert_memory_equal(s->ne, t->ne, sizeof t->ne);
        assert_memory_equal(gguf_tensor_data(g, t),
                            weights_data(slm_weights(original), s), t->bytes);
        assert_int_equal(
            gguf_read_rows(g, t, 0, t->n_elems / t->ne[0], false, rows, &err), ST_OK);
        assert_memory_equal(rows, gguf_tensor_data(slm_gguf(original), s), t->bytes);
        free(rows);
        free(want);
    }
    gguf_close(g);
    slm_close(original);
}

static void assert_same_model(const struct files *f, const char *from, const char *what,
                              int n_threads)
{
    const struct pack_result r = pack_file(from, f->to, n_threads);

    assert_true(r.n_tensors > r.n_in_panels);
    assert_same_weights(from, f->to);
    assert_same_logits(from, f->to, what);
}

static void every_mix(void **state)
{
    struct files f;

    (void)state;
    needs_panels();
    files_make(&f);
    for (int mix = 0; mix < QUANTMIX_N; mix += (int)test_thin()) {
        write_synth_file(f.from, &uneven_shape, (enum quantmix)mix);
        assert_same_model(&f, f.from, quantmix_name((enum quantmix)mix), 1 + mix % 3);
    }
    assert_int_equal(files_remove(&f), 2);
}

static void tied_weights(void **state)
{
    struct synth_shape tied = uneven_shape;
    struct files f;

    (void)state;
    needs_panels();
    files_make(&f);
    tied.tied_output = 1;
    write_synth_file(f.from, &tied, QUANTMIX_Q4_K_M);
    assert_same_model(&f, f.from, "tied", 2);

    struct err err = ERR_INIT;
    struct gguf *g;

    assert_int_equal(gguf_open(&g, f.to, &err), ST_OK);
    assert_int_equal(gguf_tensor_find(g, "token_embd.weight")->panel_rows, 1008);
    gguf_close(g);
    files_remove(&f);
}

/* A packed file in the caller's memory, which may be rewritten or not. */
static void as_an_image(void **state)
{
    struct err err = ERR_INIT;
    struct files f;
    size_t bytes;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q6_K);
    pack_file(f.from, f.to, 1);
    struct slm *original = open_model(f.from, WEIGHTS_PACKED, 2, isa_usable());
    const size_t n = N_TOKENS * (size_t)slm_info(original)->n_vocab;
    float *want = logits_of(original);
    void *file = test_read_file(f.to, &bytes);
    void *image = aligned_alloc(4096, bytes);

    assert_non_null(image);
    memcpy(image, file, bytes);
    for (int rewrite = 0; rewrite < 2; rewrite++) {
        struct slm_params p = slm_params_default();
        struct slm *m = NULL;

        p.image = image;
        p.image_bytes = bytes;
        p.image_rewrite = rewrite;
        p.n_ctx = N_TOKENS;
        if (slm_open(&m, &p, &err) ||
            weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
            fail_msg("%s", err.msg);
        float *have = logits_of(m);

        assert_memory_equal(have, want, n * sizeof *want);
        assert_memory_equal(image, file, bytes);
        free(have);
        slm_close(m);
    }
    free(want);
    free(file);
    free(image);
    slm_close(original);
    files_remove(&f);
}

/* Experts are slices; other families have views, fused and biased tensors. */
static void every_family(void **state)
{
    static const char *const models[] = {"llama-moe", "qwen2moe", "qwen3moe", "gemma2",
                                         "phi2",      "phi3",     "stablelm", "qwen3"};
    struct files f;
    char path[256];

    (void)state;
    needs_panels();
    files_make(&f);
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        snprintf(path, sizeof path, TEST_DATA "models/%s.gguf", models[i]);
        assert_same_model(&f, path, models[i], 3);
    }
    files_remove(&f);
}

/* Levels without panels: mapped weights cannot be used, packed ones are unpacked. */
static void levels_without_panels(void **state)
{
    const uint32_t scalar = 1u << KERN_ISA_scalar;
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    struct files f;

    (void)state;
    needs_panels();
    files_make(&f);
    write_synth_file(f.from, &uneven_shape, QUANTMIX_Q4_K_M);
    pack_file(f.from, f.to, 2);
    assert_int_equal(try_open(&m, f.to, WEIGHTS_MMAP, 2, scalar, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no kernels for its panels of"));
    err_clear(&err);

    struct slm *original = open_model(f.from, WEIGHTS_PACKED, 2, scalar);
    const size_t n = N_TOKENS * (size_t)slm_info(original)->n_vocab;
    float *want = logits_of(original);

    m = open_model(f.to, WEIGHTS_PACKED, 2, scalar);
    float *have = logits_of(m);

    assert_memory_equal(have, want, n * sizeof *want);
    free(want);
    free(have);
    slm_close(original);
    slm_close(m);
    files_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mix),
        cmocka_unit_test(tied_weights),
        cmocka_unit_test(as_an_image),
        cmocka_unit_test(every_family),
        cmocka_unit_test(levels_without_panels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
