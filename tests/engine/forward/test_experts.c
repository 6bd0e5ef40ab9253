/* SPDX-License-Identifier: MIT
 *
 * test_experts.c - routed feed-forward parts against plain ones in double precision
 *
 * Models of one layer whose attention adds nothing, because its output matrix is
 * zero: what is left can be followed token by token. Numbers of experts, widths and
 * batches are odd ones, and weights are taken as a file has them and in panels.
 */
#include <math.h>

#include "engine/engine.h"
#include "engine/gguf/census.h"
#include "engine/gguf/gguf.h"
#include "tests/support/nmse.h"
#include "tests/support/tiny_model.h"

enum { N_VOCAB = 70, N_TOKENS = 61 };

static const float EPS = 1e-5F;

struct variant {
    const char *arch;
    int n_embd, n_ff, n_experts, n_used;
    enum kern_format fmt; /* of the experts */
    int n_ff_shared;      /* 0: no expert for all tokens */
    bool each;            /* experts have tensors of their own, as in older files */
    bool mixed;           /* of different types */
};

/* Attention is there, and its output is multiplied with zero. */
static void add_attention(struct tiny *t, const struct variant *v)
{
    const uint64_t n = (uint64_t)v->n_embd;
    float *zeros = calloc((size_t)v->n_embd * 16, sizeof *zeros);

    assert_non_null(zeros);
    tiny_key_u32(t, ".attention.head_count", 2);
    tiny_key_u32(t, ".attention.head_count_kv", 1);
    tiny_key_u32(t, ".attention.key_length", 8);
    tiny_key_u32(t, ".attention.value_length", 8);
    tiny_layer(t, 0, "attn_norm.weight", KERN_FMT_f32, n, 0, 0, 1, 0.1F);
    tiny_layer(t, 0, "attn_q.weight", KERN_FMT_f32, n, 16, 0, 0, 0.3F);
    tiny_layer(t, 0, "attn_k.weight", KERN_FMT_f32, n, 8, 0, 0, 0.3F);
    tiny_layer(t, 0, "attn_v.weight", KERN_FMT_f32, n, 8, 0, 0, 0.3F);
    if (!strcmp(v->arch, "qwen2moe")) {
        tiny_layer(t, 0, "attn_q.bias", KERN_FMT_f32, 16, 0, 0, 0, 1);
        tiny_layer(t, 0, "attn_k.bias", KERN_FMT_f32, 8, 0, 0, 0, 1);
        tiny_layer(t, 0, "attn_v.bias", KERN_FMT_f32, 8, 0, 0, 0, 1);
    }
    if (!strcmp(v->arch, "qwen3moe")) {
        tiny_layer(t, 0, "attn_q_norm.weight", KERN_FMT_f32, 8, 0, 0, 1, 0.1F);
        tiny_layer(t, 0, "attn_k_norm.weight", KERN_FMT_f32, 8, 0, 0, 1, 0.1F);
    }
    tiny_put(t, "blk.0.attn_output.weight", KERN_FMT_f32, 16, n, 0, zeros);
    free(zeros);
}

static void add_experts(struct tiny *t, const struct variant *v, float in)
{
    const uint64_t n = (uint64_t)v->n_embd, n_ff = (uint64_t)v->n_ff;
    const uint64_t n_experts = (uint64_t)v->n_experts;
    char name[64];

    tiny_layer(t, 0, "ffn_gate_inp.weight", KERN_FMT_f32, n, n_experts, 0, 0, in);
    if (!v->each) {
        tiny_layer(t, 0, "ffn_gate_exps.weight", v->fmt, n, n_ff, n_experts, 0, in);
        tiny_layer(t, 0, "ffn_up_exps.weight", v->fmt, n, n_ff, n_experts, 0, in);
        tiny_layer(t, 0, "ffn_down_exps.weight", v->fmt, n_ff, n, n_experts, 0, in);
        return;
    }
    for (int e = 0; e < v->n_experts; e++) {
        snprintf(name, sizeof name, "ffn_gate.%d.weight", e);
        tiny_layer(t, 0, name, v->mixed && e == 1 ? KERN_FMT_f16 : v->fmt, n, n_ff, 0,
                   0, in);
        snprintf(name, sizeof name, "ffn_up.%d.weight", e);
        tiny_layer(t, 0, name, v->fmt, n, n_ff, 0, 0, in);
        snprintf(name, sizeof name, "ffn_down.%d.weight", e);
        tiny_layer(t, 0, name, v->fmt, n_ff, n, 0, 0, in);
    }
}

static void add_shared(struct tiny *t, const struct variant *v, float in)
{
    const uint64_t n = (uint64_t)v->n_embd, n_ff = (uint64_t)v->n_ff_shared;

    tiny_key_u32(t, ".expert_shared_feed_forward_length", (uint32_t)n_ff);
    tiny_layer(t, 0, "ffn_gate_inp_shexp.weight", KERN_FMT_f32, n, 0, 0, 0, in);
    tiny_layer(t, 0, "ffn_gate_shexp.weight", v->fmt, n, n_ff, 0, 0, in);
    tiny_layer(t, 0, "ffn_up_shexp.weight", v->fmt, n, n_ff, 0, 0, in);
    tiny_layer(t, 0, "ffn_down_shexp.weight", v->fmt, n_ff, n, 0, 0, in);
}

static void describe_model(struct tiny *t, const struct variant *v)
{
    const uint64_t n = (uint64_t)v->n_embd;
    const float in = 2 / sqrtf((float)v->n_embd);

    tiny_new(t, v->arch);
    tiny_key_u32(t, ".block_count", 1);
    tiny_key_u32(t, ".embedding_length", (uint32_t)v->n_embd);
    tiny_key_u32(t, ".feed_forward_length", 1000);
    tiny_key_u32(t, ".expert_feed_forward_length", (uint32_t)v->n_ff);
    tiny_key_u32(t, ".context_length", N_TOKENS);
    tiny_key_u32(t, ".expert_count", (uint32_t)v->n_experts);
    tiny_key_u32(t, ".expert_used_count", (uint32_t)v->n_used);
    tiny_key_f32(t, ".attention.layer_norm_rms_epsilon", EPS);
    tiny_random(t, "token_embd.weight", KERN_FMT_f32, n, N_VOCAB, 0, 0, 1);
    tiny_random(t, "output_norm.weight", KERN_FMT_f32, n, 0, 0, 1, 0.1F);
    add_attention(t, v);
    tiny_layer(t, 0, "ffn_norm.weight", KERN_FMT_f32, n, 0, 0, 1, 0.1F);
    add_experts(t, v, in);
    if (v->n_ff_shared)
        add_shared(t, v, in);
}

static void *make_model(const struct variant *v, size_t *bytes)
{
    struct tiny t;

    describe_model(&t, v);
    return tiny_image(&t, bytes);
}

/* ---- the reference --------------------------------------------------------------- */

enum { MAX = 1024 };

/* A tensor as floats, to be freed; NULL: there is none. */
static float *tensor(const struct gguf *g, const char *name)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name);

    if (!t)
        return NULL;
    float *f = malloc(t->n_elems * sizeof *f);

    assert_non_null(f);
    kern_best(KERN_OP_dequantize, (int)t->fmt, 1u << KERN_ISA_scalar)
        ->fn.dequantize(gguf_tensor_data(g, t), f, t->n_elems);
    return f;
}

/* The experts' matrices one after another: of <name>_exps.weight or <name>.0.weight,
 * <name>.1.weight and so on. */
static float *experts(const struct gguf *g, const struct variant *v, const char *name)
{
    const size_t slice = (size_t)v->n_ff * (size_t)v->n_embd;
    float *all;
    char full[64];

    snprintf(full, sizeof full, "blk.0.%s_exps.weight", name);
    if (!v->each)
        return tensor(g, full);
    all = malloc((size_t)v->n_experts * slice * sizeof *all);
    assert_non_null(all);
    for (int e = 0; e < v->n_experts; e++) {
        snprintf(full, sizeof full, "blk.0.%s.%d.weight", name, e);
        float *one = tensor(g, full);

        memcpy(all + (size_t)e * slice, one, slice * sizeof *all);
        free(one);
    }
    return all;
}

static void matmul(double *y, const float *w, const double *x, int n_rows, int k)
{
    for (int r = 0; r < n_rows; r++) {
        y[r] = 0;
        for (int i = 0; i < k; i++)
            y[r] += (double)w[(size_t)r * (size_t)k + (size_t)i] * x[i];
    }
}

static void norm(double *y, const double *x, const float *w, int n)
{
    double sum = 0;

    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < n; i++)
        y[i] = x[i] * (double)w[i] / sqrt(sum / n + (double)EPS);
}

/* x += share * down(silu(gate y) * up y) */
static void add_expert(const struct variant *v, int n_ff, double *x, const double *y,
                       const float *gate, const float *up, const float *down,
                       double share)
{
    double g[MAX], u[MAX], out[MAX];

    matmul(g, gate, y, n_ff, v->n_embd);
    matmul(u, up, y, n_ff, v->n_embd);
    for (int i = 0; i < n_ff; i++)
        g[i] = g[i] / (1 + exp(-g[i])) * u[i];
    matmul(out, down, g, v->n_embd, n_ff);
    for (int i = 0; i < v->n_embd; i++)
        x[i] += share * out[i];
}

/* Shares of all experts, 0 for those that are not taken. */
static void choose(const struct variant *v, const double *score, double *share)
{
    const bool of_all = !strcmp(v->arch, "qwen2moe");
    double sum = 0;

    for (int e = 0; e < v->n_experts; e++) {
        int better = 0;

        for (int o = 0; o < v->n_experts; o++)
            better += score[o] > score[e];
        share[e] = better < v->n_used ? exp(score[e]) : 0;
        sum += of_all ? exp(score[e]) : share[e];
    }
    for (int e = 0; e < v->n_experts; e++)
        share[e] /= sum;
}

struct reference {
    float *embd, *ffn_norm, *out_norm, *router, *gate, *up, *down;
    float *shared_router, *shared_gate, *shared_up, *shared_down;
};

static void reference_logits(const struct variant *v, const struct reference *r,
                             int32_t token, float *logits)
{
    const size_t slice = (size_t)v->n_ff * (size_t)v->n_embd;
    double x[MAX], y[MAX], score[MAX], share[MAX];

    for (int i = 0; i < v->n_embd; i++)
        x[i] = (double)r->embd[token * v->n_embd + i];
    norm(y, x, r->ffn_norm, v->n_embd);
    matmul(score, r->router, y, v->n_experts, v->n_embd);
    choose(v, score, share);
    for (size_t e = 0; e < (size_t)v->n_experts; e++)
        if (share[e] > 0)
            add_expert(v, v->n_ff, x, y, r->gate + e * slice, r->up + e * slice,
                       r->down + e * slice, share[e]);
    if (r->shared_router) {
        matmul(score, r->shared_router, y, 1, v->n_embd);
        add_expert(v, v->n_ff_shared, x, y, r->shared_gate, r->shared_up,
                   r->shared_down, 1 / (1 + exp(-score[0])));
    }
    norm(y, x, r->out_norm, v->n_embd);
    matmul(score, r->embd, y, N_VOCAB, v->n_embd);
    for (int i = 0; i < N_VOCAB; i++)
        logits[i] = (float)score[i];
}

/* [N_TOKENS][N_VOCAB] */
static void reference_run(const struct variant *v, const void *image, size_t bytes,
                          const int32_t *tokens, float *logits)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;

    assert_int_equal(gguf_parse(&g, image, bytes, v->arch, &err), ST_OK);
    struct reference r = {.embd = tensor(g, "token_embd.weight"),
                          .ffn_norm = tensor(g, "blk.0.ffn_norm.weight"),
                          .out_norm = tensor(g, "output_norm.weight"),
                          .router = tensor(g, "blk.0.ffn_gate_inp.weight"),
                          .gate = experts(g, v, "ffn_gate"),
                          .up = experts(g, v, "ffn_up"),
                          .down = experts(g, v, "ffn_down"),
                          .shared_router = tensor(g, "blk.0.ffn_gate_inp_shexp.weight"),
                          .shared_gate = tensor(g, "blk.0.ffn_gate_shexp.weight"),
                          .shared_up = tensor(g, "blk.0.ffn_up_shexp.weight"),
                          .shared_down = tensor(g, "blk.0.ffn_down_shexp.weight")};

    for (int i = 0; i < N_TOKENS; i++)
        reference_logits(v, &r, tokens[i], logits + i * N_VOCAB);
    free(r.embd);
    free(r.ffn_norm);
    free(r.out_norm);
    free(r.router);
    free(r.gate);
    free(r.up);
    free(r.down);
    free(r.shared_router);
    free(r.shared_gate);
    free(r.shared_up);
    free(r.shared_down);
    gguf_close(g);
}

/* ---- tests ----------------------------------------------------------------------- */

/* Logits of all tokens, taken n_batch at a time. The image may be rewritten. */
static void run(void *image, size_t bytes, bool panels, int n_threads, int n_batch,
                const int32_t *tokens, float *logits)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.image = image;
    p.image_bytes = bytes;
    p.image_rewrite = panels;
    p.n_threads = n_threads;
    p.n_batch = n_batch;
    if (slm_open(&m, &p, &err) ||
        (panels && weights_preload(slm_weights(m), NULL, NULL, NULL, &err)))
        fail_msg("%s", err.msg);
    for (int i = 0; i < N_TOKENS; i += n_batch) {
        const int n = N_TOKENS - i < n_batch ? N_TOKENS - i : n_batch;

        if (slm_eval(m, tokens + i, (size_t)n, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (int j = 0; j < n; j++)
            memcpy(logits + (i + j) * N_VOCAB, slm_logits(m, (size_t)j),
                   N_VOCAB * sizeof *logits);
    }
    slm_close(m);
}

static void check(const struct variant *v, double bound)
{
    static const struct {
        bool panels;
        int n_threads, n_batch;
    } ways[] = {{false, 1, 1}, {false, 1, N_TOKENS}, {false, 3, 7},
                {true, 2, 1},  {true, 2, 2},         {true, 4, N_TOKENS}};
    static float exact[N_TOKENS * N_VOCAB], got[N_TOKENS * N_VOCAB];
    int32_t tokens[N_TOKENS];
    uint64_t rng = 9;
    size_t bytes;
    void *image = make_model(v, &bytes),
         *copy = aligned_alloc(64, (bytes + 63) / 64 * 64);

    assert_non_null(copy);
    for (int i = 0; i < N_TOKENS; i++)
        tokens[i] = (int32_t)(test_random(&rng) % N_VOCAB);
    reference_run(v, image, bytes, tokens, exact);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        memcpy(copy, image, bytes);
        run(copy, bytes, ways[w].panels, ways[w].n_threads, ways[w].n_batch, tokens,
            got);
        const double e = nmse(got, exact, N_TOKENS * N_VOCAB);

        if (!(e <= bound))
            fail_msg("%s, %d of %d experts, %s%s, %d threads, batches of %d: NMSE %g > "
                     "%g",
                     v->arch, v->n_used, v->n_experts, kern_format_info(v->fmt)->name,
                     ways[w].panels ? " in panels" : "", ways[w].n_threads,
                     ways[w].n_batch, e, bound);
    }
    free(image);
    free(copy);
}

static void test_float_experts(void **state)
{
    static const struct variant variants[] = {
        {"llama", 24, 40, 8, 3, KERN_FMT_f32, 0, false, false},
        {"llama", 48, 33, 5, 1, KERN_FMT_f32, 0, true, false},
        {"llama", 40, 100, 3, 3, KERN_FMT_f32, 0, false, false},
        {"qwen2moe", 24, 40, 8, 3, KERN_FMT_f32, 56, false, false},
        {"qwen2moe", 36, 70, 4, 1, KERN_FMT_f32, 33, false, false},
        {"qwen3moe", 33, 17, 60, 7, KERN_FMT_f32, 0, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        check(&variants[i], 1e-11);
}

/* Activations are rounded to eight bits. Widths of whole blocks, and rows that leave
 * some over besides panels. */
static void test_quantised_experts(void **state)
{
    static const struct variant variants[] = {
        {"llama", 96, 160, 8, 3, KERN_FMT_q8_0, 0, false, false},
        {"llama", 64, 96, 6, 2, KERN_FMT_q4_0, 0, true, false},
        {"qwen2moe", 64, 96, 12, 5, KERN_FMT_q4_0, 224, false, false},
        {"qwen3moe", 256, 256, 4, 2, KERN_FMT_q6_K, 0, false, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        check(&variants[i], 4e-4);
}

/* What a token reads: the same whether experts share a tensor or not, and whether the
 * model is asked or a file's tensors are counted. */
static void test_token_bytes(void **state)
{
    struct variant v = {"llama", 64, 96, 6, 2, KERN_FMT_q4_0, 0, false, false};
    const struct slm_params p = slm_params_default();
    uint64_t bytes[2];

    (void)state;
    for (int each = 0; each < 2; each++) {
        struct err err = ERR_INIT;
        struct slm_info info;
        struct census census;
        struct gguf *g = NULL;
        size_t n;

        v.each = each;
        void *image = make_model(&v, &n);

        assert_int_equal(gguf_parse(&g, image, n, "experts", &err), ST_OK);
        assert_int_equal(slm_plan(&info, g, &p, &err), ST_OK);
        census_take(&census, g);
        assert_int_equal(info.weight_token_bytes, census.token_bytes);
        bytes[each] = info.weight_token_bytes;
        gguf_close(g);
        free(image);
    }
    assert_int_equal(bytes[0], bytes[1]);
}

static void check_refused(struct tiny *t, enum status code, const char *says)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;
    void *image = tiny_image(t, &p.image_bytes);

    p.image = image;
    assert_int_equal(slm_open(&m, &p, &err), code);
    if (!strstr(err.msg, says))
        fail_msg("\"%s\" and not \"%s\"", err.msg, says);
    free(image);
}

static void test_refused(void **state)
{
    const struct variant none = {"qwen3moe",   32, 32,    0,    1,
                                 KERN_FMT_f32, 0,  false, false};
    const struct variant many = {"llama", 32, 32, 4, 5, KERN_FMT_f32, 0, false, false};
    const struct variant lacks = {"qwen2moe",   32, 32,    4,    2,
                                  KERN_FMT_f32, 0,  false, false};
    const struct variant mixed = {"llama", 32, 32, 2, 1, KERN_FMT_f32, 0, true, true};
    struct tiny t;

    (void)state;
    describe_model(&t, &none);
    check_refused(&t, ST_INPUT, "have no experts");
    describe_model(&t, &many);
    check_refused(&t, ST_INPUT, "expert_used_count is 5");
    describe_model(&t, &lacks);
    check_refused(&t, ST_INPUT, "blk.0.ffn_gate_inp_shexp.weight is missing");
    describe_model(&t, &mixed);
    check_refused(&t, ST_UNSUPPORTED, "blk.0.ffn_gate.1.weight has type f16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_experts),
        cmocka_unit_test(test_quantised_experts),
        cmocka_unit_test(test_token_bytes),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
