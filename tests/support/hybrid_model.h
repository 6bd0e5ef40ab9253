/* SPDX-License-Identifier: MIT
 *
 * hybrid_model.h - small random models with recurrent layers, one of each mechanism
 */
#ifndef SLM_TESTS_HYBRID_MODEL_H
#define SLM_TESTS_HYBRID_MODEL_H

#include <math.h>

#include "tests/support/tiny_model.h"

enum hybrid {
    HYBRID_QWEN35, /* gated delta rule, its heads of values n_groups apart */
    HYBRID_QWEN35MOE,
    HYBRID_QWEN3NEXT, /* the same with other neighbours; experts */
    HYBRID_LFM2,      /* short convolutions */
    HYBRID_MAMBA2,    /* states and nothing else */
    HYBRID_FALCON_H1, /* states and attention next to each other */
    N_HYBRIDS,
};

static const char *const hybrid_names[N_HYBRIDS] = {"qwen35", "qwen35moe", "qwen3next",
                                                    "lfm2",   "mamba2",    "falcon-h1"};

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
    SSM_DIM = 7, /* of a value of Mamba-2 */
    SSM_VALUES = V_HEADS * SSM_DIM,
    SSM_CHANNELS = 2 * KEYS + SSM_VALUES,
    N_SHORT = 3, /* taps of a short convolution */
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

/* ---- which layers, and which parts ----------------------------------------------- */

static bool has_experts(enum hybrid h)
{
    return h == HYBRID_QWEN35MOE || h == HYBRID_QWEN3NEXT;
}

static bool is_delta(enum hybrid h)
{
    return h <= HYBRID_QWEN3NEXT;
}

static bool is_ssm(enum hybrid h)
{
    return h == HYBRID_MAMBA2 || h == HYBRID_FALCON_H1;
}

static bool attends(enum hybrid h, int l)
{
    return h == HYBRID_FALCON_H1 || (h != HYBRID_MAMBA2 && (l + 1) % INTERVAL == 0);
}

static bool is_recurrent(enum hybrid h, int l)
{
    return is_ssm(h) || !attends(h, l);
}

/* ---- tensors --------------------------------------------------------------------- */

static void add_delta(struct tiny *t, enum hybrid h, int l)
{
    add(t, l, "attn_qkv.weight", N_EMBD, CHANNELS, 0);
    add(t, l, "attn_gate.weight", N_EMBD, VALUES, 0);
    if (h == HYBRID_QWEN3NEXT) {
        add(t, l, "ssm_ba.weight", N_EMBD, 2 * V_HEADS, 0);
    } else {
        add(t, l, "ssm_beta.weight", N_EMBD, V_HEADS, 0);
        add(t, l, "ssm_alpha.weight", N_EMBD, V_HEADS, 0);
    }
    tiny_layer(t, l, "ssm_conv1d.weight", KERN_FMT_f32, N_CONV, CHANNELS, 0, 0.2F,
               0.6F);
    tiny_layer(t, l, "ssm_dt.bias", KERN_FMT_f32, V_HEADS, 0, 0, 0, 1);
    tiny_layer(t, l, "ssm_a", KERN_FMT_f32, V_HEADS, 0, 0, -0.3F, 0.25F);
    add_norm(t, l, "ssm_norm.weight", D);
    add(t, l, "ssm_out.weight", VALUES, N_EMBD, 0);
}

static void add_short_conv(struct tiny *t, int l)
{
    add(t, l, "shortconv.in_proj.weight", N_EMBD, 3 * N_EMBD, 0);
    tiny_layer(t, l, "shortconv.conv.weight", KERN_FMT_f32, N_SHORT, N_EMBD, 0, 0.2F,
               0.6F);
    add(t, l, "shortconv.out_proj.weight", N_EMBD, N_EMBD, 0);
}

/* Falcon-H1 has no norm here, Mamba-2 one of each group. */
static void add_ssm(struct tiny *t, enum hybrid h, int l)
{
    add(t, l, "ssm_in.weight", N_EMBD, SSM_VALUES + SSM_CHANNELS + V_HEADS, 0);
    tiny_layer(t, l, "ssm_conv1d.weight", KERN_FMT_f32, N_CONV, SSM_CHANNELS, 0, 0.2F,
               0.6F);
    tiny_layer(t, l, "ssm_conv1d.bias", KERN_FMT_f32, SSM_CHANNELS, 0, 0, 0, 0.5F);
    tiny_layer(t, l, "ssm_dt.bias", KERN_FMT_f32, V_HEADS, 0, 0, 0, 1);
    tiny_layer(t, l, "ssm_a", KERN_FMT_f32, 1, V_HEADS, 0, -0.3F, 0.25F);
    tiny_layer(t, l, "ssm_d", KERN_FMT_f32, 1, V_HEADS, 0, 0.5F, 0.5F);
    if (h == HYBRID_MAMBA2)
        tiny_layer(t, l, "ssm_norm.weight", KERN_FMT_f32, SSM_VALUES / K_HEADS, K_HEADS,
                   0, 1, 0.2F);
    add(t, l, "ssm_out.weight", SSM_VALUES, N_EMBD, 0);
}

static void add_attention(struct tiny *t, enum hybrid h, int l)
{
    add(t, l, "attn_q.weight", N_EMBD, (1 + is_delta(h)) * N_HEADS * HEAD_DIM, 0);
    add(t, l, "attn_k.weight", N_EMBD, N_KV * HEAD_DIM, 0);
    add(t, l, "attn_v.weight", N_EMBD, N_KV * HEAD_DIM, 0);
    if (h != HYBRID_FALCON_H1) {
        add_norm(t, l, "attn_q_norm.weight", HEAD_DIM);
        add_norm(t, l, "attn_k_norm.weight", HEAD_DIM);
    }
    add(t, l, "attn_output.weight", N_HEADS * HEAD_DIM, N_EMBD, 0);
}

static const char *ffn_norm_of(enum hybrid h)
{
    return is_delta(h)             ? "post_attention_norm.weight"
           : h == HYBRID_FALCON_H1 ? "ffn_norm"
                                   : "ffn_norm.weight";
}

static void add_ffn(struct tiny *t, enum hybrid h, int l)
{
    add_norm(t, l, ffn_norm_of(h), N_EMBD);
    if (!has_experts(h)) {
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

static void add_layer(struct tiny *t, enum hybrid h, int l)
{
    add_norm(t, l, "attn_norm.weight", N_EMBD);
    if (is_recurrent(h, l) && is_delta(h))
        add_delta(t, h, l);
    else if (is_recurrent(h, l) && is_ssm(h))
        add_ssm(t, h, l);
    else if (is_recurrent(h, l))
        add_short_conv(t, l);
    if (attends(h, l))
        add_attention(t, h, l);
    if (h != HYBRID_MAMBA2)
        add_ffn(t, h, l);
}

/* ---- keys ------------------------------------------------------------------------ */

static void add_recurrent_keys(struct tiny *t, enum hybrid h)
{
    if (h == HYBRID_LFM2) {
        tiny_key_u32(t, ".shortconv.l_cache", N_SHORT);
        tiny_key(t, ".attention.head_count_kv", 9);
        tiny_u32(t->keys, 5);
        tiny_u64(t->keys, N_LAYERS);
        for (int l = 0; l < N_LAYERS; l++)
            tiny_u32(t->keys, attends(h, l) ? N_KV : 0);
        return;
    }
    tiny_key_u32(t, ".attention.head_count_kv", h == HYBRID_MAMBA2 ? 0 : N_KV);
    tiny_key_u32(t, ".ssm.conv_kernel", N_CONV);
    tiny_key_u32(t, ".ssm.state_size", D);
    tiny_key_u32(t, ".ssm.group_count", K_HEADS);
    tiny_key_u32(t, ".ssm.time_step_rank", V_HEADS);
    tiny_key_u32(t, ".ssm.inner_size", is_ssm(h) ? SSM_VALUES : VALUES);
}

static void add_keys(struct tiny *t, enum hybrid h)
{
    tiny_key_u32(t, ".block_count", N_LAYERS + is_delta(h));
    if (is_delta(h)) {
        tiny_key_u32(t, ".nextn_predict_layers", 1);
        tiny_key_u32(t, ".full_attention_interval", INTERVAL);
    }
    tiny_key_u32(t, ".embedding_length", N_EMBD);
    tiny_key_u32(t, ".feed_forward_length", h == HYBRID_MAMBA2 ? 0 : N_FF);
    tiny_key_u32(t, ".context_length", N_TOKENS);
    tiny_key_u32(t, ".attention.head_count", h == HYBRID_MAMBA2 ? 0 : N_HEADS);
    tiny_key_u32(t, ".attention.key_length", HEAD_DIM);
    tiny_key_u32(t, ".attention.value_length", HEAD_DIM);
    tiny_key_u32(t, ".rope.dimension_count", N_ROT);
    tiny_key_f32(t, ".rope.freq_base", (float)BASE);
    tiny_key_f32(t, ".attention.layer_norm_rms_epsilon", EPS);
    add_recurrent_keys(t, h);
    if (has_experts(h)) {
        tiny_key_u32(t, ".expert_count", N_EXPERTS);
        tiny_key_u32(t, ".expert_used_count", N_USED);
        tiny_key_u32(t, ".expert_feed_forward_length", N_FF_EXPERT);
        tiny_key_u32(t, ".expert_shared_feed_forward_length", N_FF_SHARED);
    }
}

static void *make_model(enum hybrid h, size_t *bytes)
{
    struct tiny t;

    tiny_new(&t, hybrid_names[h]);
    add_keys(&t, h);
    tiny_random(&t, "token_embd.weight", KERN_FMT_f32, N_EMBD, N_VOCAB, 0, 0, 1);
    tiny_random(&t, h == HYBRID_LFM2 ? "token_embd_norm.weight" : "output_norm.weight",
                KERN_FMT_f32, N_EMBD, 0, 0, 1, 0.1F);
    for (int l = 0; l < N_LAYERS; l++)
        add_layer(&t, h, l);
    if (is_delta(h))
        add_norm(&t, N_LAYERS, "nextn.enorm.weight", N_EMBD);
    return tiny_image(&t, bytes);
}

#endif
