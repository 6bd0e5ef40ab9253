/* SPDX-License-Identifier: MIT
 *
 * synth_check.c - which shapes synthetic models can have
 */
#include <string.h>

#include "engine/synth/synth_parts.h"

enum status synth_check_range(const struct synth_shape *s, const char *what, uint32_t v,
                              uint32_t min, uint32_t max, struct err *err)
{
    if (v >= min && v <= max)
        return ST_OK;
    return err_set(err, ST_USAGE, "shape %s: %s is %u, it must be %u..%u", s->name,
                   what, v, min, max);
}

static bool table_has(const struct arch *arch, enum tensor_when when)
{
    for (const struct tensor_rule *r = arch->layer; r->name; r++)
        if (r->when == when)
            return true;
    return false;
}

/* All experts' rows together have the same limit as those of a dense part. */
static enum status check_experts(const struct synth_shape *s, struct err *err)
{
    const struct arch *arch = arch_by_name(s->arch, strlen(s->arch));
    const bool may = table_has(arch, WHEN_EXPERTS);
    bool shared = false, must = false; /* one that is scaled has a rule of its own */

    for (const struct tensor_rule *r = arch->layer; r->name; r++) {
        shared |= r->part[0].rows == DIM_FF_SHARED;
        must |= r->part[0].field == offsetof(struct layer, shared_router);
    }
    if (s->n_experts == 0 && may && !table_has(arch, WHEN_DENSE))
        return err_set(err, ST_USAGE,
                       "shape %s: n_experts is missing, which '%s' needs", s->name,
                       s->arch);
    if (s->n_experts && !may)
        return err_set(err, ST_USAGE, "shape %s: '%s' has no experts", s->name,
                       s->arch);
    if (synth_check_range(s, "n_experts", s->n_experts, 0, SYNTH_MAX_EXPERTS, err) ||
        (s->n_experts && synth_check_range(s, "n_experts_used", s->n_experts_used, 1,
                                           s->n_experts, err)) ||
        (s->n_experts &&
         synth_check_range(s, "n_ff", s->n_ff, 1, (1u << 20) / s->n_experts, err)))
        return ST_USAGE;
    /* The first layers may lack experts, where both kinds have rules. */
    const bool dense = s->n_experts && table_has(arch, WHEN_DENSE);

    if (synth_check_range(s, "n_dense", s->n_dense, 0, dense ? s->n_layers - 1 : 0,
                          err) ||
        synth_check_range(s, "n_ff_dense", s->n_ff_dense, s->n_dense > 0,
                          s->n_dense ? 1u << 20 : 0, err))
        return ST_USAGE;
    if (!(s->router_skew >= 0 && s->router_skew <= SYNTH_MAX_SKEW))
        return err_set(err, ST_USAGE,
                       "shape %s: router_skew is %g, it must be within 0 and %g",
                       s->name, (double)s->router_skew, (double)SYNTH_MAX_SKEW);
    if (s->router_skew > 0 && !synth_can_skew(s))
        return err_set(err, ST_USAGE,
                       "shape %s: its routers can have no skew, since that takes "
                       "experts, n_embd in whole blocks of %d, four at least, as well "
                       "as n_heads * head_dim, and an output matrix of its own",
                       s->name, SYNTH_UNIT_ELEMS);
    return synth_check_range(s, "n_ff_shared", s->n_ff_shared, must,
                             shared && s->n_experts ? 1u << 20 : 0, err);
}

static enum status check_delta(const struct synth_shape *s, bool has, struct err *err)
{
    const uint32_t least = has;

    if (synth_check_range(s, "full_attention_interval", s->full_attention_interval,
                          least, has ? s->n_layers : 0, err) ||
        synth_check_range(s, "n_delta_k_heads", s->n_delta_k_heads, least,
                          has ? MAX_HEADS : 0, err) ||
        synth_check_range(s, "n_delta_v_heads", s->n_delta_v_heads, least,
                          has ? MAX_HEADS : 0, err) ||
        synth_check_range(s, "delta_head_dim", s->delta_head_dim, least,
                          has ? 1u << 12 : 0, err) ||
        synth_check_range(s, "n_delta_conv", s->n_delta_conv, least,
                          has ? RECUR_MAX_CONV : 0, err))
        return ST_USAGE;
    if (has && s->n_delta_v_heads % s->n_delta_k_heads)
        return err_set(err, ST_USAGE,
                       "shape %s: n_delta_v_heads %u is no multiple of "
                       "n_delta_k_heads %u",
                       s->name, s->n_delta_v_heads, s->n_delta_k_heads);
    return ST_OK;
}

static enum status check_ssm(const struct synth_shape *s, bool has, struct err *err)
{
    const uint32_t least = has, most = has ? MAX_HEADS : 0;

    if (synth_check_range(s, "n_ssm_groups", s->n_ssm_groups, least, most, err) ||
        synth_check_range(s, "n_ssm_heads", s->n_ssm_heads, least, most, err) ||
        synth_check_range(s, "ssm_head_dim", s->ssm_head_dim, least, most, err) ||
        synth_check_range(s, "ssm_state_dim", s->ssm_state_dim, least, most, err))
        return ST_USAGE;
    if (has && s->n_ssm_heads % s->n_ssm_groups)
        return err_set(err, ST_USAGE,
                       "shape %s: n_ssm_heads %u is no multiple of n_ssm_groups %u",
                       s->name, s->n_ssm_heads, s->n_ssm_groups);
    return ST_OK;
}

/* A list of layers that attend, where the architecture has others that do not. */
static enum status check_list(const struct synth_shape *s, bool has, struct err *err)
{
    uint32_t n = 0;

    for (uint32_t l = 0; l < s->n_layers; l++)
        n += synth_lists(s, l);
    if (has == (n > 0) && (has || !s->attention_layers[0]))
        return ST_OK;
    return has ? err_set(err, ST_USAGE,
                         "shape %s: attention_layers is '%s', and it must have numbers "
                         "of layers from 0 to %u",
                         s->name, s->attention_layers, s->n_layers - 1)
               : err_set(err, ST_USAGE, "shape %s: '%s' has no attention_layers",
                         s->name, s->arch);
}

/* The sizes of recurrent layers: all of them, or none where the architecture has none.
 */
static enum status check_recurrent(const struct synth_shape *s, struct err *err)
{
    const struct arch *arch = arch_by_name(s->arch, strlen(s->arch));
    enum recurrence kind = RECUR_DELTA;
    const bool has = synth_recurrence(arch, &kind);
    const bool convolves = has && kind != RECUR_DELTA;

    if (check_delta(s, has && kind == RECUR_DELTA, err) ||
        check_ssm(s, has && kind == RECUR_SSM, err) ||
        check_list(s, convolves && table_has(arch, WHEN_ATTENTION), err))
        return ST_USAGE;
    return synth_check_range(s, "n_conv", s->n_conv, convolves,
                             convolves ? RECUR_MAX_CONV : 0, err);
}

/* Shapes cannot say which layers have only a feed-forward part. */
static bool can_be_made(const struct synth_shape *s)
{
    return arch_by_name(s->arch, strlen(s->arch)) &&
           strncmp(s->arch, "nemotron_h", 10) != 0;
}

/* The limits admit every known model and keep all sizes far from
 * overflow: 2^12 layers of 3 * 2^18 * 2^20 weights of 4 bytes are under 2^54. */
enum status synth_check_shape(const struct synth_shape *s, struct err *err)
{
    char known[700];

    if (!can_be_made(s))
        return err_set(err, ST_UNSUPPORTED,
                       "shape %s: synthetic models of architecture '%s' cannot be "
                       "made, only of: %s",
                       s->name, s->arch, arch_names(known, sizeof known));
    if (synth_check_range(s, "n_layers", s->n_layers, 1, 1u << 12, err) ||
        synth_check_range(s, "n_embd", s->n_embd, 1, 1u << 18, err) ||
        synth_check_range(s, "n_ff", s->n_ff, 1, 1u << 20, err) ||
        synth_check_range(s, "n_heads", s->n_heads, 1, 1u << 12, err) ||
        synth_check_range(s, "n_kv_heads", s->n_kv_heads, 1, s->n_heads, err) ||
        synth_check_range(s, "head_dim", s->head_dim, 2, 1u << 12, err) ||
        synth_check_range(s, "n_vocab", s->n_vocab, SYNTH_MIN_VOCAB, 1u << 22, err) ||
        synth_check_range(s, "n_ctx_train", s->n_ctx_train, 1, 1u << 30, err))
        return ST_USAGE;
    if (s->n_heads % s->n_kv_heads)
        return err_set(err, ST_USAGE,
                       "shape %s: n_heads %u is no multiple of n_kv_heads %u", s->name,
                       s->n_heads, s->n_kv_heads);
    if (check_experts(s, err) || check_recurrent(s, err) ||
        synth_check_latent(s, err) || synth_check_kinds(s, err) ||
        synth_check_pooling(s, arch_by_name(s->arch, strlen(s->arch)), err) ||
        synth_check_range(s, "n_nextn", s->n_nextn, 0,
                          arch_by_name(s->arch, strlen(s->arch))->may_predict ? 1 : 0,
                          err))
        return ST_USAGE;
    if (s->head_dim % 2)
        return err_set(err, ST_USAGE,
                       "shape %s: head_dim is %u, rotary embedding needs an even one",
                       s->name, s->head_dim);
    if (s->n_rot % 2 || s->n_rot > s->head_dim)
        return err_set(err, ST_USAGE,
                       "shape %s: n_rot is %u, it must be even and at most head_dim %u",
                       s->name, s->n_rot, s->head_dim);
    if (!(s->rope_base > 1 && s->rope_base < 1e12F))
        return err_set(err, ST_USAGE,
                       "shape %s: rope_base is %g, it must be above 1 and below 1e12",
                       s->name, (double)s->rope_base);
    if (!(s->norm_eps > 0 && s->norm_eps < 1))
        return err_set(err, ST_USAGE,
                       "shape %s: norm_eps is %g, it must be within 0 and 1", s->name,
                       (double)s->norm_eps);
    return ST_OK;
}
