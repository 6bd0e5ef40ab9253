/* SPDX-License-Identifier: MIT
 *
 * modelfile.h - the model at a path that a user gives, as a struct gguf
 *
 * Threading: as gguf.h.
 */
#ifndef SLM_ENGINE_MODELFILE_H
#define SLM_ENGINE_MODELFILE_H

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/quantize/requant.h"

/* Open a GGUF file, any part of a split model (gguf_split.h), or a Hugging Face folder
 * (hf.h). quant: a mix to quantise an F32, F16 or BF16 model to while it is loaded
 * ("Q4_K_M", any case), or NULL. Errors: those
 * of gguf_open(), gguf_split_join(), hf_open() and requant_open(); ST_USAGE (no such
 * mix). */
enum status modelfile_open(struct gguf **g, const char *path, const char *quant,
                           struct err *err);

/* The same, quantised by rules (requant.h); the caller keeps them. Errors: those of
 * modelfile_open() and requant_open(). */
enum status modelfile_requant(struct gguf **g, const char *path,
                              const struct requant_params *params, struct err *err);

#endif
