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

/* g must outlive the weights. WEIGHTS_MMAP fails with ST_USAGE on a gguf that was
 * parsed from memory; WEIGHTS_MEMORY wants the opposite. Nothing is read yet: a
 * model larger than memory must not be read once for nothing, and a wait for the
 * disk belongs where it can be seen and stopped, in weights_preload(). */
enum status weights_open(struct weights **w, const struct gguf *g,
                         enum weights_residency residency, struct err *err);
void weights_close(struct weights *w);

/* Bytes from the first tensor to the end of the last one: what preloading
 * reads. */
size_t weights_bytes(const struct weights *w);

/* First byte of a tensor; row r starts r * row bytes further on. */
const void *weights_data(const struct weights *w, const struct gguf_tensor *t);

/* Bring every page into memory and into our page table, a few MiB at a time with
 * the disk reading ahead, so that the first token does not pay for it. A model
 * larger than memory ends with its tail cached. progress (may be NULL) is called
 * after each piece with bytes done and total; returning non-zero stops with
 * ST_INTERRUPTED. Error: ST_IO (the file shrank, or the disk failed). */
enum status weights_preload(struct weights *w,
                            int (*progress)(void *arg, size_t done, size_t total),
                            void *arg, struct err *err);

const char *weights_residency_name(enum weights_residency residency); /* "mmap" */

#endif
