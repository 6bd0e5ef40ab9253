/* SPDX-License-Identifier: MIT
 *
 * loader.h - reading a model from its GGUF, for arch*.c and loader*.c only
 *
 * An architecture is mostly a table of tensors: a rule has a tensor's name, its shape
 * in terms of hyperparameters, its kind, and the fields of struct layer (or, for the
 * tensors at both ends, of struct model) that it fills:
 *
 *   {"attn_norm.weight", VECTOR(EMBD, attn_norm.w)},
 *   {"attn_q.weight", MATRIX(EMBD, Q, wq), .unless = "attn_qkv.weight"},
 *   {"attn_qkv.weight", MATRIX_3(EMBD, Q, wq, KV, wk, KV, wv), .optional = true},
 *   {0}
 *
 * A rule with several fields is one tensor whose rows are divided among them, in that
 * order, as views. Rules of layers apply to "blk.<i>.<name>".
 *
 * Threading: one loader, one thread.
 */
#ifndef SLM_ENGINE_ARCH_LOADER_H
#define SLM_ENGINE_ARCH_LOADER_H

#include "engine/arch/arch.h"

/* ---- tables of tensors ----------------------------------------------------------- */

/* Dimensions of shapes. */
enum dim {
    DIM_NONE,   /* 1 */
    DIM_ONE,    /* 1, of a matrix */
    DIM_EMBD,   /* n_embd */
    DIM_EMBD_2, /* twice as many */
    DIM_FF,     /* the layer's n_ff */
    DIM_Q,      /* n_heads * head_dim of the layer, as the next two */
    DIM_KV,     /* n_kv_heads * head_dim */
    DIM_HEAD,   /* head_dim */
    DIM_HEADS,  /* n_heads */
    DIM_KV_HEADS,
    DIM_VOCAB,
    DIM_CONTEXT,   /* n_ctx_train */
    DIM_TYPES,     /* n_types */
    DIM_DENSE_1,   /* n_dense[0] */
    DIM_DENSE_2,   /* n_dense[1] */
    DIM_EXPERTS,   /* n_experts */
    DIM_FF_SHARED, /* n_ff_shared */
    DIM_Q_GATE,    /* 2 * n_heads * head_dim */
    DIM_PER_LAYER, /* n_per_layer */
    DIM_PER_LAYER_ROWS,
    DIM_STREAMS,       /* n_streams */
    DIM_STREAMS_2,     /* squared */
    DIM_STREAMS_MORE,  /* those beyond the first */
    DIM_LOW,           /* n_low */
    DIM_PER_LAYER_ALL, /* of all layers */
    /* of latent attention (struct latent_sizes) */
    DIM_Q_RANK,
    DIM_KV_RANK,
    DIM_LATENT_Q,     /* queries of all heads */
    DIM_LATENT_KEY,   /* elements of a key that are not rotated */
    DIM_LATENT_VALUE, /* elements of a value */
    DIM_LATENT_KV,    /* both, of all heads */
    DIM_LATENT_V,     /* values of all heads */
    /* of recurrent layers (struct recur_sizes) */
    DIM_REC_IN,       /* rows of the matrix of inputs */
    DIM_REC_CHANNELS, /* what the convolution mixes */
    DIM_REC_CONV,     /* inputs that it mixes */
    DIM_REC_VALUES,   /* of all heads */
    DIM_REC_VALUE,    /* of a head */
    DIM_REC_HEADS,    /* of values */
    DIM_REC_HEADS_2,  /* twice as many */
    DIM_REC_GROUPS,
    DIM_REC_GROUP, /* values of a group */
};

enum tensor_kind {
    TENSOR_MATRIX, /* of products: any known type, may be in panels */
    TENSOR_TABLE,  /* looked up row by row: any known type; in panels only where it is
                      the  output matrix, too */
    TENSOR_VECTOR, /* kept as floats: f32, f16 or bf16 */
};

enum tensor_when {
    WHEN_ALWAYS,
    WHEN_DENSE,
    WHEN_EXPERTS,
    WHEN_SHARED, /* experts, and one that all tokens take */
    WHEN_ATTENTION,
    WHEN_RECURRENT,
    WHEN_Q_RANK, /* latent attention, queries of a lower rank */
    WHEN_NO_Q_RANK,
    WHEN_OWN_KV,   /* the layer shares no other's keys and values */
    WHEN_PER_LAYER /* the model has per-layer embeddings */
};

#define TENSOR_PARTS 3

struct tensor_part {
    enum dim rows; /* of a vector: elements */
    size_t field;  /* offset in struct layer or struct model */
};

struct tensor_rule {
    const char *name; /* NULL ends a table */
    enum tensor_kind kind;
    enum dim k; /* length of a row; DIM_NONE in a vector of one row */
    struct tensor_part part[TENSOR_PARTS];
    enum dim slices;       /* matrices, one after another */
    const char *each;      /* or each in its own tensor, "<each>.<i>.weight", where the
                              one called name is missing */
    bool optional;         /* without the tensor the fields stay empty */
    const char *unless;    /* the rule does not apply if this tensor exists */
    enum tensor_when when; /* nor if the model or layer is not of that kind */
};

/* A field of struct layer, and one of struct model. */
#define LAYER_PART(n, field)                   \
    {                                          \
        DIM_##n, offsetof(struct layer, field) \
    }
#define MODEL_PART(n, field)                   \
    {                                          \
        DIM_##n, offsetof(struct model, field) \
    }

#define VECTOR(n, field) .kind = TENSOR_VECTOR, .part = {LAYER_PART(n, field)}
#define VECTOR_3(n, a, o, b, p, c) \
    .kind = TENSOR_VECTOR,         \
    .part = {LAYER_PART(n, a), LAYER_PART(o, b), LAYER_PART(p, c)}
#define VECTOR_PER_HEAD(n, field) \
    .kind = TENSOR_VECTOR, .k = DIM_HEAD, .part = {LAYER_PART(n, field)}
#define MATRIX(k_, n, field) \
    .kind = TENSOR_MATRIX, .k = DIM_##k_, .part = {LAYER_PART(n, field)}
#define MATRIX_2(k_, n, a, o, b) \
    .kind = TENSOR_MATRIX, .k = DIM_##k_, .part = {LAYER_PART(n, a), LAYER_PART(o, b)}
#define MATRIX_3(k_, n, a, o, b, p, c)    \
    .kind = TENSOR_MATRIX, .k = DIM_##k_, \
    .part = {LAYER_PART(n, a), LAYER_PART(o, b), LAYER_PART(p, c)}

/* Queries, keys and values: three matrices; their biases. */
#define TENSORS_QKV                                                                  \
    {"attn_q.weight", MATRIX(EMBD, Q, wq)}, {"attn_k.weight", MATRIX(EMBD, KV, wk)}, \
    {                                                                                \
        "attn_v.weight", MATRIX(EMBD, KV, wv)                                        \
    }
#define TENSORS_QKV_BIAS                                             \
    {"attn_q.bias", VECTOR(Q, bq)}, {"attn_k.bias", VECTOR(KV, bk)}, \
    {                                                                \
        "attn_v.bias", VECTOR(KV, bv)                                \
    }

/* Biases of attention's matrices that some files of a family have. */
#define TENSORS_MAYBE_BIAS                                     \
    {"attn_q.bias", VECTOR(Q, bq), .optional = true},          \
        {"attn_k.bias", VECTOR(KV, bk), .optional = true},     \
        {"attn_v.bias", VECTOR(KV, bv), .optional = true},     \
    {                                                          \
        "attn_output.bias", VECTOR(EMBD, bo), .optional = true \
    }

/* Norms of queries and keys, of each head with the same weights. */
#define TENSORS_HEAD_NORMS                           \
    {"attn_q_norm.weight", VECTOR(HEAD, q_norm.w)},  \
    {                                                \
        "attn_k_norm.weight", VECTOR(HEAD, k_norm.w) \
    }

/* One matrix or three, perhaps with biases. */
#define TENSORS_QKV_ANY                                                                \
    {"attn_qkv.weight", MATRIX_3(EMBD, Q, wq, KV, wk, KV, wv), .optional = true},      \
        {"attn_q.weight", MATRIX(EMBD, Q, wq), .unless = "attn_qkv.weight"},           \
        {"attn_k.weight", MATRIX(EMBD, KV, wk), .unless = "attn_qkv.weight"},          \
        {"attn_v.weight", MATRIX(EMBD, KV, wv), .unless = "attn_qkv.weight"},          \
        {"attn_qkv.bias", VECTOR_3(Q, bq, KV, bk, KV, bv), .optional = true},          \
        {"attn_q.bias", VECTOR(Q, bq), .unless = "attn_qkv.weight", .optional = true}, \
        {"attn_k.bias", VECTOR(KV, bk), .unless = "attn_qkv.weight",                   \
         .optional = true},                                                            \
    {                                                                                  \
        "attn_v.bias", VECTOR(KV, bv), .unless = "attn_qkv.weight", .optional = true   \
    }

/* A gated feed-forward part of three matrices, in layers without experts. */
#define TENSORS_GATED_FFN                                             \
    {"ffn_gate.weight", MATRIX(EMBD, FF, gate), .when = WHEN_DENSE},  \
        {"ffn_up.weight", MATRIX(EMBD, FF, up), .when = WHEN_DENSE},  \
    {                                                                 \
        "ffn_down.weight", MATRIX(FF, EMBD, down), .when = WHEN_DENSE \
    }

/* The experts' tensors, by the names of all architectures. */
#define TENSORS_EXPERTS                                                           \
    {"ffn_gate_inp.weight", MATRIX(EMBD, EXPERTS, router), .when = WHEN_EXPERTS}, \
        {"ffn_gate_exps.weight", MATRIX(EMBD, FF, gate), .slices = DIM_EXPERTS,   \
         .each = "ffn_gate", .when = WHEN_EXPERTS},                               \
        {"ffn_up_exps.weight", MATRIX(EMBD, FF, up), .slices = DIM_EXPERTS,       \
         .each = "ffn_up", .when = WHEN_EXPERTS},                                 \
    {                                                                             \
        "ffn_down_exps.weight", MATRIX(FF, EMBD, down),                           \
            .slices = DIM_EXPERTS, .each = "ffn_down", .when = WHEN_EXPERTS       \
    }

/* Per-layer embeddings, of a layer and of the ends. */
#define TENSORS_PER_LAYER                                                          \
    {"inp_gate.weight", MATRIX(EMBD, PER_LAYER, per_layer.gate),                   \
     .when = WHEN_PER_LAYER},                                                      \
        {"proj.weight", MATRIX(PER_LAYER, EMBD, per_layer.out),                    \
         .when = WHEN_PER_LAYER},                                                  \
    {                                                                              \
        "post_norm.weight", VECTOR(EMBD, per_layer.norm.w), .when = WHEN_PER_LAYER \
    }
#define TENSORS_PER_LAYER_ENDS                                                         \
    {"per_layer_token_embd.weight", .kind = TENSOR_TABLE, .k = DIM_PER_LAYER_ALL,      \
     .part = {MODEL_PART(PER_LAYER_ROWS, per_layer_embd)}, .when = WHEN_PER_LAYER},    \
        {"per_layer_model_proj.weight", .kind = TENSOR_MATRIX, .k = DIM_EMBD,          \
         .part = {MODEL_PART(PER_LAYER_ALL, per_layer_proj)}, .when = WHEN_PER_LAYER}, \
    {                                                                                  \
        "per_layer_proj_norm.weight",                                                  \
            .kind = TENSOR_VECTOR, .part = {MODEL_PART(PER_LAYER, per_layer_norm.w)},  \
            .when = WHEN_PER_LAYER                                                     \
    }

/* What is added to the experts' odds where they are chosen. */
#define TENSORS_CHOICE_BIAS                                                 \
    {                                                                       \
        "exp_probs_b.bias", VECTOR(EXPERTS, b_choice), .optional = true,    \
                                                       .when = WHEN_EXPERTS \
    }

/* The shared expert, which all tokens take, and what scales it. */
#define TENSORS_SHARED_EXPERT                                        \
    {"ffn_gate_inp_shexp.weight", MATRIX(EMBD, ONE, shared_router)}, \
        TENSORS_WHOLE_SHARED_EXPERT

/* The same, where nothing scales it. */
#define TENSORS_WHOLE_SHARED_EXPERT                                    \
    {"ffn_gate_shexp.weight", MATRIX(EMBD, FF_SHARED, shared_gate),    \
     .when = WHEN_SHARED},                                             \
        {"ffn_up_shexp.weight", MATRIX(EMBD, FF_SHARED, shared_up),    \
         .when = WHEN_SHARED},                                         \
    {                                                                  \
        "ffn_down_shexp.weight", MATRIX(FF_SHARED, EMBD, shared_down), \
            .when = WHEN_SHARED                                        \
    }

/* The recurrent part of Mamba-2; some models lack the norm. */
#define TENSORS_SSM                                                                 \
    {"ssm_in.weight",                                                               \
     MATRIX_3(EMBD, REC_VALUES, rec.gate, REC_IN, rec.in, REC_HEADS, rec.alpha),    \
     .when = WHEN_RECURRENT},                                                       \
        {"ssm_conv1d.weight", .kind = TENSOR_VECTOR, .k = DIM_REC_CONV,             \
         .part = {LAYER_PART(REC_CHANNELS, rec.conv)}, .when = WHEN_RECURRENT},     \
        {"ssm_conv1d.bias", VECTOR(REC_CHANNELS, rec.conv_bias),                    \
         .when = WHEN_RECURRENT},                                                   \
        {"ssm_dt.bias", VECTOR(REC_HEADS, rec.dt), .when = WHEN_RECURRENT},         \
        {"ssm_a", .kind = TENSOR_VECTOR, .k = DIM_ONE,                              \
         .part = {LAYER_PART(REC_HEADS, rec.a)}, .when = WHEN_RECURRENT},           \
        {"ssm_d", .kind = TENSOR_VECTOR, .k = DIM_ONE,                              \
         .part = {LAYER_PART(REC_HEADS, rec.skip)}, .when = WHEN_RECURRENT},        \
        {"ssm_norm.weight",  .kind = TENSOR_VECTOR,                                 \
         .k = DIM_REC_GROUP, .part = {LAYER_PART(REC_GROUPS, rec.norm.w)},          \
         .optional = true,   .when = WHEN_RECURRENT},                               \
    {                                                                               \
        "ssm_out.weight", MATRIX(REC_VALUES, EMBD, rec.out), .when = WHEN_RECURRENT \
    }

/* Embedding, last norm and output of most architectures, for both kinds of norm. */
extern const struct tensor_rule tensors_ends_rms[], tensors_ends_layernorm[];

/* The shape of a rule in a model whose sizes are known, for a layer, or NULL for the
 * ends; unused dimensions are 1. */
void loader_shape(const struct model *m, const struct layer *y,
                  const struct tensor_rule *r, uint64_t ne[3]);

/* Whether a rule for such layers is one for y. */
bool loader_is_for(const struct model *m, const struct layer *y, enum tensor_when when);

/* Apply all rules of a table to tensors of one layer, or with layer < 0 of the ends;
 * base is the struct layer or struct model. Sizes must be known. */
enum status loader_tensors(struct loader *l, const struct tensor_rule *table, int layer,
                           void *base);

/* Rows of a tensor of a layer, or with layer < 0 of the ends, for sizes that no key
 * has. Error: ST_INPUT. */
enum status loader_rows_of(struct loader *l, int layer, const char *name, int *out);

/* Whether the file has the tensor name, after "blk.<layer>." if layer >= 0. */
bool loader_has(const struct loader *l, int layer, const char *name);

/* n floats that are all `value`. *out is NULL in a model that is only planned. */
void loader_constant(struct loader *l, const float **out, size_t n, float value);

/* Read n values as floats. *out is NULL in a model that is only planned. */
enum status loader_vector(struct loader *l, const float **out, int layer,
                          const char *name, size_t n);

/* ---- hyperparameters ------------------------------------------------------------- */

/* Larger numbers are not a model's. These limits also keep all products far from
 * overflow in 64 bits. */
enum {
    MAX_LAYERS = 4096,
    MAX_WIDTH = 1 << 24,
    MAX_HEADS = 4096,
    MAX_CONTEXT = 1 << 28,
    MAX_EXPERTS = 1024,
};

/* Set the loader's error; the file's name precedes the message. */
enum status loader_fail(struct loader *l, enum status code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The whole number "<arch>.<key>", min..max. An array counts as its value when
 * all elements are equal. */
enum status loader_int(struct loader *l, const char *key, int min, int max, int *out);

/* The same, with a default for a missing key. */
enum status loader_int_or(struct loader *l, const char *key, int min, int max,
                          int missing, int *out);

/* The number "<arch>.<key>", min..max; missing: the default. */
enum status loader_real_or(struct loader *l, const char *key, double min, double max,
                           double missing, double *out);

/* The same as a float. */
enum status loader_float_or(struct loader *l, const char *key, double min, double max,
                            double missing, float *out);

/* Whether "<arch>.<key>" is true; missing: the default. */
enum status loader_bool_or(struct loader *l, const char *key, bool missing, bool *out);

/* The number of a layer from the array "<key>", which is no architecture's. */
enum status loader_real_of(struct loader *l, const char *key, int layer, float *out);

/* The text "<arch>.<key>"; false: no such key. */
bool loader_str(const struct loader *l, const char *key, struct gguf_str *out);

/* The hyperparameters of every architecture; allocates the layers. */
enum status loader_sizes(struct loader *l, struct model *m);

/* expert_count and expert_used_count, for architectures that may have experts; and
 * their width, if it has its own key. */
enum status loader_experts(struct loader *l, struct model *m);

/* The same for an architecture that always has experts: without them, ST_INPUT. */
enum status loader_only_experts(struct loader *l, struct model *m);

/* The same, then the width of the shared expert: n_ff, unless it has its own key. */
enum status loader_shared_expert(struct loader *l, struct model *m);

/* The same for a model that may be without: by expert_shared_feed_forward_length, or
 * expert_shared_count experts. */
enum status loader_maybe_shared_expert(struct loader *l, struct model *m);

/* The first leading_dense_block_count layers have no experts; call it after the
 * experts' sizes are known. */
enum status loader_leading_dense(struct loader *l, struct model *m);

/* How experts are chosen and weighted, by the keys expert_gating_func (default
 * missing), expert_weights_norm (default: divided by their sum), expert_weights_scale
 * and expert_group_*. */
enum status loader_odds(struct loader *l, struct model *m, enum model_odds missing);

/* embedding_scale, residual_scale, attention.scale, logit_scale, by which logits are
 * divided. */
enum status loader_scales(struct loader *l, struct model *m);

/* Kinds of text that have an embedding: tokenizer.ggml.token_type_count. */
enum status loader_token_types(struct loader *l, struct model *m);

/* No layer rotates queries and keys. */
void loader_no_rope(struct model *m);

/* The sizes of a state and of the convolution before it from ssm.*, into m->recur,
 * whose kind is set. Heads of delta layers have keys as long as values. */
enum status loader_recurrent(struct loader *l, struct model *m);

/* The same of Mamba-2. */
enum status loader_ssm(struct loader *l, struct model *m);

/* The whole number "<arch>.<key>" of layer i, if the file has one for each. */
enum status loader_int_of_layer(struct loader *l, const char *key, int i, int *out);

/* The real number "<arch>.<key>" of layer i, which the file must have for each layer;
 * -inf counts as 0. */
enum status loader_real_of_layer(struct loader *l, const char *key, int i, float *out);

/* The whole number "<arch>.<key>" of layer i, or the one for all layers; min..max. */
enum status loader_int_at_layer(struct loader *l, const char *key, int min, int max,
                                int i, int *out);

/* Layers whose attention.head_count_kv is 0 do not attend but have a recurrent part.
 * Numbers them (loader_number_layers()). */
enum status loader_layers_by_kv(struct loader *l, struct model *m);

/* The sizes of latent attention, for loader_sizes(). */
enum status loader_latent_sizes(struct loader *l, struct model *m);

/* Make what stands for k_b and v_b of a layer from kv_b, if the file has that. */
enum status loader_split_kv_b(struct loader *l, struct layer *y);

/* Number what layers have in the cache, by their attends and recurrent. */
void loader_number_layers(struct model *m);

/* A second rotation, for layers with a window: of n_rot elements, by
 * rope.freq_base_swa. */
enum status loader_second_rope(struct loader *l, struct model *m, int n_rot);

/* Number of heads of each layer, and with a window their length and the second
 * rotation: attention.head_count_kv may be an array; *_swa are for layers with a
 * window. Call it when windows are known. Layers of a kind must be alike. Errors:
 * ST_INPUT, ST_UNSUPPORTED. */
enum status loader_heads_by_layer(struct loader *l, struct model *m);

/* Each head's value is normalised, without weights. */
void loader_plain_v_norm(struct loader *l, struct model *m);

/* The length of per-layer embeddings, 0: none. */
enum status loader_per_layer(struct loader *l, struct model *m);

/* The sliding window attention.sliding_window, in the layers for which the array
 * attention.sliding_window_pattern is true. Error: ST_INPUT. */
enum status loader_windows_by_layer(struct loader *l, struct model *m);

/* The last attention.shared_kv_layers layers have no keys and values of their own, but
 * those of the last layer before them that does and that has a window if they do. Call
 * it when windows are known; numbers the layers of the cache. Error: ST_INPUT. */
enum status loader_shared_kv(struct loader *l, struct model *m);

/* A tensor of a layer is not computed with: it is not refused, if there is one. */
void loader_ignore(struct loader *l, int layer, const char *name);

/* nextn_predict_layers: the last layers predict further tokens. They are no part of
 * m->n_layers, and their tensors are not refused. */
enum status loader_nextn(struct loader *l, struct model *m);

/* The sliding window attention.sliding_window, default missing (0: none), in all layers
 * except every period-th; period 1: in all. */
enum status loader_windows(struct loader *l, struct model *m, int missing, int period);

/* The same, where the first layer without it is another one. */
enum status loader_windows_but(struct loader *l, struct model *m, int missing,
                               int period, int first);

#endif
