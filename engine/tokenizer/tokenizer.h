/* SPDX-License-Identifier: MIT
 *
 * tokenizer.h - text to token ids and back, from GGUF metadata
 *
 * A model folder's tokenizer.json comes here as such metadata, too (hf.h), with a few
 * keys of our own for what GGUF has no words for (tokenizer_impl.h).
 *
 * tokenizer_open() picks the algorithm from tokenizer.ggml.model; each
 * algorithm is one file (tokenizer_spm.c: "llama", the SentencePiece way;
 * tokenizer_bpe.c: "gpt2", byte-level BPE, whose texts are first cut as
 * tokenizer.ggml.pre says, or as "default" in files without it).
 *
 * Threading: immutable after opening.
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"

struct tokenizer;

/* Strings are copied: g may be closed afterwards. Errors: ST_INPUT (metadata
 * missing or inconsistent), ST_UNSUPPORTED (an algorithm we do not have; the
 * message lists those we do; a pre-tokenizer likewise). */
enum status tokenizer_open(struct tokenizer **t, const struct gguf *g, struct err *err);
void tokenizer_close(struct tokenizer *t);

int32_t tokenizer_n_vocab(const struct tokenizer *t);
int32_t tokenizer_bos(const struct tokenizer *t); /* -1: none */
int32_t tokenizer_eos(const struct tokenizer *t); /* -1: none */
bool tokenizer_adds_bos(const struct tokenizer *t);
bool tokenizer_adds_eos(const struct tokenizer *t); /* behind a text that is whole; one
                                                       that is to go on gets none */
bool tokenizer_adds_space(const struct tokenizer *t); /* before a text's first word */

/* True for tokens that end generation (EOS, and end-of-turn where known). */
bool tokenizer_is_end(const struct tokenizer *t, int32_t id);

/* Ids of text[len]; *ids is malloc'ed, the caller frees it. with_bos puts BOS
 * first (if the vocabulary has one); parse_special lets control tokens written
 * out in the text become their ids instead of plain text. Any bytes may be
 * encoded, well-formed or not. Errors: ST_USAGE (more than 512 MiB at once),
 * ST_INPUT (a byte the vocabulary has no token for), ST_NO_MEMORY. */
enum status tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                             bool with_bos, bool parse_special, int32_t **ids,
                             size_t *n_ids, struct err *err);

/* Which bytes of a text may become control tokens. */
struct tokenizer_span {
    size_t begin, end;
};
struct tokenizer_markers {
    const struct tokenizer_span *spans; /* ascending, apart */
    size_t n_spans;
    const char *guard; /* tokens spelled in here, and those that end a text, are no text
                          outside the spans, though the file marks them as ("user
                          defined") */
};

/* As tokenizer_encode(), with control tokens parsed where they lie inside one of the
 * spans, and nowhere else. */
enum status tokenizer_encode_marked(const struct tokenizer *t, const char *text,
                                    size_t len, bool with_bos,
                                    const struct tokenizer_markers *markers,
                                    int32_t **ids, size_t *n_ids, struct err *err);

/* The bytes a token stands for, written to buf[cap]; returns their number
 * (which may exceed cap: then nothing was written). Control and unknown tokens
 * give 0 bytes. A byte token gives one byte, and a byte-level one may end anywhere,
 * so output may pause inside a UTF-8 character: see utf8_stream_*. The SentencePiece
 * way puts a blank in front of a text, so the pieces of a whole text begin with one
 * that the text did not have: whoever prints a text from its beginning drops it
 * (tokenizer_adds_space()). */
size_t tokenizer_piece(const struct tokenizer *t, int32_t id, char *buf, size_t cap);

/* A token as the vocabulary spells it ("\u2581the", "<0x0A>"), for listings; not
 * zero-terminated, owned by the tokenizer. 0 <= id < tokenizer_n_vocab(). */
const char *tokenizer_text(const struct tokenizer *t, int32_t id, size_t *len);

/* Holds back the bytes of an unfinished UTF-8 character between tokens, so that
 * a stream never prints half of one. */
struct utf8_stream {
    char pending[4];
    int n_pending;
};

/* Adds bytes and returns how many may be printed now, in out (capacity
 * len + 4); invalid sequences pass through unchanged. */
size_t utf8_stream_push(struct utf8_stream *s, const char *bytes, size_t len,
                        char *out);
/* What is left at the end of the stream; out has room for 4. */
size_t utf8_stream_flush(struct utf8_stream *s, char *out);

#endif
