/* SPDX-License-Identifier: MIT
 *
 * hf_rope.c - scaling of positions from a folder's members to GGUF keys
 *
 * Two forms are in use: rope_theta beside rope_scaling, and both together in
 * rope_parameters (per kind of layer where there are several).
 * Sources: Peng et al. 2023 (YaRN, arXiv 2309.00071), Ding et al. 2024 (LongRoPE,
 * arXiv 2402.13753), Llama 3.1's published frequencies.
 */
#include "engine/hf/hf_impl.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/utf8.h"
#include "engine/hf/rope_llama3.h"

#define MAX_FACTOR  1e6
#define MAX_CONTEXT (1 << 28)

struct rope {
    struct hf_config *c;
    const json_t *how; /* the object with its members, or NULL */
    double theta;
    double factor;
    int64_t before; /* the context before scaling */
    struct err *err;
};

static enum status get(struct rope *r, const char *key, double min, double max,
                       double *out)
{
    return json_get_real(&r->c->file, r->how, key, min, max, out, r->err);
}

/* Allocate a vector with one number per pair of a head. */
static enum status new_vector(struct rope *r, int i, const char *name)
{
    struct hf_vector *v = &r->c->vectors[i];

    v->name = name;
    v->n = (size_t)r->c->n_rot / 2;
    v->v = calloc(v->n + 1, sizeof *v->v);
    return v->v ? ST_OK : err_set(r->err, ST_NO_MEMORY, "no memory for %s", name);
}

/* Long wavelengths are stretched by `factor`, short ones not, those between in part. */
static enum status llama3(struct rope *r)
{
    double low = 1.0, high = 4.0;
    enum status st;

    if ((st = get(r, "low_freq_factor", 1e-3, MAX_FACTOR, &low)) ||
        (st = get(r, "high_freq_factor", 1e-3, MAX_FACTOR, &high)) ||
        (st = new_vector(r, 0, "rope_freqs.weight")))
        return st;
    if (!(high > low))
        return err_set(r->err, ST_INPUT,
                       "%s: high_freq_factor %g is not above low_freq_factor %g",
                       r->c->file.path, high, low);
    for (size_t i = 0; i < r->c->vectors[0].n; i++) {
        const double per_position =
            pow(r->theta, -2.0 * (double)i / (double)r->c->n_rot);
        const double turns = (double)r->before * per_position / (2.0 * M_PI);

        r->c->vectors[0].v[i] = (float)rope_llama3_factor(turns, low, high, r->factor);
    }
    return ST_OK;
}

static enum status list(struct rope *r, int i, const char *key, const char *name)
{
    const json_t *from = json_member(r->how, key);
    enum status st = new_vector(r, i, name);

    if (st)
        return st;
    if (json_array_size(from) != r->c->vectors[i].n)
        return err_set(r->err, ST_INPUT,
                       "%s: %s has %zu factors, and %zu pairs of a head are rotated",
                       r->c->file.path, key, json_array_size(from), r->c->vectors[i].n);
    for (size_t k = 0; k < r->c->vectors[i].n; k++) {
        const double v = json_number_value(json_array_get(from, k));

        if (!(v >= 1e-6 && v <= MAX_FACTOR))
            return err_set(r->err, ST_INPUT, "%s: factor %zu of %s is %g",
                           r->c->file.path, k, key, v);
        r->c->vectors[i].v[k] = (float)v;
    }
    return ST_OK;
}

/* LongRoPE: one factor per pair, and a factor of the scores. */
static enum status longrope(struct rope *r)
{
    const double scale = (double)r->c->n_ctx / (double)r->before;
    double attention = scale > 1.0 && r->before > 1
                           ? sqrt(1.0 + log(scale) / log((double)r->before))
                           : 1.0;
    enum status st = get(r, "attention_factor", 1e-3, 1e3, &attention);

    if (!st)
        st = list(r, 0, "long_factor", "rope_factors_long.weight");
    if (!st)
        st = list(r, 1, "short_factor", "rope_factors_short.weight");
    if (!st)
        hf_put_f32(r->c, "rope.scaling.attn_factor", attention);
    return st;
}

/* The factor of scores that YaRN gives to a context `factor` times as long; m: its
 * weight, 1 in the paper. */
static double yarn_scale(double factor, double m)
{
    return factor > 1.0 ? 1.0 + 0.1 * m * log(factor) : 1.0;
}

/* The whole factor of the scores: what the folder states, or the quotient of its two
 * weights (DeepSeek, Mistral), or the paper's. */
static enum status yarn_attention(struct rope *r, double *whole)
{
    double given = 0.0, m = 0.0, m_all = 0.0;
    enum status st;

    if ((st = get(r, "attention_factor", 1e-3, 1e3, &given)) ||
        (st = get(r, "mscale", 0.0, 1e3, &m)) ||
        (st = get(r, "mscale_all_dim", 0.0, 1e3, &m_all)))
        return st;
    *whole = given > 0.0 ? given
             : m > 0.0 && m_all > 0.0
                 ? yarn_scale(r->factor, m) / yarn_scale(r->factor, m_all)
                 : yarn_scale(r->factor, 1.0);
    return ST_OK;
}

static enum status yarn(struct rope *r)
{
    double whole, fast = 32.0, slow = 1.0;
    bool truncate = true;
    enum status st;

    if ((st = json_get_bool(&r->c->file, r->how, "truncate", &truncate, r->err)))
        return st;
    if ((st = yarn_attention(r, &whole)) ||
        (st = get(r, "beta_fast", 1e-3, 1e6, &fast)) ||
        (st = get(r, "beta_slow", 1e-3, 1e6, &slow)))
        return st;
    hf_put_str(r->c, "rope.scaling.type", "yarn");
    hf_put_f32(r->c, "rope.scaling.factor", r->factor);
    hf_put_u32(r->c, "rope.scaling.original_context_length", r->before);
    hf_put_f32(r->c, "rope.scaling.yarn_beta_fast", fast);
    hf_put_f32(r->c, "rope.scaling.yarn_beta_slow", slow);
    if (!truncate)
        hf_put_bool(r->c, "rope.scaling.yarn_truncate", false);
    /* GGUF has the factor in addition to YaRN's own. */
    hf_put_f32(r->c, "rope.scaling.attn_factor", whole / yarn_scale(r->factor, 1.0));
    return ST_OK;
}

enum status hf_rope_turning(struct hf_config *c, double share, struct err *err)
{
    struct rope r = {.c = c, .err = err};
    const enum status st = new_vector(&r, 0, "rope_freqs.weight");
    const size_t n = st ? 0 : c->vectors[0].n;

    for (size_t i = 0; i < n; i++)
        c->vectors[0].v[i] = i < (size_t)(share * (double)n) ? 1.0F : 1e30F;
    return st;
}

/* Only the first pairs of a head turn; their speed is that of all of it. */
static enum status proportional(struct rope *r)
{
    double share = 1.0;
    const enum status st = get(r, "partial_rotary_factor", 0.0, 1.0, &share);

    return st ? st : hf_rope_turning(r->c, share, r->err);
}

static enum status scale_by(struct rope *r, const char *type)
{
    char shown[48];

    if (!strcmp(type, "linear")) {
        hf_put_str(r->c, "rope.scaling.type", "linear");
        hf_put_f32(r->c, "rope.scaling.factor", r->factor);
        return ST_OK;
    }
    if (!strcmp(type, "llama3"))
        return llama3(r);
    if (!strcmp(type, "yarn"))
        return yarn(r);
    if (!strcmp(type, "proportional"))
        return proportional(r);
    if (!strcmp(type, "longrope") || !strcmp(type, "su"))
        return longrope(r);
    /* Dynamic scaling begins beyond the trained context, which is the most that the
     * metadata allow here. */
    if (!strcmp(type, "default") || !strcmp(type, "dynamic") || !strcmp(type, "mrope"))
        return ST_OK;
    return err_set(r->err, ST_UNSUPPORTED,
                   "%s: positions are scaled by '%s'; supported are: default, linear, "
                   "dynamic, llama3, yarn, longrope, proportional",
                   r->c->file.path,
                   utf8_printable(shown, sizeof shown, type, strlen(type)));
}

/* Hunyuan's dynamic scaling has another base at every length. */
static enum status stretch_base(struct rope *r, const char *type)
{
    const double d = (double)r->c->head_dim;
    double alpha = 1.0;
    const enum status st = get(r, "alpha", 1e-3, 1e9, &alpha);

    if (!st && type && !strcmp(type, "dynamic") && d > 2)
        r->theta *= pow(alpha, d / (d - 2));
    return st;
}

enum status hf_rope(struct hf_config *c, double theta, struct err *err)
{
    struct rope r = {
        .c = c, .theta = theta, .factor = 1.0, .before = c->n_ctx, .err = err};
    const json_t *all = json_member(c->o, "rope_parameters");
    const json_t *global = json_member(all, "full_attention");
    enum status st =
        json_get_real(&c->file, c->o, "rope_theta", 1e-3, 1e15, &r.theta, err);

    r.how = global ? global : all ? all : json_member(c->o, "rope_scaling");
    if (st)
        return st;
    if (r.how && !json_is_object(r.how))
        return err_set(err, ST_INPUT, "%s: %s is not an object", c->file.path,
                       all ? "rope_parameters" : "rope_scaling");
    if ((st = get(&r, "rope_theta", 1e-3, 1e15, &r.theta)) ||
        (st = get(&r, "factor", 1e-6, MAX_FACTOR, &r.factor)) ||
        (st = json_get_int(&c->file, c->o, "original_max_position_embeddings", 1,
                           MAX_CONTEXT, &r.before, err)) ||
        (st = json_get_int(&c->file, r.how, "original_max_position_embeddings", 1,
                           MAX_CONTEXT, &r.before, err)))
        return st;
    const char *type = json_text(json_member(r.how, "rope_type"));

    if (!type)
        type = json_text(json_member(r.how, "type"));
    st = stretch_base(&r, type);
    if (st)
        return st;
    hf_put_f32(c, "rope.freq_base", r.theta);
    return type ? scale_by(&r, type) : ST_OK;
}
