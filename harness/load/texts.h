/* SPDX-License-Identifier: MIT
 *
 * texts.h - prompts of a JSONL file (prompts.h says of which form)
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_LOAD_TEXTS_H
#define SLM_HARNESS_LOAD_TEXTS_H

#include "harness/load/prompts.h"

/* The prompt of request i, again from the first when all were asked; *n_output becomes
 * its "max_tokens" where it has one. */
const char *load_text_at(const struct load_texts *t, size_t i, int *n_output);

#endif
