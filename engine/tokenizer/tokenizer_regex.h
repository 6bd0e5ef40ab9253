/* SPDX-License-Identifier: MIT
 *
 * tokenizer_regex.h - regular expressions of tokenizers, through PCRE2
 *
 * \p{...} is that of Unicode 16, whatever the version of the PCRE2 library: it matches
 * against a text in which newer characters have older ones of their category in their
 * place. Patterns of a file are untrusted: a search by them has limits of steps and of
 * heap, and the text an allowance of CPU time. For tokenizer*.c only.
 *
 * Threading: a pattern is immutable after opening; a search belongs to one thread.
 */
#ifndef SLM_ENGINE_TOKENIZER_TOKENIZER_REGEX_H
#define SLM_ENGINE_TOKENIZER_TOKENIZER_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

#define REGEX_MAX_BYTES 4096

/* Unicode's White_Space, for use inside of brackets. */
#define REGEX_WS "\\p{Z}\\t-\\r\\x{85}"

struct regex;

/* foreign: a pattern of a file, in the spelling of regex_spell(). path names the file
 * in messages. Errors: ST_INPUT (PCRE2 rejects it), ST_UNSUPPORTED (PCRE2 lacks
 * Unicode), ST_NO_MEMORY. */
enum status regex_open(struct regex **r, const char *pattern, size_t len, bool foreign,
                       const char *path, struct err *err);
void regex_close(struct regex *r);

/* Convert a regular expression of a tokenizer.json (Oniguruma's syntax) to PCRE2's.
 * False where out[cap] is too small or PCRE2 has no equivalent. */
bool regex_spell(const char *regex, char *out, size_t cap);

/* Nanoseconds of CPU time that searching a text of len bytes by patterns of a file may
 * take. */
uint64_t regex_allowance(size_t len);

struct regex_search {
    void *match, *context; /* of PCRE2 */
    bool foreign;
    uint64_t begin_ns, allowed_ns;
    unsigned n_steps;
    struct err *err;
};

/* Begin searches that may take allowed_ns together. Call regex_search_end() in any
 * case; it returns what is left. Error: ST_NO_MEMORY. */
enum status regex_search_begin(struct regex_search *s, bool foreign,
                               uint64_t allowed_ns, struct err *err);
uint64_t regex_search_end(struct regex_search *s);

/* Where a search of one text is: begin with zeros. */
struct regex_place {
    size_t at, last; /* the end of the last match */
    bool has_last;
};

/* The next match in text[len], well-formed, with stand-ins for newer characters, as
 * *begin and *end; both len: no match. Matches may be empty, but not at the end of the
 * one before. Errors: ST_INPUT (a pattern of a file that takes too long, or whose match
 * does not advance), ST_NO_MEMORY. */
enum status regex_next(struct regex_search *s, const struct regex *r, const char *text,
                       size_t len, struct regex_place *place, size_t *begin,
                       size_t *end);

/* Whether searches take longer than they may; looks at the clock now and then. */
bool regex_takes_too_long(struct regex_search *s);
enum status regex_too_long(const struct regex_search *s);

#endif
