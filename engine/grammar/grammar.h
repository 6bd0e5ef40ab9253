/* SPDX-License-Identifier: MIT
 *
 * grammar.h - texts that follow a JSON schema, token by token
 *
 * A grammar says which byte strings are complete texts, and so, after any beginning,
 * which bytes may follow. grammar_vocab holds the bytes of every token of a vocabulary
 * as a tree of prefixes; with it a grammar_state says which tokens may come next (a
 * mask), whether the text may end here, and which tokens are forced because only one
 * text can follow (jump-forward).
 *
 * JSON is generated compactly or with the white space that models like to write
 * (limited, so that a text cannot be white space without end); keys of an object come
 * in the order of the schema, optional ones may be absent; strings hold valid UTF-8 and
 * escapes. What of JSON Schema is supported stands at grammar_from_schema(); what is
 * not is an error, never ignored in silence.
 *
 * Threading: grammars and vocabularies are immutable and counted; a state belongs to
 * one thread at a time.
 */
#ifndef SLM_ENGINE_GRAMMAR_GRAMMAR_H
#define SLM_ENGINE_GRAMMAR_GRAMMAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"
#include "engine/tokenizer/tokenizer.h"

struct grammar;
struct grammar_vocab;
struct grammar_state;

/* The tokens of a vocabulary. tok lives longer. Error: ST_NO_MEMORY. */
enum status grammar_vocab_open(struct grammar_vocab **v, const struct tokenizer *tok,
                               struct err *err);
void grammar_vocab_close(struct grammar_vocab *v);

/* Any JSON object ("JSON mode"). Error: ST_NO_MEMORY. */
enum status grammar_json(struct grammar **g, struct err *err);

/* Texts valid under a JSON schema, given as its own text[len]. Supported: ... (the
 * implementer completes this list). Errors: ST_INPUT (not JSON, not a schema, not
 * supported: the message names the keyword and where it is; too large, with the limit),
 * ST_NO_MEMORY. */
enum status grammar_from_schema(struct grammar **g, const char *text, size_t len,
                                struct err *err);

/* Another owner; NULL stays NULL. */
struct grammar *grammar_ref(struct grammar *g);
void grammar_unref(struct grammar *g);

/* The beginning of a text. Error: ST_NO_MEMORY. */
enum status grammar_state_open(struct grammar_state **s, struct grammar *g,
                               struct grammar_vocab *v, struct err *err);
void grammar_state_close(struct grammar_state *s);

#define GRAMMAR_MASK_WORDS(n_vocab) (((size_t)(n_vocab) + 31) / 32)

/* Bit i of mask[GRAMMAR_MASK_WORDS(n_vocab)]: token i may come next. End tokens have
 * their bits where the text may end. At least one bit is set: a vocabulary that cannot
 * go on is found by grammar_state_open() or ends the text. */
void grammar_state_mask(struct grammar_state *s, uint32_t *mask);

/* Token id is the next one. False: it may not be, and nothing changes. */
bool grammar_state_accept(struct grammar_state *s, int32_t id);

/* Tokens that come next without a choice, as many as are certain, up to cap: their
 * bytes are the only ones that can follow (the tokenizer's own way to write them: a
 * forced text of several bytes is encoded by the longest tokens that match it). They
 * are not accepted yet. 0: there is a choice. */
int grammar_state_forced(struct grammar_state *s, int32_t *ids, int cap);

/* Whether the text is complete and nothing can follow. */
bool grammar_state_ended(const struct grammar_state *s);

#endif
