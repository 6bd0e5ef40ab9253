/* SPDX-License-Identifier: MIT
 *
 * synth_latent.c - latent attention: its sizes and keys
 */
#include <string.h>

#include "engine/synth/synth_parts.h"

/* Whether files of the architecture have the matrices of keys and values in one. */
static bool is_joint(const struct arch *arch)
{
    for (const struct tensor_rule *r = arch->layer; r->name; r++)
        if (r->part[0].field == offsetof(struct layer, lat.kv_b))
            return !r->optional;
    return false;
}

void synth_latent_sizes(const struct synth_shape *s, struct model *m)
{
    if (s->kv_rank == 0)
        return;
    m->n_rot = (int)s->n_rot;
    m->latent = (struct latent_sizes){.q_rank = (int)s->q_rank,
                                      .kv_rank = (int)s->kv_rank,
                                      .key_dim = (int)(s->head_dim - s->n_rot),
                                      .value_dim = (int)s->value_dim};
    m->n_kv_heads = 1;
    m->head_dim = (int)(s->kv_rank + s->n_rot);
}

/* Files with split matrices describe attention over latents, and the heads by keys of
 * their own. */
void synth_put_latent(struct gguf_kvs *k, const struct synth_shape *s,
                      const struct model *m)
{
    const bool joint = is_joint(m->arch);

    if (s->q_rank)
        synth_put_u32(k, s, "attention.q_lora_rank", s->q_rank);
    synth_put_u32(k, s, "attention.kv_lora_rank", s->kv_rank);
    synth_put_u32(k, s, "attention.head_count_kv", joint ? s->n_heads : 1);
    synth_put_u32(k, s, "attention.key_length",
                  joint ? s->head_dim : s->kv_rank + s->n_rot);
    synth_put_u32(k, s, "attention.value_length", joint ? s->value_dim : s->kv_rank);
    if (!joint) {
        synth_put_u32(k, s, "attention.key_length_mla", s->head_dim);
        synth_put_u32(k, s, "attention.value_length_mla", s->value_dim);
    }
    if (s->n_ff_shared && s->n_ff_shared % s->n_ff == 0)
        synth_put_u32(k, s, "expert_shared_count", s->n_ff_shared / s->n_ff);
}

enum status synth_check_latent(const struct synth_shape *s, struct err *err)
{
    const struct arch *arch = arch_by_name(s->arch, strlen(s->arch));

    if (!arch->latent)
        return s->kv_rank || s->q_rank || s->value_dim
                   ? err_set(err, ST_USAGE,
                             "shape %s: '%s' has no latent attention, so no q_rank, "
                             "kv_rank and value_dim",
                             s->name, s->arch)
                   : ST_OK;
    if (s->kv_rank < 16 || s->kv_rank % 16 || s->kv_rank > MAX_HEADS / 2)
        return err_set(err, ST_USAGE,
                       "shape %s: kv_rank is %u, and a multiple of 16 up to %d is "
                       "possible",
                       s->name, s->kv_rank, MAX_HEADS / 2);
    if (s->q_rank > 1u << 18 || s->value_dim < 1 || s->value_dim > MAX_HEADS)
        return err_set(err, ST_USAGE,
                       "shape %s: q_rank is %u and value_dim %u, they must be up to %u "
                       "and 1..%d",
                       s->name, s->q_rank, s->value_dim, 1u << 18, MAX_HEADS);
    if (s->n_rot < 2 || s->n_rot >= s->head_dim || s->n_rot > MAX_HEADS / 2)
        return err_set(err, ST_USAGE,
                       "shape %s: n_rot is %u, and with latent attention it must be "
                       "below head_dim %u",
                       s->name, s->n_rot, s->head_dim);
    return ST_OK;
}
