/* SPDX-License-Identifier: MIT
 *
 * texts.h - prompts of a JSONL file (prompts.h explains its form)
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_TEXTS_H
#define SLM_HARNESS_SERVE_LOAD_TEXTS_H

#include "harness/serve/load/prompts.h"

/* A prompt, and how long its answer is to be. */
struct load_text {
    const char *prompt;
    int n_output;        /* tokens that the line requests; 0: no number */
    size_t answer_bytes; /* of the answer that the line has; 0: none */
};

/* The text of request i, again from the first when all were sent. */
struct load_text load_text_at(const struct load_texts *t, size_t i);

#endif
