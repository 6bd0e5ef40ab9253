/* SPDX-License-Identifier: MIT
 *
 * gguf_save.h - write any gguf to a file
 *
 * The head is written unchanged, the tensors' rows after it in chunks of a few MiB that
 * all threads of a pool make together; this computes the tensors of an assembled gguf
 * (gguf.h). One thread writes a chunk while the others make the next.
 *
 * Threading: as thread_pool_run().
 */
#ifndef SLM_ENGINE_GGUF_GGUF_SAVE_H
#define SLM_ENGINE_GGUF_GGUF_SAVE_H

#include <stdint.h>

#include "engine/base/status.h"
#include "engine/base/thread_pool.h"
#include "engine/gguf/gguf.h"

/* Called between chunks; true stops the work. */
typedef bool gguf_save_progress_fn(void *arg, uint64_t done_bytes,
                                   uint64_t total_bytes);

/* g is not a packed file. Errors: those of outfile.h, where way_out is explained, of
 * mem_alloc() and of gguf_read_rows(); ST_INTERRUPTED. path may be the file that g
 * reads: it is replaced when the new one is complete. */
enum status gguf_save(const struct gguf *g, const char *path, struct thread_pool *pool,
                      gguf_save_progress_fn *progress, void *arg, const char *way_out,
                      struct err *err);

#endif
