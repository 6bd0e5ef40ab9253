/* SPDX-License-Identifier: MIT
 *
 * requant_impl.h - shared by the files of requant, for requant*.c only
 */
#ifndef SLM_ENGINE_QUANTIZE_REQUANT_IMPL_H
#define SLM_ENGINE_QUANTIZE_REQUANT_IMPL_H

#include "engine/gguf/gguf_put.h"
#include "engine/quantize/requant.h"

#define REQUANT_MATRIX_END ".weight"
#define REQUANT_SCALE_END  ".scale"

/* Whether a matrix that becomes fmt gets scales of its own, X.scale of X.weight, which
 * put its largest weight where fmt's largest is: the block scales of nvfp4 are eight
 * bits and would not reach ordinary weights. */
bool requant_needs_scale(const struct gguf_tensor *t, enum kern_format fmt);

/* The head of the quantised file. Errors: those of requant_open(). */
enum status requant_head(struct gguf_bytes *head, const struct gguf *g,
                         const struct requant_params *p, struct err *err);

#endif
