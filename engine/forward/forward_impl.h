/* SPDX-License-Identifier: MIT
 *
 * forward_impl.h - shared by the files of the forward pass, for forward*.c only
 *
 * Rows of float buffers are n_x values long and start on cache lines: their
 * strides are pad16(n_x).
 */
#ifndef SLM_ENGINE_FORWARD_FORWARD_IMPL_H
#define SLM_ENGINE_FORWARD_FORWARD_IMPL_H

#include "engine/base/mem.h"
#include "engine/forward/forward.h"
#include "engine/forward/row_chunks.h"
#include "engine/forward/tile_rule.h"

/* Positions whose scores are kept at a time: with the queries of a tile they fit into
 * the second-level cache. */
#define ATTN_BLOCK 256
/* Queries that share a pass over a KV head's keys, unless one position has more. */
#define ATTN_QUERIES 32
/* Rows are handed out in multiples of this where there are several columns: two panels,
 * which kernels process together. */
#define ROW_UNIT ((size_t)2 * KERN_PANEL_ROWS)

/* Elements that a thread prepares beyond its share rather than wait at a barrier, and
 * columns that it prepares so, at most. */
#define ALONE_ELEMS   ((size_t)4096)
#define ALONE_COLUMNS ((size_t)8)

/* Tokens that a recurrent layer processes at a time. */
#define RECUR_TOKENS ((size_t)16)

/* Columns that are added up to one of latent attention's products per head. */
#define FWD_LATENT_TERMS 2

/* One thread's share of an operation. */
struct fwd_lap {
    uint64_t work_ns, wait_ns, bytes, macs;
};

struct fwd_laps {
    uint64_t last_ns; /* when the clock was last read */
    enum slm_op op;   /* the operation that ended then */
    enum kern_format fmt;
    struct fwd_lap of[SLM_N_OPS][KERN_N_FMT + 1];
};

/* One thread's own buffers. */
struct fwd_thread {
    struct fwd_laps *laps;          /* NULL: no profile */
    float *row;                     /* a normalised or combined input */
    unsigned char *embd_row;        /* a row of embeddings, out of a panel */
    unsigned char *act[KERN_N_ACT]; /* [ALONE_COLUMNS] in each layout in use */
    float *query;                   /* [n_queries][key_dim] rotated and scaled */
    unsigned char *query_q8;        /* the same as q8_32 columns; NULL: F16 keys */
    float *score;                   /* [n_queries][ATTN_BLOCK] */
    float *mix;                     /* [n_queries][value_dim] */
    float *max, *sum;               /* [n_queries] of the online softmax */
    unsigned char *terms; /* [FWD_LATENT_TERMS * ALONE_COLUMNS] columns of a head */
    float *rest;          /* what the first of a pair leaves to the other */
    /* of attention in the unfolded form, for a block of positions */
    float *latents;                /* [ATTN_BLOCK][head_dim] as cached */
    unsigned char *latent_columns; /* [ATTN_BLOCK] what values are made from */
    float *unfolded;               /* [ATTN_BLOCK] a head's keys and values */
    uint16_t *keys, *values;       /* the same, in panels of halves */
    uint16_t *halves;              /* a key */
    float *products;               /* of the columns, with a part of the rows */
    float *rec;                    /* queries, keys and values of up to RECUR_TOKENS,
                                      of a head of a recurrent layer */
    int *pair;                     /* [n_batch * n_used] sorted by expert */
    int *first;                    /* [n_experts + 1] into pair */
    int *taken, n_taken;           /* experts that have pairs, ascending */
    const int *order;              /* the same, in the order in which gate and up are
                                      computed */
    int *own_expert;               /* [n_used] a single token's, */
    float *own_share;              /* and their weights */
    float *choice;                 /* [n_experts] what they are chosen by */
    const int *expert;             /* by pair: f->expert, or own_expert */
    const float *share;            /* likewise */
    bool no_number;                /* a logit of its rows in this pass is none */
};

/* What attention computes of one sequence in a pass. */
struct fwd_part {
    int seq;
    size_t first, n;                  /* its tokens among all of the pass */
    size_t pos;                       /* of the first */
    struct forward_part part;         /* with what copies are made of states */
    size_t store_at[2], attend_at[2]; /* its first work items of these kinds, by the
                                         kind of the layer */
};

/* How attention of a pass is divided, in layers of a kind. */
struct fwd_plan {
    int n_splits; /* of each token's positions; 1 unless all parts have one token */
    int n_groups; /* into which the queries of a KV head are divided; 1 but for few
                     tokens of latent attention */
    size_t n_store, n_attend; /* work items */
};

struct forward {
    const struct model *m;
    struct kvcache *kv;
    struct thread_pool *pool;
    struct weights *weights; /* whose layers are waited for; NULL: all are there */
    struct kern_set kern;
    uint32_t isa_mask; /* that kern was chosen from, but for products */
    /* Products of that many columns and more, by tiles (tile_rule.h); TILES_NEVER. */
    struct fwd_tiles {
        size_t from;
        kern_gemm_fn *gemm;
        kern_gemm_x16_fn *gemm_x16;
    } tiles[KERN_N_FMT];
    /* And with int8 sums (sums.h), columns in q8_256. */
    struct fwd_tiles int8[KERN_N_FMT];
    bool int8_tiles[KERN_N_FMT]; /* these are tiles, too */
    /* As measured, exact and with int8 sums; TILES_NEVER also for formats not in the
     * model, and with int8 sums where they are not wanted. */
    size_t tiles_from[SLM_N_SUMS][KERN_N_FMT];
    /* Attention of TUNING_TILE_QUERIES queries and more over latents, or on a cache of
     * BF16, likewise. */
    kern_attn_dot_fn *dot_tiles[KERN_N_KV];
    kern_attn_mix_fn *mix_tiles[KERN_N_KV];
    kern_attn_mix_keys_fn *mix_keys_tiles[KERN_N_KV];
    struct slm_tuning tuning;
    enum slm_sums prefill_sums;
    enum kern_kv kv_type;
    bool spreads; /* keys and values before they are rounded (forward_attn.c) */
    int n_batch, n_threads, n_queries, n_splits_max;
    size_t act_k[KERN_N_ACT];        /* longest column in a layout; 0: not in use */
    size_t act_bytes[KERN_N_ACT];    /* of all columns of the widest stage */
    size_t routed_bytes[KERN_N_ACT]; /* of experts' input columns */
    struct mem scratch, logits_mem;
    struct fwd_thread *threads;
    struct fwd_laps *laps;        /* [n_threads], while a profile is taken */
    size_t n_profiled;            /* passes in it */
    int n_timed;                  /* threads of the last of them */
    slm_activation_hook_fn *hook; /* NULL: none */
    void *hook_arg;
    bool seeks_fault; /* look at the values after each layer */
    int fault;        /* the layer, see forward_find_fault() */

    /* shared; rows are tokens of the batch */
    float *x;            /* [n_batch][n_embd] the residual stream */
    float *eh;           /* [n_batch][2 * n_embd] inputs of eh_proj */
    const float *hidden; /* rows of x's stride, see forward_set_hidden() */
    float *y;            /* [n_batch][n_embd] what a block adds to it */
    float *q;            /* [n_batch][rows of wq]: queries, and gates */
    float *k, *v;        /* [n_batch][n_kv_heads * head_dim] */
    float *attn;         /* [n_batch][n_heads * head_dim] */
    float *query;        /* [n_batch][n_heads * head_dim] latent attention's
                            queries, folded; NULL: q has them */
    float *heads;        /* [n_batch][n_heads * kv_rank] what attention
                            leaves: attn, or mixes of latents */
    float *q_a;          /* [n_batch][latent.q_rank] */
    uint16_t *unfolding; /* [n_heads] k_b as halves, of the unfolded form */
    float *tops, *sums;  /* [n_heads][n_batch] of its online softmax */
    float *streams[MODEL_MAX_STREAMS]; /* [n_batch][n_embd] of tokens that have several;
                                          x is what their blocks read and add to */
    float *low;                        /* [n_batch][n_low] */
    float *per_layer;                  /* [n_batch][n_layers * n_per_layer] */
    float *rec_in, *rec_z;          /* [n_batch][rows of recurrent layers' matrices] */
    float *rec_beta, *rec_alpha;    /* the same */
    float *mixed;                   /* [n_batch][values of recurrent layers]; where
                                       attn is, unless layers have both */
    float *gate;                    /* [n_batch][n_ff], and of experts
                                       [n_batch * n_used][n_ff] */
    float *up;                      /* the same */
    float *turn[MODEL_MAX_ROPES];   /* [n_batch + 1][n_rot] cosines and sines; the
                                       last: of queries to attention sinks */
    float *partial;                 /* [n_splits_max][n_heads][head_dim + 2] */
    float *route;                   /* [n_batch][n_experts] router's scores */
    int *expert;                    /* [n_batch][n_used] chosen */
    int *order, *n_uses;            /* [n_experts] those taken as they come into
                                       memory, and of how many pairs each, ascending */
    float *share;                   /* [n_batch][n_used] their weights */
    unsigned char *act[KERN_N_ACT]; /* columns in each layout in use */
    unsigned char *routed[KERN_N_ACT]; /* [n_batch * n_used] columns, by expert */
    float *shared_share;               /* [n_batch] of the shared expert */
    float *shared_gate, *shared_up;    /* [n_batch][n_ff_shared] */
    float *routed_sum; /* [n_batch][n_embd] what experts give that are apart */
    float *logits;     /* [n_batch][n_vocab] */
    float *dense[MODEL_MAX_DENSE]; /* [n_parts_max][n_dense] */

    /* the current pass */
    int32_t *tokens;        /* [n_batch] */
    int *pos;               /* [n_batch] positions of tokens in their sequences */
    int *logit_rows;        /* [n_logits] tokens that have logits, ascending */
    struct fwd_part *parts; /* [n_parts_max], those at later positions first */
    int n_parts_max, n_parts;
    int n, n_logits;
    bool unfolded; /* latent attention of this pass is */
    bool pools;    /* the pass ends in vectors of its parts and not in logits */
    enum slm_pooling pooling;
    struct fwd_plan plans[2]; /* by fwd_kind() */
};

/* A matrix whose product with a stage's input, plus bias if that is not NULL, goes to
 * out [n][pad16(n_rows)]. */
struct fwd_target {
    const struct matrix *w;
    const float *bias;
    float *out;
};

/* Input columns of a product: where they are in each layout prepared. */
struct columns {
    const unsigned char *x[KERN_N_ACT];
    size_t stride[KERN_N_ACT];
    size_t n;
};

static inline size_t pad16(size_t n)
{
    return (n + 15) & ~(size_t)15;
}

static inline size_t pad_rows(size_t n)
{
    return (n + ROW_UNIT - 1) / ROW_UNIT * ROW_UNIT;
}

static inline const void *columns_at(const struct columns *c, enum kern_act act,
                                     size_t i)
{
    return c->x[act] + i * c->stride[act];
}

/* Whether products of w with many columns have int8 sums. */
static inline bool fwd_sums_int8(const struct forward *f, const struct matrix *w)
{
    return f->prefill_sums == SLM_SUMS_INT8 && w->act != KERN_ACT_f32 &&
           w->k % SUMS_INT8_K == 0;
}

/* The layouts that n columns of w are wanted in. */
static inline uint32_t fwd_layouts(const struct forward *f, const struct matrix *w,
                                   size_t n)
{
    if (!w->n_rows)
        return 0;
    return 1u << w->act |
           (n >= SUMS_INT8_COLUMNS && fwd_sums_int8(f, w) ? 1u << KERN_ACT_q8_256 : 0);
}

static inline uint32_t act_bit(const struct forward *f, const struct matrix *w)
{
    return fwd_layouts(f, w, (size_t)f->n);
}

/* ---- the profile: only a comparison where there is none -------------------------- */

void fwd_lap_take(struct fwd_laps *laps, enum slm_op op, enum kern_format fmt,
                  bool waited);
void fwd_profile_begin(struct forward *f);
void fwd_profile_end(struct forward *f);

/* The time since the last lap was for op, on weights of fmt. */
static inline void fwd_lap(struct fwd_thread *me, enum slm_op op, enum kern_format fmt)
{
    if (me->laps)
        fwd_lap_take(me->laps, op, fmt, false);
}

/* Count the bytes and operations of op. */
static inline void fwd_count(struct fwd_thread *me, enum slm_op op,
                             enum kern_format fmt, uint64_t bytes, uint64_t macs)
{
    if (!me->laps)
        return;
    me->laps->of[op][fmt].bytes += bytes;
    me->laps->of[op][fmt].macs += macs;
}

/* The barrier that ends op. */
static inline void fwd_barrier(struct forward *f, struct fwd_thread *me, enum slm_op op,
                               enum kern_format fmt)
{
    thread_pool_barrier(f->pool);
    if (me->laps)
        fwd_lap_take(me->laps, op, fmt, true);
}

/* The cosines and sines of token j, in the rotation of a layer. */
static inline float *fwd_turn(const struct forward *f, int rope, size_t j)
{
    return f->turn[rope] + j * pad16((size_t)f->m->n_rot);
}

/* Layers with a window of their own in the cache: 1; the others: 0. */
static inline int fwd_kind(const struct forward *f, const struct layer *y)
{
    return y->cached >= kvcache_n_whole(f->kv);
}

static inline int fwd_splits(const struct forward *f, const struct layer *y)
{
    return f->plans[fwd_kind(f, y)].n_splits;
}

static inline const struct fwd_plan *fwd_plan_of(const struct forward *f, int layer)
{
    return &f->plans[fwd_kind(f, &f->m->layers[layer])];
}

/* Groups of heads whose queries are computed together: those of a KV head, or some of
 * them. */
static inline size_t fwd_n_groups(const struct forward *f, int layer)
{
    return (size_t)(f->m->layers[layer].n_kv_heads * fwd_plan_of(f, layer)->n_groups);
}

/* Heads of a group. */
static inline size_t fwd_group_of(const struct forward *f, int layer)
{
    return (size_t)f->m->n_heads / fwd_n_groups(f, layer);
}

/* The heads of a layer in the cache. */
static inline const struct kvcache_heads *fwd_heads_of(const struct forward *f,
                                                       int layer)
{
    return kvcache_heads(f->kv, f->m->layers[layer].cached);
}

/* Elements of a head's result. */
static inline size_t fwd_result_dim(const struct forward *f, const struct layer *y)
{
    return (size_t)(f->m->latent.kv_rank ? f->m->latent.kv_rank : y->head_dim);
}

/* Attention's kernels for n queries. */
static inline kern_attn_dot_fn *fwd_attn_dot(const struct forward *f, enum kern_kv type,
                                             size_t n)
{
    const bool tiles = n >= TUNING_TILE_QUERIES && f->dot_tiles[type];

    return tiles ? f->dot_tiles[type] : f->kern.attn_dot[type];
}

static inline kern_attn_mix_fn *fwd_attn_mix(const struct forward *f, enum kern_kv type,
                                             size_t n)
{
    const bool tiles = n >= TUNING_TILE_QUERIES && f->mix_tiles[type];

    return tiles ? f->mix_tiles[type] : f->kern.attn_mix[type];
}

static inline kern_attn_mix_keys_fn *fwd_attn_mix_keys(const struct forward *f,
                                                       enum kern_kv type, size_t n)
{
    const bool tiles = n >= TUNING_TILE_QUERIES && f->mix_keys_tiles[type];

    return tiles ? f->mix_keys_tiles[type] : f->kern.attn_mix_keys[type];
}

/* Wait for the weights of a part of a layer, and give them back: after a barrier that
 * ends their use. Only a comparison where all weights are in memory. */
void fwd_wait_streamed(struct forward *f, struct fwd_thread *me, const struct layer *y,
                       enum residency_part part);
void fwd_done_streamed(struct forward *f, const struct fwd_thread *me,
                       const struct layer *y, enum residency_part part);

static inline void fwd_wait(struct forward *f, struct fwd_thread *me,
                            const struct layer *y, enum residency_part part)
{
    if (f->weights)
        fwd_wait_streamed(f, me, y, part);
}

static inline void fwd_done(struct forward *f, const struct fwd_thread *me,
                            const struct layer *y, enum residency_part part)
{
    if (f->weights)
        fwd_done_streamed(f, me, y, part);
}

/* Wait for an expert that has been taken (weights_take_experts()), if they are cached.
 */
void fwd_wait_expert(struct forward *f, struct fwd_thread *me, const struct layer *y,
                     int expert);

/* NULL: the model has no such norm. */
static inline const struct norm *fwd_norm_of(const struct norm *norm)
{
    return norm->w ? norm : NULL;
}

/* dst[n] = src[n], normalised as the model does; they may be the same. */
void fwd_norm(const struct forward *f, float *dst, const float *src,
              const struct norm *norm, size_t n);

/* gate[n] = act(gate) * up as the model's feed-forward part has it; up NULL: act(gate).
 * up is undefined then. */
void fwd_activate(const struct forward *f, const struct layer *y, float *gate,
                  float *up, size_t n);

/* x[n] += y, scaled as the model's blocks are. */
static inline void fwd_add(const struct forward *f, float *x, const float *y, size_t n)
{
    if (f->m->residual_scale != 1.0f)
        f->kern.add_scaled(x, y, f->m->residual_scale, n);
    else
        f->kern.add(x, y, n);
}

/* Bring n rows of k floats into the layouts of act_mask, normalised unless norm is
 * NULL. One row goes to the thread's own buffers; several are divided
 * among the threads, and a barrier follows. */
struct columns fwd_prepare(struct forward *f, struct fwd_thread *me, const float *src,
                           size_t src_stride, size_t n, size_t k,
                           const struct norm *norm, uint32_t act_mask);

/* The same for a stage that needs no other thread before its own barrier: of few short
 * columns each thread prepares all for itself, as it does of one. */
struct columns fwd_prepare_few(struct forward *f, struct fwd_thread *me,
                               const float *src, size_t src_stride, size_t n, size_t k,
                               const struct norm *norm, uint32_t act_mask);

/* Rows that the threads share, as one of them takes them. */
struct fwd_rows {
    struct row_chunks chunks;
    bool has_begun;
};

/* n_rows rows, in multiples of ROW_UNIT, or of KERN_PANEL_ROWS for a single token. */
struct fwd_rows fwd_rows_of(const struct forward *f, size_t n_rows);

/* The next of them for this thread; false: none left. Its first chunk is a thread's
 * own, so that threads that leave a barrier together do not queue for the counter, and
 * a third or so of a small model's weights stay in the caches of the same core. */
bool fwd_next_rows(struct forward *f, const struct fwd_thread *me,
                   struct fwd_rows *rows, size_t *begin, size_t *end);

/* All targets' products with the rows of src, which are as long as theirs, normalised;
 * ends in a barrier. */
void fwd_project(struct forward *f, struct fwd_thread *me, const float *src,
                 const struct fwd_target *target, size_t n_targets,
                 const struct norm *norm);

/* y[j * y_stride + i] = row begin + i of slice s times column j of n, for begin + i
 * < end; columns are x_stride bytes apart. begin is a multiple of
 * KERN_PANEL_ROWS, end another one or the last row's. */
void fwd_product(const struct forward *f, const struct matrix *w, size_t s,
                 size_t begin, size_t end, size_t n, const void *x, size_t x_stride,
                 float *y, size_t y_stride);

/* The same times columns j to j + n - 1 of c, with sums as the model was opened with.
 */
void fwd_columns_product(const struct forward *f, const struct matrix *w, size_t s,
                         size_t begin, size_t end, size_t n, const struct columns *c,
                         size_t j, float *y, size_t y_stride);

/* The same n rows of one slice, as part of op: counted. */
static inline void fwd_count_product(struct fwd_thread *me, enum slm_op op,
                                     const struct matrix *w, size_t n_rows, size_t n)
{
    fwd_count(me, op, w->fmt, (uint64_t)n_rows * w->row_bytes,
              (uint64_t)n_rows * w->k * n);
}

/* y[j * y_stride + i] = row i of w times column j, plus bias[i] unless it is NULL,
 * begin <= i < end, as part of op: counted. */
void fwd_biased_product(const struct forward *f, struct fwd_thread *me, enum slm_op op,
                        const struct matrix *w, const float *bias, size_t begin,
                        size_t end, const struct columns *c, float *y, size_t y_stride);

/* x += w times columns + bias, or, where the model norms the sum, norm(that); and a
 * barrier. Each thread adds the rows it has computed; with a norm in between, all rows
 * must be computed first. scale: a factor of the new x, or NULL. */
void fwd_add_product(struct forward *f, struct fwd_thread *me, enum slm_op op,
                     const struct matrix *w, const float *bias, const struct norm *norm,
                     const float *scale, const struct columns *c);

/* Call the hook with n rows at src, normalised by norm (NULL: not at all), the next
 * input of w; pairs: with the input rows of experts, from x with a norm, from gate
 * without. Only a comparison without a hook. */
void fwd_hook_rows(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                   const float *src, size_t stride, size_t n, const struct norm *norm);
void fwd_hook_pairs(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                    const struct norm *norm);

/* The same of n rows of heads, `each` floats apart, slice by slice of w. */
void fwd_hook_heads(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                    const float *src, size_t stride, size_t each, size_t n);
/* The dense feed-forward part, from x to gate and from there added to x; each ends in a
 * barrier. */
void fwd_expand(struct forward *f, struct fwd_thread *me, const struct layer *y);
void fwd_contract(struct forward *f, struct fwd_thread *me, const struct layer *y);

/* Stages, each ending in a barrier: q, k, v -> attn (or partial, with n_splits
 * > 1); a recurrent part, x -> mixed, and its output matrix, added to x; and the routed
 * feed-forward part added to x, which waits for its down matrices itself. */
void fwd_attention(struct forward *f, struct fwd_thread *me, int layer);

/* Rotate v[n_rot] by row j of the turns. Write keys and values of all tokens to the
 * cache, where attention does not do that itself; ends in a barrier. */
void fwd_rotate(const struct forward *f, float *v, int rope, size_t j);
void fwd_store(struct forward *f, struct fwd_thread *me, int layer);

/* Latent attention with keys and values of each head, q and k -> attn; whether a model
 * can have it, and whether it is cheaper for the current pass. */
void fwd_attention_unfolded(struct forward *f, struct fwd_thread *me, int layer);
bool fwd_can_unfold(const struct model *m);
bool fwd_is_unfolded(const struct forward *f);

/* Latent attention in front of that, x -> query, k; and behind it, heads -> attn. */
void fwd_latent_in(struct forward *f, struct fwd_thread *me, const struct layer *y);
void fwd_latent_out(struct forward *f, struct fwd_thread *me, const struct layer *y);

void fwd_recurrent(struct forward *f, struct fwd_thread *me, const struct layer *y);
void fwd_recurrent_out(struct forward *f, struct fwd_thread *me, const struct layer *y);
void fwd_experts(struct forward *f, struct fwd_thread *me, const struct layer *y);

/* The per-layer inputs of all tokens, from their embeddings in x; and what a layer adds
 * to x by them. */
void fwd_read_ahead(const struct forward *f,
                    size_t j); /* of token j, in a mapped file */
void fwd_per_layer_inputs(struct forward *f, struct fwd_thread *me);
void fwd_per_layer(struct forward *f, struct fwd_thread *me, const struct layer *y);

/* Several streams (struct altup). From x, and before a layer's norm of attention; next
 * to attention, whose result has been added to x; behind the feed-forward part, which
 * leaves the input of the per-layer part in x; and all streams to x, of tokens with
 * logits. Each ends in a barrier. */
void fwd_streams_begin(struct forward *f, struct fwd_thread *me);
void fwd_streams_predict(struct forward *f, struct fwd_thread *me,
                         const struct layer *y);
void fwd_streams_low(struct forward *f, struct fwd_thread *me, const struct layer *y);
void fwd_streams_correct(struct forward *f, struct fwd_thread *me,
                         const struct layer *y);
void fwd_streams_end(struct forward *f, struct fwd_thread *me);

/* w times columns, normalised, added to all streams but the first; ends in a barrier.
 */
void fwd_streams_add(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                     const struct norm *norm, const struct columns *c);

/* Row i of a table, x[w->k]. It may be a row of a panel where the table serves as the
 * output too. */
void fwd_look_up(struct forward *f, struct fwd_thread *me, const struct matrix *w,
                 size_t i, float *x);
/* The end of a pass that pools, in place of logits. */
void fwd_pool(struct forward *f, struct fwd_thread *me);

/* Whether x[n] are numbers, neither NaN nor infinite. */
bool fwd_is_finite(const float *x, size_t n);

/* Choose the experts of a layer from its input x, for fwd_experts() to take; only of
 * models that route early. */
void fwd_route_early(struct forward *f, struct fwd_thread *me, const struct layer *y);

/* The length of context that rotations are chosen for: what a token sees. */
static inline int fwd_rope_ctx(const struct forward *f)
{
    const struct kvcache_shape *s = &f->kv->shape;

    return s->n_recent ? s->n_sinks + s->n_recent : f->kv->n_ctx;
}

/* Compute the last rows of f->turn. */
void fwd_turn_sinks(struct forward *f);

/* Fills in f->tiles_from for the formats of the model. */
void fwd_measure_tiles(struct forward *f);

/* Divide attention of the current pass: items and splits. */
void fwd_plan_attention(struct forward *f);

/* Multiply a head v[d] by a Hadamard matrix, where the cache has it so, or back. */
void fwd_spread(const struct forward *f, float *v, size_t d);

/* Scale the result out[head_dim] of head q of token j by its gate. */
void fwd_gate_head(const struct forward *f, const struct layer *y, size_t q, size_t j,
                   float *out);

/* Keep the results of a thread's part of a head's positions; join those of all tokens
 * to heads. */
void fwd_keep_partial(struct forward *f, const struct fwd_thread *me, int layer,
                      size_t token, int head, int split);
void fwd_join_tokens(struct forward *f, struct fwd_thread *me, int layer);

/* Join the partial results of all heads of a token: out[n_heads * value_dim]. */
void fwd_join_splits(const struct forward *f, const struct layer *y, size_t token,
                     float *out);

#endif
