/* SPDX-License-Identifier: MIT
 *
 * loader_kinds.c - layers of several kinds: with a sliding window or without, with
 * heads of their own number and length, with the keys and values of another layer
 */
#include "engine/arch/loader_impl.h"

#include <stdio.h>

#include "engine/kv/kvcache.h"

/* In the cache, layers with a window are the last. */
static void number_cached(struct model *m)
{
    m->n_cached = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < m->n_layers; i++)
            if (m->layers[i].attends && !m->layers[i].shares &&
                (m->layers[i].window > 0) == pass)
                m->layers[i].cached = m->n_cached++;
}

enum status loader_windows(struct loader *l, struct model *m, int missing, int period)
{
    return loader_windows_but(l, m, missing, period, period - 1);
}

enum status loader_windows_but(struct loader *l, struct model *m, int missing,
                               int period, int first)
{
    int window;
    enum status st =
        loader_int_or(l, "attention.sliding_window", 0, MAX_CONTEXT, missing, &window);

    if (st || window == 0)
        return st;
    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].window = period == 1 || i % period != first ? window : 0;
    number_cached(m);
    return st;
}

enum status loader_windows_by_layer(struct loader *l, struct model *m)
{
    static const char key[] = "attention.sliding_window_pattern";
    char full[96];
    int window;

    snprintf(full, sizeof full, "%s.%s", m->arch->name, key);
    const struct gguf_kv *kv = gguf_kv_find(l->g, full);
    const enum status st =
        loader_int(l, "attention.sliding_window", 1, MAX_CONTEXT, &window);

    if (st)
        return st;
    if (!kv || kv->elem_type != GGUF_BOOL || kv->n < (uint64_t)m->n_layers)
        return loader_fail(l, ST_INPUT, "%s has no true or false for each of %d layers",
                           full, m->n_layers);
    for (int i = 0; i < m->n_layers; i++) {
        bool has = false;

        gguf_elem_bool(kv, (uint64_t)i, &has);
        m->layers[i].window = has ? window : 0;
    }
    number_cached(m);
    return ST_OK;
}

/* The last layer before layer `end` with keys and values of its own, and with a window
 * or without; -1: none. */
static int last_own(const struct model *m, int end, bool window)
{
    int i = end - 1;

    while (i >= 0 && (m->layers[i].shares || (m->layers[i].window > 0) != window))
        i--;
    return i;
}

enum status loader_shared_kv(struct loader *l, struct model *m)
{
    int n;
    const enum status st =
        loader_int_or(l, "attention.shared_kv_layers", 0, m->n_layers - 1, 0, &n);
    const int first = m->n_layers - n;

    if (st)
        return st;
    for (int i = first; i < m->n_layers; i++)
        m->layers[i].shares = true;
    number_cached(m);
    for (int i = first; i < m->n_layers; i++) {
        const int from = last_own(m, first, m->layers[i].window > 0);

        if (from < 0)
            return loader_fail(l, ST_INPUT,
                               "layer %d has no keys and values of its own, and no "
                               "layer before it has such as it needs",
                               i);
        m->layers[i].cached = m->layers[from].cached;
    }
    return ST_OK;
}

/* ---- heads ----------------------------------------------------------------------- */

enum status loader_second_rope(struct loader *l, struct model *m, int n_rot)
{
    double base;
    enum status st =
        loader_real_or(l, "rope.freq_base_swa", 1e-3, 1e15, 10000.0, &base);

    if (!st)
        st = rope_plain(l, &m->ropes[1], n_rot, base, 1.0);
    m->n_ropes = 2;
    for (int i = 0; i < m->n_layers; i++)
        if (m->layers[i].window)
            m->layers[i].rope = 1;
    return st;
}

/* The lengths of heads and of what of them is rotated, in layers with a window. */
static enum status window_lengths(struct loader *l, struct model *m, int *dim,
                                  int *n_rot)
{
    int values;
    enum status st = loader_int_or(l, "attention.key_length_swa", 2,
                                   KVCACHE_MAX_HEAD_DIM, m->head_dim, dim);

    if (!st)
        st = loader_int_or(l, "attention.value_length_swa", 1, KVCACHE_MAX_HEAD_DIM,
                           *dim, &values);
    if (!st)
        st = loader_int_or(l, "rope.dimension_count_swa", 2, *dim, *dim, n_rot);
    if (st)
        return st;
    if (values != *dim || *n_rot % 2)
        return loader_fail(l, ST_UNSUPPORTED,
                           "heads of %d elements, of which %d are rotated, with values "
                           "of %d are not supported in layers with a window, only "
                           "equal lengths and even numbers",
                           *dim, *n_rot, values);
    return ST_OK;
}

/* Layers of a kind must have the same heads. */
static enum status check_heads(struct loader *l, const struct model *m)
{
    const struct layer *first[2] = {NULL, NULL};

    for (int i = 0; i < m->n_layers; i++) {
        const struct layer *y = &m->layers[i];
        const struct layer **like = &first[y->window > 0];

        *like = *like ? *like : y;
        if (y->n_kv_heads != (*like)->n_kv_heads)
            return loader_fail(l, ST_UNSUPPORTED,
                               "layer %d has %d key-value heads, and layer %d of its "
                               "kind %d: only equal numbers are supported",
                               i, y->n_kv_heads, (int)(*like - m->layers),
                               (*like)->n_kv_heads);
        if (m->n_heads % y->n_kv_heads)
            return loader_fail(l, ST_INPUT,
                               "%d heads cannot share %d key-value heads evenly",
                               m->n_heads, y->n_kv_heads);
    }
    return ST_OK;
}

enum status loader_heads_by_layer(struct loader *l, struct model *m)
{
    int dim = 0, n_rot = 0;
    enum status st = window_lengths(l, m, &dim, &n_rot);

    if (!st)
        st = loader_second_rope(l, m, n_rot);
    for (int i = 0; !st && i < m->n_layers; i++) {
        struct layer *y = &m->layers[i];

        y->head_dim = y->window ? dim : y->head_dim;
        st = loader_int_at_layer(l, "attention.head_count_kv", 1, m->n_heads, i,
                                 &y->n_kv_heads);
    }
    m->head_dim = dim > m->head_dim ? dim : m->head_dim;
    return st ? st : check_heads(l, m);
}

void loader_plain_v_norm(struct loader *l, struct model *m)
{
    const float *ones;

    loader_constant(l, &ones, (size_t)m->head_dim, 1.0f);
    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].v_norm.w = ones;
}

/* ---- per-layer embeddings -------------------------------------------------------- */

enum status loader_per_layer(struct loader *l, struct model *m)
{
    const enum status st = loader_int_or(l, "embedding_length_per_layer_input", 0,
                                         MAX_WIDTH / m->n_layers, 0, &m->n_per_layer);

    return st || m->n_per_layer == 0
               ? st
               : loader_rows_of(l, -1, "per_layer_token_embd.weight",
                                &m->n_per_layer_rows);
}
