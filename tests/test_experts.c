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
#include "engine/gguf.h"
#include "tests/tiny_model.h"

enum { N_VOCAB = 70, N_TOKENS = 61 };

static const float EPS = 1e-5F;

struct variant {
    const char *arch;
    int n_embd, n_ff, n_experts, n_used;
    enum kern_format fmt; /* of the experts */
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
    tiny_put(t, "blk.0.attn_output.weight", KERN_FMT_f32, 16, n, 0, zeros);
    free(zeros);
}

static void *make_model(const struct variant *v, size_t *bytes)
{
    const uint64_t n = (uint64_t)v->n_embd, n_ff = (uint64_t)v->n_ff;
    const uint64_t n_experts = (uint64_t)v->n_experts;
    const float in = 2 / sqrtf((float)v->n_embd);
    struct tiny t;

    tiny_new(&t, v->arch);
    tiny_key_u32(&t, ".block_count", 1);
    tiny_key_u32(&t, ".embedding_length", (uint32_t)v->n_embd);
    tiny_key_u32(&t, ".feed_forward_length", (uint32_t)v->n_ff);
    tiny_key_u32(&t, ".context_length", N_TOKENS);
    tiny_key_u32(&t, ".expert_count", (uint32_t)v->n_experts);
    tiny_key_u32(&t, ".expert_used_count", (uint32_t)v->n_used);
    tiny_key_f32(&t, ".attention.layer_norm_rms_epsilon", EPS);
    tiny_random(&t, "token_embd.weight", KERN_FMT_f32, n, N_VOCAB, 0, 0, 1);
    tiny_random(&t, "output_norm.weight", KERN_FMT_f32, n, 0, 0, 1, 0.1F);
    add_attention(&t, v);
    tiny_layer(&t, 0, "ffn_norm.weight", KERN_FMT_f32, n, 0, 0, 1, 0.1F);
    tiny_layer(&t, 0, "ffn_gate_inp.weight", KERN_FMT_f32, n, n_experts, 0, 0, in);
    tiny_layer(&t, 0, "ffn_gate_exps.weight", v->fmt, n, n_ff, n_experts, 0, in);
    tiny_layer(&t, 0, "ffn_up_exps.weight", v->fmt, n, n_ff, n_experts, 0, in);
    tiny_layer(&t, 0, "ffn_down_exps.weight", v->fmt, n_ff, n, n_experts, 0, in);
    return tiny_image(&t, bytes);
}

/* ---- the reference -------------------------------------------------------------- */

enum { MAX = 1024 };

/* A tensor as floats, to be freed. */
static float *tensor(const struct gguf *g, const char *name)
{
    const struct gguf_tensor *t = gguf_tensor_find(g, name);

    assert_non_null(t);
    float *f = malloc(t->n_elems * sizeof *f);

    assert_non_null(f);
    kern_best(KERN_OP_dequantize, (int)t->fmt, 1u << KERN_ISA_scalar)
        ->fn.dequantize(gguf_tensor_data(g, t), f, t->n_elems);
    return f;
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

/* x += share * down(silu(gate x) * up x) */
static void add_expert(const struct variant *v, double *x, const double *y,
                       const float *gate, const float *up, const float *down,
                       double share)
{
    double g[MAX], u[MAX], out[MAX];

    matmul(g, gate, y, v->n_ff, v->n_embd);
    matmul(u, up, y, v->n_ff, v->n_embd);
    for (int i = 0; i < v->n_ff; i++)
        g[i] = g[i] / (1 + exp(-g[i])) * u[i];
    matmul(out, down, g, v->n_embd, v->n_ff);
    for (int i = 0; i < v->n_embd; i++)
        x[i] += share * out[i];
}

/* Shares of all experts, 0 for those that are not taken. */
static void choose(const struct variant *v, const double *score, double *share)
{
    double taken = 0;

    for (int e = 0; e < v->n_experts; e++) {
        int better = 0;

        for (int o = 0; o < v->n_experts; o++)
            better += score[o] > score[e];
        share[e] = better < v->n_used ? exp(score[e]) : 0;
        taken += share[e];
    }
    for (int e = 0; e < v->n_experts; e++)
        share[e] /= taken;
}

struct reference {
    float *embd, *ffn_norm, *out_norm, *router, *gate, *up, *down;
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
            add_expert(v, x, y, r->gate + e * slice, r->up + e * slice,
                       r->down + e * slice, share[e]);
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
                          .gate = tensor(g, "blk.0.ffn_gate_exps.weight"),
                          .up = tensor(g, "blk.0.ffn_up_exps.weight"),
                          .down = tensor(g, "blk.0.ffn_down_exps.weight")};

    for (int i = 0; i < N_TOKENS; i++)
        reference_logits(v, &r, tokens[i], logits + i * N_VOCAB);
    free(r.embd);
    free(r.ffn_norm);
    free(r.out_norm);
    free(r.router);
    free(r.gate);
    free(r.up);
    free(r.down);
    gguf_close(g);
}

/* ---- tests ----------------------------------------------------------------------- */

static double nmse(const float *a, const float *b, size_t n)
{
    double error = 0, power = 0;

    for (size_t i = 0; i < n; i++) {
        error += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        power += (double)b[i] * (double)b[i];
    }
    return error / power;
}

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
        {"llama", 24, 40, 8, 3, KERN_FMT_f32},
        {"llama", 48, 33, 5, 1, KERN_FMT_f32},
        {"llama", 40, 100, 3, 3, KERN_FMT_f32},
        {"llama", 33, 17, 60, 7, KERN_FMT_f32},
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
        {"llama", 96, 160, 8, 3, KERN_FMT_q8_0},
        {"llama", 64, 96, 12, 5, KERN_FMT_q4_0},
        {"llama", 256, 256, 4, 2, KERN_FMT_q6_K},
    };

    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        check(&variants[i], 4e-4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_float_experts),
        cmocka_unit_test(test_quantised_experts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
