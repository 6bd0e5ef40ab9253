/* SPDX-License-Identifier: MIT
 *
 * loader_nextn.c - layers that predict further tokens, behind those of the model
 *
 * Such a layer is one of the model's with attention, after a matrix that joins the
 * embedding of the token just drawn with the hidden state of the one before. What it
 * has no tensor of its own for is the model's: embedding, last norm, output.
 * Source: DeepSeek-AI 2024 (arXiv 2412.19437, section 2.2); names as in published GGUF
 * files.
 */
#include "engine/arch/loader_impl.h"

#include <stdio.h>
#include <stdlib.h>

#define PART_OF_MODEL(n, field_) .part = {{DIM_##n, offsetof(struct model, field_)}}

static const struct tensor_rule nextn[] = {
    {"nextn.eh_proj.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD_2,
     PART_OF_MODEL(EMBD, eh_proj)},
    {"nextn.enorm.weight", .kind = TENSOR_VECTOR, PART_OF_MODEL(EMBD, enorm.w)},
    {"nextn.hnorm.weight", .kind = TENSOR_VECTOR, PART_OF_MODEL(EMBD, hnorm.w)},
    {"nextn.shared_head_norm.weight", .kind = TENSOR_VECTOR,
     PART_OF_MODEL(EMBD, output_norm.w), .optional = true},
    /* its name in files of Ling and Ring 2 */
    {"layer_output_norm.weight", .kind = TENSOR_VECTOR,
     PART_OF_MODEL(EMBD, output_norm.w), .optional = true},
    {"nextn.embed_tokens.weight", .kind = TENSOR_TABLE, .k = DIM_EMBD,
     PART_OF_MODEL(VOCAB, embd), .optional = true},
    {"nextn.shared_head_head.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,
     PART_OF_MODEL(VOCAB, output), .optional = true},
    {0},
};

static void ignore_layers(struct loader *l, int first, int n)
{
    for (size_t t = 0; n > 0 && t < gguf_n_tensors(l->g); t++) {
        int layer;

        if (sscanf(gguf_tensor_at(l->g, t)->name, "blk.%d.", &layer) == 1 &&
            layer >= first && layer < first + n)
            l->used[t] = 1;
    }
}

enum status loader_nextn(struct loader *l, struct model *m)
{
    const enum status st =
        loader_int_or(l, "nextn_predict_layers", 0, m->n_layers - 1, 0, &m->n_nextn);

    if (st)
        return st;
    m->n_layers -= m->n_nextn;
    ignore_layers(l, m->n_layers, m->n_nextn);
    return ST_OK;
}

/* What the model's last layer with attention is: routed, as wide. */
static bool take_traits(struct model *m, struct layer *y)
{
    for (int i = m->n_layers - 1; i >= 0; i--)
        if (m->layers[i].attends && !m->layers[i].recurrent) {
            *y = m->layers[i];
            return true;
        }
    return false;
}

/* The layer alone: the first of the cache, and no states. */
static void keep_only(struct model *m, int layer)
{
    m->layers[0] = m->layers[layer];
    m->n_layers = 1;
    m->recur = (struct recur_sizes){0};
    loader_number_layers(m);
}

enum status loader_nextn_tensors(struct loader *l, struct model *m)
{
    const int layer = m->n_layers;
    enum status st;

    if (!m->n_nextn || !take_traits(m, &m->layers[layer]))
        return loader_fail(l, ST_UNSUPPORTED,
                           "the file has no layer that predicts further tokens "
                           "(%s.nextn_predict_layers)",
                           m->arch->name);
    m->n_layers = layer + 1;
    st = loader_tensors(l, nextn, layer, m);
    m->expert_bytes = 0;
    m->weight_token_bytes = m->embd.row_bytes + matrix_slice_bytes(&m->eh_proj) +
                            matrix_slice_bytes(&m->output);
    m->weight_token_macs =
        m->eh_proj.n_rows * m->eh_proj.k + m->output.n_rows * m->output.k;
    if (!st)
        st = loader_tensors(l, m->arch->layer, layer, &m->layers[layer]);
    if (!st)
        st = loader_split_kv_b(l, &m->layers[layer]);
    if (st)
        return st;
    keep_only(m, layer);
    return ST_OK;
}
