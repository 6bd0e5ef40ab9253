/* SPDX-License-Identifier: MIT
 *
 * tokenizer_charsmap.h - SentencePiece's table of characters and what they become
 *
 * The bytes of a trie (a Darts double array) come first, as their number, of 32 bits,
 * tells; the texts that it points to follow, each up to a zero. For tokenizer*.c only.
 *
 * Threading: immutable after opening.
 * Source: Yata, "Darts-clone"; SentencePiece's normalizer. Which characters are looked
 * up together is as in Hugging Face's tokenizers: those that are one to a reader, where
 * they have less than 6 bytes, and the shortest entry that they begin with counts.
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_CHARSMAP_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_CHARSMAP_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"

struct charsmap;

/* The table is copied. Errors: ST_INPUT (cut short), ST_NO_MEMORY. */
enum status charsmap_open(struct charsmap **m, const void *bytes, size_t n,
                          const char *path, struct err *err);
/* Opens a map in base64. */
enum status charsmap_open_base64(struct charsmap **m, const char *text,
                                 const char *path, struct err *err);
void charsmap_close(struct charsmap *m);

/* Called with each part of the text made, n >= 1. */
typedef void charsmap_put_fn(void *arg, const char *text, size_t n);

/* Time: linear in text[len], any bytes, and what it becomes. */
void charsmap_apply(const struct charsmap *m, const char *text, size_t len,
                    charsmap_put_fn *put, void *arg);

#endif
