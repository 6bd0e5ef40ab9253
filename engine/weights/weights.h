/* SPDX-License-Identifier: MIT
 *
 * weights.h - residency: where a model's weights are while it runs
 *
 * One interface over residency policies:
 *   mmap    the GGUF file, mapped; the page cache holds the weights, in panels where
 *           the file has them (gguf_panels.h)
 *   packed  anonymous memory (2 MiB pages), filled from the file (or the source of an
 *           assembled gguf); matrices of products are in panels where the kernels have
 *           them, in as many bytes; those of a packed file are only copied
 *   stream  packed, but for some layers, which each pass reads again from the file into
 *           a slot of memory, as they are there (residency.h, stream_reader.h); and for
 *           embeddings that only lookups need, which stay in the mapped file. Of a
 * model with experts, packed but for the experts that have no room, which are read when
 * they are used (expert_cache.h) memory  an image in the caller's memory; if it may be
 * rewritten, its matrices are packed into panels in place auto    packed, stream or
 * mmap, decided before weights are opened The forward pass reads a tensor's bytes and
 * the number of rows in panels and does not depend on the policy; before it uses a part
 * of a layer it waits for it, and gives it back afterwards, which costs nothing where
 * everything is in memory.
 *
 * Threading: immutable after opening, weights_panel_rows() and weights_preload().
 * weights_wait(), weights_check() and weights_stream_read() by any thread,
 * weights_done() by one at a time.
 */
#ifndef SLM_ENGINE_WEIGHTS_WEIGHTS_H
#define SLM_ENGINE_WEIGHTS_WEIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/mem.h"
#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/gguf/gguf.h"
#include "engine/weights/residency.h"
#include "engine/weights/stream_ring.h"

enum weights_residency {
    WEIGHTS_AUTO,
    WEIGHTS_MMAP,
    WEIGHTS_PACKED,
    WEIGHTS_STREAM,
    WEIGHTS_MEMORY
};

struct weights_params {
    enum weights_residency residency; /* any but WEIGHTS_AUTO */
    uint32_t isa_mask;    /* ISA levels that kernels are chosen from, which determine
                             panels */
    bool rewrite;         /* WEIGHTS_MEMORY: the image may be rewritten */
    enum mem_pages pages; /* WEIGHTS_PACKED, WEIGHTS_STREAM: the memory's */
    bool drop_cached;     /* WEIGHTS_PACKED: drop bytes that have been read from the
                             page cache: memory does not hold a second copy.
                             WEIGHTS_STREAM always does */
    const struct residency_plan *plan; /* WEIGHTS_STREAM, copied: residency_plan_make()
                                          of this gguf */
    struct stream_ring *ring;          /* to read streamed weights with, if they are
                                          (stream_io.h); borrowed; NULL: one is made */
};

struct weights;

/* g must outlive the weights. WEIGHTS_MMAP, WEIGHTS_PACKED and WEIGHTS_STREAM fail with
 * ST_USAGE on a gguf that was parsed from memory; WEIGHTS_MEMORY needs the opposite; an
 * assembled one can only be packed; ST_UNSUPPORTED on a packed file in panels that the
 * levels of isa_mask have no kernels for, which only WEIGHTS_PACKED unpacks. Nothing is
 * read yet: a model larger than memory must not be read in vain, and waiting for the
 * disk belongs in weights_preload(), where it is visible and can be interrupted. Other
 * errors: ST_IO, ST_NO_MEMORY. */
enum status weights_open(struct weights **w, const struct gguf *g,
                         const struct weights_params *params, struct err *err);
void weights_close(struct weights *w);

/* Bytes from the first tensor to the end of the last one, which preloading reads. */
size_t weights_bytes(const struct weights *w);

/* The memory that weights are read from while the model runs; for streamed ones, that
 * of those that stay there, and for a mapped file the longest stretch without tables of
 * which tokens need a row. Where some has been given back (weights_reclaim()), the
 * longest stretch of what is left: the rest of it has lost what it held. */
const void *weights_memory(const struct weights *w, size_t *bytes);

/* First byte of a tensor (NULL: its slices are cached); row r starts r * row bytes
 * further on, and panel p of a slice starts where its row 16 p would. */
const void *weights_data(const struct weights *w, const struct gguf_tensor *t);

/* Whether the tensor is read from the mapped file, where its pages may have to be read
 * from disk first. */
bool weights_is_mapped(const struct weights *w, const struct gguf_tensor *t);

/* Bytes of such a tensor will be read soon: have the kernel read them from disk. */
void weights_read_ahead(const void *at, size_t bytes);

/* Number of leading rows of each slice that will be in panels; the others stay as in
 * the file. Call before preloading, for every matrix [k][rows][slices] of products; not
 * for tables that are only looked up: a row of a panel takes more lines of memory. */
size_t weights_panel_rows(struct weights *w, const struct gguf_tensor *t);

/* Load every page into memory and into this process's page table, a few MiB at a time
 * with readahead, so that the first token does not wait for it. If a mapped model
 * is larger than memory, its tail stays cached. Packed weights are filled here, by the
 * threads of pool (NULL: by the caller alone), and have no content before; for streamed
 * ones those that stay in memory are, then the first layers are read ahead; an image
 * that may be rewritten is rewritten here. The caller's thread calls progress (may be
 * NULL) after pieces, with bytes done and total; a non-zero result stops with
 * ST_INTERRUPTED. Errors: ST_IO (the file shrank, or the disk failed), ST_NO_MEMORY. */
enum status weights_preload(struct weights *w, struct thread_pool *pool,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err);

/* Wait until the weights of a part of a layer are in memory: every thread of a pass,
 * before it uses them. A pass goes through all layers in order, and through a layer's
 * parts. thread 0's time is counted. A part that could not be read counts as there:
 * weights_check() says so after the pass. */
void weights_wait(struct weights *w, int layer, enum residency_part part, int thread);

/* No thread of the pass needs the part any more: once per part, layer and pass. */
void weights_done(struct weights *w, int layer, enum residency_part part);

/* ST_IO: weights of a layer could not be read, or are no longer those of the file that
 * was opened, so that what has been computed with them is void. Stays so. */
enum status weights_check(const struct weights *w, struct err *err);

/* ---- experts that are cached ----------------------------------------------------- */

/* Where the slices [ne[2]] of a tensor are at the moment; an entry is valid from
 * weights_wait_expert() until the layer is done. NULL: the tensor is not cached, and
 * its slices lie one after another at weights_data(). */
const void *const *weights_slices(const struct weights *w, const struct gguf_tensor *t);

/* A pass over n_tokens tokens begins, which goes through all layers in order. */
void weights_begin(struct weights *w, int n_tokens);

/* The pass uses these n experts of a layer, expert i for n_uses[i] of its tokens: those
 * that are not in memory are read. order[n] receives the experts, those in memory
 * first: in this order they are there soonest. By thread 0, once per layer and pass,
 * unless n is 0. */
void weights_take_experts(struct weights *w, int layer, const int *experts,
                          const int *n_uses, int n, int *order);

/* Wait until an expert that has been taken is in memory; as weights_wait(). */
void weights_wait_expert(struct weights *w, int layer, int expert, int thread);

/* ---- giving memory back ---------------------------------------------------------- */

/* Have `bytes` less of memory in use: layers that were kept are streamed from now on,
 * or fewer experts cached; embeddings go first where the weights were packed. *freed is
 * what went, `bytes` at least. No pass is under way, and weights_data() and
 * weights_slices() of tensors are others afterwards. n_layers as
 * residency_plan_make(). Errors: ST_USAGE (weights that are not packed, or not from a
 * file that can be streamed), ST_NO_MEMORY (that much cannot be given back),
 * ST_UNSUPPORTED (as weights_open()): all is as before; ST_IO: streaming cannot begin,
 * which weights_check() says from then on. */
enum status weights_reclaim(struct weights *w, int n_layers, uint64_t bytes,
                            uint64_t *freed, struct err *err);

/* The plan of streamed weights. */
const struct residency_plan *weights_plan(const struct weights *w);

/* From now on weights_check() fails with *why: what holds the places is out of date. */
void weights_break(struct weights *w, const struct err *why);

/* ---- what has been read ---------------------------------------------------------- */

/* Counts of streamed layers and cached experts, since the model was opened. */
struct slm_stream {
    uint64_t bytes_read, n_reads;
    uint64_t wait_ns;     /* that passes waited for the disk */
    const char *backend;  /* "io_uring" or "pread" */
    bool direct;          /* past the page cache */
    int depth;            /* most requests in flight */
    size_t request_bytes; /* of the largest */
    uint64_t expert_uses; /* experts that passes took; 0: none are cached */
    uint64_t expert_hits; /* of these, that were in memory */
};

/* False: no layer is streamed, and no expert cached. */
bool weights_stream_read(const struct weights *w, struct slm_stream *out);

/* Whether tensors have their content: false for weights in panels until they have
 * been preloaded to the end. */
bool weights_ready(const struct weights *w);

const char *weights_residency_name(enum weights_residency residency); /* "mmap" */

#endif
