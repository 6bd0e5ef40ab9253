/* SPDX-License-Identifier: MIT
 *
 * tokenizer_pre.h - pre-tokenizers: where byte-level BPE cuts a text before joining
 *
 * tokenizer.ggml.pre names a list of regular expressions. Each cuts every piece of the
 * previous one into its matches and the text between them; no token crosses a cut. For
 * tokenizer*.c only.
 *
 * Threading: immutable after opening.
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_PRE_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_PRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/gguf/gguf.h"
#include "engine/tokenizer/tokenizer_regex.h"

struct pre_tokenizer;

/* Other settings that follow from the name. */
struct pre_rules {
    bool whole_words; /* a piece that is a token becomes it without joins */
    bool adds_bos;    /* default of the file's key */
};

/* name[len] as in the metadata. path names the file in messages. Errors:
 * ST_UNSUPPORTED (an unknown name; the message lists the known ones), ST_NO_MEMORY. */
enum status pre_tokenizer_open(struct pre_tokenizer **p, const char *name, size_t len,
                               const char *path, struct err *err);

/* Opens n patterns of a file, in the spelling of regex_spell(). They are
 * untrusted, so matching has limits. Errors: ST_INPUT (one that PCRE2 rejects),
 * ST_UNSUPPORTED (too many, too long), ST_NO_MEMORY. */
enum status pre_tokenizer_open_patterns(struct pre_tokenizer **p,
                                        const struct gguf_str *patterns, size_t n,
                                        bool whole_words, const char *path,
                                        struct err *err);
void pre_tokenizer_close(struct pre_tokenizer *p);

#define PRE_MAX_PATTERNS      6
#define PRE_MAX_PATTERN_BYTES REGEX_MAX_BYTES

/* The pattern of GPT-2. */
const char *pre_tokenizer_gpt2(void);

/* The name of the tokenizers with these patterns, in this spelling, into name[cap];
 * false: none is known. */
bool pre_tokenizer_known(const char *const *patterns, size_t n, bool whole_words,
                         char *name, size_t cap);

const struct pre_rules *pre_tokenizer_rules(const struct pre_tokenizer *p);

/* Called with each piece, len >= 1, from left to right. */
typedef enum status pre_piece_fn(void *arg, const char *piece, size_t len,
                                 struct err *err);

/* Cut text[len], any bytes: malformed UTF-8 is a piece of its own. The first error of
 * fn stops it. *allowed_ns, of the whole text where this is a part of one, becomes less
 * by what it takes. Errors: ST_INPUT (a pattern of a file that takes longer, or whose
 * match does not advance), ST_NO_MEMORY. */
enum status pre_tokenizer_cut(const struct pre_tokenizer *p, const char *text,
                              size_t len, uint64_t *allowed_ns, pre_piece_fn *fn,
                              void *arg, struct err *err);

#endif
