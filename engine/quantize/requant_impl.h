/* SPDX-License-Identifier: MIT
 *
 * requant_impl.h - shared by the files of requant, for requant*.c only
 */
#ifndef SLM_ENGINE_QUANTIZE_REQUANT_IMPL_H
#define SLM_ENGINE_QUANTIZE_REQUANT_IMPL_H

#include "engine/gguf/gguf_put.h"
#include "engine/quantize/requant.h"

/* The head of the quantised file. Errors: those of requant_open(). */
enum status requant_head(struct gguf_bytes *head, const struct gguf *g,
                         const struct requant_params *p, struct err *err);

#endif
