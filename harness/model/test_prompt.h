/* SPDX-License-Identifier: MIT
 *
 * test_prompt.h - test prompts: a prompt and, if it is given, the answer
 *
 * Whether speculative decoding pays depends on the text, and a model with random
 * weights generates no text with the repetitions of real ones. So the file gives the
 * answer, and it is decoded as if the model had generated it; all passes are real. A
 * file holds the prompt, a line "<answer>", and the answer. Without that line the model
 * answers.
 *
 * The model's own vocabulary splits the text. A synthetic model's vocabulary has no
 * words of any language; there, and without a vocabulary, a token is a word of up to
 * eight letters with the blank before it, up to three figures, or one other character;
 * in a longer word, each further eight letters. That is about as many tokens as
 * vocabularies of 32000 and more have for English.
 *
 * Threading: data.
 */
#ifndef SLM_HARNESS_MODEL_TEST_PROMPT_H
#define SLM_HARNESS_MODEL_TEST_PROMPT_H

#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/tokenizer/tokenizer.h"

/* Most tokens of an answer that is the model's own. */
#define TEST_PROMPT_OWN_TOKENS 160

struct test_prompt {
    int32_t *ids;          /* malloc'ed: prompt, then answer */
    size_t n_prompt;       /* >= 1 */
    size_t n_answer;       /* 0: to be the model's own; else >= 2 */
    struct tokenizer *tok; /* NULL: the rule above */
};

/* Where the text is: name as it is where it is a path (has a slash or a dot), else
 * configs/texts/<name>.txt; into path. Error: ST_USAGE (it is not there; lists those
 * that are). */
enum status test_prompt_find(const char *name, char *path, size_t cap, struct err *err);

/* g: the model, NULL for a synthetic one that is no file. n_vocab: rows of its
 * embeddings. Errors: test_prompt_find()'s, ST_IO, ST_INPUT (no prompt, an answer too
 * short), ST_USAGE (a vocabulary too small for the text). */
enum status test_prompt_read(struct test_prompt *s, const char *name,
                             const struct gguf *g, int n_vocab, struct err *err);
void test_prompt_free(struct test_prompt *s);

#endif
