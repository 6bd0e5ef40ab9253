/* SPDX-License-Identifier: MIT
 *
 * tokenizer_charsmap.c - lookups in a double array, and characters that belong together
 */
#include "engine/tokenizer/tokenizer_charsmap.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"

#define MAX_TOGETHER 6 /* bytes: from there on characters are looked up alone */

struct charsmap {
    uint32_t *units; /* [n_units] */
    size_t n_units;
    char *texts; /* [n_texts], and a zero */
    size_t n_texts;
};

static uint32_t u32_at(const unsigned char *b)
{
    return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

enum status charsmap_open(struct charsmap **out, const void *bytes, size_t n,
                          const char *path, struct err *err)
{
    const unsigned char *b = bytes;
    const size_t size = n >= 4 ? u32_at(b) : 0;
    struct charsmap *m;

    if (n < 8 || size > n - 4 || size % 4 || !size)
        return err_set(
            err, ST_INPUT,
            "%s: the normalizer's table of characters (precompiled_charsmap) "
            "of %zu bytes is cut short",
            path, n);
    m = calloc(1, sizeof *m);
    if (m) {
        m->n_units = size / 4;
        m->n_texts = n - 4 - size;
        m->units = malloc(size);
        m->texts = calloc(1, m->n_texts + 1);
    }
    if (!m || !m->units || !m->texts) {
        charsmap_close(m);
        return err_set(err, ST_NO_MEMORY, "no memory for a table of characters");
    }
    for (size_t i = 0; i < m->n_units; i++)
        m->units[i] = u32_at(b + 4 + 4 * i);
    memcpy(m->texts, b + 4 + size, m->n_texts);
    *out = m;
    return ST_OK;
}

static int base64_digit(char c)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;

    return at ? (int)(at - digits) : -1;
}

enum status charsmap_open_base64(struct charsmap **m, const char *text,
                                 const char *path, struct err *err)
{
    unsigned char *bytes = malloc(strlen(text) / 4 * 3 + 4);
    size_t n = 0;
    uint32_t bits = 0;
    int n_bits = 0, digit;

    if (!bytes)
        return err_set(err, ST_NO_MEMORY, "no memory for a table of characters");
    while ((digit = base64_digit(*text)) >= 0) {
        text++;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits >= 8)
            bytes[n++] = (unsigned char)(bits >> (n_bits -= 8));
    }
    const enum status st =
        text[strspn(text, "=")]
            ? err_set(err, ST_INPUT, "%s: precompiled_charsmap is not base64", path)
            : charsmap_open(m, bytes, n, path, err);

    free(bytes);
    return st;
}

void charsmap_close(struct charsmap *m)
{
    if (!m)
        return;
    free(m->units);
    free(m->texts);
    free(m);
}

/* ---- lookups --------------------------------------------------------------------- */

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

/* What the shortest entry that text[n] begins with becomes; NULL: there is none. */
static const char *find(const struct charsmap *m, const char *text, size_t n)
{
    size_t at = offset_of(m->units[0]);

    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];

        at ^= byte;
        if (!byte || at >= m->n_units || (m->units[at] & (1u << 31 | 0xff)) != byte)
            return NULL;
        const uint32_t unit = m->units[at];

        at ^= offset_of(unit);
        if (at >= m->n_units)
            return NULL;
        if (unit >> 8 & 1) {
            const uint32_t to = m->units[at] & ~(1u << 31);

            return to < m->n_texts ? m->texts + to : NULL;
        }
    }
    return NULL;
}

/* ---- characters that belong together --------------------------------------------- */

static bool is_in(uint32_t c, const uint32_t (*ranges)[2], size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c >= ranges[i][0] && c <= ranges[i][1])
            return true;
    return false;
}

#define IS_IN(c, ranges) is_in(c, ranges, sizeof(ranges) / sizeof *(ranges))

/* A mark of the character before it (Extend, SpacingMark and ZWJ of Unicode's Annex
 * 29).
 */
static bool goes_on(uint32_t c)
{
    static const uint32_t marks[][2] = {{0x0e33, 0x0e33},   {0x0eb3, 0x0eb3},
                                        {0x200c, 0x200d},   {0xff9e, 0xff9f},
                                        {0x1f3fb, 0x1f3ff}, {0xe0020, 0xe007f}};
    static const uint32_t letters[][2] = {
        {0x102b, 0x102c},  {0x1038, 0x1038}, {0x1062, 0x1064}, {0x1067, 0x106d},
        {0x1083, 0x1083},  {0x1087, 0x108c}, {0x108f, 0x108f}, {0x109a, 0x109c},
        {0x1a61, 0x1a61},  {0x1a63, 0x1a64}, {0xaa7b, 0xaa7b}, {0xaa7d, 0xaa7d},
        {0x11720, 0x11721}};
    const enum unicode_category is = unicode_category(c);

    if (is == UNICODE_Mc)
        return !IS_IN(c, letters);
    return is == UNICODE_Mn || is == UNICODE_Me || IS_IN(c, marks);
}

/* It belongs to the character behind it. */
static bool goes_before(uint32_t c)
{
    static const uint32_t ranges[][2] = {
        {0x0600, 0x0605},   {0x06dd, 0x06dd},   {0x070f, 0x070f},   {0x0890, 0x0891},
        {0x08e2, 0x08e2},   {0x0d4e, 0x0d4e},   {0x110bd, 0x110bd}, {0x110cd, 0x110cd},
        {0x111c2, 0x111c3}, {0x1193f, 0x1193f}, {0x11941, 0x11941}, {0x11a3a, 0x11a3a},
        {0x11a84, 0x11a89}, {0x11d46, 0x11d46}, {0x11f02, 0x11f02}};

    return IS_IN(c, ranges);
}

static bool stands_alone(uint32_t c)
{
    const enum unicode_category is = unicode_category(c);

    return !goes_on(c) && !goes_before(c) &&
           (is == UNICODE_Cc || is == UNICODE_Cf || is == UNICODE_Zl ||
            is == UNICODE_Zp);
}

/* Letters of a Hangul syllable. */
static bool is_jamo_behind(uint32_t before, uint32_t c)
{
    const bool hangul = (before >= 0x1100 && before <= 0x11ff) ||
                        (before >= 0xa960 && before <= 0xa97c) ||
                        (before >= 0xac00 && before <= 0xd7fb);
    const bool first = (before >= 0x1100 && before <= 0x115f) ||
                       (before >= 0xa960 && before <= 0xa97c);

    return (hangul && ((c >= 0x1160 && c <= 0x11ff) || (c >= 0xd7b0 && c <= 0xd7fb))) ||
           (first && ((c >= 0x1100 && c <= 0x115f) || (c >= 0xac00 && c <= 0xd7a3)));
}

/* Bytes of the characters at text[len], well-formed there, that are one to a reader. */
static size_t together(const char *text, size_t len)
{
    size_t at, n;
    uint32_t before = unicode_at(text, len, &at);

    if (before == '\r' && len > 1 && text[1] == '\n')
        return 2;
    if (at == 1 && (len == 1 || (unsigned char)text[1] < 0x80))
        return 1;
    for (; at < len && !stands_alone(before); at += n) {
        const uint32_t c = unicode_at(text + at, len - at, &n);

        if (!n || stands_alone(c) ||
            !(goes_on(c) || goes_before(before) || is_jamo_behind(before, c)))
            break;
        before = c;
    }
    return at;
}

static bool put_found(const struct charsmap *m, const char *text, size_t n,
                      charsmap_put_fn *put, void *arg)
{
    const char *to = find(m, text, n);

    if (to && *to)
        put(arg, to, strlen(to));
    return to != NULL;
}

void charsmap_apply(const struct charsmap *m, const char *text, size_t len,
                    charsmap_put_fn *put, void *arg)
{
    for (size_t at = 0, all, n; at < len; at += all) {
        unicode_at(text + at, len - at, &n);
        if (!n) {
            put(arg, text + at, all = 1);
            continue;
        }
        all = together(text + at, len - at);
        if (all < MAX_TOGETHER && put_found(m, text + at, all, put, arg))
            continue;
        for (size_t i = at; i < at + all; i += n) {
            unicode_at(text + i, at + all - i, &n);
            if (!put_found(m, text + i, n, put, arg))
                put(arg, text + i, n);
        }
    }
}
