/* SPDX-License-Identifier: MIT
 *
 * loader_dims.c - what the dimensions of rules are in a model
 */
#include "engine/arch/loader_impl.h"

size_t loader_size_of(const struct model *m, const struct layer *y, enum dim d)
{
    const size_t head = (size_t)(y ? y->head_dim : m->head_dim);

    switch (d) {
    case DIM_EMBD:
        return (size_t)m->n_embd;
    case DIM_EMBD_2:
        return 2 * (size_t)m->n_embd;
    case DIM_FF:
        return (size_t)(y ? y->n_ff : m->n_ff);
    case DIM_Q:
        return (size_t)m->n_heads * head;
    case DIM_KV:
        return (size_t)(y ? y->n_kv_heads : m->n_kv_heads) * head;
    case DIM_HEAD:
        return head;
    case DIM_HEADS:
        return (size_t)m->n_heads;
    case DIM_KV_HEADS:
        return (size_t)(y ? y->n_kv_heads : m->n_kv_heads);
    case DIM_VOCAB:
        return (size_t)m->n_vocab;
    case DIM_CONTEXT:
        return (size_t)m->n_ctx_train;
    case DIM_TYPES:
        return (size_t)m->n_types;
    case DIM_DENSE_1:
        return (size_t)m->n_dense[0];
    case DIM_DENSE_2:
        return (size_t)m->n_dense[1];
    case DIM_EXPERTS:
        return (size_t)m->n_experts;
    case DIM_FF_SHARED:
        return (size_t)m->n_ff_shared;
    case DIM_Q_GATE:
        return 2 * (size_t)m->n_heads * head;
    case DIM_STREAMS:
        return (size_t)m->n_streams;
    case DIM_STREAMS_2:
        return (size_t)m->n_streams * (size_t)m->n_streams;
    case DIM_STREAMS_MORE:
        return (size_t)m->n_streams - 1;
    case DIM_LOW:
        return (size_t)m->n_low;
    case DIM_PER_LAYER:
        return (size_t)m->n_per_layer;
    case DIM_PER_LAYER_ROWS:
        return (size_t)m->n_per_layer_rows;
    case DIM_PER_LAYER_ALL:
        return (size_t)m->n_per_layer * (size_t)m->n_layers;
    case DIM_Q_RANK:
        return (size_t)m->latent.q_rank;
    case DIM_KV_RANK:
        return (size_t)m->latent.kv_rank;
    case DIM_LATENT_Q:
        return (size_t)m->n_heads * (size_t)(m->latent.key_dim + m->n_rot);
    case DIM_LATENT_KEY:
        return (size_t)m->latent.key_dim;
    case DIM_LATENT_VALUE:
        return (size_t)m->latent.value_dim;
    case DIM_LATENT_KV:
        return (size_t)m->n_heads * (size_t)(m->latent.key_dim + m->latent.value_dim);
    case DIM_LATENT_V:
        return (size_t)m->n_heads * (size_t)m->latent.value_dim;
    case DIM_REC_IN:
        return recur_in_rows(&m->recur);
    case DIM_REC_CHANNELS:
        return recur_channels(&m->recur);
    case DIM_REC_CONV:
        return (size_t)m->recur.n_conv;
    case DIM_REC_VALUES:
        return recur_values(&m->recur);
    case DIM_REC_VALUE:
        return (size_t)m->recur.value_dim;
    case DIM_REC_HEADS:
        return (size_t)m->recur.n_heads;
    case DIM_REC_HEADS_2:
        return 2 * (size_t)m->recur.n_heads;
    case DIM_REC_GROUPS:
        return (size_t)m->recur.n_groups;
    case DIM_REC_GROUP:
        return recur_values(&m->recur) / (size_t)m->recur.n_groups;
    case DIM_NONE:
    case DIM_ONE:
        break;
    }
    return 1;
}
