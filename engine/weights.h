/* SPDX-License-Identifier: MIT
 *
 * weights.h - where a model's weights live while it runs
 *
 * One interface over residency policies:
 *   mmap    the GGUF file mapped as it is; the page cache is the memory
 *   memory  an image the caller holds in anonymous memory (2 MiB pages)
 * The forward pass asks for a tensor's bytes and never for a policy.
 *
 * Threading: immutable after opening.
 */
#ifndef SLM_ENGINE_WEIGHTS_H
#define SLM_ENGINE_WEIGHTS_H

#include <stddef.h>

#include "engine/gguf.h"
#include "engine/status.h"

enum weights_residency { WEIGHTS_MMAP, WEIGHTS_MEMORY };

struct weights;

/* g must outlive the weights. WEIGHTS_MMAP asks the kernel to read ahead
 * (MADV_WILLNEED on the tensor data) and fails with ST_USAGE on a gguf that was
 * parsed from memory; WEIGHTS_MEMORY wants the opposite. */
enum status weights_open(struct weights **w, const struct gguf *g,
                         enum weights_residency residency, struct err *err);
void weights_close(struct weights *w);

/* First byte of a tensor; row r starts r * row bytes further on. */
const void *weights_data(const struct weights *w, const struct gguf_tensor *t);

/* Touch every page once with n_threads unpinned threads' worth of read-ahead,
 * so that the first token does not pay for the disk. progress (may be NULL) is
 * called now and then with bytes done and total; returning non-zero stops with
 * ST_INTERRUPTED. */
enum status weights_preload(struct weights *w,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err);

const char *weights_residency_name(enum weights_residency residency); /* "mmap" */

#endif
