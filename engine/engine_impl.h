/* SPDX-License-Identifier: MIT
 *
 * engine_impl.h - shared by engine*.c
 */
#ifndef SLM_ENGINE_ENGINE_IMPL_H
#define SLM_ENGINE_ENGINE_IMPL_H

#include "engine/engine.h"
#include "engine/forward/forward.h"
#include "engine/kv/prefix.h"
#include "engine/kv/rewind.h"

/* Where a checkpoint is to be kept, and its place while the pass runs. */
struct prefix_mark {
    int n_past;
    enum slm_mark why;
    int place;
};

struct sequence {
    int n_past;
    struct rewind rewind;
    struct prefix_mark marks[SLM_MAX_MARKS]; /* [n_marks] by position, of the next
                                                pass */
    int n_marks;
};

struct slm {
    struct gguf *g;
    struct weights *w;
    struct model *model;
    struct thread_pool *pool;
    struct kvcache kv;
    struct sequence *seqs;         /* [info.n_sequences] */
    struct prefix_cache *prefixes; /* NULL: none can be kept */
    struct forward *forward;
    struct mtp *mtp; /* NULL: not asked for */
    struct slm_info info;
    int n_threads, n_threads_prefill; /* >= 1 */
    int pass_tokens;                  /* most tokens in one pass of prefill */
    size_t n_logits;                  /* of the last slm_eval() or slm_batch() */
    size_t *logits_at;      /* [n_parts] which are the first of each part, of */
    int n_parts;            /* slm_batch() */
    int32_t *again;         /* [info.n_batch] tokens of parts that begin with some that
                               run again */
    slm_eval_hook_fn *hook; /* NULL: none */
    void *hook_arg;
};

/* What every evaluation begins and ends with. Errors: ST_USAGE (no threads, no
 * weights), ST_IO. */
enum status engine_begin(struct slm *m, struct err *err);
enum status engine_end(struct slm *m, struct err *err);

/* Errors: ST_USAGE (a token outside the vocabulary, or more than fit the context). */
enum status engine_check_tokens(const struct slm *m, int seq, const int32_t *tokens,
                                size_t n, struct err *err);

/* The first position that n more tokens of a sequence write: its end, or after
 * slm_truncate() where tokens must run again. */
size_t engine_begin_of(const struct slm *m, int seq);

/* After slm_truncate(): bring states and rings to the end of the sequence, which has
 * the room from engine_begin_of() on. */
void engine_run_again(struct slm *m, int seq);

/* The same together with the next pass over tokens[n] where that has room for *room
 * tokens more: the part to be computed. Its tokens are in buffer[] then, which has as
 * much room and n more; *room becomes less by what the part has besides tokens[n]. */
struct forward_part engine_part_again(struct slm *m, int seq, const int32_t *tokens,
                                      int n, int n_logits, int32_t *buffer, int *room);

/* Places for the checkpoints that the part comes to, which its pass fills; after it
 * they are kept, or given back if it has failed. */
void engine_place_marks(struct slm *m, struct forward_part *part);
void engine_keep_marks(struct slm *m, int seq, bool ok);

/* Have room for all parts of a batch, or for none: ST_NO_MEMORY. */
enum status engine_reserve(struct slm *m, const struct slm_part *parts, int n_parts,
                           struct err *err);

/* Threads of a pass, and what going back needs to know of it. */
void engine_begin_pass(struct slm *m, const struct forward_part *parts, int n_parts);

/* A pass; the sequences have the room. */
void engine_run_pass(struct slm *m, const struct forward_part *parts, int n_parts);

/* ---- the layer that predicts further tokens: engine_mtp.c ------------------------ */

struct mtp;

/* Before the weights are preloaded. Errors: those of model_load_nextn(), ST_NO_MEMORY.
 */
enum status mtp_open(struct mtp **t, struct slm *m, const struct slm_params *p,
                     struct err *err);
void mtp_close(struct mtp *t);

/* What mtp_open() allocates for such a layer's model. */
uint64_t mtp_bytes(const struct model *m, const struct slm_params *p,
                   const struct slm_info *info);

/* model_rebind() of it. */
enum status mtp_rebind(struct mtp *t, struct slm *m, struct err *err);
void mtp_tune(struct mtp *t, const struct slm_tuning *tuning);

/* After each pass of the model. */
void mtp_after_pass(struct slm *m, const struct forward_part *parts, int n_parts);

/* The sequence was cut, or copied. */
void mtp_cut(struct mtp *t, int seq, int n_past);
void mtp_fork(struct mtp *t, int from, int to);

/* Describe a model with these parameters, which are checked; the residency stays as it
 * is. Errors: those of slm_plan() but for loading. */
enum status info_fill(struct slm_info *info, const struct gguf *g,
                      const struct model *m, const struct slm_params *params,
                      struct err *err);

/* Resolve residency auto in *info, and describe the memory of the weights with it;
 * plan: for residency stream. Errors: those of slm_plan() but for loading. */
enum status info_weights(struct slm_info *info, struct residency_plan *plan,
                         const struct gguf *g, const struct slm_params *params,
                         struct err *err);

/* slm_plan(), with the plan of residency stream. */
enum status info_plan(struct slm_info *info, struct residency_plan *plan,
                      const struct gguf *g, const struct slm_params *params,
                      struct err *err);

/* What *info says of a plan of residency stream. */
void info_stream(struct slm_info *info, const struct residency_plan *plan);

/* The memory that params allow. */
uint64_t info_memory_bytes(const struct slm_params *params);
uint64_t info_machine_bytes(void);

/* The cache of a model with these parameters, in which rings hold n_spare positions
 * more than a token sees. */
struct kvcache_shape info_kv_shape(const struct model *m, const struct slm_params *p,
                                   int n_spare);

#endif
