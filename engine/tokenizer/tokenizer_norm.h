/* SPDX-License-Identifier: MIT
 *
 * tokenizer_norm.h - what a tokenizer.json does to a text before it is cut
 *
 * The steps are those of its member "normalizer", in the key TOKENIZER_KEY_NORMALIZER
 * as JSON: NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Replace, Prepend, Nmt,
 * BertNormalizer, ByteLevel, Precompiled, and Sequences of them. Characters are those
 * of Unicode 16 (engine/base/unicode.h). For tokenizer*.c only.
 *
 * Threading: immutable after opening.
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_NORM_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_NORM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

struct normalizer;

/* path names the file in messages. Errors: ST_INPUT (no JSON), ST_UNSUPPORTED (another
 * step, too many), ST_NO_MEMORY. */
enum status normalizer_open(struct normalizer **z, const char *json, size_t len,
                            const char *path, struct err *err);
/* A table of characters of a GGUF file, n 0: none; strips: one blank for several, and
 * none at the ends. */
enum status normalizer_open_charsmap(struct normalizer **z, const void *bytes, size_t n,
                                     bool strips, const char *path, struct err *err);
void normalizer_close(struct normalizer *z);

/* Whether the steps leave text[len] as it is, as far as a short look tells. */
bool normalizer_keeps(const struct normalizer *z, const char *text, size_t len);

/* text[len] as the steps make it, malloc'ed; the caller frees it. Time and memory:
 * linear in the text for each step, but for regular expressions, which have *allowed_ns
 * as in pre_tokenizer_cut(). Errors: ST_INPUT (it becomes many times as long, a pattern
 * takes too long), ST_NO_MEMORY. */
enum status normalizer_apply(const struct normalizer *z, const char *text, size_t len,
                             uint64_t *allowed_ns, char **out, size_t *n_out,
                             struct err *err);

#endif
