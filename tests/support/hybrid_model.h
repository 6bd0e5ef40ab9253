/* SPDX-License-Identifier: MIT
 *
 * hybrid_model.h - a small random model with linear attention between layers that
 * attend, and its equations in double precision
 *
 * The reference takes one token after the other and keeps everything it has seen: what
 * the engine has in states it computes again from the first token on.
 */
#ifndef SLM_TESTS_HYBRID_MODEL_H
#define SLM_TESTS_HYBRID_MODEL_H

#include <math.h>

#include "engine/gguf/gguf.h"
#include "tests/support/tiny_model.h"

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
    const float *hooks = tensor(g, l, "ssm_conv1d.weight");
    double in[CHANNELS];

    for (int c = 0; c < CHANNELS; c++)
        out[c] = 0;
    for (int back = 0; back < N_CONV && back <= t; back++) {
        matmul(in, tensor(g, l, "attn_qkv.weight"), seen[l][t - back], CHANNELS,
               N_EMBD);
        for (int c = 0; c < CHANNELS; c++)
            out[c] += (double)hooks[c * N_CONV + N_CONV - 1 - back] * in[c];
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

#endif
