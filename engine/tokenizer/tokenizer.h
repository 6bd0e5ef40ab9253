/* SPDX-License-Identifier: MIT
 *
 * tokenizer.h - text to token ids and back, from GGUF metadata
 *
 * hf.h converts a model folder's tokenizer.json to such metadata, with a few keys of
 * this project for settings that GGUF has no keys for (tokenizer_impl.h).
 *
 * tokenizer_open() chooses the algorithm by tokenizer.ggml.model; each algorithm is one
 * file (tokenizer_spm.c: "llama", SentencePiece BPE; tokenizer_unigram.c: "t5",
 * SentencePiece's unigram models; tokenizer_bpe.c: "gpt2",
 * byte-level BPE, whose texts are first cut by the pre-tokenizer tokenizer.ggml.pre, or
 * "default" in files without it).
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

/* Keys of this project: special tokens that a folder spells for its chat template,
 * where its vocabulary does not have them. */
#define TOKENIZER_KEY_CHAT_BOS "slmbench.chat.bos_token"
#define TOKENIZER_KEY_CHAT_EOS "slmbench.chat.eos_token"

/* All ids that end a text, where they are more than the keys of GGUF have room for. */
#define TOKENIZER_KEY_ENDS "slmbench.tokenizer.end_ids"

struct tokenizer;

/* Strings are copied: g may be closed afterwards. Errors: ST_INPUT (metadata
 * missing or inconsistent), ST_UNSUPPORTED (an unknown algorithm or
 * pre-tokenizer; the message lists the known ones). */
enum status tokenizer_open(struct tokenizer **t, const struct gguf *g, struct err *err);
void tokenizer_close(struct tokenizer *t);

int32_t tokenizer_n_vocab(const struct tokenizer *t);
int32_t tokenizer_bos(const struct tokenizer *t); /* -1: none */
int32_t tokenizer_eos(const struct tokenizer *t); /* -1: none */
bool tokenizer_adds_bos(const struct tokenizer *t);
bool tokenizer_adds_eos(const struct tokenizer *t);   /* behind a whole text */
bool tokenizer_adds_space(const struct tokenizer *t); /* before a text's first word */

/* Whether a token ends generation (EOS, and end-of-turn tokens where known). */
bool tokenizer_is_end(const struct tokenizer *t, int32_t id);

/* Whether a token is no part of texts: a control or "user defined" token. */
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);

/* Names of markers that the file types as text, and that are control tokens here:
 * "<|im_start|>, <|im_end|>", fit to be printed; "": none. */
const char *tokenizer_note(const struct tokenizer *t);

/* From then on a text whose encoding lasts until stopped() is true ends it with
 * ST_INTERRUPTED. */
void tokenizer_stop_when(struct tokenizer *t, bool (*stopped)(void));

#define TOKENIZER_ANY SIZE_MAX /* no limit of a text's tokens */

/* Ids of text[len]; *ids is malloc'ed, the caller frees it. with_bos puts BOS
 * first (if the vocabulary has one, and once if the text begins with its spelling);
 * with parse_special control tokens spelled in the text become their ids instead of
 * plain text. Any bytes are valid input, also malformed UTF-8. Errors: ST_USAGE (more
 * than 512 MiB at once), ST_INPUT (a byte the vocabulary has no token for),
 * ST_NO_MEMORY. */
enum status tokenizer_encode(const struct tokenizer *t, const char *text, size_t len,
                             bool with_bos, bool parse_special, int32_t **ids,
                             size_t *n_ids, struct err *err);

/* As tokenizer_encode(), for a text that is of use with up to max_ids tokens alone: one
 * that has more is encoded as far as that takes to find out. Then *ids is NULL and
 * *n_ids, which is above max_ids, a number of tokens that the text has at least. */
enum status tokenizer_encode_up_to(const struct tokenizer *t, const char *text,
                                   size_t len, bool with_bos, bool parse_special,
                                   size_t max_ids, int32_t **ids, size_t *n_ids,
                                   struct err *err);

/* Ids of a whole text that a vector is made of: plain text, with the tokens before and
 * behind it that the vocabulary has for texts. max_ids, *ids and errors as above. */
enum status tokenizer_encode_whole(const struct tokenizer *t, const char *text,
                                   size_t len, size_t max_ids, int32_t **ids,
                                   size_t *n_ids, struct err *err);

/* Which bytes of a text may become control tokens. */
struct tokenizer_span {
    size_t begin, end;
};
struct tokenizer_markers {
    const struct tokenizer_span *spans; /* ascending, not overlapping */
    size_t n_spans;
    const char *guard; /* outside the spans, "user defined" tokens that occur in guard
                          or end a text are not recognised either */
};

/* As tokenizer_encode_up_to(), with control tokens parsed only inside the spans. */
enum status tokenizer_encode_marked(const struct tokenizer *t, const char *text,
                                    size_t len, bool with_bos,
                                    const struct tokenizer_markers *markers,
                                    size_t max_ids, int32_t **ids, size_t *n_ids,
                                    struct err *err);

/* Write the bytes of a token to buf[cap] and return their number (if it exceeds cap,
 * nothing is written). Control, unknown and unused tokens have 0 bytes. A byte token
 * has one byte, and a byte-level token may end anywhere, so output may stop inside a
 * UTF-8 character: see utf8_stream_*. SentencePiece BPE puts a blank before a text, so
 * the pieces of a whole text begin with a blank that the text does not have: a caller
 * that prints a text from its beginning drops it (tokenizer_adds_space()). */
size_t tokenizer_piece(const struct tokenizer *t, int32_t id, char *buf, size_t cap);

/* Whether a token is padding of the embedding: no text, and no text becomes it. */
bool tokenizer_is_unused(const struct tokenizer *t, int32_t id);

/* The spelling of a token in the vocabulary ("\u2581the", "<0x0A>"), for listings; not
 * zero-terminated, owned by the tokenizer. 0 <= id < tokenizer_n_vocab(). */
const char *tokenizer_text(const struct tokenizer *t, int32_t id, size_t *len);

/* Keeps the bytes of an incomplete UTF-8 character between tokens, so that a stream
 * prints only whole characters. */
struct utf8_stream {
    char pending[4];
    int n_pending;
};

/* Add bytes; return the number of bytes to print now, in out (capacity len + 4).
 * Invalid sequences pass through unchanged. */
size_t utf8_stream_push(struct utf8_stream *s, const char *bytes, size_t len,
                        char *out);
/* The bytes left at the end of the stream; out has a capacity of 4. */
size_t utf8_stream_flush(struct utf8_stream *s, char *out);

#endif
