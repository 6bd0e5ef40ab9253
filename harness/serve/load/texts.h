/* SPDX-License-Identifier: MIT
 *
 * texts.h - prompts of a file between its readers (prompts.h explains its forms)
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_SERVE_LOAD_TEXTS_H
#define SLM_HARNESS_SERVE_LOAD_TEXTS_H

#include "harness/serve/load/prompts.h"

#define TRACE_BLOCK 512 /* tokens that a hash of Mooncake's traces stands for */

/* A prompt, and how long its answer is to be. */
struct load_text {
    const char *prompt;  /* NULL: words */
    int n_prompt;        /* tokens of these words; 0: --prompt */
    int n_output;        /* tokens that the line requests; 0: no number */
    size_t answer_bytes; /* of the answer that the line has; 0: none */
    double at_s;         /* when it was sent; NAN: the line has no time */
    uint64_t *block;     /* [n_blocks] identities of what the prompt begins with; equal
                            ones stand for equal text, and all before it */
    size_t n_blocks;
    size_t n_known; /* of them, that earlier lines had */
    size_t number;  /* of the line */
};

/* The text of request i, again from the first when all were sent. */
struct load_text load_text_at(const struct load_texts *t, size_t i);

/* ---- traces (trace.c) ------------------------------------------------------------ */

/* Whether an object is a line of a trace: Mooncake's "timestamp" (ms), "input_length",
 * "output_length" and "hash_ids", or our "at" (s) and "prompt_tokens". block is
 * malloc'ed. Errors: ST_INPUT (an invalid member), ST_NO_MEMORY. */
enum status trace_read_object(struct load_text *text, const json_t *o, struct err *err);

/* The header of Azure's tables, and a line of one. */
bool trace_is_header(const char *line, size_t len);
enum status trace_read_azure(struct load_text *text, const char *line, size_t len,
                             struct err *err);

/* Lines in the order of their times, and how many blocks of each were there before.
 * Errors: ST_INPUT (some lines have no time, or all the same), ST_NO_MEMORY. */
enum status trace_sort(struct load_text *v, size_t n, struct err *err);

#endif
