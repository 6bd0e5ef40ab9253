/* SPDX-License-Identifier: MIT
 *
 * loader_recurrent.c - which layers have attention, which a recurrent part, and the
 * sizes of these
 */
#include "engine/arch/loader_impl.h"

#include <math.h>
#include <stdio.h>

#include "engine/kv/kvcache.h"

void loader_number_layers(struct model *m)
{
    m->n_attends = m->n_recurrent = m->n_cached = 0;
    for (int i = 0; i < m->n_layers; i++) {
        struct layer *y = &m->layers[i];

        m->n_attends += y->attends;
        y->cached = y->attends ? m->n_cached++ : 0;
        y->state = y->recurrent ? m->n_recurrent++ : 0;
    }
}

enum status loader_int_of_layer(struct loader *l, const char *key, int i, int *out)
{
    char full[96];
    uint64_t n;

    const struct gguf_kv *kv = loader_key(l, key, full, sizeof full);

    if (!kv || kv->n < (uint64_t)l->m->n_layers)
        return loader_fail(l, ST_INPUT,
                           "%s has no number for each of %d layers, which says what "
                           "these are",
                           full, l->m->n_layers);
    if (!gguf_elem_u64(kv, (uint64_t)i, &n) || n > MAX_WIDTH)
        return loader_fail(l, ST_INPUT, "%s of layer %d is no possible number", full,
                           i);
    *out = (int)n;
    return ST_OK;
}

enum status loader_real_of_layer(struct loader *l, const char *key, int i, float *out)
{
    char full[96];
    double x;

    snprintf(full, sizeof full, "%s.%s", l->m->arch->name, key);
    const struct gguf_kv *kv = gguf_kv_find(l->g, full);

    if (!kv || kv->n <= (uint64_t)i || !gguf_elem_f64(kv, (uint64_t)i, &x) ||
        !(x <= 1e6) || (x < -1e6 && x != -INFINITY))
        return loader_fail(l, ST_INPUT, "%s has no number for layer %d", full, i);
    *out = x == -INFINITY ? 0.0f : (float)x;
    return ST_OK;
}

enum status loader_int_at_layer(struct loader *l, const char *key, int min, int max,
                                int i, int *out)
{
    char full[96];
    int n = 0;

    snprintf(full, sizeof full, "%s.%s", l->m->arch->name, key);
    const struct gguf_kv *kv = gguf_kv_find(l->g, full);
    const enum status st = kv && kv->type == GGUF_ARRAY
                               ? loader_int_of_layer(l, key, i, &n)
                               : loader_int(l, key, min, max, &n);

    if (st)
        return st;
    if (n < min || n > max)
        return loader_fail(l, ST_INPUT,
                           "%s of layer %d is %d, and %d to %d is possible", full, i, n,
                           min, max);
    *out = n;
    return ST_OK;
}

enum status loader_layers_by_kv(struct loader *l, struct model *m)
{
    enum status st = ST_OK;

    for (int i = 0, n = 0; !st && i < m->n_layers; i++) {
        st = loader_int_of_layer(l, "attention.head_count_kv", i, &n);
        m->layers[i].attends = n > 0;
        m->layers[i].recurrent = n == 0;
    }
    loader_number_layers(m);
    return st;
}

enum status loader_recurrent(struct loader *l, struct model *m)
{
    struct recur_sizes *s = &m->recur;
    int inner;
    enum status st =
        loader_int(l, "ssm.state_size", 1, KVCACHE_MAX_HEAD_DIM, &s->key_dim);

    if (!st)
        st = loader_int(l, "ssm.group_count", 1, MAX_HEADS, &s->n_groups);
    if (!st)
        st = loader_int(l, "ssm.time_step_rank", 1, MAX_HEADS, &s->n_heads);
    if (!st)
        st = loader_int(l, "ssm.conv_kernel", 1, RECUR_MAX_CONV, &s->n_conv);
    if (!st)
        st = loader_int(l, "ssm.inner_size", 1, MAX_WIDTH, &inner);
    if (st)
        return st;
    if (s->n_heads % s->n_groups)
        return loader_fail(l, ST_INPUT,
                           "%d value heads cannot share %d key heads evenly",
                           s->n_heads, s->n_groups);
    if (s->kind == RECUR_DELTA && inner != s->n_heads * s->key_dim)
        return loader_fail(
            l, ST_UNSUPPORTED,
            "ssm.inner_size is %d, and only that of %d heads of %d is supported", inner,
            s->n_heads, s->key_dim);
    if (inner % s->n_heads || inner / s->n_heads > KVCACHE_MAX_HEAD_DIM)
        return loader_fail(l, ST_INPUT,
                           "ssm.inner_size is %d, and a multiple of %d heads is "
                           "possible, of up to %d elements each",
                           inner, s->n_heads, KVCACHE_MAX_HEAD_DIM);
    s->value_dim = inner / s->n_heads;
    return ST_OK;
}

enum status loader_ssm(struct loader *l, struct model *m)
{
    m->recur.kind = RECUR_SSM;
    m->recur.neighbours = true;
    const enum status st = loader_recurrent(l, m);

    for (int i = 0; i < m->n_layers; i++)
        m->layers[i].rec.norm.n_groups = m->recur.n_groups;
    return st;
}
