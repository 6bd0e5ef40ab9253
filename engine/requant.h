/* SPDX-License-Identifier: MIT
 *
 * requant.h - a model as if it had been quantised before: quantised while it is read
 *
 * requant_open() puts a mix over a gguf of F32, F16 or BF16 tensors: the result is an
 * assembled gguf whose tensors have the types of the mix, and whose rows are made
 * when somebody reads them. Loading it (weights.h) therefore quantises straight into
 * the place where weights are kept, on as many threads as read, with a buffer of a
 * few hundred KiB each.
 *
 * Threading: as any gguf; reading rows from several threads is what it is for.
 */
#ifndef SLM_ENGINE_REQUANT_H
#define SLM_ENGINE_REQUANT_H

#include "engine/gguf.h"
#include "engine/quantmix.h"
#include "engine/status.h"

/* What the rules of a mix look at, of tensor t of g. name points into t. */
void requant_describe(struct quantmix_tensor *out, const struct gguf *g,
                      const struct gguf_tensor *t);

/* Put mix over g, which belongs to the result from here on, also on failure.
 * Metadata stay but for general.file_type and general.quantization_version. What has
 * been read of g is dropped from the page cache. Errors: ST_USAGE (g is quantised
 * already; the message names a tensor), ST_NO_MEMORY. */
enum status requant_open(struct gguf **out, struct gguf *g, enum quantmix mix,
                         struct err *err);

#endif
