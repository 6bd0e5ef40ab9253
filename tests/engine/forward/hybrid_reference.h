/* SPDX-License-Identifier: MIT
 *
 * hybrid_reference.h - the equations of hybrid_model.h's models in double precision
 *
 * The reference takes one token after the other and keeps everything it has seen: what
 * the engine has in states it computes again from the first token on.
 */
#ifndef SLM_TESTS_ENGINE_FORWARD_HYBRID_REFERENCE_H
#define SLM_TESTS_ENGINE_FORWARD_HYBRID_REFERENCE_H

#include "engine/gguf/gguf.h"
#include "tests/support/hybrid_model.h"

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

/* A head's normed, if the model does that, and rotated query or key. */
static void turn_head(double *v, const float *w, int pos)
{
    if (w)
        norm(v, v, w, HEAD_DIM);
    rotate(v, pos);
}

/* Queries may have gates behind them. */
static void attention(const struct gguf *g, enum hybrid kind, int l, int pos,
                      double *out)
{
    const int each = (1 + is_delta(kind)) * HEAD_DIM;
    double q[2 * N_HEADS * HEAD_DIM], k[N_TOKENS][N_KV * HEAD_DIM], mixed[MAX];
    static double v[N_TOKENS][N_KV * HEAD_DIM];

    matmul(q, tensor(g, l, "attn_q.weight"), seen[l][pos], N_HEADS * each, N_EMBD);
    for (int t = 0; t <= pos; t++) {
        matmul(k[t], tensor(g, l, "attn_k.weight"), seen[l][t], N_KV * HEAD_DIM,
               N_EMBD);
        matmul(v[t], tensor(g, l, "attn_v.weight"), seen[l][t], N_KV * HEAD_DIM,
               N_EMBD);
        for (int h = 0; h < N_KV; h++)
            turn_head(k[t] + h * HEAD_DIM, tensor(g, l, "attn_k_norm.weight"), t);
    }
    for (int h = 0; h < N_HEADS; h++) {
        double *qh = q + h * each, *gate = qh + HEAD_DIM, sum = 0;
        const int kv = h / (N_HEADS / N_KV) * HEAD_DIM;

        turn_head(qh, tensor(g, l, "attn_q_norm.weight"), pos);
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
            mixed[h * HEAD_DIM + i] *= (is_delta(kind) ? sigmoid(gate[i]) : 1) / sum;
    }
    matmul(out, tensor(g, l, "attn_output.weight"), mixed, N_EMBD, N_HEADS * HEAD_DIM);
}

/* n rows of matrix `name`, from row `first` on, convolved up to position t, with SiLU.
 */
static void channels(const struct gguf *g, int l, int t, const char *name, int first,
                     int n, double *out)
{
    const float *hooks = tensor(g, l, "ssm_conv1d.weight");
    const float *bias = tensor(g, l, "ssm_conv1d.bias");
    double in[CHANNELS + SSM_CHANNELS];

    for (int c = 0; c < n; c++)
        out[c] = bias ? (double)bias[c] : 0;
    for (int back = 0; back < N_CONV && back <= t; back++) {
        matmul(in, tensor(g, l, name) + first * N_EMBD, seen[l][t - back], n, N_EMBD);
        for (int c = 0; c < n; c++)
            out[c] += (double)hooks[c * N_CONV + N_CONV - 1 - back] * in[c];
    }
    for (int c = 0; c < n; c++)
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
static void delta_step(double s[D][D], const double *c, int head, int group,
                       double keep, double rate, double *out)
{
    double q[D], k[D];
    const double *v = c + 2 * KEYS + head * D;

    unit(q, c + group * D);
    unit(k, c + KEYS + group * D);
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

/* beta and alpha of all heads of values; of qwen3next they are one matrix, for each
 * head of keys first the betas of those that share it. */
static void beta_alpha(const struct gguf *g, enum hybrid kind, int l, int t,
                       double *beta, double *alpha)
{
    const int each = V_HEADS / K_HEADS;
    double both[2 * V_HEADS];

    if (kind != HYBRID_QWEN3NEXT) {
        matmul(beta, tensor(g, l, "ssm_beta.weight"), seen[l][t], V_HEADS, N_EMBD);
        matmul(alpha, tensor(g, l, "ssm_alpha.weight"), seen[l][t], V_HEADS, N_EMBD);
        return;
    }
    matmul(both, tensor(g, l, "ssm_ba.weight"), seen[l][t], 2 * V_HEADS, N_EMBD);
    for (int k = 0; k < K_HEADS; k++)
        for (int i = 0; i < each; i++) {
            beta[k * each + i] = both[2 * k * each + i];
            alpha[k * each + i] = both[(2 * k + 1) * each + i];
        }
}

static void linear_attention(const struct gguf *g, enum hybrid kind, int l, int pos,
                             double *out)
{
    const float *a = tensor(g, l, "ssm_a"), *dt = tensor(g, l, "ssm_dt.bias");
    double s[V_HEADS][D][D] = {0}, c[CHANNELS], beta[V_HEADS], alpha[V_HEADS];
    double mixed[VALUES], z[VALUES];

    for (int t = 0; t <= pos; t++) {
        channels(g, l, t, "attn_qkv.weight", 0, CHANNELS, c);
        beta_alpha(g, kind, l, t, beta, alpha);
        for (int h = 0; h < V_HEADS; h++)
            delta_step(s[h], c, h,
                       kind == HYBRID_QWEN3NEXT ? h / (V_HEADS / K_HEADS) : h % K_HEADS,
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

/* Rows of ssm_in: z, then x, B and C, then dt. */
static void mamba(const struct gguf *g, int l, int pos, double *out)
{
    enum { GROUP = SSM_VALUES / K_HEADS };
    const float *in = tensor(g, l, "ssm_in.weight"), *a = tensor(g, l, "ssm_a");
    const float *bias = tensor(g, l, "ssm_dt.bias"), *d = tensor(g, l, "ssm_d");
    const float *w = tensor(g, l, "ssm_norm.weight");
    static double s[V_HEADS][SSM_DIM][D];
    double x[SSM_CHANNELS], dt[V_HEADS], y[SSM_VALUES], z[SSM_VALUES];

    memset(s, 0, sizeof s);
    for (int t = 0; t <= pos; t++) {
        channels(g, l, t, "ssm_in.weight", SSM_VALUES, SSM_CHANNELS, x);
        matmul(dt, in + (SSM_VALUES + SSM_CHANNELS) * N_EMBD, seen[l][t], V_HEADS,
               N_EMBD);
        for (int h = 0; h < V_HEADS; h++) {
            const double step = log(1 + exp(dt[h] + (double)bias[h]));
            const double *b = x + SSM_VALUES + h / (V_HEADS / K_HEADS) * D;

            for (int e = 0; e < SSM_DIM; e++) {
                const double v = x[h * SSM_DIM + e];

                y[h * SSM_DIM + e] = (double)d[h] * v;
                for (int i = 0; i < D; i++) {
                    s[h][e][i] =
                        exp(step * (double)a[h]) * s[h][e][i] + step * v * b[i];
                    y[h * SSM_DIM + e] += s[h][e][i] * b[KEYS + i];
                }
            }
        }
    }
    matmul(z, in, seen[l][pos], SSM_VALUES, N_EMBD);
    for (int i = 0; i < SSM_VALUES; i++)
        y[i] *= z[i] * sigmoid(z[i]);
    for (int i = 0; w && i < SSM_VALUES; i += GROUP)
        norm(y + i, y + i, w + i, GROUP);
    matmul(out, tensor(g, l, "ssm_out.weight"), y, N_EMBD, SSM_VALUES);
}

/* Rows of in_proj: B, C, x. */
static void short_convolution(const struct gguf *g, int l, int pos, double *out)
{
    const float *w = tensor(g, l, "shortconv.conv.weight");
    double in[3 * N_EMBD], now[3 * N_EMBD], mixed[N_EMBD] = {0};

    matmul(now, tensor(g, l, "shortconv.in_proj.weight"), seen[l][pos], 3 * N_EMBD,
           N_EMBD);
    for (int back = 0; back < N_SHORT && back <= pos; back++) {
        matmul(in, tensor(g, l, "shortconv.in_proj.weight"), seen[l][pos - back],
               3 * N_EMBD, N_EMBD);
        for (int c = 0; c < N_EMBD; c++)
            mixed[c] += (double)w[c * N_SHORT + N_SHORT - 1 - back] * in[c] *
                        in[2 * N_EMBD + c];
    }
    for (int c = 0; c < N_EMBD; c++)
        mixed[c] *= now[N_EMBD + c];
    matmul(out, tensor(g, l, "shortconv.out_proj.weight"), mixed, N_EMBD, N_EMBD);
}

/* What a layer's attention and recurrent part add to x. */
static void add_mixers(const struct gguf *g, enum hybrid kind, int l, int pos,
                       double *x)
{
    double y[2][N_EMBD] = {{0}};

    if (attends(kind, l))
        attention(g, kind, l, pos, y[0]);
    if (is_recurrent(kind, l) && is_delta(kind))
        linear_attention(g, kind, l, pos, y[1]);
    else if (is_recurrent(kind, l) && is_ssm(kind))
        mamba(g, l, pos, y[1]);
    else if (is_recurrent(kind, l))
        short_convolution(g, l, pos, y[1]);
    for (int i = 0; i < N_EMBD; i++)
        x[i] += y[0][i] + y[1][i];
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

static void reference_step(const struct gguf *g, enum hybrid kind, int32_t token,
                           int pos, float *logits)
{
    const float *embd = tensor(g, -1, "token_embd.weight");
    const float *last = tensor(g, -1, "output_norm.weight");
    double x[N_EMBD], y[N_EMBD], out[N_VOCAB];

    for (int i = 0; i < N_EMBD; i++)
        x[i] = (double)embd[token * N_EMBD + i];
    for (int l = 0; l < N_LAYERS; l++) {
        norm(seen[l][pos], x, tensor(g, l, "attn_norm.weight"), N_EMBD);
        add_mixers(g, kind, l, pos, x);
        if (kind == HYBRID_MAMBA2)
            continue;
        norm(y, x, tensor(g, l, ffn_norm_of(kind)), N_EMBD);
        if (has_experts(kind))
            add_experts(g, l, x, y);
        else
            add_gated(x, y, tensor(g, l, "ffn_gate.weight"),
                      tensor(g, l, "ffn_up.weight"), tensor(g, l, "ffn_down.weight"),
                      N_FF, 1);
    }
    norm(y, x, last ? last : tensor(g, -1, "token_embd_norm.weight"), N_EMBD);
    matmul(out, embd, y, N_VOCAB, N_EMBD);
    for (int i = 0; i < N_VOCAB; i++)
        logits[i] = (float)out[i];
}

#endif
