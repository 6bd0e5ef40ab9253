/* SPDX-License-Identifier: MIT
 *
 * tokenizer_pieces.h - how a tokenizer.json cuts a text into the pieces that its model
 * divides into tokens
 *
 * The steps are those of its member "pre_tokenizer", in the key TOKENIZER_KEY_STEPS as
 * JSON: BertPreTokenizer, ByteLevel, CharDelimiterSplit, Digits, FixedLength,
 * Metaspace, Punctuation, Split (by a text or a regular expression, with each
 * behavior), UnicodeScripts, Whitespace, WhitespaceSplit, and Sequences of them. Bytes
 * become GPT-2's characters and blanks U+2581 where a step makes them so. For
 * tokenizers that tokenizer.ggml.pre has no name for; see tokenizer_pre.h for those
 * that it has. For tokenizer*.c only.
 *
 * Threading: immutable after opening.
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_PIECES_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_PIECES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/tokenizer/tokenizer_pre.h"

struct pieces;

/* path names the file in messages. Errors: ST_INPUT (no JSON, a wrong pattern),
 * ST_UNSUPPORTED (another step, too many), ST_NO_MEMORY. */
enum status pieces_open(struct pieces **p, const char *json, size_t len,
                        const char *path, struct err *err);
void pieces_close(struct pieces *p);

/* Call fn with each piece of text[len], any bytes, from left to right; first: the text
 * is not behind a special token. *allowed_ns as in pre_tokenizer_cut(). Time: linear
 * in the text for each step, but for regular expressions. Errors: as there. */
enum status pieces_cut(const struct pieces *p, const char *text, size_t len, bool first,
                       uint64_t *allowed_ns, pre_piece_fn *fn, void *arg,
                       struct err *err);

/* GPT-2's characters for bytes: the byte of a character up to U+0143 or -1, and back.
 */
int byte_alphabet_byte(uint32_t c);
uint32_t byte_alphabet_char(unsigned char byte);

#endif
