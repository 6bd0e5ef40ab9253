/* SPDX-License-Identifier: MIT
 *
 * tokenizer_pre.h - where byte-level BPE cuts a text before it joins anything
 *
 * tokenizer.ggml.pre names a list of regular expressions. Each cuts every piece
 * that the one before it left into its matches and what stands between them; no
 * token reaches across a cut. For tokenizer*.c only.
 *
 * Threading: immutable after opening; pre_tokenizer_cut() keeps its state in the
 * caller's hands.
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_PRE_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_PRE_H

#include <stdbool.h>
#include <stddef.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"

struct pre_tokenizer;

/* What else the name decides. */
struct pre_rules {
    bool whole_words; /* a piece that is a token is not joined from its bytes */
    bool adds_bos;    /* unless the file says otherwise */
};

/* name[len] as the metadata have it. path is what messages call the file. Errors:
 * ST_UNSUPPORTED (an unknown name; the message lists the known ones), ST_NO_MEMORY. */
enum status pre_tokenizer_open(struct pre_tokenizer **p, const char *name, size_t len,
                               const char *path, struct err *err);

/* The same for n patterns that a file brings along, spelt as pre_tokenizer_spell()
 * spells them. Their work on a text is limited, as nobody has looked at them. Errors:
 * ST_INPUT (one that PCRE2 does not take), ST_UNSUPPORTED (too many, too long),
 * ST_NO_MEMORY. */
enum status pre_tokenizer_open_patterns(struct pre_tokenizer **p,
                                        const struct gguf_str *patterns, size_t n,
                                        bool whole_words, const char *path,
                                        struct err *err);
void pre_tokenizer_close(struct pre_tokenizer *p);

#define PRE_MAX_PATTERNS      6
#define PRE_MAX_PATTERN_BYTES 4096

/* A regular expression of a tokenizer.json in PCRE2's words: \s and \S are spelt out,
 * because the two libraries do not agree on what is blank. False where out[cap] is too
 * small, or PCRE2 has no such thing. */
bool pre_tokenizer_spell(const char *regex, char *out, size_t cap);

/* What GPT-2 cuts by. */
const char *pre_tokenizer_gpt2(void);

/* The name of the tokenizers that cut by these patterns, spelt so, into name[cap];
 * false: none is known. */
bool pre_tokenizer_known(const char *const *patterns, size_t n, bool whole_words,
                         char *name, size_t cap);

const struct pre_rules *pre_tokenizer_rules(const struct pre_tokenizer *p);

/* Called with each piece, len >= 1, from left to right. */
typedef enum status pre_piece_fn(void *arg, const char *piece, size_t len,
                                 struct err *err);

/* Cut text[len], any bytes: what is not well-formed UTF-8 is a piece of its own.
 * The first error of fn ends it. */
enum status pre_tokenizer_cut(const struct pre_tokenizer *p, const char *text,
                              size_t len, pre_piece_fn *fn, void *arg, struct err *err);

#endif
