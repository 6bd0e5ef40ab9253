/* SPDX-License-Identifier: MIT
 *
 * synth_embed.c - what shapes of embedding models have besides
 */
#include <string.h>

#include "engine/synth/synth_parts.h"

static const struct {
    const char *name;
    enum slm_pooling pooling;
} poolings[] = {
    {"mean", SLM_POOLING_MEAN}, {"cls", SLM_POOLING_FIRST}, {"last", SLM_POOLING_LAST}};

enum { N_POOLINGS = sizeof poolings / sizeof poolings[0] };

/* Its index; N_POOLINGS: none. */
static int find_pooling(const struct synth_shape *s)
{
    int i = 0;

    while (i < N_POOLINGS && strcmp(s->pooling, poolings[i].name) != 0)
        i++;
    return i;
}

static bool has_dense(const struct arch *arch)
{
    for (const struct tensor_rule *r = arch->ends; r->name; r++)
        if (r->part[0].field == offsetof(struct model, dense[0]))
            return true;
    return false;
}

enum status synth_check_pooling(const struct synth_shape *s, const struct arch *arch,
                                struct err *err)
{
    if (s->pooling[0] ? find_pooling(s) == N_POOLINGS : arch->encodes)
        return err_set(err, ST_USAGE,
                       "shape %s: pooling is '%s', and it must be mean, cls or last",
                       s->name, s->pooling);
    if (arch->encodes && !s->tied_output)
        return err_set(err, ST_USAGE,
                       "shape %s: '%s' has no output matrix, so tied_output must be "
                       "yes",
                       s->name, s->arch);
    if (s->n_pool_ff > (has_dense(arch) ? 1u << 20 : 0))
        return err_set(err, ST_USAGE,
                       "shape %s: n_pool_ff is %u, and '%s' can have %u at most",
                       s->name, s->n_pool_ff, s->arch, has_dense(arch) ? 1u << 20 : 0);
    return ST_OK;
}

void synth_put_pooling(struct gguf_kvs *k, const struct synth_shape *s,
                       const struct arch *arch)
{
    if (arch->encodes)
        synth_put_bool(k, s, "attention.causal", false);
    if (s->pooling[0])
        synth_put_u32(k, s, "pooling_type", poolings[find_pooling(s)].pooling);
    if (s->n_pool_ff == 0)
        return;
    synth_put_u32(k, s, "dense_2_feat_in", s->n_embd);
    synth_put_u32(k, s, "dense_2_feat_out", s->n_pool_ff);
    synth_put_u32(k, s, "dense_3_feat_in", s->n_pool_ff);
    synth_put_u32(k, s, "dense_3_feat_out", s->n_embd);
}
