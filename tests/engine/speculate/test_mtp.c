/* SPDX-License-Identifier: MIT
 *
 * test_mtp.c - drafts of a model's own layer that predicts further tokens: the text is
 * the text without them, guesses do not depend on how the text was evaluated, a layer
 * that cannot err does not, and guesses are what plain arithmetic gives
 */
#include <math.h>

#include "engine/gguf/gguf.h"
#include "engine/mtp.h"
#include "engine/speculate/speculate.h"
#include "tests/support/test.h"

#define MODEL TEST_DATA "models/zoo/qwen35-mtp.gguf"

enum { N_PROMPT = 24, N_TEXT = 60, N_CTX = 128, N_VOCAB = 320 };

static void fill_prompt(int32_t prompt[N_PROMPT])
{
    for (int i = 0; i < N_PROMPT; i++)
        prompt[i] = (int32_t)((i * 37 + 11) % N_VOCAB);
}

static struct slm *open_model(const struct slm_params *like)
{
    struct slm_params p = *like;
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.mtp = true;
    p.n_ctx = N_CTX;
    p.n_logits = SPECULATE_MAX + 1;
    if (slm_open(&m, &p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

static struct slm_params of_file(enum weights_residency residency)
{
    struct slm_params p = slm_params_default();

    p.path = MODEL;
    p.residency = residency;
    p.n_threads = 2;
    return p;
}

/* ---- the text ---------------------------------------------------------------------
 */

/* N_TEXT tokens after the prompt, with drafts or without. */
static void decode(struct slm *m, bool drafts, double temperature, double accept,
                   int32_t text[N_TEXT], struct speculate_stats *stats)
{
    struct sampler_params sampling = sampler_params_default();
    struct speculate_params how = {
        .mtp = true, .sampling = &sampling, .always = true, .accept = accept};
    int32_t prompt[N_PROMPT], out[SPECULATE_MAX + 1];
    struct speculator *sp = NULL;
    struct err err = ERR_INIT;
    struct sampler *s;

    sampling.temperature = (float)temperature;
    sampling.seed = 7;
    fill_prompt(prompt);
    slm_truncate(m, 0);
    assert_int_equal(sampler_open(&s, &sampling, N_VOCAB, &err), ST_OK);
    assert_int_equal(slm_eval(m, prompt, N_PROMPT, SLM_LOGITS_LAST, &err), ST_OK);
    text[0] = sampler_next(s, slm_logits(m, 0));
    sampler_accept(s, text[0]);
    if (drafts) {
        assert_int_equal(speculate_open(&sp, m, s, NULL, &how, &err), ST_OK);
        assert_int_equal(speculate_begin(sp, prompt, N_PROMPT, &err), ST_OK);
    }
    for (int n = 1, got; n < N_TEXT; n += got) {
        got = 1;
        if (drafts) {
            assert_int_equal(
                speculate_next(sp, text[n - 1], N_TEXT - n, out, &got, &err), ST_OK);
        } else {
            assert_int_equal(slm_eval(m, &text[n - 1], 1, SLM_LOGITS_LAST, &err),
                             ST_OK);
            out[0] = sampler_next(s, slm_logits(m, 0));
            sampler_accept(s, out[0]);
        }
        memcpy(text + n, out, (size_t)got * sizeof *out);
    }
    if (drafts)
        speculate_read_stats(sp, stats);
    speculate_close(sp);
    sampler_close(s);
}

static void check_text(struct slm *m, double temperature)
{
    int32_t plain[N_TEXT], drafted[N_TEXT];
    struct speculate_stats stats = {0};

    decode(m, false, temperature, 0, plain, &stats);
    decode(m, true, temperature, 0, drafted, &stats);
    for (int i = 0; i < N_TEXT; i++)
        if (plain[i] != drafted[i])
            fail_msg("%s, KV %d, temperature %g: token %d is %d without drafts and %d "
                     "with them",
                     weights_residency_name(slm_info(m)->residency),
                     (int)slm_info(m)->kv_type, temperature, i, (int)plain[i],
                     (int)drafted[i]);
    assert_true(stats.n_drafted > 0 && stats.drafted_at[0] >= stats.drafted_at[1]);
}

static void test_the_text_is_the_same(void **state)
{
    static const enum weights_residency ways[] = {WEIGHTS_MMAP, WEIGHTS_PACKED,
                                                  WEIGHTS_STREAM};
    static const enum kern_kv types[] = {KERN_KV_f16, KERN_KV_q8_0};

    (void)state;
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++)
        for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
            struct slm_params p = of_file(ways[w]);

            p.kv_type = types[t];
            struct slm *m = open_model(&p);
            check_text(m, 0);
            /* a draw that is all but a tie may fall the other way, as keys in eight
             * bits round */
            if (p.kv_type == KERN_KV_f16)
                check_text(m, 0.9);
            slm_close(m);
        }
}

/* ---- guesses ----------------------------------------------------------------------
 */

/* What is guessed after the prompt and `id`, evaluated in steps, then the next. */
static void guesses(struct slm *m, int step, int detour, float *first, float *second)
{
    int32_t prompt[N_PROMPT];
    struct err err = ERR_INIT;
    const float *logits;

    fill_prompt(prompt);
    slm_truncate(m, 0);
    for (int at = 0; at < N_PROMPT; at += step) {
        const int n = N_PROMPT - at < step ? N_PROMPT - at : step;

        assert_int_equal(slm_eval(m, prompt + at, (size_t)n, SLM_LOGITS_NONE, &err),
                         ST_OK);
        if (!detour)
            continue;
        /* guesses and wrong tokens that are taken back leave nothing */
        assert_non_null(mtp_first(m, 5));
        assert_non_null(mtp_next(m, 6));
        for (int i = 0; i < detour; i++)
            assert_int_equal(slm_eval(m, &(int32_t){9 + i}, 1, SLM_LOGITS_NONE, &err),
                             ST_OK);
        slm_truncate(m, at + n);
    }
    logits = mtp_first(m, 17);
    assert_non_null(logits);
    memcpy(first, logits, N_VOCAB * sizeof *first);
    logits = mtp_next(m, 99);
    assert_non_null(logits);
    memcpy(second, logits, N_VOCAB * sizeof *second);
}

static double difference(const float *a, const float *b)
{
    double e = 0, power = 0;

    for (int i = 0; i < N_VOCAB; i++) {
        e += (double)(a[i] - b[i]) * (double)(a[i] - b[i]);
        power += (double)b[i] * (double)b[i];
    }
    return e / power;
}

static void test_guesses_do_not_depend_on_the_way(void **state)
{
    static const struct {
        int step, detour;
    } ways[] = {{1, 0}, {5, 0}, {7, 2}, {1, 1}};
    const struct slm_params p = of_file(WEIGHTS_PACKED);
    struct slm *m = open_model(&p);
    float want[2][N_VOCAB], have[2][N_VOCAB];

    (void)state;
    guesses(m, N_PROMPT, 0, want[0], want[1]);
    assert_true(difference(want[0], want[1]) > 1e-3);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        guesses(m, ways[i].step, ways[i].detour, have[0], have[1]);
        /* passes of other widths round otherwise; another pair would be far off */
        assert_true(difference(have[0], want[0]) < 1e-3);
        assert_true(difference(have[1], want[1]) < 1e-3);
    }
    slm_close(m);
}

/* ---- a layer that cannot err -------------------------------------------------------
 */

/* Where a tensor of the file is in its image. */
static unsigned char *tensor_in(unsigned char *image, const struct gguf *g,
                                const char *name, uint64_t *bytes)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name);

    if (!t)
        return NULL;
    *bytes = t->bytes;
    return image + t->offset;
}

static void zero(unsigned char *image, const struct gguf *g, int layer,
                 const char *name)
{
    char full[64];
    uint64_t bytes = 0;

    snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    unsigned char *at = tensor_in(image, g, full, &bytes);

    if (at)
        memset(at, 0, bytes);
}

static void set_to_one(unsigned char *image, const struct gguf *g, const char *name)
{
    const float one = 1.0f;
    uint64_t bytes = 0;
    unsigned char *at = tensor_in(image, g, name, &bytes);

    assert_non_null(at);
    for (uint64_t i = 0; i < bytes; i += sizeof one)
        memcpy(at + i, &one, sizeof one);
}

/* Rows of Q8_0: ones also where the column is the row, behind `skip` columns. */
static void add_identity(unsigned char *image, const struct gguf *g, const char *name,
                         size_t skip)
{
    const uint16_t one = 0x3c00; /* 1.0 in F16 */
    uint64_t bytes = 0;
    unsigned char *at = tensor_in(image, g, name, &bytes);
    const struct gguf_tensor *t = gguf_tensor_find(g, name);
    const size_t row_bytes = (size_t)t->ne[0] / 32 * 34;

    assert_int_equal(t->fmt, KERN_FMT_q8_0);
    for (size_t r = 0; r < t->ne[1]; r++) {
        unsigned char *block = at + r * row_bytes + (r + skip) / 32 * 34;

        memcpy(block, &one, sizeof one);
        block[2 + (r + skip) % 32] = 1;
    }
}

/* The file with layers that add nothing to what they read, those that predict, too. */
static unsigned char *plain_layers(struct gguf **g, size_t *bytes)
{
    static const char *const outputs[] = {"attn_output.weight", "ssm_out.weight",
                                          "ffn_down.weight"};
    unsigned char *image = test_read_file(MODEL, bytes);
    struct err err = ERR_INIT;

    assert_int_equal(gguf_parse(g, image, *bytes, "changed", &err), ST_OK);
    for (int i = 0; i < 5; i++)
        for (size_t k = 0; k < 3; k++)
            zero(image, *g, i, outputs[k]);
    zero(image, *g, 4, "nextn.eh_proj.weight");
    return image;
}

/* A token's logits are its embedding's alone, so the layer
 * that reads the next token's embedding guesses as the model will, and one that reads
 * the hidden state, which the model has used, is one token late. */
static double acceptance(size_t skip)
{
    struct slm_params p = slm_params_default();
    struct speculate_stats stats;
    int32_t text[N_TEXT];
    struct gguf *g;
    size_t bytes;
    unsigned char *image = plain_layers(&g, &bytes);

    set_to_one(image, g, "output_norm.weight");
    set_to_one(image, g, "blk.4.nextn.enorm.weight");
    set_to_one(image, g, "blk.4.nextn.hnorm.weight");
    set_to_one(image, g, "blk.4.nextn.shared_head_norm.weight");
    add_identity(image, g, "blk.4.nextn.eh_proj.weight", skip);
    gguf_close(g);
    p.image = image;
    p.image_bytes = bytes;
    struct slm *m = open_model(&p);

    decode(m, true, 0, 0, text, &stats);
    slm_close(m);
    free(image);
    return (double)stats.n_accepted / (double)stats.n_drafted;
}

static void test_a_layer_that_cannot_err(void **state)
{
    (void)state;
    assert_true(acceptance(0) > 0.99);
    assert_true(acceptance(64) < 0.5);
}

/* ---- what a guess is ---------------------------------------------------------------
 */

enum { WIDTH = 64 };

static float half(const unsigned char *at)
{
    uint16_t h;

    memcpy(&h, at, sizeof h);
    const int exponent = h >> 10 & 31;
    const double v =
        ldexp(exponent ? 1024 + (h & 1023) : h & 1023, (exponent ? exponent : 1) - 25);

    return (float)(h >> 15 ? -v : v);
}

/* A row of a matrix of Q8_0, or a vector of floats. */
static void row_of(const unsigned char *image, const struct gguf *g, const char *name,
                   int32_t row, double out[WIDTH])
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name);

    assert_true(t && t->ne[0] == WIDTH);
    const unsigned char *at = image + t->offset + (size_t)row * (WIDTH / 32 * 34);

    for (size_t i = 0; i < WIDTH; i++) {
        float f;

        memcpy(&f, image + t->offset + i * sizeof f, sizeof f);
        out[i] = t->fmt == KERN_FMT_f32 ? (double)f
                                        : (double)half(at + i / 32 * 34) *
                                              (signed char)at[i / 32 * 34 + 2 + i % 32];
    }
}

/* x with a norm of the file. */
static void normed(const unsigned char *image, const struct gguf *g, const char *name,
                   const double x[WIDTH], double out[WIDTH])
{
    double w[WIDTH], power = 0;

    row_of(image, g, name, 0, w);
    for (int i = 0; i < WIDTH; i++)
        power += x[i] * x[i];
    for (int i = 0; i < WIDTH; i++)
        out[i] = w[i] * x[i] / sqrt(power / WIDTH + 1e-6);
}

/* A guess from the state h behind a last norm and a token, where the layer joins both
 * and adds nothing; h becomes the layer's own. */
static void guess_of(const unsigned char *image, const struct gguf *g, int32_t token,
                     double h[WIDTH], float logits[N_VOCAB])
{
    double e[WIDTH], row[WIDTH], sum;

    row_of(image, g, "token_embd.weight", token, row);
    normed(image, g, "blk.4.nextn.enorm.weight", row, e);
    normed(image, g, "blk.4.nextn.hnorm.weight", h, row);
    for (int i = 0; i < WIDTH; i++)
        e[i] += row[i];
    normed(image, g, "blk.4.nextn.shared_head_norm.weight", e, h);
    for (int32_t v = 0; v < N_VOCAB; v++) {
        row_of(image, g, "output.weight", v, row);
        sum = 0;
        for (int i = 0; i < WIDTH; i++)
            sum += row[i] * h[i];
        logits[v] = (float)sum;
    }
}

/* The state behind the model's last norm, then the layer's own behind its last norm, go
 * into the next guess. */
static void test_guesses_are_what_the_equations_give(void **state)
{
    struct slm_params p = slm_params_default();
    float have[2][N_VOCAB], want[2][N_VOCAB];
    double x[WIDTH], h[WIDTH];
    int32_t prompt[N_PROMPT];
    struct gguf *g;
    size_t bytes;
    unsigned char *image = plain_layers(&g, &bytes);

    (void)state;
    add_identity(image, g, "blk.4.nextn.eh_proj.weight", 0);
    add_identity(image, g, "blk.4.nextn.eh_proj.weight", WIDTH);
    fill_prompt(prompt);
    row_of(image, g, "token_embd.weight", prompt[N_PROMPT - 1], x);
    normed(image, g, "output_norm.weight", x, h);
    guess_of(image, g, 17, h, want[0]);
    guess_of(image, g, 99, h, want[1]);
    gguf_close(g);
    p.image = image;
    p.image_bytes = bytes;
    struct slm *m = open_model(&p);

    guesses(m, N_PROMPT, 0, have[0], have[1]);
    /* activations are rounded to eight bits; a norm left out would be far off */
    assert_true(difference(have[0], want[0]) < 1e-3);
    assert_true(difference(have[1], want[1]) < 1e-3);
    slm_close(m);
    free(image);
}

/* ---- acceptance that is set
 * ---------------------------------------------------------- */

static void test_set_acceptance(void **state)
{
    const struct slm_params p = of_file(WEIGHTS_MMAP);
    struct slm *m = open_model(&p);
    struct speculate_stats stats, all = {0};
    int32_t text[N_TEXT];

    (void)state;
    for (int i = 0; i < 10; i++) {
        decode(m, true, 0, 0.7, text, &stats);
        for (int k = 0; k < SPECULATE_MAX; k++) {
            all.drafted_at[k] += stats.drafted_at[k];
            all.accepted_at[k] += stats.accepted_at[k];
        }
    }
    const double rate = (double)all.accepted_at[0] / (double)all.drafted_at[0];

    assert_true(rate > 0.5 && rate < 0.9);
    decode(m, true, 0, 1, text, &stats);
    assert_int_equal(stats.n_accepted, stats.n_drafted);
    slm_close(m);
}

/* ---- refusals
 * ------------------------------------------------------------------------ */

static void test_refusals(void **state)
{
    struct slm_params p = of_file(WEIGHTS_MMAP);
    struct err err = ERR_INIT;
    struct slm *m;

    (void)state;
    p.mtp = true;
    p.n_sequences = 2;
    assert_int_equal(slm_open(&m, &p, &err), ST_USAGE);
    assert_non_null(strstr(err.msg, "for one sequence"));
    err_clear(&err);
    p.n_sequences = 0;
    p.path = TEST_DATA "models/llama.gguf";
    assert_int_equal(slm_open(&m, &p, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no layer that predicts further tokens"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_text_is_the_same),
        cmocka_unit_test(test_guesses_do_not_depend_on_the_way),
        cmocka_unit_test(test_a_layer_that_cannot_err),
        cmocka_unit_test(test_guesses_are_what_the_equations_give),
        cmocka_unit_test(test_set_acceptance),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
