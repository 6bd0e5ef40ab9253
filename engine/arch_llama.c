/* SPDX-License-Identifier: MIT
 *
 * arch_llama.c - Llama 2 and 3, Mistral, Yi, TinyLlama, Mixtral
 *
 * RMSNorm, rotated neighbouring pairs, grouped heads, a SiLU-gated feed-forward
 * part; with experts each token takes the few that the router scores highest,
 * weighted by a softmax over those few.
 * Sources: Touvron et al. 2023 (arXiv 2307.09288), Jiang et al. 2024 (Mixtral,
 * arXiv 2401.04088); tensor names and metadata keys as in the GGUF specification.
 */
#include "engine/arch.h"

#include <stdlib.h>

#include "engine/kvcache.h"

/* Beyond these a number is damage, not a model. They also keep all products of
 * them far from overflow in 64 bits. */
enum {
    MAX_LAYERS = 4096,
    MAX_WIDTH = 1 << 24,
    MAX_HEADS = 4096,
    MAX_HEAD_DIM = KVCACHE_MAX_HEAD_DIM,
    MAX_CONTEXT = 1 << 28,
    MAX_EXPERTS = 1024,
};

static enum status load_attention_sizes(struct loader *l, struct model *m)
{
    int value_dim;
    enum status st = loader_int(l, "attention.head_count", 1, MAX_HEADS, &m->n_heads);

    if (!st)
        st = loader_int_or(l, "attention.head_count_kv", 1, MAX_HEADS, m->n_heads,
                           &m->n_kv_heads);
    if (!st)
        st = loader_int_or(l, "attention.key_length", 1, MAX_HEAD_DIM,
                           m->n_embd / m->n_heads, &m->head_dim);
    if (!st)
        st = loader_int_or(l, "attention.value_length", 1, MAX_HEAD_DIM, m->head_dim,
                           &value_dim);
    if (!st)
        st = loader_int_or(l, "rope.dimension_count", 2, MAX_HEAD_DIM, m->head_dim,
                           &m->n_rot);
    if (st)
        return st;
    if (m->n_heads % m->n_kv_heads)
        return loader_fail(l, ST_INPUT,
                           "%d heads cannot share %d key-value heads evenly",
                           m->n_heads, m->n_kv_heads);
    if (m->head_dim == 0 || m->head_dim > MAX_HEAD_DIM)
        return loader_fail(l, ST_UNSUPPORTED,
                           "heads of %d elements are not supported, only 1 to %d",
                           m->head_dim, MAX_HEAD_DIM);
    if (value_dim != m->head_dim)
        return loader_fail(
            l, ST_UNSUPPORTED,
            "keys of %d and values of %d elements are not supported, only "
            "equal lengths",
            m->head_dim, value_dim);
    if (m->n_rot % 2 || m->n_rot > m->head_dim)
        return loader_fail(l, ST_INPUT,
                           "llama.rope.dimension_count is %d, and an even number up to "
                           "the head size %d is possible",
                           m->n_rot, m->head_dim);
    return ST_OK;
}

static enum status load_sizes(struct loader *l, struct model *m)
{
    double eps;
    enum status st = loader_int(l, "block_count", 1, MAX_LAYERS, &m->n_layers);

    if (!st)
        st = loader_int(l, "embedding_length", 1, MAX_WIDTH, &m->n_embd);
    if (!st)
        st = loader_int(l, "feed_forward_length", 1, MAX_WIDTH, &m->n_ff);
    if (!st)
        st = loader_int(l, "context_length", 1, MAX_CONTEXT, &m->n_ctx_train);
    if (!st)
        st = load_attention_sizes(l, m);
    if (!st)
        st =
            loader_real_or(l, "attention.layer_norm_rms_epsilon", 0.0, 1.0, 1e-5, &eps);
    if (!st)
        st = loader_int_or(l, "expert_count", 0, MAX_EXPERTS, 0, &m->n_experts);
    if (!st && m->n_experts)
        st = loader_int(l, "expert_used_count", 1, m->n_experts, &m->n_experts_used);
    if (!st)
        m->norm_eps = (float)eps;
    return st;
}

static enum status load_ffn(struct loader *l, struct model *m, struct layer *y, int i)
{
    const size_t n_embd = (size_t)m->n_embd, n_ff = (size_t)m->n_ff;
    const size_t n = m->n_experts ? (size_t)m->n_experts : 1;
    const bool moe = m->n_experts > 0;
    const uint64_t n_read = moe ? (uint64_t)m->n_experts_used : 1;
    enum status st = loader_vector(l, &y->ffn_norm, i, "ffn_norm.weight", n_embd);

    if (!st && moe) {
        st = loader_matrix(l, &y->router, i, "ffn_gate_inp.weight", n_embd, n, 1);
        if (!st)
            loader_count_token_bytes(l, matrix_slice_bytes(&y->router));
    }
    if (!st)
        st = loader_matrix(l, &y->gate, i,
                           moe ? "ffn_gate_exps.weight" : "ffn_gate.weight", n_embd,
                           n_ff, n);
    if (!st)
        st = loader_matrix(l, &y->up, i, moe ? "ffn_up_exps.weight" : "ffn_up.weight",
                           n_embd, n_ff, n);
    if (!st)
        st = loader_matrix(l, &y->down, i,
                           moe ? "ffn_down_exps.weight" : "ffn_down.weight", n_ff,
                           n_embd, n);
    if (!st)
        loader_count_token_bytes(l, n_read * (matrix_slice_bytes(&y->gate) +
                                              matrix_slice_bytes(&y->up) +
                                              matrix_slice_bytes(&y->down)));
    return st;
}

static enum status load_layer(struct loader *l, struct model *m, struct layer *y, int i)
{
    const size_t n_embd = (size_t)m->n_embd;
    const size_t n_q = (size_t)m->n_heads * (size_t)m->head_dim;
    const size_t n_kv = (size_t)m->n_kv_heads * (size_t)m->head_dim;
    enum status st =
        loader_int_or(l, "attention.sliding_window", 0, MAX_CONTEXT, 0, &y->window);

    if (!st)
        st = loader_vector(l, &y->attn_norm, i, "attn_norm.weight", n_embd);

    if (!st)
        st = loader_matrix(l, &y->wq, i, "attn_q.weight", n_embd, n_q, 1);
    if (!st)
        st = loader_matrix(l, &y->wk, i, "attn_k.weight", n_embd, n_kv, 1);
    if (!st)
        st = loader_matrix(l, &y->wv, i, "attn_v.weight", n_embd, n_kv, 1);
    if (!st)
        st = loader_matrix(l, &y->wo, i, "attn_output.weight", n_q, n_embd, 1);
    if (st)
        return st;
    loader_count_token_bytes(
        l, matrix_slice_bytes(&y->wq) + matrix_slice_bytes(&y->wk) +
               matrix_slice_bytes(&y->wv) + matrix_slice_bytes(&y->wo));
    return load_ffn(l, m, y, i);
}

/* The vocabulary is as large as the embedding; whether it is as large as the
 * tokenizer's is the tokenizer's affair. */
static enum status load_ends(struct loader *l, struct model *m)
{
    const struct gguf_tensor *t = gguf_tensor_find(loader_gguf(l), "token_embd.weight");
    const size_t n_embd = (size_t)m->n_embd;
    enum status st;

    if (t && (t->ne[1] < 1 || t->ne[1] > MAX_WIDTH))
        return loader_fail(l, ST_INPUT, "a vocabulary of %llu tokens is not possible",
                           (unsigned long long)t->ne[1]);
    m->n_vocab = t ? (int)t->ne[1] : 1;
    st = loader_table(l, &m->embd, -1, "token_embd.weight", n_embd, (size_t)m->n_vocab);
    if (st)
        return st;
    /* Tied weights are looked up and multiplied with: they stay row after row. */
    m->output = m->embd;
    if (loader_has(l, -1, "output.weight"))
        st = loader_matrix(l, &m->output, -1, "output.weight", n_embd,
                           (size_t)m->n_vocab, 1);
    if (!st)
        st = loader_vector(l, &m->output_norm, -1, "output_norm.weight", n_embd);
    if (!st)
        loader_count_token_bytes(l, m->embd.row_bytes + matrix_slice_bytes(&m->output));
    return st;
}

static enum status load(struct loader *l, struct model *m)
{
    enum status st = load_sizes(l, m);

    if (!st)
        st = load_ends(l, m);
    m->n_ropes = 1;
    if (!st)
        st = rope_load(l, &m->ropes[0], m->n_rot, m->n_ctx_train);
    if (st)
        return st;
    m->layers = calloc((size_t)m->n_layers, sizeof *m->layers);
    if (!m->layers)
        return loader_fail(l, ST_NO_MEMORY, "no memory for %d layers", m->n_layers);
    for (int i = 0; i < m->n_layers && !st; i++)
        st = load_layer(l, m, &m->layers[i], i);
    return st;
}

const struct arch arch_llama = {.name = "llama", .load = load};
