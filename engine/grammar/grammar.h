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
 * escapes. grammar_from_schema() lists what is supported of JSON Schema; anything
 * else is an error, never ignored in silence.
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
#include "engine/grammar/call_form.h"
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

/* Texts valid under a JSON schema, given as its own text[len]. Supported:
 *
 *   type (one or a list), enum, const, anyOf, allOf, oneOf where its alternatives
 *   exclude each other, $ref to places of the same schema (recursive ones, too), true,
 *   false and {}; several schemas for one value are merged;
 *   objects: properties, required, additionalProperties; members come in the schema's
 *   order, then required ones that it does not declare, then others;
 *   arrays: items, prefixItems, minItems, maxItems;
 *   strings: minLength, maxLength, pattern (what is regular of ECMA 262; ^ and $ at
 *   the ends only), format (date, time, date-time, duration, uuid, email, hostname,
 *   ipv4, ipv6, uri);
 *   integers: minimum, maximum, exclusiveMinimum, exclusiveMaximum; numbers: the same,
 *   where the limit is a whole number.
 *
 * Without a type, a schema is of the types that its keywords are about, and any value
 * where there are none. Annotations (title, description, default, ...) say nothing. All
 * else is an error, never ignored. Texts are a part of what is valid: integers have up
 * to 18 digits (unless a limit has more), fractions 17, exponents 2; free strings have
 * any characters and escapes but U+0000 and lone surrogates; names, listed values and
 * patterns have no unnecessary escapes; formats allow the usual part of what they name.
 * A name that is not declared may come twice.
 *
 * Errors: ST_INPUT (not JSON, not a schema, not supported: the message names the
 * keyword and where it is; too large, with the limit; no text is valid), ST_NO_MEMORY.
 */
enum status grammar_from_schema(struct grammar **g, const char *text, size_t len,
                                struct err *err);

/* A tool that a model may call; schema[len] is of its arguments, an object. */
struct grammar_tool {
    const char *name, *schema;
    size_t len;
};

enum grammar_choice {
    GRAMMAR_AUTO,    /* a text, calls, or calls behind a text */
    GRAMMAR_NONE,    /* a text in which no call begins */
    GRAMMAR_REQUIRED /* calls alone */
};

struct grammar_calls {
    const struct call_form *form;
    const struct grammar_tool *tools; /* [n_tools] */
    size_t n_tools;
    enum grammar_choice choice;
    bool parallel;                       /* several calls, where the form has them */
    const char *think_begin, *think_end; /* thoughts that may come first; NULL: none */
    bool thinks;                         /* they have begun */
    const char *schema; /* [n_schema] which a text follows, instead of calls behind a
                           text; "" any object; NULL: it is free. GRAMMAR_AUTO */
    size_t n_schema;
};

#define GRAMMAR_MAX_TOOLS 1024

/* Answers that may call tools, as a form writes them; each call's arguments are valid
 * under its tool's schema, which may have what grammar_from_schema() takes. An
 * object has declared members only, unless its schema has additionalProperties that are
 * not false. All schemas are checked here; what is made of one is made when a
 * text first comes to its tool's name. Texts are bytes as call_form.h has them, with
 * control tokens. Nothing is kept of c. Errors: as grammar_from_schema(); messages name
 * the tool. */
enum status grammar_from_calls(struct grammar **g, const struct grammar_calls *c,
                               struct err *err);

/* Types of a tool's parameter in such a grammar, for call_reader_open(). */
unsigned grammar_parameter_types(const void *g, const char *name, const char *key);

/* Whether its calls begin where an answer does, and nowhere else (call_reader.first).
 */
bool grammar_calls_first(const struct grammar *g);

/* Another owner; NULL stays NULL. */
struct grammar *grammar_ref(struct grammar *g);
void grammar_unref(struct grammar *g);

/* Memory that it takes while it has an owner. */
size_t grammar_bytes(const struct grammar *g);

/* The beginning of a text. What is computed for a schema's texts is kept with the
 * vocabulary for later ones, also of another grammar made from an equal schema; v is
 * kept until the state is closed. Errors: ST_UNSUPPORTED (the vocabulary cannot write
 * each ASCII character alone), ST_NO_MEMORY. */
enum status grammar_state_open(struct grammar_state **s, struct grammar *g,
                               struct grammar_vocab *v, struct err *err);
void grammar_state_close(struct grammar_state *s);

/* The same place of the same text. Error: ST_NO_MEMORY. */
enum status grammar_state_copy(struct grammar_state **copy,
                               const struct grammar_state *s, struct err *err);

#define GRAMMAR_MASK_WORDS(n_vocab) (((size_t)(n_vocab) + 31) / 32)

/* Bit i of mask[GRAMMAR_MASK_WORDS(n_vocab)]: token i may come next. End tokens have
 * their bits where the text may end, and where nothing can go on: the vocabulary has no
 * token for a byte that the text needs, or memory is lacking. So at least one bit is
 * set, if the vocabulary has an end token. True: every token that is no padding may
 * come, so that there is nothing to mask. */
bool grammar_state_mask(struct grammar_state *s, uint32_t *mask);

/* Token id is the next one. False: it may not be, and nothing changes. */
bool grammar_state_accept(struct grammar_state *s, int32_t id);

/* Tokens that come next without a choice, as many as are certain, up to cap: their
 * bytes are the only ones that can follow (the tokenizer's own way to write them: a
 * forced text of several bytes is encoded by the longest tokens that match it). They
 * are not accepted yet. 0: there is a choice. */
int grammar_state_forced(struct grammar_state *s, int32_t *ids, int cap);

/* Whether the text is complete: it may end here. Where a mask has end tokens without
 * that, nothing can follow, and a text that ends there is cut. */
bool grammar_state_complete(const struct grammar_state *s);

/* Whether the text is complete and nothing can follow. */
bool grammar_state_ended(const struct grammar_state *s);

/* Memory of what is kept for this state's schema, shared by all its states. */
size_t grammar_state_bytes(const struct grammar_state *s);

#endif
