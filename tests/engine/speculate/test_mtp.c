/* SPDX-License-Identifier: MIT
 *
 * test_mtp.c - drafts of a model's own layer that predicts further tokens: the text is
 * the text without them, guesses do not depend on how the text was evaluated, a layer
 * that cannot err does not, and guesses are what plain arithmetic gives
 */
#include <math.h>

#include "engine/mtp.h"
#include "engine/speculate/speculate.h"
#include "tests/support/mtp_image.h"

#define MODEL TEST_DATA "models/zoo/qwen35-mtp.gguf"

enum { N_PROMPT = 24, N_TEXT = 60, N_CTX = 128, N_VOCAB = 320 };

static void fill_prompt(int32_t prompt[N_PROMPT])
{
    for (int i = 0; i < N_PROMPT; i++)
        prompt[i] = (int32_t)((i * 37 + 11) % N_VOCAB);
}

static struct slm *open_with(const struct slm_params *p)
{
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    if (slm_open(&m, p, &err) ||
        weights_preload(slm_weights(m), slm_thread_pool(m), NULL, NULL, &err))
        fail_msg("%s", err.msg);
    return m;
}

static struct slm *open_model(const struct slm_params *like)
{
    struct slm_params p = *like;

    p.mtp = true;
    p.n_ctx = N_CTX;
    p.n_logits = SPECULATE_MAX + 1;
    return open_with(&p);
}

static struct slm_params of_file(enum weights_residency residency)
{
    struct slm_params p = slm_params_default();

    p.path = MODEL;
    p.residency = residency;
    p.n_threads = 2;
    return p;
}

/* ---- the text -------------------------------------------------------------------- */

/* A sampler, and the prompt evaluated: text[0]. */
static struct sampler *begin(struct slm *m, double temperature, int32_t text[N_TEXT])
{
    struct sampler_params sampling = sampler_params_default();
    int32_t prompt[N_PROMPT];
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
    return s;
}

/* N_TEXT tokens after the prompt, with drafts. */
static void decode(struct slm *m, double temperature, double accept,
                   int32_t text[N_TEXT], struct speculate_stats *stats)
{
    struct sampler_params sampling = sampler_params_default();
    struct speculate_params how = {
        .mtp = true, .sampling = &sampling, .always = true, .accept = accept};
    struct sampler *s = begin(m, temperature, text);
    int32_t prompt[N_PROMPT], out[SPECULATE_MAX + 1];
    struct speculator *sp = NULL;
    struct err err = ERR_INIT;

    sampling.temperature = (float)temperature;
    sampling.seed = 7;
    fill_prompt(prompt);
    assert_int_equal(speculate_open(&sp, m, s, NULL, &how, &err), ST_OK);
    assert_int_equal(speculate_begin(sp, prompt, N_PROMPT, &err), ST_OK);
    for (int n = 1, got; n < N_TEXT; n += got) {
        assert_int_equal(speculate_next(sp, text[n - 1], N_TEXT - n, out, &got, &err),
                         ST_OK);
        memcpy(text + n, out, (size_t)got * sizeof *out);
    }
    speculate_read_stats(sp, stats);
    speculate_close(sp);
    sampler_close(s);
}

/* Each token of the text with drafts is the one that is drawn after those before it
 * without. Passes of other widths round otherwise, once in a while by a step of an
 * activation in eight bits, which states remember; then a draw that is all but a tie
 * falls the other way. With wrong states hardly any draw would be the same. */
static void check_text(struct slm *m, double temperature)
{
    int32_t plain[N_TEXT], drafted[N_TEXT];
    struct speculate_stats stats = {0};
    struct err err = ERR_INIT;
    int n_others = 0;

    decode(m, temperature, 0, drafted, &stats);
    struct sampler *s = begin(m, temperature, plain);
    assert_int_equal(plain[0], drafted[0]);
    for (int i = 1; i < N_TEXT; i++) {
        assert_int_equal(slm_eval(m, &drafted[i - 1], 1, SLM_LOGITS_LAST, &err), ST_OK);
        plain[i] = sampler_next(s, slm_logits(m, 0));
        sampler_accept(s, drafted[i]);
        n_others += plain[i] != drafted[i];
    }
    sampler_close(s);
    if (n_others > N_TEXT / 4)
        fail_msg("%s, KV %d, temperature %g: %d of %d tokens are not those without "
                 "drafts",
                 weights_residency_name(slm_info(m)->residency),
                 (int)slm_info(m)->kv_type, temperature, n_others, N_TEXT);
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
            check_text(m, 0.9);
            slm_close(m);
        }
}

/* ---- guesses --------------------------------------------------------------------- */

/* What is guessed after the prompt and `id`, evaluated in steps, then the next. */
static void guesses(struct slm *m, int step, int detour, float *first, float *second)
{
    struct mtp_guess g = {.id = 5};
    int32_t prompt[N_PROMPT];
    struct err err = ERR_INIT;

    fill_prompt(prompt);
    slm_truncate(m, 0);
    for (int at = 0; at < N_PROMPT; at += step) {
        const int n = N_PROMPT - at < step ? N_PROMPT - at : step;

        assert_int_equal(slm_eval(m, prompt + at, (size_t)n, SLM_LOGITS_NONE, &err),
                         ST_OK);
        if (!detour)
            continue;
        /* guesses and wrong tokens that are taken back leave nothing */
        g.id = 5;
        mtp_first(m, &g, 1);
        assert_non_null(g.logits);
        g.id = 6;
        mtp_next(m, &g, 1);
        assert_non_null(g.logits);
        for (int i = 0; i < detour; i++)
            assert_int_equal(slm_eval(m, &(int32_t){9 + i}, 1, SLM_LOGITS_NONE, &err),
                             ST_OK);
        slm_truncate(m, at + n);
    }
    g.id = 17;
    mtp_first(m, &g, 1);
    assert_non_null(g.logits);
    memcpy(first, g.logits, N_VOCAB * sizeof *first);
    g.id = 99;
    mtp_next(m, &g, 1);
    assert_non_null(g.logits);
    memcpy(second, g.logits, N_VOCAB * sizeof *second);
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

/* ---- several sequences ----------------------------------------------------------- */

enum { N_SEQUENCES = 3, N_LONG = 200 };

/* Sequence i has another text of another length; the longest is longer than what is
 * kept of hidden states. */
static int length_of(int i)
{
    return i == 1 ? N_LONG : N_PROMPT + 7 * i;
}

static void fill_text(int32_t text[N_LONG], int i)
{
    for (int at = 0; at < N_LONG; at++)
        text[at] = (int32_t)((at * (37 + 2 * i) + 11 * i + 3) % N_VOCAB);
}

static struct slm *open_several(int n_sequences)
{
    struct slm_params p = of_file(WEIGHTS_PACKED);

    p.n_sequences = n_sequences;
    p.n_batch = 64;
    p.mtp = true;
    p.n_ctx = 256;
    return open_with(&p);
}

/* Append tokens to a sequence, some at a time. */
static void append(struct slm *m, int seq, const int32_t *tokens, int n, int step)
{
    struct err err = ERR_INIT;

    for (int at = 0; at < n; at += step) {
        const struct slm_part part = {seq, tokens + at, n - at < step ? n - at : step,
                                      SLM_LOGITS_NONE};

        if (slm_batch(m, &part, 1, &err))
            fail_msg("%s", err.msg);
    }
}

/* First and second guess of g[n], whose ids are the first tokens. */
static void guess_twice(struct slm *m, struct mtp_guess *g, int n,
                        float (*first)[N_VOCAB], float (*second)[N_VOCAB])
{
    for (int round = 0; round < 2; round++) {
        float(*out)[N_VOCAB] = round ? second : first;

        if (round)
            mtp_next(m, g, n);
        else
            mtp_first(m, g, n);
        for (int i = 0; i < n; i++) {
            assert_non_null(g[i].logits);
            memcpy(out[i], g[i].logits, sizeof out[i]);
            g[i].id = 99 + g[i].seq % N_SEQUENCES;
        }
    }
}

/* What a model with this sequence alone guesses. */
static void guess_alone(int i, float (*first)[N_VOCAB], float (*second)[N_VOCAB])
{
    struct slm *m = open_several(1);
    struct mtp_guess g = {.id = 17 + i};
    int32_t text[N_LONG];

    fill_text(text, i);
    append(m, 0, text, length_of(i), 64);
    mtp_first(m, &g, 1);
    memcpy(first[0], g.logits, sizeof first[0]);
    g.id = 99 + i;
    mtp_next(m, &g, 1);
    memcpy(second[0], g.logits, sizeof second[0]);
    slm_close(m);
}

static void test_several_sequences(void **state)
{
    struct slm *m = open_several(N_SEQUENCES + 1);
    float want[2][N_VOCAB], have[2][N_SEQUENCES + 1][N_VOCAB];
    struct mtp_guess g[N_SEQUENCES + 1];
    int32_t text[N_LONG];

    (void)state;
    for (int i = 0; i < N_SEQUENCES; i++) {
        fill_text(text, i);
        append(m, i, text, length_of(i), 5 + 20 * i);
        g[i] = (struct mtp_guess){.seq = i, .id = 1};
    }
    /* wrong guesses leave nothing, and a copy guesses as the first does */
    guess_twice(m, g, N_SEQUENCES, have[0], have[1]);
    slm_seq_fork(m, 0, N_SEQUENCES);
    for (int i = 0; i <= N_SEQUENCES; i++)
        g[i] = (struct mtp_guess){.seq = i, .id = 17 + i % N_SEQUENCES};
    guess_twice(m, g, N_SEQUENCES + 1, have[0], have[1]);
    for (int i = 0; i <= N_SEQUENCES; i++) {
        guess_alone(i % N_SEQUENCES, &want[0], &want[1]);
        assert_true(difference(have[0][i], want[0]) < 1e-3);
        assert_true(difference(have[1][i], want[1]) < 1e-3);
        assert_true(difference(have[0][i], have[0][(i + 1) % N_SEQUENCES]) > 1e-2);
    }
    /* nothing was evaluated of a sequence, or not since it was cut */
    slm_seq_truncate(m, 0, 0);
    g[0] = (struct mtp_guess){.seq = 0, .id = 3};
    g[1] = (struct mtp_guess){.seq = 1, .id = 18};
    mtp_first(m, g, 2);
    assert_null(g[0].logits);
    assert_true(difference(g[1].logits, have[0][1]) < 1e-3);
    slm_close(m);
}

/* ---- a layer that cannot err ----------------------------------------------------- */

static double acceptance(size_t skip)
{
    struct slm_params p = slm_params_default();
    struct speculate_stats stats;
    int32_t text[N_TEXT];
    unsigned char *image = mtp_image_make(MODEL, skip, &p.image_bytes);

    p.image = image;
    struct slm *m = open_model(&p);

    decode(m, 0, 0, text, &stats);
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

/* ---- what a guess is ------------------------------------------------------------- */

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
    unsigned char *image = mtp_plain_layers(MODEL, &g, &bytes);

    (void)state;
    mtp_add_identity(image, g, "blk.4.nextn.eh_proj.weight", 0);
    mtp_add_identity(image, g, "blk.4.nextn.eh_proj.weight", WIDTH);
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

/* ---- acceptance that is set ------------------------------------------------------ */

static void test_set_acceptance(void **state)
{
    const struct slm_params p = of_file(WEIGHTS_MMAP);
    struct slm *m = open_model(&p);
    struct speculate_stats stats, all = {0};
    int32_t text[N_TEXT];

    (void)state;
    for (int i = 0; i < 10; i++) {
        decode(m, 0, 0.7, text, &stats);
        for (int k = 0; k < SPECULATE_MAX; k++) {
            all.drafted_at[k] += stats.drafted_at[k];
            all.accepted_at[k] += stats.accepted_at[k];
        }
    }
    const double rate = (double)all.accepted_at[0] / (double)all.drafted_at[0];

    assert_true(rate > 0.5 && rate < 0.9);
    decode(m, 0, 1, text, &stats);
    assert_int_equal(stats.n_accepted, stats.n_drafted);
    slm_close(m);
}

/* ---- refusals -------------------------------------------------------------------- */

static void test_refusals(void **state)
{
    struct slm_params p = of_file(WEIGHTS_MMAP);
    struct err err = ERR_INIT;
    struct slm *m;

    (void)state;
    p.mtp = true;
    p.path = TEST_DATA "models/llama.gguf";
    assert_int_equal(slm_open(&m, &p, &err), ST_UNSUPPORTED);
    assert_non_null(strstr(err.msg, "no layer that predicts further tokens"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_text_is_the_same),
        cmocka_unit_test(test_guesses_do_not_depend_on_the_way),
        cmocka_unit_test(test_several_sequences),
        cmocka_unit_test(test_a_layer_that_cannot_err),
        cmocka_unit_test(test_guesses_are_what_the_equations_give),
        cmocka_unit_test(test_set_acceptance),
        cmocka_unit_test(test_refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
