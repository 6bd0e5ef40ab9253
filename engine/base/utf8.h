/* SPDX-License-Identifier: MIT
 *
 * utf8.h - UTF-8 character lengths and printable text
 *
 * Text may hold any bytes; nothing here assumes that it is valid or zero-terminated.
 *
 * Threading: pure functions.
 * Source: Unicode standard, table 3-7 (well-formed byte sequences).
 */
#ifndef SLM_ENGINE_BASE_UTF8_H
#define SLM_ENGINE_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes (1..4) of the well-formed character at s[len], len >= 1; 0 when it is
 * malformed, -1 when the text ends inside it. */
int utf8_char_len(const char *s, size_t len);

/* Bytes of ASCII that s[len] begins with. */
size_t utf8_ascii(const char *s, size_t len);

/* Bytes of the leading run of s[len], len >= 1, that are all well-formed or all
 * malformed. */
size_t utf8_stretch(const char *s, size_t len, bool *well_formed);

/* Whether all of s[len] is well-formed. */
bool utf8_is_valid(const char *s, size_t len);

/* The code of the well-formed character of n bytes at s if it is a control character, a
 * line separator or reorders the text around it, else 0; so for U+0000, too. */
unsigned utf8_control(const char *s, int n);

/* s[len] made safe to print on one line of a terminal: control characters, what
 * reorders text, and malformed bytes become \xNN; text that does not fit cap (>= 8)
 * ends in "...". Returns buf. */
const char *utf8_printable(char *buf, size_t cap, const char *s, size_t len);

/* No part of text that can begin a line stays a workflow command of a CI system: the
 * first character of "::" at the start of a word and of "##[" becomes a full stop. */
void utf8_disarm(char *text);

/* utf8_printable() and utf8_disarm(): what is printed of a text that may be anybody's.
 * Returns buf. */
const char *utf8_harmless(char *buf, size_t cap, const char *s, size_t len);

/* s[len] made safe for a terminal, lines and tabs as they are, into out[4 * len];
 * returns the length. */
size_t utf8_terminal(char *out, const char *s, size_t len);

#endif
