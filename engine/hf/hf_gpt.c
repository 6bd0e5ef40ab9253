/* SPDX-License-Identifier: MIT
 *
 * hf_gpt.c - members of config.json of models whose queries, keys and values are one
 * matrix: GPT-2, GPT-NeoX, Falcon, InternLM 2
 *
 * GELU is computed in its tanh form, which differs from the exact one that some of them
 * name by less than their weights' rounding.
 */
#include "engine/hf/hf_impl.h"

#include <string.h>

static enum status put_layernorm(struct hf_config *c, const char *key, struct err *err)
{
    return hf_put_real(c, key, "attention.layer_norm_epsilon", 0.0, 1.0, 1e-5, err);
}

static enum status must_be_gelu(const struct hf_config *c, const char *key,
                                struct err *err)
{
    const char *act = json_text(json_member(c->o, key));

    if (act && (!strcmp(act, "gelu") || !strcmp(act, "gelu_fast") ||
                !strcmp(act, "gelu_pytorch_tanh")))
        return ST_OK;
    return hf_must_be(c, key, "gelu_new", err);
}

enum status hf_gpt2(struct hf_config *c, struct err *err)
{
    int64_t ff = 0;
    enum status st;

    c->n_ctx = 1024;
    c->tied = json_member(c->o, "tie_word_embeddings") ? c->tied : true;
    if ((st = must_be_gelu(c, "activation_function", err)) ||
        (st = hf_must_be_bool(c, "scale_attn_weights", true, err)) ||
        (st = hf_must_be_bool(c, "scale_attn_by_inverse_layer_idx", false, err)) ||
        (st = hf_get_number(c, "n_layer", 1, HF_MAX_LAYERS, &c->n_layers, err)) ||
        (st = hf_get_number(c, "n_embd", 1, HF_MAX_WIDTH, &c->n_embd, err)) ||
        (st = hf_get_number(c, "n_head", 1, HF_MAX_HEADS, &c->n_heads, err)) ||
        (st = hf_get_number(c, "n_positions", 1, HF_MAX_CONTEXT, &c->n_ctx, err)))
        return st;
    ff = 4 * c->n_embd;
    if ((st = hf_get_number(c, "n_inner", 1, HF_MAX_WIDTH, &ff, err)) ||
        (st = hf_put_sizes(c, err)))
        return st;
    hf_put_u32(c, "feed_forward_length", ff);
    return put_layernorm(c, "layer_norm_epsilon", err);
}

enum status hf_gpt_neox(struct hf_config *c, struct err *err)
{
    double theta = 10000.0;
    bool parallel = true;
    enum status st;

    c->partial = 0.25;
    if ((st = must_be_gelu(c, "hidden_act", err)) ||
        (st = json_get_real(&c->file, c->o, "rotary_pct", 0.001, 1.0, &c->partial,
                            err)) ||
        (st = json_get_real(&c->file, c->o, "rotary_emb_base", 1.0, 1e15, &theta,
                            err)) ||
        (st = json_get_bool(&c->file, c->o, "use_parallel_residual", &parallel, err)) ||
        (st = hf_put_sizes(c, err)) || (st = hf_put_ff(c, 0, err)) ||
        (st = put_layernorm(c, "layer_norm_eps", err)))
        return st;
    hf_put_bool(c, "use_parallel_residual", parallel);
    return hf_rope(c, theta, err);
}

/* Old configs have names of their own, and one head of keys where they say so. */
enum status hf_falcon(struct hf_config *c, struct err *err)
{
    bool grouped = false, one = true;
    int64_t ff = 0;
    enum status st;

    c->n_ctx = 2048;
    if ((st = hf_must_be_bool(c, "alibi", false, err)) ||
        (st = hf_must_be_bool(c, "parallel_attn", true, err)) ||
        (st = hf_must_be_bool(c, "bias", false, err)) ||
        (st = must_be_gelu(c, "activation", err)) ||
        (st = json_get_bool(&c->file, c->o, "new_decoder_architecture", &grouped,
                            err)) ||
        (st = json_get_bool(&c->file, c->o, "multi_query", &one, err)) ||
        (st = json_get_int(&c->file, c->o, "n_layer", 1, HF_MAX_LAYERS, &c->n_layers,
                           err)) ||
        (st =
             json_get_int(&c->file, c->o, "n_head", 1, HF_MAX_HEADS, &c->n_heads, err)))
        return st;
    c->n_kv_heads = grouped || !one ? 0 : 1;
    if (grouped && ((st = json_get_int(&c->file, c->o, "n_head_kv", 1, HF_MAX_HEADS,
                                       &c->n_kv_heads, err)) ||
                    (st = json_get_int(&c->file, c->o, "num_kv_heads", 1, HF_MAX_HEADS,
                                       &c->n_kv_heads, err))))
        return st;
    if ((st = hf_put_sizes(c, err)))
        return st;
    ff = 4 * c->n_embd;
    if ((st = hf_get_number(c, "ffn_hidden_size", 1, HF_MAX_WIDTH, &ff, err)))
        return st;
    hf_put_u32(c, "feed_forward_length", ff);
    if ((st = put_layernorm(c, "layer_norm_epsilon", err)))
        return st;
    return hf_rope(c, 10000.0, err);
}

enum status hf_internlm2(struct hf_config *c, struct err *err)
{
    const enum status st = hf_must_be_bool(c, "bias", false, err);

    return st ? st : hf_llama(c, err);
}
