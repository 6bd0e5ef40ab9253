/* SPDX-License-Identifier: MIT
 *
 * unicode.h - properties of characters, normal forms and case, of Unicode 16.0
 *
 * unicode_data.def has the tables, which ci/unicode writes from Unicode's data files;
 * they are unpacked on first use. Case is that of UnicodeData and the unconditional
 * part of SpecialCasing ("ß" becomes "SS"). Text may hold any bytes: what is no UTF-8
 * stays as it is, and parts what is around it.
 *
 * Threading: any thread.
 * Source: The Unicode Standard, chapter 3, and Annex 15.
 */
#ifndef SLM_ENGINE_BASE_UNICODE_H
#define SLM_ENGINE_BASE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/base/status.h"

/* General categories; those of one kind are neighbours. */
enum unicode_category {
    UNICODE_Cn,
    UNICODE_Cc,
    UNICODE_Cf,
    UNICODE_Co,
    UNICODE_Cs,
    UNICODE_Ll,
    UNICODE_Lm,
    UNICODE_Lo,
    UNICODE_Lt,
    UNICODE_Lu,
    UNICODE_Mc,
    UNICODE_Me,
    UNICODE_Mn,
    UNICODE_Nd,
    UNICODE_Nl,
    UNICODE_No,
    UNICODE_Pc,
    UNICODE_Pd,
    UNICODE_Pe,
    UNICODE_Pf,
    UNICODE_Pi,
    UNICODE_Po,
    UNICODE_Ps,
    UNICODE_Sc,
    UNICODE_Sk,
    UNICODE_Sm,
    UNICODE_So,
    UNICODE_Zl,
    UNICODE_Zp,
    UNICODE_Zs,
};

/* Those with a name here; others have numbers of their own. */
enum unicode_script {
    UNICODE_NO_SCRIPT,
    UNICODE_COMMON,
    UNICODE_INHERITED,
    UNICODE_HAN,
    UNICODE_HIRAGANA,
    UNICODE_KATAKANA,
};

enum unicode_form { UNICODE_NFC, UNICODE_NFD, UNICODE_NFKC, UNICODE_NFKD };
enum unicode_case { UNICODE_LOWER, UNICODE_TITLE, UNICODE_UPPER };

enum unicode_category unicode_category(uint32_t c);

/* The number of its script, an enum unicode_script or higher. */
int unicode_script(uint32_t c);

/* White_Space. */
bool unicode_is_blank(uint32_t c);

/* A character of words: \w of Unicode's Annex 18, but for symbols that are letters. */
bool unicode_is_word(uint32_t c);

/* The character at text[len], len >= 1, and its bytes; *n 0: malformed there. */
uint32_t unicode_at(const char *text, size_t len, size_t *n);

/* c as UTF-8; returns the bytes. */
size_t unicode_put(uint32_t c, char out[4]);

#define UNICODE_MAX_CASE 3 /* characters that one becomes */
size_t unicode_case(uint32_t c, enum unicode_case to, uint32_t out[UNICODE_MAX_CASE]);

/* An older character (of Unicode 10) of the same size in UTF-8, category (or its kind,
 * where that has none of the size) and, where possible, script; c itself where it is
 * old enough or there is none. For libraries whose own tables end earlier. */
uint32_t unicode_stand_in(uint32_t c);

/* text[len], well-formed, with such characters in place of its own, as long as it,
 * malloc'ed: the caller frees it. NULL where no character changes. Error: ST_NO_MEMORY.
 */
enum status unicode_stand_ins(const char *text, size_t len, char **out,
                              struct err *err);

/* Whether text[len] is in this form; false also where only a longer look would tell. */
bool unicode_is_normal(enum unicode_form form, const char *text, size_t len);

/* text[len] in a normal form; *out is malloc'ed, the caller frees it. Time and memory:
 * linear. Error: ST_NO_MEMORY. */
enum status unicode_normalize(enum unicode_form form, const char *text, size_t len,
                              char **out, size_t *n_out, struct err *err);

#endif
