/* SPDX-License-Identifier: MIT
 *
 * arch.h - a model as the forward pass sees it
 *
 * An architecture is a section of arch_<family>.c: a table of tensors, a few traits
 * and, where it has hyperparameters of its own, a function that reads them (loader.h).
 * One row in the table of arch.c makes it known. forward.c computes what architectures
 * have in common (a residual stream, attention with grouped heads, a gated, plain or
 * routed feed-forward part) from the fields below; a new architecture adds fields for
 * its differences, which the others leave NULL or 0.
 *
 * Files are untrusted: hyperparameters are checked against a range when read, tensors
 * against the hyperparameters, so a model that passes model_load() is consistent. A
 * tensor that no rule of the architecture reads is refused, because a model computed
 * without it would be another model.
 *
 * Threading: a struct model is immutable after loading.
 */
#ifndef SLM_ENGINE_ARCH_ARCH_H
#define SLM_ENGINE_ARCH_ARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/arch/pooling.h"
#include "engine/arch/rope.h"
#include "engine/base/mem.h"
#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/weights/weights.h"
#include "kernels/kernels.h"

/* A slice in a tensor of its own. */
struct matrix_slice {
    const char *name;
    const unsigned char *data;
};

/* n_slices matrices of n_rows rows of k weights, one after another; 1 slice except for
 * experts. Matrices whose rows a file stores in one tensor are views of it here. */
struct matrix {
    const char *name;                  /* of its tensor, owned by the gguf */
    const unsigned char *data;         /* NULL in a model that is only planned */
    const struct matrix_slice *slices; /* [n_slices] if each has its own tensor; NULL:
                                          they are contiguous */
    const void *const *places; /* [n_slices] where they are at the moment, if they are
                                  cached (weights_slices()); NULL: always at one place
                                */
    enum kern_format fmt;
    enum kern_act act;          /* layout of the activations it multiplies */
    size_t n_rows, k, n_slices; /* n_rows 0: the model has no such matrix */
    size_t first, slice_rows;   /* of a slice's rows in its tensor these are n_rows from
                                   `first` on */
    size_t row_bytes;
    bool mapped;        /* read from the mapped file (weights_is_mapped()) */
    size_t panel_rows;  /* leading rows of each slice that are in panels; 0: none */
    const float *scale; /* [n_scales] of all weights, or of each slice's (own_scale.h);
                           NULL: none, or the model is only planned */
    size_t n_scales;
};

/* Weights and biases of a norm; both NULL: the model has no such norm. */
struct norm {
    const float *w, *b;
    int n_groups; /* equal parts, each normalised for itself; 0: one */
};

/* What a recurrent layer's channels go through: a convolution that mixes each with its
 * own last inputs, and, except in RECUR_SHORT_CONV, a state. */
enum recurrence {
    RECUR_DELTA,      /* gated delta rule, forward_delta.c */
    RECUR_SHORT_CONV, /* forward_conv.c */
    RECUR_SSM,        /* Mamba-2, forward_ssm.c */
};

/* Sizes of all recurrent layers of a model, which are of one kind. The names are those
 * of linear attention; of Mamba-2 x are values, B keys and C queries. */
struct recur_sizes {
    enum recurrence kind;
    int n_groups;    /* heads of queries and of keys; a short convolution has none */
    int n_heads;     /* of values; a short convolution has one */
    int key_dim;     /* elements of a query and of a key */
    int value_dim;   /* elements of a value */
    int n_conv;      /* inputs that the convolution mixes */
    bool neighbours; /* heads of values that share a head of keys are neighbours, or
                        else n_groups apart */
};

/* The recurrent part of a layer. */
struct recurrent {
    struct matrix in;   /* [rows][n_embd]: queries, keys, values; Mamba-2: values,
                           keys, queries; short convolution: factor of the values,
                           factor of the result, values */
    struct matrix gate; /* [values][n_embd] */
    struct matrix beta, alpha; /* [n_heads][n_embd]; one matrix has both where alpha is
                                  missing: for each head of keys those of its heads of
                                  values. Mamba-2: alpha is dt, beta missing */
    const float *conv;         /* [channels][n_conv] */
    const float *conv_bias;    /* [channels] or NULL */
    const float *dt, *a;       /* [n_heads] */
    const float *skip;         /* [n_heads] of values added to the result, or NULL */
    struct norm norm;          /* [value_dim] of each head's result; Mamba-2: [values],
                                  after the gate */
    struct matrix out;         /* [n_embd][values] */
};

/* Sizes of latent attention (DeepSeek-AI 2024, arXiv 2405.04434): the cache keeps, for
 * all heads together, the latent that their keys and values are made of, and one
 * rotated part of a key. In the folded form of struct latent a query is compared with
 * latents, and a result is a mix of latents. Then there is one KV head, whose key is
 * the latent and the rotated part, head_dim long, and whose value is the latent. */
struct latent_sizes {
    int q_rank;    /* of what queries are made of; 0: they are made of the input */
    int kv_rank;   /* elements of a latent; 0: other attention */
    int key_dim;   /* elements of a head's key that are not rotated */
    int value_dim; /* elements of a head's value */
};

/* The part of latent attention in a layer. Its wq has rows for each head's query, of
 * which the rotated elements are the last, and its wk has the rows of a latent and of
 * the rotated part of keys. */
struct latent {
    struct matrix q_a;           /* [q_rank][n_embd] where wq has a row for q_rank */
    struct norm q_norm, kv_norm; /* [q_rank], [kv_rank] */
    struct matrix k_b; /* [kv_rank][key_dim] a slice per head: a query's elements that
                          are not rotated, to what is compared with latents */
    struct matrix v_b; /* [value_dim][kv_rank] a slice per head: a mix of latents to a
                          mix of values */
    /* Where a file has k_b and v_b in one matrix of keys and values: that, [n_heads *
     * (key_dim + value_dim)][kv_rank], of which v_b is a view; and instead of k_b its
     * rows of keys as halves, in panels of columns: [n_heads][kv_rank / width][key_dim]
     * [width], width = latent_width() (loader_latent.c). */
    struct matrix kv_b;
    const uint16_t *keys;
};

/* The numbers of the activation function xIELU (kernels.h). */
struct xielu {
    float pos, neg, beta;
};

/* A layer's share in per-layer embeddings: what it adds to the stream last of all is
 * out * (gelu(gate * stream) * its part of the token's per-layer input), normalised. */
struct per_layer {
    struct matrix gate; /* [n_per_layer][n_embd] */
    struct matrix out;  /* [n_embd][n_per_layer] */
    struct norm norm;   /* [n_embd] */
};

/* A layer's share in several streams (AltUp, forward_altup.c), all vectors [rows][k].
 */
struct altup {
    const float *router;        /* [n_streams][n_embd] */
    struct norm router_norm;    /* [n_embd] */
    const float *predict;       /* [n_streams * n_streams][n_streams] */
    const float *correct;       /* [n_streams][n_streams] */
    const float *correct_scale; /* [n_embd] */
    struct matrix low, high;    /* [rank][n_embd], [n_embd][rank]: next to attention */
    struct norm low_norm;       /* [n_embd] of what they give */
};

/* In the order of a pass. Biases, if any, have one element per row of the matrix. */
struct layer {
    int window; /* positions that a token sees, itself included; 0: all. In an encoder
                   half as many to each side */
    int rope;   /* which of the model's rotations, or ROPE_NONE */
    int n_kv_heads, head_dim;
    int n_ff;    /* width of the feed-forward part, or of each of its experts */
    bool routed; /* the feed-forward part has experts */
    int cached;  /* which of the cache's layers */
    bool shares; /* it has no keys and values of its own: those of the cache's layer are
                    an earlier layer's */
    int state;   /* which of its states */
    bool attends, recurrent; /* whether it has attention, and rec; both: side by side,
                                from the same input */

    struct norm attn_norm; /* [n_embd]; none: the input is the stream itself */
    struct matrix wq; /* [n_heads * head_dim][n_embd]; with gated queries each head's
                         query, then its gate */
    struct matrix wk, wv; /* [n_kv_heads * head_dim][n_embd]; without wv values are the
                             keys before their norm */
    const float *bq, *bk, *bv;
    struct norm q_norm, k_norm; /* see enum head_norms */
    struct norm v_norm;         /* [head_dim] of each head's value */
    const float *sink; /* [n_heads] a score that takes part in each head's softmax and
                          has no value; NULL: none */
    struct norm attn_sub_norm; /* [n_heads * head_dim] of attention's result */
    struct matrix wo;          /* [n_embd][n_heads * head_dim] */
    const float *bo;
    struct recurrent rec;
    struct latent lat;
    struct norm attn_post_norm; /* [n_embd] of what is added to the stream */

    struct norm ffn_norm;   /* [n_embd]; none: the input is attention's */
    struct matrix router;   /* [n_experts][n_embd], only with experts */
    const float *b_router;  /* [n_experts] added to the router's scores */
    const float *b_choice;  /* [n_experts] added only where experts are chosen */
    struct matrix gate, up; /* [n_ff][n_embd], a slice per expert */
    struct matrix down;     /* [n_embd][n_ff], a slice per expert */
    const float *b_gate, *b_up, *b_down; /* as many rows for every expert */
    struct norm ffn_sub_norm;            /* [n_ff] of what down multiplies */
    struct xielu xielu;                  /* only of ACT_XIELU */
    float sparsity; /* of gate only what is that many standard deviations above its mean
                       counts; 0: all */
    /* The shared expert, which every token takes in addition, scaled by
     * sigmoid(shared_router * input), or by 1 without that. */
    struct matrix shared_router;          /* [1][n_embd] */
    struct matrix shared_gate, shared_up; /* [n_ff_shared][n_embd] */
    struct matrix shared_down;            /* [n_embd][n_ff_shared] */
    struct norm ffn_post_norm;            /* [n_embd] of what is added to the stream */
    /* Only where experts and the shared expert are apart: of their inputs, ffn_norm
     * being the shared expert's, and of what they give, before ffn_post_norm normalises
     * the sum. */
    struct norm router_norm, experts_norm;
    struct norm experts_post_norm, shared_post_norm;
    struct per_layer per_layer;
    struct altup altup;
    const float *out_scale; /* [1] of the stream behind the layer, or NULL */
};

enum model_norm { NORM_RMS, NORM_LAYER };

/* What the feed-forward part computes; with a gate: act(gate) * up, without: act(up).
 */
enum model_act {
    ACT_SILU,
    ACT_GELU,
    ACT_RELU,         /* only with a gate */
    ACT_RELU_SQUARED, /* this one and the next only without */
    ACT_XIELU,
    ACT_CLAMPED, /* g * sigmoid(1.702 g) * (u + 1), g = min(gate, 7), u within +-7 */
};

/* Whose norms q_norm and k_norm are. */
enum head_norms {
    HEAD_NORMS_ALIKE, /* each head's, all with the same weights [head_dim] */
    HEAD_NORMS_OWN,   /* each head's, with weights of its own */
    HEAD_NORMS_WHOLE, /* that of all heads together, with weights [n_heads * head_dim]
                       */
};

/* What the scores of a router become: what experts are chosen by, and their weights. */
enum model_odds { ODDS_SOFTMAX, ODDS_SIGMOID };

/* struct layer's rope: queries and keys are not rotated. */
#define ROPE_NONE (-1)

/* Groups that experts are in, at most. */
#define MODEL_MAX_EXPERT_GROUPS 64

/* Streams of a token, at most. */
#define MODEL_MAX_STREAMS 8

/* Layers of a model may rotate in different ways. */
#define MODEL_MAX_ROPES 2

/* Matrices that a pooled vector goes through, at most. */
#define MODEL_MAX_DENSE 2

/* Inputs that a convolution mixes, at most. */
#define RECUR_MAX_CONV 64

struct arch;

struct model {
    const struct arch *arch;
    int n_layers, n_embd, n_heads, n_ff, n_vocab;
    int n_kv_heads, head_dim; /* the largest of any layer */
    int n_ctx_train;
    int n_rot; /* elements of a head that are rotated, at most: the first ones, but for
                  first_rot */
    int n_ropes; /* 0 to MODEL_MAX_ROPES */
    struct rope ropes[MODEL_MAX_ROPES];
    int n_experts, n_experts_used; /* 0, 0: one dense feed-forward part */
    int n_ff_shared;               /* of the shared expert; 0: none */
    enum model_odds odds;          /* of experts */
    bool shares_of_all; /* experts' weights are their shares of all experts' odds and
                           not of those taken */
    float expert_scale; /* of these weights */
    int n_expert_groups, n_expert_groups_used; /* experts are taken from the groups
                             whose two best are best; 1 group: all */
    float router_scale;                        /* of the router's scores */
    bool experts_apart; /* they and the shared expert have norms of their own */
    bool routes_early;  /* the router reads the layer's input, before attention */
    int n_attends, n_recurrent; /* layers with attention, and with a recurrent part */
    int n_cached;               /* layers with keys and values of their own */
    struct recur_sizes recur;
    struct latent_sizes latent;
    int first_rot;      /* elements of a head in front of those that are rotated */
    bool gated_queries; /* a head's attention result is scaled by sigmoid(its gate) */
    bool parallel;      /* attention and feed-forward part have the same input */
    bool is_encoder;    /* a token sees the whole text, and there are no logits */
    bool norms_sum; /* attn_post_norm and ffn_post_norm are those of the stream, after
                       the addition */
    enum head_norms head_norms;
    bool rotates_first; /* heads are rotated before q_norm and k_norm */
    float norm_eps;
    float embd_scale;           /* of embeddings; 1: none */
    float residual_scale;       /* of what a block adds to the stream; 1: none */
    float logit_scale;          /* of logits; 1: none */
    float attn_scale;           /* of products of query and key */
    float temperature;          /* queries are scaled by 1 + temperature * */
    int temperature_span;       /* ln(1 + position / span); 0: they are not */
    float attn_softcap;         /* cap * tanh(score / cap); 0: none */
    float logit_softcap;        /* the same of logits */
    struct matrix embd, output; /* [n_vocab][n_embd]; equal where weights are tied */
    struct matrix pos_embd;     /* [n_ctx_train][n_embd] learned positions, added to
                                   embeddings */
    struct matrix type_embd;    /* [n_types][n_embd] kinds of text, the first of which
                                   is added to embeddings */
    int n_types;
    struct norm embd_norm;        /* [n_embd] of embeddings, what is added included */
    int n_per_layer;              /* length of a layer's part of per-layer embeddings */
    int n_per_layer_rows;         /* of the next: tokens behind them have zeros */
    struct matrix per_layer_embd; /* [n_per_layer_rows][n_layers * n_per_layer] */
    struct matrix per_layer_proj; /* [n_layers * n_per_layer][n_embd] */
    struct norm per_layer_norm;   /* [n_per_layer] of each layer's part of its result */
    int n_streams; /* that a token has, with those beyond the first; 0: one */
    int n_low;     /* rank of struct altup's low and high */
    struct matrix stream_in, stream_out;  /* [n_embd][n_embd], a slice for each of the
                                             streams beyond the first */
    const float *b_output;                /* [n_vocab] or NULL */
    struct norm output_norm;              /* [n_embd] */
    enum slm_pooling pooling;             /* of a text's tokens, as the file has it */
    bool has_pooling;                     /* the file has it */
    struct matrix dense[MODEL_MAX_DENSE]; /* [n_dense[i]][n_embd, or n_dense[i - 1]]
                                   what a pooled vector is multiplied by, one after
                                   the other; n_rows 0: not */
    int n_dense[MODEL_MAX_DENSE];
    /* A model that predicts the token after the next (model_load_nextn()) has these:
     * its stream is eh_proj [n_embd][2 * n_embd] times an embedding and another model's
     * hidden state, each normalised. No rows: an ordinary model. */
    struct matrix eh_proj;
    struct norm enorm, hnorm; /* [n_embd] */
    int n_nextn;              /* layers in the file that predict further tokens */
    struct layer *layers;     /* [n_layers] */

    uint64_t weight_token_bytes, weight_token_macs, expert_bytes; /* see slm_info */
    size_t vector_bytes;  /* of all norms and biases, kept as floats */
    float *vectors;       /* NULL if planned */
    size_t derived_bytes; /* of matrices that are made when the model is loaded */
    struct mem derived;   /* no memory if planned */
};

struct tensor_rule; /* loader.h */
struct loader;

struct arch {
    const char *name; /* as general.architecture has it */
    enum model_norm norm;
    enum model_act act; /* of the feed-forward part */
    enum rope_pairs pairs;
    const struct tensor_rule *ends, *layer;
    bool latent;         /* attention is latent: the sizes have other keys */
    bool plain_turns;    /* yarn does not scale what is rotated: setup() has scaled
                            scores */
    bool encodes;        /* models are encoders, whatever the file has */
    bool may_predict;    /* files may have layers that predict further tokens */
    bool may_lack_parts; /* layers may lack attention, or a feed-forward part: numbers
                            of heads, and widths, may be 0 */
    bool layers_differ;  /* in numbers of heads, and widths; setup() sets each layer's
                          */
    /* Reads the hyperparameters of this architecture alone; called when sizes and
     * layers are known, before rotations and tensors; may be NULL. */
    enum status (*setup)(struct loader *l, struct model *m);
};

/* NULL: unknown. */
const struct arch *arch_by_name(const char *name, size_t len);

/* The known ones; NULL: i is too large. */
const struct arch *arch_at(size_t i);

/* "chatglm, gemma2, ..." in buf. */
const char *arch_names(char *buf, size_t cap);

/* Which tensors of g the model reads in panels where their formats have them: sets
 * in_panels[gguf_n_tensors(g)]. Those are the matrices of products, except where views
 * of one would not begin at a panel, and tied embeddings. Errors: those of
 * model_load(). */
enum status model_panels(bool *in_panels, const struct gguf *g, struct err *err);

/* Load a model from g, its tensors from w; w NULL only checks and measures, and leaves
 * all data pointers NULL. Errors: ST_INPUT,
 * ST_UNSUPPORTED (architecture, tensor type; the known ones are listed),
 * ST_NO_MEMORY. */
enum status model_load(struct model **m, const struct gguf *g, struct weights *w,
                       struct err *err);
void model_free(struct model *m);

/* The first layer that predicts further tokens ("nextn"), as a model of one layer whose
 * embedding and output are its own or those of the whole model. w is that of the whole
 * model, and has not been preloaded yet. Errors: those of model_load(); ST_UNSUPPORTED
 * (the file has no such layer). */
enum status model_load_nextn(struct model **m, const struct gguf *g, struct weights *w,
                             struct err *err);

/* Read the places of all weights anew: w has moved some. Pointers into *m become
 * invalid. Errors: those of model_load(); *m is as before. */
enum status model_rebind(struct model *m, const struct gguf *g, struct weights *w,
                         struct err *err);

static inline size_t recur_keys(const struct recur_sizes *s)
{
    return (size_t)s->n_groups * (size_t)s->key_dim;
}

static inline size_t recur_values(const struct recur_sizes *s)
{
    return (size_t)s->n_heads * (size_t)s->value_dim;
}

/* What the convolution mixes: queries, keys and values together. */
static inline size_t recur_channels(const struct recur_sizes *s)
{
    return 2 * recur_keys(s) + recur_values(s);
}

/* Rows of the matrix that the channels come from. */
static inline size_t recur_in_rows(const struct recur_sizes *s)
{
    return s->kind == RECUR_SHORT_CONV ? 3 * recur_values(s) : recur_channels(s);
}

/* Floats of a layer's past: the convolution's last inputs, and a matrix per head. */
static inline size_t recur_past_floats(const struct recur_sizes *s)
{
    return ((size_t)s->n_conv - 1) * recur_channels(s);
}

static inline size_t recur_state_floats(const struct recur_sizes *s)
{
    return recur_past_floats(s) + recur_values(s) * (size_t)s->key_dim;
}

/* Columns of a panel of struct latent's keys. */
static inline size_t latent_width(const struct latent_sizes *s)
{
    return s->kv_rank % 64 ? 16 : 64;
}

/* Elements of the vector of a text. */
static inline size_t model_vector(const struct model *m)
{
    size_t n = (size_t)m->n_embd;

    for (int i = 0; i < MODEL_MAX_DENSE; i++)
        n = m->dense[i].n_rows ? m->dense[i].n_rows : n;
    return n;
}

/* Bytes of one slice of a matrix. */
static inline uint64_t matrix_slice_bytes(const struct matrix *w)
{
    return (uint64_t)w->n_rows * w->row_bytes;
}

/* The factor of all weights of slice s. */
static inline float matrix_scale(const struct matrix *w, size_t s)
{
    return w->scale ? w->scale[w->n_scales == 1 ? 0 : s] : 1.0f;
}

/* Row r of slice s; of rows in panels only every 16th is valid, the start of its panel.
 */
static inline const void *matrix_row(const struct matrix *w, size_t s, size_t r)
{
    if (w->places)
        return (const unsigned char *)w->places[s] + (w->first + r) * w->row_bytes;
    const unsigned char *slice =
        w->slices ? w->slices[s].data : w->data + s * w->slice_rows * w->row_bytes;

    return slice + r * w->row_bytes;
}

#endif
