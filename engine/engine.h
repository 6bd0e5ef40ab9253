/* SPDX-License-Identifier: MIT
 *
 * engine.h - libslm's public API: run a small language model on CPUs
 *
 *     slm_open()             a model: its file, threads, context      (here)
 *     tokenizer_open()       the vocabulary in the same file          (tokenizer.h)
 *     tokenizer_encode()     a text as token ids; chat_encode(): a conversation
 *     slm_eval()             append them to the sequence
 *     slm_logits()           logits of the next token
 *     sampler_next()         draw one                                 (sampler.h)
 *     tokenizer_piece()      its bytes; utf8_stream_push(): in whole characters
 *
 * and so on from slm_eval(). examples/generate.c is a complete program.
 *
 * A struct slm is one model, one sequence or several, one thread pool. All memory is
 * allocated by slm_open(); slm_eval() does not allocate and enters the kernel only to
 * wait for its threads, for pages and for streamed weights, which another thread reads.
 *
 * Threading: only the thread that opened a struct slm uses it (it is thread 0 of the
 * pool).
 */
#ifndef SLM_ENGINE_ENGINE_H
#define SLM_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/arch/pooling.h"
#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/forward/profile.h"
#include "engine/forward/sums.h"
#include "engine/forward/tuning.h"
#include "engine/gguf/gguf.h"
#include "engine/text/sampler.h"
#include "engine/tokenizer/tokenizer.h"
#include "engine/weights/weights.h"

struct slm;

/* Enough columns to amortise unpacking a tile of weights many times over. */
#define SLM_DEFAULT_BATCH 512

/* Longer than most answers, which are what a sequence is cut back by. */
#define SLM_DEFAULT_BACK 1024

/* The first positions that a windowed KV cache keeps: as many as Xiao et al. 2023
 * (arXiv 2309.17453) found to be enough. */
#define SLM_DEFAULT_SINKS 4

/* Most positions of a window. */
#define SLM_MAX_WINDOW (1 << 24)

/* Most positions of a sequence. */
#define SLM_MAX_POSITIONS (1 << 30)

#define SLM_MAX_SEQUENCES 1024

struct requant_params;

struct slm_params {
    const char *path;  /* a GGUF file or a Hugging Face folder, or NULL with image */
    const char *quant; /* with a path: quantise an F32, F16 or BF16 model to this mix
                          ("Q4_K_M") while loading it; or NULL. Such weights can only
                          be packed */
    const struct requant_params *requant; /* the same by rules (requant.h), kept by the
                                             caller; or NULL */
    const void *image; /* a GGUF image in memory, kept by the caller */
    size_t image_bytes;
    bool image_rewrite; /* weights_preload() may rewrite it into panels, so that it
                           decodes as a packed file */
    enum weights_residency residency; /* of a file: mmap, packed, stream or auto, which
                                         slm_choose_residency() resolves */
    uint64_t memory_bytes; /* limit for everything; 0: this machine's memory. For stream
                              it decides how many layers are streamed */
    uint64_t spare_bytes;  /* memory in addition, of which only pages of a mapped file
                              may  take a part, since they can be given up at any time */
    struct stream_ring *ring; /* to read streamed weights with, where the process may
                                 not make an io_uring any more; for one model at a time,
                                 which it outlives. NULL: the model makes one */
    const char *name;         /* of the image in messages */
    uint32_t isa_mask;        /* ISA levels to choose kernels from: isa_usable() */
    int n_threads;            /* of a pass of one token (decode), >= 1 */
    int n_threads_prefill;    /* of a pass of several; 0: the same */
    const int *cpus;          /* [slm_params_threads()], of which either count uses the
                                 first; NULL: the OS places threads */
    int n_ctx;                /* positions of a sequence; 0: the model's own maximum */
    int n_sequences;          /* that slm_batch() can continue; 0: one */
    bool paged;    /* the KV cache of one sequence is in pages, too, as that of several
                      is: what it begins with can be kept then */
    size_t n_pool; /* with pages: positions of all sequences together, for which the KV
                      cache has room; 0: n_ctx of each */
    int n_checkpoints; /* of sequences that can be kept at a time, of models that need
                          them to keep what sequences begin with: layers have a window
                          or states; not with a kv_window. 0: none */
    int kv_window;     /* a token sees the last positions only, this many with
                          itself, and the first n_sinks: the KV cache holds these
                          (and n_back more), and a sequence has no end. Layers with a
                          sliding window as long or shorter keep theirs. 0: it sees
                          all n_ctx */
    int n_sinks;
    enum kern_kv kv_type;       /* what the KV cache holds: KERN_KV_f16, ... */
    enum slm_sums prefill_sums; /* of products with many tokens: sums.h.
                                   ST_UNSUPPORTED: no level in isa_mask has int8 sums */
    int n_batch;                /* most tokens in one pass of prefill; 0:
                                   SLM_DEFAULT_BATCH */
    int n_logits; /* most tokens with logits from one slm_eval(); 0: n_batch */
    int n_back;   /* positions that slm_truncate() may take off without tokens
                     running again where layers have a window, at least
                     n_batch; 0: SLM_DEFAULT_BACK */
    bool mtp;     /* open the layer that predicts the token after the next, too: mtp.h.
                     ST_UNSUPPORTED: the file has none */
    struct slm_tuning tuning;
};

/* 1 thread, unpinned, isa_usable(), mapped, n_ctx 0, n_batch 0, n_back 0, F16 keys and
 * values of all positions, SLM_DEFAULT_SINKS, untuned. */
struct slm_params slm_params_default(void);

/* Threads that slm_open() starts: the larger of the two counts. */
int slm_params_threads(const struct slm_params *p);

struct slm_info {
    char arch[32];  /* "llama" */
    char name[64];  /* general.name, cut to fit; "" if absent */
    char quant[24]; /* file type: "Q4_K_M", else the most common tensor type */
    enum weights_residency residency; /* as opened */
    int n_layers, n_embd, n_heads, n_kv_heads, head_dim, n_ff, n_vocab;
    int n_ctx_train;              /* the model's own maximum */
    bool is_encoder;              /* it makes vectors of texts and predicts nothing */
    enum slm_pooling pooling;     /* of a text's tokens, as the file has it; */
    bool has_pooling;             /* false: the file has none */
    int n_vector;                 /* elements of the vector of a text */
    int n_ctx, n_batch, n_logits; /* as opened */
    int n_sequences;              /* as opened */
    int n_seq_pages;              /* that a sequence may take at most; 0: none */
    int n_checkpoints;            /* as opened; 0 of models that need none */
    uint64_t checkpoint_bytes;    /* of each, a part of kv_bytes; 0: no checkpoints */
    int n_back;                   /* as opened */
    int kv_window, n_sinks;       /* as opened; without a kv_window no sinks */
    int n_nextn;                  /* layers in the file that predict further tokens */
    uint64_t nextn_bytes; /* read for one token that the first of them guesses; 0:
                             there is none */
    uint64_t nextn_macs;
    uint64_t n_params;
    uint64_t weight_bytes;       /* all tensors */
    uint64_t rows_bytes;         /* of these, tables of per-layer embeddings, which only
                                    packed weights hold in memory */
    bool made_on_load;           /* quantised while being read, so they can only be
                                    packed */
    uint64_t weight_token_bytes; /* read for one decoded token: all matrices, the
                                    norms, one embedding row */
    uint64_t weight_token_macs;  /* multiply-adds with matrices for one decoded token */
    uint64_t output_bytes, output_macs; /* the output matrix' part of these two */
    int n_experts, n_experts_used;      /* of a layer; 0, 0: a dense model */
    uint64_t expert_bytes;    /* one expert's matrices in all layers; the experts'
                                 figures of a token count n_experts_used */
    enum kern_kv kv_type;     /* as opened */
    uint64_t kv_pos_bytes;    /* K and V of one position, as kept by all layers */
    uint64_t kv_read_bytes;   /* the same as a token reads them: more where layers share
                                 them */
    uint64_t kv_window_bytes; /* of these, in layers with a sliding window */
    int n_attends;            /* layers with attention */
    int n_recurrent;          /* layers that keep a state, instead or as well */
    uint64_t state_bytes;     /* of all of these */
    int n_window;             /* positions of the sliding window; 0: none */
    int n_window_layers;    /* layers with a sliding window, unless kv_window is less */
    uint64_t kv_bytes;      /* KV cache as allocated: layers with a window keep it and
                               n_back positions more; with states and checkpoints */
    uint64_t kv_more_bytes; /* that one more position than n_ctx adds to it */
    uint64_t scratch_bytes; /* activations, logits, norm weights as allocated */
    int n_streamed;         /* layers that are read again for each pass; 0: none */
    uint64_t
        streamed_bytes;   /* read from the file for each pass; for cached experts what
                             a token is expected to miss if all are equally popular */
    uint64_t cache_bytes; /* of memory for cached experts; 0: none are cached */
    uint64_t weights_memory_bytes; /* allocated for weights: packed: all of them;
                                      stream: what is kept, and the slot; mmap,
                                      memory: 0 */
    uint64_t stream_min_bytes;     /* the same with all layers streamed; 0: they cannot
                                        be streamed */
    uint64_t stream_kept_bytes;    /* the same with none streamed */
    uint64_t map_bytes; /* of memory for a mapped file: what passes read again and
                           again, and page tables */
};

/* Errors: ST_IO, ST_INPUT (the file), ST_USAGE (params), ST_UNSUPPORTED
 * (architecture or tensor type; the message lists the known ones),
 * ST_NO_MEMORY (at once for a context that the machine's memory can never hold: pages
 * are allocated on first touch, so the process would fail only later). */
enum status slm_open(struct slm **m, const struct slm_params *params, struct err *err);
void slm_close(struct slm *m);
const struct slm_info *slm_info(const struct slm *m);
const struct gguf *slm_gguf(const struct slm *m);
struct weights *slm_weights(struct slm *m);

/* The pool, to run something else on the same pinned threads between two
 * evaluations: while its first thread is pinned, it cannot start a pool on other CPUs.
 * slm_open() leaves all threads in use, slm_eval() those of its last pass; slm_eval()
 * ignores an earlier thread_pool_use(). */
struct thread_pool *slm_thread_pool(struct slm *m);

/* The memory that slm_open() would allocate, and the other facts of *info, from the
 * file's metadata alone. For planning against a memory limit. For residency auto, the
 * one that slm_choose_residency() chooses is in *info. Error besides
 * those of slm_open() for a file: ST_NO_MEMORY (stream, and the model does not fit into
 * memory_bytes even with all layers streamed). */
enum status slm_plan(struct slm_info *info, const struct gguf *g,
                     const struct slm_params *params, struct err *err);

/* The sizes of info that only files have (stream_*_bytes, map_bytes), as if g, which is
 * in memory, were a mapped file. Errors: ST_UNSUPPORTED, ST_USAGE (assembled),
 * ST_NO_MEMORY. */
enum status slm_plan_as_file(struct slm_info *info, const struct gguf *g,
                             struct err *err);

/* WEIGHTS_PACKED where weights, cache and scratch memory of a planned model fit into
 * memory_bytes, or where weights are quantised while being read. Else, of a model that
 * can be streamed: WEIGHTS_STREAM where all but embeddings, which stay in the file, can
 * be kept; WEIGHTS_MMAP where spare_bytes more hold what is mapped; WEIGHTS_STREAM
 * where some or all layers must be streamed. Else WEIGHTS_MMAP, which runs a model of
 * any size. */
enum weights_residency slm_choose_residency(const struct slm_info *info,
                                            uint64_t memory_bytes,
                                            uint64_t spare_bytes);

/* Whether any of these ways finds all that a pass reads in memory. */
bool slm_fits_memory(const struct slm_info *info, uint64_t memory_bytes,
                     uint64_t spare_bytes);

/* What has been read of streamed layers since the model was opened. False: no layer is
 * streamed. Between two evaluations or within one. */
bool slm_stream_read(const struct slm *m, struct slm_stream *out);

/* Error: ST_UNSUPPORTED, if the model is an encoder. */
enum status slm_check_predicts(const struct slm_info *info, struct err *err);

enum slm_logits { SLM_LOGITS_NONE, SLM_LOGITS_LAST, SLM_LOGITS_ALL };

/* Append n >= 1 tokens to the sequence, n_batch at a time; not of an encoder.
 * SLM_LOGITS_ALL needs n <= n_logits. Errors: ST_USAGE (a token outside the vocabulary,
 * n > slm_n_free(), packed weights that weights_preload() has not filled; the sequence
 * is as before); ST_UNSUPPORTED (an encoder); ST_IO (weights could not be read, or
 * their file has changed: the sequence is as before; with streamed weights every
 * further call fails, too); ST_INPUT (logits are not numbers: the message names the
 * first layer whose results are not; layers that keep states have lost those of the
 * sequence). */
enum status slm_eval(struct slm *m, const int32_t *tokens, size_t n,
                     enum slm_logits which, struct err *err);

/* Logits [n_vocab] of the last slm_eval(): i = 0 with LAST, i-th token with ALL.
 * Valid until the next slm_eval(). */
const float *slm_logits(const struct slm *m, size_t i);

/* Other thread counts (1 to slm_params_threads(); 0 for prefill: that of decode) and
 * another tuning, except its pages, from the next slm_eval() on. Error: ST_USAGE (the
 * field, its value and its range). */
enum status slm_tune(struct slm *m, int n_threads, int n_threads_prefill,
                     const struct slm_tuning *tuning, struct err *err);

/* The tuning in force; n_batch as tuned. */
void slm_get_tuning(const struct slm *m, struct slm_tuning *tuning);

/* Whether products of any of the model's formats are made by tiles (AMX-INT8) in a pass
 * of n_tokens. Which are is measured when a format is first opened, about a millisecond
 * each, and stays in this process (tile_rule.h). */
bool slm_takes_tiles(const struct slm *m, size_t n_tokens);

/* Whether attention of a prompt multiplies by tiles (AMX-BF16): that over latents. */
bool slm_attends_by_tiles(const struct slm *m);

/* Most seconds that measuring the prefetch takes, unless memory is very slow. */
#define SLM_PREFETCH_BUDGET_S 0.3

/* Measure how this machine reads panels fastest (prefetch distance and hint,
 * interleaved panels), and read them so from here on: the decoding threads multiply the
 * model's own panels as they are read now and in a few other ways, in rounds of random
 * order; then in the fastest of these ways and their neighbours; at last the fastest
 * way is compared with the present one alone, and replaces it if it is faster in most
 * rounds and by more than a small margin. Panels are taken out of every cache before
 * they are read. A small model takes less than budget_s. Not measured: models of which
 * a token reads no more than cache_bytes (which the last-level cache holds; 0: as the
 * system reports), formats with a small share of a token's bytes, and weights in file
 * order (mmap). The sequence and its logits stay. Call again after a change of
 * threads or CPUs. Errors: ST_USAGE (packed weights that weights_preload() has not
 * filled), ST_NO_MEMORY. */
enum status slm_measure_prefetch(struct slm *m, double budget_s, uint64_t cache_bytes,
                                 struct err *err);

/* Whether panels of this format are a large enough share of a token's bytes for the way
 * they are read to matter. */
bool slm_prefetches(const struct slm *m, enum kern_format fmt);

/* Profile every slm_eval() from here on, which reads the clock once per operation and
 * layer. Error: ST_NO_MEMORY. */
enum status slm_profile_start(struct slm *m, struct err *err);

/* The profile since slm_profile_start(). */
void slm_profile_read(const struct slm *m, struct slm_profile *out);

/* Call hook with the inputs of all matrices but routers, from the next slm_eval() on;
 * NULL: end. The output matrix has inputs only where logits are computed. */
void slm_set_activation_hook(struct slm *m, slm_activation_hook_fn *hook, void *arg);

/* Positions of the sequence. */
int slm_n_past(const struct slm *m);

/* Positions by which it can become longer: to n_ctx, or with a kv_window to
 * SLM_MAX_POSITIONS. */
int slm_n_free(const struct slm *m);

/* Give `bytes` of memory back between two evaluations, because somebody else needs it:
 * layers that were kept in memory are streamed from now on, or fewer experts cached
 * (weights_reclaim()). The sequence and the logits stay; slm_info() has the new plan.
 * *freed is what went, `bytes` at least. Errors: ST_USAGE (weights that cannot be
 * streamed), ST_NO_MEMORY (that much cannot be given back, or no memory for the
 * tables): all is as before; ST_IO (the file cannot be read any more, and slm_eval()
 * fails). */
enum status slm_reclaim(struct slm *m, uint64_t bytes, uint64_t *freed,
                        struct err *err);

/* Call hook(arg) at the beginning of every slm_eval(), by its caller's thread: it may
 * call slm_reclaim(). NULL: end. */
typedef void slm_eval_hook_fn(void *arg);
void slm_set_eval_hook(struct slm *m, slm_eval_hook_fn *hook, void *arg);

/* Forget positions from n_past on: 0, or slm_min_past() <= n_past <= slm_n_past().
 * Where layers keep states, those of n_past return at once if there is a copy of them,
 * which is kept before a pass of several tokens, and before the first of one token
 * after it; else the next slm_eval() runs tokens again from before n_past. Where layers
 * have a window, it runs all tokens again, if the sequence has been longer by more than
 * n_back.
 */
void slm_truncate(struct slm *m, int n_past);

/* The least position but 0 to which slm_truncate() can return. That is 0, but with a
 * kv_window, once the sequence has become longer than n_ctx: then the tokens of its
 * beginning, which may have to run again, are forgotten; at least n_back positions can
 * still be taken off, and where layers keep states, those since the last pass of
 * several tokens or the first of one token after it. */
int slm_min_past(const struct slm *m);

/* ---- several sequences
 * ---------------------------------------------------------------
 *
 * A model opened with n_sequences has as many, numbered from 0, all empty at first. The
 * calls above mean number 0. They share room for n_pool positions in pages of
 * SLM_PAGE, which a sequence takes as it becomes longer; what sequences have in common
 * since slm_seq_fork() takes room once. */

#define SLM_PAGE 256

/* What slm_batch() computes of one sequence. */
struct slm_part {
    int seq;               /* each once in a batch */
    const int32_t *tokens; /* [n], appended to the sequence */
    int n;                 /* >= 1 */
    enum slm_logits which;
};

/* One pass over all parts, which reads the weights once: up to n_batch tokens in
 * all, of which up to n_logits have logits. Errors: as slm_eval(), and ST_NO_MEMORY
 * (the free pages do not suffice: slm_batch_pages()); all sequences are as before. */
enum status slm_batch(struct slm *m, const struct slm_part *parts, int n_parts,
                      struct err *err);

/* Logits [n_vocab] of the last slm_batch(): a part's last token with LAST, i = 0; its
 * i-th with ALL. Valid until the next one, or slm_eval(). */
const float *slm_batch_logits(const struct slm *m, int part, size_t i);

/* slm_n_past(), slm_n_free(), slm_truncate() and slm_min_past() of any sequence. What
 * is behind n_past gives its pages up; with a kv_window, whose ring goes round in them,
 * only where n_past is 0. */
int slm_seq_n_past(const struct slm *m, int seq);
int slm_seq_n_free(const struct slm *m, int seq);
void slm_seq_truncate(struct slm *m, int seq, int n_past);
int slm_seq_min_past(const struct slm *m, int seq);

/* ---- vectors of texts
 * ---------------------------------------------------------------
 *
 * A model opened with n_sequences makes vectors of as many texts in one pass, of up to
 * n_batch tokens together. The sequences are empty before and after it. */

struct slm_text {
    const int32_t *tokens; /* [n], with those that begin and end a text */
    int n;                 /* 1 .. n_ctx */
};

/* The vectors of texts[n_texts], by a pooling that need not be the file's. They are as
 * the model leaves them, not normalised. Errors: those of slm_batch() but
 * ST_UNSUPPORTED. */
enum status slm_embed(struct slm *m, const struct slm_text *texts, int n_texts,
                      enum slm_pooling pooling, struct err *err);

/* The vector [n_vector] of the i-th text of the last slm_embed(); with
 * SLM_POOLING_NONE that of the i-th token of all texts, [n_embd]. Valid until the next
 * pass. */
const float *slm_vector(const struct slm *m, size_t i);

/* ---- copies ---------------------------------------------------------------------- */

/* Make sequence `to` a copy of `from`: pages are shared until one of them writes there.
 * They differ. */
void slm_seq_fork(struct slm *m, int from, int to);

/* Pages of all sequences, and the free ones: 0 and 0 of a model with one sequence that
 * is not paged, or with windows in all layers. */
void slm_pages(const struct slm *m, size_t *n, size_t *n_free);

/* Pages that n more tokens of a sequence take from the free ones, with those of tokens
 * that must run again before (slm_truncate()). */
size_t slm_seq_pages(const struct slm *m, int seq, int n);

/* Those that a batch takes: fewer than its parts one by one where they write to a page
 * that they share, since the last of its owners keeps it. */
size_t slm_batch_pages(const struct slm *m, const struct slm_part *parts, int n_parts);

/* ---- what sequences begin with
 * -------------------------------------------------------
 *
 * Pages of a sequence can be kept when it ends, so that a later one that begins with
 * the same tokens need not compute them again. They take room that sequences may need:
 * forget them then, those used longest ago first. Only with pages, or checkpoints.
 *
 * Models whose layers have windows or states continue a text only from a checkpoint,
 * and the model has n_checkpoints. One is kept when a sequence ends and at the
 * positions that slm_prefix_mark() names; if there are more, those go that save least
 * (kv/prefix.h). */

bool slm_keeps_prefixes(const struct slm *m);

/* Keep the pages of a sequence, whose tokens are tokens[slm_seq_n_past()], and a
 * checkpoint of its end. It may be continued or truncated. */
void slm_prefix_keep(struct slm *m, int seq, const int32_t *tokens);

/* Why a checkpoint is wanted: texts may be continued there, known ones are in different
 * ways, or it is a while since the last one. */
enum slm_mark { SLM_MARK_END, SLM_MARK_BRANCH, SLM_MARK_INTERVAL };

#define SLM_MAX_MARKS 3

/* Keep a checkpoint when the next slm_batch() brings the sequence to n_past, which is
 * more than it has: at most SLM_MAX_MARKS before each. Not if it would save less than
 * the others, or fewer tokens than its place is worth. Without checkpoints nothing is
 * kept. */
void slm_prefix_mark(struct slm *m, int seq, int n_past, enum slm_mark why);

/* Give an empty sequence the positions that are known of tokens[n], fewer than n so
 * that one is left to compute; how many. */
int slm_prefix_take(struct slm *m, int seq, const int32_t *tokens, int n);

/* How many slm_prefix_take() would give, of a model with checkpoints, and how many of
 * the tokens are known: from the one to the other they are computed again. */
int slm_prefix_look(const struct slm *m, const int32_t *tokens, int n, int *n_common);

/* Forget pages until n_free are free, or nothing is kept. */
void slm_prefix_forget(struct slm *m, size_t n_free);

/* Pages that are kept, and those of them that no sequence has, too: what could become
 * free. n_own may be NULL, which spares looking at all of them. */
void slm_prefix_pages(const struct slm *m, size_t *n, size_t *n_own);

/* Checkpoints that are kept, and those that can still be made without giving one up. */
size_t slm_prefix_checkpoints(const struct slm *m);
size_t slm_prefix_checkpoints_free(const struct slm *m);

/* Since the model was opened: checkpoints kept, and texts that continued from one. */
void slm_prefix_count(const struct slm *m, uint64_t *n_made, uint64_t *n_restored);

/* Fill positions slm_n_past() .. n_past-1 with seeded random keys and values of
 * a realistic size, to reach a context depth of at most n_ctx without computing it; in
 * layers with a window earlier ones, too, if they are no longer there. Tokens decoded
 * afterwards are meaningless, their cost is realistic. */
enum status slm_fill_synthetic(struct slm *m, int n_past, uint64_t seed,
                               struct err *err);

/* slm_fill_synthetic() for any sequence. Error: ST_NO_MEMORY (pages), too. */
enum status slm_seq_fill_synthetic(struct slm *m, int seq, int n_past, uint64_t seed,
                                   struct err *err);

/* Bytes read to decode one token with n_past positions in the cache:
 * weight_token_bytes + state_bytes + n_past * kv_read_bytes, less the positions that
 * a window hides. */
uint64_t slm_bytes_per_token(const struct slm_info *info, int n_past);

/* Bytes for one token of each of n_sequences in a batch, all with n_past positions:
 * weights are read once, and of experts those of slm_bytes_per_pass(). */
double slm_bytes_per_step(const struct slm_info *info, int n_past, int n_sequences);

/* Bytes of weights that one pass over n_tokens >= 1 tokens with logits reads. Each
 * token takes n_experts_used of a layer's experts, so these are the bytes expected if
 * tokens choose independently and all experts equally often; a model's routing is more
 * alike, and reads at most as much on average. n_tokens may be a mean. */
double slm_bytes_per_pass(const struct slm_info *info, double n_tokens);

/* Bytes for a prompt of n >= 1 tokens, n_batch at a time, with logits of the last. */
double slm_bytes_per_prompt(const struct slm_info *info, int n, int n_batch);

#endif
