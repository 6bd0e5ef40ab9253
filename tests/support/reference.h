/* SPDX-License-Identifier: MIT
 *
 * reference.h - the forward pass of every dense architecture in double precision
 *
 * It knows nothing of blocks, batches, threads or half precision: it dequantises every
 * matrix and follows the equations position by position. What sets architectures apart
 * is told by struct traits and by the tensors that are there.
 */
#ifndef SLM_TESTS_REFERENCE_H
#define SLM_TESTS_REFERENCE_H

#include <math.h>

#include "engine/gguf/gguf.h"
#include "kernels/kernels.h"
#include "tests/support/nmse.h"
#include "tests/support/test.h"

struct traits {
    const char *arch;
    bool layernorm;  /* or the root of the mean square */
    bool gelu;       /* or SiLU */
    bool neighbours; /* are rotated, not halves */
    bool parallel;   /* attention and feed-forward part have the same input */
    bool head_norms; /* weights of queries' and keys' norms for each head */
    bool scaled;     /* embeddings, by sqrt(n_embd) */
    double attn_cap, logit_cap;
    int window, period; /* all layers but every period-th have the window; 0, 1: all */
    double window_base; /* of rotations in layers with a window; 0: as in the others */
    int recent, sinks; /* what tokens see in the other layers, and in those whose window
                          is longer: the last and the first positions; 0: all */
};

struct reference {
    const struct gguf *g;
    struct traits t;
    int n_layers, d, n_ff, n_heads, n_kv, dim, n_rot, n_vocab;
    double eps, base;
    int n_pos, cap;
    double *k, *v; /* [n_layers][cap][n_kv * dim] */
};

/* ---- tensors as floats, kept while a file is open: each is used at every position  */

static struct {
    const struct gguf_tensor *t;
    float *f;
} kept[256];

static void forget_tensors(void)
{
    for (size_t i = 0; kept[i].t; i++)
        free(kept[i].f);
    memset(kept, 0, sizeof kept);
}

/* NULL: there is none. */
static const float *tensor(const struct gguf *g, int layer, const char *suffix)
{
    const struct gguf_tensor *t;
    char name[64];
    size_t i = 0;

    if (layer >= 0)
        snprintf(name, sizeof name, "blk.%d.%s", layer, suffix);
    else
        snprintf(name, sizeof name, "%s", suffix);
    t = gguf_tensor_find(g, name);
    if (!t)
        return NULL;
    while (kept[i].t && kept[i].t != t)
        i++;
    if (!kept[i].t) {
        kept[i].t = t;
        kept[i].f = malloc(t->n_elems * sizeof(float));
        kern_best(KERN_OP_dequantize, (int)t->fmt, 1u << KERN_ISA_scalar)
            ->fn.dequantize(gguf_tensor_data(g, t), kept[i].f, t->n_elems);
    }
    return kept[i].f;
}

/* ---- opening -------------------------------------------------------------------- */

static const char *reference_key(const struct reference *r, const char *key)
{
    static char full[96];

    snprintf(full, sizeof full, "%s.%s", r->t.arch, key);
    return full;
}

static int get_int(const struct reference *r, const char *key, int missing)
{
    uint64_t v;

    return gguf_get_u64(r->g, reference_key(r, key), &v) ? (int)v : missing;
}

static struct reference reference_open(const struct gguf *g, const struct traits *t,
                                       int cap)
{
    struct reference r = {.g = g, .t = *t, .cap = cap};
    const char *eps = t->layernorm ? "attention.layer_norm_epsilon"
                                   : "attention.layer_norm_rms_epsilon";

    r.n_layers = get_int(&r, "block_count", 0);
    r.d = get_int(&r, "embedding_length", 0);
    r.n_ff = get_int(&r, "feed_forward_length", 0);
    r.n_heads = get_int(&r, "attention.head_count", 0);
    r.n_kv = get_int(&r, "attention.head_count_kv", r.n_heads);
    r.dim = get_int(&r, "attention.key_length", r.d / r.n_heads);
    r.n_rot = get_int(&r, "rope.dimension_count", r.dim);
    r.n_vocab = (int)gguf_tensor_find(g, "token_embd.weight")->ne[1];
    assert_true(gguf_get_f64(g, reference_key(&r, eps), &r.eps));
    assert_true(gguf_get_f64(g, reference_key(&r, "rope.freq_base"), &r.base));
    const size_t n = (size_t)r.n_layers * (size_t)cap * (size_t)(r.n_kv * r.dim);
    r.k = calloc(n, sizeof *r.k);
    r.v = calloc(n, sizeof *r.v);
    assert_true(r.k && r.v);
    return r;
}

static void reference_close(struct reference *r)
{
    free(r->k);
    free(r->v);
}

/* ---- pieces --------------------------------------------------------------------- */

/* The two loops that take all the time. They are not what sanitizers are after. */
#define PLAIN __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

/* bias may be NULL. */
PLAIN static void matmul(double *y, const float *w, const float *bias, const double *x,
                         int n_rows, int k)
{
    for (int r = 0; r < n_rows; r++, w += k) {
        double sum[4] = {bias ? (double)bias[r] : 0}; /* exact enough in any order */
        int i = 0;

        for (; i + 4 <= k; i += 4)
            for (int j = 0; j < 4; j++)
                sum[j] += (double)w[i + j] * x[i + j];
        for (; i < k; i++)
            sum[0] += (double)w[i] * x[i];
        y[r] = sum[0] + sum[1] + sum[2] + sum[3];
    }
}

static double capped(double x, double cap)
{
    return cap > 0 ? cap * tanh(x / cap) : x;
}

/* One head: out[dim] from its query, and n_pos keys and values stride apart, of which
 * it sees those from `first` on, and with the query to_sinks the n_sinks first ones. s
 * is scratch. */
PLAIN static void attend(double *out, const double *q, const double *to_sinks,
                         const double *k, const double *v, int n_sinks, int first,
                         int n_pos, int stride, int dim, double cap, double *s)
{
    double max = -INFINITY, sum = 0;

    for (int t = 0; t < n_pos; t++) {
        double score = 0;

        if (t >= n_sinks && t < first) {
            s[t] = -INFINITY;
            continue;
        }
        for (int i = 0; i < dim; i++)
            score += (t < n_sinks ? to_sinks : q)[i] * k[t * stride + i];
        s[t] = capped(score / sqrt(dim), cap);
        max = s[t] > max ? s[t] : max;
    }
    for (int i = 0; i < dim; i++)
        out[i] = 0;
    for (int t = 0; t < n_pos; t++) {
        if (t >= n_sinks && t < first)
            continue;
        const double p = exp(s[t] - max);

        sum += p;
        for (int i = 0; i < dim; i++)
            out[i] += p * v[t * stride + i];
    }
    for (int i = 0; i < dim; i++)
        out[i] /= sum;
}

/* y may be x. b may be NULL. */
static void norm(const struct reference *r, double *y, const double *x, const float *w,
                 const float *b, int n)
{
    double mean = 0, sum = 0;

    for (int i = 0; r->t.layernorm && i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        sum += (x[i] - mean) * (x[i] - mean);
    for (int i = 0; i < n; i++)
        y[i] = (x[i] - mean) * (double)w[i] / sqrt(sum / n + r->eps) +
               (b ? (double)b[i] : 0);
}

/* The norm called name of a layer, or -1: of the model; where there is none, y is x. */
static void norm_by_name(const struct reference *r, double *y, const double *x,
                         int layer, const char *name)
{
    char weight[64], bias[64];
    const float *w;

    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    w = tensor(r->g, layer, weight);
    if (w)
        norm(r, y, x, w, tensor(r->g, layer, bias), r->d);
    else
        memmove(y, x, (size_t)r->d * sizeof *y);
}

static bool has_window(const struct reference *r, int layer)
{
    return r->t.window && (r->t.period <= 1 || (layer + 1) % r->t.period);
}

static void rotate(const struct reference *r, double *v, int layer, int pos)
{
    const float *factor = tensor(r->g, -1, "rope_freqs.weight");
    const double base =
        has_window(r, layer) && r->t.window_base > 0 ? r->t.window_base : r->base;

    for (int i = 0; i < r->n_rot / 2; i++) {
        const double a =
            pos * pow(base, -2.0 * i / r->n_rot) / (factor ? (double)factor[i] : 1.0);
        const int one = r->t.neighbours ? 2 * i : i;
        const int other = r->t.neighbours ? 2 * i + 1 : i + r->n_rot / 2;
        const double x = v[one], y = v[other];

        v[one] = x * cos(a) - y * sin(a);
        v[other] = x * sin(a) + y * cos(a);
    }
}

/* n heads, normalised where weights called name are there, and rotated by pos. */
static void turn_heads(const struct reference *r, double *v, int n, int layer,
                       const char *name, int pos)
{
    const float *w = tensor(r->g, layer, name);

    for (int h = 0; h < n; h++) {
        if (w)
            norm(r, v + h * r->dim, v + h * r->dim,
                 w + (r->t.head_norms ? h * r->dim : 0), NULL, r->dim);
        rotate(r, v + h * r->dim, layer, pos);
    }
}

/* Rows first .. first + n - 1 of the fused tensor, or the one that has them alone. */
static void part_of(const struct reference *r, double *y, const double *x, int layer,
                    const char *fused, const char *alone, int first, int n, int k)
{
    char name[64];
    const float *w, *b;
    const char *from = alone;

    snprintf(name, sizeof name, "%s.weight", fused);
    if (tensor(r->g, layer, name))
        from = fused;
    else
        first = 0;
    snprintf(name, sizeof name, "%s.weight", from);
    w = tensor(r->g, layer, name);
    assert_non_null(w);
    snprintf(name, sizeof name, "%s.bias", from);
    b = tensor(r->g, layer, name);
    matmul(y, w + (size_t)first * (size_t)k, b ? b + first : NULL, x, n, k);
}

static void attention(struct reference *r, int layer, const double *x, double *out)
{
    const int n_q = r->n_heads * r->dim, n_kv = r->n_kv * r->dim, pos = r->n_pos;
    double *k = r->k + (size_t)layer * (size_t)r->cap * (size_t)n_kv;
    double *v = r->v + (size_t)layer * (size_t)r->cap * (size_t)n_kv;
    static double q[4096], to_sinks[4096], s[4096], mixed[4096];
    const bool own =
        has_window(r, layer) && !(r->t.recent && r->t.recent < r->t.window);
    const int window = own ? r->t.window : r->t.recent;
    const int sinks = own ? 0 : r->t.sinks, seen = window + sinks;
    const bool gap = window && pos >= seen;

    part_of(r, q, x, layer, "attn_qkv", "attn_q", 0, n_q, r->d);
    part_of(r, k + pos * n_kv, x, layer, "attn_qkv", "attn_k", n_q, n_kv, r->d);
    part_of(r, v + pos * n_kv, x, layer, "attn_qkv", "attn_v", n_q + n_kv, n_kv, r->d);
    memcpy(to_sinks, q, sizeof q);
    turn_heads(r, k + pos * n_kv, r->n_kv, layer, "attn_k_norm.weight", pos);
    turn_heads(r, q, r->n_heads, layer, "attn_q_norm.weight", pos);
    turn_heads(r, to_sinks, r->n_heads, layer, "attn_q_norm.weight",
               gap ? seen - 1 : pos);
    for (int h = 0; h < r->n_heads; h++) {
        const int kv = h / (r->n_heads / r->n_kv);

        attend(mixed + h * r->dim, q + h * r->dim, to_sinks + h * r->dim,
               k + kv * r->dim, v + kv * r->dim, gap ? sinks : 0,
               gap ? pos + 1 - window : 0, pos + 1, n_kv, r->dim, r->t.attn_cap, s);
    }
    matmul(out, tensor(r->g, layer, "attn_output.weight"),
           tensor(r->g, layer, "attn_output.bias"), mixed, r->d, n_q);
}

static double activated(const struct reference *r, double x)
{
    const double pi = acos(-1.0);

    return r->t.gelu ? x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))
                     : x / (1 + exp(-x));
}

static void feed_forward(const struct reference *r, int layer, const double *x,
                         double *out)
{
    const struct gguf *g = r->g;
    const int n = r->n_ff;
    const float *gate = tensor(g, layer, "ffn_gate.weight");
    const float *up = tensor(g, layer, "ffn_up.weight");
    char name[64];
    static double a[4096], b[4096];

    snprintf(name, sizeof name, "blk.%d.ffn_up.weight", layer);
    if (gguf_tensor_find(g, name)->ne[1] == 2 * (uint64_t)n) {
        gate = up;
        up += (size_t)n * (size_t)r->d;
    }
    matmul(b, up, tensor(g, layer, "ffn_up.bias"), x, n, r->d);
    if (gate)
        matmul(a, gate, NULL, x, n, r->d);
    for (int i = 0; i < n; i++)
        a[i] = gate ? activated(r, a[i]) * b[i] : activated(r, b[i]);
    matmul(out, tensor(g, layer, "ffn_down.weight"), tensor(g, layer, "ffn_down.bias"),
           a, r->d, n);
}

/* ---- one more token; logits NULL where they are not wanted ---------------------- */

static void reference_step(struct reference *r, int32_t token, float *logits)
{
    static double x[4096], in[4096], attn[4096], ffn[4096], z[4096];
    const float *embd = tensor(r->g, -1, "token_embd.weight");
    const float *out = tensor(r->g, -1, "output.weight");

    for (int i = 0; i < r->d; i++)
        x[i] = (double)embd[token * r->d + i] * (r->t.scaled ? sqrt(r->d) : 1);
    for (int l = 0; l < r->n_layers; l++) {
        norm_by_name(r, in, x, l, "attn_norm");
        attention(r, l, in, attn);
        norm_by_name(r, attn, attn, l, "post_attention_norm");
        if (r->t.parallel)
            feed_forward(r, l, in, ffn);
        for (int i = 0; i < r->d; i++)
            x[i] += attn[i];
        if (!r->t.parallel) {
            norm_by_name(r, in, x, l, "ffn_norm");
            feed_forward(r, l, in, ffn);
        }
        norm_by_name(r, ffn, ffn, l, "post_ffw_norm");
        for (int i = 0; i < r->d; i++)
            x[i] += ffn[i];
    }
    r->n_pos++;
    if (!logits)
        return;
    norm_by_name(r, in, x, -1, "output_norm");
    matmul(z, out ? out : embd, tensor(r->g, -1, "output.bias"), in, r->n_vocab, r->d);
    for (int i = 0; i < r->n_vocab; i++)
        logits[i] = (float)capped(z[i], r->t.logit_cap);
}

#endif
