/* SPDX-License-Identifier: MIT
 *
 * call_reader_impl.h - parts of a reader of calls, for call_reader.c and call_values.c
 */
#ifndef SLM_ENGINE_GRAMMAR_CALL_READER_IMPL_H
#define SLM_ENGINE_GRAMMAR_CALL_READER_IMPL_H

#include "engine/grammar/call_form.h"

/* ---- call_reader.c --------------------------------------------------------------- */

/* Give bytes out; text of the calls; a byte of a JSON string. */
void reader_put(struct call_reader *r, struct call_bytes *b, const char *s, size_t n);
void reader_put_call(struct call_reader *r, const char *s);
void reader_put_escaped(struct call_reader *r, char ch);

/* A text with holes, not matched yet. NULL: it matches nothing. */
struct call_match call_match_of(const char *text);

/* Takes a byte; true: the text is whole now. */
bool call_match_byte(struct call_match *m, char ch);

/* The text comes next, and then what follows in that state. */
void reader_begin_literal(struct call_reader *r, enum call_state state,
                          const char *text);

/* What may follow a value, or the name of a call without parameters. */
void reader_begin_next(struct call_reader *r);

/* A byte that ends a name or a value is taken again by what follows. */
void reader_add_byte(struct call_reader *r, char ch);

/* ---- call_values.c --------------------------------------------------------------- */

/* Takes a byte of a JSON value; true: the value ends with it. */
bool reader_json_byte(struct call_reader *r, char ch);

/* A byte in the states CALL_VALUE, CALL_KEY, CALL_QUOTE, CALL_RAW. */
void reader_value_byte(struct call_reader *r, char ch);
void reader_key_byte(struct call_reader *r, char ch);
void reader_quote_byte(struct call_reader *r, char ch);
void reader_raw_byte(struct call_reader *r, char ch);

#endif
