/* SPDX-License-Identifier: MIT
 *
 * synth_parts.h - shared by the files that make synthetic models, for synth*.c only
 *
 * synth.c        the plan: checks the shape, writes the header
 * synth_tensors.c  which tensors there are, and what they are filled with
 * synth_recurrent.c  layers with a recurrent part
 * synth_latent.c  latent attention
 * synth_kinds.c  layers of two kinds, per-layer embeddings, several streams
 * synth_vocab.c  the made-up SentencePiece vocabulary
 * synth_pool.c   random blocks, and the image as a stream of bytes
 * synth_router.c what lets routers have favourites
 * synth_file.c   the stream, written to a file
 *
 * A tensor's data is a sequence of *units* of 256 weights (the last one cut), drawn at
 * random from the pool of its format and standard deviation.
 */
#ifndef SLM_ENGINE_SYNTH_SYNTH_PARTS_H
#define SLM_ENGINE_SYNTH_SYNTH_PARTS_H

#include "engine/arch/loader.h"
#include "engine/gguf/gguf_put.h"
#include "engine/synth/synth.h"

#define SYNTH_UNIT_ELEMS  256
#define SYNTH_MAX_POOLS   48
#define SYNTH_POOL_UNITS  2048
#define SYNTH_MIN_VOCAB   300 /* control, 256 bytes, some letters */
#define SYNTH_CHUNK_BYTES ((size_t)4 << 20)

/* The tokenizer.* pairs of a vocabulary of n tokens, n >= SYNTH_MIN_VOCAB. */
void synth_put_vocab(struct gguf_kvs *k, uint32_t n);

/* Add all tensors of the shape to a plan without any. Errors: ST_NO_MEMORY, ST_USAGE
 * (too many kinds of weights). */
enum status synth_add_tensors(struct synth_plan *p, struct err *err);

/* The sizes that rules of tensors refer to. */
struct model synth_sizes(const struct synth_shape *s);

/* The pair "<arch>.<key>". */
void synth_put_u32(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                   uint32_t v);
void synth_put_bool(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                    bool v);

/* Whether layers of the architecture have a recurrent part, and of which kind. */
bool synth_recurrence(const struct arch *arch, enum recurrence *kind);

/* Its sizes; 0: none. */
struct recur_sizes synth_recur_sizes(const struct synth_shape *s,
                                     const struct arch *arch);

/* The sizes of latent attention into those of a model, and their pairs; nothing for
 * other attention. */
void synth_latent_sizes(const struct synth_shape *s, struct model *m);
void synth_put_latent(struct gguf_kvs *k, const struct synth_shape *s,
                      const struct model *m);

/* Errors: those of synth_check_shape(). */
enum status synth_check_latent(const struct synth_shape *s, struct err *err);

/* Whether attention_layers has this layer. */
bool synth_lists(const struct synth_shape *s, uint32_t layer);

/* What the layer has, and the sizes of it that rules refer to. */
struct layer synth_layer(const struct synth_shape *s, int layer);

/* The pairs of recurrent parts, and the heads of keys, of each layer where they differ.
 */
void synth_put_recurrent(struct gguf_kvs *k, const struct synth_shape *s,
                         const struct recur_sizes *r);
void synth_put_kv_heads(struct gguf_kvs *k, const struct synth_shape *s);

/* What layers of two kinds have, into a layer; their pairs; the tensors of the ends
 * that only such models have, of which next() is the one behind r (NULL: the first). */
void synth_set_kind(const struct synth_shape *s, int layer, struct layer *y);
void synth_put_kinds(struct gguf_kvs *k, const struct synth_shape *s);
const struct tensor_rule *synth_next_end(const struct model *m,
                                         const struct tensor_rule *r);
/* ST_USAGE: v is not within min .. max. */
enum status synth_check_range(const struct synth_shape *s, const char *what, uint32_t v,
                              uint32_t min, uint32_t max, struct err *err);
enum status synth_check_kinds(const struct synth_shape *s, struct err *err);

/* Small matrices that files keep as they are (quantmix.h): of 16 bits. */
bool synth_is_plain(const char *name);

/* The pairs "<arch>.<key>" of other types. */
void synth_put_f32(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                   float v);
void synth_put_array(struct gguf_kvs *k, const struct synth_shape *s, const char *key,
                     enum gguf_type type, uint32_t n);

/* Errors: those of synth_plan_make() that a shape can cause. */
enum status synth_check_shape(const struct synth_shape *s, struct err *err);

/* ---- the plan -------------------------------------------------------------------- */

enum synth_content {
    SYNTH_GAUSS,      /* mean + sigma * N(0, 1) */
    SYNTH_ROPE_FREQS, /* the frequency factors of Llama 3.1 */
};

struct synth_pool_spec {
    enum synth_content content;
    enum kern_format fmt;
    float mean, sigma;
    uint32_t n_units;    /* a power of two */
    uint32_t unit_bytes; /* SYNTH_UNIT_ELEMS weights; rope_freqs: the whole tensor */
};

/* Tensors whose units come from several pools, by the part that a unit is in: routers
 * with favourites need them (synth_router.c). */
enum synth_layout {
    SYNTH_PLAIN,     /* one part */
    SYNTH_EMBEDDING, /* columns of bias and of context channels, and the rest */
    SYNTH_LOOK_BACK, /* likewise: queries, keys */
    SYNTH_VALUES,    /* likewise */
    SYNTH_ATTN_OUT,  /* rows of context channels, and the rest */
    SYNTH_ROUTER,    /* drawn without a pool */
};
enum synth_part { SYNTH_PART_REST, SYNTH_PART_BIAS, SYNTH_PART_CONTEXT, SYNTH_N_PARTS };

struct synth_tensor {
    char name[48];
    int n_dims;
    uint64_t ne[3]; /* unused ones: 1 */
    enum kern_format fmt;
    int layer; /* -1: none */
    enum synth_layout layout;
    uint32_t head_dim, near[2]; /* SYNTH_LOOK_BACK: pairs near[0] .. near[1]-1 of a
                                   head's elements look at near tokens */
    bool halves;                /* pairs lie half a head apart */
    int pool[SYNTH_N_PARTS]; /* indices into plan->pools; without a layout the first */
    uint64_t offset;         /* from the start of the data */
    uint64_t bytes;
};

struct synth_plan {
    struct synth_shape shape;
    enum quantmix mix;
    uint64_t seed;
    struct synth_tensor *tensors;
    size_t n_tensors, cap_tensors;
    struct synth_pool_spec pools[SYNTH_MAX_POOLS];
    int n_pools;
    struct gguf_bytes header; /* padded to the alignment: the data follows */
    uint64_t data_bytes;      /* padded likewise */
    uint64_t n_params;
};

/* ---- embedding models ------------------------------------------------------------ */

/* Keys of pooling, and of the matrices behind it. */
void synth_put_pooling(struct gguf_kvs *k, const struct synth_shape *s,
                       const struct arch *arch);

/* Error: ST_USAGE (a pooling that is none, matrices that the architecture lacks). */
enum status synth_check_pooling(const struct synth_shape *s, const struct arch *arch,
                                struct err *err);

/* ---- routers --------------------------------------------------------------------- */

#define SYNTH_MAX_EXPERTS 1024

/* What a tensor is, of a model with routers that have favourites; else SYNTH_PLAIN. */
enum synth_layout synth_layout_of(const struct synth_shape *s, const char *name);

/* Pools of the parts from equal ones. */
void synth_layout_pools(const struct synth_shape *s, enum synth_layout layout,
                        struct synth_pool_spec pool[SYNTH_N_PARTS]);

/* Pairs of a head's elements that tell near tokens from others: near[0] .. near[1]-1.
 */
void synth_near_pairs(const struct synth_shape *s, uint32_t near[2]);

/* The part that a unit of a tensor is in. */
enum synth_part synth_part_of(const struct synth_tensor *t, uint64_t unit);

/* A layer's router: the constant weights of each expert's row in bias channels, and the
 * deviations of the random ones in the other channels. */
struct synth_router {
    float bias[SYNTH_MAX_EXPERTS], context, rest;
};
void synth_router_open(struct synth_router *r, const struct synth_shape *s, int layer,
                       uint64_t random);

/* ---- the image as a stream ------------------------------------------------------- */

struct synth_stream; /* pools and a position in the image */

/* Open the stream and quantise its pools. Error: ST_NO_MEMORY. */
enum status synth_stream_open(struct synth_stream **s, const struct synth_plan *plan,
                              struct err *err);
void synth_stream_close(struct synth_stream *s);

/* The next n bytes of the image. */
void synth_stream_read(struct synth_stream *s, void *dst, size_t n);

#endif
