/* SPDX-License-Identifier: MIT
 *
 * test_hybrid.c - layers with linear attention between those that attend, against the
 * equations in double precision
 *
 * The reference takes one token after the other and keeps everything it has seen: what
 * the engine has in states it computes again from the first token on. Sequences are
 * also cut back, to everywhere around the places where the engine keeps its states.
 */
#include <math.h>

#include "engine/census.h"
#include "engine/engine.h"
#include "engine/speculate.h"
#include "tests/tiny_model.h"

enum {
    N_LAYERS = 5, /* and one that predicts further tokens, to be left out */
    INTERVAL = 2,
    N_EMBD = 40,
    N_FF = 72,
    N_VOCAB = 60,
    N_HEADS = 4,
    N_KV = 2,
    HEAD_DIM = 12,
    N_ROT = 6,
    K_HEADS = 2,
    V_HEADS = 6,
    D = 10, /* of a head with a state */
    N_CONV = 4,
    KEYS = K_HEADS * D,
    VALUES = V_HEADS * D,
    CHANNELS = 2 * KEYS + VALUES,
    N_EXPERTS = 5,
    N_USED = 2,
    N_FF_EXPERT = 24,
    N_FF_SHARED = 36,
    N_TOKENS = 50,
};

static const float EPS = 1e-6F;
static const double BASE = 1e4;

/* ---- the model ------------------------------------------------------------------- */

/* A random matrix [n_rows][k] whose products are of the size of its inputs. */
static void add(struct tiny *t, int layer, const char *name, uint64_t k,
                uint64_t n_rows, uint64_t n_slices)
{
    tiny_layer(t, layer, name, KERN_FMT_f32, k, n_rows, n_slices, 0,
               1.7F / sqrtf((float)k));
}

static void add_norm(struct tiny *t, int layer, const char *name, uint64_t n)
{
    tiny_layer(t, layer, name, KERN_FMT_f32, n, 0, 0, 1, 0.2F);
}

static void add_recurrent(struct tiny *t, int l)
{
    add(t, l, "attn_qkv.weight", N_EMBD, CHANNELS, 0);
    add(t, l, "attn_gate.weight", N_EMBD, VALUES, 0);
    add(t, l, "ssm_beta.weight", N_EMBD, V_HEADS, 0);
    add(t, l, "ssm_alpha.weight", N_EMBD, V_HEADS, 0);
    tiny_layer(t, l, "ssm_conv1d.weight", KERN_FMT_f32, N_CONV, CHANNELS, 0, 0.2F,
               0.6F);
    tiny_layer(t, l, "ssm_dt.bias", KERN_FMT_f32, V_HEADS, 0, 0, 0, 1);
    tiny_layer(t, l, "ssm_a", KERN_FMT_f32, V_HEADS, 0, 0, -0.3F, 0.25F);
    add_norm(t, l, "ssm_norm.weight", D);
    add(t, l, "ssm_out.weight", VALUES, N_EMBD, 0);
}

static void add_attention(struct tiny *t, int l)
{
    add(t, l, "attn_q.weight", N_EMBD, 2 * N_HEADS * HEAD_DIM, 0);
    add(t, l, "attn_k.weight", N_EMBD, N_KV * HEAD_DIM, 0);
    add(t, l, "attn_v.weight", N_EMBD, N_KV * HEAD_DIM, 0);
    add_norm(t, l, "attn_q_norm.weight", HEAD_DIM);
    add_norm(t, l, "attn_k_norm.weight", HEAD_DIM);
    add(t, l, "attn_output.weight", N_HEADS * HEAD_DIM, N_EMBD, 0);
}

static void add_layer(struct tiny *t, int l, bool experts)
{
    add_norm(t, l, "attn_norm.weight", N_EMBD);
    if ((l + 1) % INTERVAL)
        add_recurrent(t, l);
    else
        add_attention(t, l);
    add_norm(t, l, "post_attention_norm.weight", N_EMBD);
    if (!experts) {
        add(t, l, "ffn_gate.weight", N_EMBD, N_FF, 0);
        add(t, l, "ffn_up.weight", N_EMBD, N_FF, 0);
        add(t, l, "ffn_down.weight", N_FF, N_EMBD, 0);
        return;
    }
    add(t, l, "ffn_gate_inp.weight", N_EMBD, N_EXPERTS, 0);
    add(t, l, "ffn_gate_exps.weight", N_EMBD, N_FF_EXPERT, N_EXPERTS);
    add(t, l, "ffn_up_exps.weight", N_EMBD, N_FF_EXPERT, N_EXPERTS);
    add(t, l, "ffn_down_exps.weight", N_FF_EXPERT, N_EMBD, N_EXPERTS);
    add(t, l, "ffn_gate_inp_shexp.weight", N_EMBD, 0, 0);
    add(t, l, "ffn_gate_shexp.weight", N_EMBD, N_FF_SHARED, 0);
    add(t, l, "ffn_up_shexp.weight", N_EMBD, N_FF_SHARED, 0);
    add(t, l, "ffn_down_shexp.weight", N_FF_SHARED, N_EMBD, 0);
}

static void add_keys(struct tiny *t, bool experts)
{
    tiny_key_u32(t, ".block_count", N_LAYERS + 1);
    tiny_key_u32(t, ".nextn_predict_layers", 1);
    tiny_key_u32(t, ".full_attention_interval", INTERVAL);
    tiny_key_u32(t, ".embedding_length", N_EMBD);
    tiny_key_u32(t, ".feed_forward_length", N_FF);
    tiny_key_u32(t, ".context_length", N_TOKENS);
    tiny_key_u32(t, ".attention.head_count", N_HEADS);
    tiny_key_u32(t, ".attention.head_count_kv", N_KV);
    tiny_key_u32(t, ".attention.key_length", HEAD_DIM);
    tiny_key_u32(t, ".attention.value_length", HEAD_DIM);
    tiny_key_u32(t, ".rope.dimension_count", N_ROT);
    tiny_key_f32(t, ".rope.freq_base", (float)BASE);
    tiny_key_f32(t, ".attention.layer_norm_rms_epsilon", EPS);
    tiny_key_u32(t, ".ssm.conv_kernel", N_CONV);
    tiny_key_u32(t, ".ssm.state_size", D);
    tiny_key_u32(t, ".ssm.group_count", K_HEADS);
    tiny_key_u32(t, ".ssm.time_step_rank", V_HEADS);
    tiny_key_u32(t, ".ssm.inner_size", VALUES);
    if (experts) {
        tiny_key_u32(t, ".expert_count", N_EXPERTS);
        tiny_key_u32(t, ".expert_used_count", N_USED);
        tiny_key_u32(t, ".expert_feed_forward_length", N_FF_EXPERT);
        tiny_key_u32(t, ".expert_shared_feed_forward_length", N_FF_SHARED);
    }
}

static void *make_model(bool experts, size_t *bytes)
{
    struct tiny t;

    tiny_new(&t, experts ? "qwen35moe" : "qwen35");
    add_keys(&t, experts);
    tiny_random(&t, "token_embd.weight", KERN_FMT_f32, N_EMBD, N_VOCAB, 0, 0, 1);
    tiny_random(&t, "output_norm.weight", KERN_FMT_f32, N_EMBD, 0, 0, 1, 0.1F);
    for (int l = 0; l < N_LAYERS; l++)
        add_layer(&t, l, experts);
    add_norm(&t, N_LAYERS, "nextn.enorm.weight", N_EMBD);
    return tiny_image(&t, bytes);
}

/* ---- the reference --------------------------------------------------------------- */

enum { MAX = 256 };

/* Tensors are f32: as they lie in the image. */
static const float *tensor(const struct gguf *g, int layer, const char *name)
{
    char full[64];

    if (layer < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "blk.%d.%s", layer, name);
    const struct gguf_tensor *t = gguf_tensor_find(g, full);

    return t ? gguf_tensor_data(g, t) : NULL;
}

static void matmul(double *y, const float *w, const double *x, int n_rows, int k)
{
    for (int r = 0; r < n_rows; r++) {
        y[r] = 0;
        for (int i = 0; i < k; i++)
            y[r] += (double)w[r * k + i] * x[i];
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

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static void rotate(double *v, int pos)
{
    for (int i = 0; i < N_ROT / 2; i++) {
        const double a = pos * pow(BASE, -2.0 * i / N_ROT);
        const double x = v[i], y = v[i + N_ROT / 2];

        v[i] = x * cos(a) - y * sin(a);
        v[i + N_ROT / 2] = x * sin(a) + y * cos(a);
    }
}

/* What layers have seen: normalised inputs of all positions. */
static double seen[N_LAYERS][N_TOKENS][N_EMBD];

static void attention(const struct gguf *g, int l, int pos, double *out)
{
    double q[2 * N_HEADS * HEAD_DIM], k[N_TOKENS][N_KV * HEAD_DIM], mixed[MAX];
    static double v[N_TOKENS][N_KV * HEAD_DIM];

    matmul(q, tensor(g, l, "attn_q.weight"), seen[l][pos], 2 * N_HEADS * HEAD_DIM,
           N_EMBD);
    for (int t = 0; t <= pos; t++) {
        matmul(k[t], tensor(g, l, "attn_k.weight"), seen[l][t], N_KV * HEAD_DIM,
               N_EMBD);
        matmul(v[t], tensor(g, l, "attn_v.weight"), seen[l][t], N_KV * HEAD_DIM,
               N_EMBD);
        for (int h = 0; h < N_KV; h++) {
            norm(k[t] + h * HEAD_DIM, k[t] + h * HEAD_DIM,
                 tensor(g, l, "attn_k_norm.weight"), HEAD_DIM);
            rotate(k[t] + h * HEAD_DIM, t);
        }
    }
    for (int h = 0; h < N_HEADS; h++) {
        double *qh = q + 2 * h * HEAD_DIM, *gate = qh + HEAD_DIM, sum = 0;
        const int kv = h / (N_HEADS / N_KV) * HEAD_DIM;

        norm(qh, qh, tensor(g, l, "attn_q_norm.weight"), HEAD_DIM);
        rotate(qh, pos);
        for (int i = 0; i < HEAD_DIM; i++)
            mixed[h * HEAD_DIM + i] = 0;
        for (int t = 0; t <= pos; t++) {
            double score = 0;

            for (int i = 0; i < HEAD_DIM; i++)
                score += qh[i] * k[t][kv + i];
            const double p = exp(score / sqrt(HEAD_DIM));

            sum += p;
            for (int i = 0; i < HEAD_DIM; i++)
                mixed[h * HEAD_DIM + i] += p * v[t][kv + i];
        }
        for (int i = 0; i < HEAD_DIM; i++)
            mixed[h * HEAD_DIM + i] *= sigmoid(gate[i]) / sum;
    }
    matmul(out, tensor(g, l, "attn_output.weight"), mixed, N_EMBD, N_HEADS * HEAD_DIM);
}

/* Convolved channels of position t. */
static void channels(const struct gguf *g, int l, int t, double *out)
{
    const float *taps = tensor(g, l, "ssm_conv1d.weight");
    double in[CHANNELS];

    for (int c = 0; c < CHANNELS; c++)
        out[c] = 0;
    for (int back = 0; back < N_CONV && back <= t; back++) {
        matmul(in, tensor(g, l, "attn_qkv.weight"), seen[l][t - back], CHANNELS,
               N_EMBD);
        for (int c = 0; c < CHANNELS; c++)
            out[c] += (double)taps[c * N_CONV + N_CONV - 1 - back] * in[c];
    }
    for (int c = 0; c < CHANNELS; c++)
        out[c] *= sigmoid(out[c]);
}

static void unit(double *y, const double *x)
{
    double sum = 0;

    for (int i = 0; i < D; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < D; i++)
        y[i] = x[i] / sqrt(sum);
}

/* One token into the state s of a head; out[D]. */
static void delta_step(double s[D][D], const double *c, int head, double keep,
                       double rate, double *out)
{
    double q[D], k[D];
    const double *v = c + 2 * KEYS + head * D;

    unit(q, c + head % K_HEADS * D);
    unit(k, c + KEYS + head % K_HEADS * D);
    for (int e = 0; e < D; e++) {
        double answer = 0;

        for (int i = 0; i < D; i++) {
            s[i][e] *= keep;
            answer += s[i][e] * k[i];
        }
        out[e] = 0;
        for (int i = 0; i < D; i++) {
            s[i][e] += k[i] * rate * (v[e] - answer);
            out[e] += s[i][e] * q[i] / sqrt(D);
        }
    }
}

static void linear_attention(const struct gguf *g, int l, int pos, double *out)
{
    const float *a = tensor(g, l, "ssm_a"), *dt = tensor(g, l, "ssm_dt.bias");
    double s[V_HEADS][D][D] = {0}, c[CHANNELS], beta[V_HEADS], alpha[V_HEADS];
    double mixed[VALUES], z[VALUES];

    for (int t = 0; t <= pos; t++) {
        channels(g, l, t, c);
        matmul(beta, tensor(g, l, "ssm_beta.weight"), seen[l][t], V_HEADS, N_EMBD);
        matmul(alpha, tensor(g, l, "ssm_alpha.weight"), seen[l][t], V_HEADS, N_EMBD);
        for (int h = 0; h < V_HEADS; h++)
            delta_step(s[h], c, h,
                       exp((double)a[h] * log(1 + exp(alpha[h] + (double)dt[h]))),
                       sigmoid(beta[h]), mixed + h * D);
    }
    matmul(z, tensor(g, l, "attn_gate.weight"), seen[l][pos], VALUES, N_EMBD);
    for (int h = 0; h < V_HEADS; h++)
        norm(mixed + h * D, mixed + h * D, tensor(g, l, "ssm_norm.weight"), D);
    for (int i = 0; i < VALUES; i++)
        mixed[i] *= z[i] * sigmoid(z[i]);
    matmul(out, tensor(g, l, "ssm_out.weight"), mixed, N_EMBD, VALUES);
}

/* x += share * down(silu(gate y) * up y) */
static void add_gated(double *x, const double *y, const float *gate, const float *up,
                      const float *down, int n_ff, double share)
{
    double a[MAX], b[MAX], out[N_EMBD];

    matmul(a, gate, y, n_ff, N_EMBD);
    matmul(b, up, y, n_ff, N_EMBD);
    for (int i = 0; i < n_ff; i++)
        a[i] *= sigmoid(a[i]) * b[i];
    matmul(out, down, a, N_EMBD, n_ff);
    for (int i = 0; i < N_EMBD; i++)
        x[i] += share * out[i];
}

static void add_experts(const struct gguf *g, int l, double *x, const double *y)
{
    const int slice = N_FF_EXPERT * N_EMBD;
    double score[N_EXPERTS], gate, sum = 0;
    bool taken[N_EXPERTS];

    matmul(score, tensor(g, l, "ffn_gate_inp.weight"), y, N_EXPERTS, N_EMBD);
    for (int e = 0; e < N_EXPERTS; e++) {
        int better = 0;

        for (int o = 0; o < N_EXPERTS; o++)
            better += score[o] > score[e];
        taken[e] = better < N_USED;
        sum += taken[e] ? exp(score[e]) : 0;
    }
    for (int e = 0; e < N_EXPERTS; e++)
        if (taken[e])
            add_gated(x, y, tensor(g, l, "ffn_gate_exps.weight") + e * slice,
                      tensor(g, l, "ffn_up_exps.weight") + e * slice,
                      tensor(g, l, "ffn_down_exps.weight") + e * slice, N_FF_EXPERT,
                      exp(score[e]) / sum);
    matmul(&gate, tensor(g, l, "ffn_gate_inp_shexp.weight"), y, 1, N_EMBD);
    add_gated(x, y, tensor(g, l, "ffn_gate_shexp.weight"),
              tensor(g, l, "ffn_up_shexp.weight"),
              tensor(g, l, "ffn_down_shexp.weight"), N_FF_SHARED, sigmoid(gate));
}

static void reference_step(const struct gguf *g, bool experts, int32_t token, int pos,
                           float *logits)
{
    const float *embd = tensor(g, -1, "token_embd.weight");
    double x[N_EMBD], y[N_EMBD], out[N_VOCAB];

    for (int i = 0; i < N_EMBD; i++)
        x[i] = (double)embd[token * N_EMBD + i];
    for (int l = 0; l < N_LAYERS; l++) {
        norm(seen[l][pos], x, tensor(g, l, "attn_norm.weight"), N_EMBD);
        ((l + 1) % INTERVAL ? linear_attention : attention)(g, l, pos, y);
        for (int i = 0; i < N_EMBD; i++)
            x[i] += y[i];
        norm(y, x, tensor(g, l, "post_attention_norm.weight"), N_EMBD);
        if (experts)
            add_experts(g, l, x, y);
        else
            add_gated(x, y, tensor(g, l, "ffn_gate.weight"),
                      tensor(g, l, "ffn_up.weight"), tensor(g, l, "ffn_down.weight"),
                      N_FF, 1);
    }
    norm(y, x, tensor(g, -1, "output_norm.weight"), N_EMBD);
    matmul(out, embd, y, N_VOCAB, N_EMBD);
    for (int i = 0; i < N_VOCAB; i++)
        logits[i] = (float)out[i];
}

/* ---- tests ------------------------------------------------------------------------
 */

struct fixture {
    void *image;
    size_t bytes;
    int32_t tokens[N_TOKENS];
    float exact[N_TOKENS][N_VOCAB];
};

static void fixture_open(struct fixture *x, bool experts)
{
    struct err err = ERR_INIT;
    struct gguf *g = NULL;
    uint64_t rng = 4;

    x->image = make_model(experts, &x->bytes);
    assert_int_equal(gguf_parse(&g, x->image, x->bytes, "hybrid", &err), ST_OK);
    for (int i = 0; i < N_TOKENS; i++) {
        x->tokens[i] = (int32_t)(test_random(&rng) % N_VOCAB);
        reference_step(g, experts, x->tokens[i], i, x->exact[i]);
    }
    gguf_close(g);
}

static struct slm *open_model(const struct fixture *x, int n_threads, int n_batch)
{
    struct slm_params p = slm_params_default();
    struct err err = ERR_INIT;
    struct slm *m = NULL;

    p.image = x->image;
    p.image_bytes = x->bytes;
    p.n_threads = n_threads;
    p.n_batch = n_batch;
    if (slm_open(&m, &p, &err))
        fail_msg("%s", err.msg);
    return m;
}

/* Tokens from the end of the sequence to `to`, n at a time; each one's logits. */
static void check_to(struct slm *m, const struct fixture *x, int to, int n)
{
    struct err err = ERR_INIT;

    for (int at = slm_n_past(m); at < to; at += n) {
        const int batch = to - at < n ? to - at : n;

        if (slm_eval(m, x->tokens + at, (size_t)batch, SLM_LOGITS_ALL, &err))
            fail_msg("%s", err.msg);
        for (int j = 0; j < batch; j++) {
            const float *got = slm_logits(m, (size_t)j), *want = x->exact[at + j];
            double error = 0, power = 0;

            for (int i = 0; i < N_VOCAB; i++) {
                error += pow((double)got[i] - (double)want[i], 2);
                power += pow((double)want[i], 2);
            }
            if (!(error <= 1e-6 * power))
                fail_msg("position %d, %d at a time: NMSE %g", at + j, n,
                         error / power);
        }
    }
}

static void check_model(bool experts)
{
    static const struct {
        int n_threads, n_batch;
    } ways[] = {{1, 1}, {1, N_TOKENS}, {2, 2}, {3, 7}, {4, 1}, {2, 16}};
    static struct fixture x;

    fixture_open(&x, experts);
    for (size_t w = 0; w < sizeof ways / sizeof ways[0]; w++) {
        struct slm *m = open_model(&x, ways[w].n_threads, ways[w].n_batch);

        check_to(m, &x, N_TOKENS, ways[w].n_batch);
        slm_close(m);
    }
    free(x.image);
}

static void test_dense(void **state)
{
    (void)state;
    check_model(false);
}

static void test_experts(void **state)
{
    (void)state;
    check_model(true);
}

/* Cut back: into a batch, to its beginning, into the answer, to the prompt's end, and
 * to nothing; also twice, and without going on in between. */
static void test_truncate(void **state)
{
    static const int ends[] = {30, 29, 26, 20, 21, 13, 12, 1, 0};
    static struct fixture x;

    (void)state;
    fixture_open(&x, false);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        struct slm *m = open_model(&x, 2, 13);

        check_to(m, &x, 20, 13);
        check_to(m, &x, 25, 1);
        check_to(m, &x, 30, 5);
        slm_truncate(m, ends[i]);
        check_to(m, &x, ends[i] + 3, 1);
        slm_truncate(m, ends[i] / 2);
        slm_truncate(m, ends[i] / 3);
        check_to(m, &x, N_TOKENS, 13);
        slm_close(m);
    }
    free(x.image);
}

/* Other tokens than before, after going back. */
static void test_another_turn(void **state)
{
    static struct fixture x;
    const int32_t other[3] = {1, 2, 3};
    struct err err = ERR_INIT;

    (void)state;
    fixture_open(&x, false);
    struct slm *m = open_model(&x, 1, 8);

    check_to(m, &x, 10, 8);
    assert_int_equal(slm_eval(m, other, 3, SLM_LOGITS_LAST, &err), ST_OK);
    assert_int_equal(slm_eval(m, other, 1, SLM_LOGITS_LAST, &err), ST_OK);
    slm_truncate(m, 10);
    check_to(m, &x, 20, 1);
    slm_close(m);
    free(x.image);
}

/* A cache filled without tokens can be returned to, and layers without keys take no
 * room in it. */
static void test_synthetic(void **state)
{
    static struct fixture x;
    struct err err = ERR_INIT;

    (void)state;
    fixture_open(&x, false);
    struct slm *m = open_model(&x, 2, 8);
    const struct slm_info *info = slm_info(m);

    assert_int_equal(info->n_recurrent, 3);
    assert_int_equal(info->kv_pos_bytes, 2 * N_KV * (HEAD_DIM + 16) * 2);
    assert_int_equal(info->state_bytes, 3 * 4 * ((N_CONV - 1) * CHANNELS + VALUES * D));
    assert_int_equal(slm_fill_synthetic(m, 20, 1, &err), ST_OK);
    assert_int_equal(slm_eval(m, x.tokens, 1, SLM_LOGITS_LAST, &err), ST_OK);
    const float first = slm_logits(m, 0)[0];

    slm_truncate(m, 20);
    assert_int_equal(slm_eval(m, x.tokens, 1, SLM_LOGITS_LAST, &err), ST_OK);
    assert_true(slm_logits(m, 0)[0] == first);
    slm_close(m);
    free(x.image);
}

/* The layer that predicts a further token lies in the file, and no token reads it:
 * asked of the model, or summed over the file's tensors. */
static void test_token_bytes(void **state)
{
    const struct slm_params p = slm_params_default();

    (void)state;
    for (int experts = 0; experts < 2; experts++) {
        struct err err = ERR_INIT;
        struct slm_info info;
        struct census census;
        struct gguf *g = NULL;
        size_t n;
        void *image = make_model(experts, &n);

        assert_int_equal(gguf_parse(&g, image, n, "hybrid", &err), ST_OK);
        assert_int_equal(slm_plan(&info, g, &p, &err), ST_OK);
        census_take(&census, g);
        assert_int_equal(census.unread_bytes, N_EMBD * sizeof(float));
        assert_int_equal(info.weight_token_bytes, census.token_bytes);
        gguf_close(g);
        free(image);
    }
}

/* What is guessed wrongly is taken back, states too: the text is that of plain
 * decoding, with a wrong guess before every other token. */
static void test_guesses(void **state)
{
    enum { N = 12 };
    const struct speculate_params how = {.always = true};
    const struct sampler_params greedy = sampler_params_default();
    int32_t plain[N], out[SPECULATE_MAX + 1], id = 0;
    struct speculate_stats stats;
    struct err err = ERR_INIT;
    struct speculator *sp;
    struct sampler *s;
    struct fixture x;
    int32_t prompt[4 * N];

    (void)state;
    fixture_open(&x, false);
    struct slm *m = open_model(&x, 1, 8);
    assert_int_equal(sampler_open(&s, &greedy, N_VOCAB, &err), ST_OK);
    assert_int_equal(slm_eval(m, x.tokens, 5, SLM_LOGITS_LAST, &err), ST_OK);
    for (int i = 0; i < N; i++) {
        plain[i] = sampler_next(s, slm_logits(m, 0));
        assert_int_equal(slm_eval(m, &plain[i], 1, SLM_LOGITS_LAST, &err), ST_OK);
    }
    /* Each pair of tokens stood before already, and something else behind it. */
    for (int i = 0; i + 1 < N; i++) {
        prompt[4 * i] = plain[i];
        prompt[4 * i + 1] = plain[i + 1];
        prompt[4 * i + 2] =
            i % 2 || i + 2 >= N ? (plain[i] + 7) % N_VOCAB : plain[i + 2];
        prompt[4 * i + 3] = 0;
    }
    slm_truncate(m, 0);
    assert_int_equal(slm_eval(m, x.tokens, 5, SLM_LOGITS_LAST, &err), ST_OK);
    assert_int_equal(speculate_open(&sp, m, s, NULL, &how, &err), ST_OK);
    assert_int_equal(speculate_begin(sp, prompt, 4 * (N - 1), &err), ST_OK);
    id = sampler_next(s, slm_logits(m, 0));
    assert_int_equal(id, plain[0]);
    for (int at = 1, got; at < N; at += got) {
        assert_int_equal(speculate_next(sp, id, N - at, out, &got, &err), ST_OK);
        assert_memory_equal(out, plain + at, (size_t)got * sizeof *out);
        id = out[got - 1];
    }
    speculate_read_stats(sp, &stats);
    assert_true(stats.n_accepted < stats.n_guessed);
    speculate_close(sp);
    sampler_close(s);
    slm_close(m);
    free(x.image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dense),     cmocka_unit_test(test_experts),
        cmocka_unit_test(test_truncate),  cmocka_unit_test(test_another_turn),
        cmocka_unit_test(test_synthetic), cmocka_unit_test(test_token_bytes),
        cmocka_unit_test(test_guesses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
