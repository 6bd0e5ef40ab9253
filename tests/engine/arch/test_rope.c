/* SPDX-License-Identifier: MIT
 *
 * test_rope.c - rotations of every kind of position scaling
 *
 * Steps are compared with formulas written down again here. Whether the forward pass
 * uses them is seen from a model whose scaling is told by keys, and another that holds
 * the same in the plainest way: a factor for each pair, and queries and keys made
 * larger.
 */
#include <math.h>

#include "engine/arch/arch.h"
#include "engine/engine.h"
#include "tests/support/nmse.h"
#include "tests/support/tiny_model.h"

enum {
    N_EMBD = 32,
    N_HEADS = 2,
    HEAD_DIM = 24,
    N_ROT = 20,
    N_PAIRS = N_ROT / 2,
    N_FF = 40,
    N_VOCAB = 50,
    N_CTX = 400, /* as trained */
    N_TOKENS = 48,
};

static const double pi = 3.14159265358979323846;

/* A one-layer model; q_k_scale multiplies the rotated part of queries and keys. */
static void add_model(struct tiny *t, float q_k_scale)
{
    static const char *const q_k[] = {"blk.0.attn_q.weight", "blk.0.attn_k.weight"};
    const float in = 0.3F;
    float w[N_HEADS * HEAD_DIM * N_EMBD];

    tiny_key_u32(t, ".block_count", 1);
    tiny_key_u32(t, ".embedding_length", N_EMBD);
    tiny_key_u32(t, ".feed_forward_length", N_FF);
    tiny_key_u32(t, ".context_length", N_CTX);
    tiny_key_u32(t, ".attention.head_count", N_HEADS);
    tiny_key_u32(t, ".attention.key_length", HEAD_DIM);
    tiny_key_u32(t, ".attention.value_length", HEAD_DIM);
    tiny_key_u32(t, ".rope.dimension_count", N_ROT);
    for (int i = 0; i < 2; i++) {
        for (int r = 0; r < N_HEADS * HEAD_DIM; r++)
            for (int k = 0; k < N_EMBD; k++)
                w[r * N_EMBD + k] = 4 * in * test_random_float(&t->rng) *
                                    (r % HEAD_DIM < N_ROT ? q_k_scale : 1);
        tiny_put(t, q_k[i], KERN_FMT_f32, N_EMBD, N_HEADS * HEAD_DIM, 0, w);
    }
    tiny_random(t, "token_embd.weight", KERN_FMT_f32, N_EMBD, N_VOCAB, 0, 0, 1);
    tiny_random(t, "output_norm.weight", KERN_FMT_f32, N_EMBD, 0, 0, 1, 0.1F);
    tiny_layer(t, 0, "attn_norm.weight", KERN_FMT_f32, N_EMBD, 0, 0, 1, 0.1F);
    tiny_layer(t, 0, "attn_v.weight", KERN_FMT_f32, N_EMBD, N_HEADS * HEAD_DIM, 0, 0,
               in);
    tiny_layer(t, 0, "attn_output.weight", KERN_FMT_f32, N_HEADS * HEAD_DIM, N_EMBD, 0,
               0, in);
    tiny_layer(t, 0, "ffn_norm.weight", KERN_FMT_f32, N_EMBD, 0, 0, 1, 0.1F);
    tiny_layer(t, 0, "ffn_gate.weight", KERN_FMT_f32, N_EMBD, N_FF, 0, 0, in);
    tiny_layer(t, 0, "ffn_up.weight", KERN_FMT_f32, N_EMBD, N_FF, 0, 0, in);
    tiny_layer(t, 0, "ffn_down.weight", KERN_FMT_f32, N_FF, N_EMBD, 0, 0, in);
}

/* ---- what must come out ---------------------------------------------------------- */

struct expected {
    double step[N_PAIRS], step_long[N_PAIRS];
    double scale;
    int n_ctx;      /* that yarn reaches; 0: as trained */
    int n_ctx_orig; /* of step_long; 0: none */
};

static const float SHORT[N_PAIRS] = {1,    1.05F, 1.1F, 1.2F, 1.3F,
                                     1.5F, 1.75F, 2,    2.5F, 3};
static const float LONG[N_PAIRS] = {1, 1.1F, 1.4F, 2, 3.5F, 5, 8, 12, 16, 24};

static void expect_plain(struct expected *e, double base, double factor)
{
    e->scale = 1;
    for (int i = 0; i < N_PAIRS; i++)
        e->step[i] = 1 / (factor * pow(base, (double)i / N_PAIRS));
}

/* NTK-by-parts as in the YaRN paper, section 3.2, but with the ramp over the pair's
 * number, as its authors' program has it. */
static void expect_yarn(struct expected *e, double base, double factor, double n_ctx,
                        double fast, double slow, double ext)
{
    const double low = floor(N_PAIRS * log(n_ctx / (2 * pi * fast)) / log(base));
    const double high = ceil(N_PAIRS * log(n_ctx / (2 * pi * slow)) / log(base));

    e->scale = 0.1 * log(factor) + 1;
    for (int i = 0; i < N_PAIRS; i++) {
        const double f = pow(base, -2.0 * i / N_ROT);
        const double from = low < 0 ? 0 : low;
        const double to = high > N_ROT - 1 ? N_ROT - 1 : high;
        double slowed = (i - from) / (to - from);

        slowed = slowed < 0 ? 0 : slowed > 1 ? 1 : slowed;
        slowed = 1 - (1 - slowed) * ext;
        e->step[i] = slowed * (f / factor) + (1 - slowed) * f;
    }
}

/* ---- the cases ------------------------------------------------------------------- */

typedef void case_fn(struct tiny *t, struct expected *e);

static void plain(struct tiny *t, struct expected *e)
{
    tiny_key_f32(t, ".rope.freq_base", 5e5F);
    expect_plain(e, 5e5, 1);
}

static void no_scaling(struct tiny *t, struct expected *e)
{
    tiny_key_str(t, ".rope.scaling.type", "none");
    tiny_key_f32(t, ".rope.scaling.factor", 4);
    expect_plain(e, 1e4, 1);
}

static void linear(struct tiny *t, struct expected *e)
{
    tiny_key_str(t, ".rope.scaling.type", "linear");
    tiny_key_f32(t, ".rope.scaling.factor", 4);
    expect_plain(e, 1e4, 4);
}

static void linear_untold(struct tiny *t, struct expected *e)
{
    tiny_key_f32(t, ".rope.scaling.factor", 2.5F);
    expect_plain(e, 1e4, 2.5);
}

static void linear_older(struct tiny *t, struct expected *e)
{
    tiny_key_f32(t, ".rope.scale_linear", 8);
    expect_plain(e, 1e4, 8);
}

static void factors(struct tiny *t, struct expected *e)
{
    tiny_put(t, "rope_freqs.weight", KERN_FMT_f32, N_PAIRS, 0, 0, LONG);
    expect_plain(e, 1e4, 1);
    for (int i = 0; i < N_PAIRS; i++)
        e->step[i] /= (double)LONG[i];
}

static void yarn(struct tiny *t, struct expected *e)
{
    tiny_key_str(t, ".rope.scaling.type", "yarn");
    tiny_key_f32(t, ".rope.scaling.factor", 4);
    tiny_key_u32(t, ".rope.scaling.original_context_length", 1000);
    expect_yarn(e, 1e4, 4, 1000, 32, 1, 1);
    e->n_ctx = 4000;
    /* Both ends of the ramp and something between them. */
    assert_true(e->step[0] == 1 && e->step[N_PAIRS - 1] < pow(1e4, -0.9) / 3.99);
}

static void yarn_in_full(struct tiny *t, struct expected *e)
{
    tiny_key_str(t, ".rope.scaling.type", "yarn");
    tiny_key_f32(t, ".rope.freq_base", 1e6F);
    tiny_key_f32(t, ".rope.scaling.factor", 16);
    tiny_key_f32(t, ".rope.scaling.attn_factor", 1.25F);
    tiny_key_f32(t, ".rope.scaling.yarn_attn_factor", 0.5F);
    tiny_key_f32(t, ".rope.scaling.yarn_ext_factor", 0.75F);
    tiny_key_f32(t, ".rope.scaling.yarn_beta_fast", 8);
    tiny_key_f32(t, ".rope.scaling.yarn_beta_slow", 0.5F);
    expect_yarn(e, 1e6, 16, N_CTX, 8, 0.5, 0.75); /* the trained context is original */
    e->scale *= 0.5 * 1.25;
}

/* The ramp from 20 ln(1000 / (2 pi 32)) / (2 ln 1e4) = 1.7417 to 5.5046, not from 1 to
 * 6: computed by hand, as are the speeds below. */
static void yarn_in_fractions(struct tiny *t, struct expected *e)
{
    static const double steps[N_PAIRS] = {1,
                                          0.3981071705534972,
                                          0.1503289977032286,
                                          0.04727108235194985,
                                          0.01381237317933729,
                                          0.003505647948122564,
                                          0.0009952679263837434,
                                          0.0003962232981152785,
                                          0.0001577393361200483,
                                          6.279716078773949e-05};

    yarn(t, e);
    tiny_key_bool(t, ".rope.scaling.yarn_truncate", false);
    memcpy(e->step, steps, sizeof steps);
}

/* What a file states that has the key all the same. */
static void yarn_truncated(struct tiny *t, struct expected *e)
{
    yarn(t, e);
    tiny_key_bool(t, ".rope.scaling.yarn_truncate", true);
}

/* As Phi-3's files: no type. */
static void longrope(struct tiny *t, struct expected *e)
{
    tiny_key_u32(t, ".rope.scaling.original_context_length", 64);
    tiny_key_f32(t, ".rope.scaling.attn_factor", 1.1875F);
    tiny_put(t, "rope_factors_short.weight", KERN_FMT_f32, N_PAIRS, 0, 0, SHORT);
    tiny_put(t, "rope_factors_long.weight", KERN_FMT_f32, N_PAIRS, 0, 0, LONG);
    expect_plain(e, 1e4, 1);
    e->scale = 1.1875;
    e->n_ctx_orig = 64;
    for (int i = 0; i < N_PAIRS; i++) {
        e->step_long[i] = e->step[i] / (double)LONG[i];
        e->step[i] /= (double)SHORT[i];
    }
}

static const struct {
    const char *name;
    case_fn *fn;
} CASES[] = {
    {"plain", plain},
    {"none", no_scaling},
    {"linear", linear},
    {"linear, no type", linear_untold},
    {"scale_linear", linear_older},
    {"rope_freqs", factors},
    {"yarn", yarn},
    {"yarn, all keys", yarn_in_full},
    {"yarn, fractions of pairs", yarn_in_fractions},
    {"yarn, whole pairs", yarn_truncated},
    {"longrope", longrope},
};

#define N_CASES (sizeof CASES / sizeof CASES[0])

/* ---- tests ----------------------------------------------------------------------- */

static void check_turns(const char *name, const struct rope *r, int n_ctx,
                        const double *step, double scale)
{
    static const int places[] = {0, 1, 17, 399, 100000};
    float turn[N_ROT];

    for (size_t p = 0; p < sizeof places / sizeof places[0]; p++) {
        rope_turns(r, PAIRS_NEIGHBOURS, n_ctx, places[p], turn);
        for (int i = 0; i < N_PAIRS; i++) {
            const double angle = places[p] * step[i];

            if (!(fabs((double)turn[2 * i] - scale * cos(angle)) < 1e-6 &&
                  fabs((double)turn[2 * i + 1] - scale * sin(angle)) < 1e-6))
                fail_msg("%s: pair %d at %d of %d: %.9g, %.9g and not %.9g, %.9g", name,
                         i, places[p], n_ctx, (double)turn[2 * i],
                         (double)turn[2 * i + 1], scale * cos(angle),
                         scale * sin(angle));
        }
    }
}

static void test_turns(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_CASES; c++) {
        struct weights_params how = {.residency = WEIGHTS_MEMORY,
                                     .isa_mask = isa_usable()};
        struct err err = ERR_INIT;
        struct expected e = {.scale = 1};
        struct gguf *g = NULL;
        struct weights *w = NULL;
        struct model *m = NULL;
        struct tiny t;
        size_t bytes;

        tiny_new(&t, "llama");
        add_model(&t, 1);
        CASES[c].fn(&t, &e);
        void *image = tiny_image(&t, &bytes);

        if (gguf_parse(&g, image, bytes, CASES[c].name, &err) ||
            weights_open(&w, g, &how, &err) || model_load(&m, g, w, &err))
            fail_msg("%s", err.msg);
        assert_int_equal(m->n_ctx_train, e.n_ctx ? e.n_ctx : N_CTX);
        check_turns(CASES[c].name, &m->ropes[0], 64, e.step, e.scale);
        check_turns(CASES[c].name, &m->ropes[0], 65,
                    e.n_ctx_orig ? e.step_long : e.step, e.scale);
        model_free(m);
        weights_close(w);
        gguf_close(g);
        free(image);
    }
}

/* Logits of the last of N_TOKENS; t is closed. */
static void run(struct tiny *t, int n_ctx, float *logits)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    int32_t tokens[N_TOKENS];
    uint64_t rng = 5;
    size_t bytes;
    void *image = tiny_image(t, &bytes);

    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)(test_random(&rng) % N_VOCAB);
    p.image = image;
    p.image_bytes = bytes;
    p.n_ctx = n_ctx;
    if (slm_open(&m, &p, &err) ||
        slm_eval(m, tokens, N_TOKENS - 1, SLM_LOGITS_NONE, &err) ||
        slm_eval(m, tokens + N_TOKENS - 1, 1, SLM_LOGITS_LAST, &err))
        fail_msg("%s", err.msg);
    memcpy(logits, slm_logits(m, 0), N_VOCAB * sizeof *logits);
    slm_close(m);
    free(image);
}

static void test_forward_pass(void **state)
{
    static const int contexts[] = {64, 65};
    float unscaled[N_VOCAB], got[N_VOCAB], same[N_VOCAB];
    struct expected e;
    struct tiny t;

    (void)state;
    tiny_new(&t, "llama");
    add_model(&t, 1);
    run(&t, 64, unscaled);
    for (size_t i = 0; i < 2 * N_CASES; i++) {
        const int n_ctx = contexts[i % 2];
        float factor[N_PAIRS];

        e = (struct expected){.scale = 1};
        tiny_new(&t, "llama");
        add_model(&t, 1);
        CASES[i / 2].fn(&t, &e);
        run(&t, n_ctx, got);
        const double *step =
            e.n_ctx_orig && n_ctx > e.n_ctx_orig ? e.step_long : e.step;

        for (int k = 0; k < N_PAIRS; k++)
            factor[k] = (float)(pow(1e4, -2.0 * k / N_ROT) / step[k]);
        tiny_new(&t, "llama");
        add_model(&t, (float)e.scale);
        tiny_put(&t, "rope_freqs.weight", KERN_FMT_f32, N_PAIRS, 0, 0, factor);
        run(&t, n_ctx, same);
        if (!(nmse(got, same, N_VOCAB) < 1e-6))
            fail_msg("%s, context %d: NMSE %g", CASES[i / 2].name, n_ctx,
                     nmse(got, same, N_VOCAB));
        if (CASES[i / 2].fn != no_scaling && !(nmse(got, unscaled, N_VOCAB) > 1e-4))
            fail_msg("%s changes nothing: NMSE %g", CASES[i / 2].name,
                     nmse(got, unscaled, N_VOCAB));
    }
}

/* ---- files that make no sense ---------------------------------------------------- */

static void bad_type(struct tiny *t, struct expected *e)
{
    (void)e;
    tiny_key_str(t, ".rope.scaling.type", "spiral\n");
}

static void bad_factor(struct tiny *t, struct expected *e)
{
    (void)e;
    tiny_key_f32(t, ".rope.scaling.factor", -2);
}

static void nan_factor(struct tiny *t, struct expected *e)
{
    (void)e;
    tiny_key_f32(t, ".rope.scaling.factor", NAN);
}

static void yarn_base(struct tiny *t, struct expected *e)
{
    (void)e;
    tiny_key_str(t, ".rope.scaling.type", "yarn");
    tiny_key_f32(t, ".rope.freq_base", 1);
}

static void yarn_text(struct tiny *t, struct expected *e)
{
    (void)e;
    tiny_key_str(t, ".rope.scaling.type", "yarn");
    tiny_key_str(t, ".rope.scaling.yarn_truncate", "no");
}

static void half_longrope(struct tiny *t, struct expected *e)
{
    (void)e;
    tiny_put(t, "rope_factors_short.weight", KERN_FMT_f32, N_PAIRS, 0, 0, SHORT);
}

static void untold_longrope(struct tiny *t, struct expected *e)
{
    (void)e;
    tiny_key_str(t, ".rope.scaling.type", "longrope");
}

static void two_kinds(struct tiny *t, struct expected *e)
{
    longrope(t, e);
    tiny_put(t, "rope_freqs.weight", KERN_FMT_f32, N_PAIRS, 0, 0, SHORT);
}

static void zero_factors(struct tiny *t, struct expected *e)
{
    static const float zeros[N_PAIRS];

    (void)e;
    tiny_put(t, "rope_freqs.weight", KERN_FMT_f32, N_PAIRS, 0, 0, zeros);
}

static void test_refused(void **state)
{
    static const struct {
        case_fn *fn;
        const char *says;
        enum status code;
    } cases[] = {
        {bad_type, "supported are: none, linear, yarn, longrope", ST_UNSUPPORTED},
        {bad_factor, "rope.scaling.factor is -2", ST_INPUT},
        {nan_factor, "rope.scaling.factor is nan", ST_INPUT},
        {yarn_base, "yarn needs one above 1", ST_INPUT},
        {yarn_text, "rope.scaling.yarn_truncate is not true or false", ST_INPUT},
        {half_longrope, "rope_factors_long.weight is missing", ST_INPUT},
        {untold_longrope, "rope_factors_short.weight is missing", ST_INPUT},
        {two_kinds, "exclude each other", ST_INPUT},
        {zero_factors, "rope_freqs.weight has a factor of 0", ST_INPUT},
    };

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct slm_params p = slm_params_default();
        struct err err = ERR_INIT;
        struct expected e;
        struct slm *m = NULL;
        struct tiny t;

        tiny_new(&t, "llama");
        add_model(&t, 1);
        cases[c].fn(&t, &e);
        void *image = tiny_image(&t, &p.image_bytes);

        p.image = image;
        assert_int_equal(slm_open(&m, &p, &err), cases[c].code);
        if (!strstr(err.msg, cases[c].says) || strchr(err.msg, '\n'))
            fail_msg("\"%s\" and not \"%s\"", err.msg, cases[c].says);
        free(image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_forward_pass),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
