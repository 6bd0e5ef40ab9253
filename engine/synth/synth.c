/* SPDX-License-Identifier: MIT
 *
 * synth.c - the plan of a synthetic model: its tensors, and the header of its file
 */
#include "engine/synth/synth.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/arch/loader.h"
#include "engine/synth/synth_parts.h"

#define KEY_SEED "slmbench.seed"
#define KEY_SKEW "slmbench.router_skew"

/* ---- header ---------------------------------------------------------------------- */

void synth_put_u32(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                   uint32_t v)
{
    char full[96];

    snprintf(full, sizeof full, "%s.%s", s->arch, key);
    gguf_kv_u32(k, full, v);
}

void synth_put_f32(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                   float v)
{
    char full[96];

    snprintf(full, sizeof full, "%s.%s", s->arch, key);
    gguf_kv_f32(k, full, v);
}

void synth_put_bool(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                    bool v)
{
    char full[96];

    snprintf(full, sizeof full, "%s.%s", s->arch, key);
    gguf_kv_bool(k, full, v);
}

/* xIELU's numbers as they are before training, for each layer. */
static void put_xielu(struct gguf_kvs *k, uint32_t n_layers)
{
    static const struct {
        const char *key;
        float v;
    } numbers[] = {{"xielu.alpha_p", 0.2034F},
                   {"xielu.alpha_n", -1.0502F}, /* ln(expm1(.8)), ln(expm1(.8 - .5)) */
                   {"xielu.beta", 0.5F},
                   {"xielu.eps", -1e-6F}};

    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        gguf_kv_array(k, numbers[i].key, GGUF_F32, n_layers);
        for (uint32_t l = 0; l < n_layers; l++)
            gguf_put_f32(&k->bytes, numbers[i].v);
    }
}

bool synth_is_made(const struct gguf *g)
{
    return gguf_kv_find(g, KEY_SEED) != NULL;
}

static void put_metadata(const struct synth_plan *p, struct gguf_kvs *k)
{
    const struct synth_shape *s = &p->shape;
    const struct model m = synth_sizes(s);

    gguf_kv_str(k, "general.architecture", s->arch);
    gguf_kv_str(k, "general.type", "model");
    gguf_kv_str(k, "general.name", s->name);
    gguf_kv_str(k, "general.description", "random weights, for measuring speed only");
    gguf_kv_u32(k, "general.file_type", quantmix_file_type(p->mix));
    gguf_kv_u32(k, "general.quantization_version", 2);
    gguf_kv_u64(k, KEY_SEED, p->seed);
    if (s->router_skew > 0)
        gguf_kv_f32(k, KEY_SKEW, s->router_skew);
    synth_put_u32(k, s, "block_count", s->n_layers + s->n_nextn);
    if (s->n_nextn)
        synth_put_u32(k, s, "nextn_predict_layers", s->n_nextn);
    synth_put_u32(k, s, "context_length", s->n_ctx_train);
    synth_put_u32(k, s, "embedding_length", s->n_embd);
    if (!m.arch->layers_differ)
        synth_put_u32(k, s, "feed_forward_length",
                      s->n_dense ? s->n_ff_dense : s->n_ff);
    if (s->n_dense)
        synth_put_u32(k, s, "leading_dense_block_count", s->n_dense);
    if (s->n_experts) {
        synth_put_u32(k, s, "expert_count", s->n_experts);
        synth_put_u32(k, s, "expert_used_count", s->n_experts_used);
        synth_put_u32(k, s, "expert_feed_forward_length", s->n_ff);
    }
    if (s->n_ff_shared && !m.arch->layers_differ)
        synth_put_u32(k, s, "expert_shared_feed_forward_length", s->n_ff_shared);
    synth_put_u32(k, s, "attention.head_count", s->n_heads);
    if (s->kv_rank) {
        synth_put_latent(k, s, &m);
    } else {
        if (m.arch->layers_differ)
            synth_put_kinds(k, s);
        else
            synth_put_kv_heads(k, s);
        synth_put_u32(k, s, "attention.key_length", s->head_dim);
        synth_put_u32(k, s, "attention.value_length", s->head_dim);
    }
    synth_put_f32(k, s,
                  m.arch->norm == NORM_RMS ? "attention.layer_norm_rms_epsilon"
                                           : "attention.layer_norm_epsilon",
                  s->norm_eps);
    synth_put_u32(k, s, "rope.dimension_count", s->n_rot ? s->n_rot : s->head_dim);
    synth_put_f32(k, s, "rope.freq_base", s->rope_base);
    if (s->window)
        synth_put_u32(k, s, "attention.sliding_window", s->window);
    if (recur_values(&m.recur))
        synth_put_recurrent(k, s, &m.recur);
    if (s->unrotated)
        synth_put_bool(k, s, "rope.scaling.finetuned", false);
    if (m.arch->act == ACT_XIELU)
        put_xielu(k, s->n_layers);
    synth_put_pooling(k, s, m.arch);
    synth_put_u32(k, s, "vocab_size", s->n_vocab);
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

/* ---- the interface --------------------------------------------------------------- */

enum status synth_plan_make(struct synth_plan **plan, const struct synth_shape *shape,
                            enum quantmix mix, uint64_t seed, struct err *err)
{
    struct err first = ERR_INIT;
    struct synth_plan *p = NULL;

    if (synth_check_shape(shape, &first))
        goto out;
    p = calloc(1, sizeof *p);
    if (!p) {
        err_set(&first, ST_NO_MEMORY, "shape %s: no memory for its plan", shape->name);
        goto out;
    }
    p->shape = *shape;
    p->mix = mix;
    p->seed = seed;
    if (synth_add_tensors(p, &first) || make_header(p, &first))
        goto out;
    *plan = p;
    p = NULL;
out:
    synth_plan_free(p);
    return first.code ? err_set(err, first.code, "%s", first.msg) : ST_OK;
}

enum status synth_file_sizes(const struct synth_shape *shape, uint64_t *bytes,
                             uint64_t *n_params, struct err *err)
{
    struct synth_plan *p;
    enum status st = synth_plan_make(&p, shape, (enum quantmix)0, 1, err);

    if (st)
        return st;
    bytes[0] = synth_plan_bytes(p);
    *n_params = p->n_params;
    /* What a header says of the mix has the same width in each: it is as long. */
    for (int mix = 1; mix < QUANTMIX_N && !st; mix++) {
        p->mix = (enum quantmix)mix;
        p->n_tensors = 0;
        p->n_pools = 0;
        p->data_bytes = p->n_params = 0;
        st = synth_add_tensors(p, err);
        bytes[mix] = synth_plan_bytes(p);
    }
    synth_plan_free(p);
    return st;
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
