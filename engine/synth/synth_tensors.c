/* SPDX-License-Identifier: MIT
 *
 * synth_tensors.c - the tensors of a synthetic model: which, in which formats, and how
 * far their weights spread
 *
 * The standard deviation of the weights keeps activations near unit variance. Every
 * branch of a layer starts from a normalised vector, so a matrix with n columns and a
 * standard deviation of 1/sqrt(n) gives outputs of unit variance: queries, keys,
 * values, gate and up. The two matrices that write to the residual stream have another
 * factor 1/sqrt(2 * n_layers), so that all branches of all layers together add about
 * unit variance at any depth; ffn_down and ssm_out also compensate for silu(gate) * up
 * (its variance is 0.36 for normal inputs). The output matrix gives logits a standard
 * deviation of LOGIT_STD. A tied embedding is the output matrix too, so it has that
 * deviation; a separate one has 1. In recurrent layers the convolution keeps unit
 * variance, and states decay by about a half with each token.
 */
#include "engine/synth/synth_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGIT_STD   2.0
#define SILU_GAIN   1.68 /* 1/sqrt(0.356) */
#define NORM_SPREAD 0.05F

/* Index of the pool for this content and format; n_units more use it. */
static int use_pool(struct synth_plan *p, const struct synth_pool_spec *want,
                    uint64_t n_units)
{
    struct synth_pool_spec *spec = p->pools;
    int i = 0;

    for (; i < p->n_pools; i++, spec++) {
        if (spec->content == want->content && spec->fmt == want->fmt &&
            spec->mean == want->mean && spec->sigma == want->sigma)
            break;
    }
    if (i == p->n_pools) {
        if (p->n_pools == SYNTH_MAX_POOLS)
            return -1;
        *spec = *want;
        spec->n_units = 1;
        p->n_pools++;
    }
    /* No more units than the model has, so that small models are quick. */
    while (want->content == SYNTH_GAUSS && spec->n_units < SYNTH_POOL_UNITS &&
           spec->n_units < n_units)
        spec->n_units *= 2;
    return i;
}

static enum status add_tensor(struct synth_plan *p, const struct synth_tensor *t,
                              struct synth_pool_spec pool, struct err *err)
{
    const uint64_t n_elems = t->ne[0] * t->ne[1] * t->ne[2];

    if (p->n_tensors == p->cap_tensors) {
        const size_t cap = p->cap_tensors ? p->cap_tensors * 2 : 64;
        struct synth_tensor *grown = realloc(p->tensors, cap * sizeof *grown);

        if (!grown)
            return err_set(err, ST_NO_MEMORY, "shape %s: no memory for its tensor list",
                           p->shape.name);
        p->tensors = grown;
        p->cap_tensors = cap;
    }
    struct synth_tensor *added = &p->tensors[p->n_tensors];

    *added = *t;
    added->bytes = kern_format_bytes(t->fmt, n_elems);
    added->offset = p->data_bytes;
    pool.fmt = t->fmt;
    pool.unit_bytes = (uint32_t)(pool.content == SYNTH_ROPE_FREQS
                                     ? added->bytes
                                     : kern_format_bytes(t->fmt, SYNTH_UNIT_ELEMS));
    struct synth_pool_spec pools[SYNTH_N_PARTS] = {pool, pool, pool};

    synth_layout_pools(&p->shape, t->layout, pools);
    for (int i = 0; i < (t->layout == SYNTH_PLAIN ? 1 : SYNTH_N_PARTS); i++) {
        added->pool[i] =
            use_pool(p, &pools[i], (n_elems + SYNTH_UNIT_ELEMS - 1) / SYNTH_UNIT_ELEMS);
        if (added->pool[i] < 0)
            return err_set(err, ST_USAGE, "shape %s: more than %d kinds of weights",
                           p->shape.name, SYNTH_MAX_POOLS);
    }
    p->n_tensors++;
    p->n_params += n_elems;
    p->data_bytes += gguf_put_aligned(added->bytes);
    return ST_OK;
}

/* "blk.3.attn_q.weight", or without a layer for -1. */
static void set_name(struct synth_tensor *t, int layer, const char *name)
{
    t->layer = layer;
    if (layer >= 0)
        snprintf(t->name, sizeof t->name, "blk.%d.%s", layer, name);
    else
        snprintf(t->name, sizeof t->name, "%s", name);
}

/* ne[2] matrices of ne[1] rows of ne[0] weights N(0, sigma^2), in the format of the
 * mix.
 */
static enum status add_matrix(struct synth_plan *p, int layer, const char *name,
                              const uint64_t *ne, double sigma, struct err *err)
{
    struct synth_tensor t = {.n_dims = ne[2] > 1 ? 3 : 2, .ne = {ne[0], ne[1], ne[2]}};

    set_name(&t, layer, name);
    t.layout = synth_layout_of(&p->shape, name);
    t.head_dim = p->shape.head_dim;
    synth_near_pairs(&p->shape, t.near);
    t.halves =
        arch_by_name(p->shape.arch, strlen(p->shape.arch))->pairs == PAIRS_HALVES;

    const struct quantmix_tensor q = {.name = t.name,
                                      .layer = layer,
                                      .n_layers = (int)p->shape.n_layers,
                                      .n_heads = (int)p->shape.n_heads,
                                      .n_kv_heads = (int)p->shape.n_kv_heads,
                                      .n_experts = (int)p->shape.n_experts,
                                      .n_dims = t.n_dims,
                                      .row_elems = ne[0],
                                      .tied_output = p->shape.tied_output};
    const struct synth_pool_spec pool = {.content = SYNTH_GAUSS, .sigma = (float)sigma};

    t.fmt = synth_is_plain(name) ? KERN_FMT_bf16 : quantmix_format(p->mix, &q);
    return add_tensor(p, &t, pool, err);
}

/* Biases, and what mixes streams. */
static bool is_around_0(const char *name)
{
    return strstr(name, ".bias") || strstr(name, "_coef.") ||
           !strncmp(name, "altup_router.", 13);
}

/* Norms are around 1, biases around 0; n_rows of n each, of several heads or experts.
 */
static enum status add_vectors(struct synth_plan *p, int layer, const char *name,
                               uint64_t n, uint64_t n_rows, enum synth_content content,
                               struct err *err)
{
    struct synth_tensor t = {
        .n_dims = n_rows > 1 ? 2 : 1, .ne = {n, n_rows, 1}, .fmt = KERN_FMT_f32};
    const struct synth_pool_spec pool = {
        .content = content, .mean = is_around_0(name) ? 0 : 1, .sigma = NORM_SPREAD};

    set_name(&t, layer, name);
    return add_tensor(p, &t, pool, err);
}

static enum status add_vector(struct synth_plan *p, int layer, const char *name,
                              uint64_t n, enum synth_content content, struct err *err)
{
    return add_vectors(p, layer, name, n, 1, content, err);
}

/* What recurrent layers have: taps of the convolution [n_channels][n_taps], and how
 * fast states decay, below 0. */
static enum status add_taps(struct synth_plan *p, int layer, const char *name,
                            uint64_t n_taps, uint64_t n_channels, struct err *err)
{
    struct synth_tensor t = {
        .n_dims = 2, .ne = {n_taps, n_channels, 1}, .fmt = KERN_FMT_f32};
    const struct synth_pool_spec pool = {.content = SYNTH_GAUSS,
                                         .sigma = 1 / sqrtf((float)n_taps)};

    set_name(&t, layer, name);
    return add_tensor(p, &t, pool, err);
}

static enum status add_decay(struct synth_plan *p, int layer, const char *name,
                             const uint64_t *ne, struct err *err)
{
    struct synth_tensor t = {
        .n_dims = ne[1] > 1 ? 2 : 1, .ne = {ne[0], ne[1], 1}, .fmt = KERN_FMT_f32};
    const struct synth_pool_spec pool = {
        .content = SYNTH_GAUSS, .mean = -1, .sigma = NORM_SPREAD};

    set_name(&t, layer, name);
    return add_tensor(p, &t, pool, err);
}

/* Whether the layer whose tensors begin at index `first` has the tensor name. */
static bool has_tensor(const struct synth_plan *p, size_t first, int layer,
                       const char *name)
{
    struct synth_tensor wanted;

    set_name(&wanted, layer, name);
    for (size_t i = first; i < p->n_tensors; i++)
        if (!strcmp(p->tensors[i].name, wanted.name))
            return true;
    return false;
}

static bool is_input_bias(const char *name)
{
    return !strncmp(name, "attn_", 5) && strcmp(name, "attn_output.bias");
}

/* Which optional tensors to make: fused matrices, the norm that only parallel models
 * lack, and biases if the shape has them. */
static bool is_wanted(const struct synth_plan *p, const struct model *m,
                      const struct layer *y, size_t first, int layer,
                      const struct tensor_rule *r)
{
    if (!loader_is_for(m, y, r->when) || has_tensor(p, first, layer, r->name) ||
        (r->unless && has_tensor(p, first, layer, r->unless)))
        return false;
    if (!r->optional)
        return true;
    if (r->part[0].field == offsetof(struct layer, wv) && r->part[1].rows == DIM_NONE)
        return y->window || !p->shape.keys_as_values;
    if (r->part[0].field == offsetof(struct layer, out_scale))
        return true;
    if (r->kind == TENSOR_MATRIX)
        return r->part[1].rows != DIM_NONE;
    if (strstr(r->name, "norm"))
        return !strncmp(r->name, "ffn_norm.", 9) || !strncmp(r->name, "ssm_norm.", 9);
    if (!strstr(r->name, ".bias") ||
        r->part[0].field == offsetof(struct layer, b_choice))
        return false;
    return p->shape.all_bias || (p->shape.qkv_bias && is_input_bias(r->name));
}

/* Standard deviation of a matrix with rows of k weights. */
static double spread_of(const struct synth_plan *p, const struct tensor_rule *r,
                        uint64_t k)
{
    const double in = 1 / sqrt((double)k), branch = 1 / sqrt(2.0 * p->shape.n_layers);

    if (r->part[0].field == offsetof(struct layer, wo))
        return in * branch;
    return r->part[0].field == offsetof(struct layer, down) ||
                   r->part[0].field == offsetof(struct layer, rec.out) ||
                   r->part[0].field == offsetof(struct layer, shared_down)
               ? SILU_GAIN * in * branch
               : in;
}

static enum status add_layer(struct synth_plan *p, const struct model *m, int l,
                             struct err *err)
{
    const struct layer y = synth_layer(&p->shape, l);
    const size_t first = p->n_tensors;

    for (const struct tensor_rule *r = m->arch->layer; r->name; r++) {
        uint64_t ne[3];
        enum status st;

        if (!is_wanted(p, m, &y, first, l, r))
            continue;
        loader_shape(m, &y, r, ne);
        if (r->k == DIM_REC_CONV)
            st = add_taps(p, l, r->name, ne[0], ne[1], err);
        else if (r->part[0].field == offsetof(struct layer, rec.a))
            st = add_decay(p, l, r->name, ne, err);
        else if (r->kind == TENSOR_VECTOR)
            st = add_vectors(p, l, r->name, ne[0], ne[1], SYNTH_GAUSS, err);
        else
            st = add_matrix(p, l, r->name, ne, spread_of(p, r, ne[0]), err);
        if (st)
            return st;
    }
    return ST_OK;
}

/* A layer that predicts further tokens: what joins a token's embedding with a hidden
 * state, and a layer like the last that attends. */
static enum status add_nextn(struct synth_plan *p, const struct model *m, int l,
                             struct err *err)
{
    const uint64_t n = p->shape.n_embd, ne[3] = {2 * n, n, 1};

    if (add_matrix(p, l, "nextn.eh_proj.weight", ne, 1 / sqrt(2.0 * (double)n), err) ||
        add_vector(p, l, "nextn.enorm.weight", n, SYNTH_GAUSS, err) ||
        add_vector(p, l, "nextn.hnorm.weight", n, SYNTH_GAUSS, err) ||
        add_vector(p, l, "nextn.shared_head_norm.weight", n, SYNTH_GAUSS, err))
        return err->code;
    return add_layer(p, m, l, err);
}

struct model synth_sizes(const struct synth_shape *s)
{
    const struct arch *arch = arch_by_name(s->arch, strlen(s->arch));

    struct model m = {.arch = arch,
                      .recur = synth_recur_sizes(s, arch),
                      .n_layers = (int)s->n_layers,
                      .n_embd = (int)s->n_embd,
                      .n_ff = (int)s->n_ff,
                      .n_ff_shared = (int)s->n_ff_shared,
                      .n_experts = (int)s->n_experts,
                      .n_experts_used = (int)s->n_experts_used,
                      .n_per_layer = (int)s->n_per_layer,
                      .n_per_layer_rows = (int)s->n_vocab,
                      .n_streams = (int)s->n_streams,
                      .n_low = (int)s->n_low,
                      .n_heads = (int)s->n_heads,
                      .n_kv_heads = (int)s->n_kv_heads,
                      .head_dim = (int)s->head_dim,
                      .n_vocab = (int)s->n_vocab,
                      .n_ctx_train = (int)s->n_ctx_train,
                      .n_types = 2,
                      .n_dense = {(int)s->n_pool_ff, (int)s->n_embd}};

    synth_latent_sizes(s, &m);
    return m;
}

/* The tensor of the architecture's ends for this field of struct model; NULL: none. */
static const char *end_name(const struct arch *arch, size_t field)
{
    for (const struct tensor_rule *r = arch->ends; r->name; r++)
        if (r->part[0].field == field)
            return r->name;
    return NULL;
}

static bool has_end(const struct arch *arch, size_t field)
{
    return end_name(arch, field) != NULL;
}

/* A tensor of the ends: rows that are looked up have a length of 1. */
static enum status add_end(struct synth_plan *p, const struct model *m,
                           const struct tensor_rule *r, struct err *err)
{
    uint64_t ne[3];

    loader_shape(m, NULL, r, ne);
    if (r->kind == TENSOR_VECTOR)
        return add_vector(p, -1, r->name, ne[0], SYNTH_GAUSS, err);
    return add_matrix(
        p, -1, r->name, ne,
        1 / sqrt((double)(r->kind == TENSOR_TABLE ? p->shape.n_per_layer : ne[0])),
        err);
}

/* What is added to embeddings, and the norm of that. */
static enum status add_front(struct synth_plan *p, const struct model *m,
                             struct err *err)
{
    for (const struct tensor_rule *r = m->arch->ends; r->name; r++) {
        const size_t field = r->part[0].field;
        enum status st = ST_OK;
        uint64_t ne[3];

        loader_shape(m, NULL, r, ne);
        if (field == offsetof(struct model, pos_embd) ||
            field == offsetof(struct model, type_embd))
            st = add_matrix(p, -1, r->name, ne, 1, err);
        else if (field == offsetof(struct model, embd_norm.w) ||
                 field == offsetof(struct model, embd_norm.b))
            st = add_vector(p, -1, r->name, ne[0], SYNTH_GAUSS, err);
        if (st)
            return st;
    }
    return ST_OK;
}

/* The matrices behind the pooling. */
static enum status add_dense(struct synth_plan *p, const struct model *m,
                             struct err *err)
{
    for (const struct tensor_rule *r = m->arch->ends; r->name; r++) {
        uint64_t ne[3];

        loader_shape(m, NULL, r, ne);
        if ((r->part[0].field == offsetof(struct model, dense[0]) ||
             r->part[0].field == offsetof(struct model, dense[1])) &&
            add_matrix(p, -1, r->name, ne, 1 / sqrt((double)ne[0]), err))
            return err->code;
    }
    return ST_OK;
}

enum status synth_add_tensors(struct synth_plan *p, struct err *err)
{
    const struct synth_shape *s = &p->shape;
    const struct model m = synth_sizes(s);
    const double logits = LOGIT_STD / sqrt((double)s->n_embd);
    const uint64_t n_rot = s->n_rot ? s->n_rot : s->head_dim;
    const bool biased = has_end(m.arch, offsetof(struct model, output_norm.b));
    const uint64_t ends[3] = {s->n_embd, s->n_vocab, 1};
    const char *norm = end_name(m.arch, offsetof(struct model, output_norm.w));

    if (add_matrix(p, -1, "token_embd.weight", ends, s->tied_output ? logits : 1, err))
        return err->code;
    if (add_front(p, &m, err))
        return err->code;
    if (s->rope_freqs &&
        add_vector(p, -1, "rope_freqs.weight", n_rot / 2, SYNTH_ROPE_FREQS, err))
        return err->code;
    for (const struct tensor_rule *r = NULL; (r = synth_next_end(&m, r)) != NULL;)
        if (add_end(p, &m, r, err))
            return err->code;
    for (uint32_t l = 0; l < s->n_layers; l++) {
        if (add_layer(p, &m, (int)l, err))
            return err->code;
    }
    for (uint32_t l = 0; l < s->n_nextn; l++) {
        if (add_nextn(p, &m, (int)(s->n_layers + l), err))
            return err->code;
    }
    if ((norm && add_vector(p, -1, norm, s->n_embd, SYNTH_GAUSS, err)) ||
        (biased &&
         add_vector(p, -1, "output_norm.bias", s->n_embd, SYNTH_GAUSS, err)) ||
        (s->n_pool_ff && add_dense(p, &m, err)) ||
        (!s->tied_output && add_matrix(p, -1, "output.weight", ends, logits, err)) ||
        ((!strcmp(s->arch, "phi2") || !strcmp(s->arch, "phimoe")) &&
         add_vector(p, -1, "output.bias", s->n_vocab, SYNTH_GAUSS, err)))
        return err->code;
    return ST_OK;
}
