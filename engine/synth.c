/* SPDX-License-Identifier: MIT
 *
 * synth.c - the plan of a synthetic model: tensors, their formats, the header
 *
 * How the spread of the weights keeps activations sane. Every branch of a layer
 * starts from a normalised vector, so a matrix with n columns and a standard
 * deviation of 1/sqrt(n) gives outputs of unit variance: queries, keys, values,
 * gate and up are such. The two matrices that write back into the residual
 * stream carry another 1/sqrt(2 * n_layers), so that all branches of all layers
 * together add about unit variance, whatever the depth; ffn_down also undoes
 * what silu(gate) * up takes away (its variance is 0.36 for normal inputs).
 * The output matrix spreads the logits by LOGIT_STD. A tied embedding serves as
 * output too, so it has that spread; a separate one has 1.
 */
#include "engine/synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/synth_parts.h"

#define LOGIT_STD   2.0
#define SILU_GAIN   1.68 /* 1/sqrt(0.356) */
#define NORM_SPREAD 0.05F

/* ---- checks --------------------------------------------------------------- */

static enum status check_range(const struct synth_shape *s, const char *what,
                               uint32_t v, uint32_t min, uint32_t max, struct err *err)
{
    if (v >= min && v <= max)
        return ST_OK;
    return err_set(err, ST_USAGE, "shape %s: %s is %u, it must be %u..%u", s->name,
                   what, v, min, max);
}

/* The limits leave room for every known model and keep all sizes far from
 * overflow: 2^12 layers of 3 * 2^18 * 2^20 weights of 4 bytes are under 2^54. */
static enum status check_shape(const struct synth_shape *s, struct err *err)
{
    if (strcmp(s->arch, "llama"))
        return err_set(
            err, ST_UNSUPPORTED,
            "shape %s: synthetic models of architecture '%s' cannot be made, "
            "only of: llama",
            s->name, s->arch);
    if (check_range(s, "n_layers", s->n_layers, 1, 1u << 12, err) ||
        check_range(s, "n_embd", s->n_embd, 1, 1u << 18, err) ||
        check_range(s, "n_ff", s->n_ff, 1, 1u << 20, err) ||
        check_range(s, "n_heads", s->n_heads, 1, 1u << 12, err) ||
        check_range(s, "n_kv_heads", s->n_kv_heads, 1, s->n_heads, err) ||
        check_range(s, "head_dim", s->head_dim, 2, 1u << 12, err) ||
        check_range(s, "n_vocab", s->n_vocab, SYNTH_MIN_VOCAB, 1u << 22, err) ||
        check_range(s, "n_ctx_train", s->n_ctx_train, 1, 1u << 30, err))
        return ST_USAGE;
    if (s->n_heads % s->n_kv_heads)
        return err_set(err, ST_USAGE,
                       "shape %s: n_heads %u is no multiple of n_kv_heads %u", s->name,
                       s->n_heads, s->n_kv_heads);
    if (s->head_dim % 2)
        return err_set(err, ST_USAGE,
                       "shape %s: head_dim is %u, rotary embedding needs an even one",
                       s->name, s->head_dim);
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

/* ---- tensors -------------------------------------------------------------- */

/* Index of the pool for this content and format, which serves n_units more. */
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
    /* No more units than the model has of them, so that small models are quick. */
    while (want->content == SYNTH_GAUSS && spec->n_units < SYNTH_POOL_UNITS &&
           spec->n_units < n_units)
        spec->n_units *= 2;
    return i;
}

static enum status add_tensor(struct synth_plan *p, const struct synth_tensor *t,
                              struct synth_pool_spec pool, struct err *err)
{
    const uint64_t n_elems = t->ne[0] * t->ne[1];

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
    added->pool =
        use_pool(p, &pool, (n_elems + SYNTH_UNIT_ELEMS - 1) / SYNTH_UNIT_ELEMS);
    if (added->pool < 0)
        return err_set(err, ST_USAGE, "shape %s: more than %d kinds of weights",
                       p->shape.name, SYNTH_MAX_POOLS);
    p->n_tensors++;
    p->n_params += n_elems;
    p->data_bytes += gguf_put_aligned(added->bytes);
    return ST_OK;
}

/* rows x row_elems weights N(0, sigma^2), in the format the mix gives. */
static enum status add_matrix(struct synth_plan *p, int layer, const char *part,
                              uint64_t row_elems, uint64_t rows, double sigma,
                              struct err *err)
{
    struct synth_tensor t = {.n_dims = 2, .ne = {row_elems, rows}};

    if (layer >= 0)
        snprintf(t.name, sizeof t.name, "blk.%d.%s.weight", layer, part);
    else
        snprintf(t.name, sizeof t.name, "%s.weight", part);

    const struct quantmix_tensor q = {.name = t.name,
                                      .layer = layer,
                                      .n_layers = (int)p->shape.n_layers,
                                      .n_heads = (int)p->shape.n_heads,
                                      .n_kv_heads = (int)p->shape.n_kv_heads,
                                      .n_dims = 2,
                                      .row_elems = row_elems,
                                      .tied_output = p->shape.tied_output};
    const struct synth_pool_spec pool = {.content = SYNTH_GAUSS, .sigma = (float)sigma};

    t.fmt = quantmix_format(p->mix, &q);
    return add_tensor(p, &t, pool, err);
}

static enum status add_vector(struct synth_plan *p, int layer, const char *part,
                              uint64_t n, enum synth_content content, struct err *err)
{
    struct synth_tensor t = {.n_dims = 1, .ne = {n, 1}, .fmt = KERN_FMT_f32};
    const struct synth_pool_spec pool = {
        .content = content, .mean = 1, .sigma = NORM_SPREAD};

    if (layer >= 0)
        snprintf(t.name, sizeof t.name, "blk.%d.%s.weight", layer, part);
    else
        snprintf(t.name, sizeof t.name, "%s.weight", part);
    return add_tensor(p, &t, pool, err);
}

static enum status add_layer(struct synth_plan *p, int l, struct err *err)
{
    const struct synth_shape *s = &p->shape;
    const uint64_t n = s->n_embd, ff = s->n_ff;
    const uint64_t q = (uint64_t)s->n_heads * s->head_dim;
    const uint64_t kv = (uint64_t)s->n_kv_heads * s->head_dim;
    const double in = 1 / sqrt((double)n), branch = 1 / sqrt(2.0 * s->n_layers);
    const double down = SILU_GAIN * branch / sqrt((double)ff);

    if (add_vector(p, l, "attn_norm", n, SYNTH_GAUSS, err) ||
        add_matrix(p, l, "attn_q", n, q, in, err) ||
        add_matrix(p, l, "attn_k", n, kv, in, err) ||
        add_matrix(p, l, "attn_v", n, kv, in, err) ||
        add_matrix(p, l, "attn_output", q, n, branch / sqrt((double)q), err) ||
        add_vector(p, l, "ffn_norm", n, SYNTH_GAUSS, err) ||
        add_matrix(p, l, "ffn_gate", n, ff, in, err) ||
        add_matrix(p, l, "ffn_up", n, ff, in, err) ||
        add_matrix(p, l, "ffn_down", ff, n, down, err))
        return err->code;
    return ST_OK;
}

static enum status add_tensors(struct synth_plan *p, struct err *err)
{
    const struct synth_shape *s = &p->shape;
    const double logits = LOGIT_STD / sqrt((double)s->n_embd);

    if (add_matrix(p, -1, "token_embd", s->n_embd, s->n_vocab,
                   s->tied_output ? logits : 1, err))
        return err->code;
    if (s->rope_freqs &&
        add_vector(p, -1, "rope_freqs", s->head_dim / 2, SYNTH_ROPE_FREQS, err))
        return err->code;
    for (uint32_t l = 0; l < s->n_layers; l++) {
        if (add_layer(p, (int)l, err))
            return err->code;
    }
    if (add_vector(p, -1, "output_norm", s->n_embd, SYNTH_GAUSS, err))
        return err->code;
    if (!s->tied_output &&
        add_matrix(p, -1, "output", s->n_embd, s->n_vocab, logits, err))
        return err->code;
    return ST_OK;
}

/* ---- header --------------------------------------------------------------- */

static void put_metadata(const struct synth_plan *p, struct gguf_kvs *k)
{
    const struct synth_shape *s = &p->shape;

    gguf_kv_str(k, "general.architecture", s->arch);
    gguf_kv_str(k, "general.type", "model");
    gguf_kv_str(k, "general.name", s->name);
    gguf_kv_str(k, "general.description", "random weights, for measuring speed only");
    gguf_kv_u32(k, "general.file_type", quantmix_file_type(p->mix));
    gguf_kv_u32(k, "general.quantization_version", 2);
    gguf_kv_u64(k, "slmbench.seed", p->seed);
    gguf_kv_u32(k, "llama.block_count", s->n_layers);
    gguf_kv_u32(k, "llama.context_length", s->n_ctx_train);
    gguf_kv_u32(k, "llama.embedding_length", s->n_embd);
    gguf_kv_u32(k, "llama.feed_forward_length", s->n_ff);
    gguf_kv_u32(k, "llama.attention.head_count", s->n_heads);
    gguf_kv_u32(k, "llama.attention.head_count_kv", s->n_kv_heads);
    gguf_kv_u32(k, "llama.attention.key_length", s->head_dim);
    gguf_kv_u32(k, "llama.attention.value_length", s->head_dim);
    gguf_kv_f32(k, "llama.attention.layer_norm_rms_epsilon", s->norm_eps);
    gguf_kv_u32(k, "llama.rope.dimension_count", s->head_dim);
    gguf_kv_f32(k, "llama.rope.freq_base", s->rope_base);
    gguf_kv_u32(k, "llama.vocab_size", s->n_vocab);
    synth_put_vocab(k, s->n_vocab);
}

static enum status make_header(struct synth_plan *p, struct err *err)
{
    struct gguf_kvs kvs = {.n = 0};
    struct gguf_bytes *b = &p->header;

    put_metadata(p, &kvs);
    gguf_put_head(b, p->n_tensors, &kvs);
    for (size_t i = 0; i < p->n_tensors; i++) {
        const struct synth_tensor *t = &p->tensors[i];

        gguf_put_tensor(b, t->name, t->n_dims, t->ne, kern_format_info(t->fmt)->ggml_id,
                        t->offset);
    }
    gguf_put_padding(b);

    const bool failed = b->failed || kvs.bytes.failed;
    free(kvs.bytes.data);
    return failed ? err_set(err, ST_NO_MEMORY,
                            "shape %s: no memory for the file's header", p->shape.name)
                  : ST_OK;
}

/* ---- the interface -------------------------------------------------------- */

enum status synth_plan_make(struct synth_plan **plan, const struct synth_shape *shape,
                            enum quantmix mix, uint64_t seed, struct err *err)
{
    struct err first = ERR_INIT;
    struct synth_plan *p = NULL;

    if (check_shape(shape, &first))
        goto out;
    p = calloc(1, sizeof *p);
    if (!p) {
        err_set(&first, ST_NO_MEMORY, "shape %s: no memory for its plan", shape->name);
        goto out;
    }
    p->shape = *shape;
    p->mix = mix;
    p->seed = seed;
    if (add_tensors(p, &first) || make_header(p, &first))
        goto out;
    *plan = p;
    p = NULL;
out:
    synth_plan_free(p);
    return first.code ? err_set(err, first.code, "%s", first.msg) : ST_OK;
}

void synth_plan_free(struct synth_plan *plan)
{
    if (plan) {
        free(plan->tensors);
        free(plan->header.data);
        free(plan);
    }
}

uint64_t synth_plan_bytes(const struct synth_plan *plan)
{
    return plan->header.n + plan->data_bytes;
}

const void *synth_plan_header(const struct synth_plan *plan, size_t *bytes)
{
    *bytes = plan->header.n;
    return plan->header.data;
}

uint64_t synth_plan_params(const struct synth_plan *plan)
{
    return plan->n_params;
}
