/* SPDX-License-Identifier: MIT
 *
 * gguf_compare.h - difference between the weights of two model files
 *
 * The same figures as those of `bench quantize --rmse`, for files of any program.
 *
 * Threading: one thread.
 */
#ifndef SLM_HARNESS_MODEL_GGUF_COMPARE_H
#define SLM_HARNESS_MODEL_GGUF_COMPARE_H

#include <stdbool.h>

#include "engine/gguf/gguf.h"

/* Print the root mean square error of every tensor of g against that of the same name
 * in ref, and of every format; `tensors` false: only of formats. With a progress line;
 * stops at Ctrl-C (ST_INTERRUPTED). Errors: ST_INPUT (a tensor that ref lacks or has in
 * another shape), those of dequant_tensor(). */
enum status gguf_compare_print(const struct gguf *g, const struct gguf *ref,
                               bool tensors, struct err *err);

#endif
