/* SPDX-License-Identifier: MIT
 *
 * layouts.h - what files of each architecture have, for models of any shape
 */
#ifndef SLM_TESTS_ENGINE_ARCH_LAYOUTS_H
#define SLM_TESTS_ENGINE_ARCH_LAYOUTS_H

#include "tests/support/reference.h"
#include "tests/support/tiny_model.h"

/* The first ones differ in how tensors are divided, the others in what is computed. */
enum { N_LAYOUTS_IN_FULL = 14 };

enum { N_TOKENS = 44, N_VOCAB = 77, WINDOW = 9 };

/* What a file of an architecture has besides what all have. */
struct layout {
    struct traits t;
    int n_layers;
    bool fused_qkv, qkv_bias, out_bias, all_bias, plain_ffn, fused_ffn;
    bool qk_norm, post_norms, no_attn_norm, no_ffn_norm, tied;
    int n_experts, n_dense; /* in all layers but the first n_dense */
    int n_ff_shared;
    bool choice_bias, expert_bias;
    bool swaps_biases; /* RMS norms have biases, LayerNorms none */
    bool two_norms, sub_norms, sinks, places;
};

struct shape {
    int n_embd, n_heads, n_kv, head_dim, n_rot, n_ff;
};

static const struct layout LAYOUTS[] = {
    {.t = {.arch = "llama", .neighbours = true}, .n_layers = 2},
    {.t = {.arch = "qwen2"}, .n_layers = 2, .qkv_bias = true, .tied = true},
    {.t = {.arch = "qwen3"}, .n_layers = 2, .qk_norm = true},
    {.t = {.arch = "gemma2",
           .act = R_GELU,
           .scaled = true,
           .attn_cap = 2,
           .logit_cap = 3,
           .window = WINDOW,
           .period = 2},
     .n_layers = 3,
     .post_norms = true,
     .tied = true},
    {.t = {.arch = "gemma3",
           .act = R_GELU,
           .scaled = true,
           .window = WINDOW,
           .period = 6,
           .window_base = 10000},
     .n_layers = 7,
     .post_norms = true,
     .qk_norm = true,
     .tied = true},
    {.t = {.arch = "phi2", .layernorm = true, .act = R_GELU, .parallel = true},
     .n_layers = 2,
     .fused_qkv = true,
     .all_bias = true,
     .plain_ffn = true,
     .no_ffn_norm = true},
    {.t = {.arch = "phi2", .layernorm = true, .act = R_GELU, .parallel = true},
     .n_layers = 2,
     .all_bias = true,
     .plain_ffn = true,
     .no_ffn_norm = true},
    {.t = {.arch = "phi3", .window = WINDOW},
     .n_layers = 2,
     .fused_qkv = true,
     .fused_ffn = true},
    {.t = {.arch = "phi3"}, .n_layers = 2, .fused_ffn = true, .tied = true},
    {.t = {.arch = "stablelm", .layernorm = true}, .n_layers = 2, .qkv_bias = true},
    {.t = {.arch = "stablelm", .layernorm = true, .parallel = true, .head_norms = true},
     .n_layers = 2,
     .qk_norm = true,
     .no_ffn_norm = true},
    {.t = {.arch = "chatglm", .neighbours = true},
     .n_layers = 2,
     .fused_qkv = true,
     .qkv_bias = true,
     .fused_ffn = true},
    {.t = {.arch = "glm4", .neighbours = true},
     .n_layers = 2,
     .qkv_bias = true,
     .fused_ffn = true,
     .post_norms = true},
    {.t = {.arch = "glm4", .neighbours = true},
     .n_layers = 2,
     .fused_qkv = true,
     .fused_ffn = true,
     .post_norms = true},
    {.t = {.arch = "llama", .neighbours = true},
     .n_layers = 2,
     .qkv_bias = true,
     .out_bias = true},
    {.t = {.arch = "mistral3", .neighbours = true, .temperature = 0.1, .span = 5},
     .n_layers = 2},
    {.t = {.arch = "smollm3", .neighbours = true, .unrotated = 4},
     .n_layers = 5,
     .tied = true},
    {.t = {.arch = "arcee", .neighbours = true, .act = R_RELU_SQUARED},
     .n_layers = 2,
     .plain_ffn = true},
    {.t = {.arch = "granite",
           .neighbours = true,
           .embd_scale = 3,
           .residual_scale = 0.4,
           .attn_scale = 0.08,
           .logit_scale = 0.125},
     .n_layers = 3},
    {.t = {.arch = "granitemoe",
           .neighbours = true,
           .embd_scale = 3,
           .residual_scale = 0.4,
           .attn_scale = 0.08,
           .logit_scale = 0.125,
           .n_used = 2},
     .n_layers = 2,
     .n_experts = 5,
     .n_ff_shared = 60},
    {.t = {.arch = "granitemoe",
           .neighbours = true,
           .residual_scale = 0.4,
           .unrotated = -1,
           .n_used = 1},
     .n_layers = 2,
     .n_experts = 3},
    {.t = {.arch = "minicpm", .neighbours = true, .embd_scale = 12},
     .n_layers = 2,
     .tied = true},
    {.t = {.arch = "ernie4_5-moe", .neighbours = true, .n_used = 3},
     .n_layers = 3,
     .n_experts = 7,
     .n_dense = 1,
     .n_ff_shared = 36,
     .choice_bias = true},
    {.t = {.arch = "olmo2", .whole_norms = true},
     .n_layers = 2,
     .qk_norm = true,
     .no_attn_norm = true,
     .no_ffn_norm = true,
     .post_norms = true},
    {.t = {.arch = "olmo2", .whole_norms = true, .window = WINDOW, .period = 4},
     .n_layers = 5,
     .qk_norm = true,
     .no_attn_norm = true,
     .no_ffn_norm = true,
     .post_norms = true},
    {.t = {.arch = "olmoe", .whole_norms = true, .n_used = 2, .of_all = true},
     .n_layers = 2,
     .qk_norm = true,
     .n_experts = 6},
    {.t = {.arch = "exaone4", .window = WINDOW, .period = 4, .unrotated = 4},
     .n_layers = 5,
     .qk_norm = true,
     .no_attn_norm = true,
     .no_ffn_norm = true,
     .post_norms = true},
    {.t = {.arch = "hunyuan-dense", .rotates_first = true},
     .n_layers = 2,
     .qk_norm = true},
    {.t = {.arch = "seed_oss", .ffn_norm = "post_attention_norm"},
     .n_layers = 2,
     .qkv_bias = true},
    {.t = {.arch = "gemma", .act = R_GELU, .scaled = true},
     .n_layers = 2,
     .tied = true},
    {.t = {.arch = "gpt-oss",
           .act = R_CLAMPED,
           .window = WINDOW,
           .period = 2,
           .ffn_norm = "post_attention_norm",
           .n_used = 2},
     .n_layers = 3,
     .qkv_bias = true,
     .out_bias = true,
     .sinks = true,
     .n_experts = 5,
     .expert_bias = true},
    {.t = {.arch = "cohere2",
           .layernorm = true,
           .neighbours = true,
           .parallel = true,
           .window = WINDOW,
           .period = 4,
           .unrotated = 4,
           .logit_scale = 0.25},
     .n_layers = 5,
     .swaps_biases = true,
     .no_ffn_norm = true,
     .tied = true},
    {.t = {.arch = "command-r",
           .layernorm = true,
           .neighbours = true,
           .parallel = true,
           .head_norms = true},
     .n_layers = 2,
     .swaps_biases = true,
     .qk_norm = true,
     .no_ffn_norm = true},
    {.t = {.arch = "starcoder2", .layernorm = true, .act = R_GELU},
     .n_layers = 2,
     .all_bias = true,
     .plain_ffn = true},
    {.t = {.arch = "nemotron", .layernorm = true, .act = R_RELU_SQUARED},
     .n_layers = 2,
     .plain_ffn = true},
    {.t = {.arch = "gptneox", .layernorm = true, .act = R_GELU, .parallel = true},
     .n_layers = 2,
     .fused_qkv = true,
     .all_bias = true,
     .plain_ffn = true},
    {.t = {.arch = "gpt2", .layernorm = true, .act = R_GELU, .unrotated = -1},
     .n_layers = 2,
     .fused_qkv = true,
     .qkv_bias = true,
     .out_bias = true,
     .plain_ffn = true,
     .places = true,
     .tied = true},
    {.t = {.arch = "falcon", .layernorm = true, .act = R_GELU, .parallel = true},
     .n_layers = 2,
     .fused_qkv = true,
     .plain_ffn = true,
     .no_ffn_norm = true},
    {.t = {.arch = "falcon", .layernorm = true, .act = R_GELU, .parallel = true},
     .n_layers = 2,
     .fused_qkv = true,
     .plain_ffn = true,
     .two_norms = true,
     .no_ffn_norm = true},
    {.t = {.arch = "bitnet"}, .n_layers = 2, .sub_norms = true, .tied = true},
    {.t = {.arch = "apertus", .act = R_XIELU, .xielu = {0.3, 0.6, 0.5, -1e-6}},
     .n_layers = 2,
     .qk_norm = true,
     .plain_ffn = true},
    {.t = {.arch = "bailingmoe2",
           .n_used = 3,
           .sigmoid = true,
           .expert_scale = 2.5,
           .n_groups = 4,
           .n_groups_used = 2},
     .n_layers = 3,
     .fused_qkv = true,
     .qk_norm = true,
     .n_experts = 12,
     .n_dense = 1,
     .n_ff_shared = 40,
     .choice_bias = true},
    {.t = {.arch = "glm4moe",
           .ffn_norm = "post_attention_norm",
           .n_used = 2,
           .sigmoid = true},
     .n_layers = 3,
     .qkv_bias = true,
     .n_experts = 6,
     .n_dense = 1,
     .n_ff_shared = 40,
     .choice_bias = true},
    {.t = {.arch = "smallthinker",
           .act = R_RELU,
           .window = WINDOW,
           .period = 4,
           .from_first = true,
           .unrotated = 4,
           .n_used = 2,
           .routes_early = true},
     .n_layers = 5,
     .n_experts = 6},
    {.t = {.arch = "smallthinker",
           .act = R_RELU,
           .n_used = 2,
           .sigmoid = true,
           .routes_early = true},
     .n_layers = 2,
     .n_experts = 6},
    {.t = {.arch = "phimoe", .n_used = 2},
     .n_layers = 2,
     .qkv_bias = true,
     .out_bias = true,
     .swaps_biases = true,
     .n_experts = 5},
};

/* Borders of fused tensors inside and outside of panels, rows that no block divides,
 * one to three KV heads. */
static const struct shape SHAPES[] = {
    {96, 4, 2, 40, 20, 128}, {64, 3, 1, 80, 32, 100}, {96, 6, 3, 96, 96, 160},
    {64, 2, 2, 256, 64, 96}, {72, 3, 3, 24, 18, 60},
};

static enum kern_format format_for(enum kern_format fmt, int k)
{
    return (uint32_t)k % kern_format_info(fmt)->block_elems ? KERN_FMT_f16 : fmt;
}

/* "blk.<layer>.<name><end>", or without a layer for -1. */
static void full_name(char full[64], int layer, const char *name, const char *end)
{
    if (layer < 0)
        snprintf(full, 64, "%s%s", name, end);
    else
        snprintf(full, 64, "blk.%d.%s%s", layer, name, end);
}

/* A matrix whose products with vectors of unit variance have about that too. */
static void put_matrix(struct tiny *t, int layer, const char *name,
                       enum kern_format fmt, int k, int n_rows, float gain)
{
    char full[64];

    full_name(full, layer, name, ".weight");
    tiny_random(t, full, format_for(fmt, k), (uint64_t)k, (uint64_t)n_rows, 0, 0,
                gain * sqrtf(3.0F / (float)k));
}

/* n weights around 1, or biases around 0; of several heads where n_heads is not 0. */
static void put_vector(struct tiny *t, int layer, const char *name, int n, int n_heads)
{
    const bool is_bias = strstr(name, ".bias") != NULL;
    char full[64];

    full_name(full, layer, name, "");
    tiny_random(t, full, KERN_FMT_f32, (uint64_t)n, (uint64_t)n_heads, 0,
                is_bias ? 0 : 1, 0.4F);
}

static void put_norm(struct tiny *t, const struct layout *y, int layer,
                     const char *name, int n)
{
    char full[64];

    snprintf(full, sizeof full, "%s.weight", name);
    put_vector(t, layer, full, n, 0);
    snprintf(full, sizeof full, "%s.bias", name);
    if (y->t.layernorm != y->swaps_biases)
        put_vector(t, layer, full, n, 0);
}

static void put_attention(struct tiny *t, const struct layout *y, const struct shape *s,
                          int layer, enum kern_format fmt)
{
    const int n_q = s->n_heads * s->head_dim, n_kv = s->n_kv * s->head_dim;
    const int heads[2] = {s->n_heads, s->n_kv};

    if (y->fused_qkv)
        put_matrix(t, layer, "attn_qkv", fmt, s->n_embd, n_q + 2 * n_kv, 2);
    for (int i = 0; i < 3 && !y->fused_qkv; i++) {
        static const char *const names[] = {"attn_q", "attn_k", "attn_v"};

        put_matrix(t, layer, names[i], fmt, s->n_embd, i ? n_kv : n_q, 2);
    }
    if ((y->qkv_bias || y->all_bias) && y->fused_qkv)
        put_vector(t, layer, "attn_qkv.bias", n_q + 2 * n_kv, 0);
    for (int i = 0; i < 3 && (y->qkv_bias || y->all_bias) && !y->fused_qkv; i++) {
        static const char *const names[] = {"attn_q.bias", "attn_k.bias",
                                            "attn_v.bias"};

        put_vector(t, layer, names[i], i ? n_kv : n_q, 0);
    }
    for (int i = 0; i < 2 && y->qk_norm; i++)
        put_vector(t, layer, i ? "attn_k_norm.weight" : "attn_q_norm.weight",
                   s->head_dim * (y->t.whole_norms ? heads[i] : 1),
                   y->t.head_norms ? heads[i] : 0);
    if (y->sinks)
        put_vector(t, layer, "attn_sinks.weight", s->n_heads, 0);
    if (y->sub_norms)
        put_vector(t, layer, "attn_sub_norm.weight", n_q, 0);
    put_matrix(t, layer, "attn_output", fmt, n_q, s->n_embd, 1);
    if (y->all_bias || y->out_bias)
        put_vector(t, layer, "attn_output.bias", s->n_embd, 0);
}

static void put_feed_forward(struct tiny *t, const struct layout *y,
                             const struct shape *s, int layer, enum kern_format fmt)
{
    if (!y->fused_ffn && !y->plain_ffn)
        put_matrix(t, layer, "ffn_gate", fmt, s->n_embd, s->n_ff, 1);
    put_matrix(t, layer, "ffn_up", fmt, s->n_embd, (y->fused_ffn ? 2 : 1) * s->n_ff, 1);
    put_matrix(t, layer, "ffn_down", fmt, s->n_ff, s->n_embd, 1);
    if (y->sub_norms)
        put_vector(t, layer, "ffn_sub_norm.weight", s->n_ff, 0);
    if (y->all_bias) {
        put_vector(t, layer, "ffn_up.bias", s->n_ff, 0);
        put_vector(t, layer, "ffn_down.bias", s->n_embd, 0);
    }
}

/* n slices of rows of k weights. */
static void put_slices(struct tiny *t, int layer, const char *name,
                       enum kern_format fmt, int k, int n_rows, int n)
{
    tiny_layer(t, layer, name, format_for(fmt, k), (uint64_t)k, (uint64_t)n_rows,
               (uint64_t)n, 0, sqrtf(3.0F / (float)k));
}

/* Routers are exact, so that no draw is decided by rounding: and their scores are far
 * apart. */
static void put_experts(struct tiny *t, const struct layout *y, const struct shape *s,
                        int layer, enum kern_format fmt)
{
    const int n = y->n_experts;

    put_matrix(t, layer, "ffn_gate_inp", KERN_FMT_f32, s->n_embd, n, 3);
    if (y->choice_bias)
        put_vector(t, layer, "exp_probs_b.bias", n, 0);
    put_slices(t, layer, "ffn_gate_exps.weight", fmt, s->n_embd, s->n_ff, n);
    put_slices(t, layer, "ffn_up_exps.weight", fmt, s->n_embd, s->n_ff, n);
    put_slices(t, layer, "ffn_down_exps.weight", fmt, s->n_ff, s->n_embd, n);
    if (y->expert_bias) {
        put_vector(t, layer, "ffn_gate_inp.bias", n, 0);
        put_vector(t, layer, "ffn_gate_exps.bias", s->n_ff, n);
        put_vector(t, layer, "ffn_up_exps.bias", s->n_ff, n);
        put_vector(t, layer, "ffn_down_exps.bias", s->n_embd, n);
    }
    if (!y->n_ff_shared)
        return;
    put_matrix(t, layer, "ffn_gate_shexp", fmt, s->n_embd, y->n_ff_shared, 1);
    put_matrix(t, layer, "ffn_up_shexp", fmt, s->n_embd, y->n_ff_shared, 1);
    put_matrix(t, layer, "ffn_down_shexp", fmt, y->n_ff_shared, s->n_embd, 1);
}

/* The width of layers without experts where others have some. */
static int dense_width(const struct layout *y, const struct shape *s)
{
    return y->n_dense ? s->n_ff + 52 : s->n_ff;
}

static void put_expert_keys(struct tiny *t, const struct layout *y,
                            const struct shape *s)
{
    tiny_key_u32(t, ".expert_count", (uint32_t)y->n_experts);
    tiny_key_u32(t, ".expert_used_count", (uint32_t)y->t.n_used);
    tiny_key_u32(t, ".expert_feed_forward_length", (uint32_t)s->n_ff);
    if (y->t.sigmoid)
        tiny_key_u32(t, ".expert_gating_func", 2);
    if (y->t.expert_scale > 0)
        tiny_key_f32(t, ".expert_weights_scale", (float)y->t.expert_scale);
    if (y->t.n_groups) {
        tiny_key_u32(t, ".expert_group_count", (uint32_t)y->t.n_groups);
        tiny_key_u32(t, ".expert_group_used_count", (uint32_t)y->t.n_groups_used);
    }
    if (y->n_dense)
        tiny_key_u32(t, ".leading_dense_block_count", (uint32_t)y->n_dense);
    if (y->n_ff_shared)
        tiny_key_u32(t, ".expert_shared_feed_forward_length", (uint32_t)y->n_ff_shared);
}

/* A number for each layer, the same. */
static void put_numbers(struct tiny *t, const char *key, double v, int n_layers)
{
    const float number = (float)v;

    tiny_key(t, key, 9);
    tiny_u32(t->keys, 6);
    tiny_u64(t->keys, (uint64_t)n_layers);
    for (int i = 0; i < n_layers; i++)
        fwrite(&number, sizeof number, 1, t->keys);
}

/* Factors of what a model computes. */
static void put_scales(struct tiny *t, const struct traits *y)
{
    const bool times = y->parallel; /* Cohere's logits are multiplied */

    if (y->embd_scale > 0)
        tiny_key_f32(t, ".embedding_scale", (float)y->embd_scale);
    if (y->residual_scale > 0)
        tiny_key_f32(t, ".residual_scale", (float)y->residual_scale);
    if (y->attn_scale > 0)
        tiny_key_f32(t, ".attention.scale", (float)y->attn_scale);
    if (y->logit_scale > 0)
        tiny_key_f32(t, ".logit_scale",
                     (float)(times ? y->logit_scale : 1 / y->logit_scale));
    if (y->span) {
        tiny_key_f32(t, ".attention.temperature_scale", (float)y->temperature);
        tiny_key_u32(t, ".rope.scaling.original_context_length", (uint32_t)y->span);
    }
    if (y->unrotated < 0)
        tiny_key_bool(t, ".rope.scaling.finetuned", false);
}

static void put_keys(struct tiny *t, const struct layout *y, const struct shape *s)
{
    tiny_key_u32(t, ".block_count", (uint32_t)y->n_layers);
    tiny_key_u32(t, ".embedding_length", (uint32_t)s->n_embd);
    tiny_key_u32(t, ".feed_forward_length", (uint32_t)dense_width(y, s));
    tiny_key_u32(t, ".context_length", N_TOKENS);
    tiny_key_u32(t, ".attention.head_count", (uint32_t)s->n_heads);
    tiny_key_u32(t, ".attention.head_count_kv", (uint32_t)s->n_kv);
    tiny_key_u32(t, ".attention.key_length", (uint32_t)s->head_dim);
    tiny_key_u32(t, ".attention.value_length", (uint32_t)s->head_dim);
    tiny_key_u32(t, ".rope.dimension_count", (uint32_t)s->n_rot);
    tiny_key_f32(t, ".rope.freq_base", 1000000);
    tiny_key_f32(t,
                 y->t.layernorm ? ".attention.layer_norm_epsilon"
                                : ".attention.layer_norm_rms_epsilon",
                 1e-5F);
    if (y->t.window)
        tiny_key_u32(t, ".attention.sliding_window", (uint32_t)y->t.window);
    if (y->t.attn_cap > 0)
        tiny_key_f32(t, ".attn_logit_softcapping", (float)y->t.attn_cap);
    if (y->t.logit_cap > 0)
        tiny_key_f32(t, ".final_logit_softcapping", (float)y->t.logit_cap);
    if (y->n_experts)
        put_expert_keys(t, y, s);
    put_scales(t, &y->t);
    for (int i = 0; i < 4 && y->t.act == R_XIELU; i++) {
        static const char *const keys[] = {"xielu.alpha_p", "xielu.alpha_n",
                                           "xielu.beta", "xielu.eps"};

        put_numbers(t, keys[i], y->t.xielu[i], y->n_layers);
    }
}

static void put_layer(struct tiny *t, const struct layout *y, const struct shape *s,
                      int layer, enum kern_format fmt)
{
    struct shape dense = *s;

    dense.n_ff = dense_width(y, s);
    if (!y->no_attn_norm)
        put_norm(t, y, layer, "attn_norm", s->n_embd);
    if (y->two_norms)
        put_norm(t, y, layer, "attn_norm_2", s->n_embd);
    put_attention(t, y, s, layer, fmt);
    if (!y->no_ffn_norm)
        put_norm(t, y, layer, y->t.ffn_norm ? y->t.ffn_norm : "ffn_norm", s->n_embd);
    if (y->n_experts && layer >= y->n_dense)
        put_experts(t, y, s, layer, fmt);
    else
        put_feed_forward(t, y, &dense, layer, fmt);
    if (y->post_norms) {
        put_norm(t, y, layer, "post_attention_norm", s->n_embd);
        put_norm(t, y, layer, "post_ffw_norm", s->n_embd);
    }
}

static void *make_model(const struct layout *y, const struct shape *s,
                        enum kern_format fmt, size_t *bytes)
{
    struct tiny t;

    tiny_new(&t, y->t.arch);
    put_keys(&t, y, s);
    put_matrix(&t, -1, "token_embd", fmt, s->n_embd, N_VOCAB, 1);
    if (!y->tied)
        put_matrix(&t, -1, "output", fmt, s->n_embd, N_VOCAB, 2);
    put_norm(&t, y, -1, "output_norm", s->n_embd);
    if (y->places)
        tiny_random(&t, "position_embd.weight", KERN_FMT_f32, (uint64_t)s->n_embd,
                    N_TOKENS, 0, 0, 1);
    if (y->all_bias)
        put_vector(&t, -1, "output.bias", N_VOCAB, 0);
    for (int i = 0; i < y->n_layers; i++)
        put_layer(&t, y, s, i, fmt);
    return tiny_image(&t, bytes);
}

#endif
