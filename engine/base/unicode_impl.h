/* SPDX-License-Identifier: MIT
 *
 * unicode_impl.h - the unpacked tables; for unicode*.c only
 */
#ifndef SLM_ENGINE_BASE_UNICODE_IMPL_H
#define SLM_ENGINE_BASE_UNICODE_IMPL_H

#include "engine/base/unicode.h"

#define UNICODE_END 0x110000u

/* What a character decomposes to: to[at] .. to[at + n]. */
struct unicode_mapping {
    uint32_t c;
    uint16_t at;
    uint8_t n;
    bool compat, excluded; /* from composition */
};

/* Bytes of text[len] before the first that is at least limit, which is 0x80 or more. */
size_t unicode_below(const char *text, size_t len, unsigned char limit);

/* Unpack the tables; once. */
void unicode_load(void);

uint8_t unicode_class(uint32_t c); /* canonical combining class */

/* NULL: none. Hangul syllables are not listed. */
const struct unicode_mapping *unicode_mapping(uint32_t c);
const uint32_t *unicode_mapped(const struct unicode_mapping *m);

/* The character that two make; 0: none. */
uint32_t unicode_compose(uint32_t a, uint32_t b);

/* Whether c may not stand as it is in a composed text, or composes with one before: the
 * property NFC_Quick_Check is not "yes". */
bool unicode_composes(uint32_t c);

/* Whether what is before c may change with it: it composes, or has a class. */
bool unicode_is_behind(uint32_t c);

#endif
