/* SPDX-License-Identifier: MIT
 *
 * weights.h - where a model's weights live while it runs
 *
 * One interface over residency policies:
 *   mmap    the GGUF file mapped as it is; the page cache is the memory
 *   packed  anonymous memory (2 MiB pages), filled from the file (or whatever a gguf
 *           is assembled from); matrices that are
 *           multiplied with are kept in panels where the kernels have them, in as
 *           many bytes
 *   memory  an image the caller holds in memory; where it may be rewritten, its
 *           matrices go into panels in place
 *   auto    packed or mmap, to be decided before weights are opened
 * The forward pass asks for a tensor's bytes and how many rows are in panels, and
 * never for a policy.
 *
 * Threading: immutable once opened, asked for all tensors and preloaded.
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

enum weights_residency { WEIGHTS_AUTO, WEIGHTS_MMAP, WEIGHTS_PACKED, WEIGHTS_MEMORY };

struct weights_params {
    enum weights_residency residency; /* any but WEIGHTS_AUTO */
    uint32_t isa_mask;    /* levels that kernels are chosen from, which decide about
                             panels */
    bool rewrite;         /* WEIGHTS_MEMORY: the image may be rewritten */
    enum mem_pages pages; /* WEIGHTS_PACKED: of the memory */
    bool drop_cached;     /* WEIGHTS_PACKED: take what has been read out of the page
                             cache, for there is no room for a second copy */
};

struct weights;

/* g must outlive the weights. WEIGHTS_MMAP and WEIGHTS_PACKED fail with ST_USAGE on
 * a gguf that was parsed from memory; WEIGHTS_MEMORY wants the opposite; one that is
 * assembled can only be packed. Nothing is
 * read yet: a model larger than memory must not be read once for nothing, and a
 * wait for the disk belongs where it can be seen and stopped, in weights_preload().
 * Other errors: ST_NO_MEMORY. */
enum status weights_open(struct weights **w, const struct gguf *g,
                         const struct weights_params *params, struct err *err);
void weights_close(struct weights *w);

/* Bytes from the first tensor to the end of the last one: what preloading
 * reads. */
size_t weights_bytes(const struct weights *w);

/* The memory that weights are read from while the model runs. */
const void *weights_memory(const struct weights *w, size_t *bytes);

/* First byte of a tensor; row r starts r * row bytes further on, and panel p of a
 * slice starts where its row 16 p would. */
const void *weights_data(const struct weights *w, const struct gguf_tensor *t);

/* To be asked before preloading, of a tensor [k][rows][slices] that is multiplied
 * with and never looked up row by row: how many rows of each slice, from its first,
 * will be in panels; the others stay as in the file. */
size_t weights_panel_rows(struct weights *w, const struct gguf_tensor *t);

/* Bring every page into memory and into our page table, a few MiB at a time with
 * the disk reading ahead, so that the first token does not pay for it. A mapped
 * model larger than memory ends with its tail cached. Packed weights are filled
 * here, by the threads of pool (NULL: by the caller alone), and have no content
 * before; an image that may be rewritten is rewritten here. progress (may be NULL) is
 * called by the caller's thread after pieces, with bytes done and total; returning
 * non-zero stops with ST_INTERRUPTED. Errors: ST_IO (the file shrank, or the disk
 * failed), ST_NO_MEMORY. */
enum status weights_preload(struct weights *w, struct thread_pool *pool,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err);

/* Whether tensors have their content: false for weights in panels until they have
 * been preloaded to the end. */
bool weights_ready(const struct weights *w);

const char *weights_residency_name(enum weights_residency residency); /* "mmap" */

#endif
