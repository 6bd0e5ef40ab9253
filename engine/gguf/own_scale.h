/* SPDX-License-Identifier: MIT
 *
 * own_scale.h - matrices with scales of their own
 *
 * In addition to the matrix X.weight a file may hold X.scale, by which all its weights
 * are to be multiplied: one number, or one for each slice (expert). Formats with block
 * scales of eight bits need it. X.input_scale, for programs that quantise activations
 * with a fixed scale, is not used here.
 *
 * Threading: pure functions.
 */
#ifndef SLM_ENGINE_GGUF_OWN_SCALE_H
#define SLM_ENGINE_GGUF_OWN_SCALE_H

#include "engine/gguf/gguf.h"

/* The scale of X.weight, and its X.input_scale; NULL: it has none. */
const struct gguf_tensor *gguf_own_scale(const struct gguf *g,
                                         const struct gguf_tensor *t);
const struct gguf_tensor *gguf_input_scale(const struct gguf *g,
                                           const struct gguf_tensor *t);

/* The matrix that `scale` is such a scale of; NULL: it is none. */
const struct gguf_tensor *gguf_scaled_by(const struct gguf *g,
                                         const struct gguf_tensor *scale);

/* out[ne[2] * ne[3]]: what each slice of t is multiplied with, 1 where t has no scale.
 * Errors: ST_INPUT (another number of scales), ST_UNSUPPORTED (not f32, f16 or bf16),
 * those of gguf_read_rows(). */
enum status gguf_read_own_scale(const struct gguf *g, const struct gguf_tensor *t,
                                float *out, struct err *err);

#endif
