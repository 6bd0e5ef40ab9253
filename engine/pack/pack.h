/* SPDX-License-Identifier: MIT
 *
 * pack.h - packed files: a model written with its matrices in panels, and verified
 *
 * The weights of any gguf go to a file in the order in which the kernels read them
 * (engine/gguf/gguf_panels.h has the layout), with the metadata unchanged and a
 * checksum for every tensor. Loading such a file packs nothing: it is mapped, read into
 * memory or streamed as it is.
 *
 * Threading: as thread_pool_run().
 */
#ifndef SLM_ENGINE_PACK_PACK_H
#define SLM_ENGINE_PACK_PACK_H

#include <stdint.h>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/gguf/gguf.h"
#include "engine/gguf/gguf_save.h"

struct pack_result {
    uint64_t bytes;       /* of the file */
    uint64_t panel_bytes; /* of the tensors in panels */
    size_t n_tensors, n_in_panels;
};

/* Write g, a model of a known architecture, to path. Memory: some 16 MiB and half a MiB
 * for each thread, or three times the largest panel. The file appears when it is
 * complete, or not at all. progress (may be NULL) as for gguf_save(). Errors: those of
 * model_panels(), of gguf_read_rows(), of outfile.h; ST_UNSUPPORTED (no kernels for
 * panels); ST_INTERRUPTED. */
enum status pack_write(struct pack_result *result, const struct gguf *g,
                       const char *path, struct thread_pool *pool,
                       gguf_save_progress_fn *progress, void *arg, struct err *err);

/* Read a packed file to its end and compare its checksums. Errors: ST_CHECK (the
 * message names the tensor, or the head, that is damaged), ST_USAGE (g is no packed
 * file), ST_IO, ST_NO_MEMORY, ST_INTERRUPTED. */
enum status pack_verify(struct pack_result *result, const struct gguf *g,
                        gguf_save_progress_fn *progress, void *arg, struct err *err);

#endif
