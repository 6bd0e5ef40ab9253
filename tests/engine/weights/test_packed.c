/* SPDX-License-Identifier: MIT
 *
 * test_packed.c - packed weights: the same model as when mapped, whole or not at all
 */
#include "tests/support/synth_file.h"

#include <math.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "engine/arch/arch.h"
#include "engine/engine.h"

#define N_TOKENS 21

/* A file of the shape at path, a template for mkstemp(). */
static void make_file(char *path, const struct synth_shape *shape, enum quantmix mix)
{
    const int fd = mkstemp(path);

    assert_true(fd >= 0);
    close(fd);
    write_synth_file(path, shape, mix);
}

static struct slm *open_model(const char *path, enum weights_residency residency,
                              int n_threads, uint32_t isa_mask)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.path = path;
    p.residency = residency;
    p.n_threads = n_threads;
    p.n_ctx = N_TOKENS;
    p.isa_mask = isa_mask;
    if (slm_open(&m, &p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Logits of N_TOKENS tokens: the first ones in one batch, the rest one by one. */
static float *logits_of(struct slm *m)
{
    const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
    const size_t first = N_TOKENS - 4;
    float *out = malloc(N_TOKENS * n_vocab * sizeof *out);
    int32_t tokens[N_TOKENS];
    struct err err = ERR_INIT;

    assert_non_null(out);
    for (size_t i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)((1 + 37 * i) % n_vocab);
    for (size_t i = 0; i < N_TOKENS; i += i ? 1 : first) {
        const size_t n = i ? 1 : first;

        if (slm_eval(m, tokens + i, n, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (size_t j = 0; j < n; j++)
            memcpy(out + (i + j) * n_vocab, slm_logits(m, j), n_vocab * sizeof *out);
    }
    return out;
}

/* A rounding that falls the other way in a column's scale moves a logit by about
 * one part in a thousand; a row in the wrong place moves all of them. */
static void assert_same_model(const char *path, const char *what, int n_threads,
                              uint32_t isa_mask)
{
    struct slm *mapped = open_model(path, WEIGHTS_MMAP, 1, isa_mask);
    struct slm *packed = open_model(path, WEIGHTS_PACKED, n_threads, isa_mask);
    const size_t n = N_TOKENS * (size_t)slm_info(mapped)->n_vocab;
    float *want = logits_of(mapped), *have = logits_of(packed);
    double error = 0, power = 0;

    for (size_t i = 0; i < n; i++) {
        error +=
            ((double)have[i] - (double)want[i]) * ((double)have[i] - (double)want[i]);
        power += (double)want[i] * (double)want[i];
    }
    if (!(error <= 1e-5 * power && power > 0))
        fail_msg("%s, %d threads: NMSE %g", what, n_threads, error / power);
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

/* ---- panels ------------------------------------------------------------------- */

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

/* ---- filling ------------------------------------------------------------------ */

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

struct calls {
    int n, stop_at;
    size_t done, total;
};

static int note(void *arg, size_t done, size_t total)
{
    struct calls *c = arg;

    assert_true(done > c->done && done <= total);
    c->done = done;
    c->total = total;
    return ++c->n == c->stop_at;
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

/* Choice i: of levels and nothing else, or of levels and all else. */
static struct slm_tuning choice_of_levels(int i)
{
    struct slm_tuning tuning = slm_tuning_default();

    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
        tuning.isa_mask[fmt] = i % 4 == 0 ? 0 : (2u << i % KERN_N_ISA) - 1;
        tuning.isa_mask_prefill[fmt] =
            i % 5 == 0 ? 0 : (2u << (i + 3) % KERN_N_ISA) - 1;
    }
    return tuning;
}

static struct slm_tuning choice_of_all(int i)
{
    struct slm_tuning tuning = choice_of_levels(i);

    tuning.chunks_decode = 1 + 7 * i;
    tuning.chunks_prefill = i == 3 ? TUNING_MAX_CHUNKS : 1 + i;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        tuning.prefetch[fmt] = (struct kern_prefetch){
            i % 3 == 0 ? 0 : 64u << i, (enum kern_prefetch_hint)(i % KERN_N_PREFETCH),
            i % 4 == 0 ? 0 : 1u << i % 3};
    return tuning;
}

static float *logits_tuned(struct slm *m, int n_threads, int n_prefill,
                           const struct slm_tuning *tuning)
{
    struct err err = ERR_INIT;

    if (slm_tune(m, n_threads, n_prefill, tuning, &err))
        fail_msg("%s", err.msg);
    slm_truncate(m, 0);
    return logits_of(m);
}

/* Whatever is tuned, the model says what it says at the same levels untuned. Levels
 * add up in different orders, which turns the rounding of single activations: how far
 * that may go is held to the exact logits, in test_engine. */
static void same_logits_however_tuned(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    const int cpus[3] = {0, 0, 0};
    struct slm_tuning tuning = slm_tuning_default();
    struct err err = ERR_INIT;
    struct slm *m;
    size_t n;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    m = open_model(path, WEIGHTS_PACKED, 3, isa_usable());
    n = N_TOKENS * (size_t)slm_info(m)->n_vocab;
    for (int i = 0; i < 12; i++) {
        const struct slm_tuning levels = choice_of_levels(i), all = choice_of_all(i);
        float *want = logits_tuned(m, 3, 3, &levels), *have;
        double error = 0, power = 0;

        if ((i == 6 && slm_place(m, cpus, &err)) ||
            (i == 9 && slm_place(m, NULL, &err)))
            fail_msg("%s", err.msg);
        have = logits_tuned(m, 1 + i % 3, (i + 1) % 4, &all);
        for (size_t k = 0; k < n; k++) {
            const double d = (double)have[k] - (double)want[k];

            error += d * d;
            power += (double)want[k] * (double)want[k];
        }
        if (!(error <= 1e-5 * power && power > 0))
            fail_msg("choice %d: NMSE %g", i, error / power);
        free(have);
        free(want);
    }

    tuning.chunks_decode = 0;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    err_clear(&err);
    tuning = slm_tuning_default();
    tuning.prefetch[KERN_FMT_q4_K].distance = TUNING_MAX_DISTANCE + 1;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "q4_K"));
    err_clear(&err);
    tuning = slm_tuning_default();
    tuning.prefetch[KERN_FMT_q6_K].hint = KERN_N_PREFETCH;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "q6_K"));
    err_clear(&err);
    tuning = slm_tuning_default();
    tuning.prefetch[KERN_FMT_q4_0].n_panels = KERN_MAX_INTERLEAVED + 1;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "q4_0"));
    err_clear(&err);
    tuning = slm_tuning_default();
    assert_int_equal(slm_tune(m, 4, 0, &tuning, &err), ST_USAGE);
    err_clear(&err);
    tuning.n_batch = slm_info(m)->n_batch + 1;
    assert_int_equal(slm_tune(m, 1, 0, &tuning, &err), ST_USAGE);
    slm_close(m);
    unlink(path);
}

/* Measuring leaves the sequence, its logits and all other choices alone. To the test's
 * cache of one byte every model is cold. */
static void same_logits_after_measuring(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_tuning before = slm_tuning_default(), after;
    struct err err = ERR_INIT;
    const int32_t token = 5;
    int n_measured = 0;
    struct slm *m;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    m = open_model(path, WEIGHTS_PACKED, 3, isa_usable());
    before.chunks_decode = 3;
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++) /* none of the candidates */
        before.prefetch[fmt] = (struct kern_prefetch){192, KERN_PREFETCH_T1, 1};
    for (int threads = 1; threads <= 3; threads++) {
        const size_t n_vocab = (size_t)slm_info(m)->n_vocab;
        float *want, *have, *last = calloc(n_vocab, sizeof *last);

        assert_int_equal(slm_tune(m, threads, 0, &before, &err), ST_OK);
        slm_truncate(m, 0);
        want = logits_of(m);
        slm_truncate(m, N_TOKENS - 1);
        assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
        memcpy(last, slm_logits(m, 0), n_vocab * sizeof *last);
        assert_int_equal(slm_measure_prefetch(m, 0.05, 1, &err), ST_OK);
        assert_memory_equal(slm_logits(m, 0), last, n_vocab * sizeof *last);
        slm_truncate(m, N_TOKENS - 1);
        assert_int_equal(slm_eval(m, &token, 1, SLM_LOGITS_LAST, &err), ST_OK);
        assert_memory_equal(slm_logits(m, 0), last, n_vocab * sizeof *last);
        slm_truncate(m, 0);
        have = logits_of(m);
        assert_memory_equal(have, want, N_TOKENS * n_vocab * sizeof *have);
        slm_get_tuning(m, &after);
        assert_int_equal(after.chunks_decode, 3);
        for (int fmt = 0; fmt < KERN_N_FMT; fmt++) {
            n_measured += slm_prefetches(m, (enum kern_format)fmt);
            if (!slm_prefetches(m, (enum kern_format)fmt))
                assert_int_equal(after.prefetch[fmt].distance, 192);
        }
        free(want);
        free(have);
        free(last);
    }
    assert_int_equal(n_measured > 0,
                     kern_best(KERN_OP_pack, KERN_FMT_q4_K, isa_usable()) != NULL);
    /* What caches hold stays as it is. */
    assert_int_equal(slm_tune(m, 1, 0, &before, &err), ST_OK);
    assert_int_equal(slm_measure_prefetch(m, 0.05, UINT64_MAX, &err), ST_OK);
    slm_get_tuning(m, &after);
    assert_memory_equal(after.prefetch, before.prefetch, sizeof after.prefetch);
    slm_close(m);
    unlink(path);
}

/* Rows in file order have no prefetch to measure; packed ones have to be there. */
static void nothing_to_measure(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    m = open_model(path, WEIGHTS_MMAP, 2, isa_usable());
    for (int fmt = 0; fmt < KERN_N_FMT; fmt++)
        assert_false(slm_prefetches(m, (enum kern_format)fmt));
    assert_int_equal(slm_measure_prefetch(m, 0.05, 1, &err), ST_OK);
    slm_close(m);
    p.path = path;
    p.residency = WEIGHTS_PACKED;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    if (!weights_ready(slm_weights(m)))
        assert_int_equal(slm_measure_prefetch(m, 0.05, 1, &err), ST_USAGE);
    slm_close(m);
    unlink(path);
}

/* Packed where weights, cache and scratch memory fit, to the byte. */
static void automatic(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m;
    uint64_t all;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_Q4_K_M);
    p.path = path;
    p.residency = WEIGHTS_AUTO;
    assert_int_equal(slm_open(&m, &p, &err), ST_OK);
    assert_int_equal(slm_info(m)->residency, WEIGHTS_PACKED);
    all =
        slm_info(m)->weight_bytes + slm_info(m)->kv_bytes + slm_info(m)->scratch_bytes;
    slm_close(m);
    for (int i = 0; i < 2; i++) {
        p.memory_bytes = all - (uint64_t)i;
        assert_int_equal(slm_open(&m, &p, &err), ST_OK);
        assert_int_equal(slm_info(m)->residency, i ? WEIGHTS_STREAM : WEIGHTS_PACKED);
        slm_close(m);
    }
    unlink(path);
}

/* No address space for a second mapping of the size. */
static void no_memory(void **state)
{
    char path[] = "/tmp/test_packed.XXXXXX";
    const struct weights_params how = {.residency = WEIGHTS_PACKED,
                                       .isa_mask = isa_usable()};
    struct rlimit before, none;
    struct err err = ERR_INIT;
    struct weights *w = NULL;
    enum status st;
    struct gguf *g;

    (void)state;
    make_file(path, &uneven_shape, QUANTMIX_F32);
    assert_int_equal(gguf_open(&g, path, &err), ST_OK);
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    none = before;
    none.rlim_cur = (rlim_t)1 << 20;
    assert_int_equal(setrlimit(RLIMIT_AS, &none), 0);
    st = weights_open(&w, g, &how, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_int_equal(st, ST_NO_MEMORY);
    assert_null(w);
    assert_non_null(strstr(err.msg, "weights"));
    gguf_close(g);
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
        cmocka_unit_test(same_logits_however_tuned),
        cmocka_unit_test(same_logits_after_measuring),
        cmocka_unit_test(nothing_to_measure),
        cmocka_unit_test(automatic),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
