/* SPDX-License-Identifier: MIT
 *
 * forward.h - from tokens to logits
 *
 * One pass takes 1..n_batch tokens through all layers inside a single
 * thread_pool_run(): any mix of parts of sequences, one token of each that decodes and
 * many of one whose prompt is read. Weights are read once for all of them. Threads meet
 * at barriers between stages:
 *
 *     embed | per layer: q k v | attention | attention output | gate, up | down
 *           | output
 *
 * For one token, and for a few where their columns are short, each thread prepares
 * (normalises, quantises) the stage's input for itself, which costs less than a
 * barrier; for more the columns are divided among the threads and a barrier follows.
 * Rows of a matrix are handed out in chunks that get shorter (row_chunks.h). Nothing
 * allocates during a pass.
 *
 * Threading: as thread_pool_run(), on the threads that are in use (thread_pool_use()).
 */
#ifndef SLM_ENGINE_FORWARD_FORWARD_H
#define SLM_ENGINE_FORWARD_FORWARD_H

#include <stddef.h>
#include <stdint.h>

#include "engine/arch/arch.h"
#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/forward/profile.h"
#include "engine/forward/sums.h"
#include "engine/forward/tuning.h"
#include "engine/kv/kvcache.h"

struct forward;

/* Bytes that forward_open() allocates for a batch size (1..FORWARD_MAX_BATCH), a cache
 * of n_sequences and a pool of n_threads. */
#define FORWARD_MAX_BATCH 65536
uint64_t forward_bytes(const struct model *m, enum slm_sums sums, enum kern_kv kv_type,
                       int n_batch, int n_logits, int n_sequences, int n_threads);

/* The model, the cache and the pool must outlive it. Error: ST_NO_MEMORY. */
enum status forward_open(struct forward **f, const struct model *m, struct kvcache *kv,
                         struct thread_pool *pool, uint32_t isa_mask,
                         enum slm_sums sums, int n_batch, int n_logits,
                         struct err *err);
void forward_close(struct forward *f);

/* Behind n of a part's tokens the states are copied, [n_states][state_floats]. */
struct forward_save {
    int n;
    float *states;
};

#define FORWARD_MAX_SAVES 3

/* What a pass computes of one sequence. */
struct forward_part {
    int seq;               /* number in the cache; each once in a pass */
    const int32_t *tokens; /* [n], n > 0, at positions n_past .. */
    int n, n_past;
    int n_logits; /* of the last ones, 0..n */
    int n_again;  /* of the first ones, < n: the states behind them are copied as by
                     kvcache_save_states(); 0: none are */
    int n_saves;  /* ascending, where layers keep states */
    struct forward_save saves[FORWARD_MAX_SAVES];
};

/* Take up to n_batch tokens through the model. Tokens and positions have been checked,
 * and the cache has room for them. */
void forward_run(struct forward *f, const struct forward_part *parts, int n_parts);

/* The same of whole texts, which begin at position 0, and end in vectors and not in
 * logits: one for each part, or with SLM_POOLING_NONE for each token. */
void forward_embed(struct forward *f, const struct forward_part *parts, int n_parts,
                   enum slm_pooling pooling);

/* The i-th of them: [model_vector()]; of a token [n_embd]. */
const float *forward_vector(const struct forward *f, size_t i);

/* Wait for the parts of each layer of these weights before using them, and give them
 * back afterwards; first: all are always there. */
void forward_set_weights(struct forward *f, struct weights *w);

/* Another tuning from the next pass on; the first is slm_tuning_default(). */
void forward_tune(struct forward *f, const struct slm_tuning *tuning);

void forward_get_tuning(const struct forward *f, struct slm_tuning *tuning);

/* As slm_takes_tiles(). */
bool forward_takes_tiles(const struct forward *f, size_t n_tokens);

/* As slm_attends_by_tiles(). */
bool forward_attends_by_tiles(const struct forward *f);

/* As slm_measure_prefetch() and slm_prefetches(), on the threads in use. */
enum status forward_measure_prefetch(struct forward *f, double budget_s,
                                     uint64_t cache_bytes, struct err *err);
bool forward_prefetches(const struct forward *f, enum kern_format fmt);

/* Call hook(arg, ...) with the inputs of all matrices but routers from the next pass
 * on; NULL: end. */
void forward_set_hook(struct forward *f, slm_activation_hook_fn *hook, void *arg);

/* Profile the passes from here on; an earlier profile is discarded. Error:
 * ST_NO_MEMORY.
 */
enum status forward_profile_start(struct forward *f, struct err *err);
void forward_profile_read(const struct forward *f, struct slm_profile *out);

/* Whether all logits of the last pass are numbers, neither NaN nor infinite. */
bool forward_is_finite(const struct forward *f);

/* Run the last pass once more to find the first layer whose results are not all
 * numbers; -1: the embedding's, n_layers: only the logits. States of layers that keep
 * some are no longer those of the sequence. */
int forward_find_fault(struct forward *f);

/* Gives a model that predicts the token after the next the hidden states of its next
 * pass's tokens, rows [n_embd] at a stride of forward_stride(), the caller's until the
 * pass ends. */
void forward_set_hidden(struct forward *f, const float *rows);

/* Floats from one row of a stream to the next. */
size_t forward_stride(const struct forward *f);

/* The stream that the j-th token of the last pass leaves behind the last layer, with
 * the model's last norm or as it is, to out[n_embd]. */
void forward_hidden(const struct forward *f, size_t j, bool normalised, float *out);

/* Logits [n_vocab] of the i-th of all parts' n_logits tokens. */
const float *forward_logits(const struct forward *f, size_t i);

#endif
