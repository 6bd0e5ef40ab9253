/* SPDX-License-Identifier: MIT
 *
 * test_packed.c - packed weights: the same model as when mapped, whole or not at all
 */
#include "tests/support/nmse.h"
#include "tests/support/packed_logits.h"
#include "tests/support/preload_calls.h"

#include "engine/arch/arch.h"
#include "engine/engine.h"

/* A rounding that falls the other way in a column's scale moves a logit by about
 * one part in a thousand; a row in the wrong place moves all of them. */
static void assert_same_model(const char *path, const char *what, int n_threads,
                              uint32_t isa_mask)
{
    struct slm *mapped = open_model(path, WEIGHTS_MMAP, 1, isa_mask);
    struct slm *packed = open_model(path, WEIGHTS_PACKED, n_threads, isa_mask);
    const size_t n = N_TOKENS * (size_t)slm_info(mapped)->n_vocab;
    float *want = logits_of(mapped), *have = logits_of(packed);

    if (!(nmse(have, want, n) <= 1e-5))
        fail_msg("%s, %d threads: NMSE %g", what, n_threads, nmse(have, want, n));
    free(want);
    free(have);
    slm_close(mapped);
    slm_close(packed);
}

static void same_logits_in_every_mix(void **state)
{
    (void)state;
    for (int mix = 0; mix < QUANTMIX_N; mix += (int)test_thin()) {
        char path[] = "/tmp/test_packed.XXXXXX";

        make_file(path, &uneven_shape, (enum quantmix)mix);
        assert_same_model(path, quantmix_name((enum quantmix)mix), 1 + mix % 3,
                          isa_usable());
        unlink(path);
    }
}

static void same_logits_on_every_level(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    for (int i = 0; i < KERN_N_ISA; i++)
        if (isa_usable() >> i & 1)
            assert_same_model(path, isa_name(i), 2, isa_usable() & ((2u << i) - 1));
    unlink(path);
}

static void same_logits_with_experts_and_tied_weights(void **state)
{
    struct synth_shape tied = uneven_shape;

    (void)state;
    for (int n_threads = 1; n_threads <= 3; n_threads++)
        assert_same_model(TEST_DATA "models/llama-moe.gguf", "moe", n_threads,
                          isa_usable());
    tied.tied_output = 1;
    for (int i = 0; i < 3; i++) {
        static const enum quantmix mixes[] = {QUANTMIX_Q4_K_M, QUANTMIX_Q8_0,
                                              QUANTMIX_F16};
        char at[] = "/tmp/test_packed.XXXXXX";

        make_file(at, &tied, mixes[i]);
        assert_same_model(at, "tied", 1 + i, isa_usable());
        unlink(at);
    }
}

/* ---- panels ---------------------------------------------------------------------- */

/* What must be where: the embedding as in the file, k and v with 32 of 40 rows in
 * panels that pack() would make and 8 rows as in the file. */
static void panels_and_rows_are_in_place(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    const struct weights_params how = {.residency = WEIGHTS_PACKED,
                                       .isa_mask = isa_usable()};
    struct err err = ERR_INIT;
    struct kern_set kern;
    struct weights *w;
    struct gguf *g;
    size_t bytes;

    (void)state;
    kern_select(&kern, isa_usable());
    if (!kern.pack[KERN_FMT_q8_0])
        skip();
    make_file(path, &uneven_shape, QUANTMIX_Q8_0);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_int_equal(weights_open(&w, g, &how, &err), ST_OK);

    const struct gguf_tensor *embd = gguf_tensor_find(g, "token_embd.weight");
    const struct gguf_tensor *k = gguf_tensor_find(g, "blk.1.attn_k.weight");
    const struct gguf_tensor *norm = gguf_tensor_find(g, "output_norm.weight");
    const size_t row = kern_format_bytes(KERN_FMT_q8_0, 256);
    unsigned char panel[KERN_PANEL_ROWS * 512];

    assert_int_equal(weights_panel_rows(w, k), 32);
    assert_int_equal(weights_panel_rows(w, norm), 0);
    assert_false(weights_ready(w));
    assert_int_equal(weights_preload(w, NULL, NULL, NULL, &err), ST_OK);
    assert_true(weights_ready(w));
    assert_memory_equal(weights_data(w, embd), gguf_tensor_data(g, embd), embd->bytes);
    assert_memory_equal(weights_data(w, norm), gguf_tensor_data(g, norm), norm->bytes);

    const unsigned char *file = gguf_tensor_data(g, k), *have = weights_data(w, k);

    assert_true((uintptr_t)have % 64 == 0);
    for (size_t r = 0; r < 32; r += KERN_PANEL_ROWS) {
        kern.pack[KERN_FMT_q8_0](256, file + r * row, row, panel);
        assert_memory_equal(have + r * row, panel, KERN_PANEL_ROWS * row);
    }
    assert_memory_equal(have + 32 * row, file + 32 * row, 8 * row);
    assert_ptr_not_equal(weights_memory(w, &bytes), gguf_image(g));
    assert_true(bytes >= embd->bytes && bytes <= gguf_image_bytes(g) + 64 * 32);
    weights_close(w);
    gguf_close(g);
    unlink(path);
}

/* A tied table is multiplied with and looked up: it is in panels once, and takes no
 * more memory than in the file. */
static void tied_table_is_in_panels(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    const struct weights_params how = {.residency = WEIGHTS_PACKED,
                                       .isa_mask = isa_usable()};
    struct synth_shape tied = uneven_shape;
    struct err err = ERR_INIT;
    struct kern_set kern;
    struct model *m;
    struct weights *w;
    struct gguf *g;

    (void)state;
    kern_select(&kern, isa_usable());
    if (!kern.pack[KERN_FMT_q8_0])
        skip();
    tied.tied_output = 1;
    make_file(path, &tied, QUANTMIX_Q8_0);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_int_equal(weights_open(&w, g, &how, &err), ST_OK);
    assert_int_equal(model_load(&m, g, w, &err), ST_OK);
    assert_int_equal(weights_preload(w, NULL, NULL, NULL, &err), ST_OK);

    const struct matrix *embd = &m->embd;
    const unsigned char *file =
        gguf_tensor_data(g, gguf_tensor_find(g, "token_embd.weight"));
    unsigned char row[512];
    size_t bytes;

    assert_ptr_equal(embd->data, m->output.data);
    assert_int_equal(embd->panel_rows, embd->n_rows / 16 * 16);
    assert_int_equal(embd->panel_rows, m->output.panel_rows);
    assert_true(embd->n_rows > embd->panel_rows && embd->row_bytes <= sizeof row);
    for (size_t r = 0; r < embd->panel_rows; r++) {
        kern.unpack[embd->fmt](embd->k, matrix_row(embd, 0, r / 16 * 16), r % 16, row);
        assert_memory_equal(row, file + r * embd->row_bytes, embd->row_bytes);
    }
    assert_memory_equal(matrix_row(embd, 0, embd->panel_rows),
                        file + embd->panel_rows * embd->row_bytes,
                        (embd->n_rows - embd->panel_rows) * embd->row_bytes);
    weights_memory(w, &bytes);
    assert_true(bytes <= gguf_image_bytes(g) + 64 * 32);
    model_free(m);
    weights_close(w);
    gguf_close(g);
    unlink(path);
}

/* ---- filling --------------------------------------------------------------------- */

/* Huge pages enough for several turns of each member. */
static void same_bytes_whoever_fills_them(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct synth_shape large = uneven_shape;
    struct slm *alone;
    const void *want;
    size_t bytes;

    (void)state;
    large.n_vocab = 40013;
    make_file(path, &large, QUANTMIX_Q8_0);
    alone = open_model(path, WEIGHTS_PACKED, 1, isa_usable());
    want = weights_memory(slm_weights(alone), &bytes);
    assert_true(bytes > (size_t)20 << 20);
    for (int n_threads = 2; n_threads <= 4; n_threads++) {
        struct slm *m = open_model(path, WEIGHTS_PACKED, n_threads, isa_usable());

        assert_memory_equal(weights_memory(slm_weights(m), &bytes), want, bytes);
        slm_close(m);
    }
    slm_close(alone);
    unlink(path);
}

static void progress_interrupt_and_repeat(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    const int32_t token = 1;
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct calls calls = {.stop_at = 1};
    struct slm *m;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_F32);
    p.path = path;
    p.residency = WEIGHTS_PACKED;
    p.n_threads = 2;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "read in"));
    err_clear(&err);
    assert_int_equal(
        weights_preload(slm_weights(m), slm_thread_pool(m), note, &calls, &err),
        ST_INTERRUPTED);
    assert_false(weights_ready(slm_weights(m)));
    err_clear(&err);
    calls = (struct calls){.n = 0};
    assert_int_equal(
        weights_preload(slm_weights(m), slm_thread_pool(m), note, &calls, &err), ST_OK);
    assert_int_equal(calls.done, calls.total);
    assert_int_equal(calls.total, slm_info(m)->weight_bytes);
    assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
    slm_close(m);
    unlink(path);
}

static void shrunk(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    p.path = path;
    p.residency = WEIGHTS_PACKED;
    p.n_threads = 3;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    assert_int_equal(truncate(path, (off_t)gguf_image_bytes(slm_gguf(m)) / 2), 0);
    assert_int_equal(
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err), ST_IO);
    assert_non_null(strstr(err.msg, "shrink"));
    assert_false(weights_ready(slm_weights(m)));
    slm_close(m);
    unlink(path);
}

/* An image that may be rewritten has the bytes that packing its file gives, and an
 * interruption spoils it. */
static void image_in_place(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct calls calls = {.stop_at = 1};
    const int32_t token = 1;
    struct slm *packed, *m;
    unsigned char *image;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    packed = open_model(path, WEIGHTS_PACKED, 2, isa_usable());
    p.image_bytes = gguf_image_bytes(slm_gguf(packed));
    image = malloc(p.image_bytes);
    assert_non_null(image);
    for (int attempt = 0; attempt < 2; attempt++) {
        memcpy(image, gguf_image(slm_gguf(packed)), p.image_bytes);
        p.image = image;
        p.image_rewrite = true;
        p.n_threads = 2;
        assert_int_equal(slm_open(&m, &p, &err), ST_OK);
        assert_int_equal(slm_info(m)->residency, WEIGHTS_MEMORY);
        assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_USAGE);
        err_clear(&err);
        if (attempt == 0) {
            assert_int_equal(weights_preload(slm_weights(m), NULL, note, &calls, &err),
                             ST_INTERRUPTED);
            err_clear(&err);
            assert_int_equal(weights_preload(slm_weights(m), NULL, NULL, NULL, &err),
                             ST_USAGE);
            assert_non_null(strstr(err.msg, "half rewritten"));
            err_clear(&err);
            slm_close(m);
        }
    }
    for (int i = 0; i < 2; i++) /* the second time there is nothing left to do */
        assert_int_equal(
            weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err),
            ST_OK);
    for (size_t i = 0; i < gguf_n_tensors(slm_gguf(m)); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(slm_gguf(m), i);

        assert_memory_equal(
            weights_data(slm_weights(m), t),
            weights_data(slm_weights(packed), gguf_tensor_at(slm_gguf(packed), i)),
            t->bytes);
    }
    assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
    slm_close(m);
    slm_close(packed);
    free(image);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_logits_in_every_mix),
        cmocka_unit_test(same_logits_on_every_level),
        cmocka_unit_test(same_logits_with_experts_and_tied_weights),
        cmocka_unit_test(panels_and_rows_are_in_place),
        cmocka_unit_test(tied_table_is_in_panels),
        cmocka_unit_test(same_bytes_whoever_fills_them),
        cmocka_unit_test(progress_interrupt_and_repeat),
        cmocka_unit_test(shrunk),
        cmocka_unit_test(image_in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
