/* SPDX-License-Identifier: MIT
 *
 * dequant.h - one tensor as float32, a piece at a time
 *
 * Threading: any thread; each call has its own buffer.
 */
#ifndef SLM_ENGINE_QUANTIZE_DEQUANT_H
#define SLM_ENGINE_QUANTIZE_DEQUANT_H

#include "engine/gguf/gguf.h"

/* Receives the next n values; v is valid during the call. A returned (and set) error
 * stops the work. */
typedef enum status dequant_sink_fn(void *arg, const float *v, size_t n,
                                    struct err *err);

/* Pass all n_elems values of t to sink, in the order of the file (ne[0] fastest), with
 * 512 KiB of memory, or that of one row. isa_mask: ISA levels to choose the kernel
 * from, isa_usable(). Errors: ST_UNSUPPORTED (a format without kernels), ST_NO_MEMORY,
 * those of gguf_read_rows(), the sink's. */
enum status dequant_tensor(const struct gguf *g, const struct gguf_tensor *t,
                           uint32_t isa_mask, dequant_sink_fn *sink, void *arg,
                           struct err *err);

#endif
