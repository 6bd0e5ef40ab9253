/* SPDX-License-Identifier: MIT
 *
 * texts.h - prompts of a JSONL file (prompts.h says of which form)
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_LOAD_TEXTS_H
#define SLM_HARNESS_LOAD_TEXTS_H

#include "harness/load/prompts.h"

/* A prompt, and how long its answer is to be. */
struct load_text {
    const char *prompt;
    int n_output;        /* tokens that the line asks for; 0: it does not say */
    size_t answer_bytes; /* of the answer that the line has; 0: none */
};

/* That of request i, again from the first when all were asked. */
struct load_text load_text_at(const struct load_texts *t, size_t i);

#endif
