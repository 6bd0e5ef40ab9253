/* SPDX-License-Identifier: MIT
 *
 * synth.h - GGUF files of a real model's shape with random weights
 *
 * Measuring speed only needs the shape, the tensor types and activations of normal
 * size. A synthetic model has the tensors of its architecture's table, the per-tensor
 * types of a quantisation mix, weights drawn so that activations keep unit scale
 * through any number of layers, and a vocabulary, so that other GGUF engines load it
 * too. Equal shape, mix and seed give equal bytes on any machine.
 *
 * Blocks are drawn from a pool of quantised random blocks, so making a file costs
 * little more than copying memory.
 *
 * Threading: one thread per plan.
 */
#ifndef SLM_ENGINE_SYNTH_SYNTH_H
#define SLM_ENGINE_SYNTH_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/quantize/quantmix.h"

/* A shape as in configs/models/<name>.yaml. */
struct synth_shape {
    char name[64]; /* "yi-1.5-9b" */
    char arch[32]; /* any of arch.c */
    uint32_t n_layers, n_embd, n_ff, n_heads, n_kv_heads, head_dim, n_vocab,
        n_ctx_train;
    float rope_base;
    float norm_eps;
    int tied_output; /* output.weight absent, token_embd used for both */
    int rope_freqs;  /* write a rope_freqs.weight tensor (Llama 3.1 scaling) */
    uint32_t n_rot;  /* leading elements of a head that are rotated; 0: head_dim */
    /* Latent attention: ranks of what queries (0: none), and keys and values are made
     * of, and elements of a value; head_dim is a key's, of which n_rot are rotated. All
     * 0: other attention. */
    uint32_t q_rank, kv_rank, value_dim;
    uint32_t window; /* sliding window of the layers that have one; 0: no key */
    uint32_t n_experts, n_experts_used; /* of n_ff each; 0, 0: a dense model */
    uint32_t n_ff_shared;               /* of the shared expert; 0: none */
    uint32_t n_nextn; /* layers behind n_layers that predict further tokens; 0: none */
    uint32_t n_dense, n_ff_dense; /* the first layers, without experts, and their width;
                                     0, 0: none */
    /* Layers have linear attention, but for every full_attention_interval-th; all 0:
     * none of the architecture's layers has. */
    uint32_t full_attention_interval, n_delta_k_heads, n_delta_v_heads, delta_head_dim,
        n_delta_conv;
    /* The layers with attention, "2 5 8", where the others have a recurrent part;
     * empty: as above, or all. Mamba-2's sizes, and inputs that the convolution before
     * it, or instead of it, mixes; all 0: none. */
    char attention_layers[32];
    uint32_t n_ssm_groups, n_ssm_heads, ssm_head_dim, ssm_state_dim, n_conv;
    /* Where layers are of two kinds (Gemma 3n and 4): all but every window_interval-th
     * have a window, and heads of their own number and length if these are not 0; the
     * last n_kv_shared ones read the keys and values of earlier ones, and are
     * n_ff_kv_shared wide if that is not 0. Of rope_freqs only the first n_rope_turning
     * pairs turn. */
    uint32_t window_interval, n_window_kv_heads, window_head_dim, n_kv_shared,
        n_ff_kv_shared, n_rope_turning;
    int keys_as_values;   /* layers without a window have no values but their keys */
    uint32_t n_per_layer; /* length of per-layer embeddings; 0: none */
    uint32_t n_streams, n_low, n_sparse; /* streams of a token, rank of the matrices
                                            next to attention, layers with sparse gates;
                                            0: none */
    int unrotated; /* positions do not rotate queries and keys, where a key says so */
    float router_skew;  /* exponent of the experts' popularity by rank; 0: all are taken
                           equally often */
    char pooling[32];   /* of an embedding model: "mean", "cls", "last"; empty: it is
                           none */
    uint32_t n_pool_ff; /* rows of the first of two matrices behind the pooling, whose
                           result is as long as an embedding; 0: there are none */
    int qkv_bias; /* biases of queries, keys and values, where they are optional */
    int all_bias; /* of all matrices of a layer that may have some */
};

/* The routers' skew of shapes that do not set it: the more popular half of a layer's 64
 * experts in OLMoE-1B-7B was measured to have 75 % of the choices, as with this one.
 */
#define SYNTH_ROUTER_SKEW 0.7F
#define SYNTH_MAX_SKEW    4.0F

/* Whether routers of this shape can have a skew: its channels must be whole blocks of
 * 256, four at least, its heads together, too, and its embedding not the output matrix;
 * its attention is not latent.
 */
bool synth_can_skew(const struct synth_shape *shape);

/* The share of tokens that take the expert of a rank, from 1, of a layer with a skew:
 * c / rank^router_skew, 0.95 at most. */
double synth_router_share(const struct synth_shape *shape, int rank);

struct synth_plan; /* header bytes and tensor layout, everything but the data */

/* The shape is copied. Errors: ST_USAGE (a shape that no engine could load: heads
 * not a multiple of KV heads, a vocabulary without room for the byte tokens, ...),
 * ST_UNSUPPORTED (architecture), ST_NO_MEMORY. Row lengths are free: where the
 * format's block does not divide them, quantmix_format() takes another format. */
enum status synth_plan_make(struct synth_plan **plan, const struct synth_shape *shape,
                            enum quantmix mix, uint64_t seed, struct err *err);
void synth_plan_free(struct synth_plan *plan);
uint64_t synth_plan_bytes(const struct synth_plan *plan); /* size of the file */
uint64_t synth_plan_params(const struct synth_plan *plan);

/* Sizes of the files of all mixes, bytes[QUANTMIX_N], and how many weights each has; as
 * the plans say, of which only the first has to invent a vocabulary. Errors: those of
 * synth_plan_make(); what bytes has is then undefined. */
enum status synth_file_sizes(const struct synth_shape *shape, uint64_t *bytes,
                             uint64_t *n_params, struct err *err);

/* The file up to its tensors' data: metadata and tensor table. */
const void *synth_plan_header(const struct synth_plan *plan, size_t *bytes);

/* Called every few megabytes; non-zero stops with ST_INTERRUPTED. */
typedef int synth_progress_fn(void *arg, uint64_t done, uint64_t total);

/* Write the file, through <path>.part and a rename, so that a file with its final name
 * is always complete and on disk. A failure removes the part; a part that a killed run
 * left is overwritten. No page of the file stays in the page cache. Errors: ST_IO,
 * ST_USAGE (path names a directory or device), ST_NO_MEMORY (disk too small, checked
 * before the first byte; the message has the needed and free space), ST_INTERRUPTED. */
enum status synth_write_file(const struct synth_plan *plan, const char *path,
                             synth_progress_fn *progress, void *arg, struct err *err);

/* Whether a file's metadata mark it as made by this module, with random weights. */
bool synth_is_made(const struct gguf *g);

/* Whether path is this plan's file, by its size and header, which contains shape, mix,
 * seed and vocabulary. */
bool synth_file_is(const struct synth_plan *plan, const char *path);

/* The same into memory: synth_plan_bytes() at image. */
enum status synth_write_memory(const struct synth_plan *plan, void *image,
                               synth_progress_fn *progress, void *arg, struct err *err);

#endif
