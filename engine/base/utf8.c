/* SPDX-License-Identifier: MIT
 *
 * utf8.c - characters in unchecked bytes
 */
#include "engine/base/utf8.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

int utf8_char_len(const char *s, size_t len)
{
    const unsigned char *b = (const unsigned char *)s;
    unsigned lo = 0x80, hi = 0xbf; /* range of the second byte */
    int n;

    if (b[0] < 0x80)
        return 1;
    if (b[0] < 0xc2 || b[0] > 0xf4)
        return 0;
    if (b[0] < 0xe0) {
        n = 2;
    } else if (b[0] < 0xf0) {
        n = 3;
        lo = b[0] == 0xe0 ? 0xa0 : 0x80; /* no overlong forms */
        hi = b[0] == 0xed ? 0x9f : 0xbf; /* no surrogates */
    } else {
        n = 4;
        lo = b[0] == 0xf0 ? 0x90 : 0x80;
        hi = b[0] == 0xf4 ? 0x8f : 0xbf; /* nothing above U+10FFFF */
    }
    for (int i = 1; i < n; i++) {
        if ((size_t)i == len)
            return -1;
        if (b[i] < lo || b[i] > hi)
            return 0;
        lo = 0x80;
        hi = 0xbf;
    }
    return n;
}

/* U+0000..1F, 7F, the C1 controls U+0080..9F, line separators (U+2028 and 9) and what
 * reorders the text around it (U+202A..E and U+2066..9). */
static int is_control(const char *s, int n)
{
    const unsigned char *b = (const unsigned char *)s;

    if (n == 1)
        return b[0] < 0x20 || b[0] == 0x7f;
    if (n == 2)
        return b[0] == 0xc2 && b[1] < 0xa0;
    return n == 3 && b[0] == 0xe2 &&
           ((b[1] == 0x80 && b[2] >= 0xa8 && b[2] <= 0xae) ||
            (b[1] == 0x81 && b[2] >= 0xa6 && b[2] <= 0xa9));
}

size_t utf8_ascii(const char *s, size_t len)
{
    size_t n = 0;

    for (uint64_t eight; n + 8 <= len; n += 8) {
        memcpy(&eight, s + n, 8);
        if (eight & 0x8080808080808080u)
            break;
    }
    while (n < len && (unsigned char)s[n] < 0x80)
        n++;
    return n;
}

unsigned utf8_control(const char *s, int n)
{
    const unsigned char *b = (const unsigned char *)s;

    if (!is_control(s, n))
        return 0;
    if (n == 1)
        return b[0];
    return n == 2 ? (b[0] & 0x1fu) << 6 | (b[1] & 0x3fu)
                  : (b[0] & 0xfu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
}

const char *utf8_printable(char *buf, size_t cap, const char *s, size_t len)
{
    size_t used = 0, cut = 0; /* cut: last place where "..." fits */

    assert(cap >= 8);
    for (size_t i = 0; i < len;) {
        char piece[8];
        int n = utf8_char_len(s + i, len - i);
        int n_out = n;

        if (n > 0 && !is_control(s + i, n)) {
            memcpy(piece, s + i, (size_t)n);
        } else {
            n = 1;
            n_out = snprintf(piece, sizeof piece, "\\x%02x", (unsigned char)s[i]);
        }
        if (used + (size_t)n_out + 1 > cap) {
            memcpy(buf + cut, "...", 4);
            return buf;
        }
        memcpy(buf + used, piece, (size_t)n_out);
        used += (size_t)n_out;
        if (used + 4 <= cap)
            cut = used;
        i += (size_t)n;
    }
    buf[used] = '\0';
    return buf;
}

/* Texts are wrapped at blanks, and what counts as a blank in Unicode is no ASCII: so
 * any word may begin a line. */
static int begins_word(const char *text, const char *at)
{
    const unsigned char before = at > text ? (unsigned char)at[-1] : ' ';

    return before <= ' ' || before > '~';
}

void utf8_disarm(char *text)
{
    for (char *c = text; *c; c++)
        if ((!strncmp(c, "::", 2) && begins_word(text, c)) || !strncmp(c, "##[", 3))
            *c = '.';
}

const char *utf8_harmless(char *buf, size_t cap, const char *s, size_t len)
{
    utf8_printable(buf, cap, s, len);
    utf8_disarm(buf);
    return buf;
}

size_t utf8_terminal(char *out, const char *s, size_t len)
{
    size_t used = 0;

    for (size_t i = 0; i < len;) {
        int n = utf8_char_len(s + i, len - i);

        if (n > 0 && (!is_control(s + i, n) || s[i] == '\n' || s[i] == '\t')) {
            memcpy(out + used, s + i, (size_t)n);
            used += (size_t)n;
            i += (size_t)n;
        } else {
            char code[8];

            used += (size_t)snprintf(code, sizeof code, "\\x%02x", (unsigned char)s[i]);
            memcpy(out + used - 4, code, 4);
            i++;
        }
    }
    return used;
}

size_t utf8_stretch(const char *text, size_t len, bool *well_formed)
{
    size_t at = 0;

    for (*well_formed = utf8_char_len(text, len) > 0; at < len;) {
        if (*well_formed && (at += utf8_ascii(text + at, len - at)) == len)
            break;
        const int n = utf8_char_len(text + at, len - at);

        if ((n > 0) != *well_formed)
            break;
        at += n > 0 ? (size_t)n : 1;
    }
    return at;
}

bool utf8_is_valid(const char *s, size_t len)
{
    bool well_formed;

    return !len || (utf8_stretch(s, len, &well_formed) == len && well_formed);
}
