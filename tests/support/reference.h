/* SPDX-License-Identifier: MIT
 *
 * reference.h - the forward pass of every architecture with attention in double
 * precision
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

enum reference_act { R_SILU, R_GELU, R_RELU, R_RELU_SQUARED, R_XIELU, R_CLAMPED };

struct traits {
    const char *arch;
    bool layernorm;         /* or the root of the mean square */
    enum reference_act act; /* with a gate where there is one */
    bool neighbours;        /* are rotated, not halves */
    bool parallel;          /* attention and feed-forward part have the same input */
    bool head_norms;        /* weights of queries' and keys' norms for each head */
    bool whole_norms;       /* these norms are of all heads together */
    bool rotates_first;     /* before these norms */
    bool scaled;            /* embeddings, by sqrt(n_embd) */
    double embd_scale, residual_scale, attn_scale, logit_scale; /* 0: none */
    double temperature; /* queries times 1 + temperature ln(1 + pos / span) */
    int span;
    int unrotated;        /* every n-th layer is not rotated, counted as those without a
                             window; 0: all are, -1: none is */
    const char *ffn_norm; /* name of the norm before the feed-forward part, if it has
                             another one than "ffn_norm" */
    int n_used;           /* experts of a token */
    bool sigmoid;         /* odds of experts, or softmax */
    bool of_all;          /* weights are shares of all odds, or of those taken */
    double expert_scale;  /* 0: none */
    int n_groups, n_groups_used; /* 0: one */
    bool routes_early;           /* the router reads the layer's input */
    double xielu[4];             /* alpha_p, alpha_n, beta, eps */
    double attn_cap, logit_cap;
    int window, period; /* all layers but every period-th have the window; 0, 1: all */
    bool from_first;    /* the first layer is one of these, or else the period-th */
    double window_base; /* of rotations in layers with a window; 0: as in the others */
    int recent, sinks; /* what tokens see in the other layers, and in those whose window
                          is longer: the last and the first positions; 0: all */
};

struct reference {
    const struct gguf *g;
    struct traits t;
    int n_layers, d, n_heads, n_kv, dim, n_rot, n_vocab;
    double eps, base;
    int n_pos, cap;
    double *k, *v; /* [n_layers][cap][n_kv * dim] */
};

/* ---- tensors as floats, kept while a file is open: each is used at every position  */

static struct {
    const struct gguf_tensor *t;
    float *f;
} kept[512];

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

/* ---- opening --------------------------------------------------------------------- */

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

/* ---- pieces ---------------------------------------------------------------------- */

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
 * it sees those from `first` on, and with the query to_sinks the n_sinks first ones. A
 * score without a value, none, takes part in the softmax; -INFINITY: there is none. s
 * is scratch. */
PLAIN static void attend(double *out, const double *q, const double *to_sinks,
                         const double *k, const double *v, int n_sinks, int first,
                         int n_pos, int stride, int dim, double scale, double cap,
                         double none, double *s)
{
    double max = none, sum = 0;

    for (int t = 0; t < n_pos; t++) {
        double score = 0;

        if (t >= n_sinks && t < first) {
            s[t] = -INFINITY;
            continue;
        }
        for (int i = 0; i < dim; i++)
            score += (t < n_sinks ? to_sinks : q)[i] * k[t * stride + i];
        s[t] = capped(score * scale, cap);
        max = s[t] > max ? s[t] : max;
    }
    for (int i = 0; i < dim; i++)
        out[i] = 0;
    sum = exp(none - max);
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
                         int layer, const char *name, int n)
{
    char weight[64], bias[64];
    const float *w;

    snprintf(weight, sizeof weight, "%s.weight", name);
    snprintf(bias, sizeof bias, "%s.bias", name);
    w = tensor(r->g, layer, weight);
    if (w)
        norm(r, y, x, w, tensor(r->g, layer, bias), n);
    else
        memmove(y, x, (size_t)n * sizeof *y);
}

/* Whether a layer is an n-th one. */
static bool is_nth(const struct reference *r, int layer, int n)
{
    return (r->t.from_first ? layer : layer + 1) % n == 0;
}

static bool has_window(const struct reference *r, int layer)
{
    return r->t.window && (r->t.period <= 1 || !is_nth(r, layer, r->t.period));
}

static void rotate(const struct reference *r, double *v, int layer, int pos)
{
    const float *factor = tensor(r->g, -1, "rope_freqs.weight");
    const double base =
        has_window(r, layer) && r->t.window_base > 0 ? r->t.window_base : r->base;

    if (r->t.unrotated < 0 || (r->t.unrotated && is_nth(r, layer, r->t.unrotated)))
        return;
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
    const bool each = w && !r->t.whole_norms;

    if (w && r->t.whole_norms)
        norm(r, v, v, w, NULL, n * r->dim);
    for (int h = 0; h < n; h++) {
        double *head = v + h * r->dim;
        const float *own = w + (r->t.head_norms ? h * r->dim : 0);

        if (each && !r->t.rotates_first)
            norm(r, head, head, own, NULL, r->dim);
        rotate(r, head, layer, pos);
        if (each && r->t.rotates_first)
            norm(r, head, head, own, NULL, r->dim);
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
    const float *sink = tensor(r->g, layer, "attn_sinks.weight");
    const double scale =
        (r->t.attn_scale > 0 ? r->t.attn_scale : 1 / sqrt(r->dim)) *
        (r->t.span ? 1 + r->t.temperature * log(1 + pos / r->t.span) : 1);

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
               gap ? pos + 1 - window : 0, pos + 1, n_kv, r->dim, scale, r->t.attn_cap,
               sink ? (double)sink[h] : -INFINITY, s);
    }
    norm_by_name(r, mixed, mixed, layer, "attn_sub_norm", n_q);
    matmul(out, tensor(r->g, layer, "attn_output.weight"),
           tensor(r->g, layer, "attn_output.bias"), mixed, r->d, n_q);
}

static double softplus(double x)
{
    return log1p(exp(x));
}

/* act(gate) * up, or act(gate) where there is no up. */
static double activated(const struct reference *r, double g, const double *up)
{
    const double pi = acos(-1.0), *p = r->t.xielu;
    double y = 0;

    switch (r->t.act) {
    case R_SILU:
        y = g / (1 + exp(-g));
        break;
    case R_GELU:
        y = g / 2 * (1 + tanh(sqrt(2 / pi) * (g + 0.044715 * g * g * g)));
        break;
    case R_RELU:
        y = fmax(g, 0);
        break;
    case R_RELU_SQUARED:
        y = fmax(g, 0) * fmax(g, 0);
        break;
    case R_XIELU:
        y = (g > 0 ? softplus(p[0]) * g * g
                   : (p[2] + softplus(p[1])) * (expm1(fmin(g, p[3])) - g)) +
            p[2] * g;
        break;
    case R_CLAMPED:
        g = fmin(g, 7);
        return g / (1 + exp(-1.702 * g)) * (fmax(-7, fmin(7, *up)) + 1);
    }
    return up ? y * *up : y;
}

/* A vector of slice s of n elements each, or NULL. */
static const float *slice_of(const float *v, int s, size_t n)
{
    return v ? v + (size_t)s * n : NULL;
}

/* Slice s of the tensors ffn_gate, ffn_up and ffn_down with this ending. */
static void feed_forward(const struct reference *r, int layer, const char *ending,
                         int s, const double *x, double *out)
{
    const struct gguf *g = r->g;
    char name[4][64];
    static double a[4096], b[4096];

    snprintf(name[0], sizeof name[0], "ffn_gate%s", ending);
    snprintf(name[1], sizeof name[1], "ffn_up%s", ending);
    snprintf(name[2], sizeof name[2], "ffn_down%s", ending);
    snprintf(name[3], sizeof name[3], "blk.%d.ffn_down%s.weight", layer, ending);

    const float *w[3], *bias[3];
    const int n = (int)gguf_tensor_find(g, name[3])->ne[0];
    const size_t size = (size_t)n * (size_t)r->d;

    for (int i = 0; i < 3; i++) {
        char full[80];

        snprintf(full, sizeof full, "%s.weight", name[i]);
        w[i] = slice_of(tensor(g, layer, full), s, size);
        snprintf(full, sizeof full, "%s.bias", name[i]);
        bias[i] = slice_of(tensor(g, layer, full), s, (size_t)(i == 2 ? r->d : n));
    }
    snprintf(name[3], sizeof name[3], "blk.%d.ffn_up%s.weight", layer, ending);
    if (gguf_tensor_find(g, name[3])->ne[1] == 2 * (uint64_t)n) {
        w[0] = w[1];
        w[1] += size;
    }
    matmul(b, w[1], bias[1], x, n, r->d);
    if (w[0])
        matmul(a, w[0], bias[0], x, n, r->d);
    for (int i = 0; i < n; i++)
        a[i] = w[0] ? activated(r, a[i], &b[i]) : activated(r, b[i], NULL);
    norm_by_name(r, a, a, layer, "ffn_sub_norm", n);
    matmul(out, w[2], bias[2], a, r->d, n);
}

/* The highest of n, but those taken. */
static int highest(const double *v, const bool *taken, int n)
{
    int best = -1;

    for (int i = 0; i < n; i++)
        if (!taken[i] && (best < 0 || v[i] > v[best]))
            best = i;
    return best;
}

/* Hide all but the best groups of n experts. */
static void hide_groups(const struct reference *r, double *choice, int n)
{
    const int each = n / r->t.n_groups;
    bool taken[64] = {false};
    double score[64];

    for (int g = 0; g < r->t.n_groups; g++) {
        bool first[64] = {false};
        const double *own = choice + g * each;
        const int one = highest(own, first, each);

        first[one] = true;
        const int two = highest(own, first, each);
        score[g] = own[one] + (two < 0 ? 0 : own[two]);
    }
    for (int i = 0; i < r->t.n_groups_used; i++)
        taken[highest(score, taken, r->t.n_groups)] = true;
    for (int e = 0; e < n; e++)
        if (!taken[e / each])
            choice[e] = -INFINITY;
}

/* The weights of all experts for a token whose router reads x; 0: not taken. */
static void route(const struct reference *r, int layer, const double *x, double *weight,
                  int n)
{
    const float *bias = tensor(r->g, layer, "exp_probs_b.bias");
    double odds[64], choice[64], all = 0, sum = 0;
    bool taken[64] = {false};

    matmul(odds, tensor(r->g, layer, "ffn_gate_inp.weight"),
           tensor(r->g, layer, "ffn_gate_inp.bias"), x, n, r->d);
    for (int e = 0; e < n; e++) {
        odds[e] = r->t.sigmoid ? 1 / (1 + exp(-odds[e])) : exp(odds[e]);
        all += odds[e];
    }
    for (int e = 0; e < n; e++)
        choice[e] =
            (r->t.sigmoid ? odds[e] : odds[e] / all) + (bias ? (double)bias[e] : 0);
    if (r->t.n_groups)
        hide_groups(r, choice, n);
    for (int i = 0; i < r->t.n_used; i++)
        taken[highest(choice, taken, n)] = true;
    for (int e = 0; e < n; e++)
        sum += taken[e] ? odds[e] : 0;
    if (r->t.of_all)
        sum = r->t.sigmoid ? 1 : all;
    for (int e = 0; e < n; e++)
        weight[e] =
            taken[e] ? odds[e] / sum * (r->t.expert_scale > 0 ? r->t.expert_scale : 1)
                     : 0;
}

static int n_experts(const struct reference *r, int layer)
{
    char name[64];

    snprintf(name, sizeof name, "blk.%d.ffn_gate_inp.weight", layer);
    const struct gguf_tensor *t = gguf_tensor_find(r->g, name);

    return t ? (int)t->ne[1] : 0;
}

/* The routed part, and the expert that all take, if there is one. */
static void experts(const struct reference *r, int layer, const double *weight,
                    const double *x, double *out)
{
    static double y[4096];

    for (int i = 0; i < r->d; i++)
        out[i] = 0;
    for (int e = 0; e < n_experts(r, layer); e++) {
        if (weight[e] == 0)
            continue;
        feed_forward(r, layer, "_exps", e, x, y);
        for (int i = 0; i < r->d; i++)
            out[i] += weight[e] * y[i];
    }
    if (!tensor(r->g, layer, "ffn_down_shexp.weight"))
        return;
    feed_forward(r, layer, "_shexp", 0, x, y);
    for (int i = 0; i < r->d; i++)
        out[i] += y[i];
}

/* ---- one more token; logits NULL where they are not wanted ----------------------- */

static void add_block(const struct reference *r, double *x, const double *y)
{
    for (int i = 0; i < r->d; i++)
        x[i] += y[i] * (r->t.residual_scale > 0 ? r->t.residual_scale : 1);
}

static void reference_layer(struct reference *r, int l, double *x)
{
    static double in[4096], attn[4096], ffn[4096], weight[64];
    const int n = n_experts(r, l);

    if (n && r->t.routes_early)
        route(r, l, x, weight, n);
    norm_by_name(r, in, x, l,
                 tensor(r->g, l, "attn_norm_2.weight") ? "attn_norm_2" : "attn_norm",
                 r->d);
    attention(r, l, in, attn);
    if (!r->t.ffn_norm)
        norm_by_name(r, attn, attn, l, "post_attention_norm", r->d);
    if (!r->t.parallel)
        add_block(r, x, attn);
    if (!r->t.parallel || tensor(r->g, l, "ffn_norm.weight"))
        norm_by_name(r, in, x, l, r->t.ffn_norm ? r->t.ffn_norm : "ffn_norm", r->d);
    else if (tensor(r->g, l, "attn_norm_2.weight"))
        norm_by_name(r, in, x, l, "attn_norm", r->d);
    if (n && !r->t.routes_early)
        route(r, l, in, weight, n);
    if (n)
        experts(r, l, weight, in, ffn);
    else
        feed_forward(r, l, "", 0, in, ffn);
    norm_by_name(r, ffn, ffn, l, "post_ffw_norm", r->d);
    if (r->t.parallel)
        add_block(r, x, attn);
    add_block(r, x, ffn);
}

static void reference_step(struct reference *r, int32_t token, float *logits)
{
    static double x[4096], in[4096], z[4096];
    const float *embd = tensor(r->g, -1, "token_embd.weight");
    const float *places = tensor(r->g, -1, "position_embd.weight");
    const float *out = tensor(r->g, -1, "output.weight");
    const double scale = r->t.scaled           ? sqrt(r->d)
                         : r->t.embd_scale > 0 ? r->t.embd_scale
                                               : 1;

    for (int i = 0; i < r->d; i++)
        x[i] = (double)embd[token * r->d + i] * scale +
               (places ? (double)places[r->n_pos * r->d + i] : 0);
    for (int l = 0; l < r->n_layers; l++)
        reference_layer(r, l, x);
    r->n_pos++;
    if (!logits)
        return;
    norm_by_name(r, in, x, -1, "output_norm", r->d);
    matmul(z, out ? out : embd, tensor(r->g, -1, "output.bias"), in, r->n_vocab, r->d);
    for (int i = 0; i < r->n_vocab; i++)
        logits[i] = (float)capped(z[i] * (r->t.logit_scale > 0 ? r->t.logit_scale : 1),
                                  r->t.logit_cap);
}

#endif
